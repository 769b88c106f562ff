"""Turn where detectors fire into behaviours: causes, style notes, or unproven.

Rollouts are compared within their task: a behaviour of hard tasks is not a cause of their failing. Only where
no task both passes and fails are all rollouts one table, and then the bar is higher.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from blade.detect import DETECTORS
from blade.model import Behaviour, Cause, Judged
from blade.stats import benjamini_hochberg, mantel_haenszel, two_groups

if TYPE_CHECKING:
    from blade.model import Bools

CAUSE, STYLE, UNPROVEN = "cause", "style", "unproven"
ALPHA = 0.05
MANY = 30  # rollouts from which an interval around 1 says that a behaviour is harmless
_FEW = 3  # failing rollouts from which a behaviour that no pass shows can be a cause
_FAILS_ONLY = frozenset({"self_check_pass_verifier_fail"})  # nothing to compare: passes cannot show it


class _Weighed(NamedTuple):
    n_rollouts: int
    n_tasks: int
    in_fail: int
    of_fail: int
    in_pass: int
    of_pass: int
    odds_ratio: float | None
    low: float | None
    high: float | None
    p: float | None
    fisher: float | None  # of all rollouts in one table
    is_pooled: bool  # no task both passes and fails


def behaviours(judged: Judged, fired: Mapping[str, Sequence[int]]) -> list[Behaviour]:
    """One behaviour for each detector that fires on a row that counts, in the order of `fired`."""
    weighed = {}
    for detector, positions in fired.items():
        shown = np.isin(judged.rows, np.asarray(positions, np.int64))
        if shown.any():
            weighed[detector] = _weighed(judged, detector, shown)
            if judged.judged and not weighed[detector].in_fail + weighed[detector].in_pass:
                del weighed[detector]  # it only fires on rows that infrastructure broke
    adjusted = benjamini_hochberg([one.p for one in weighed.values()])
    return [
        _behaviour(judged.run, detector, one, p_adjusted)
        for (detector, one), p_adjusted in zip(weighed.items(), adjusted, strict=True)
    ]


def _weighed(judged: Judged, detector: str, shown: Bools) -> _Weighed:
    n_rollouts, n_tasks = int(shown.sum()), int(np.unique(judged.task[shown]).size)
    if not judged.judged:
        return _Weighed(n_rollouts, n_tasks, 0, 0, 0, 0, None, None, None, None, None, False)
    rule = getattr(DETECTORS.get(detector), "RULE", None)
    is_infrastructure = rule is not None and rule.cause is Cause.INFRASTRUCTURE
    used = np.ones_like(judged.broken) if is_infrastructure else ~judged.broken
    passed, with_it, task = judged.passed[used], shown[used], judged.task[used]
    tables = _tables(passed, with_it, task)
    (in_fail, in_pass), (out_fail, out_pass) = tables.sum(0).tolist()
    counts = n_rollouts, n_tasks, in_fail, in_fail + out_fail, in_pass, in_pass + out_pass
    if detector in _FAILS_ONLY:
        return _Weighed(*counts, None, None, None, None, None, False)
    fisher = two_groups(with_it[~passed], with_it[passed])
    is_pooled = not (tables.sum(1) > 0).all(1).any()
    found = mantel_haenszel(tables.sum(0, keepdims=True) if is_pooled else tables)
    p = fisher if is_pooled else found.p
    return _Weighed(*counts, found.odds_ratio, found.low, found.high, p, fisher, is_pooled)


def _tables(passed: Bools, with_it: Bools, task: np.ndarray[tuple[int], np.dtype[np.int64]]) -> np.ndarray:
    """Per task [[fails with it, passes with it], [fails without, passes without]]."""
    codes = task * 4 + (~with_it) * 2 + passed
    size = int(task.max()) + 1 if task.size else 0
    return np.bincount(codes, minlength=4 * size).reshape(-1, 2, 2)


def _behaviour(run: str, detector: str, one: _Weighed, p_adjusted: float | None) -> Behaviour:
    return Behaviour(
        run=run,
        detector=detector,
        n_rollouts=one.n_rollouts,
        n_tasks=one.n_tasks,
        in_fail=one.in_fail,
        of_fail=one.of_fail,
        in_pass=one.in_pass,
        of_pass=one.of_pass,
        odds_ratio=one.odds_ratio,
        low=one.low,
        high=one.high,
        p=one.p,
        p_adjusted=p_adjusted,
        standing=_standing(one, p_adjusted),
    )


def _standing(one: _Weighed, p_adjusted: float | None) -> str:
    in_fails_alone = (
        one.in_pass == 0 and one.in_fail >= _FEW and one.fisher is not None and one.fisher <= ALPHA
    ) and one.is_pooled
    above = one.odds_ratio is not None and one.odds_ratio > 1 and one.low is not None and one.low > 1
    if above or in_fails_alone:
        return CAUSE if p_adjusted is not None and p_adjusted <= ALPHA else UNPROVEN
    shown = one.in_fail + one.in_pass
    if (
        one.of_pass
        and one.of_fail
        and shown >= MANY
        and one.in_pass * one.of_fail >= one.in_fail * one.of_pass
    ):
        return STYLE
    if one.odds_ratio is None or one.low is None or one.high is None:
        return UNPROVEN
    around_one = one.low <= 1 <= one.high
    # what no pass shows is not harmless, however few tasks do both
    is_harmless = around_one and one.in_pass > 0 and one.in_fail + one.in_pass >= MANY
    return STYLE if one.odds_ratio < 1 or is_harmless else UNPROVEN
