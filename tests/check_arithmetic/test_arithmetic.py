"""What a report says against itself: each planted fault with a twin that is right, and honest text that looks wrong."""

from __future__ import annotations

import time
import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blade.check.arithmetic import contradictions
from blade.check.markdown_document import parse
from tests.case_tables import cases

ROOT = Path(__file__).resolve().parents[2]
REPORTS = ROOT / "tests" / "contradictions"


def lines(text: str) -> list[int]:
    return [item.line for item in contradictions(parse(text))]


# (kind, the wrong sentence, what to replace, by what: then it is right)
@pytest.mark.parametrize(("kind", "wrong", "stated", "right"), cases(__file__, "sentences"))
def test_a_sentence_that_contradicts_itself(kind: str, wrong: str, stated: str, right: str) -> None:
    (item,) = contradictions(parse(f"# Report\n\n{wrong}\n"))
    assert (item.reading, item.line, bool(item.why)) == (kind, 3, True)
    assert not lines(f"# Report\n\n{wrong.replace(stated, right)}\n")


# (kind, a text that is right, what to replace, by what: then it is wrong; the lines that may be named)
@pytest.mark.parametrize(("kind", "right", "stated", "wrong", "places"), cases(__file__, "places"))
def test_places_that_contradict_each_other(kind: str, right: str, stated: str, wrong: str, places: set[int]) -> None:
    assert right.count(stated) == 1, stated
    assert not lines(right)
    items = contradictions(parse(right.replace(stated, wrong)))
    assert len({item.line for item in items}) == 1, items
    assert items[0].line in places, items
    assert kind in {item.reading for item in items}, items


@pytest.mark.parametrize("text", cases(__file__, "honest"))
def test_honest_text_is_left_alone(text: str) -> None:
    assert not lines(text)


HONEST = [*sorted((ROOT / "benchmarks").glob("*/golden_reports/*.md")), *sorted(REPORTS.glob("consistent_*.md"))]


@pytest.mark.parametrize("path", HONEST, ids=lambda path: path.name)
def test_reports_that_do_not_contradict_themselves(path: Path) -> None:
    assert not lines(path.read_text(encoding="utf-8"))


def test_contradictions_that_a_stranger_planted() -> None:
    key = tomllib.loads((REPORTS / "key.toml").read_text(encoding="utf-8"))["planted"]
    hits = 0
    for name in sorted({entry["report"] for entry in key}):
        planted = [set(entry["lines"]) for entry in key if entry["report"] == name]
        flagged = set(lines((REPORTS / name).read_text(encoding="utf-8")))
        hits += sum(bool(places & flagged) for places in planted)
        assert len(flagged - set().union(*planted)) <= 2
    assert hits >= 0.8 * len(key)


NUMBERS = "1 of 2 (3%) |from 1% to 2% |1 + 2 = 3 |12 and 13, |1,|1x|5% |[1, 2] |tasks 1, |1/2/3|1–2 |⟨0n⟩ ٣ |about 5 |(".split("|")


@pytest.mark.parametrize("piece", NUMBERS)
def test_hostile_numbers_cost_little(piece: str) -> None:
    text = piece * (3_000 // len(piece))
    start = time.process_time()
    contradictions(parse(f"# {text}\n\n{text}\n\n| a | b |\n|---|---|\n| {text} | {text} |\n| Total | {text} |\n"))
    assert time.process_time() - start < 5


def test_a_long_report_costs_little() -> None:
    prose = "The run passed 412 of 800 rollouts (51.5%), from 41.2% to 46.0% (+4.8 points).\n\n" * 1_500
    rows = "\n".join(f"| row {number} | {number} | {number * 7 % 90} | {number % 3} |" for number in range(600))
    start = time.process_time()
    assert not lines(f"# Long\n\n{prose}\n| n | a | b | c |\n|---|---|---|---|\n{rows}\n")
    assert time.process_time() - start < 20


@given(st.text(alphabet="0123456789 ,.%+-−–/()[]|:=ofto\n", max_size=200))
@settings(max_examples=200, deadline=None)
def test_anything_can_be_checked(text: str) -> None:
    for item in contradictions(parse(f"| a | Total |\n|---|---|\n| x | {text} |\n\n{text}\n")):
        assert item.lines
