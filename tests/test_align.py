"""Two rollouts side by side: what is matched, where they part, which parting decides."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from blade import align
from blade.align import Act
from blade.model import Episode
from tests.builders import Row, make_call, make_message, make_result
from tests.traces import did, make_episode, make_task, rollout


def played(word: str) -> list[Act]:
    """Acts of one letter each: a lower-case letter is the tool of the capital with other arguments."""
    return [Act(letter, letter.upper(), at, False) for at, letter in enumerate(word)]


def shown(mine: str, theirs: str) -> str:
    columns = align.align(played(mine), played(theirs))
    return " ".join(f"{'-' if i is None else mine[i]}{'-' if j is None else theirs[j]}" for i, j in columns)


def score(mine: str, theirs: str, columns: list[align.Column]) -> int:
    total = 0
    for i, j in columns:
        if i is None or j is None:
            total -= 1
        elif mine[i] == theirs[j]:
            total += 1
        elif mine[i].upper() != theirs[j].upper():
            total -= 1
    return total


def best_score(mine: str, theirs: str) -> int:
    """By the definition, cell by cell."""
    table = {(0, 0): 0}
    for i in range(len(mine) + 1):
        for j in range(len(theirs) + 1):
            ways = [table[i, j]] if (i, j) == (0, 0) else []
            if i:
                ways.append(table[i - 1, j] - 1)
            if j:
                ways.append(table[i, j - 1] - 1)
            if i and j:
                one, other = mine[i - 1], theirs[j - 1]
                ways.append(
                    table[i - 1, j - 1] + (1 if one == other else 0 if one.upper() == other.upper() else -1)
                )
            table[i, j] = max(ways)
    return table[len(mine), len(theirs)]


def test_a_step_left_out_is_a_gap() -> None:
    assert shown("SREF", "SRETF") == "SS RR EE -T FF"


def test_the_same_tool_with_other_arguments_stands_beside_it() -> None:
    assert shown("SaF", "SAF") == "SS aA FF"


def test_nothing_aligns_with_nothing() -> None:
    assert align.align([], []) == []
    assert shown("", "AB") == "-A -B"


@given(st.text("ABab", max_size=9), st.text("ABab", max_size=9))
def test_no_alignment_scores_better_and_each_act_stands_once(mine: str, theirs: str) -> None:
    columns = align.align(played(mine), played(theirs))
    assert [i for i, _ in columns if i is not None] == list(range(len(mine)))
    assert [j for _, j in columns if j is not None] == list(range(len(theirs)))
    assert score(mine, theirs, columns) == best_score(mine, theirs)


def test_very_long_rollouts_are_aligned_in_part_but_whole() -> None:
    mine, theirs = played("A" + "B" * 5000 + "Z"), played("A" + "C" * 3000 + "Z")
    columns = align.align(mine, theirs)
    assert [i for i, _ in columns if i is not None] == list(range(5002))
    assert [j for _, j in columns if j is not None] == list(range(3002))


# ---- Divergence --------------------------------------------------------------------------------

LOOK = ("get_order", '{"id": "1"}', "order 1")
PRODUCT = ("get_product", '{"id": "7"}', "product 7")
RIGHT = ("update_order", '{"id": "1", "to": "blue"}', "ok")
WRONG = ("update_order", '{"id": "1", "to": "red"}', "ok")


def task_of(*played: tuple[list[Any], float]) -> Any:
    return make_task(*[rollout(did(*calls), reward) for calls, reward in played])


def only(task: Any) -> align.Divergence:
    (found,) = align.divergences(task)
    return found


def test_the_wrong_write_decides_not_the_look_after_it() -> None:
    task = task_of(([LOOK, RIGHT, "Done."], 1), ([LOOK, WRONG, PRODUCT, "Done."], 0))
    found = only(task)
    assert (found.step, found.passer_step) == (2, 2)
    assert found.first_step == 2
    assert "red" in found.does
    assert "blue" in found.passer_does
    assert [quote.repeat for quote in found.evidence] == [1, 0]
    assert "red" in str(found.evidence[0].quote)
    assert "blue" in str(found.evidence[1].quote)


def test_a_step_left_out_is_placed_where_the_rollout_goes_on_without_it() -> None:
    task = task_of(([LOOK, PRODUCT, RIGHT, "Done."], 1), ([LOOK, RIGHT, "Done."], 0))
    found = only(task)
    assert (found.step, found.passer_step) == (2, 2)
    assert found.missing == ("get_product",)
    assert "get_order > update_order" in found.unusual


def test_a_step_that_is_caught_up_later_does_not_decide() -> None:
    task = task_of(([LOOK, PRODUCT, RIGHT, "Done."], 1), ([PRODUCT, LOOK, WRONG, "Done."], 0))
    found = only(task)
    assert found.first_step < found.step == 4


def test_of_several_passers_the_nearest_is_taken() -> None:
    far = [("list_all", "{}", "[]"), PRODUCT, ("list_all", '{"page": 2}', "[]"), RIGHT, "Done."]
    task = task_of((far, 1), ([LOOK, RIGHT, "Done."], 1), ([LOOK, WRONG, "Done."], 0))
    assert only(task).passer == 1


def test_last_words_count_only_where_nothing_else_differs() -> None:
    talk = task_of(([LOOK, "It is 4."], 1), ([LOOK, "It is 5."], 0))
    assert (only(talk).step, only(talk).passer_step) == (2, 2)
    acted = task_of(([LOOK, RIGHT, "It is 4."], 1), ([LOOK, WRONG, "It is 5."], 0))
    assert only(acted).step == 2


def test_twins_that_do_and_say_the_same_do_not_part() -> None:
    assert align.divergences(task_of(([LOOK, "Done."], 1), ([LOOK, "Done."], 0))) == ()


def test_no_passer_no_divergence() -> None:
    assert align.divergences(task_of(([LOOK, "Done."], 0), ([LOOK], 0))) == ()


def test_distance_and_fitness_measure_how_far_it_strays() -> None:
    close = only(task_of(([LOOK, RIGHT, "Done."], 1), ([LOOK, WRONG, "Done."], 0)))
    far = only(task_of(([LOOK, RIGHT, "Done."], 1), ([PRODUCT, ("list_all", "{}", "[]"), "Sorry."], 0)))
    assert close.distance < far.distance <= 1
    assert far.fitness < close.fitness == 1


def malformed(*items: Row) -> Episode:
    return make_episode(rollout(items))


def test_malformed_rollouts_part_without_a_fault() -> None:
    orphan = [make_result("x", "nobody asked"), make_message("hm", "user")]
    repeated = [make_call("c", "look", "{"), make_call("c", "look", "not json"), make_result("c", "")]
    rows = [rollout(did(LOOK, "Done."), 1), rollout([], 0), rollout(orphan, 0), rollout(repeated, 0)]
    found = align.divergences(make_task(*rows))
    assert [one.repeat for one in found] == [3]


def test_the_step_of_the_model_behind_a_step() -> None:
    episode = malformed(
        make_message("hello", "user"), make_call("a", "look"), make_call("b", "look"),
        make_result("a", "1"), make_result("b", "2"), make_message("thanks", "user"),
    )  # fmt: skip
    assert [align.model_step(episode, at) for at in range(-1, 7)] == [None, None, 1, 2, 1, 2, 2, None]
