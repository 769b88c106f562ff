"""Turn the actions a task expects into the step at which a rollout leaves them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from blade import events
from blade.align import counterpart, end_step
from blade.locate.vote import Candidate
from blade.model import Call, Episode, TaskTraces

MAX_ACTIONS = 200  # of a task that are compared
_SHOWN = 60

Wanted = tuple[str, Any, str]  # tool, arguments, key; a call without arguments leaves them open


class Expected:
    """What a task expects to be done, and where its passing rollouts do it."""

    def __init__(self, task: TaskTraces) -> None:
        self._wanted: list[Wanted] = []
        for tool, arguments in task.gold.actions[:MAX_ACTIONS]:
            told = arguments if arguments is not None else {}
            self._wanted.append((tool, told, f"{tool} {events.canonical(told)}"))
        self._does: dict[str, str] = {}
        self._made: dict[str, tuple[Episode, int]] = {}  # by key and by tool: a passer and its step
        for episode in task.episodes if self._wanted else ():
            for call in episode.calls:
                self._does.setdefault(call.tool, call.does)
                if episode.passed and not call.failed:
                    self._made.setdefault(call.key, (episode, call.step))
                    self._made.setdefault(call.tool, (episode, call.step))

    def against(self, episode: Episode) -> list[Candidate]:
        """The first writing call that is not expected, else the first expected one that is missing."""
        if not self._wanted:
            return []
        left = list(self._wanted)
        odd: list[Call] = []
        for call in episode.calls:
            at = next((at for at, wanted in enumerate(left) if _is(call, wanted)), None)
            if at is not None and not call.failed:
                left.pop(at)
            elif at is None and call.does == events.WRITE:
                odd.append(call)
        # a write that failed has changed nothing: it counts only where no other write is off
        first = next((call for call in odd if not call.failed), odd[0] if odd else None)
        if first is not None:
            return [Candidate(first.step, "expected_action", _difference(first, left), first.step)]
        missing = self._missing(episode, left)
        return [missing] if missing is not None else []

    def _missing(self, episode: Episode, left: Sequence[Wanted]) -> Candidate | None:
        """The first missing action, where passing repeats take it; else where the rollout ends."""
        writes = [wanted for wanted in left if self._writes(episode, wanted)]
        # which reads are needed is a matter of taste as long as what is written is right
        reads = left if not any(self._writes(episode, wanted) for wanted in self._wanted) else ()
        wanted = next(iter(writes or reads), None)
        if wanted is None:
            return None
        passer, place = self._made.get(wanted[2] if wanted[1] else wanted[0], (None, -1))
        step = counterpart(episode, passer, place) if passer is not None else None
        if step is not None:
            reason = f"does not call {wanted[0]} as expected; passing repeats do here"
            return Candidate(step, "expected_action", reason)
        end = end_step(episode)
        if end is None:
            return None
        return Candidate(end, "expected_action", f"ends without the expected {wanted[0]}")

    def _writes(self, episode: Episode, wanted: Wanted) -> bool:
        tool, arguments, _ = wanted
        if tool not in self._does:
            self._does[tool] = events.what_it_does(tool, arguments, episode.tools.get(tool), {})
        return self._does[tool] == events.WRITE


def _is(call: Call, wanted: Wanted) -> bool:
    return call.key == wanted[2] or (not wanted[1] and call.tool == wanted[0])


def _difference(call: Call, left: Sequence[Wanted]) -> str:
    alike = [arguments for tool, arguments, _ in left if tool == call.tool]
    if not alike:
        return f"writes with {call.tool}, which is not among the expected actions left"
    if not isinstance(call.arguments, Mapping):
        return f"calls {call.tool} with arguments that are no object"
    made = call.arguments
    fields = min((_fields(made, wanted) for wanted in alike), key=len)
    return f"calls {call.tool} with another {', '.join(fields[:3])} than expected"


def _fields(made: Mapping[str, Any], wanted: Any) -> list[str]:
    """Fields that differ, with both values."""
    if not isinstance(wanted, Mapping):
        return ["argument"]
    absent = object()
    names = sorted({*made, *wanted})
    return [
        f"{name} ({_value(made, name)} for {_value(wanted, name)})"
        for name in names
        if made.get(name, absent) != wanted.get(name, absent)
    ] or ["argument"]


def _value(some: Mapping[str, Any], name: str) -> str:
    if name not in some:
        return "nothing"
    text = events.compact(some[name])
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
