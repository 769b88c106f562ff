"""A fingerprint is of the value of a task field, however its JSON is spelled."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blade.formats import run_splits as module
from blade.formats.run_splits import _hash_of, fingerprints
from blade.model import PROMPT
from tests.builders import Row, make_message, make_row, make_run
from tests.conftest import Blade

Load = Callable[..., Any]
Spelling = Callable[[Row], str]

SPELLINGS: dict[str, Spelling] = {
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
    monkeypatch.setattr(module, limit, 11)
    found = prints(rows_of(), "compact")
    assert found.keys() == whole.keys() - {*LISTS}
    assert all((found[name] == whole[name]).all() for name in found)


def test_where_spellings_are_too_many_a_task_with_several_tells_nothing(prints: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = rows_of(25, 2)
    whole = prints(rows, "compact")
    names = ["spaced" if place == 9 else "compact" for place in range(len(rows))]
    assert same(prints(rows, *names), whole)
    monkeypatch.setattr(module, "MAX_OPENED", 25)
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
        assert _hash_of(json.loads(spelled)) == _hash_of(value)


def test_values_that_differ_have_other_hashes() -> None:
    values = [[1], [True], ["1"], [[1]], [1, 1], [None], {"1": 1}, {"1": None}, {}, [], [1.5], ["a", "b"], ["b", "a"]]
    assert len({_hash_of(value) for value in values}) == len(values)
    assert _hash_of([1.0, {"b": 2, "a": 1e2}]) == _hash_of([1, {"a": 100, "b": 2}])
    assert [_hash_of(value) for value in (None, "")] == [0, 0]
