"""Rung 7: was the thing that is graded ever handed over?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.diagnose.builders import desk_acts, desk_row, quiz, quiz_row, rewards
from tests.diagnose.diagnosed import Diagnose
from tests.diagnose.rows import Act, Key, Made, Row, grid, items_of, key_of, make_row, message, struck

LATE = {(task, task % 4) for task in range(12)} | {(task, (task + 2) % 4) for task in range(3)}


def work(task: int, repeat: int) -> list[Act]:
    """An errand up to the point where the result would be handed in."""
    return desk_acts(task, repeat, task * 100 + repeat)[:-1]


def handed(task: int) -> Act:
    return ("hand_in", {"form": f"F-{task}"}, f"Form F-{task} received.")


def submitting(missing: set[Key], end: list[Act]) -> Iterator[Row]:
    """Every pass ends with `hand_in`; the missing ones end otherwise."""
    for (task, repeat), reward in rewards(12, 4, 0.8).items():
        is_late = (task, repeat) in missing
        acts = [*work(task, repeat), *end] if is_late else [*work(task, repeat), handed(task)]
        yield desk_row(task, repeat, 0.0 if is_late else reward, acts)


@pytest.mark.parametrize("is_last", [True, False])
def test_pass_whose_last_call_reads_as_an_error(diagnose: Diagnose, is_last: bool) -> None:
    """The reply of the call that ends the passes tells of errors in two of them: it was accepted all the same, unless they went on."""
    rows = list(submitting(LATE, ["I think the errand is settled now."]))
    for row in [row for row in rows if row["reward"]][::9][:2]:
        task, repeat = key_of(row)
        odd: Act = ("hand_in", {"form": f"F-{task}"}, "Received; errors in the old form were corrected.")
        more: list[Act] = [] if is_last else [("read_notice", {"page": 3}, "Notice 3: the counter opens at 10.")]
        row["response"]["output"] = items_of([*work(task, repeat), odd, *more])
    groups = [group for group in diagnose(rows).of_rung("delivered") if "hand_in" in group.name]
    assert [group.passed_rows for group in groups] == ([0] if is_last else [])


@struck
def endings() -> Iterator[tuple[Row, bool]]:
    """Half of the passes end with `send_letter`, half with `hand_in`: each within its own kind."""
    for (task, repeat), reward in rewards(16, 4, 0.8).items():
        kind, end = ("parcel", handed(task)) if task % 2 else ("letter", ("send_letter", {"to": task}, "Sent."))
        is_late = task % 2 == 1 and repeat == task % 4
        acts = [*work(task, repeat), *([] if is_late else [end]), "Done."]
        yield desk_row(task, repeat, 0.0 if is_late else reward, acts, kind=kind), is_late


STUCK = {(task, repeat) for task, repeat in grid(16, 4) if (task + 2 * repeat) % 5 == 0}
MALFORMED = "error: a street needs a number"


def stuck(again: str, passes_too: bool = False, goes_on: Callable[[bool], bool] = lambda is_stuck: False) -> list[Row]:
    """Some rows end on one error with changing arguments, or on one call that brings the same each time.

    Passes meet the error once and get past it; or they end in the same way as the stuck ones, and pass all the same.
    Rows that go on, by whether they are stuck ones, make two other calls before the last.
    """
    rows = []
    for place, (task, repeat) in enumerate(grid(16, 4)):
        is_stuck = (task, repeat) in STUCK
        passes = not is_stuck and place % 7 > 0
        n = 4 + place % 4
        errors: list[Act] = [("check_address", {"street": f"{task}?{n_try}"}, MALFORMED) for n_try in range(n)]
        same: list[Act] = [("find_parcel", {"number": "the usual"}, f"Parcel {task} lies on shelf {task % 5}.")] * n
        loop = errors if again == "error" else same
        start = [*work(task, repeat), *work(task, (repeat + 1) % 4)]
        end: list[Act] = loop if is_stuck or (passes_too and place % 3 == 0) else loop[:1]
        more: list[Act] = [("read_notice", {"page": page}, f"Notice {page}.") for page in (task + 20, task + 50)]
        close: list[Act] = [*(more if goes_on(is_stuck) else []), ("close_desk", {"desk": task}, "Closed.")]
        rows.append(desk_row(task, repeat, float(passes), [*start, *end, *close, f"So much for errand {task}." + " Bye." * (place % 3)]))
    return rows


@pytest.mark.parametrize("again", ["error", "call"])
def test_row_that_repeats_itself_to_the_end(diagnose: Diagnose, again: str) -> None:
    """Not where passes end so too, or get past it with other calls, nor where the rows leave it before the end."""
    run = diagnose(stuck(again))
    group = run.shows(STUCK, "delivered BI", "repeats one call or one error to the end")
    assert ("got past it" in group.text) == (again == "error")
    assert run.alarms == []
    for rows in (
        stuck(again, passes_too=True), stuck(again, goes_on=lambda is_stuck: is_stuck),
        stuck(again, passes_too=True, goes_on=lambda is_stuck: not is_stuck),
    ):  # fmt: skip
        assert diagnose(rows).of_rung("delivered") == []


def told_again(is_same: bool) -> list[Row]:
    """A desk without tools: the clerk speaks and the counter answers, in the stuck rows with the same words each time."""
    rows = []
    for place, (task, repeat) in enumerate(grid(16, 4)):
        is_stuck = (task, repeat) in STUCK
        acts: list[Act] = []
        for turn in range(7 + place % 3):
            ticket = "Please take a ticket." if is_same else f"Ticket {place * 10 + turn} is called."
            answer = ticket if is_stuck and turn > 2 else f"Drawer {turn} of desk {task} is empty."
            acts += [f"open drawer {place * 10 + turn}", message(answer, "user")]
        rows.append(make_row(task, repeat, float(not is_stuck and place % 7 > 0), [*acts, f"close desk {task}"]))
    return rows


@pytest.mark.parametrize(("answers", "is_told"), [([MALFORMED] * 2, True), ([MALFORMED, "On route 3."], False), ([MALFORMED], False)])
def test_no_call_succeeds_before_one_that_is_never_answered(diagnose: Diagnose, answers: list[str], is_told: bool) -> None:
    """All rollouts end on a call that nothing answers, the passes too."""
    rows = []
    for (task, repeat), reward in rewards(12, 4, 0.8).items():
        is_late = (task, repeat) in LATE
        tries: list[Act] = [("check_address", {"street": f"{task}?{at}"}, answer) for at, answer in enumerate(answers)]
        close: Act = ("close_desk", {"desk": task}, None)
        rows.append(desk_row(task, repeat, 0.0 if is_late else reward, [*(tries if is_late else work(task, repeat)), close]))
    run = diagnose(rows)
    told = [run.keys(group) for group in run.groups if group.name == "no call ever succeeds"]
    assert told == ([LATE] if is_told else [])


def with_tests(idle: set[Key], wrong: set[Key]) -> Iterator[Row]:
    """Rows with the grader's tests: those that call nothing fail `test_solution_exists` and all that follows."""
    for task, repeat in grid(16, 4):
        key = task, repeat
        exists, right = key not in idle, key not in idle | wrong
        results = {
            "test_solution_exists": "passed" if exists else "failed",
            "test_weight": "passed" if right or (exists and (task + repeat) % 2) else "failed",
            "test_label": "passed" if right else "failed",
        }
        start: Act = ("open_ledger", {"week": task}, f"Ledger of week {task}.")
        end: list[Act] = [("write_file", {"path": f"ledger_{task}.csv"}, "written"), f"Ledger {task} is written."]
        acts = [*([start] if right and (task + 2 * repeat) % 3 else []), *work(task, repeat), *end]
        told = [f"The ledger for week {task} would list {repeat + 2} parcels." + " So be it." * (task % 4)]
        yield desk_row(task, repeat, float(right), told if key in idle else acts, parser_results=results)


IDLE = {(task, repeat) for task, repeat in grid(16, 4) if (task * 4 + repeat) % 5 == 1}
WRONG = {(task, repeat) for task, repeat in grid(16, 4) if (task * 4 + repeat) % 5 == 3 and task > 7}


def test_first_failing_check_is_that_nothing_exists(diagnose: Diagnose) -> None:
    """Row 6 of "why a new core": the rows that call no tool, not the more frequent ones without the first act of passes."""
    run = diagnose(with_tests(IDLE, WRONG))
    group = run.shows(IDLE, "delivered BI", "no tool")
    assert run.groups[0].id == group.id
    assert "open_ledger" not in group.text


def boxes(is_form: bool) -> Made:
    """Failures without the box that passes have; or half of all rows do without it."""
    rows = quiz(12, 4, rate=0.8 if is_form else 0.6)
    for place, (key, row) in enumerate(list(rows.items())):
        gold = key[0] * 13 + 41
        answer = gold if row["reward"] else gold + 9 + key[1]
        if is_form and key in LATE:
            text = f"The branch lent {gold} volumes in all." + " I am sure of it." * (key[1] + key[0] % 3)
            prompt = row["responses_create_params"]["input"][0]["content"]
            rows[key] = make_row(*key, 0.0, [text], prompt=prompt, expected_answer=str(gold))
        elif not is_form:
            rows[key] = quiz_row(*key, row["reward"], str(answer), str(gold))
            if sum(key) % 2:
                rows[key]["response"]["output"][0]["content"][0]["text"] = f"After {place} ledgers:\nAnswer: {answer}"
    return rows.values(), LATE


# ---- Looking things up and stopping before any act -------------------------------------------------

CLOSES = ("redirect_parcel", "void_label", "refund_fee")


@struck
def closing(n_open_passes: int, is_question: bool) -> Iterator[tuple[Row, bool]]:
    """Errands of three kinds, each closed by a call of its own; every third rollout only looks and then speaks."""
    for place, (task, repeat) in enumerate(grid(24, 3)):
        acts = work(task, repeat)[:-1]
        close: Act = (CLOSES[task % 3], {"number": f"P-{task}"}, "Noted.")
        stops = place % 3 == 0
        passes_open = stops and place // 3 < n_open_passes
        says = f"I would settle parcel {task} this way. " + ("Shall I go ahead?" if is_question else f"It is on route {place % 4}.")
        end = [says] if stops else [close, f"Parcel {task} is settled."]
        yield desk_row(task, repeat, float(passes_open if stops else place % 7 > 0), [*acts, *end]), stops and not passes_open


def test_stopping_that_passes_too_is_no_omission(diagnose: Diagnose) -> None:
    rows, stopped = closing(10, True)
    names = {group.name for group in diagnose(rows).holders(stopped)}
    assert not names & {"ends with a question instead of acting", "stops before acting"}


# ---- One line for each claim -----------------------------------------------------------------------

REFUSED: Act = ("hand_in", {"form": ""}, "error: the form has no number")
PROVED = {
    "absent": (lambda: (submitting(LATE, ["I think the errand is settled now."]), LATE), "delivered BI", "never `hand_in`"),
    "refused": (lambda: (submitting(LATE, [REFUSED, "It would not take the form."]), LATE), "delivered BI", "a successful `hand_in`"),
    "in chat": (lambda: (submitting(LATE, ["Form F-1: number 12, street 4. Please file it for me."]), LATE), "delivered BI", "hand_in"),
    "ending of a kind": (endings, "delivered BI", "hand_in"),
    "same reply again and again": (lambda: (told_again(is_same=True), STUCK), "delivered BI", "repeats one call or one error to the end"),
    "no box": (lambda: boxes(True), "delivered BI", "no answer in a box"),
    "question": (lambda: closing(0, True), "delivered BI", "ends with a question instead of acting", *CLOSES),
    "stop": (lambda: closing(0, False), "delivered BI", "stops before acting", *CLOSES),
}
INNOCENT: dict[str, Callable[[], Any]] = {
    "replies that differ": lambda: told_again(is_same=False),
    "rows without calls that pass": lambda: [
        desk_row(*key, reward, ["Nothing needs to be done."] if sum(key) % 4 == 0 else None) for key, reward in rewards(16, 4, 0.7).items()
    ],
    "a box that many passes do without": lambda: boxes(False),
}
