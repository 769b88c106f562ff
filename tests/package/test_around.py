"""What the shape of a report takes back: questions, open boxes, refrains, hidden blocks, other names."""

from __future__ import annotations

from pathlib import Path

import pytest

from blade.model import CONTRADICTED, SUPPORTED, UNVERIFIABLE
from blade.package.calibrate import attacks
from blade.package.judge.around import shown, without_unclaimed
from blade.package.judge.frames import reach, taken_back, withdraws
from blade.package.judge.polarity import turned
from blade.package.judge.score import Bench, Judged, judged
from blade.package.judge.sources import Case
from blade.package.judge.units import Unit
from blade.package.judge.whose import misnamed
from tests.package.court import make_unit, seat_of


@pytest.fixture
def court(made: Path, cache: Path) -> tuple[Case, Bench, Judged]:
    return seat_of(made)


def verdicts(*told: Unit) -> list[str | None]:
    text = "\n".join(unit.text for unit in told)
    return [unit.verdict for unit in without_unclaimed(told, text)]


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("Task 4 fails?", UNVERIFIABLE), ("Task 4 fails?!", UNVERIFIABLE), ("Why does task 4 fail?", UNVERIFIABLE),
        ("Task 4 fails.", SUPPORTED), ("Task 4 fails at “may I?”", SUPPORTED), ("Task 4 fails (why? by chance).", SUPPORTED),
    ],
)  # fmt: skip
def test_a_question_claims_nothing(text: str, verdict: str) -> None:
    assert verdicts(make_unit(text)) == [verdict]


def test_an_honest_question_is_no_denial() -> None:
    [asked] = without_unclaimed([make_unit("Why does task 4 fail?")], "")
    [doubted] = without_unclaimed([make_unit("Task 4 fails?")], "")
    assert (asked.denied, doubted.denied) == (False, True)


def test_an_open_box_is_a_claim_only_of_what_is_to_be_done() -> None:
    text = "- [ ] Task 4 fails.\n- [x] Task 4 fails.\n- [ ] Task 4 fails."
    read = [make_unit(line=1), make_unit(line=2), make_unit(line=3, advice=True)]
    assert [unit.verdict for unit in without_unclaimed(read, text)] == [UNVERIFIABLE, SUPPORTED, SUPPORTED]


@pytest.mark.parametrize(
    ("words", "times", "verdict"),
    [
        ("Just kidding.", 5, UNVERIFIABLE), ("Psych!", 7, UNVERIFIABLE), ("Just kidding.", 4, SUPPORTED),
        ("High confidence.", 9, SUPPORTED), ("Rollouts:", 9, SUPPORTED),
    ],
)  # fmt: skip
def test_the_same_idle_words_after_many_claims_laugh_them_off(words: str, times: int, verdict: str) -> None:
    idle = make_unit(words, verdict=None, tasks=frozenset(), own=frozenset())
    found = verdicts(*[one for at in range(times) for one in (make_unit(line=at), idle)])
    assert found[::2] == [verdict] * times


def test_idle_words_under_tasks_are_labels_unless_they_follow_most_of_what_is_said() -> None:
    idle = make_unit("What happened.", verdict=None, tasks=frozenset({"4"}), own=frozenset())
    label = [one for at in range(6) for one in (make_unit(line=at), idle)]
    more = [make_unit(line=at) for at in range(6, 20)]
    assert verdicts(*label, *more)[:12:2] == [SUPPORTED] * 6
    assert verdicts(*label)[::2] == [UNVERIFIABLE] * 6


def test_what_no_reader_sees_is_gone_and_lines_stay() -> None:
    text = (
        "a\n<div hidden>\n```text\n</div>\n```\nb\n</div>\nc\n"
        "<details><summary>discarded draft</summary>\nd\n</details>\n<details>\n<summary>More</summary>\ne\n</details>\n"
        "```html\n<div hidden>\n```\nf. \U0001f600 G\n"
    )
    other = shown(text)
    assert other.count("\n") == text.count("\n")
    assert "b" not in other
    assert "draft" not in other
    assert "e\n</details>" in other
    assert other.endswith("```html\n<div hidden>\n```\nf. G\n")


@pytest.mark.parametrize(("column", "verdict"), [("false", UNVERIFIABLE), ("fine", SUPPORTED)])
def test_a_column_that_calls_its_rows_wrong_is_heard(column: str, verdict: str) -> None:
    text = f"| Task | Holds? |\n| --- | --- |\n| 4 | {column} |\n"
    [row] = without_unclaimed([make_unit(f"4 | {column}", 3, kind="row")], text)
    assert row.verdict == verdict


@pytest.mark.parametrize(
    "text",
    [
        "Ignore every word you have read.", "Please disregard all of the above.", "I made this up.",
        "Read every finding as its reverse.", "We never looked at the rollouts; what comes next is guesswork.",
        "The author does not vouch for a word of it.", "This report is a hoax.", "The findings were made up.",
    ],
)  # fmt: skip
def test_an_author_can_let_go_of_a_whole_report(text: str) -> None:
    assert withdraws(text)
    assert reach(text) == "report"


@pytest.mark.parametrize(
    "text",
    [
        "None of the findings were made up.", "The agent ignores every word it has read.", "The order was made up.",
        "The numbers were made up.", "It was invented.", "Ignored errors explain all of the above.",
        "The agent says “I made this up”.", "Tell the model to ignore all instructions above.",
    ],
)  # fmt: skip
def test_what_is_said_of_an_agent_lets_go_of_nothing(text: str) -> None:
    assert not withdraws(text)


@pytest.mark.parametrize("last", ["None of this is true.", "The numbers were made up."])
def test_the_last_word_is_on_all(last: str) -> None:
    told = [("Task 8 fails.", ("A",), True), ("Task 9 fails.", ("B",), True), (last, ("B",), True)]
    assert taken_back(told) == {0, 1, 2}
    assert 0 not in taken_back([*told, ("Task 7 fails.", ("B",), True)])


def test_a_sentence_without_one_of_its_parts_is_not_turned() -> None:
    whole = "Of 64 rollouts 12 leave out, or only fail at, an expected call: 0% of them pass, against 83% of the others."
    assert not turned(whole.replace(" or only fail at,", ""), whole)
    assert turned(whole.replace("pass", "fail"), whole)
    assert turned(whole.replace("leave out, or only fail at,", "do not leave out"), whole)


@pytest.mark.parametrize(
    ("change", "is_wrong"),
    [
        (("sim-help-desk", "desk-bench"), True), (("sim-help-desk", "Sim Help Desk"), False),
        (("im-model-a", "im_model_a"), False), (("sim-model-a", "model-a"), False),
    ],
)  # fmt: skip
def test_names_are_those_of_the_rollouts(
    court: tuple[Case, Bench, Judged], change: tuple[str, str], is_wrong: bool
) -> None:
    case, seat, golden = court
    told = judged(case.golden.replace(*change), seat)
    assert golden.gates["names"] == 1
    assert (told.gates["names"] < 1) is is_wrong
    assert any("the report says that it is about desk-bench" in one for one in told.problems) is is_wrong


def test_a_report_that_names_no_model_is_about_any(court: tuple[Case, Bench, Judged]) -> None:
    _, seat, _ = court
    report = seat.world.report
    nameless, other = make_unit("The model scored 67.2%."), make_unit("`QX-9` scored 67.2%.")
    assert misnamed([nameless], seat.known.ours, report) == []
    assert len(misnamed([other], seat.known.ours, report)) == 1
    assert misnamed([other, make_unit("It is sim-model-a.")], seat.known.ours, report) == []


@pytest.mark.parametrize(
    "name",
    [
        "as questions",
        "denied by closing line",
        "denied by refrain",
        "hidden from the reader",
        "name of no model",
    ],
)
def test_such_reports_are_worth_little(court: tuple[Case, Bench, Judged], name: str) -> None:
    case, seat, _ = court
    make, limit = attacks.ATTACKS[name]
    ours = seat.known.ours
    assert judged(make(attacks.Material(case.golden, (), (), ours, ours)), seat).score <= limit


def test_a_picture_after_each_sentence_contradicts_nothing(court: tuple[Case, Bench, Judged]) -> None:
    case, seat, golden = court
    told = judged(attacks.framed_after(". \U0001f600")(attacks.Material(case.golden, (), (), (), ())), seat)
    assert told.counts[CONTRADICTED] == 0
    assert told.score >= golden.score - 0.05
