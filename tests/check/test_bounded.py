"""Any text is answered: large, broken, foreign or empty reports, in work that grows as they do."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from types import FrameType

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from blade.check import checked
from blade.model import CONTRADICTED, SUPPORTED, UNVERIFIABLE, Assertion
from tests.check.conftest import Told

VERDICTS = {SUPPORTED, CONTRADICTED, UNVERIFIABLE}
PIECES = (
    "pass@1 is 67.0%. ", "| Task | Rate |\n", "| --- | --- |\n", "| `4` | 25.0% |\n", "|||\n", "| a |\n| - |\n| 1 |\n", "```text\n", "\n\n",
    "## Results\n", "- 11 of 28 fail\n", "`4/1` ", "“Done.” ", "[a](b) ", "<b>5%</b> ", "<!-- ", "--> ", "\r\n",
    "never ", "all 24 tasks ", "+7.6 points [+6.4, +10.8 points] ", "模型 67.0%。", "\\|", "\x00", "\u202e", "1e999 ",
    "0/0 ", "-0 ", "9" * 400, "½ ∞ − ", "{", "}", "[", '"schema": "blade.report/1"',
)  # fmt: skip


def sound(found: tuple[Assertion, ...], text: str) -> None:
    """Every assertion has a verdict and stands on lines that the text has."""
    n_lines = text.replace("\r\n", "\n").replace("\r", "\n").count("\n") + 1
    for one in found:
        assert one.verdict in VERDICTS
        assert 1 <= one.line <= one.last_line <= n_lines


# ---- Odd reports ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["", "\n", "   ", "# Report\n", "Nothing was counted here.\n", "\ufeff", "---\n"]
)
def test_a_report_of_no_claims_has_no_assertions(told: Told, text: str) -> None:
    assert checked(text, told.world) == ()
    assert checked(text, None) == ()


@pytest.mark.parametrize(
    "text",
    [
        "| Measure | Value |\n| pass@1 | 67.0% | 3 |\n| --- |\n| | | | |\n",
        "| Measure | Value |\n| --- | --- |\n| pass@1 |\n\n| Measure\n",
        "|\n|\n|\n",
        "||||\n|---|---|\n",
        "| a | b |\n| --- | --- |\n" + "| \\| | `|` |\n" * 3,
        "```text\nopen for ever\n| a |\n",
        "text\n| Measure | Value |\n| --- | --- |\n| pass@1 | 67.0% |\ntext",
    ],
)
def test_broken_tables_are_answered(told: Told, text: str) -> None:
    sound(checked(text, told.world), text)
    sound(checked(text, None), text)


@pytest.mark.parametrize(
    "text",
    [
        "Die Erfolgsquote beträgt 67,0 % bei 24 Aufgaben; keine schlägt immer fehl.\n",
        "模型在 24 个任务上的通过率为 67.0%。没有任何任务失败。\n",
        "نسبة النجاح 67.0% من 24 مهمة.\n",
        "Модель решила 9 задач из 24 (37,5 %).\n",
        "成功率は67.0%です。\n\n| タスク | 率 |\n| --- | --- |\n| `4` | 25.0% |\n",
    ],
)
def test_other_languages_raise_no_alarm(told: Told, text: str) -> None:
    found = checked(text, told.world)
    sound(found, text)
    assert [one for one in found if one.verdict == CONTRADICTED] == []


def test_line_ends_make_no_difference(told: Told) -> None:
    unix = [(one.verdict, one.line, one.found) for one in checked(told.text, told.world)]
    for ends in ("\r\n", "\r"):
        other = checked(told.text.replace("\n", ends), told.world)
        assert [(one.verdict, one.line, one.found) for one in other] == unix


def test_markup_inside_markdown_hides_no_claim(told: Told) -> None:
    text = "The model scored <b>82.0%</b> pass@1 on <code>24</code> tasks.<br>\n\n<div><p>x</p></div>\n"
    plain = "The model scored **82.0%** pass@1 on 24 tasks.\n"
    against = [one.found for one in checked(plain, told.world) if one.verdict == CONTRADICTED]
    marked = [one.found for one in checked(text, told.world) if one.verdict == CONTRADICTED]
    assert against
    assert marked == against


@pytest.mark.parametrize("text", ["{}", "[]", "null", "3", '"x"', '{"schema": "blade.report/1"}', "[" * 5000])
def test_json_of_any_form_is_answered(told: Told, text: str) -> None:
    sound(checked(text, told.world), text)


def test_a_report_of_odd_values_is_answered(told: Told) -> None:
    odd = {
        "schema": "blade.report/1",
        "runs": 3,
        "measures": [None, {"value": "x"}, []],
        "buckets": {"a": 1},
        "tasks": "x",
    }
    text = json.dumps(odd, indent=2)
    sound(checked(text, told.world), text)


# ---- Any text ------------------------------------------------------------------------------------

RELAXED = settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@RELAXED
@given(st.text(max_size=400))
def test_any_text_is_answered(told: Told, text: str) -> None:
    sound(checked(text, told.world), text)


@RELAXED
@given(st.lists(st.sampled_from(PIECES), max_size=40))
def test_any_scraps_of_a_report_are_answered(told: Told, pieces: list[str]) -> None:
    text = "".join(pieces)
    sound(checked(text, told.world), text)
    sound(checked(text, None), text)


@RELAXED
@given(st.binary(max_size=400))
def test_any_bytes_are_answered(told: Told, raw: bytes) -> None:
    text = raw.decode("latin-1")
    sound(checked(text, told.world), text)


@RELAXED
@given(st.data())
def test_a_report_torn_anywhere_is_answered(told: Told, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(told.text)))
    text = told.text[start : start + data.draw(st.integers(0, 3000))]
    sound(checked(text, told.world), text)


# ---- Large reports -------------------------------------------------------------------------------


def table(n: int) -> str:
    rows = "".join(f"| `{at % 24}/{at % 4}` | {at % 100}.0% | {at} |\n" for at in range(n))
    return "| Task | Rate | n |\n| --- | --- | --- |\n" + rows


def claims(n: int) -> str:
    return "".join(f"Task `{at % 24}` passed {at % 5} of 4 repeats, {at % 100}.5%.\n\n" for at in range(n))


SHAPES: dict[str, Callable[[int], str]] = {
    "table": table,
    "claims": claims,
    "one paragraph": lambda n: claims(n).replace("\n\n", " "),
    "words": lambda n: "Nothing is stated here and nothing is counted. " * n,
    "headings": lambda n: "### Task `4` desk-0004\n\n1 of 4 repeats passed.\n\n" * n,
    "lists": lambda n: "- category: 5%\n  - refund: 6 of 7\n" * n,
    "small tables": lambda n: "| a | b |\n| --- | --- |\n| 1 | 2 |\n\n" * n,
    "broken tables": lambda n: "| a | b |\n| 1 | 2 | 3\n| x\n||||\n" * n,
    "one figure again and again": lambda n: "pass@1 is 67.0%.\n\n" * n,
    "wide table": lambda n: "|" + " a |" * n + "\n|" + " - |" * n + "\n|" + " 1 |" * n + "\n",
}


def calls(text: str, told: Told) -> int:
    """How many calls of functions a check takes, which no load of the machine changes."""
    world = replace(told.world)  # one that nothing was read of yet
    checked("", world)  # what is made once is not counted
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
def test_work_grows_as_the_report_does(told: Told, name: str) -> None:
    small, large = SHAPES[name](100), SHAPES[name](800)
    few, many = calls(small, told), calls(large, told)
    # eight times the text: linear work takes eight times the calls, quadratic work sixty-four times
    assert many < 16 * few + 20_000, (few, many)


@pytest.mark.slow
def test_a_table_of_twenty_thousand_rows_is_answered(told: Told) -> None:
    sound(checked(table(20_000), told.world), table(20_000))
    lines = told.text.split("\n")
    start = lines.index("### All tasks that pass sometimes")
    rows = [line for line in lines[start:] if line.startswith("|")][:14]
    text = "\n".join([*rows[:2], *rows[2:12] * 2_000])
    found = checked(text, told.world)
    sound(found, text)
    assert len(found) >= 20_000


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece",
    ["x", "1", " ", "|", "(", "`", "*", "“", "<", "a. ", "1,000,", "3 of 4 of ", "`4/1`, ", "-", "=\n"],
)
def test_a_megabyte_of_anything_is_answered(told: Told, piece: str) -> None:
    text = piece * (1_000_000 // len(piece))
    sound(checked(text, told.world), text)


@pytest.mark.slow
def test_a_megabyte_of_claims_is_answered(told: Told) -> None:
    text = told.text * (1 + 1_000_000 // len(told.text))
    found = checked(text, told.world)
    sound(found, text)
    assert len(found) > 10_000


@pytest.mark.parametrize(
    "text",
    [
        "9" * 310 + " tasks pass.",
        "39/" + "9" * 310 + " tasks pass.",
        "| Bucket | Tasks |\n| --- | --- |\n| always | " + "9" * 310 + " |",
        '{"pass_at_1": ' + "9" * 400 + ', "n_tasks": -' + "9" * 400 + "}",
    ],
)
def test_numbers_beyond_all_counting_are_answered(told: Told, text: str) -> None:
    sound(checked(text, told.world), text)
