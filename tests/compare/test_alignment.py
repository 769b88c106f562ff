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
from tests.compare.builders import side

Values = dict[str, Any]
KEYS = [str(number) for number in range(20)]


def run(name: str, fields: Mapping[str, Values], *, repeats: int = 1, keys: list[str] = KEYS) -> Side:
    return side(name, dict.fromkeys(keys, "10"[:repeats] * (repeats // 2) or "1"), fingerprints=fields)


def values(word: str, keys: list[str] = KEYS, **changed: str) -> Values:
    """A value for each task; `t3="..."` gives another to task 3."""
    return {key: changed.get(f"t{key}", f"{word} {key}") for key in keys}


# -- keys -----------------------------------------------------------------------------------------


def test_added_removed_and_missing_tasks_are_told_apart() -> None:
    a = side("a", {"1": "11", "2": "10", "10": "0", "x": "1"}, expected={"7": 2, "8": 2})
    b = side("b", {"1": "1", "2": "0", "11": "0", "7": "1"}, expected={"10": 1, "8": 2})
    found = align(a, b)
    assert found.common == ("1", "2")
    assert found.removed == ("x",)  # the candidate never had it
    assert found.missing_candidate == ("10",)  # it was expected there, and nothing came
    assert found.missing_baseline == ("7",)
    assert found.added == ("11",)
    assert "8" not in {*found.common, *found.added, *found.removed, *found.missing_baseline}  # neither scored it


def test_a_task_that_the_run_never_expected_is_removed_not_missing() -> None:
    a = side("a", {"1": "1", "2": "0"})
    assert align(a, side("b", {"1": "1"}, expected={"2": 1})).missing_candidate == ("2",)
    assert align(a, side("b", {"1": "1"})).removed == ("2",)


def test_tasks_stand_in_the_order_of_their_keys() -> None:
    a, b = (side(name, dict.fromkeys(order, "1")) for name, order in (("a", "10 2 b 1 a"), ("b", "a 1 b 2 10")) for order in [order.split()])
    assert align(a, b).common == align(b, a).common == ("1", "2", "10", "a", "b")


def test_runs_without_a_common_task() -> None:
    found = align(side("a", {"1": "1"}), side("b", {"2": "1"}))
    assert (found.common, found.removed, found.added) == ((), ("1",), ("2",))
    assert align(side("a", {}), side("b", {})).common == ()


# -- modified tasks -------------------------------------------------------------------------------


def test_a_task_with_another_gold_is_modified() -> None:
    a = run("a", {"expected_answer": values("x"), "question": values("q")})
    b = run("b", {"expected_answer": values("x", t3="mended"), "question": values("q")})
    found = align(a, b)
    assert found.modified == ("3",)
    assert found.changed_fields == ("expected_answer",)
    assert len(found.common) == 19
    assert found.matched_by == "task key, confirmed by expected_answer, question"


def test_a_gold_that_is_written_in_another_way_everywhere_modifies_no_task() -> None:
    a = run("a", {"expected_answer": values("x"), "question": values("q")})
    b = run("b", {"expected_answer": values("X"), "question": values("q")})
    found = align(a, b)
    assert found.modified == ()
    assert found.changed_everywhere == ("expected_answer",)
    assert found.common == tuple(KEYS)


def test_a_prompt_template_that_changed_modifies_no_task() -> None:
    a, b = (run(name, {PROMPT: values(word), "gold": values("g")}, repeats=2) for name, word in (("a", "old"), ("b", "new")))
    found = align(a, b)
    assert (found.modified, found.changed_everywhere) == ((), (PROMPT,))


@pytest.mark.parametrize(("repeats", "modified"), [(2, ("4",)), (1, ())])
def test_a_single_prompt_tells_a_task_only_if_repeats_show_that_it_holds_still(repeats: int, modified: tuple[str, ...]) -> None:
    a = run("a", {PROMPT: values("p"), "task_id": values("t")}, repeats=repeats)
    b = run("b", {PROMPT: values("p", t4="other"), "task_id": values("t")}, repeats=repeats)
    assert align(a, b).modified == modified


def test_the_openings_of_a_simulated_user_tell_nothing() -> None:
    # without repeats nothing shows that the opening varies; here it is the same by chance in every third task
    openings = {key: "hello" if int(key) % 3 == 0 else f"hi {key}" for key in KEYS}
    a = run("a", {PROMPT: values("hi"), "gold": values("g")})
    found = align(a, run("b", {PROMPT: openings, "gold": values("g")}))
    assert (found.modified, found.changed_everywhere) == ((), ())


def test_the_answer_of_a_model_is_no_content_of_the_task() -> None:
    a = run("a", {"answer": values("x"), "gold": values("g")}, repeats=2)
    found = align(a, run("b", {"answer": values("x", t1="y", t5="z"), "gold": values("g")}, repeats=2))
    assert found.modified == ()


def test_two_fields_that_differ_in_the_same_tasks_tell_what_either_alone_would_not() -> None:
    a = run("a", {"label": values("x"), PROMPT: values("p")})
    b = run("b", {"label": values("x", t1="y"), PROMPT: values("p", t1="q")})
    assert align(a, b).modified == ("1",)
    elsewhere = run("b", {"label": values("x", t1="y"), PROMPT: values("p", t2="q")})
    assert align(a, elsewhere).modified == ()
    inside = run("b", {"metadata": values("x", t1="y"), "metadata.level": values("p", t1="q")})
    assert align(run("a", {"metadata": values("x"), "metadata.level": values("p")}), inside).modified == ()


def test_an_index_that_covers_several_tasks_is_not_called_modified() -> None:
    merged = {key: None if key == "3" else f"g {key}" for key in KEYS}  # within task 3 the gold varies
    assert align(run("a", {"gold": merged}), run("b", {"gold": values("g")})).modified == ()


def test_a_field_that_few_tasks_tell_is_no_guard() -> None:
    few = {key: f"g {key}" for key in KEYS[:5]}
    assert align(run("a", {"gold": few}), run("b", {"gold": {**few, "1": "other"}})).modified == ()


def test_another_data_set_under_the_same_keys_shares_no_task() -> None:
    a = run("a", {"question": values("q"), "gold": {key: "yn"[int(key) % 2] for key in KEYS}, "task_id": values("t")})
    b = run("b", {"question": values("z"), "gold": {key: "yn"[int(key) // 2 % 2] for key in KEYS}, "task_id": values("t")})
    found = align(a, b)
    assert found.common == ()
    assert found.modified == tuple(KEYS)
    assert found.changed_fields == ("gold", "question")


def test_a_translated_data_set_with_the_same_answers_is_the_same() -> None:
    gold = {key: "ABCD"[int(key) % 4] for key in KEYS}
    a, b = (run(name, {"question": values(word), "gold": gold}) for name, word in (("a", "English"), ("b", "German")))
    found = align(a, b)
    assert (len(found.common), found.changed_everywhere) == (20, ("question",))


# -- shuffled keys --------------------------------------------------------------------------------


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


def test_ids_that_agree_hold_the_keys_though_another_id_is_shuffled() -> None:
    moved = shuffled()
    a = run("a", {"question": values("q"), "id": values("n")})
    b = run("b", {"question": values("q"), "id": {moved[key]: f"n {key}" for key in KEYS}})
    found = align(a, b)
    assert found.matched_by == "task key, confirmed by question"
    assert found.common_candidate == ()


def test_a_few_moved_tasks_are_modified_not_shuffled() -> None:
    a = run("a", {"question": values("q")})
    b = run("b", {"question": values("q", t1="q 2", t2="q 1")})
    found = align(a, b)
    assert (found.modified, found.common_candidate) == (("1", "2"), ())


def test_a_counter_that_two_data_sets_share_matches_nothing() -> None:
    moved = shuffled()
    a = run("a", {"question": values("q"), "gold": values("g"), "task_id": values("n")})
    b = run("b", {"question": values("z"), "gold": values("h"), "task_id": {moved[key]: f"n {key}" for key in KEYS}})
    assert align(a, b).common == ()


def test_a_shuffled_part_of_the_tasks_is_found_in_the_whole() -> None:
    part = KEYS[:5]
    b = run("b", {"question": {key: f"q {19 - int(key)}" for key in part}}, keys=part)
    found = align(run("a", {"question": values("q")}), b)
    assert set(zip(found.common, found.common_candidate, strict=True)) == {(str(19 - int(key)), key) for key in part}
    assert len(found.removed) == 15
    assert found.added == found.missing_candidate == ()


def test_runs_with_keys_of_their_own_kind_are_matched_by_content() -> None:
    names = [f"task {key}" for key in KEYS]
    a = run("a", {"instance_id": values("i")})
    b = run("b", {"instance_id": {name: f"i {key}" for name, key in zip(names, KEYS, strict=True)}}, keys=names)
    found = align(a, b)
    assert len(found.common) == 20
    assert found.common_candidate[1] == f"task {found.common[1]}"


def test_a_task_may_be_moved_and_modified() -> None:
    moved = shuffled()
    a = run("a", {"task_id": values("t"), "gold": values("g")})
    gold = {moved[key]: "mended" if key == "4" else f"g {key}" for key in KEYS}
    b = run("b", {"task_id": {moved[key]: f"t {key}" for key in KEYS}, "gold": gold})
    found = align(a, b)
    assert (found.modified, found.modified_candidate) == (("4",), (moved["4"],))
    assert len(found.common) == 19


def test_fields_with_several_tasks_a_value_match_nothing() -> None:
    moved = shuffled()
    level = {key: str(int(key) // 2) for key in KEYS}
    b = run("b", {"question": {moved[key]: told for key, told in level.items()}})
    assert align(run("a", {"question": level}), b).common_candidate == ()


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
    a, b = (
        side(name, told[0], fingerprints=told[1], expected=told[2]) for name, told in (("a", one), ("b", other))
    )
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


@given(RUNS)
@settings(max_examples=50, deadline=None)
def test_a_run_shares_every_task_with_itself(told: Any) -> None:
    a = side("a", told[0], fingerprints=told[1], expected=told[2])
    found = align(a, a)
    assert found.common == tuple(key for key in a.judged.task_keys if told[0].get(key))
    assert found.common_candidate == found.modified == found.added == found.removed == ()


def test_rows_of_another_form_with_other_ids_are_other_tasks():
    """Two benchmarks share nothing but small numbers; near-miss: new ids for the same questions."""
    keys = [str(i) for i in range(12)]
    desk = {"task_id": {k: f"desk-{k}" for k in keys}, "instruction": {k: f"do {k}" for k in keys}}
    quiz = {"task_id": {k: f"quiz-{k}" for k in keys}, "question": {k: f"what is {k}" for k in keys}}
    renamed = {**desk, "task_id": {k: f"v2-{k}" for k in keys}}
    outcomes = dict.fromkeys(keys, "10")
    a, b, c = (side(name, outcomes, fingerprints=each) for name, each in (("a", desk), ("b", quiz), ("c", renamed)))
    assert align(a, b).common == ()
    assert len(align(a, b).modified) == 12
    assert len(align(a, c).common) == 12
