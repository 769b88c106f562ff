"""Turn one rollout into what it does, as verb phrases, each with the step that completes it first."""

from __future__ import annotations

from itertools import combinations, islice, pairwise
from sys import intern
from typing import NamedTuple

from blade import events
from blade.align import end_step
from blade.model import Episode

MAX_TOKENS = 400  # of one rollout, runs of one tool counted once
MAX_ORDERED = 10  # tools of one rollout whose order is compared

USE, DETAIL, PAIR, ORDER, TRIPLE = range(5)  # kinds, the plainest first


class Shown(NamedTuple):
    """What kind of feature it is and where a rollout has first shown it whole."""

    kind: int
    step: int
    reverse: str = ""  # of an order


def shown(episode: Episode) -> dict[str, Shown]:
    """Everything a rollout does: tools, their errors and arguments, what follows what, and the ends."""
    found: dict[str, Shown] = {}

    def note(feature: str, kind: int, step: int, reverse: str = "") -> None:
        found.setdefault(intern(feature), Shown(kind, step, reverse))

    end = end_step(episode)
    if not episode.calls:
        if end is not None:
            note("calls no tool", USE, end)
        return found
    for call in islice(episode.calls, MAX_TOKENS):
        note(f"calls {call.tool}", USE, call.step)
        if call.failed:
            note(f"gets an error from {call.tool}", USE, call.step)
    salient = events.without_runs(events.salient_tokens(episode))
    for token, step in salient[:MAX_TOKENS]:
        if not token.endswith("()"):
            note(f"calls {token}", DETAIL, step)
    names = events.without_runs((call.tool, call.step) for call in episode.calls)[:MAX_TOKENS]
    note(f"begins with {names[0][0]}", DETAIL, names[0][1])
    note(f"ends after {episode.calls[-1].tool}", DETAIL, episode.calls[-1].step)
    for (one, _), (other, step) in pairwise(names):
        note(f"calls {one}, next {other}", PAIR, step)
    for (one, _), (other, _), (third, step) in zip(names, names[1:], names[2:], strict=False):
        note(f"calls {one}, next {other}, next {third}", TRIPLE, step)
    first: dict[str, int] = {}
    for tool, step in names:
        first.setdefault(tool, step)
    for one, other in combinations(islice(first, MAX_ORDERED), 2):
        note(f"calls {one} before {other}", ORDER, first[other], f"calls {other} before {one}")
    return found
