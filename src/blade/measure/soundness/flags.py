"""Raise every flag of one run from what was heard of its tasks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from blade.measure.health import Quote
from blade.measure.soundness import alignment, copies, crashes, order, suspects, verdicts
from blade.measure.soundness.rows import Rows
from blade.measure.soundness.sounding import Sound, Sounding, Suspects
from blade.model import Finding, Judged, Level, Rollouts, Suspicion

_LEVELS = (Level.PROBLEM, Level.WARNING, Level.INFO)


def flags(
    judged: Judged,
    soundings: Iterable[Sounding],
    rollouts: Rollouts,
    quote: Quote | None = None,
    exploits: Mapping[int, Finding] | None = None,
    shared: Suspects | None = None,
) -> Sound:
    """The flags of one run and the tasks in doubt.

    `quote` opens a row for evidence; `exploits` are findings, by position, of rollouts that touch their own
    tests or scoring; `shared` are doubts that several runs together raise.
    """
    rows = Rows(judged, soundings, rollouts, quote, crashes.failed(rollouts))
    found = [
        alignment.misaligned(rows),
        verdicts.nondeterministic(rows),
        verdicts.gold_rejected(rows),
        verdicts.does_nothing(rows),
        crashes.crashed(rows),
        verdicts.exploited(rows, exploits or {}),
        verdicts.unsatisfiable(rows),
        copies.conflicting_gold(rows),
        copies.copied_rows(rows),
        copies.duplicate_prompts(rows),
        copies.leaks(rows),
        order.sorted_repeats(rows),
        order.saturation(rows, judged),
        verdicts.wrong_accepted(rows),
        verdicts.near_miss(rows),
        verdicts.unanimous_wrong(rows),
        verdicts.nothing_expected(rows),
    ]
    parts: list[Mapping[str, tuple[Suspicion, ...]]] = [
        {key: (one,) for key, one in doubted.items()} for _, doubted in found
    ]
    doubts = suspects.merged(*parts, shared or {})
    health = [flag for flag, _ in found if flag is not None] + list(suspects.listed(judged, doubts))
    health.sort(key=lambda flag: _LEVELS.index(flag.level))
    return Sound(tuple(health), doubts)
