"""Lay out the rollout in focus: every step where that fits, else windows around the suspects."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator

from blade import events, hostile, number_format
from blade.agent.dossier import budget
from blade.agent.dossier.budget import Page, Part, price
from blade.agent.dossier.case import Case
from blade.model import Call, Step

KINDS = frozenset("message user system reasoning call result other".split())


def head(step: Step, calls: dict[int, Call], mark: str = "") -> str:
    """Head a step in our words: `[12] call, failed`."""
    kind = step.kind if step.kind in KINDS else "other"
    call = calls.get(step.index)
    failed = call.failed if call is not None else step.failed
    unanswered = step.kind == "call" and step.answered is False
    words = f"[{step.index}]{mark} {kind}"
    return f"{words}{', failed' if failed else ''}{', never answered' if unanswered else ''}"


def text(step: Step) -> str:
    """Give what a step says, the tool of a call first."""
    words = events.step_text(step)
    if step.kind == "call":
        tool = hostile.line(step.tool or "", 80)
        return f"{tool} {words}" if words != tool else tool
    return words


def brief(step: Step, calls: dict[int, Call], room: int, mark: str = "", around: str = "") -> list[str]:
    """Lay a step out in one line."""
    return [budget.behind(head(step, calls, mark), text(step), room, around)]


def full(step: Step, calls: dict[int, Call], room: int, mark: str = "", around: str = "") -> list[str]:
    """Lay a step out in as many lines as it has, thinking before the text."""
    lines = [head(step, calls, mark)]
    if step.reasoning and step.text:
        lines += budget.block(f"(thinking) {step.reasoning}", room // 3)
        room -= room // 3
    body = budget.block(text(step), room, around)
    if len(lines) == 1 and len(body) == 1:
        return [f"{lines[0]} {body[0]}"]
    return [*lines, *(body or [f"{budget.BAR} (empty)"])]


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
        step, calls = self.steps[index], self.case.calls
        mark = _MARK if index in self.marked else ""
        around = self.case.quotes.get(index, "")
        # results of tools open with much that says little
        room = self.brief if step.kind in ("message", "call", "user") else self.brief * 2 // 3
        if step.kind == "user":  # what was wanted by then: short, and it decides more than it seems to
            room *= 2
        call = calls.get(index)
        if (call is not None and call.does == events.WRITE) or index in self.failed:
            room *= 2
        return [
            lambda: brief(step, calls, room, mark, around),
            lambda: full(step, calls, self.full, mark, around),
            lambda: full(step, calls, self.long, mark, around),
        ]

    def _gaps(self, index: int) -> int:
        """Count what showing a step costs or saves in lines that say what is left out."""
        place = bisect_left(self.shown, index)
        before = self.shown[place - 1] if place else -1
        after = self.shown[place] if place < len(self.shown) else len(self.steps)
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
        indices = [step.index for step in last if step.kind in ("message", "reasoning")]
        indices += [step.index for step in last if step.kind == "call"]
        brought = [step.index for step in last if step.kind == "result"]
        return indices + (brought if len(brought) <= _RESULTS else [])

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
        lines: list[str] = []
        place = 0
        for index in [*self.shown, len(self.steps)]:
            if index > place:
                lines.append(left_out(place, index - 1))
            lines += self.parts[index].shown if index in self.parts else []
            place = index + 1
        self.slot.shown = lines


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
    words = f"repeat {repeat}, {case.outcome(repeat)}, {number_format.count(n, 'step')}"
    stars = f"; {_MARK} marks steps that the cause points to" if case.candidates else ""
    return [budget.ours(f"## rollout in focus: {words}{stars}")]
