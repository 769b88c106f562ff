"""What is read off a row before any question is asked: errors, how often calls are made, what a spoken call hands over."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest

from tests.case_tables import cases
from tests.diagnose.builders import desk, desk_row
from tests.diagnose.diagnosed import Diagnose, Diagnosed
from tests.diagnose.rows import Act, Key, Row, grid, make_row, message, struck

HIT = {(task, task % 4) for task in range(12)} | {(task, (task + 2) % 4) for task in range(4)}


def planted(diagnose: Diagnose, make: dict[Key, list[Act]]) -> Diagnosed:
    """An ordinary run at the desk in which some rows fail in a way of their own."""
    return diagnose(desk_row(*key, 0.0, make[key]) if key in make else row for key, row in desk(rate=0.9).items())


# ---- The line that tells of an error -------------------------------------------------------------


def refusals(answer: str) -> dict[Key, list[Act]]:
    return {key: [*[("check_address", {"street": f"{key[0]}?{n}"}, answer) for n in range(2 + sum(key) % 3)], "No."] for key in HIT}


@pytest.mark.parametrize(("answer", "told"), cases(__file__, "errors"))
def test_heading_of_an_error_is_told_with_the_line_below(diagnose: Diagnose, answer: str, told: str) -> None:
    text = planted(diagnose, refusals(answer)).group(HIT).text
    assert f": {told}." in text


def test_heading_of_a_spoken_error_is_told_with_the_line_below(diagnose: Diagnose) -> None:
    """The clerk has no tools, and the counter answers in messages."""
    rows = []
    for place, (task, repeat) in enumerate(grid(12, 4)):
        is_hit = (task, repeat) in HIT
        talk: list[Act] = []
        for turn in range(2 + place % 3):
            answer = "Errors:\nthe street needs a number" if is_hit else f"Shelf {turn} of desk {task}."
            talk += [f"look {'nowhere' if is_hit else 'street'} {place * 10 + turn}", message(answer, "user")]
        rows.append(make_row(task, repeat, float(not is_hit and place % 9 > 0), [*talk, f"close desk {task}"]))
    assert "Errors: the street needs a number" in diagnose(rows).said


# ---- Long rollouts: ninety acts, of which only the first and the last thirty are kept ---------------


def word(n: int) -> str:
    return "".join(chr(97 + n // 26**at % 26) for at in range(4))


def tries(key: Key) -> list[Act]:
    return [*[("check_address", {"street": f"{key}?{n}"}, "error: a street needs a number") for n in range(90)], "No."]


def calls(key: Key) -> list[Act]:
    return [*[("read_notice", {"page": "all"}, f"Page {key[0]}.")] * 89, ("read_notice", {"page": "all"}, None)]


def errors(key: Key) -> list[Act]:
    """Each error has its own words, so that none comes back; the last call is never answered."""
    start = key[0] * 1000 + key[1] * 200
    met: list[Act] = [("check_address", {"street": f"?{start + n}"}, f"error: no street {word(start + n)}") for n in range(80)]
    return [("read_notice", {"page": key[0]}, f"Page {key[0]}."), *met, ("read_notice", {"page": -1}, None)]


@pytest.mark.parametrize(
    ("acts", "told"),
    [
        (tries, "90 of 90 calls end in an error, such as: error: a street needs a number"),
        (calls, "`read_notice` is called 90 times with the same arguments"),
        (errors, "; 80 of 82 calls end in an error"),
    ],
)
def test_acts_of_a_long_rollout_are_counted_in_full(diagnose: Diagnose, acts: Callable[[Key], list[Act]], told: str) -> None:
    run, tasks = planted(diagnose, {key: acts(key) for key in HIT}), {str(task) for task, _ in HIT}
    texts = {entry.mechanism for entry in run.report.attributions if entry.task in tasks}
    assert texts
    assert all(told in text for text in texts), texts


# ---- Calls that are spoken -----------------------------------------------------------------------


@struck
def spoken(passes_too: bool) -> Iterator[tuple[Row, bool]]:
    """One try per errand: the clerk speaks a call with a body, and every third gives the time with an offset instead of a Z."""
    for task in range(60):
        is_odd = task % 3 == 0
        body = {"desk": task, "from": f"2031-05-{task % 27 + 1:02d}T09:00:00{'+00:00' if is_odd else 'Z'}"}
        passes = task % 7 > 0 if passes_too or not is_odd else False
        talk: list[Act] = [f"book_desk {json.dumps(body)}", message(f"Desk {task} is booked.", "user"), f"done with errand {task}"]
        yield make_row(task, 0, float(passes), talk), is_odd


@pytest.mark.parametrize("passes_too", [False, True])
def test_argument_of_a_spoken_call_in_another_form_than_the_passes(diagnose: Diagnose, passes_too: bool) -> None:
    rows, odd = spoken(passes_too)
    run = diagnose(rows)
    if passes_too:
        assert run.of_rung("behaviour") == []
    else:
        name = "gives `from` of `book_desk` in another form than the passes"
        run.shows(odd, "behaviour BI", name, "`9-9-9a9:9:9+9:9`", "passes mostly give `9-9-9a9:9:9a`")
