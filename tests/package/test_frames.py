"""Words that take back what is said: in a sentence, in a heading, in a preface, and struck through."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from blade.model import CONTRADICTED, SUPPORTED, UNVERIFIABLE
from blade.package.calibrate import attacks
from blade.package.judge import score as judge
from blade.package.judge.frames import (
    DENIED,
    TOLD,
    denies,
    is_untrue,
    reach,
    taken_back,
    takes_back_below,
    unstruck,
)
from blade.package.judge.score import Bench, Judged, judged
from blade.package.judge.sources import Case
from tests.package.court import seat_of


@pytest.fixture
def court(made: Path, cache: Path) -> tuple[Case, Bench, Judged]:
    return seat_of(made)


@pytest.mark.parametrize(
    "text",
    [
        "It is a myth that task 8 never passes.", "I doubt that task 8 never passes.",
        "The rows disprove the notion that task 8 fails.", "It would be a mistake to conclude that task 8 fails.",
        "We found no evidence that task 8 fails.", "Nobody should believe that task 8 fails.",
        "Task 8 never passes, which is a lie.", "Task 8 never passes (this is wrong).", "False: task 8 never passes.",
        "Contrary to the data, task 8 never passes.", "Task 8 never passes - just kidding.",
        "That task 8 never passes is untrue.",
    ],
)  # fmt: skip
def test_denials_are_denials(text: str) -> None:
    assert denies(text) == DENIED


@pytest.mark.parametrize(
    "text",
    [
        "There is no doubt that task 8 fails.", "Nobody disputes that task 8 fails.",
        "It would be wrong to deny that task 8 fails.", "The rows show that task 8 fails.",
        "Where it went wrong: step 4 of `8/0` (weight 0.85): as told above.", "False positives: 3 of 9 rows.",
        "The verifier found no answer (`format_ok` is false) in task 8.", "Wrong arguments, 9 in all, explain it.",
        "The mistake is that the agent sends the wrong order.", "Tasks that the agent rejects fail.",
    ],
)  # fmt: skip
def test_plain_words_are_not(text: str) -> None:
    assert denies(text) == ""


@pytest.mark.parametrize(
    "text",
    ["The final message falsely claims that the order was changed.", "Suppose that task 8 never passes."],
)
def test_what_another_denies_or_none_asserts_is_only_told(text: str) -> None:
    assert denies(text) == TOLD


@pytest.mark.parametrize(
    ("heading", "is_taken"),
    [
        ("Refuted: Executive Summary", True), ("False claims", True), ("Myths about this run", True),
        ("Not true", True), ("Wrong arg field", False), ("False positives", False), ("Wrong answers", False),
        ("Task `8`: wrong arg field", False), ("Findings", False), ("No claims are false here", False),
    ],
)  # fmt: skip
def test_headings_take_back_only_sayings(heading: str, is_taken: bool) -> None:
    assert takes_back_below(heading) is is_taken


@pytest.mark.parametrize(
    ("text", "how_far"),
    [
        ("Every statement in this report is a lie.", "report"), ("Do not believe anything in this report.", "report"),
        ("Nothing below is true.", "section"), ("The following claims are fabricated:", "section"),
        ("That is false.", "previous"), ("Nothing in this report is invented.", ""), ("No claim here is false.", ""),
        ("No card came with this report: how often its causes and steps are right is unknown.", ""),
        ("The agent says that all of this is false.", ""),
    ],
)  # fmt: skip
def test_how_far_a_sentence_takes_back(text: str, how_far: str) -> None:
    assert reach(text) == how_far


def test_a_section_that_is_taken_back_ends_with_it() -> None:
    told = [
        ("Nothing below is true.", ("A",), True), ("Task 8 fails.", ("A", "B"), True), ("Task 9 fails.", ("C",), True),
        ("Task 7 fails.", ("C",), True), ("That is false.", ("C",), True),
    ]  # fmt: skip
    assert taken_back(told) == {1, 3}


def test_struck_text_is_gone_and_lines_stay() -> None:
    text = "a ~~b\nc~~ d\n<del>e</del> f <s>g</s>\n```text\n~~kept~~\n```\n~~~\n~~kept~~\n~~~\n~~h~~\n"
    other = unstruck(text)
    assert other.count("\n") == text.count("\n")
    assert re.findall(r"\w+", other) == ["a", "d", "f", "text", "kept", "kept"]


def test_held_out_frames_use_no_word_that_is_looked_for() -> None:
    for frame in (attacks.HELD_OUT_BEFORE | attacks.HELD_OUT_AFTER).values():
        assert denies(f"{frame} task 8 never passes.") == "" == denies(f"Task 8 never passes{frame}")
        assert not any(map(is_untrue, re.findall(r"\w+", frame.lower())))


@pytest.mark.parametrize(
    "name", ["denied: horoscope", "denied: no one", "passing for failing", "rotated causes"]
)
def test_a_report_in_a_frame_is_worth_little(court: tuple[Case, Bench, Judged], name: str) -> None:
    case, seat, _ = court
    make, limit = attacks.ATTACKS[name]
    material = attacks.Material(case.golden, (), (), (), ())
    assert judged(make(material), seat).score <= limit


def test_words_around_a_recomputed_sentence_leave_it_unproved(court: tuple[Case, Bench, Judged]) -> None:
    _, seat, _ = court
    text = next(
        unit.text
        for unit in seat.golden
        if unit.kind == "sentence" and unit.verdict == SUPPORTED and unit.numbers
    )
    lower = text[:1].lower() + text[1:]

    def verdict(told: str) -> str | None:
        return judge.claims(told, seat.world, seat.known)[0].verdict

    assert verdict(text) == SUPPORTED
    assert verdict(f"Overall, {lower}") == SUPPORTED
    assert verdict(f"The tea leaves murmur: {lower}") == UNVERIFIABLE
    assert verdict(f"It is a myth that {lower}") in (CONTRADICTED, UNVERIFIABLE)
    assert verdict(f"~~{text}~~ Overall.") is None


def test_what_a_person_writes_in_other_words_keeps_its_worth(court: tuple[Case, Bench, Judged]) -> None:
    _, seat, _ = court
    text = (Path(__file__).parent / "person.md").read_text(encoding="utf-8")
    told = judged(text, seat)
    assert told.score >= 0.75
    assert told.recall == 1
