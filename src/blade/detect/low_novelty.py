"""Find stretches of calls that bring hardly anything new."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from blade import events
from blade.detect import repeats, wording
from blade.detect.rule import Hit, Rule, hit
from blade.model import Call, Cause, Episode, RunFacts, TaskTraces

RULE = Rule(
    name="low_novelty",
    number="B15",
    rule="Of 10 calls in a row fewer than 3 have a result of their own; a new write that succeeds counts "
    "as new.",
    cause=Cause.BEHAVIOUR,
    otherwise="",
    procedural=True,
    needs=("calls",),
    kind="harness",
    remedy="Keep a list of what was tried and what it returned in view of the model, and say so when "
    "`{tool}` returns what it returned before.",
)
_WINDOW = 10
_NEW = 3  # of ten: a novelty ratio of 0.3


def find(task: TaskTraces, facts: RunFacts) -> Iterator[Hit | None]:
    for episode in task.episodes:
        calls = [call for call in episode.calls if call.result_step is not None]
        # The sizes of the results are looked at first: two alike results differ little in size.
        if len(calls) < _WINDOW or _poor(calls, _size, 2 * _NEW - 1) is None:
            continue
        found = _poor(calls, _token, _NEW)
        if found is not None:
            yield _hit(episode, calls[found : found + _WINDOW])


def _size(call: Call) -> int:
    return -1 if _is_progress(call) else len(call.output) // 64


def _token(call: Call) -> str:
    return call.key if _is_progress(call) else repeats.said(call.output)


def _is_progress(call: Call) -> bool:
    return call.does == events.WRITE and not call.failed


def _poor(calls: Sequence[Call], token: Callable[[Call], object], below: int) -> int | None:
    """The start of the first window with fewer distinct tokens than `below`."""
    seen: Counter[object] = Counter()
    tokens = [token(call) for call in calls]
    for place, one in enumerate(tokens):
        seen[one] += 1
        if place >= _WINDOW:
            old = tokens[place - _WINDOW]
            seen[old] -= 1
            if not seen[old]:
                del seen[old]
        if place >= _WINDOW - 1 and len(seen) < below:
            return place - _WINDOW + 1
    return None


def _hit(episode: Episode, calls: Sequence[Call]) -> Hit | None:
    seen: set[str] = set()
    stale = []
    for call in calls:
        token = _token(call)
        if token in seen:
            stale.append(call)
        seen.add(token)
    tool = Counter(call.tool for call in stale).most_common(1)[0][0]
    return hit(
        episode,
        f"From step {calls[0].step} to {calls[-1].step}, {len(calls)} calls bring "
        f"{wording.count(len(seen), 'result')} in all; most of those that repeat one are `{tool}`.",
        2,
        events.at_step(episode, stale[0].step),
        events.at_step(episode, stale[-1].result_step) if stale[-1].result_step is not None else None,
        detail=tool,
        certain=True,
    )
