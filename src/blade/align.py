"""Turn two rollouts of a task into where they part: aligned acts, and the step that decides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from blade import answers, events
from blade.model import Call, Divergence, Episode, TaskTraces

FINISH = "<finish>"
MODEL_KINDS = frozenset(("message", "reasoning", "call"))  # what a model does; the rest is done to it
MAX_ACTS = 200  # of each side that are aligned, after what they share at both ends
MAX_PASSERS = 16  # of one task that are candidates for the nearest
MAX_ALIGNED = 4  # candidates that are aligned with one failing rollout
MAX_ALIGNMENTS = 64  # of one task
NEEDED = 0.95  # share of passing rollouts from which a step counts as one they all take
UNUSUAL = 0.05  # share of passing rollouts below which a transition counts as one they do not make


class Act(NamedTuple):
    """One thing a rollout does: a call, or its end."""

    key: str  # equal keys are the same act
    tool: str
    step: int
    changes: bool  # it writes


def model_step(episode: Episode, index: int) -> int | None:
    """The step of the model that stands at or before a step: the call of a result, what a user answers."""
    steps = episode.trace.steps
    if not 0 <= index < len(steps):
        return None
    if steps[index].kind == "result":
        made = next((call.step for call in episode.calls if call.result_step == index), None)
        if made is not None:
            return made
    for at in range(index, -1, -1):
        if steps[at].kind in MODEL_KINDS:
            return at
    return None


def end_step(episode: Episode) -> int | None:
    """Where a rollout ends: its final message, or the last step of the model."""
    if episode.final_step is not None:
        return episode.final_step
    return model_step(episode, len(episode.trace.steps) - 1)


def acts(episode: Episode) -> list[Act]:
    """The calls of a rollout and its end, if the model did anything at all."""
    found = [
        Act(f"{call.key}!" if call.failed else call.key, call.tool, call.step, call.does == events.WRITE)
        for call in episode.calls
    ]
    end = end_step(episode)
    if end is not None:
        said = answers.answer_in(episode.final) or episode.final
        found.append(Act(f"{FINISH} {answers.normalised(said)}", FINISH, end, False))
    return found


# ---- Alignment ---------------------------------------------------------------------------------

Column = tuple[int | None, int | None]  # places in both sequences; None is a gap


def align(mine: Sequence[Act], theirs: Sequence[Act]) -> list[Column]:
    """Needleman-Wunsch: match +1, same tool with other arguments 0, mismatch -1, gap -1.

    What both share at either end is matched first: no alignment can score more without it.
    """
    shortest = min(len(mine), len(theirs))
    head = 0
    while head < shortest and mine[head].key == theirs[head].key:
        head += 1
    tail = 0
    while tail < shortest - head and mine[-1 - tail].key == theirs[-1 - tail].key:
        tail += 1
    columns: list[Column] = [(at, at) for at in range(head)]
    columns += _middle(mine, theirs, head, len(mine) - tail, len(theirs) - tail)
    columns += [(len(mine) - at, len(theirs) - at) for at in range(tail, 0, -1)]
    return columns


def _middle(mine: Sequence[Act], theirs: Sequence[Act], start: int, end: int, their_end: int) -> list[Column]:
    """The part between the shared ends; what exceeds the cap is left over on its own side."""
    stop, their_stop = min(end, start + MAX_ACTS), min(their_end, start + MAX_ACTS)
    columns: list[Column] = []
    if stop > start and their_stop > start:
        columns = _traced(mine[start:stop], theirs[start:their_stop], start)
    else:
        stop = their_stop = start
    columns += [(at, None) for at in range(stop, end)]
    columns += [(None, at) for at in range(their_stop, their_end)]
    return columns


def _traced(mine: Sequence[Act], theirs: Sequence[Act], start: int) -> list[Column]:
    worth = _worth(mine, theirs)
    best = _table(worth)
    gains, table = worth.tolist(), best.tolist()
    columns: list[Column] = []
    i, j = len(mine), len(theirs)
    while i or j:
        here = table[i][j]
        if i and j and here == table[i - 1][j - 1] + gains[i - 1][j - 1]:
            i, j = i - 1, j - 1
            columns.append((start + i, start + j))
        elif i and here == table[i - 1][j] - 1:
            i -= 1
            columns.append((start + i, None))
        else:
            j -= 1
            columns.append((None, start + j))
    return columns[::-1]


def _worth(mine: Sequence[Act], theirs: Sequence[Act]) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    keys: dict[str, int] = {}
    tools: dict[str, int] = {}

    def coded(some: Sequence[Act]) -> tuple[list[int], list[int]]:
        return (
            [keys.setdefault(act.key, len(keys)) for act in some],
            [tools.setdefault(act.tool, len(tools)) for act in some],
        )

    (my_keys, my_tools), (their_keys, their_tools) = coded(mine), coded(theirs)
    same_key = np.equal.outer(my_keys, their_keys).astype(np.int64)
    same_tool = np.equal.outer(my_tools, their_tools).astype(np.int64)
    found: np.ndarray[tuple[int, int], np.dtype[np.int64]] = same_key + same_tool - 1
    return found


def _table(
    worth: np.ndarray[tuple[int, int], np.dtype[np.int64]],
) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """Best scores of all prefixes; a row at a time, gaps along the row as a running maximum."""
    n, m = worth.shape
    along = np.arange(m + 1)
    best = np.empty((n + 1, m + 1), np.int64)
    best[0] = -along
    for i in range(n):
        row = best[i] - 1
        np.maximum(row[1:], best[i, :-1] + worth[i], out=row[1:])
        row += along
        np.maximum.accumulate(row, out=row)
        np.subtract(row, along, out=best[i + 1])
    return best


# ---- Divergence --------------------------------------------------------------------------------


def divergences(task: TaskTraces) -> tuple[Divergence, ...]:
    """For each failing rollout where it leaves the nearest passing one of the same task."""
    passers = [episode for episode in task.episodes if episode.passed]
    failing = [episode for episode in task.episodes if episode.passed is False]
    return parted(failing, passers)


def parted(failing: Sequence[Episode], passers: Sequence[Episode]) -> tuple[Divergence, ...]:
    """For each failing rollout where it leaves the nearest of some passing ones."""
    if not failing or not passers:
        return ()
    known = _Passers(passers)
    per_row = max(1, min(MAX_ALIGNED, MAX_ALIGNMENTS // len(failing)))
    found = [_divergence(episode, known, per_row) for episode in failing[:MAX_ALIGNMENTS]]
    return tuple(one for one in found if one is not None)


class _Passers:
    """The passing rollouts that differ from each other, and what they have in common."""

    def __init__(self, passers: Sequence[Episode]) -> None:
        distinct: dict[tuple[str, ...], tuple[Episode, list[Act]]] = {}
        for episode in passers:
            did = acts(episode)
            if did:
                distinct.setdefault(tuple(act.key for act in did), (episode, did))
        self.rows = list(distinct.values())[:MAX_PASSERS]
        self.bags = [Counter(act.key for act in did) for _, did in self.rows]
        n = len(passers)
        tools = Counter(tool for episode in passers for tool in {call.tool for call in episode.calls})
        self.needed = sorted(tool for tool, count in tools.items() if count >= NEEDED * n)
        edges = Counter(edge for episode in passers for edge in transitions(episode))
        self.edges = {edge for edge, count in edges.items() if count >= UNUSUAL * n}

    def nearest(self, did: Sequence[Act], n: int) -> tuple[Episode, list[Act], list[Column]] | None:
        """The passer with the best alignment among the `n` that share most acts."""
        bag = Counter(act.key for act in did)
        shared = [(bag & other).total() - abs(bag.total() - other.total()) / 2 for other in self.bags]
        order = sorted(range(len(self.rows)), key=lambda at: (-shared[at], at))[:n]
        best: tuple[float, Episode, list[Act], list[Column]] | None = None
        for at in order:
            episode, theirs = self.rows[at]
            columns = align(did, theirs)
            off = distance(did, theirs, columns)
            if best is None or off < best[0]:
                best = (off, episode, theirs, columns)
        return best[1:] if best is not None else None


def transitions(episode: Episode) -> set[str]:
    """The pairs of tools that follow each other in a rollout, repeats of one tool as one."""
    names = [name for name, _ in events.without_runs(events.tool_tokens(episode))]
    return {f"{one} > {other}" for one, other in zip(["<start>", *names], [*names, FINISH], strict=True)}


def distance(mine: Sequence[Act], theirs: Sequence[Act], columns: Sequence[Column]) -> float:
    """The share of acts that differ, of the longer side."""
    differing = sum(not _is_match(mine, theirs, column) for column in columns)
    return min(1.0, differing / max(len(mine), len(theirs), 1))


def _is_match(mine: Sequence[Act], theirs: Sequence[Act], column: Column) -> bool:
    i, j = column
    return i is not None and j is not None and mine[i].key == theirs[j].key


def _divergence(episode: Episode, passers: _Passers, n: int) -> Divergence | None:
    did = acts(episode)
    near = passers.nearest(did, n) if did else None
    if near is None:
        return None
    other, theirs, columns = near
    used = {call.tool for call in episode.calls}
    missing = [tool for tool in passers.needed if tool not in used]
    places = _partings(did, theirs, columns, set(passers.needed))
    if places is None:
        return None
    first, last = (_both(did, theirs, columns, at) for at in places)
    made = transitions(episode)
    unusual = sorted(made - passers.edges)
    mine, passing = did[last[0]], theirs[last[1]]
    quotes = (events.at_step(episode, mine.step), events.at_step(other, passing.step))
    rollout, model = episode.trace.rollout, other.trace.rollout
    return Divergence(
        run=rollout.run,
        task=rollout.task,
        repeat=rollout.repeat,
        position=episode.position,
        passer=model.repeat,
        passer_run=model.run,
        step=mine.step,
        passer_step=passing.step,
        does=told(episode, mine.step),
        passer_does=told(other, passing.step),
        first_step=did[first[0]].step,
        first_passer_step=theirs[first[1]].step,
        distance=distance(did, theirs, columns),
        fitness=1 - len(unusual) / len(made),
        missing=tuple(missing),
        unusual=tuple(unusual[:10]),
        evidence=tuple(quote for quote in quotes if quote is not None),
    )


def _partings(
    mine: Sequence[Act], theirs: Sequence[Act], columns: Sequence[Column], needed: Collection[str]
) -> tuple[int, int] | None:
    """The columns of the first and of the decisive parting; None if both do exactly the same.

    A parting is made good where what was left out is done elsewhere and what was done besides changes
    nothing. The last words nearly always differ: they count only where nothing else does.
    """
    off = [at for at, column in enumerate(columns) if not _is_match(mine, theirs, column)]
    acting = [at for at in off if not _is_end(mine, theirs, columns[at])]
    if not acting:
        return (off[0], off[-1]) if off else None
    my_keys, their_keys = {act.key for act in mine}, {act.key for act in theirs}
    my_tools = {act.tool for act in mine}

    def harms(at: int) -> bool:
        i, j = columns[at]
        left_out = j is not None and theirs[j].key not in my_keys
        if left_out and j is not None and (theirs[j].changes or _lacks(theirs[j].tool, needed, my_tools)):
            return True
        return i is not None and mine[i].changes and mine[i].key not in their_keys

    lasting = [at for at in acting if harms(at)] or acting
    among, last = set(lasting), lasting[-1]
    while last - 1 in among:
        last -= 1
    return acting[0], last


def _lacks(tool: str, needed: Collection[str], used: Collection[str]) -> bool:
    return tool in needed and tool not in used


def _is_end(mine: Sequence[Act], theirs: Sequence[Act], column: Column) -> bool:
    i, j = column
    return (i is None or mine[i].tool == FINISH) and (j is None or theirs[j].tool == FINISH)


def _both(mine: Sequence[Act], theirs: Sequence[Act], columns: Sequence[Column], at: int) -> tuple[int, int]:
    """What each side does at a column; in place of a gap what that side does next."""
    i, j = (
        next((column[side] for column in columns[at:] if column[side] is not None), None) for side in (0, 1)
    )
    return len(mine) - 1 if i is None else i, len(theirs) - 1 if j is None else j


def counterpart(mine: Episode, theirs: Episode, step: int) -> int | None:
    """The step at which one rollout does something else where another takes a step."""
    did, others = acts(mine), acts(theirs)
    if not did:
        return None
    columns = align(did, others)
    at = next((at for at, (_, j) in enumerate(columns) if j is not None and others[j].step == step), None)
    return end_step(mine) if at is None else did[_both(did, others, columns, at)[0]].step


_SHOWN = 80


def told(episode: Episode, step: int) -> str:
    """What a rollout does at a step, as a verb phrase."""
    call = next((call for call in episode.calls if call.step == step), None)
    if call is None:
        return "finishes" if step == end_step(episode) else "writes a message"
    return (
        f"calls {call.tool} with {_short(call)}"
        if call.raw.strip() not in ("", "{}")
        else f"calls {call.tool}"
    )


def _short(call: Call) -> str:
    raw = " ".join(call.raw.split())
    return raw if len(raw) <= _SHOWN else raw[: _SHOWN - 1] + "…"
