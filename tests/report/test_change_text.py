"""A comparison on one screen of a terminal."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace
from rich.cells import cell_len

from blade.model import Report
from blade.report import text
from blade.report.change.text import compare_text

from . import changed
from .test_text import assert_one_screen


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
    assert_one_screen(text.render(report))


def test_the_screen_says_verdicts_movers_bridge_limits_and_what_to_do_next() -> None:
    said = " ".join(compare_text(changed.pair_report()).split())
    for part in (
        "Change +21.9 points of pass@1: 50.0% → 71.9%, 8 tasks in common",
        "These tasks IMPROVED +21.9 points [+2.7, +41.0 points]; exact stratified permutation, p = 0.04; n = 8 tasks",
        "New tasks INCONCLUSIVE +21.9 points [−16.4, +60.2 points]; paired t, p = 0.29;",
        "smallest detectable effect 53.6 points",
        "Margin ±3.0 points",
        "Resolve 16 repeats per task in each run (now 4), or 140 more tasks",
        "1. [mechanical] request timed out gave 8.8 points",
        "request timed out +8.8, wrong arg field +10.9, never calls get_order +6.6, no mode found −4.4 = +21.9 points",
        "Not separable: model, max_output_tokens",
        "Churn 40.6 points: 4 up, 1 down of 8 tasks; one model against itself 8.0 to 24.0, so beyond noise (p = 0.02)",
        "Read next blade show runs/airline.jsonl 5",
    ):
        assert part in said


def test_the_ending_survives_however_much_there_is_to_say() -> None:
    report = MAKERS["long"]()
    said = compare_text(report)
    assert "Read next" in said
    assert "Churn" in said
    assert "more claims in the report" in said


def test_several_candidates_have_a_line_each_and_the_rest_is_counted() -> None:
    said = compare_text(changed.many_report())
    assert "3 candidates against base (50.0% pass@1)" in said
    assert "step-1      71.9%  +21.9 [−16.4, +60.2]  improved      inconclusive   0.40  8" in said
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
