"""Turn the readings of several runs into failure modes by the same rules, so that they compare."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from blade import attribute, discover
from blade.detect import weigh
from blade.model import OTHER, SIDES, Behaviour, Cause, Judged, Mechanism

if TYPE_CHECKING:
    from blade.model import Ints
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


# Doubts that rest on how the runs compared do on a task: to book a change on these would be circular.
ACROSS = frozenset({"item_rest", "scalability", "reversals", "unanimous_wrong_answer"})
WITHIN = 0.8  # of the failing rollouts of a mode must show a wider one, to be booked under that
HALF = 0.5  # of a condition found in the rows must be a rule's, for the rule to stand for it
NEARLY_ALL = 0.9  # of all failing rollouts: what so many show tells nothing apart


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
            [d for doubts in reading.known.suspects.values() for d in doubts if d.flag not in ACROSS],
            reading.known.checks,
        )
        booked = attribute.booked(one.judged, known, one.gathered.contents, one.judgements)
        found.append({position: named(*mode) for position, mode in booked.items()})
    return _one_side_each(_merged(found, read, told))


def conditions(at: int, read: Sequence[Read], told: Sequence[Reading]) -> dict[str, Ints]:
    """The mechanisms of all runs, each with the rollouts of this run that show it, as places in `Judged`."""
    mine, rollouts = read[at], read[at].loaded.run.rollouts
    task_fields = rollouts.input_fields | frozenset(mine.slices)
    found = {}
    for predicate, one in _claimed(told, read).items():
        shown = discover.showing(one, mine.judged, rollouts.fields, task_fields, mine.gathered.features)
        if shown is not None:
            found[predicate] = shown
    return found


def _merged(
    found: list[dict[int, Mode]], read: Sequence[Read], told: Sequence[Reading]
) -> list[dict[int, Mode]]:
    """The same with modes of the model that lie within a wider one booked under that.

    Two names for what the same rollouts do would take turns between the runs, and each look like a change.
    """
    shown, conditions = _failing_rows(found, read, told), _claimed(told, read)
    most = NEARLY_ALL * sum(len(one) for one in found)
    name_of: dict[str, str] = {}
    for mode in sorted(shown, key=lambda mode: (-len(shown[mode]), mode)):
        own, name_of[mode] = shown[mode], mode
        for wider in sorted(set(name_of.values()) - {mode}, key=lambda x: (-len(shown[x]), x)):
            if len(own & shown[wider]) < WITHIN * len(own) or len(shown[wider]) > most:
                continue
            if mode in conditions:
                name_of[mode] = wider
            elif wider in conditions and len(own) >= HALF * len(shown[wider]):
                # a rule says more than a condition found in the rows; two rules stay two
                name_of = {one: mode if name == wider else name for one, name in name_of.items()}
            else:
                continue
            break
    return [{at: (side, name_of.get(mode, mode)) for at, (side, mode) in one.items()} for one in found]


def _failing_rows(
    found: Sequence[Mapping[int, Mode]], read: Sequence[Read], told: Sequence[Reading]
) -> dict[str, set[tuple[int, int]]]:
    """Each mode of the model with the failing rollouts that show it, booked so or not: run, position."""
    names = {mode for one in found for side, mode in one.values() if side == "model" and mode != OTHER}
    shown: dict[str, set[tuple[int, int]]] = {name: set() for name in names}
    for at, (one, reading) in enumerate(zip(read, told, strict=True)):
        failing = set(found[at])
        for each in reading.found:
            if each.finding.detector in shown and each.position in failing:
                shown[each.finding.detector].add((at, each.position))
        for predicate, places in conditions(at, read, told).items():
            if predicate in shown:
                positions = one.judged.rows[places].tolist()
                shown[predicate].update((at, position) for position in positions if position in failing)
        for position, (_, mode) in found[at].items():
            if mode in shown:
                shown[mode].add((at, position))
    return shown


def _one_side_each(found: list[dict[int, Mode]]) -> list[dict[int, Mode]]:
    """The same with every mode on one side, that of most of its rows over all runs.

    What is common in one run may be laid to its harness and the little of it in the other to the model: two
    terms that would both be artefacts.
    """
    rows = Counter(mode for one in found for mode in one.values())
    sides: dict[str, str] = {}
    for (side, mode), _ in sorted(rows.items(), key=lambda told: (told[1], SIDES[::-1].index(told[0][0]))):
        sides[mode] = side  # the last, which has most rows, stays
    return [{at: (sides[mode], mode) for at, (_, mode) in one.items()} for one in found]


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
    claimed = _claimed(told, read)
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


def _claimed(told: Sequence[Reading], read: Sequence[Read]) -> dict[str, Mechanism]:
    """The mechanisms that any run proved, in the order of run names, not of their roles."""
    order = sorted(range(len(read)), key=lambda at: read[at].judged.run)
    return {
        one.predicate: one
        for at in order
        for one in told[at].mechanisms
        if one.standing == "mechanism" and one.explains
    }
