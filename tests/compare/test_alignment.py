"""Which tasks two runs share: by key, guarded by content, the same whichever run comes first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blade.compare.alignment import align
from blade.compare.task_pairs import paired
from blade.model import PROMPT, Side
from tests.case_tables import cases, tables
from tests.compare.builders import side

Values = dict[str, Any]
KEYS = [str(number) for number in range(20)]
CASES = tables(__file__, "alignments.yaml")


def run(name: str, fields: Mapping[str, Values], *, repeats: int = 1, keys: list[str] = KEYS) -> Side:
    return side(name, dict.fromkeys(keys, "10"[:repeats] * (repeats // 2) or "1"), fingerprints=fields)


def values(word: str, keys: list[str] = KEYS, **changed: str) -> Values:
    """A value for each task; `t3="..."` gives another to task 3."""
    return {key: changed.get(f"t{key}", f"{word} {key}") for key in keys}


def test_added_removed_and_missing_tasks_are_told_apart() -> None:
    a = side("a", {"1": "11", "2": "10", "10": "0", "x": "1"}, expected={"7": 2, "8": 2})
    b = side("b", {"1": "1", "2": "0", "11": "0", "7": "1"}, expected={"10": 1, "8": 2})
    found = align(a, b)
    # the candidate never had x; 10 was expected there, and nothing came; neither scored 8
    assert (found.common, found.removed, found.added) == (("1", "2"), ("x",), ("11",))
    assert (found.missing_candidate, found.missing_baseline) == (("10",), ("7",))


def told(words: str) -> Values:
    """The values of a field as the table gives them."""
    word, *others = words.split(", ")
    word, _, n = word.partition(" %")
    told = {key: f"{word} {int(key) % int(n) if n else key}" for key in KEYS}
    return told | dict(other.split("=") for other in others)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["about"])
def test_which_tasks_a_field_shows_to_be_modified(case: dict[str, Any]) -> None:
    fields = {name: {name_of(field): told(words) for field, words in case[name].items()} for name in "ab"}
    a, b = (run(name, fields[name], repeats=case.get("repeats", 1)) for name in "ab")
    for found in (align(a, b), align(b, a)):
        assert found.modified == (tuple(KEYS) if case.get("modified") == "all" else tuple(case.get("modified", ())))
        assert sorted(found.changed_fields) == sorted(map(name_of, case.get("by", ())))
        assert found.changed_everywhere == tuple(map(name_of, case.get("everywhere", ())))
        assert {*found.common, *found.modified} == {*KEYS}


def name_of(field: str) -> str:
    return PROMPT if field == "PROMPT" else field


def test_what_confirms_the_keys_is_named_and_a_field_that_few_tasks_tell_is_no_guard() -> None:
    a, b = (run(name, {"expected_answer": values("x"), "question": values("q")}) for name in "ab")
    assert align(a, b).matched_by == "task key, confirmed by expected_answer, question"
    few = {key: f"g {key}" for key in KEYS[:5]}
    assert align(run("a", {"gold": few}), run("b", {"gold": {**few, "1": "other"}})).modified == ()


def shuffled(keys: list[str] = KEYS) -> dict[str, str]:
    """Where each task stands in the other run."""
    order = np.random.default_rng(3).permutation(len(keys))
    return {key: keys[place] for key, place in zip(keys, order, strict=True)}


@pytest.mark.parametrize("field", ["task_id", "question", PROMPT, "uuid"])
def test_shuffled_tasks_are_matched_by_content(field: str) -> None:
    moved = shuffled()
    outcomes = {key: "1" if int(key) < 7 else "0" for key in KEYS}
    a = side("a", outcomes, fingerprints={field: values("v")})
    b = side("b", {moved[key]: told for key, told in outcomes.items()}, fingerprints={field: {moved[key]: f"v {key}" for key in KEYS}})
    found = align(a, b)
    assert found.matched_by.startswith(f"{field}: ")
    assert sorted(found.common) == sorted(KEYS)
    assert all(moved[one] == other for one, other in zip(found.common, found.common_candidate, strict=True))
    assert not paired(a, b, found).d.any()  # each task scores as it did
    assert paired(a, b, align(b, a)).n_a.size == 20


@pytest.mark.parametrize("case", cases(__file__, "moved tasks"), ids=lambda case: case["about"])
def test_what_shuffled_values_say(case: dict[str, Any]) -> None:
    """`moved` values stand where the tasks are in the other run."""
    moved = shuffled()

    def placed(words: str) -> Values:
        values = told(words.removeprefix("moved "))
        return {moved[key]: value for key, value in values.items()} if words.startswith("moved ") else values

    a, b = (run(name, {field: placed(words) for field, words in case[name].items()}) for name in "ab")
    found = align(a, b)
    assert len(found.common) == case["common"]
    assert found.matched_by.startswith(case["by"])
    assert found.modified == tuple(case.get("modified", found.modified))
    is_moved = case.get("is_moved", False)
    assert found.common_candidate == (tuple(moved[key] for key in found.common) if is_moved else ())
    assert found.modified_candidate == (tuple(moved[key] for key in found.modified) if is_moved else ())


def test_a_shuffled_part_of_the_tasks_is_found_in_the_whole() -> None:
    part = KEYS[:5]
    b = run("b", {"question": {key: f"q {19 - int(key)}" for key in part}}, keys=part)
    found = align(run("a", {"question": values("q")}), b)
    assert set(zip(found.common, found.common_candidate, strict=True)) == {(str(19 - int(key)), key) for key in part}
    assert len(found.removed) == 15
    assert found.added == found.missing_candidate == ()


# -- swapped --------------------------------------------------------------------------------------

CONTENTS = st.dictionaries(st.sampled_from(KEYS[:6]), st.sampled_from(["p", "q", "r", "s", None]), max_size=6)
RUNS = st.tuples(
    st.dictionaries(st.sampled_from(KEYS[:6]), st.sampled_from(["", "1", "01", "110"]), max_size=6),
    st.fixed_dictionaries({"task_id": CONTENTS, "question": CONTENTS, "gold": CONTENTS, "label": CONTENTS, PROMPT: CONTENTS}),
    st.dictionaries(st.sampled_from(KEYS[:6]), st.integers(0, 3), max_size=3),
)


@given(RUNS, RUNS)
@settings(max_examples=150, deadline=None)
def test_swapping_the_runs_swaps_what_is_told(one: Any, other: Any) -> None:
    a, b = (side(name, told[0], fingerprints=told[1], expected=told[2]) for name, told in (("a", one), ("b", other)))
    there, back = align(a, b), align(b, a)
    assert (there.added, there.removed) == (back.removed, back.added)
    assert (there.missing_baseline, there.missing_candidate) == (back.missing_candidate, back.missing_baseline)
    assert (there.matched_by, there.changed_fields, there.changed_everywhere) == (back.matched_by, back.changed_fields, back.changed_everywhere)
    assert (there.common_candidate or there.common) == back.common
    assert (back.common_candidate or back.common) == there.common
    assert (there.modified_candidate or there.modified) == back.modified
    pair, mirror = paired(a, b, there), paired(b, a, back)
    assert np.array_equal(pair.d, -mirror.d)
    scored = {key for key, told in one[0].items() if told} | {key for key, told in other[0].items() if told}
    if not there.common_candidate + there.modified_candidate:
        parts = [there.common, there.modified, there.added, there.removed, there.missing_baseline, there.missing_candidate]
        assert sorted(key for part in parts for key in part) == sorted(scored)  # every task stands in one place
