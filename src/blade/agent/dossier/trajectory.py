"""Lay out the rollout in focus: every step where that fits, else windows around the suspects."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable

from blade import events, hostile, number_format, rollout_text
from blade.agent.dossier import budget
from blade.agent.dossier.budget import Page, Part, price
from blade.agent.dossier.case import Case
from blade.model import Call, Step

KINDS = frozenset("message user system reasoning call result other".split())
_MARK = "*"  # beside steps that the cause points to
_MOST = 400  # steps that are considered for the outline
_MISSES = 6
_RESULTS = 6  # of a rollout that are read at length where nothing is proposed
_NEAR = 3  # steps around a candidate that come before all others


def head(step: Step, calls: dict[int, Call], mark: str = "") -> str:
    """Head a step in our words: `[12] call, failed`."""
    call = calls.get(step.index)
    failed = call.failed if call is not None else step.failed
    kind = step.kind if step.kind in KINDS else "other"
    return ", ".join([f"[{step.index}]{mark} {kind}", *rollout_text.states(step.answered, failed)])


def text(step: Step) -> str:
    """Give what a step says, the tool of a call first."""
    words = events.step_text(step)
    if step.kind == "call":
        tool = hostile.line(step.tool or "", 80)
        return f"{tool} {words}" if words != tool else tool
    return words


class Trajectory:
    """Lay the steps of a rollout out as parts of a page, and say what is left out between them."""

    def __init__(self, page: Page, case: Case, scale: float) -> None:
        self.page, self.case, self.scale = page, case, scale
        self.steps = case.focus.steps if case.focus is not None else ()
        self.parts: dict[int, Part] = {}
        self.shown: list[int] = []  # in order
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
        step, call, quotes = self.steps[index], self.case.calls.get(index), self.case.quotes
        title = head(step, self.case.calls, _MARK if index in quotes else "")
        around = quotes.get(index, "")
        # results of tools open with much that says little
        room = int(32 * self.scale)
        room = room if step.kind in ("message", "call", "user") else room * 2 // 3
        if step.kind == "user":  # what was wanted by then: short, and it decides more than it seems to
            room *= 2
        if (call is not None and call.does == events.WRITE) or index in self.failed:
            room *= 2

        def full(size: int) -> list[str]:
            """As many lines as the step has, thinking before the text."""
            lines = [title]
            if step.reasoning and step.text:
                lines += budget.block(f"(thinking) {step.reasoning}", size // 3)
                size -= size // 3
            body = budget.block(text(step), size, around)
            if len(lines) == 1 and len(body) == 1:
                return [f"{title} {body[0]}"]
            return [*lines, *(body or [f"{budget.BAR} (empty)"])]

        return [
            lambda: [budget.behind(title, text(step), room, around)],
            lambda: full(int(170 * self.scale)),
            lambda: full(int(500 * self.scale)),
        ]

    def _gaps(self, index: int) -> int:
        """Count what showing a step costs or saves in lines that say what is left out."""
        place = bisect_left(self.shown, index)
        before = self.shown[place - 1] if place else -1
        after = self.shown[place] if place < len(self.shown) else len(self.steps)
        return ((before + 1 < index) + (index + 1 < after) - (before + 1 < after)) * self.gap

    def outline(self) -> list[int]:
        """Order all steps: those near a candidate, the first and the last, then the rest from the end."""
        n, candidates = len(self.steps), self.case.candidates
        near = [c + d for d in range(1, _NEAR + 1) for c in candidates[:3] for d in (d, -d)]
        order = (*candidates, *near, 0, n - 1, 1, n - 2, n - 3, 2, 3, *range(n - 1, max(-1, n - _MOST), -1))
        return [index for index in dict.fromkeys(order) if 0 <= index < n]

    def raise_all(self, order: Iterable[int], level: int) -> None:
        """Show steps in an order until several in a row find no room."""
        misses = 0
        for index in order:
            misses = 0 if self.step(index, level) else misses + 1
            if misses > _MISSES:
                return

    def _last(self, *kinds: str) -> list[int]:
        """The steps of some kinds, from the end."""
        return [step.index for step in self.steps[: -_MOST - 1 : -1] if step.kind in kinds]

    def telling(self) -> list[int]:
        """Choose steps to read at length where nothing is proposed: what the model says and does, from the end."""
        results = self._last("result")
        few = results if len(results) <= _RESULTS else []
        return self._last("message", "reasoning") + self._last("call") + few

    def resting(self) -> list[int]:
        """Order steps that give the context: what a user wanted, results before suspects, then what the model
        said, then all that tools returned."""
        results = {step.index for step in self.steps if step.kind == "result"}
        before = [c - d for d in range(1, 2 * _NEAR + 1) for c in self.case.candidates[:3]]
        order = [step.index for step in self.steps[:_MOST] if step.kind == "user"]
        order += [index for index in before if index in results]
        return list(dict.fromkeys(order + self._last("message", "reasoning") + self._last("result")))

    def finish(self) -> None:
        """Put the lines of the steps, and what is left out between them, into the page."""
        place = 0
        for index in [*self.shown, len(self.steps)]:
            self.slot.shown += [left_out(place, index - 1)] if index > place else []
            self.slot.shown += self.parts[index].shown if index in self.parts else []
            place = index + 1


def left_out(first: int, last: int) -> str:
    """Say which steps are left out, and what shows them."""
    which = f"step {first}" if first == last else f"steps {first}-{last}"
    return f"({which} left out: --steps {first}:{last + 1})"


def title(case: Case) -> list[str]:
    """Name the rollout that is read closely, and what the star means."""
    if case.focus is None:
        return []
    repeat, steps = case.focus.rollout.repeat, number_format.count(len(case.focus.steps), "step")
    stars = f"; {_MARK} marks steps that the cause points to" if case.quotes else ""
    return [budget.ours(f"## rollout in focus: repeat {repeat}, {case.outcome(repeat)}, {steps}{stars}")]
