"""Book the lost points of several runs under the same failure groups, so that they compare."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from blade.diagnose import Group, Population
from blade.model import OTHER, Cause

if TYPE_CHECKING:
    from blade.model import Ints
    from blade.pipeline.reading import Read, Reading

Mode = tuple[str, str]  # side of the loss, mode

SIDE_OF = {
    Cause.INFRASTRUCTURE: "infrastructure",
    Cause.TASK_OR_VERIFIER: "task or verifier",
    Cause.DATA_ARTIFACT: "data",
}


def modes(told: Sequence[Reading]) -> list[dict[int, Mode]]:
    """Of each run: position of every row that loses points -> its mode, by the same facts for all.

    What a run proves by itself depends on how many of its rollouts fail. So a row that its own run does not explain is
    booked under the group of another run whose fact it shows.
    """
    shared = _shared(told)
    found = []
    for reading in told:
        people = reading.diagnosis.people
        at_position = {row.position: at for at, row in enumerate(people.rows)}
        booked: dict[int, Mode] = {}
        for position, (cause, name) in reading.concluded.modes.items():
            mode = _side(cause), name
            if cause is Cause.UNDETERMINED:
                mode = _of_another(people, at_position[position], shared) or ("model", OTHER)
            booked[position] = mode
        found.append(booked)
    return found


def conditions(reading: Reading, told: Sequence[Reading]) -> dict[str, Ints]:
    """The facts that name groups in any run: which rows of this one show each, passing or not."""
    import numpy as np

    people = reading.diagnosis.people
    rows = {}
    for group in _shared(told):
        if group.holds is not None:
            rows[group.name] = np.flatnonzero(people.where(group.holds))
    return rows


def errors(read: Read) -> dict[str, Ints]:
    """The errors that rollouts met: template -> rows."""
    import numpy as np

    met: defaultdict[str, set[int]] = defaultdict(set)
    for at, row in enumerate(read.rows):
        for act in row.acts:
            if act.template:
                met[f"{act.tool}: {act.template}"].add(at)
    return {name: np.array(sorted(rows), np.int64) for name, rows in sorted(met.items())}


def _side(cause: Cause) -> str:
    return SIDE_OF.get(cause, "model")


def _shared(told: Sequence[Reading]) -> list[Group]:
    """The groups of all runs, each name once, those that cost most first."""
    points: defaultdict[str, float] = defaultdict(float)
    groups: dict[str, Group] = {}
    for reading in told:
        for group in reading.diagnosis.groups:
            points[group.name] += float(reading.diagnosis.people.lost[group.rows].sum())
            groups.setdefault(group.name, group)
    return [groups[name] for name in sorted(groups, key=lambda name: -points[name])]


def _of_another(people: Population, at: int, shared: Sequence[Group]) -> Mode | None:
    for group in shared:
        if group.holds is not None and group.label != Cause.UNDETERMINED.value and group.holds(people.rows[at]):
            return _side(Cause(group.label or "undetermined")), group.name
    return None
