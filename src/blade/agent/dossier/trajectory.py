"""Lay out the rollout in focus: every step where that fits, else windows around the suspects."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator

from blade import events, number_format
from blade.agent.dossier import frame, steps
from blade.agent.dossier.budget import Page, Part, price
from blade.agent.dossier.case import Case

_MARK = "*"  # beside steps that the cause points to
_MOST = 400  # steps that are considered for the outline
_MISSES = 6
_RESULTS = 6  # of a rollout that are read at length where nothing is proposed
_NEAR = 3  # steps around a candidate that come before all others


class Trajectory:
    """Lay the steps of a rollout out as parts of a page, and say what is left out between them."""

    def __init__(self, page: Page, case: Case, scale: float) -> None:
        self.page, self.case = page, case
        self.steps = case.focus.steps if case.focus is not None else ()
        self.parts: dict[int, Part] = {}
        self.shown: list[int] = []  # in order
        self.brief, self.full, self.long = int(32 * scale), int(170 * scale), int(500 * scale)
        self.marked = set(case.candidates)
        self.failed = {call.result_step for call in case.calls.values() if call.failed}
        self.slot = page.add()  # the lines of the steps go here
        most = len(self.steps)  # no number of a step is longer
        self.gap = price([left_out(most, most + 1)])
        page.room -= self.gap if self.steps else 0  # at first all of it is left out

    def step(self, index: int, level: int) -> bool:
        """Show a step at a level: 0 one line, 1 in full, 2 at length."""
        if index not in self.parts:
            self.parts[index] = Part(self._levels(index))
        part = self.parts[index]
        is_new = part.level < 0
        if not self.page.raise_to(part, level, self._gaps(index) if is_new else 0):
            return False
        if is_new:
            insort(self.shown, index)
        return True

    def _levels(self, index: int) -> list[Callable[[], list[str]]]:
        step, made = self.steps[index], self.case.calls
        mark = _MARK if index in self.marked else ""
        around = self.case.quotes.get(index, "")
        # results of tools open with much that says little
        brief = self.brief if step.kind in ("message", "call", "user") else self.brief * 2 // 3
        if step.kind == "user":  # what was wanted by then: short, and it decides more than it seems to
            brief *= 2
        call = made.get(index)
        if (call is not None and call.does == events.WRITE) or index in self.failed:
            brief *= 2
        return [
            lambda: steps.brief(step, made, brief, mark, around),
            lambda: steps.full(step, made, self.full, mark, around),
            lambda: steps.full(step, made, self.long, mark, around),
        ]

    def _gaps(self, index: int) -> int:
        """Count what showing a step costs or saves in lines that say what is left out."""
        at = bisect_left(self.shown, index)
        before = self.shown[at - 1] if at else -1
        after = self.shown[at] if at < len(self.shown) else len(self.steps)
        return ((before + 1 < index) + (index + 1 < after) - (before + 1 < after)) * self.gap

    def outline(self) -> Iterator[int]:
        """Yield all steps: those near a candidate, the first and the last, then the rest from the end."""
        n = len(self.steps)
        seen: set[int] = set()
        near = [c + d for d in range(1, _NEAR + 1) for c in self.case.candidates[:3] for d in (d, -d)]
        ends = [0, n - 1, 1, n - 2, n - 3, 2, 3]
        for index in (*self.case.candidates, *near, *ends, *range(n - 1, max(-1, n - _MOST), -1)):
            if 0 <= index < n and index not in seen:
                seen.add(index)
                yield index

    def raise_all(self, order: Iterable[int], level: int) -> None:
        """Show steps in an order until several in a row find no room."""
        misses = 0
        for index in order:
            misses = 0 if self.step(index, level) else misses + 1
            if misses > _MISSES:
                return

    def telling(self) -> list[int]:
        """Choose steps to read at length where nothing is proposed: what the model says and does, from the end."""
        last = self.steps[: -_MOST - 1 : -1]
        said = [step.index for step in last if step.kind in ("message", "reasoning")]
        said += [step.index for step in last if step.kind == "call"]
        brought = [step.index for step in last if step.kind == "result"]
        return said + (brought if len(brought) <= _RESULTS else [])

    def resting(self) -> Iterator[int]:
        """Yield steps that give the context: what a user wanted, results before suspects, then what the model
        said, then all that tools returned."""
        kinds = {step.index: step.kind for step in self.steps}
        seen: set[int] = set()
        before = [c - d for d in range(1, 2 * _NEAR + 1) for c in self.case.candidates[:3]]
        order = [step.index for step in self.steps[:_MOST] if step.kind == "user"]
        order += [index for index in before if kinds.get(index) == "result"]
        last = [step.index for step in self.steps[: -_MOST - 1 : -1]]
        order += [index for index in last if kinds[index] in ("message", "reasoning")]
        order += [index for index in last if kinds[index] == "result"]
        for index in order:
            if index not in seen:
                seen.add(index)
                yield index

    def finish(self) -> None:
        """Put the lines of the steps, and what is left out between them, into the page."""
        found: list[str] = []
        at = 0
        for index in [*self.shown, len(self.steps)]:
            if index > at:
                found.append(left_out(at, index - 1))
            found += self.parts[index].shown if index in self.parts else []
            at = index + 1
        self.slot.shown = found


def left_out(first: int, last: int) -> str:
    """Say which steps are left out, and what shows them."""
    which = f"step {first}" if first == last else f"steps {first}-{last}"
    return f"({which} left out: --steps {first}:{last + 1})"


def title(case: Case) -> list[str]:
    """Name the rollout that is read closely, and what the star means."""
    if case.focus is None:
        return []
    n = len(case.focus.steps)
    repeat = case.focus.rollout.repeat
    said = f"repeat {repeat}, {case.outcome(repeat)}, {number_format.count(n, 'step')}"
    stars = f"; {_MARK} marks steps that the cause points to" if case.candidates else ""
    return [frame.ours(f"## rollout in focus: {said}{stars}")]
