"""Turn the passing rollouts of a task into what they have in common, one rollout left out.

A rule that compares with passing rollouts counts those of the whole task, the compared one included. If it
asked for as many others instead, it could fire on a failing rollout of a task where it could not fire on a
passing one, and would look like a cause for that alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence

from blade import events
from blade.model import Episode, TaskTraces

_NEAR = 20  # calls on either side of a missing one that say where it belongs


def passing(task: TaskTraces) -> list[Episode]:
    """The rollouts of a task that pass."""
    return [episode for episode in task.episodes if episode.passed]


class Tally:
    """How many passing rollouts of a task show each feature."""

    def __init__(self, task: TaskTraces, features: Callable[[Episode], Iterable[Hashable]]) -> None:
        self._of = {episode.position: frozenset(features(episode)) for episode in task.episodes}
        passed = passing(task)
        self.n = len(passed)
        self._count = Counter(feature for one in passed for feature in self._of[one.position])

    def of(self, episode: Episode) -> frozenset[Hashable]:
        """What a rollout itself shows."""
        return self._of[episode.position]

    def others(self, episode: Episode) -> int:
        """How many passing rollouts there are beside this one."""
        return self.n - bool(episode.passed)

    def count(self, episode: Episode, feature: Hashable) -> int:
        """How many of these show a feature."""
        return self._count[feature] - (bool(episode.passed) and feature in self._of[episode.position])

    def in_all(self, episode: Episode) -> list[Hashable]:
        """What every passing rollout beside this one shows; nothing if there is none."""
        n = self.others(episode)
        return [one for one in self._count if n and self.count(episode, one) == n]


def tools_called(episode: Episode) -> set[str]:
    """The tools a rollout calls."""
    return {call.tool for call in episode.calls}


def neighbours(sequences: Sequence[list[str]], tool: str) -> tuple[list[str], list[str]]:
    """What stands before and after the first call of a tool, the nearest and commonest first."""
    before: Counter[str] = Counter()
    after: Counter[str] = Counter()
    for names in sequences:
        if tool in names:
            at = names.index(tool)
            for near, found in ((names[:at][: -_NEAR - 1 : -1], before), (names[at + 1 :][:_NEAR], after)):
                found.update({name: _NEAR - rank for rank, name in reversed(list(enumerate(near)))})
    return _by_count(before), _by_count(after)


def _by_count(found: Counter[str]) -> list[str]:
    return sorted(found, key=lambda name: (-found[name], name))


def place_of(episode: Episode, before: Iterable[str], after: Iterable[str]) -> int | None:
    """The step before which a missing call belongs: what follows it elsewhere, the first write, the end."""
    first: dict[str, int] = {}
    for call in episode.calls:
        first.setdefault(call.tool, call.step)
    earliest = next((first[name] for name in before if name in first), -1)
    later = [call for call in episode.calls if call.step > earliest]
    for name in after:
        for call in later:
            if call.tool == name:
                return call.step
    writes = [call.step for call in later if call.does == events.WRITE]
    return writes[0] if writes else end_of(episode)


def end_of(episode: Episode) -> int | None:
    """The step with which a rollout ends: its final message, else the last step that says something."""
    if episode.final_step is not None:
        return episode.final_step
    for step in reversed(episode.trace.steps):
        if step.kind not in ("user", "system") and events.step_text(step):
            return step.index
    return None
