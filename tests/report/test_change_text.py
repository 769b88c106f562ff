"""A comparison on one screen of a terminal."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace
from rich.cells import cell_len

from blade.model import Checked, Gate, Report
from blade.report import text
from blade.report.change.text import compare_text

from . import changed
from .test_text import assert_fits as fits_the_width


def assert_fits(said: str) -> None:
    assert said.endswith("\n")
    lines = said.rstrip("\n").split("\n")
    assert len(lines) <= 40
    assert max(cell_len(line) for line in lines) <= 100
    assert all(line == line.rstrip() for line in lines)


MAKERS: dict[str, Callable[[], Report]] = {
    "pair": changed.pair_report,
    "large": lambda: changed.pair_report(*changed.large()),
    "many": changed.many_report,
    "sixty": lambda: changed.many_report(n=60),
    "refused": lambda: changed.pair_report(refused="no task in common " * 60, delta=None),
    "identical": lambda: changed.pair_report(identical=True),
    "long": lambda: changed.pair_report(
        movers=tuple(replace(one, text="漢字 " * 200) for one in changed.pair_report().comparisons[0].movers * 5),
        notes=("word " * 300,) * 9, missing_run="word " * 300,
    ),
    "gated": lambda: replace(changed.pair_report(), gate=changed.make_gate(str), series=changed.make_series(["a", "b"], str)),
    "none": lambda: replace(changed.pair_report(), comparisons=()),
}  # fmt: skip


@pytest.mark.parametrize("name", list(MAKERS))
def test_everything_fits_one_screen(name: str) -> None:
    report = MAKERS[name]()
    assert_fits(compare_text(report))
    assert compare_text(report) == compare_text(report)
    fits_the_width(text.render(report))


def test_the_screen_says_verdicts_movers_bridge_limits_and_what_to_do_next() -> None:
    said = " ".join(compare_text(changed.pair_report()).split())
    for part in (
        "Change +21.9 points of pass@1: 50.0% → 71.9%, 8 tasks in common",
        "These tasks IMPROVED +21.9 points, 95% CI [+2.7, +41.0 points]; exact stratified permutation, p = 0.04; n = 8 tasks",
        "New tasks INCONCLUSIVE +21.9 points, 95% CI [−16.4, +60.2 points]; paired t, p = 0.29;",
        "smallest detectable effect 53.6 points",
        "Margin ±3.0 points (--margin): changes within it count as equivalent",
        "Of the 7 failing rollouts of base 5 also time out. blade show runs/airline.jsonl 5/0",
        "Resolve 16 repeats per task in each run (now 4), or 140 more tasks",
        "1. [mechanical] request timed out (infrastructure) accounts for +8.8 points, 95% CI [",
        "request timed out +8.8, calls with a wrong argument +10.9, never calls `get_order` +6.6, no mode found −4.4 = +21.9 points",
        "Not separable: model, max_output_tokens",
        "Churn 40.6 points: 4 up, 1 down of 8 tasks; two runs of one model would differ by 8.0 to 24.0, so beyond noise (p = 0.02)",
        "Read next blade show runs/airline.jsonl 5",
    ):
        assert part in said


def test_the_ending_survives_however_much_there_is_to_say() -> None:
    report = MAKERS["long"]()
    said = compare_text(report)
    assert "Churn" in said
    assert "more claims in the report" in said
    assert "8 more notes in the report" in said
    assert "Read next" not in said


def test_several_candidates_have_a_line_each_and_the_rest_is_counted() -> None:
    said = compare_text(changed.many_report())
    assert "3 candidates against base (50.0% pass@1)" in said
    assert "step-1     71.9%  +21.9 [−16.4, +60.2]  improved      inconclusive   0.40  8" in said
    assert "step-3: not compared: the runs have no task in common" in said
    assert "Gate         FAIL: 3 checks, 1 not passed, 1 waived" in said
    assert "more candidates in the report" in compare_text(changed.many_report(n=60))


def test_a_diagnosis_prints_the_verdicts_of_its_pairs() -> None:
    said = " ".join(text.render(changed.pair_report()).split())
    assert (
        "cand against base: improved on these tasks, inconclusive for new ones; +21.9 points [−16.4, +60.2 points], n = 8 tasks"
        in said
    )
    assert "pairs the tasks" not in said


def test_candidates_that_share_a_long_start_stay_apart() -> None:
    def word(text: str) -> str:
        return f"codellama-7b_output[_ng_rollout_index={text[5:]}]" if text.startswith("step-") else text

    said = compare_text(changed.many_report(word, n=9))
    assert_fits(said)
    rows = [
        line.split("  ")[0] for line in said.splitlines() if line.startswith("codellama") and "  " in line
    ]
    claims = [
        line.split(": ")[0] for line in said.splitlines() if line.startswith("codellama") and ": " in line
    ]
    assert (len(set(rows)), len(set(claims))) == (9, 9)


REASON = "the change is -8.6 points, and the one-sided 95% bound of the drop, 12.4 points, is more than the 2.0 allowed"
OPEN = ("INCONCLUSIVE", "FAIL", "PASS", "FAIL", "INCONCLUSIVE", "FAIL")


def gate(verdicts: tuple[str, ...]) -> Gate:
    checks = (Checked("cand", f"m{at}", "critical", word, REASON) for at, word in enumerate(verdicts))
    return Gate("policy.toml", "FAIL", tuple(checks))


@pytest.mark.parametrize("refused", [None, "the runs have no task in common"])
def test_every_check_that_fails_is_told_with_its_reason(refused: str | None) -> None:
    said = compare_text(replace(changed.pair_report(refused=refused), gate=gate(OPEN)))
    assert_fits(said)
    flat = " ".join(said.split())
    assert "Gate FAIL: 6 checks, 5 not passed" in flat
    whole = REASON.replace("-8.6", "−8.6")
    for at in (1, 3, 5):
        assert f"FAIL m{at}: {whole}." in flat.replace("one- sided", "one-sided")
    assert flat.index("FAIL m5") < flat.index("INCONCLUSIVE m0")
    assert "m2" not in flat


def test_checks_without_room_are_counted() -> None:
    said = compare_text(replace(changed.pair_report(), gate=gate(OPEN * 20)))
    assert_fits(said)
    assert "more checks not passed, in the report" in said


def test_notes_are_told_to_their_end() -> None:
    note = "the repeats of the baseline were " + "counted and " * 20 + "of 165 tasks 36 flipped"
    said = compare_text(changed.pair_report(notes=(note,)))
    assert_fits(said)
    assert "of 165 tasks 36 flipped." in " ".join(said.split())


def test_a_change_below_the_margin_is_marked() -> None:
    report = changed.pair_report(tests=changed.small(), verdicts=("regressed", "inconclusive"))
    assert "REGRESSED     by less than the margin: −1.2 points, 95% CI [" in compare_text(report)
    several = replace(report, comparisons=report.comparisons * 2)
    assert "regressed*" in compare_text(several)
    assert "* by less than the margin." in compare_text(several)
    larger = replace(report, comparisons=changed.pair_report().comparisons * 2)
    assert "*" not in compare_text(larger)
