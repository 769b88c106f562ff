"""A report of ours beside its rows: all of it holds, and what is changed in it is found."""

from __future__ import annotations

import re

import pytest

from blade.check import checked
from blade.model import CONTRADICTED, SUPPORTED

from .conftest import Told


def wrong(told: Told, text: str) -> dict[int, list[tuple[str, str | None]]]:
    """What is contradicted, by line."""
    found: dict[int, list[tuple[str, str | None]]] = {}
    for one in checked(text, told.world):
        if one.verdict == CONTRADICTED:
            found.setdefault(one.line, []).append((one.found, one.expected))
    return found


def changed(told: Told, old: str, new: str, skip: int = 0) -> tuple[str, int]:
    """The report with one place changed, and the line of it."""
    at = -1
    for _ in range(skip + 1):
        at = told.text.index(old, at + 1)
    return told.text[:at] + new + told.text[at + len(old) :], told.text.count("\n", 0, at) + 1


def test_every_claim_of_our_own_report_holds(told: Told) -> None:
    found = checked(told.text, told.world)
    assert {one.verdict for one in found} == {SUPPORTED}
    assert len(found) > 1_000
    assert {"number", "cell", "quote", "name"} <= {one.kind for one in found}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("67.0% [", "68.0% ["),
        ("n = 24 tasks, 92 rollouts", "n = 25 tasks, 92 rollouts"),
        ("11 of 28 failing", "11 of 31 failing"),
        ("(run `rollouts`)", "(run `other`)"),
        ("Of 24 tasks, 9 passed in every repeat", "Of 24 tasks, 11 passed in every repeat"),
        ("| sometimes | 13 |", "| sometimes | 12 |"),
        ("| `category` | `address` | 81.2%", "| `category` | `address` | 18.2%"),
        ("**Cause: behavioural issue (BI)**", "**Cause: behavioural issue (KG)**"),
        ("is locked by the packing line, nothing was changed.\n```", "is open, nothing was changed.\n```"),
        ("in none; 0 are missing", "in none; 3 are missing"),
        ("of score over 6 tasks", "of score over 9 tasks"),
    ],
)
def test_a_change_is_found_on_its_line(told: Told, old: str, new: str) -> None:
    text, line = changed(told, old, new)
    near = {at for at in wrong(told, text) if abs(at - line) <= 2}
    assert near, (old, new)
    assert set(wrong(told, text)) == near


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("they are in no mean", "they are not in no mean"),
        ("`update_order` is never called", "`update_order` is always called"),
        ("is not made good", "is made good"),
        ("passed in every repeat", "failed in every repeat"),
        ("The largest failure mode is", "The smallest failure mode is"),
    ],
)
def test_a_statement_turned_round_is_found(told: Told, old: str, new: str) -> None:
    text, line = changed(told, old, new)
    assert line in wrong(told, text)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("67.0% [52.9%, 78.6%] pass@1", "67% [53%, 79%] pass@1"),
        ("Besides, there is 1 duplicate row.", "There is also 1 duplicate row."),
        ("The brackets hold the 95% interval", "Brackets give the 95% interval"),
        ("Tasks have unequal numbers of rows.", "Not every task has the same number of rows."),
    ],
)
def test_other_words_and_coarser_rounding_are_no_fault(told: Told, old: str, new: str) -> None:
    text, _ = changed(told, old, new)
    assert wrong(told, text) == {}


def test_sections_in_another_order_and_parts_left_out_are_no_fault(told: Told) -> None:
    head, *parts = re.split(r"(?m)^(?=## )", told.text)
    assert wrong(told, head + "".join(reversed(parts))) == {}
    assert wrong(told, head + "".join(parts[::3])) == {}


def test_columns_in_another_order_are_read_by_their_names(told: Told) -> None:
    table = "## Task Outcome Buckets\n\n| Tasks | Bucket | Share of 24 |\n|---|---|---|\n| {} | always | 37.5% |\n"
    assert wrong(told, table.format(9)) == {}
    assert wrong(told, table.format(8)) == {5: [("8", "9")]}


@pytest.mark.parametrize(
    "text",
    [
        "Given 4 tries, 90.0% of the tasks are solved at least once; all 4 tries succeed on 35.0%.",
        "Given 4 tries, 90% of the tasks are solved; all 4 tries succeed on 35%.",
        "Given 4 tries, 90.0% [69.9%, 97.2%] of the tasks are solved; all 4 tries succeed on 35.0%.",
        "The largest failure mode is ignored error: 10.8 points.",
    ],
)
def test_a_sentence_of_ours_without_its_intervals_is_no_fault(told: Told, text: str) -> None:
    assert wrong(told, f"## Executive Summary\n\n{text}\n") == {}


def test_another_number_in_a_sentence_without_its_intervals_is_told_with_the_right_one(told: Told) -> None:
    text = "## Executive Summary\n\nGiven 4 tries, 92.0% of the tasks are solved; all 4 tries succeed on 35.0%.\n"
    assert wrong(told, text) == {3: [("92.0%", "90.0%")]}


def test_a_true_row_may_stand_twice_and_a_false_one_not_once(told: Told) -> None:
    lines = told.text.split("\n")
    start = lines.index("### All tasks that pass sometimes")
    table = [line for line in lines[start:] if line.startswith("|")][:5]
    text = "\n".join([*lines[start : start + 1], "", *table, table[2], table[3], table[2]])
    assert wrong(told, f"## Sometimes-Pass Deep Dives\n\n{text}\n") == {}
    false = text + "\n" + table[2].replace("`1 1 0 0`", "`1 1 1 0`") + "\n"
    assert list(wrong(told, f"## Sometimes-Pass Deep Dives\n\n{false}")) == [false.count("\n") + 2]


def test_sentences_in_a_json_report_are_read_at_their_path(told: Told) -> None:
    text = '{"a": 1,\n "sections": [{"summary": "The model scored 80.0% pass@1."}],\n "n": "80% is it"}'
    (found,) = (one for one in checked(text, told.world) if one.verdict == CONTRADICTED)
    assert (found.line, found.found) == (2, "80.0%")
    assert found.text == "sections[0].summary: The model scored 80.0% pass@1."
    assert found.text[found.start :].startswith("80.0%")
    assert wrong(told, text.replace("80.0%", "67.0%")) == {}
    assert [one.found for one in checked('{"note": "We solved 12 of 40 tasks (35%)."}', None)] == [
        "12 of 40 tasks (35%)"
    ]


def test_a_quotation_is_opened_where_it_is_said_to_stand(told: Told) -> None:
    text = "Seen in task `{}`, step {}:\n\n```text\n{}\n```\n"
    quote = '{"order_id":"O-20048","action":"refund","value":"44.40"}'
    assert wrong(told, text.format("4/1", 4, quote)) == {}
    assert list(wrong(told, text.format("4/1", 5, quote))) == [3]
    assert list(wrong(told, text.format("4/0", 4, quote))) == [3]
    assert 3 in wrong(told, text.format("99/0", 4, quote))
    assert wrong(told, text.format("4/1", 4, '{"order_id":"O-20048",…"value":"44.40"}')) == {}
    assert list(wrong(told, text.format("4/1", 4, quote.replace("44", "45")))) == [3]


def test_another_true_example_than_ours_is_no_fault(told: Told) -> None:
    label = "Failing, task `8/0`, step 4:\n\n```text\n"
    assert label in told.text
    text = told.text.replace(label, label.replace("8/0", "8/1"))
    assert wrong(told, text) == {}
    assert wrong(told, told.text.replace(label, label.replace("8/0", "9/1"))) != {}


@pytest.mark.parametrize(
    "text", ["", "Nothing to see.\n", "# T\n\n| a |\n", "结论：没有问题。\n", "\x00\x01"]
)
def test_a_report_without_claims_has_no_faults(told: Told, text: str) -> None:
    assert wrong(told, text) == {}


def test_a_table_of_rules_by_their_names_is_read_cell_by_cell(told: Told) -> None:
    seen = next(one for one in told.world.report.behaviours if one.in_fail > 1 and one.in_pass < one.in_fail)
    rows = "| Rule | Failing | Passing |\n|---|---:|---:|\n| `{}` | {} | {} |\n"
    assert not wrong(told, rows.format(seen.detector, seen.in_fail, seen.in_pass))
    assert wrong(told, rows.format(seen.detector, seen.in_fail + 1, seen.in_pass)) == {3: [(str(seen.in_fail + 1), f"{seen.detector}: {seen.in_fail} failing rollouts")]}


def test_a_rule_named_behind_its_count_is_meant(told: Told) -> None:
    seen = next(one for one in told.world.report.behaviours if one.in_fail > 1 and one.in_pass < one.in_fail)
    text = "An answer is missed in {} of the " + f"{seen.of_fail} failing rollouts (`{seen.detector}`)."
    assert not wrong(told, text.format(seen.in_fail))
    assert wrong(told, text.format(seen.in_fail + 3))
