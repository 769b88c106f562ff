"""Quotations that stand in another place than they are said to: wrong, but not made up."""

from __future__ import annotations

from pathlib import Path

import pytest

from blade.package.judge.score import Bench, Judged, judged
from blade.package.judge.sources import Case
from tests.package.court import seat_of


@pytest.fixture
def court(made: Path, cache: Path) -> tuple[Case, Bench, Judged]:
    return seat_of(made)


def test_a_true_quotation_at_another_place_is_wrong_and_not_made_up(
    court: tuple[Case, Bench, Judged],
) -> None:
    case, seat, golden = court
    rows = seat.world.rows
    last = next(
        (trace.rollout, step)
        for trace in rows.each(rows.runs[0])
        for step in trace.steps[1:]
        if step.text and "\n" not in step.text and 30 < len(step.text) < 200 and '"' not in step.text
    )
    rollout, step = last
    place = f"{rollout.task}/{rollout.repeat}"
    beside = f"\n\nIn task `{place}`, step 0, we read “{step.text}”.\n"
    block = f"\n\nTask `{place}`, step 0:\n\n```\n{step.text}\n```\n"
    for text in (beside, block):
        told = judged(case.golden + text, seat)
        assert told.gates["fabricated"] == 1
        assert told.counts["contradicted"] == golden.counts["contradicted"] + 1
        assert not any("no rollout has" in problem for problem in told.problems)
    invented = judged(
        case.golden + beside.replace(step.text, "Nobody has ever said these words at all"), seat
    )
    assert invented.gates["fabricated"] == pytest.approx(0.7)
    assert "no rollout has: Nobody has ever said these words at all" in invented.problems
