"""Turn the readings of several runs into failure modes by the same rules, so that they compare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from blade import attribute, discover
from blade.detect import weigh
from blade.model import OTHER, Behaviour, Cause, Judged, Mechanism

if TYPE_CHECKING:
    from blade.pipeline.reading import Read, Reading

Mode = tuple[str, str]  # side of the loss, mode

SIDE_OF = {
    Cause.INFRASTRUCTURE: "infrastructure",
    Cause.TASK_OR_VERIFIER: "task or verifier",
    Cause.DATA_ARTIFACT: "data",
}
# Modes that only say that nothing was found.
NAMELESS = frozenset(
    {
        "nothing found",
        "varies between repeats",
        "different wrong results",
        "same wrong result",
        "not attributed",
    }
)


def modes(read: Sequence[Read], told: Sequence[Reading]) -> list[dict[int, Mode]]:
    """Of each run: position of every row that loses points -> its mode, by the same rules for all.

    What a run can prove by itself depends on how many of its rollouts fail. So behaviours are weighed over
    all runs together, each task of each run by itself, and a mechanism found in one run is looked up in the
    others.
    """
    weighed = {one.detector: one for one in _weighed(read, told)}
    found = []
    for at, (one, reading) in enumerate(zip(read, told, strict=True)):
        own = [_as(weighed.get(b.detector, b), one.judged.run) for b in reading.behaviours]
        others = [b for name, b in weighed.items() if name not in {mine.detector for mine in own}]
        known = attribute.known_of(
            one.judged,
            reading.found,
            reading.known.codes,
            _mechanisms(at, read, told),
            [*own, *(_as(other, one.judged.run) for other in others)],
            reading.known.rules,
            [doubt for doubts in reading.known.suspects.values() for doubt in doubts],
            reading.known.checks,
        )
        booked = attribute.booked(one.judged, known, one.gathered.contents)
        found.append({position: named(*mode) for position, mode in booked.items()})
    return found


def named(cause: Cause, mode: str) -> Mode:
    """The side that answers for a loss, and its mode; what only says that nothing was found has none."""
    side = SIDE_OF.get(cause, "model")
    return (side, OTHER) if side == "model" and mode in NAMELESS else (side, mode)


def _as(behaviour: Behaviour, run: str) -> Behaviour:
    return replace(behaviour, run=run)


def _weighed(read: Sequence[Read], told: Sequence[Reading]) -> list[Behaviour]:
    """Every detector weighed over the rows of all runs; in the order of run names, not of their roles."""
    fired: dict[str, list[int]] = {}
    weak: dict[str, list[int]] = {}
    order = sorted(range(len(read)), key=lambda at: read[at].judged.run)
    offsets, start = {}, 0
    for at in order:
        offsets[at] = start
        start += len(read[at].loaded.run.rollouts.task)
        for one in told[at].found:
            held = fired if one.finding.severity >= attribute.GRAVE else weak
            held.setdefault(one.finding.detector, []).append(one.position + offsets[at])
    pooled = _pooled([read[at].judged for at in order], [offsets[at] for at in order])
    weighed = weigh.behaviours(pooled, weak | fired)
    return [
        replace(one, standing="unproven") if one.detector not in fired and one.standing == "cause" else one
        for one in weighed
    ]


def _pooled(judged: Sequence[Judged], offsets: Sequence[int]) -> Judged:
    """The rows of several runs as one, each task of each run apart."""
    import numpy as np

    keys = [key for one in judged for key in one.task_keys]
    starts = np.cumsum([0, *(len(one.task_keys) for one in judged)])
    return Judged(
        run="all runs",
        task_keys=tuple(keys),
        rows=np.concatenate([one.rows + offset for one, offset in zip(judged, offsets, strict=True)]),
        task=np.concatenate([one.task + start for one, start in zip(judged, starts, strict=False)]),
        repeat=np.concatenate([one.repeat for one in judged]),
        passed=np.concatenate([one.passed for one in judged]),
        score=np.concatenate([one.score for one in judged]),
        judged=all(one.judged for one in judged),
        broken=np.concatenate([one.broken for one in judged]),
    )


def _mechanisms(at: int, read: Sequence[Read], told: Sequence[Reading]) -> list[Mechanism]:
    """The mechanisms of all runs as this one shows them; a mechanism that two runs found counts once."""
    mine = read[at]
    found: dict[str, Mechanism] = {}
    order = sorted(range(len(read)), key=lambda other: read[other].judged.run)
    claimed: Mapping[str, Mechanism] = {
        one.predicate: one
        for other in order
        for one in told[other].mechanisms
        if one.standing == "mechanism" and one.explains
    }
    own = {one.predicate: one for one in told[at].mechanisms}
    rollouts = mine.loaded.run.rollouts
    for predicate, one in claimed.items():
        if predicate in own and own[predicate].standing == "mechanism":
            found[predicate] = own[predicate]
            continue
        shown = discover.applied(
            one,
            mine.judged,
            rollouts.fields,
            rollouts.input_fields | frozenset(mine.slices),
            mine.gathered.features,
        )
        if shown is not None:
            found[predicate] = replace(one, run=mine.judged.run, rollouts=shown)
    return list(found.values())
