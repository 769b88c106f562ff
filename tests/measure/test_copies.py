"""Prompts, golds and outputs under several tasks; repeats in an order; tasks that tell nothing."""

from __future__ import annotations

from blade.measure.soundness.order import tail
from blade.model import Cause, Level
from tests.builders import Row
from tests.measure.sounded import flag, raised, sounded
from tests.traces import did, make_tool, rollout

LONG = "All of this was written once and stands here in full. " * 40


def asked(task: int, prompt: str, gold: str, said: str = "x") -> Row:
    return rollout(did(said), 1.0, 0, task, prompt=prompt, expected_answer=gold, question=prompt)


def test_one_prompt_with_two_golds_is_a_data_artifact() -> None:
    rows = [asked(t, f"question {t}", str(t)) for t in range(9)] + [asked(9, "question 0", "other")]
    sound = sounded(rows)
    found = raised(sound, "conflicting_gold")
    assert (found.value, found.n) == (0.2, 10)
    assert set(sound.suspects) == {"0", "9"}
    assert sound.suspects["0"][0].cause is Cause.DATA_ARTIFACT
    assert flag(sound, "duplicate_prompts") is None


def test_one_prompt_with_one_gold_is_a_duplicate() -> None:
    rows = [asked(t, f"question {t}", str(t)) for t in range(9)] + [asked(9, "question 0", "0")]
    sound = sounded(rows)
    assert raised(sound, "duplicate_prompts").value == 0.1
    assert flag(sound, "conflicting_gold") is None
    assert not sound.suspects


def test_a_prompt_that_all_tasks_share_does_not_name_them() -> None:
    rows = [asked(t, "play the game", str(t)) for t in range(10)]
    sound = sounded(rows)
    assert flag(sound, "conflicting_gold") is None
    assert flag(sound, "duplicate_prompts") is None


def test_the_opening_of_a_talk_is_not_the_task() -> None:
    user = {"type": "message", "role": "user", "content": "yes please"}
    rows = [
        rollout([*did("Hello?"), user, *did("Bye")], 1.0, 0, t, prompt=f"hi {t % 9}", expected_answer=str(t))
        for t in range(10)
    ]
    assert flag(sounded(rows), "conflicting_gold") is None


def test_the_same_question_on_another_picture_is_another_task() -> None:
    rows = [asked(t, f"question {t}", str(t)) for t in range(9)]
    for task in (9, 10):
        row = asked(task, "what is this?", str(task))
        picture = {"type": "input_image", "image_url": f"data:{task}"}
        row["responses_create_params"]["input"].append({"role": "user", "content": [picture]})
        rows.append(row)
    assert flag(sounded(rows), "conflicting_gold") is None


def test_a_long_output_under_two_tasks_was_copied() -> None:
    rows = [asked(t, f"question {t}", str(t), f"{LONG} {t}") for t in range(10)]
    rows.append(asked(10, "question 10", "10", f"{LONG} 3"))
    found = raised(sounded(rows), "copied_rows")
    assert found.level is Level.WARNING
    assert "tasks 3, 10" in found.text
    assert flag(sounded(rows[:-1]), "copied_rows") is None


def test_a_short_output_under_two_tasks_is_an_answer_they_share() -> None:
    rows = [asked(t, f"question {t}", "4", "It is 4.") for t in range(10)]
    assert flag(sounded(rows), "copied_rows") is None


def test_where_responses_have_ids_a_copy_carries_that_of_its_original() -> None:
    def row(task: int, said: str, made: str) -> Row:
        return rollout(did(said), 1.0, 0, task, response={"id": made})

    rows = [row(t, f"short {t}", f"resp_{t}") for t in range(10)]
    assert raised(sounded([*rows, row(10, "short 3", "resp_3")]), "copied_rows").n == 11
    assert flag(sounded([*rows, row(10, "short 3", "resp_10")]), "copied_rows") is None


def test_a_gold_that_stands_in_the_prompt_or_the_tools_is_told() -> None:
    gold = "the crimson lighthouse"
    plain = [asked(t, f"question {t}", f"long answer number {t}") for t in range(4)]
    shown = raised(sounded([*plain, asked(4, f"is it {gold} or not?", gold)]), "gold_in_prompt")
    assert (shown.value, shown.level) == (0.2, Level.INFO)
    assert gold in (shown.evidence[0].quote or "")
    tool = {**make_tool("look"), "description": f"hint: {gold}"}
    leaking = rollout(did("x"), 1.0, 0, 4, tools=[tool], expected_answer=gold)
    sound = sounded([*plain, leaking])
    assert raised(sound, "gold_in_prompt").level is Level.WARNING
    assert set(sound.suspects) == {"4"}
    assert flag(sounded(plain), "gold_in_prompt") is None
    assert flag(sounded([asked(0, "is it 4 or 5?", "4")]), "gold_in_prompt") is None


# ---- Repeats and tasks --------------------------------------------------------------------------


def repeats(rewards: str, task: int) -> list[Row]:
    return [rollout(did(f"say {task} {r}"), float(mark), r, task) for r, mark in enumerate(rewards)]


def test_repeats_in_the_order_of_their_outcome_are_not_exchangeable() -> None:
    sound = sounded([row for t in range(12) for row in repeats("00001111", t)])
    found = raised(sound, "sorted_repeats")
    assert (found.level, found.value, found.n) == (Level.WARNING, 1.0, 12)


def test_repeats_in_any_order_are() -> None:
    mixed = ["01100101", "10010110", "00111010", "11001001", "01011010", "10100110"] * 2
    assert flag(sounded([row for t, marks in enumerate(mixed) for row in repeats(marks, t)]), "sorted_repeats") is None


def test_two_repeats_have_no_order() -> None:
    assert flag(sounded([row for t in range(40) for row in repeats("01", t)]), "sorted_repeats") is None


def test_the_tail_of_unequal_chances_is_exact() -> None:
    assert tail([0.5, 0.5], 1) == 0.75
    assert abs(tail([0.1, 0.2, 0.3], 3) - 0.006) < 1e-12
    assert tail([0.4], 0) == 1.0


def test_tasks_at_either_end_are_counted_with_those_that_are_left() -> None:
    rows = [row for t, marks in enumerate(["111", "111", "000", "010"]) for row in repeats(marks, t)]
    found = raised(sounded(rows), "saturation")
    assert (found.value, found.n, found.level) == (0.75, 4, Level.INFO)
    assert "is 1." in found.text
    assert flag(sounded([row for t in range(4) for row in repeats("1", t)]), "saturation") is None
