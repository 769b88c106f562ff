"""What changed between runs by their settings, and whether the score can be laid to one change."""

from __future__ import annotations

import shlex
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blade.compare.alignment import align
from blade.compare.run_settings import config_diff, effects, separation
from blade.model import PROMPT, Setting, Side
from tests.case_tables import tables
from tests.compare.builders import side

TASKS = {"1": "10", "2": "11"}
TABLE = tables(__file__, "settings.yaml")


def run(name: str, model: str | None = "m", agent: str | None = "bot", **settings: str) -> Side:
    return side(name, TASKS, model=model, agent=agent, settings=settings)


def told(setting: Setting) -> str:
    marks = [setting.kind, *(["mechanical"] if setting.mechanical else []), *([] if setting.known else ["unknown"])]
    marks += [] if setting.counts else ["does not count"]
    return f"{setting.key}: {setting.baseline} → {setting.candidate} ({', '.join(marks)})"


@pytest.mark.parametrize(("kind", "key"), [(kind, key) for kind, keys in TABLE["kinds"].items() for key in shlex.split(keys)])
def test_the_kind_of_a_setting_is_told_by_its_name(kind: str, key: str) -> None:
    (one,) = config_diff(run("a", **{key: "x1"}), run("b", **{key: "x2"}))
    assert told(one) == f"{key}: x1 → x2 ({kind})"


@pytest.mark.parametrize("key", shlex.split(TABLE["passed_over"]))
def test_what_any_two_runs_differ_in_is_no_variable(key: str) -> None:
    assert config_diff(run("a", **{key: "one"}), run("b", **{key: "two"})) == ()


@pytest.mark.parametrize("case", TABLE["cases"], ids=lambda case: case.get("about") or ", ".join(case["a"]))
def test_what_differs_and_whether_the_change_can_be_laid_to_it(case: dict[str, Any]) -> None:
    a, b = run("a", **case["a"]), run("b", **case["b"])
    diff = config_diff(a, b)
    assert [told(one) for one in diff] == case["differs"]
    assert separation(diff, a, b) == (case.get("separable"), case.get("missing", ""))
    assert separation(config_diff(b, a), b, a) == (case.get("separable"), case.get("back", ""))


def test_repeats_and_the_threshold_of_a_pass_are_settings() -> None:
    a, b = side("a", {"1": "11", "2": "10", "3": "1"}), side("b", {"1": "1111", "2": "1000"}, threshold=0.5)
    diff = [told(one) for one in config_diff(a, b)]
    assert diff == ["pass threshold: 1 → 0.5 (verifier, mechanical)", "repeats: 2 → 4 (repeats, does not count)"]


MANY = {str(number): "10" for number in range(8)}


def test_a_template_that_changed_in_every_task_is_a_setting() -> None:
    def prompted(name: str, word: str, **settings: str) -> Side:
        prompts = {PROMPT: {key: f"{word} {key}" for key in MANY}, "gold": {key: key for key in MANY}}
        return side(name, MANY, fingerprints=prompts, settings=settings)

    a, b = prompted("a", "old"), prompted("b", "new")
    (one,) = config_diff(a, b, align(a, b))
    assert (one.key, one.kind) == (PROMPT, "prompt")
    assert one.baseline != one.candidate
    assert config_diff(a, a, align(a, a)) == ()
    a, b = (prompted(name, name, prompt_version=name) for name in "ab")
    assert [one.key for one in config_diff(a, b, align(a, b))] == ["prompt_version"]  # which says the same


def test_new_names_do_not_hide_new_answers() -> None:
    def renamed(name: str) -> Side:
        values = {field: {key: f"{name} {key}" for key in MANY} for field in ("instance_id", "reference_answer")}
        return side(name, MANY, fingerprints={**values, "question": {key: key for key in MANY}})

    a, b = renamed("a"), renamed("b")
    assert [(one.key, one.counts) for one in config_diff(a, b, align(a, b))] == [("reference_answer", True), ("instance_id", False)]


VALUES = st.dictionaries(
    st.sampled_from(["temperature", "max_tokens", "tools", "seed", "run_name", "config.yaml: policy.temperature", "skills_ref.hash", "judge.model", "x.max_tokens"]),
    st.sampled_from(["1", "2", "1.0", "null"]),
)


@given(VALUES, VALUES, st.sampled_from([None, "m", "n"]), st.sampled_from([None, "m", "n"]))
def test_swapping_the_runs_swaps_the_values(one: dict[str, str], other: dict[str, str], model: Any, second: Any) -> None:
    a, b = side("a", TASKS, settings=one, model=model), side("b", TASKS, settings=other, model=second)
    there, back = config_diff(a, b), config_diff(b, a)
    assert [(s.key, s.baseline, s.candidate, s.known) for s in there] == [(s.key, s.candidate, s.baseline, s.known) for s in back]
    assert separation(there, a, b)[0] == separation(back, b, a)[0]
    assert config_diff(a, a) == ()


@pytest.mark.parametrize("case", TABLE["effects"], ids=lambda case: case["about"])
def test_what_runs_together_say_of_a_setting(case: dict[str, Any]) -> None:
    sides = [run(name, model, **settings) for name, model, settings in case["runs"]]
    deltas = {tuple(pair.split()): tuple(delta) for pair, delta in case["deltas"].items()}
    assert [list(effect) for effect in effects(sides, deltas)] == case["says"]
