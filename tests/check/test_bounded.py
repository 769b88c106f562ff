"""Any text is answered: large, broken, foreign or empty reports, in work that grows as they do."""

from __future__ import annotations

import sys
from types import FrameType

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from blade.check import Finding, World, checked
from blade.check.check_findings import VERDICTS
from blade.model.conclusions import CONTRADICTED
from tests.case_tables import cases, tables

from .conftest import Desk

PIECES = cases(__file__, "pieces")
SHAPES = tables(__file__)["shapes"]
RELAXED = settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])


def sound(findings: tuple[Finding, ...], text: str) -> None:
    """Every finding has a verdict and stands on lines that the text has."""
    n_lines = text.replace("\r\n", "\n").replace("\r", "\n").count("\n") + 1
    for item in findings:
        assert item.verdict in VERDICTS
        assert 1 <= item.line <= n_lines
        assert all(1 <= line <= n_lines for line in item.lines)


@pytest.mark.parametrize(("head", "piece", "n", "tail"), cases(__file__, "broken_texts"))
def test_broken_texts_are_answered(desk: Desk, head: str, piece: str, n: int, tail: str) -> None:
    text = f"{head}{piece * n}{tail}"
    sound(checked(text, desk.world), text)
    sound(checked(text, None), text)


@pytest.mark.parametrize("text", cases(__file__, "other_languages_raise_no_alarm"))
def test_other_languages_raise_no_alarm(desk: Desk, text: str) -> None:
    assert CONTRADICTED not in desk.verdicts(text)


def test_line_ends_make_no_difference(desk: Desk) -> None:
    text = "# T\n\nTask 4 has 67.0%<!--blade: pass_at_1--> and 5 of 6 (10%).\n\n| a | b |\n|---|---|\n| x | 3 |\n"
    unix = desk.check(text)
    assert unix
    for ends in ("\r\n", "\r"):
        assert desk.check("\ufeff" + text.replace("\n", ends)) == unix


@RELAXED
@given(st.text(max_size=300))
def test_any_text_is_answered(desk: Desk, text: str) -> None:
    sound(checked(text, desk.world), text)


@RELAXED
@given(st.lists(st.sampled_from(PIECES), max_size=40))
def test_any_scraps_of_a_report_are_answered(desk: Desk, pieces: list[str]) -> None:
    text = "".join(pieces)
    sound(checked(text, desk.world), text)


def shape(name: str, n: int) -> str:
    """A text of a shape: the parts of it, in each a piece again and again."""
    numbers = [{"k": k, "task": k % 24, "repeat": k % 4, "percent": k % 100} for k in range(n)]
    return "".join(head + "".join(piece.format(**number) for number in numbers) for head, piece in SHAPES[name])


def calls(text: str, world: World) -> int:
    """How many calls of functions a check takes, which no load of the machine changes."""
    n = 0

    def count(frame: FrameType, event: str, arg: object) -> None:
        nonlocal n
        n += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        checked(text, world)
    finally:
        sys.setprofile(None)
    return n


@pytest.mark.parametrize("name", SHAPES)
def test_work_grows_as_the_report_does(desk: Desk, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("blade.check.contradictions", lambda document: [])  # arithmetic has tests of its own
    checked("It is 5, 5%.", desk.world)  # what is made once is not counted
    few, many = calls(shape(name, 25), desk.world), calls(shape(name, 200), desk.world)
    # eight times the text: linear work takes eight times the calls, quadratic work sixty-four times
    assert many < 16 * few + 10_000, (few, many)


@pytest.mark.slow
@pytest.mark.parametrize("piece", cases(__file__, "pieces_by_the_tenth_of_a_megabyte"))
def test_a_tenth_of_a_megabyte_of_anything_is_answered(desk: Desk, piece: str) -> None:
    text = piece * (100_000 // len(piece))
    sound(checked(text, desk.world), text)
