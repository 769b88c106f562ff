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

ROOT = Path(__file__).resolve().parents[2]
REPORTS = ROOT / "tests" / "contradictions"


def lines(text: str) -> list[int]:
    return [one.line for one in contradictions(parse(text))]


# (kind, the wrong sentence, what to replace, by what: then it is right)
SENTENCES = [
    ("share", "26 of 29 errors (87.9%) are in one place.", "87.9%", "89.7%"),
    ("share", "412 of 800 rollouts passed, or 55.1%.", "55.1%", "51.5%"),
    ("share", "51.5% of rollouts (421 of 800) passed.", "421", "412"),
    ("share", "412 (51.9%) of the 800 rollouts passed.", "51.9%", "51.5%"),
    ("share", "Of 1,090 failed rollouts, 93.9% (1,042) are mismatches.", "1,042", "1,024"),
    ("share", "The cell says 78/240 (36%).", "36%", "32%"),
    ("share", "28 of 24 tasks pass.", "28", "22"),
    ("difference", "Pass rate rose from 41.2% to 46.0%, a gain of 5.8 points.", "5.8", "4.8"),
    ("difference", "Pass@1 went from 41.2% to 46.0% (+3.8 points).", "+3.8", "+4.8"),
    ("difference", "It improved by 5.8 points, from 41.2% to 46.0%.", "5.8", "4.8"),
    ("difference", "The gap between 46.0% and 41.2% is 5.8 points.", "5.8", "4.8"),
    ("difference", "Run B scores 54.5% and run A 51.5%: +4.0 points.", "+4.0", "+3.0"),
    ("difference", "Failures fell from 412 to 391 (-31).", "-31", "-21"),
    ("difference", "Latency fell from 12.4 s to 9.8 s (-31%).", "-31%", "-21%"),
    ("difference", "Input rose from 108.6k to 121.9k, an increase of 15.3k or 12.2%.", "15.3k", "13.3k"),
    ("difference", "The share rose from 0.412 to 0.460 (+5.8 points).", "+5.8", "+4.8"),
    ("ratio", "It is 3.5x more common (6.6% vs. 2.6%).", "3.5x", "2.5x"),
    ("ratio", "It costs 1.30 times as much, $114.42 against $95.48.", "1.30", "1.20"),
    ("interval", "We measure 42.0% [42.4%, 52.3%] here.", "42.4%", "32.4%"),
    ("interval", "We measure 42.0% (95% CI 52.3–32.4) here.", "52.3–32.4", "32.4–52.3"),
    ("interval", "We measure 42.0% with a 95% CI of 42.4% to 52.3%.", "42.4%", "32.4%"),
    ("interval", "It is 13.6% ± 7.5, i.e. [7.9%, 19.3%].", "7.5", "5.7"),
    ("interval", "It is 22.1% ± 5.4, i.e. [16.7%, 29.5%].", "29.5%", "27.5%"),
    ("partition", "Of 240 rollouts, 151 passed and 79 failed.", "79", "89"),
    ("partition", "There were 24 failures: 12 timeouts, 6 crashes and 4 wrong answers.", "24", "22"),
    ("partition", "12 timeouts, 6 crashes and 4 wrong answers, 24 in all.", "24", "22"),
    ("partition", "The 412 failures split into 301 wrong answers, 90 timeouts and 31 crashes.", "90", "80"),
    ("partition", "There are 640. Of them nothing is lost: 392 of these pass, 148 fail and 90 never ran.", "90", "100"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "wrong", "stated", "right"), SENTENCES)
def test_a_sentence_that_contradicts_itself(kind: str, wrong: str, stated: str, right: str) -> None:
    found = contradictions(parse(f"# Report\n\n{wrong}\n"))
    assert [(one.kind, one.line) for one in found] == [(kind, 3)], found
    assert found[0].why
    assert not lines(f"# Report\n\n{wrong.replace(stated, right)}\n")


def table(*rows: str) -> str:
    header, *body = (f"| {row} |" for row in rows)
    return "\n".join([header, "|" + "---|" * (header.count("|") - 1), *body]) + "\n"


BY_CAUSE = table("Cause | Failures | Share", "Wrong argument | 121 | 31.2%", "Timeout | 97 | 25.0%", "Missing call | 78 | 20.1%",
                 "Early stop | 54 | 13.9%", "Made up | 38 | 9.8%", "Total | 388 | 100%")  # fmt: skip
CROSS = table("Cause | Billing | Shipping | Returns | Total", "Wrong argument | 56 | 38 | 27 | 121", "Timeout | 17 | 68 | 12 | 97",
              "Missing call | 33 | 26 | 19 | 78", "Early stop | 24 | 18 | 12 | 54", "Made up | 15 | 16 | 7 | 38",
              "Total | 145 | 166 | 77 | 388")  # fmt: skip
RATES = table("Domain | Tasks | Passed | Failed | Pass rate", "Billing | 200 | 121 | 79 | 60.5%", "Accounts | 160 | 94 | 66 | 58.8%",
              "Shipping | 180 | 88 | 92 | 48.9%", "All | 540 | 303 | 237 | 56.1%")  # fmt: skip
RUNS = table("Metric | Before | After | Change", "Passed | 412 | 436 | +24", "Pass rate | 51.5% | 54.5% | +3.0 points",
             "Mean tokens | 18,480 | 13,200 | −5,280", "Median latency | 48.2 s | 35.7 s | −12.5 s")  # fmt: skip
INTERVALS = table("Model | Pass rate | 95% interval | p", "a | 58.2% | [52.0%, 64.0%] | 0.03", "b | 48.5% | [42.2%, 54.8%] | 0.41",
                  "c | 37.7% | [31.2%, 43.2%] | <0.001")  # fmt: skip
LIST = "The 54 early stops break down as follows:\n\n- 29 after a tool error (53.7%)\n- 16 after a question (29.6%)\n- 9 without a reason (16.7%)\n"
KEYS = f"# Report on tasks\n\n{RATES}\nText.\n\n## Key figures\n\n" + table(
    "Quantity | Value", "Pass rate, Billing | 60.5%", "Pass rate, Shipping | 48.9%", "Rollouts | 540"
)
ANNOUNCED = f"# Report\n\nDistribution of the cause over the 388 failures:\n\n{BY_CAUSE}"
ENDS = table("Model | pass@1 | low | high", "a | 47.3% | 44.0% | 50.1%", "b | 55.0% | 53.5% | 58.0%", "c | 33.0% | 29.0% | 37.0%")
BARE = table("Cause | hard | medium | easy", "timeout | 12 | 5 | 7", "wrong answer | 30 | 9 | 11", "loop | 4 | 3 | 2") + (
    "\nBy level the failures are:\n\n" + table("Level | Failures", "hard | 46", "medium | 17", "easy | 20")
)  # fmt: skip
BESIDE = f"# Report\n\n{BY_CAUSE}\n## By domain\n\n{CROSS}"

# (kind, a text that is right, what to replace, by what: then it is wrong; the lines that may be named)
PLACES = [
    ("total", BY_CAUSE, "| 388 |", "| 398 |", {8}),
    ("share", BY_CAUSE, "20.1%", "21.0%", {5}),
    ("share", BY_CAUSE, "| 97 |", "| 79 |", {4}),
    ("total", CROSS, "| 68 |", "| 86 |", {4}),
    ("total", CROSS, "| 145 |", "| 154 |", {8}),
    ("total", CROSS, "19 | 78", "19 | 87", {5}),
    ("difference", RATES, "| 94 |", "| 49 |", {4}),
    ("share", RATES, "48.9%", "49.8%", {5}),
    ("share", RATES, "56.1%", "51.6%", {6}),
    ("difference", RUNS, "+3.0 points", "+4.0 points", {4}),
    ("difference", RUNS, "−12.5 s", "−15.2 s", {6}),
    ("difference", RUNS, "13,200", "12,300", {5}),
    ("interval", INTERVALS, "37.7%", "47.7%", {5}),
    ("interval", INTERVALS, "[42.2%, 54.8%]", "[54.8%, 42.2%]", {4}),
    ("share", LIST, "29.6%", "26.9%", {4}),
    ("announced", LIST, "The 54", "The 64", {1}),
    ("announced", ANNOUNCED, "the 388", "the 338", {3}),
    ("repeated", KEYS, "Pass rate, Billing | 60.5%", "Pass rate, Billing | 65.0%", {16}),
    ("interval", ENDS, "55.0%", "52.0%", {4}),
    ("crosstab", BARE, "easy | 20", "easy | 21", {13}),
    ("crosstab", BESIDE, "| 54 | 13.9%", "| 45 | 11.6%", {8, 19}),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "right", "stated", "wrong", "places"), PLACES)
def test_places_that_contradict_each_other(kind: str, right: str, stated: str, wrong: str, places: set[int]) -> None:
    assert right.count(stated) == 1, stated
    assert not lines(right)
    found = contradictions(parse(right.replace(stated, wrong)))
    assert len({one.line for one in found}) == 1, found
    assert found[0].line in places, found
    assert kind in {one.kind for one in found}, found


HONEST = [
    "# Rounding\n\n" + table("Kind | n | Share", "a | 30 | 25.0%", "b | 28 | 23.3%", "c | 24 | 20.0%", "d | 22 | 18.3%", "e | 16 | 13.3%",
                             "Total | 120 | 100%"),
    "# Overlap\n\nA failure can carry more than one label, so the labels do not add up to 254.\n\n"
    + table("Label | n", "tool | 89", "argument | 91", "gave up | 60", "Total | 254"),
    "# Selected\n\nThe largest groups of the 412 failures:\n\n" + table("Cause | n", "a | 200", "b | 120", "c | 60"),
    "# Means\n\n" + table("Domain | Tasks | Mean turns | Pass rate", "a | 10 | 12 | 40.0%", "b | 30 | 15 | 60.0%", "Overall | 40 | 14 | 50.0%"),
    "# Slices\n\n" + table("Slice | Tasks", "easy | 20", "hard | 30", "uses tools | 25", "All | 50"),
    "# Setup\n\n" + table("Parameter | Value", "Tasks | 50", "Repeats | 4", "Turn limit | 40", "Total rollouts | 200"),
    "# Two runs\n\n## Heron\n\n" + table("Domain | Solved", "retail | 81", "airline | 55", "banking | 37", "All | 173")
    + "\n## Kestrel\n\n" + table("Domain | Solved", "retail | 70", "airline | 55", "banking | 37", "All | 162"),
    "# Other columns\n\n" + table("Model | Base", "a | 86.9%", "b | 67.0%", "c | 95.4%")
    + "\n## Defended\n\n" + table("Model | Base", "a | 76.5%", "b | 52.8%", "c | 90.1%"),
    "# Shrunk\n\n" + table("Task | Rate | Shrunk rate", "1 | 75.0% (3/4) | 70.0%", "2 | 50.0% (2/4) | 50.0%", "3 | 25.0% (1/4) | 30.0%",
                           "4 | 50.0% (2/4) | 50.0%"),
    "# Difference\n\n" + table("Id | Pass with | Pass without | Difference, 95% interval", "a | 6.0% | 53.6% | [+31.4 points, +63.8 points]",
                               "b | 61.5% | 73.7% | [−27.6 points, +51.9 points]"),
    "# Ids\n\nIn version 2.3.1 of 14 May 2026, tasks 3, 8 and 12 (seeds 11, 12 and 13) fail at step 4; see Section 3.2 and Table 5.\n",
    "# Prose\n\nAbout 40% of some 200 rollouts (95) pass. It went from 302 tasks (1510 rollouts, n=5) to more than 400.\n",
    "# Prose\n\n58.0 points are lost, 58.0 to the model, 0 to infrastructure, 0 to task or verifier.\n",
    "# Prose\n\nFailing takes longer: from 12.9 to 19.8 steps for a (+6.9), from 13.4 to 18.1 for b (+4.7).\n",
    "# Prose\n\n1,200 faults in 45 reports of 20 data sets were found, 32 of 116 in one and 979 of 1,065 elsewhere (28% v. 92%).\n",
    "# Prose\n\nAnyone who subtracts 67.3% from 74.7% gets 7.4; the unrounded gain is 7.3 points [4.0, 10.7].\n",
    "# Prose\n\nOf 240 rollouts, 151 passed, mostly in the first turn, and 12 timed out.\n",
    "# Prose\n\nThere were 20 tasks, and the interval of 3 to 5 days is too short.\n",
    "# Subjects\n\n- `base`: 2 of 92 rows are scored as failures (89 rows).\n- `base`: 3 of 92 rows are lost; the score is that of 89 rows.\n"
    "- `next`: 45 of 90 rows are scored as failures (45 rows).\n",
    "# Subjects\n\nIn **a**, it failed on 41 tasks (41 tasks).\n\nIn **b**, it failed on 43 tasks (43 tasks).\n\n"
    "In **c**, it failed on 43 tasks (43 tasks).\n",
    "# Parts\n\n10 tasks (20%) always pass, contributing 40 of the 84 passes (47.6%).\n\nThe 10 stable tasks (20%) yield 40 passes, 48% of all 84.\n",
    "# Parts\n\n61 rollouts (30.5%) think; only 16 of those 61 (26.2%) pass, against 68 of the other 139 (48.9%).\n",
    "# Parts\n\n26 tasks (52%) are flaky, 44 of 104 rollouts.\n\n58 rollouts (29%) update a flight; 42 of 104 updates fail (40%).\n",
    "# Parts\n\n24 rollouts (12%) try to book, with 53 calls, 30 of which fail (56.6%), and 1 of 24 passes (4.2%).\n",
    "# Pairs\n\nFailing ones need 42% more turns (14.0 vs 9.9) and 70% more calls (7.04 vs 4.13).\n\n"
    "20 points part short from medium (60.0% vs 39.7%), 14 points medium from long (39.7% vs 25.4%).\n",
    "# Pooled\n\n" + table("Run | Rollouts | Passed | Failed | Rate", "a | 200 | 84 | 116 | 42.0%", "b | 300 | 147 | 153 | 49.0%", "Pooled | 500 | 231 | 269 | 46.2%"),
    "# Rates\n\n" + table("Outcome | think | other | total", "pass | 16 | 68 | 84", "fail | 45 | 71 | 116", "total | 61 | 139 | 200", "pass rate (%) | 26.2 | 48.9 | 42.0"),
    "# Rates\n\n" + table("What | Repeats 0–1 | Repeats 2–3 | Total", "Rollouts | 100 | 100 | 200", "Passed | 43 | 41 | 84", "Failed | 57 | 59 | 116", "Success | 43.0 | 41.0 | 42.0"),
    "# Spread\n\n" + table("Repeat | Passed | Failed | Total", "0 | 21 | 29 | 50", "1 | 22 | 28 | 50", "2 | 20 | 30 | 50", "3 | 21 | 29 | 50", "Total | 84 | 116 | 200",
                             "σ | 0.8 | 0.8 | 0.0", "SD | 0.8 | 0.8 | 0", "Range | 2 | 2 | 0"),
    "# Rank\n\n" + table("Rank | Cause | Failures | Share", "1 | a | 28 | 24.1%", "2 | b | 19 | 16.4%", "3 | c | 18 | 15.5%", "4 | d | 27 | 23.3%", "– | rest | 24 | 20.7%",
                           " | Total | 116 | 100.0%"),
    "# Gap\n\n" + table("Transfer | Passed | Failed | All", "yes | 35 | 13 | 48", "no | 49 | 103 | 152", "Δ | −14 | −90 | −104", "Total | 84 | 116 | 200"),
    "# Prose\n\nFour families are at 0 of 30 (4, 5, 6, 10); 36 were gained and two (7 and 22) lost.\n",
    "# Prose\n\nIn an earlier pilot 13 of 24 rollouts (54%) passed. The mean of the five rates is 58.7%.\n",
]  # fmt: skip


@pytest.mark.parametrize("text", HONEST)
def test_honest_text_is_left_alone(text: str) -> None:
    assert not contradictions(parse(text))


@pytest.mark.parametrize("path", sorted((ROOT / "benchmarks").glob("*/golden_reports/*.md")), ids=lambda path: path.name)
def test_golden_reports_do_not_contradict_themselves(path: Path) -> None:
    assert not contradictions(parse(path.read_text(encoding="utf-8")))


@pytest.mark.skipif(not (REPORTS / "key.toml").exists(), reason="no reports with planted contradictions")
def test_contradictions_that_a_stranger_planted() -> None:
    key = tomllib.loads((REPORTS / "key.toml").read_text(encoding="utf-8"))["planted"]
    hits = 0
    for name in sorted({one["report"] for one in key}):
        planted = [set(one["lines"]) for one in key if one["report"] == name]
        flagged = set(lines((REPORTS / name).read_text(encoding="utf-8")))
        hits += sum(bool(places & flagged) for places in planted)
        assert len(flagged - set().union(*planted)) <= 2
    assert hits >= 0.8 * len(key)


@pytest.mark.parametrize("path", sorted(REPORTS.glob("consistent_*.md")), ids=lambda path: path.name)
def test_the_same_reports_without_them(path: Path) -> None:
    assert not lines(path.read_text(encoding="utf-8"))


NUMBERS = "1 of 2 (3%) |from 1% to 2% |1 + 2 = 3 |12 and 13, |1,|1x|5% |[1, 2] |tasks 1, |1/2/3|1–2 |⟨0n⟩ ٣ |about 5 |(".split("|")


@pytest.mark.parametrize("piece", NUMBERS)
def test_hostile_numbers_cost_little(piece: str) -> None:
    text = piece * (3_000 // len(piece))
    start = time.process_time()
    contradictions(parse(f"# {text}\n\n{text}\n\n| a | b |\n|---|---|\n| {text} | {text} |\n| Total | {text} |\n"))
    assert time.process_time() - start < 5


def test_a_long_report_costs_little() -> None:
    prose = "The run passed 412 of 800 rollouts (51.5%), from 41.2% to 46.0% (+4.8 points).\n\n" * 5_000
    rows = "\n".join(f"| row {number} | {number} | {number * 7 % 90} | {number % 3} |" for number in range(1_500))
    start = time.process_time()
    assert not lines(f"# Long\n\n{prose}\n| n | a | b | c |\n|---|---|---|---|\n{rows}\n")
    assert time.process_time() - start < 20


@given(st.text(alphabet="0123456789 ,.%+-−–/()[]|:=ofto\n", max_size=200))
@settings(max_examples=200, deadline=None)
def test_anything_can_be_checked(text: str) -> None:
    for one in contradictions(parse(f"| a | Total |\n|---|---|\n| x | {text} |\n\n{text}\n")):
        assert one.line in one.lines or one.lines
