"""Turn a contrast into a sentence, and two rollouts into quotes of where they differ."""

from __future__ import annotations

import math
from collections.abc import Callable

from blade.align import counterpart
from blade.contrast.features import ORDER, shown
from blade.events import at_step
from blade.model import Episode, Evidence
from blade.stats import MantelHaenszel

__all__ = ["Evidence", "Quotes", "of_borrowed", "of_run", "of_task", "quoted_pair"]


def _percent(share: float) -> str:
    return f"{share:.0%}"


def _kind(kind: int, with_failing: bool) -> str:
    if kind == ORDER:
        return "An order that goes with failing" if with_failing else "An order that goes with passing"
    return "Goes with failing" if with_failing else "A step that failing rollouts leave out"


def of_run(
    feature: str, kind: int, in_fail: float, in_pass: float, n_tasks: int, odds: MantelHaenszel
) -> str:
    """A sentence on a feature over all tasks that both pass and fail; `odds` are those of its bad side."""
    head = _kind(kind, in_fail > in_pass)
    text = (
        f"{head}: a failing rollout {feature} in {_percent(in_fail)} of cases, a passing one of the same "
        f"task in {_percent(in_pass)} (over {n_tasks} tasks in which repeats differ in this)"
    )
    if odds.odds_ratio is None or odds.low is None or odds.high is None:
        return f"{text}."
    which = "with it" if in_fail > in_pass else "without it"
    if not math.isfinite(odds.odds_ratio):
        return f"{text}; the odds of failing are higher {which} (95% interval from {_times(odds.low)} times)."
    return (
        f"{text}; the odds of failing are {_times(odds.odds_ratio)} times as high {which} "
        f"(95% interval {_times(odds.low)} to {_times(odds.high)})."
    )


def _times(ratio: float) -> str:
    return f"{ratio:.0f}" if ratio >= 10 else f"{ratio:.2g}"


def of_task(
    feature: str, kind: int, in_fail: float, in_pass: float, n_fail: int, n_pass: int, ground: str
) -> str:
    """A sentence on a feature within one task; `ground` says what keeps it from being chance."""
    why = {
        "run": "the same holds over all tasks of the run",
        "own": "among so many repeats shuffled outcomes seldom give any feature as telling",
    }[ground]
    return (
        f"{_kind(kind, in_fail > in_pass)}: a failing repeat {feature} in {_counted(in_fail, n_fail)} cases, "
        f"a passing one in {_counted(in_pass, n_pass)}; {why}."
    )


def of_borrowed(
    feature: str, in_fail: float, in_pass: float, n_fail: int, n_pass: int, other_run: str
) -> str:
    """A sentence on a task that never passes here, beside the passes of another run."""
    return (
        f"Beside the passes of another run, {other_run}, on the same task: a failing rollout here {feature} "
        f"in {_counted(in_fail, n_fail)} cases, a pass there in {_counted(in_pass, n_pass)}. "
        "The runs may differ in more than this."
    )


def _counted(share: float, n: int) -> str:
    return f"{round(share * n)} of {n}"


class Quotes:
    """Opens rows again to quote them, as long as there is leave to open any."""

    def __init__(self, opener: Callable[[int], Episode], leave: int) -> None:
        self._opener, self._leave = opener, leave
        self._open: dict[int, Episode] = {}

    def _episode(self, position: int) -> Episode | None:
        if position not in self._open and len(self._open) < self._leave:
            self._open[position] = self._opener(position)
        return self._open.get(position)

    def of(self, feature: str, failing: int, passing: int, *, failing_shows: bool) -> tuple[Evidence, ...]:
        """Where one side shows the feature, and what the other does there; the failing side first."""
        one, other = self._episode(failing), self._episode(passing)
        if one is None or other is None:
            return ()
        return quoted_pair(feature, one, other, failing_shows=failing_shows)


def quoted_pair(
    feature: str, failing: Episode, passing: Episode, *, failing_shows: bool
) -> tuple[Evidence, ...]:
    """Where one side shows the feature, and what the other does there; the failing side first."""
    showing, other = (failing, passing) if failing_shows else (passing, failing)
    place = shown(showing).get(feature)
    if place is None:
        return ()
    instead = counterpart(other, showing, place.step)
    quotes = [at_step(showing, place.step), at_step(other, instead) if instead is not None else None]
    if not failing_shows:
        quotes.reverse()
    return tuple(quote for quote in quotes if quote is not None)
