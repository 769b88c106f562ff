"""What changed between runs by their settings, and whether the score can be laid to one change."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blade.compare.alignment import align
from blade.compare.run_settings import config_diff, effects, separation
from blade.model import PROMPT, Setting, Side
from tests.compare.builders import side

TASKS = {"1": "10", "2": "11"}


def run(name: str, model: str | None = "m", agent: str | None = "bot", **settings: str) -> Side:
    """A run with settings; `a__b` stands for the name `a.b`."""
    told = {key.replace("__", "."): value for key, value in settings.items()}
    return side(name, TASKS, model=model, agent=agent, settings=told)


def stated(name: str, settings: dict[str, str], model: str = "m") -> Side:
    return side(name, TASKS, model=model, agent="bot", settings=settings)


def keys(found: tuple[Setting, ...]) -> list[str]:
    return [one.key for one in found]


# -- what differs ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "kind", "mechanical"),
    [
        ("temperature", "sampling", False),
        ("policy.top_p", "sampling", False),
        ("reasoning_effort", "sampling", False),
        ("max_output_tokens", "limit", True),
        ("agent.max_turns", "limit", True),
        ("tool_timeout_s", "limit", True),
        ("resources.memory_gb", "limit", True),
        ("tools", "tools", True),
        ("system prompt", "prompt", False),
        ("prompt_path", "prompt", False),
        ("dataset", "data", True),
        ("benchmark", "data", True),
        ("verifier", "verifier", True),
        ("judge.model", "verifier", True),
        ("judge.temperature", "verifier", True),
        ("skills_ref.hash", "skills", False),
        ("agent_name", "harness", False),
        ("policy_model_name", "model", False),
        ("quantization", "model", False),
        ("use_scratchpad", "other", False),
    ],
)
def test_the_kind_of_a_setting_is_told_by_its_name(key: str, kind: str, mechanical: bool) -> None:
    (one,) = config_diff(stated("a", {key: "x1"}), stated("b", {key: "x2"}))
    assert (one.key, one.baseline, one.candidate) == (key, "x1", "x2")
    assert (one.kind, one.mechanical, one.known, one.counts) == (kind, mechanical, True, True)


@pytest.mark.parametrize(
    "key",
    ["output_dir", "log_path", "run_name", "experiment_name", "job_id", "created", "timestamp", "server.port", "hostname",
     "model_server.base_url", "wandb.project", "cache_dir", "api_key", "blade version", "tasks grouped by", "config.yaml: results.output_file"],
)  # fmt: skip
def test_what_any_two_runs_differ_in_is_no_variable(key: str) -> None:
    assert config_diff(stated("a", {key: "one"}), stated("b", {key: "two"})) == ()


@pytest.mark.parametrize(("key", "kind"), [("seed", "other"), ("sampling_seed", "other"), ("limit", "data"), ("num_samples", "data"), ("num_repeats", "repeats")])
def test_some_settings_are_shown_and_do_not_count(key: str, kind: str) -> None:
    a, b = stated("a", {key: "1"}), stated("b", {key: "2"}, model="n")
    diff = config_diff(a, b)
    shown = [one for one in diff if one.key != "model"]
    if key != "num_repeats":  # the rows tell the repeats
        assert [(one.key, one.kind, one.counts) for one in shown] == [(key, kind, False)]
    assert separation(diff, a, b) == (True, "")


def test_repeats_and_the_threshold_of_a_pass_are_settings() -> None:
    a, b = side("a", {"1": "11", "2": "10", "3": "1"}), side("b", {"1": "1111", "2": "1000"}, threshold=0.5)
    diff = config_diff(a, b)
    assert [(one.key, one.baseline, one.candidate, one.kind, one.counts) for one in diff] == [
        ("pass threshold", "1", "0.5", "verifier", True),
        ("repeats", "2", "4", "repeats", False),
    ]


@pytest.mark.parametrize(("one", "other"), [("1", "1.0"), ("0.70", "0.7"), ("True", "true"), ("null", "None")])
def test_one_value_in_two_spellings_is_no_change(one: str, other: str) -> None:
    assert config_diff(run("a", temperature=one), run("b", temperature=other)) == ()


@pytest.mark.parametrize(
    ("one", "other", "differs"),
    [("/home/ann/data/v1/t.jsonl", "/mnt/data/v1/t.jsonl", False), ("/mnt/data/v1/t.jsonl", "/mnt/data/v2/t.jsonl", True), ("p/one.txt", "p/two.txt", True)],
)
def test_a_file_elsewhere_is_the_same_and_another_file_is_not(one: str, other: str, differs: bool) -> None:
    for key in ("dataset_path", "prompt_file"):
        assert bool(config_diff(stated("a", {key: one}), stated("b", {key: other}))) is differs


def test_a_checkpoint_elsewhere_is_another_model() -> None:
    assert keys(config_diff(run("a", "/one/step/hf"), run("b", "/two/step/hf"))) == ["model"]


def test_where_the_data_lie_does_not_matter_if_their_content_is_known() -> None:
    a, b = (stated(name, {"dataset": "1f3a", "dataset_path": f"data/{name}.jsonl"}) for name in "ab")
    assert config_diff(a, b) == ()


def test_a_setting_that_stands_twice_changed_once() -> None:
    a = stated("a", {"temperature": "0", "config.yaml: policy.temperature": "0.0", "config.yaml: policy_model_name": "lab/m"})
    b = stated("b", {"temperature": "1", "config.json: policy.temperature": "1.0", "config.json: policy_model_name": "lab/n"}, model="n")
    assert keys(config_diff(a, b)) == ["model", "temperature"]


def test_two_limits_of_one_name_are_two_settings() -> None:
    a = stated("a", {"agent.max_tokens": "1000", "summary.max_tokens": "50"})
    b = stated("b", {"agent.max_tokens": "2000", "summary.max_tokens": "60"})
    assert keys(config_diff(a, b)) == ["agent.max_tokens", "summary.max_tokens"]


def test_a_setting_that_stands_elsewhere_in_the_other_file_is_found() -> None:
    a, b = stated("a", {"config.yaml: policy.temperature": "1"}), stated("b", {"temperature": "0.5"})
    (one,) = config_diff(a, b)
    assert (one.baseline, one.candidate, one.known) == ("1", "0.5", True)


def test_what_one_run_does_not_state_is_unknown_not_changed() -> None:
    a, b = run("a", "m", temperature="1"), run("b", "n")
    diff = config_diff(a, b)
    assert [(one.key, one.known, one.candidate) for one in diff] == [("model", True, "n"), ("temperature", False, None)]
    assert separation(diff, a, b) == (None, "")


def test_a_run_without_skills_is_known_to_have_none() -> None:
    a, b = run("a"), run("b", skills_ref__hash="9f8e", skills__path="x/y")
    (one,) = config_diff(a, b)
    assert (one.key, one.baseline, one.candidate, one.known) == ("skills_ref.hash", "none", "9f8e", True)
    assert separation((one,), a, b) == (True, "")


def test_a_template_that_changed_in_every_task_is_a_setting() -> None:
    tasks = {str(number): "10" for number in range(8)}

    def prompted(name: str, word: str, **settings: str) -> Side:
        prompts = {PROMPT: {key: f"{word} {key}" for key in tasks}, "gold": {key: key for key in tasks}}
        return side(name, tasks, fingerprints=prompts, settings=settings)

    a, b = prompted("a", "old"), prompted("b", "new")
    (one,) = config_diff(a, b, align(a, b))
    assert (one.key, one.kind) == (PROMPT, "prompt")
    assert one.baseline != one.candidate
    assert config_diff(a, a, align(a, a)) == ()
    a, b = (prompted(name, name, prompt_version=name) for name in "ab")
    assert keys(config_diff(a, b, align(a, b))) == ["prompt_version"]  # which says the same


@pytest.mark.parametrize(("field", "counts"), [("task_id", False), ("instance_id", False), ("reference_answer", True)])
def test_new_names_of_all_tasks_cannot_move_the_score(field: str, counts: bool) -> None:
    tasks = {str(number): "10" for number in range(8)}

    def told(name: str, model: str) -> Side:
        values = {field: {key: f"{name} {key}" for key in tasks}, "question": {key: key for key in tasks}}
        return side(name, tasks, fingerprints=values, model=model)

    a, b = told("a", "m"), told("b", "n")
    diff = config_diff(a, b, align(a, b))
    assert [(one.key, one.counts, one.mechanical) for one in diff] == [("model", True, False), (field, counts, counts)]
    assert separation(diff, a, b)[0] is (not counts)  # the model alone, or two changes


def test_new_names_do_not_hide_new_answers() -> None:
    tasks = {str(number): "10" for number in range(8)}

    def told(name: str) -> Side:
        values = {field: {key: f"{name} {key}" for key in tasks} for field in ("instance_id", "reference_answer")}
        return side(name, tasks, fingerprints={**values, "question": {key: key for key in tasks}})

    a, b = told("a"), told("b")
    diff = config_diff(a, b, align(a, b))
    assert [(one.key, one.counts) for one in diff] == [("reference_answer", True), ("instance_id", False)]


# -- whether it can be told -----------------------------------------------------------------------


def test_one_change_is_separable() -> None:
    a, b = run("a", temperature="1"), run("b", temperature="0.5")
    assert separation(config_diff(a, b), a, b) == (True, "")


def test_two_changes_are_not_and_one_run_would_part_them() -> None:
    a = run("a", "old", max_output_tokens="2048")
    b = run("b", "new", max_output_tokens="4096")
    diff = config_diff(a, b)
    assert separation(diff, a, b) == (False, "a run of new with max_output_tokens = 2048 (everything else as in the baseline)")
    assert separation(config_diff(b, a), b, a) == (False, "a run of old with max_output_tokens = 4096 (everything else as in the baseline)")


def test_changes_beside_the_model() -> None:
    a, b = run("a", temperature="1", tools="x"), run("b", temperature="0", tools="y")
    said = separation(config_diff(a, b), a, b)[1]
    assert said == "a run with tools = y and temperature = 1 (everything else as in the baseline)"


def test_three_changes_take_two_runs() -> None:
    a, b = run("a", "old", temperature="1", tools="x"), run("b", "new", temperature="0", tools="y")
    separable, said = separation(config_diff(a, b), a, b)
    assert separable is False
    assert said.startswith("a run of new with tools = x and temperature = 1 (everything else")
    assert said.endswith("; it sets model apart from the others, which take another such run")


def test_nothing_changed() -> None:
    a = run("a", temperature="1")
    assert config_diff(a, a) == ()
    assert separation((), a, a) == (None, "")


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


# -- several runs ---------------------------------------------------------------------------------


def test_a_run_between_two_tells_both_effects() -> None:
    sides = [run("base", "old", max_tokens="1"), run("mid", "new", max_tokens="1"), run("top", "new", max_tokens="2")]
    deltas = {("base", "mid"): (0.1, 0.05, 0.15), ("base", "top"): (0.3, 0.2, 0.4), ("top", "mid"): (-0.2, -0.3, -0.1)}
    assert effects(sides, deltas) == (
        ("model", "identified by runs that differ in it alone: old → new (base → mid) +0.100 [+0.050, +0.150]"),
        ("max_tokens", "identified by runs that differ in it alone: 2 → 1 (top → mid) −0.200 [−0.300, −0.100]"),
    )


def test_settings_that_always_change_together_are_not_separable() -> None:
    sides = [run("base", "old", max_tokens="1"), run("top", "new", max_tokens="2"), run("hot", "new", max_tokens="2", temperature="1")]
    found = dict(effects(sides, {("base", "top"): (0.3, 0.2, 0.4)}))
    assert found["model"] == "not separable from max_tokens; a run of new with max_tokens = 1 (everything else as in base) would separate it"
    assert found["max_tokens"] == "not separable from model; a run with max_tokens = 2 and model = old (everything else as in base) would separate it"
    assert "temperature" not in found  # one run alone states it


def test_an_effect_with_settings_that_not_all_state() -> None:
    (told,) = effects([run("a", "m", temperature="1"), run("b", "n")], {("a", "b"): (0.1, None, None)})
    assert told[1] == "identified by runs that differ in it alone: m → n (a → b) +0.100, as far as the runs state their settings"


def test_runs_with_the_same_settings_have_no_effects() -> None:
    assert effects([run("a"), run("b")], {}) == ()
