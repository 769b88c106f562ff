"""Turn the calls of a rollout into groups that ask the same and are told the same."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence

from blade import events
from blade.model import Call, Episode

_HEAD, _TAIL = 2000, 500  # characters of a result that are compared
# Only what differs from call to call by nature. Ids and quoted words stay: a status that changed is news.
_VOLATILE = re.compile(
    r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b"
    r"|\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?"
    r"|\b\d\d:\d\d:\d\d(?:\.\d+)?\b|\b0x[0-9a-fA-F]+\b|\b(?:pid|PID)[ =:]+\d+"
    r"|\b\d+(?:\.\d+)? ?(?:ms|s|secs?|seconds)\b"
)


def said(text: str) -> str:
    """What a result says, whatever times, addresses and durations it holds."""
    tail = text[_HEAD:][-_TAIL:]
    size = len(text) // 64 if len(text) > _HEAD + _TAIL else 0
    return f"{size}:{_VOLATILE.sub('*', text[:_HEAD])}{_VOLATILE.sub('*', tail)}"


def epochs(calls: Sequence[Call]) -> list[int]:
    """For each call, how many other writes succeeded before it: after one, to ask again is no repetition."""
    total = 0
    own: Counter[str] = Counter()
    found = []
    for call in calls:
        found.append(total - own[call.key])
        if call.does == events.WRITE and not call.failed:
            total += 1
            own[call.key] += 1
    return found


def turns(episode: Episode) -> list[int]:
    """For each call, how often somebody answered the model before it."""
    spoken = [step.index for step in episode.trace.steps if step.kind == "user"]
    return [bisect_left(spoken, call.step) for call in episode.calls]


def by_action(calls: Sequence[Call], at_least: int) -> list[list[int]]:
    """Places of the calls with one key, for keys called often enough; in order of their first call."""
    groups: dict[str, list[int]] = {}
    for place, call in enumerate(calls):
        groups.setdefault(call.key, []).append(place)
    return [places for places in groups.values() if len(places) >= at_least]


def by_result(calls: Sequence[Call], places: Sequence[int], at_least: int) -> list[list[int]]:
    """The same split by what was answered; a call without an answer belongs nowhere."""
    groups: dict[str, list[int]] = {}
    for place in places:
        if calls[place].result_step is not None:
            groups.setdefault(said(calls[place].output), []).append(place)
    return [found for found in groups.values() if len(found) >= at_least]


def visits(places: Sequence[int], turn: Sequence[int]) -> list[list[int]]:
    """Places in runs: a run ends where another call or a word of the user stands between."""
    runs: list[list[int]] = []
    for place in places:
        if runs and place == runs[-1][-1] + 1 and turn[place] == turn[runs[-1][-1]]:
            runs[-1].append(place)
        else:
            runs.append([place])
    return runs
