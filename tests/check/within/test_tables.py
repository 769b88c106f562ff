"""What a table says against itself: totals, shares, changes, intervals and orders, and their near misses."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.check.within.said import contradicted, found, supported, table

COUNTS = ("a | 5", "b | 4", "c | 3")
STAGES = "Stage | Reached | Of rollouts | Share"
BUCKETS = "Bucket | Tasks | Share of 24"
CHANGES = "Behaviour | Baseline | Candidate | Change"

FALSE_AND_TRUE = [
    # rows of totals
    (table("Cause | n", *COUNTS, "**Total** | **13**"), table("Cause | n", *COUNTS, "**Total** | **12**")),
    (
        table("Mode | Lost", "a | 10.76 points", "b | 6.25 points", "**Sum** | **19.01 points**"),
        table("Mode | Lost", "a | 10.76 points", "b | 6.25 points", "**Sum** | **17.01 points**"),
    ),
    (
        table("Mode | Share", "a | 33.3%", "b | 33.3%", "c | 23.3%", "Total | 100%"),
        table("Mode | Share", "a | 33.3%", "b | 33.3%", "c | 33.3%", "Total | 100%"),
    ),
    (
        table("Kind | Tasks | Rows", "a | 5 | 20", "b | 4 | 16", "All | 9 | 37"),
        table("Kind | Tasks | Rows", "a | 5 | 20", "b | 4 | 16", "All | 9 | 36"),
    ),
    # columns of totals
    (
        table("Tasks | never | always | All", "x | 34 | 19 | 53", "y | 0 | 0 | 0", "z | 14 | 48 | 61", "w | 1 | 1 | 2"),
        table("Tasks | never | always | All", "x | 34 | 19 | 53", "y | 0 | 0 | 0", "z | 14 | 48 | 62", "w | 1 | 1 | 2"),
    ),
    # a sum below the table
    (
        table("Term | Change", "a | +6.1 points", "b | −3.5 points", after="Sum of 2 terms: +0.026, that is +3.6 points: all."),
        table("Term | Change", "a | +6.1 points", "b | −3.5 points", after="Sum of 2 terms: +0.026, that is +2.6 points: all."),
    ),
    (
        table("Term | Change", "a | +6.1 points", "b | −3.5 points", after="Sum of 3 terms: +0.026, that is +2.6 points: all."),
        table("Term | Change", "a | +6.1 points", "b | −3.5 points", after="Sum of 2 terms: +0.026, that is +2.6 points: all."),
    ),
    # shares
    (
        table(STAGES, "x | 78 | 96 | 81.2%", "y | 83 | 96 | 86.5%", "z | 61 | 96 | 53.5%"),
        table(STAGES, "x | 78 | 96 | 81.2%", "y | 83 | 96 | 86.5%", "z | 61 | 96 | 63.5%"),
    ),
    (
        table(BUCKETS, "always | 9 | 37.5%", "sometimes | 13 | 45.2%", "never | 2 | 8.3%"),
        table(BUCKETS, "always | 9 | 37.5%", "sometimes | 13 | 54.2%", "never | 2 | 8.3%"),
    ),
    (
        table("Bucket | Tasks | Share of 26", "always | 9 | 37.5%", "sometimes | 13 | 54.2%", "never | 2 | 8.3%"),
        table("Bucket | Tasks | Share of 24", "always | 9 | 37.5%", "sometimes | 13 | 54.2%", "never | 2 | 8.3%"),
    ),
    (
        table("Mode | Lost | Share of loss", "a | 10.8 | 54%", "b | 5.2 | 26%", "c | 2.0 | 16%", "d | 2.0 | 10%", "Sum | 20.0 |"),
        table("Mode | Lost | Share of loss", "a | 10.8 | 54%", "b | 5.2 | 26%", "c | 2.0 | 10%", "d | 2.0 | 10%", "Sum | 20.0 |"),
    ),
    # cells
    (table("Rule | In failing", "a | 11/28 (93.3%)", "b | 1/28 (3.6%)"), table("Rule | In failing", "a | 11/28 (39.3%)")),
    (table("Measure | Value", "a | 67.0% [70.1%, 78.6%]"), table("Measure | Value", "a | 67.0% [52.9%, 78.6%]")),
    (table("Slice | p adjusted", "a | 0.21", "b | 1.70"), table("Slice | p adjusted", "a | 0.21", "b | 0.70")),
    # intervals in a column of their own
    (
        table("Task | Rate | 95% interval", *(f"t{i} | 50.0% | [20.0%, 80.0%]" for i in range(4)), "t | 90.0% | [20.0%, 80.0%]"),
        table("Task | Rate | 95% interval", *(f"t{i} | 50.0% | [20.0%, 80.0%]" for i in range(4)), "t | 70.0% | [20.0%, 80.0%]"),
    ),
    # changes
    (
        table(CHANGES, "a | 19.1% | 13.0% | −6.1 points", "b | 7.0% | 5.2% | −1.7 points", "c | 0% | 1.7% | +7.1 points"),
        table(CHANGES, "a | 19.1% | 13.0% | −6.1 points", "b | 7.0% | 5.2% | −1.7 points", "c | 0% | 1.7% | +1.7 points"),
    ),
    # orders
    (
        table("Rank | Mode | Lost", "1 | a | 9.1", "2 | b | 7.0", "3 | c | 8.0", "4 | d | 3.0", "5 | e | 2.0", "6 | f | 1.0", before="Ranked by lost."),
        table("Rank | Mode | Lost", "1 | a | 9.1", "2 | b | 8.0", "3 | c | 7.0", "4 | d | 3.0", "5 | e | 2.0", "6 | f | 1.0", before="Ranked by lost."),
    ),
    # words about a table
    (
        table("Mode | Lost", "a b | 4.2 points", "c d | 10.8 points", after="The largest failure mode is a b (BI): 4.2 points."),
        table("Mode | Lost", "a b | 4.2 points", "c d | 10.8 points", after="The largest failure mode is c d (BI): 10.8 points."),
    ),
    (
        table("Mode | Lost", "A b | 4.2 points", "C d | 10.8 points", after="A b (BI) is the largest failure mode: 4.2 points."),
        table("Mode | Lost", "A b | 4.2 points", "C d | 10.8 points", after="C d (BI) is the largest failure mode: 10.8 points."),
    ),
    (
        table("Model | Pass rate", "x-1.5 | 41%", "y-2 | 45%", after="The best model is x-1.5, with 41%."),
        table("Model | Pass rate", "x-1.5 | 41%", "y-2 | 45%", after="The best model is y-2, with 45%."),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("false", "true"), FALSE_AND_TRUE)
def test_a_false_table_is_contradicted_and_its_twin_is_supported(false: str, true: str) -> None:
    wrong = contradicted(false)
    assert wrong, found(false)
    assert all(one.expected and one.why for one in wrong)
    assert not contradicted(true)
    assert supported(true)


LOOKS_FALSE = [
    table("Cause | n", *COUNTS, "Mean | 4"),
    table("Cause | n", *COUNTS, "Max | 5"),
    table("Cause | n", *COUNTS, "… | …", "Total | 40"),
    table("Cause | n", *COUNTS, "and 12 more | –", "Total | 40"),
    table("Cause | n", *COUNTS, "Total | 40", before="The top three causes:"),
    table("Cause | Tasks", *COUNTS, "Total | 10", before="A task may be counted under several causes."),
    table("Slice | Score", "a | 40%", "b | 60%", "c | 20%", "Overall | 41%"),
    table("Slice | Pass rate", "a | 40%", "b | 60%", "c | 20%", "Total | 41%"),
    table("Slice | Value", "a | 0.40", "b | 0.60", "c | 0.20", "Overall | 0.41"),
    table("Mode | Lost", "a | 3.3 points", "b | 3.3 points", "c | 3.3 points", "Sum | 10.0 points"),
    table("Mode | Lost", "a | 3.0 points", "b | <0.1 points", "c | – ", "Sum | 3.1 points"),
    table("Country | Umsatz", "a | 1.234", "b | 999", "c | 2.001", "Sum | 4.234"),
    table("Day | n | Share", "1 | 3 | 30%", "2 | 4 | 41%", "3 | 9 | 12%"),  # of what is not told
    table("Task | Lost | Share of loss", "a | 3 | 60%", "b | 1 | 20%"),  # a list may be cut
    table("Model | Rate | 95% interval", "a | 0.5 | [3.0, 9.1]", "b | 0.2 | [1.0, 2.0]", "c | 0.1 | [4.0, 5.0]"),
    table("Mean over tasks | Baseline | Candidate | Change", "x | 69,130 | 61,401 | −7,728", "y | 5 | 9 | +4", "z | 1 | 7 | +6"),
    table("Task | Lost", "a | 9", "b | 7", "c | 8", "d | 3", before="Ranked by lost points per hour."),
    table("Mode | Lost", "a b | 4.2 points", "undetermined | 10.8 points", after="The largest failure mode is a b: 4.2 points."),
    table("Mode | Lost", "a b | 4.2 points", "c d | 10.8 points", after="The second largest mode is a b: 4.2 points."),
    table("Model | Latency", "x | 41", "y | 45", after="The best model is x, with 41."),
    table("Mode | Lost", "a b | 4.2 points | 7", "c d", "Sum | 99.0 points"),  # broken
    "| a | b\n|---\n| Total | 5 | 6 | 7\nno table\n| Sum |\n",
]  # fmt: skip


@pytest.mark.parametrize("text", LOOKS_FALSE)
def test_a_table_that_only_looks_false_is_left_alone(text: str) -> None:
    assert not contradicted(text)


@pytest.mark.parametrize(("false", "true"), FALSE_AND_TRUE)
def test_line_ends_and_markup_change_nothing(false: str, true: str) -> None:
    for text in (false, true):
        told = [(one.verdict, one.line, one.found) for one in found(text)]
        windows = [(one.verdict, one.line, one.found) for one in found(text.replace("\n", "\r\n"))]
        marked = text.replace("| a |", "| <b>a</b> |")
        assert windows == told
        assert len(contradicted(marked)) == len(contradicted(text))


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.floats(0, 500), min_size=2, max_size=12), st.integers(0, 3), st.sampled_from(["", "%", " points"])
)  # fmt: skip
def test_a_correctly_rounded_table_is_never_contradicted(values: list[float], digits: int, unit: str) -> None:
    total = sum(values)
    assume(total > 0)  # of nothing there are no shares
    rows = [
        f"row {chr(97 + at)} | {value:,.{digits}f}{unit} | {100 * value / total:.1f}%"
        for at, value in enumerate(values)
    ]
    text = table("Mode | Lost | Share of loss", *rows, f"Sum | {total:,.{digits}f}{unit} | 100%")
    # Whole numbers without a unit are counts, and counts add up exactly.
    if digits or unit:
        assert not contradicted(text)


@settings(max_examples=80, deadline=None)
@given(st.lists(st.integers(0, 400), min_size=3, max_size=10), st.integers(0, 2))
def test_correct_counts_shares_and_totals_are_never_contradicted(counts: list[int], digits: int) -> None:
    total = sum(counts)
    if not total:
        return
    rows = [f"row {chr(97 + at)} | {n:,} | {100 * n / total:.{digits}f}%" for at, n in enumerate(counts)]
    text = table(f"Cause | Rows | Share of {total:,}", *rows, f"**Total** | **{total:,}** | 100%")
    assert not contradicted(text)
    assert supported(text)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 5_000), st.data(), st.integers(0, 3))
def test_a_correct_percentage_is_supported_and_a_wrong_one_is_not(
    whole: int, data: st.DataObject, digits: int
) -> None:
    part = data.draw(st.integers(0, whole))
    exact = 100 * part / whole
    assert not contradicted(f"It holds in {part:,} of {whole:,} rows ({exact:.{digits}f}%).")
    assert contradicted(f"It holds in {part:,} of {whole:,} rows ({exact + 2:.{digits}f}%).")
