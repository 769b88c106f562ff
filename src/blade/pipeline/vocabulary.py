"""Book the lost points of several runs under the same failure groups, so that they compare."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from blade import events
from blade.diagnose import Diagnosis, Population, climb
from blade.model import OTHER, Cause

if TYPE_CHECKING:
    from blade.diagnose import Group, RowEvidence
    from blade.model import Ints
    from blade.pipeline.reading import Read, Reading

Mode = tuple[str, str]  # side of the loss, name of the failure group

SIDE_OF = {
    Cause.INFRASTRUCTURE: "infrastructure",
    Cause.TASK_OR_VERIFIER: "task or verifier",
    Cause.DATA_ARTIFACT: "data",
    Cause.UNDETERMINED: "undetermined",
}
MAX_ERROR = 160  # characters of an error that name it
UNEXPLAINED: Mode = ("undetermined", OTHER)
WRONG_ANSWER: Mode = ("undetermined", "wrong answer")
NEVER_RAN: Mode = ("infrastructure", "never ran")
# Labels of wrong answers, which depend on the number of repeats.
_BY_REPEATS = ("KG", "UK", "undetermined", None)
_MEASUREMENT = (Cause.INFRASTRUCTURE, Cause.TASK_OR_VERIFIER, Cause.DATA_ARTIFACT)


class Booked(NamedTuple):
    """What a comparison knows of the rows of one run."""

    modes: Mapping[int, Mode]  # position of every row that loses points -> its failure group
    facts: Mapping[str, Ints]  # fact that names a failure group -> rows that show it, passing or not


def booked(readings: Sequence[Reading]) -> list[Booked]:
    """Book the rows of each run under groups that the ladder finds in all runs together.

    What a run proves by itself depends on how many of its rollouts fail, so a group of one run alone would look
    like a change. Only what was proved against the measurement of one run stays with that run, and what people
    judged stays as they judged it.
    """
    together = climb(_together(readings))
    starts = accumulate((reading.diagnosis.people.n for reading in readings), initial=0)
    outages = _outages([together, *(reading.diagnosis for reading in readings)])
    return [
        Booked(_modes(reading, together, start, outages), _facts(together, start, end))
        for reading, (start, end) in zip(readings, pairwise(starts), strict=True)
    ]


def errors(read: Read) -> dict[str, Ints]:
    """List the errors in results of tools and in texts of the rows: place and template -> rows."""
    import numpy as np

    met: defaultdict[str, set[int]] = defaultdict(set)
    known: dict[str, str] = {}
    for at, row in enumerate(read.rows):
        for place, text in _error_texts(row):
            if text not in known:
                known[text] = (
                    events.masked(text, MAX_ERROR) if events.reads_as_error(text, events.READ) else ""
                )
            if known[text]:
                met[f"{place}: {known[text]}"].add(at)
    return {name: np.array(sorted(rows), np.int64) for name, rows in sorted(met.items())}


def _error_texts(row: RowEvidence) -> Iterator[tuple[str, str]]:
    """Where a row may say that something went wrong, and what it says there."""
    for act in row.acts:
        if act.template:
            yield act.tool, act.template
    for path, value in row.fields.items():
        if isinstance(value, str):
            yield path, value
    for path, lines in row.lines.items():
        for line in lines:
            yield path, line


def _together(readings: Sequence[Reading]) -> Population:
    """The rows of all runs as one population, in which each run keeps its own tasks."""
    import numpy as np

    all_people = [reading.diagnosis.people for reading in readings]
    # a prompt that another run asks too is no sign that rows are grouped wrongly
    rows = [
        replace(row, prompt=hash((number, row.prompt)) if row.prompt else 0)
        for number, people in enumerate(all_people)
        for row in people.rows
    ]
    together = Population(
        "all runs",
        rows,
        np.concatenate([people.passed for people in all_people]),
        np.concatenate([people.lost for people in all_people]),
        _numbered([people.indexed for people in all_people], [len(people.keys) for people in all_people]),
        np.concatenate([people.repeat for people in all_people]),
        [key for people in all_people for key in people.keys],
    )
    if any(people.task is not people.indexed for people in all_people):
        tasks = [people.task for people in all_people]
        together.regroup(_numbered(tasks, [int(task.max(initial=-1)) + 1 for task in tasks]))
    return together


def _numbered(tasks: Sequence[Ints], sizes: Sequence[int]) -> Ints:
    """The tasks of all runs, those of each run under numbers of their own."""
    import numpy as np

    starts = accumulate(sizes, initial=0)
    return np.concatenate([task + start for task, start in zip(tasks, starts, strict=False)])


def _outages(diagnoses: Sequence[Diagnosis]) -> set[Mode]:
    """The reasons why rollouts never ran, where there are several: one outage has many error messages."""
    reasons = {_mode_of(group) for one in diagnoses for group in one.groups if group.rung == "ran"}
    reasons = {mode for mode in reasons if mode[0] == NEVER_RAN[0]}
    return reasons if len(reasons) > 1 else set()


def _modes(reading: Reading, together: Diagnosis, start: int, outages: set[Mode]) -> dict[int, Mode]:
    people, concluded = reading.diagnosis.people, reading.concluded
    groups = _group_of_rows(together, start, start + people.n)
    place = {row.position: at for at, row in enumerate(people.rows)}
    judged = set(_judged_rows(reading))
    modes: dict[int, Mode] = {}
    for position, (cause, name) in concluded.modes.items():
        shared = _mode_of(groups.get(place[position]))
        is_own = cause in _MEASUREMENT and not _is_measurement(shared)
        own = SIDE_OF.get(cause, "model"), name
        mode = own if is_own or place[position] in judged else shared
        modes[position] = NEVER_RAN if mode in outages else mode
    return modes


def _group_of_rows(together: Diagnosis, start: int, end: int) -> dict[int, Group]:
    """The group that claims each failing row of a run, else the first whose fact it shows.

    A contrast claims rows only in tasks that pass without its fact, and which do depends on the number of repeats.
    """
    groups: dict[int, Group] = {}
    for group in together.groups:
        groups.update(dict.fromkeys(group.rows[start:end].nonzero()[0].tolist(), group))
    for group in together.groups:
        if group.matched is not None:
            shown = group.matched[start:end] & together.people.failed[start:end]
            groups = {**dict.fromkeys(shown.nonzero()[0].tolist(), group), **groups}
    return groups


def _judged_rows(reading: Reading) -> Iterator[int]:
    """The rows of tasks that a person or an agent judged."""
    judged = {cause.task for cause in reading.concluded.attributions if cause.judged_by}
    for at, code in enumerate(reading.judged.task.tolist()):
        if reading.judged.task_keys[code] in judged:
            yield at


def _mode_of(group: Group | None) -> Mode:
    if group is None:
        return UNEXPLAINED
    if group.rung == "knowledge" and group.label in _BY_REPEATS:
        return WRONG_ANSWER
    return SIDE_OF.get(Cause(group.label or "undetermined"), "model"), group.name


def _is_measurement(mode: Mode) -> bool:
    return mode[0] in {SIDE_OF[cause] for cause in _MEASUREMENT}


def _facts(together: Diagnosis, start: int, end: int) -> dict[str, Ints]:
    """The rows of one run that show each fact."""
    return {
        group.name: group.matched[start:end].nonzero()[0]
        for group in together.groups
        if group.matched is not None
    }
