"""One run into several by a field, and the fingerprints by which tasks are known again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from blade.compare.alignment import align
from blade.errors import UsageError
from blade.formats import run_splits
from blade.formats.assemble import Assembled
from blade.formats.joined_rows import Rows
from blade.formats.run_splits import fingerprints, split
from blade.model import PROMPT, Rollouts
from tests.builders import DROP, Row, make_message, make_response, make_row, make_run
from tests.case_tables import cases
from tests.compare.builders import side
from tests.conftest import Blade
from tests.measure.builders import make_coverage, make_rollouts

Load = Callable[..., Any]


@pytest.fixture
def parted(tmp_path: Path, loaded: Load) -> Callable[..., Any]:
    """Write rows, read them, and split the run by a field."""

    def make(rows: list[Row], field: str, **sidecars: Any) -> Any:
        return split(loaded(f"x={make_run(tmp_path, rows, **sidecars)}")[0].run, field)

    return make


def skilled(task: int, repeat: int, reward: float, skill: str | None, **changed: Any) -> Row:
    ref = DROP if skill is None else {"path": "s", "hash": skill, "skills": []}
    return make_row(task, repeat, reward, skills_ref=ref, **changed)


# -- parts ----------------------------------------------------------------------------------------


def test_skill_sets_become_runs_that_keep_all_their_rows_and_in_each_the_highest_attempt_wins(parted: Any) -> None:
    skills = ["aa", "aa", "bb", "bb"]
    rows = [skilled(task, repeat, float(skill == "bb"), skill) for task in range(3) for repeat, skill in enumerate(skills)]
    parts = parted(rows, "skills_ref.hash")
    assert [part.rollouts.run for part in parts] == ["x[skills_ref.hash=aa]", "x[skills_ref.hash=bb]"]
    assert [part.rollouts.reward.tolist() for part in parts] == [[0.0] * 6, [1.0] * 6]
    assert [part.settings["skills_ref.hash"] for part in parts] == ["aa", "bb"]
    assert [part.rollouts.repeat.tolist() for part in parts] == [[0, 1] * 3, [2, 3] * 3]
    old = [skilled(task, repeat, 0.0, "aa") for task in range(2) for repeat in range(2)]
    new = [skilled(task, repeat, 1.0, "bb", _ng_attempt_index=1) for task in range(2) for repeat in range(2)]
    parts = parted([*old, *new, skilled(0, 0, 0.5, "aa", _ng_attempt_index=2)], "skills_ref.hash")
    assert [part.rollouts.reward.tolist() for part in parts] == [[0.5, 0.0, 0.0, 0.0], [1.0] * 4]
    assert [(part.coverage.duplicates, part.coverage.superseded) for part in parts] == [(0, 1), (0, 0)]


def test_what_is_expected_of_a_part_is_inferred_from_its_rows(parted: Any) -> None:
    rows = [skilled(task, repeat, 1.0, "aa" if repeat < 2 else "bb") for task in range(4) for repeat in range(5)]
    rows = [row for row in rows if (row["_ng_task_index"], row["_ng_rollout_index"]) != (3, 4)]
    few, many = parted(rows, "skills_ref.hash")
    assert (few.coverage.expected, few.coverage.lost, few.coverage.repeats) == (8, 0, 2)
    assert (many.coverage.expected, many.coverage.lost, many.coverage.lost_keys) == (12, 1, (("3", 4),))
    assert many.coverage.expected_from == "inferred: tasks x modal repeats"
    assert many.coverage.expected_per_task.tolist() == [3, 3, 3, 3]
    dealt = ["aaaab", "aaabb", "aabbb", "aaaab", "abbbb"]
    rows = [make_row(task, repeat, 1.0, arm=arm) for task, arms in enumerate(dealt) for repeat, arm in enumerate(arms)]
    for part in parted(rows, "arm"):
        assert (part.coverage.lost, part.coverage.expected_from) == (0, "inferred: the rows that came")
        assert part.coverage.expected == part.coverage.scored == len(part.rollouts.task)


def test_rows_of_other_agents_stay_out(tmp_path: Path, loaded: Load) -> None:
    rows = [
        make_row(task, 0, 1.0, agent_ref={"name": agent}, arm=arm, _ng_rollout_index=place)
        for task in (0, 1)
        for agent in ("ann", "bob")
        for place, arm in enumerate("ab")
    ]
    runs = loaded(f"x={make_run(tmp_path, rows)}")
    parts = split(runs[1].run, "arm")
    assert [part.rollouts.run for part in parts] == ["x:bob[arm=a]", "x:bob[arm=b]"]
    assert [len(part.rollouts.task) for part in parts] == [2, 2]
    assert {part.agent for part in parts} == {"bob"}


def test_the_fields_of_a_part_are_those_of_its_rows(parted: Any) -> None:
    rows = [make_row(task, repeat, 1.0, arm="ab"[repeat], note=f"{task}-{repeat}") for task in (0, 1) for repeat in (0, 1)]
    a, b = parted(rows, "arm")
    for part, repeat in ((a, 0), (b, 1)):
        column = part.rollouts.fields["note"]
        assert [column.texts[code] for code in column.code] == [f"0-{repeat}", f"1-{repeat}"]
        assert part.settings["arm"] == "ab"[repeat]
        assert "question" in part.rollouts.input_fields


# -- values ---------------------------------------------------------------------------------------


OF_A_ROW = {
    "model": lambda value: {"response": make_response(model=value)},
    "temperature": lambda value: {"responses_create_params": {"input": "q", "temperature": value}},
    "verifier_metadata.level": lambda value: {"verifier_metadata": {"level": value}},
    "_ng_rollout_index": lambda value: {"_ng_rollout_index": value},
    "repeat": lambda value: {"_ng_rollout_index": value},
}


@pytest.mark.parametrize(("field", "values", "labels", "places"), cases(__file__, "splits"))
def test_values_of_every_kind(parted: Any, field: str, values: list[Any], labels: list[str], places: list[list[int]]) -> None:
    of_a_row = OF_A_ROW.get(field, lambda value: {field: value if value != "@DROP" else DROP})
    parts = parted([make_row(0, place, float(place), **of_a_row(value)) for place, value in enumerate(values)], field)
    assert [part.rollouts.run for part in parts] == [f"x[{field}={label}]" for label in labels]
    assert [part.rollouts.reward.tolist() for part in parts] == places
    assert [part.model for part in parts] == (labels if field == "model" else ["sim-model"] * len(labels))


def test_long_texts_and_objects_are_told_by_their_hash(parted: Any) -> None:
    values = ["a" * 200, "b" * 200, {"k": 1}, [1, 2]]
    parts = parted([make_row(0, repeat, 1.0, arm=value) for repeat, value in enumerate(values)], "arm")
    assert [len(part.rollouts.task) for part in parts] == [1] * 4
    assert sorted(part.rollouts.run.split("=")[1].split(" ")[0] for part in parts) == ["list", "object", "text", "text"]


# -- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("field", "slug", "message", "hint"), cases(__file__, "fields that cannot split"))
def test_fields_that_cannot_split_a_run(parted: Any, field: str, slug: str, message: str, hint: str) -> None:
    rows = [make_row(task, 0, 1.0, prompt_version=task % 2, category="c", ident=task) for task in range(51)]
    with pytest.raises(UsageError) as error:
        parted(rows, field)
    assert (error.value.slug, error.value.message) == (slug, message)
    assert error.value.hint.startswith(hint)
    assert slug == "cannot-split" or len(error.value.hint.split(", ")) <= 8


def test_a_field_may_have_fifty_values(parted: Any) -> None:
    assert len(parted([make_row(task, 0, 1.0, ident=task) for task in range(50)], "ident")) == 50


# -- fingerprints ---------------------------------------------------------------------------------

REWARDS = {str(task): [1.0, 0.0] for task in range(40)}


def columns_hashed(rollouts: Rollouts) -> dict[str, Any]:
    return fingerprints(Assembled(rollouts, make_coverage(rollouts), Rows([]), None, None, {}))


def prints_of(fields: dict[str, Any], **more: Any) -> dict[str, Any]:
    return columns_hashed(make_rollouts(REWARDS, fields=fields, input_fields=list(fields), **more))


def by_row(value: Callable[[int, int], Any]) -> list[Any]:
    return [value(task, repeat) for task in range(40) for repeat in (0, 1)]


def test_a_fingerprint_is_one_hash_a_task_where_that_tells_something() -> None:
    found = prints_of({"gold": by_row(lambda task, repeat: f"g{task}")}, tasks=["50"])["gold"]
    assert (found.dtype, found.size, int(found[-1])) == (np.uint64, 41, 0)
    assert len(np.unique(found)) == 41
    odd = by_row(lambda task, repeat: {3: f"g{repeat}", 4: None, 5: ""}.get(task, f"g{task}"))
    assert np.flatnonzero(prints_of({"gold": odd})["gold"] == 0).tolist() == [3, 4, 5]
    torn = by_row(lambda task, repeat: ... if repeat and task < 10 else f"g{task}")
    assert (prints_of({"gold": torn})["gold"] != 0).all()  # a broken row lacks it, the others tell
    assert prints_of({"gold": by_row(lambda task, repeat: "same")}) == {}
    assert prints_of({"gold": by_row(lambda task, repeat: f"{task % 9} {repeat}")}) == {}
    rollouts = make_rollouts(REWARDS, fields={"verdict": by_row(lambda task, repeat: f"v{task}")})
    assert columns_hashed(rollouts) == {}
    fields = {f"expected_{letter}": by_row(lambda task, repeat: f"e{task}") for letter in "abcdefghijklmnop"}
    found = prints_of({**fields, "task_id": by_row(lambda task, repeat: f"t{task}")})
    assert next(iter(found)) == "task_id"
    assert len(found) == 8
    assert columns_hashed(make_rollouts({}, tasks=["1"])) == {}


@pytest.mark.parametrize(("n_varying", "is_kept"), [(2, True), (3, False)])
def test_a_prompt_counts_only_if_it_holds_still_in_nearly_all_tasks(n_varying: int, is_kept: bool) -> None:
    prompts = by_row(lambda task, repeat: f"p{task} {repeat if task < n_varying else ''}")
    assert (PROMPT in prints_of({PROMPT: prompts})) is is_kept


def test_two_readings_of_the_same_tasks_know_each_other(tmp_path: Path, loaded: Load) -> None:
    def told(name: str, order: list[int], gold: dict[int, str]) -> Any:
        rows = [
            make_row(place, 0, 1.0, question=f"q{task}", responses_create_params={"input": f"q{task}"},
                     expected_answer=gold.get(task, f"a{task}"))
            for place, task in enumerate(order)
        ]  # fmt: skip
        run = loaded(f"{name}={make_run(tmp_path / name, rows)}")[0].run
        return replace(side(name, dict.fromkeys(run.rollouts.task_keys, "1")), fingerprints=fingerprints(run))

    order = list(range(12))
    a = told("a", order, {})
    assert align(a, told("b", order, {})).matched_by == "task key, confirmed by expected_answer, question, responses_create_params.input"
    assert align(a, told("c", order, {5: "mended"})).modified == ("5",)
    moved = align(a, told("d", order[::-1], {}))
    assert dict(zip(moved.common, moved.common_candidate, strict=True)) == {str(task): str(11 - task) for task in order}


# -- fingerprints, however their JSON is spelled ---------------------------------------------------

SPELLINGS: dict[str, Callable[[Row], str]] = {
    "compact": lambda row: json.dumps(row, ensure_ascii=False, separators=(",", ":")),
    "spaced": lambda row: json.dumps(row, ensure_ascii=False),
    "sorted": lambda row: json.dumps(row, ensure_ascii=False, separators=(",", ":"), sort_keys=True),
    "escaped": lambda row: json.dumps(row, ensure_ascii=True, separators=(",", ":")).replace("/", "\\/"),
}
LISTS = ("expected_actions", "options", "verifier_metadata", PROMPT)


def task_row(task: int, repeat: int, **changed: Any) -> Row:
    """A row with lists, objects and texts that can be spelled in several ways."""
    row = make_row(
        task, repeat, float((task + repeat) % 2), question=f"Où est {task}/7?", options=[f"é{task}", "b"],
        responses_create_params={"input": [make_message(f"Grüße {task} a/b", "user")], "temperature": 0.5},
        expected_actions=[{"name": "book", "arguments": {"seat": task, "fare": 1.5e2, "row": 2.0}}],
        verifier_metadata={"task_id": f"t{task}", "tags": ["ü", task], "a": None},
    )  # fmt: skip
    return row | changed


def rows_of(n_tasks: int = 12, n_repeats: int = 2) -> list[Row]:
    return [task_row(task, repeat) for task in range(n_tasks) for repeat in range(n_repeats)]


def written(folder: Path, rows: list[Row], *names: str) -> Path:
    """The rows in a spelling, or in several in turn."""
    return make_run(folder, [SPELLINGS[names[place % len(names)]](row) for place, row in enumerate(rows)])


@pytest.fixture
def prints(tmp_path: Path, loaded: Load) -> Callable[..., dict[str, Any]]:
    """The fingerprints of rows in a spelling."""

    def make(rows: list[Row], *names: str) -> dict[str, Any]:
        path = written(tmp_path / str(len(list(tmp_path.iterdir()))), rows, *names)
        return fingerprints(loaded(path)[0].run)

    return make


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return list(one) == list(other) and all((one[name] == other[name]).all() for name in one)


# -- spellings ------------------------------------------------------------------------------------


def test_runs_that_spell_the_same_rows_differently_hold_the_same_tasks(blade: Blade, tmp_path: Path) -> None:
    rows = rows_of()
    assert SPELLINGS["sorted"](rows[0]) != SPELLINGS["compact"](rows[0])
    paths = [f"{name}={written(tmp_path / name, rows, name)}" for name in ("compact", "sorted")]
    (found,) = blade("compare", "--json", "--quick", *paths).report["comparisons"]
    alignment = found["alignment"]
    assert (alignment["common"]["n"], alignment["modified"]["n"], alignment["changed_everywhere"]) == (12, 0, [])
    assert [one for one in found["config_diff"] if one["kind"] in ("prompt", "data")] == []


@pytest.mark.parametrize(
    "changed",
    [{"expected_actions": [{"name": "book", "arguments": {"seat": 5, "fare": 150, "row": 3}}]}, {"options": ["b", "é5"]}],
    ids=["another number", "another order"],
)
def test_another_value_of_one_list_is_another_task(blade: Blade, tmp_path: Path, changed: Row) -> None:
    other = [row | changed if row["_ng_task_index"] == 5 else row for row in rows_of()]
    paths = [written(tmp_path / "one", rows_of(), "compact"), written(tmp_path / "two", other, "escaped")]
    (found,) = blade("compare", "--json", "--quick", f"a={paths[0]}", f"b={paths[1]}").report["comparisons"]
    assert found["alignment"]["modified"]["tasks"] == ["5"]


def test_a_prompt_is_a_text_or_a_list_of_messages(prints: Any) -> None:
    def asked(prompt: Callable[[int], Any]) -> list[Row]:
        return [make_row(task, 0, 1.0, responses_create_params={"input": prompt(task)}) for task in range(6)]

    texts = [prints(asked(lambda task: f"é {task}"), name)[PROMPT] for name in ("compact", "escaped")]
    assert (texts[0] == texts[1]).all()
    assert len(np.unique(texts[0])) == 6
    assert PROMPT not in prints(asked(lambda task: ""), "compact")
    lists = prints(asked(lambda task: [{"role": "user", "content": f"é {task}"}]), "sorted")[PROMPT]
    assert not (lists == texts[0]).any()


def test_a_task_whose_rows_disagree_tells_nothing(prints: Any) -> None:
    rows = [task_row(3, 1, options=["z"]) if place == 7 else row for place, row in enumerate(rows_of(40, 2))]
    for names in (["compact"], ["sorted"], list(SPELLINGS)):
        found = prints(rows, *names)
        assert np.flatnonzero(found["options"] == 0).tolist() == [3]
        assert (found["expected_actions"] != 0).all()


# -- limits ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", ["MAX_TASKS", "MAX_OPENED", "MAX_OPENED_BYTES"])
def test_where_opening_them_takes_too_long_lists_are_left_out(prints: Any, monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    whole = prints(rows_of(), "compact")
    monkeypatch.setattr(run_splits, limit, 11)
    found = prints(rows_of(), "compact")
    assert found.keys() == whole.keys() - {*LISTS}
    assert all((found[name] == whole[name]).all() for name in found)


def test_where_spellings_are_too_many_a_task_with_several_tells_nothing(prints: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = rows_of(25, 2)
    whole = prints(rows, "compact")
    names = ["spaced" if place == 9 else "compact" for place in range(len(rows))]
    assert same(prints(rows, *names), whole)
    monkeypatch.setattr(run_splits, "MAX_OPENED", 25)
    assert same(prints(rows, "spaced"), whole)
    found = prints(rows, *names)
    for name, values in whole.items():
        assert np.flatnonzero(found[name] != values).tolist() == ([4] if name in LISTS else [])
        assert (found[name][4] == 0) == (name in LISTS)


# -- values ---------------------------------------------------------------------------------------

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


@given(VALUES)
def test_the_hash_of_a_value_survives_any_spelling(value: Any) -> None:
    for spelled in (json.dumps(value), json.dumps(value, sort_keys=True, indent=1), json.dumps(value, ensure_ascii=False)):
        assert run_splits._hash_of(json.loads(spelled)) == run_splits._hash_of(value)


def test_values_that_differ_have_other_hashes() -> None:
    values = [[1], [True], ["1"], [[1]], [1, 1], [None], {"1": 1}, {"1": None}, {}, [], [1.5], ["a", "b"], ["b", "a"]]
    assert len({run_splits._hash_of(value) for value in values}) == len(values)
    assert run_splits._hash_of([1.0, {"b": 2, "a": 1e2}]) == run_splits._hash_of([1, {"a": 100, "b": 2}])
    assert [run_splits._hash_of(value) for value in (None, "")] == [0, 0]
