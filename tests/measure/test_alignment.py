"""Rows on the wrong tasks: planted rotations, and runs in which expected words are merely rare."""

from __future__ import annotations

from typing import Any

import pytest

from blade.model import Cause, Level
from tests.builders import Row
from tests.measure.sounded import flag, raised, sounded
from tests.traces import did, rollout

N = 24


def expected(task: int) -> list[Row]:
    """What a task of the shop expects; nobody else's order."""
    order, user, item = f"W{7000 + 37 * task}", f"user_{task * 91}", f"{1_000_000 + task * 7919}"
    return [{"name": "cancel_order", "kwargs": {"order_id": order, "user_id": user, "item": item}}]


def shop(task: int, gold_of: int, does: bool = True, reward: float = 1.0) -> Row:
    """A rollout of one task with the expected calls of another, or of the same."""
    told = expected(task)[0]["kwargs"]
    calls = [("get_order", f'{{"order_id": "{told["order_id"]}", "user_id": "{told["user_id"]}"}}', "found")]
    calls += [("cancel_order", f'{{"item": "{told["item"]}"}}', "ok")]
    items = did(*calls, "Your order is cancelled.") if does else did("I cannot help you with that at all.")
    return rollout(items, reward, 0, task, expected_actions=expected(gold_of))


def question(task: int, gold_of: int, reward: float = 1.0, **fields: Any) -> Row:
    """A short answer in prose, of a word nobody else says."""
    words = [f"answer{chr(97 + n // 26)}{chr(97 + n % 26)}word" for n in range(N)]
    said = did(f"After some thought the person you want is {words[task]}.")
    return rollout(said, reward, 0, task, expected_answer=words[gold_of], **fields)


def test_tasks_with_the_expected_calls_of_their_neighbours_are_misaligned() -> None:
    sound = sounded([shop(t, (t + 1) % N) for t in range(N)])
    found = raised(sound, "misaligned_tasks")
    assert (found.level, found.value, found.n) == (Level.PROBLEM, 1.0, N)
    assert "Of task 0 3 of 3 words stand under task 1" in found.text
    assert {one.field for one in found.evidence} == {"expected_actions"}
    assert len(sound.suspects) == N
    assert sound.suspects["0"][0].cause is Cause.DATA_ARTIFACT


def test_tasks_with_their_own_expected_calls_are_not() -> None:
    assert flag(sounded([shop(t, t) for t in range(N)]), "misaligned_tasks") is None


def test_a_part_of_the_run_on_the_wrong_tasks_is_a_warning_that_names_the_part() -> None:
    turned = {t: (t + 1) % 8 for t in range(8)}
    found = raised(sounded([shop(t, turned.get(t, t)) for t in range(N)]), "misaligned_tasks")
    assert found.level is Level.WARNING
    assert found.value == pytest.approx(8 / N)


def test_a_model_that_never_tries_is_no_misalignment() -> None:
    rows = [shop(t, (t + 1) % N, does=False, reward=0.0) for t in range(N)]
    assert flag(sounded(rows), "misaligned_tasks") is None


def test_a_few_tasks_solved_in_the_words_of_another_are_no_misalignment() -> None:
    rows = [shop(t, 1 if t == 0 else t) for t in range(N)]
    assert flag(sounded(rows), "misaligned_tasks") is None


def test_too_few_tasks_say_nothing() -> None:
    assert flag(sounded([shop(t, (t + 1) % 5) for t in range(5)]), "misaligned_tasks") is None


def test_passes_that_say_the_gold_of_another_task_are_misaligned() -> None:
    found = raised(sounded([question(t, (t + 1) % N) for t in range(N)]), "misaligned_tasks")
    assert (found.level, found.value) == (Level.PROBLEM, 1.0)
    assert flag(sounded([question(t, t) for t in range(N)]), "misaligned_tasks") is None


def test_failures_that_say_the_gold_of_another_task_are_failures() -> None:
    rows = [question(t, (t + 1) % N, reward=0.0) for t in range(N)]
    assert flag(sounded(rows), "misaligned_tasks") is None


def exact(task: int, gold_of: int, reward: float = 1.0) -> Row:
    """A number in a box; two digits are no word to look for."""
    return rollout(did(rf"\boxed{{{10 + task}}}"), reward, 0, task, expected_answer=str(10 + gold_of))


@pytest.mark.parametrize("reward", [0.0, 1.0])
def test_numbers_that_fit_the_gold_of_another_task_each_are_misaligned(reward: float) -> None:
    found = raised(sounded([exact(t, (t + 1) % N, reward) for t in range(N)]), "misaligned_tasks")
    assert "the answers are not expected_answer of their own task" in found.text
    assert flag(sounded([exact(t, t, reward) for t in range(N)]), "misaligned_tasks") is None


def test_wrong_numbers_that_hit_the_same_few_golds_are_wrong() -> None:
    rows = [
        rollout(did(rf"\boxed{{{10 + (t + 1) % 6}}}"), 0.0, 0, t, expected_answer=str(10 + t)) for t in range(6, N + 6)
    ]
    assert flag(sounded([*rows, *(exact(t, t) for t in range(6))]), "misaligned_tasks") is None


def test_a_key_that_counts_from_another_letter_is_no_misalignment() -> None:
    rows = [
        rollout(did("x"), 1.0, 0, t, expected_answer=str(t % 4), extracted_answer=str((t + 1) % 4)) for t in range(N)
    ]
    assert flag(sounded(rows), "misaligned_tasks") is None
