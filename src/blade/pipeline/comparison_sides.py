"""Prepare runs for a comparison: columns, settings, and a failure group for every lost point."""

from __future__ import annotations

import hashlib
import json
import re
from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace

from blade import events, measure
from blade.diagnose import Diagnosis, Group, Population, climb
from blade.diagnose.equal_results import Ended
from blade.formats import run_splits, single_rows
from blade.measure import slices
from blade.model import OTHER, Bools, Cause, Floats, Hashes, Ints, Judged, Side
from blade.pipeline.load import Loaded
from blade.pipeline.trace_reading import Read, Reading, judged_of

Mode = tuple[str, str]  # side of the loss, name of the failure group

FIRST = 50  # rows that must agree before all are read
MAX_ERROR = 160  # characters of an error that name it
SAMPLED = 12  # rows opened to see the tools and the instructions of a run
MAX_CONSTANTS = 24  # fields of rows that are looked at for settings
LIMITED = 0.1  # of the rows of a run that are cut, from which the limit is to blame rather than the model
UNEXPLAINED: Mode = ("undetermined", OTHER)
WRONG_ANSWER: Mode = ("undetermined", "wrong answer")
NEVER_RAN: Mode = ("infrastructure", "never ran")
# What a loss of each cause is booked on; any other is the model's.
_MEASUREMENT = {
    Cause.INFRASTRUCTURE: "infrastructure", Cause.TASK_OR_VERIFIER: "task or verifier", Cause.DATA_ARTIFACT: "data"
}  # fmt: skip
SIDE_OF = {**_MEASUREMENT, Cause.UNDETERMINED: "undetermined"}
# What the columns of a row say of its end, the first that applies: no trace is needed for it.
COLUMN_MODES = (
    ("no usable reward", ("data", "no usable reward")),
    ("errored", ("infrastructure", "the row carries an error")),
    ("timed out", ("infrastructure", "timed out")),
    ("truncated", ("model", "truncated")),
    ("no output", ("model", "empty output")),
)
_BY_REPEATS = ("KG", "UK", "undetermined", None)  # labels of wrong answers, which depend on the number of repeats
_ANSWERS = ("extracted_answer", "predicted_answer", "parsed_option", "predicted_value", "model_patch_sha256")
_GRAINS = Ended._fields[2:]  # of what a row ended with
_LOST = 1e-9  # a row that scores less than 1 by more than this loses points
_SETTING = re.compile(
    r"(^|[._])(version|revision|commit|checkpoint|image|harness|scaffold|backend|engine|provider|quantization"
    r"|(judge|verifier|grader|scorer)(_model|_name)?|reasoning_effort|temperature|top_p|config_hash"
    r"|max_(output_tokens|tokens|turns|steps|context)|(time_?limit|timeout)(_s|_seconds)?)$"
)


def read_sides(read: Sequence[Read], readings: Sequence[Reading], scored: Sequence[measure.Scoring]) -> list[Side]:
    """Runs whose traces were read: with the facts that rollouts show, and the errors they met."""
    by_run = booked(readings)
    table = _table(mode for of_run in by_run for mode in of_run.modes.values())
    place = {mode: code for code, mode in enumerate(table)}
    sides = []
    for entry, scoring, of_run in zip(read, scored, by_run, strict=True):
        judged = entry.judged
        loses = judged.score < 1 - _LOST
        mode = np.full(judged.rows.size, -1, np.int64)
        mode[loses] = [place[of_run.modes.get(position, UNEXPLAINED)] for position in judged.rows[loses].tolist()]
        side = _side(entry.loaded, scoring, judged, table, mode)
        behaviours, content = dict(sorted(of_run.facts.items())), _contents(judged, entry.grains)
        sides.append(replace(side, behaviours=behaviours, signatures=errors(entry), content=content))
    return with_hashes(sides, [entry.loaded for entry in read])


def column_sides(loaded: Sequence[Loaded], scored: Sequence[measure.Scoring]) -> list[Side]:
    """Runs as their columns tell them: no trace is opened but a few for the settings."""
    runs = list(zip(loaded, scored, strict=True))
    cut = max((entry.run.rollouts.truncated[s.rows].mean() for entry, s in runs if s.rows.size), default=0)
    modes = dict(COLUMN_MODES)
    if cut > LIMITED:
        modes["truncated"] = ("task or verifier", "truncated")
    table = _table(modes.values())
    sides = []
    for entry, scoring in runs:
        judged, flags = judged_of(entry, scoring), _flags(entry, scoring)
        mode = np.where(judged.score < 1 - _LOST, table.index(UNEXPLAINED), -1)
        for name in reversed(modes):
            mode[flags[name] & (mode >= 0)] = table.index(modes[name])
        sides.append(replace(_side(entry, scoring, judged, table, mode), content=_answers(entry, scoring)))
    return with_hashes(sides, loaded)


def _table(modes: Iterable[Mode]) -> tuple[Mode, ...]:
    return tuple(sorted({*modes, UNEXPLAINED}))


# ---- Rows booked on failure groups -----------------------------------------------------------------


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
    groups = [group for diagnosis in (together, *(reading.diagnosis for reading in readings)) for group in diagnosis.groups]
    reasons = {mode for group in groups if group.rung == "ran" and (mode := _mode_of(group))[0] == NEVER_RAN[0]}
    outages = reasons if len(reasons) > 1 else set()  # one outage has many error messages
    facts = [(group.name, group.matched) for group in together.groups if group.matched is not None]
    by_run, start = [], 0
    for reading in readings:
        rows = slice(start, start + reading.diagnosis.people.n)
        shown = {name: matched[rows].nonzero()[0] for name, matched in facts}
        by_run.append(Booked(_modes(reading, together, rows, outages), shown))
        start = rows.stop
    return by_run


def errors(read: Read) -> dict[str, Ints]:
    """List the errors in results of tools and in texts of the rows: place and template -> rows."""
    met: defaultdict[str, set[int]] = defaultdict(set)

    @cache
    def named(text: str) -> str:
        return events.masked(text, MAX_ERROR) if events.reads_as_error(text, events.READ) else ""

    for row_number, row in enumerate(read.rows):
        texts = [(act.tool, act.template) for act in row.acts if act.template]
        texts += [(path, value) for path, value in row.fields.items() if isinstance(value, str)]
        texts += [(path, line) for path, lines in row.lines.items() for line in lines]
        for place, text in texts:
            if error := named(text):
                met[f"{place}: {error}"].add(row_number)
    return {name: np.array(sorted(rows), np.int64) for name, rows in sorted(met.items())}


def _together(readings: Sequence[Reading]) -> Population:
    """The rows of all runs as one population, in which each run keeps its own tasks."""
    all_people = [reading.diagnosis.people for reading in readings]
    # a prompt that another run asks too is no sign that rows are grouped wrongly
    rows = [
        replace(row, prompt=hash((number, row.prompt)) if row.prompt else 0)
        for number, people in enumerate(all_people)
        for row in people.rows
    ]
    together = Population(
        "all runs", rows, np.concatenate([people.passed for people in all_people]),
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
    starts = accumulate(sizes, initial=0)
    return np.concatenate([task + start for task, start in zip(tasks, starts, strict=False)])


def _modes(reading: Reading, together: Diagnosis, rows: slice, outages: set[Mode]) -> dict[int, Mode]:
    people, concluded = reading.diagnosis.people, reading.concluded
    groups = _group_of_rows(together, rows)
    place = {row.position: number for number, row in enumerate(people.rows)}
    # the tasks that a person or an agent judged
    tasks = {attribution.task for attribution in concluded.attributions if attribution.judged_by}
    modes: dict[int, Mode] = {}
    for position, (cause, name) in concluded.modes.items():
        row = place[position]
        shared = _mode_of(groups.get(row))
        is_own = cause in _MEASUREMENT and shared[0] not in _MEASUREMENT.values()
        is_judged = reading.judged.task_keys[int(reading.judged.task[row])] in tasks
        mode = (SIDE_OF.get(cause, "model"), name) if is_own or is_judged else shared
        modes[position] = NEVER_RAN if mode in outages else mode
    return modes


def _group_of_rows(together: Diagnosis, rows: slice) -> dict[int, Group]:
    """The group that claims each failing row of a run, else the first whose fact it shows.

    A contrast claims rows only in tasks that pass without its fact, and which do depends on the number of repeats.
    """
    groups: dict[int, Group] = {}
    for group in together.groups:
        groups.update(dict.fromkeys(group.rows[rows].nonzero()[0].tolist(), group))
    for group in together.groups:
        if group.matched is not None:
            shown = group.matched[rows] & together.people.failed[rows]
            groups = {**dict.fromkeys(shown.nonzero()[0].tolist(), group), **groups}
    return groups


def _mode_of(group: Group | None) -> Mode:
    if group is None:
        return UNEXPLAINED
    if group.rung == "knowledge" and group.label in _BY_REPEATS:
        return WRONG_ANSWER
    return SIDE_OF.get(Cause(group.label or "undetermined"), "model"), group.name


# ---- Columns -------------------------------------------------------------------------------------


def _side(entry: Loaded, scoring: measure.Scoring, judged: Judged, table: tuple[Mode, ...], mode: Ints) -> Side:
    rollouts, coverage, score = entry.run.rollouts, entry.run.coverage, judged.score
    settings = {key.split(": ", 1)[-1]: value for key, value in entry.settings.items()}  # whatever file they stand in
    hashes = entry.run.rows.numbers("row_hash")[rollouts.row_id[scoring.rows]]
    return Side(
        run=entry.name, judged=judged, task_names=rollouts.task_names, score_name=scoring.score_name,
        threshold=scoring.threshold if scoring.has_pass_rate else None,
        is_bounded=scoring.is_bounded, is_binary=bool(((score == 0) | (score == 1)).all()),
        model=entry.run.model, agent=entry.run.agent, expected=coverage.expected_per_task,
        settings={**_constant(entry), **settings, **_requested(entry)}, row_hash=hashes.astype(np.uint64),
        fingerprints=run_splits.fingerprints(entry.run), slices=_slices(entry, scoring),
        mode=mode if scoring.is_bounded else np.full(score.size, -1, np.int64), modes=table,
        flags={name: flagged for name, flagged in _flags(entry, scoring).items() if name != "no output"},
        effort=_effort(entry, scoring), behaviours={}, signatures={}, coverage=(coverage.scored, coverage.expected),
        n=np.bincount(judged.task, minlength=len(rollouts.task_keys)),
    )  # fmt: skip


def _counted(entry: Loaded, scoring: measure.Scoring) -> Any:
    """The rows that count, to index columns by: all of them without a copy where none is masked."""
    return slice(None) if scoring.rows.size == entry.run.rollouts.task.size else scoring.rows


def _flags(entry: Loaded, scoring: measure.Scoring) -> dict[str, Bools]:
    rollouts, rows = entry.run.rollouts, _counted(entry, scoring)
    return {
        "errored": rollouts.errored[rows],
        "timed out": rollouts.timed_out[rows],
        "truncated": rollouts.truncated[rows],
        "no usable reward": scoring.unscored,
        "no output": rollouts.n_items[rows] == 0,
    }


def _effort(entry: Loaded, scoring: measure.Scoring) -> dict[str, Floats]:
    rollouts, rows = entry.run.rollouts, _counted(entry, scoring)
    columns = {
        "output_tokens": rollouts.output_tokens, "reasoning_tokens": rollouts.reasoning_tokens,
        "total_tokens": rollouts.total_tokens, "turns": rollouts.n_turns.astype(np.float64),
        "tool_calls": rollouts.n_calls.astype(np.float64), "seconds": rollouts.wall_s, "cost_usd": rollouts.cost_usd,
    }  # fmt: skip
    # a column of zeros is a price or a count that nobody wrote down; rows without output did not run
    idle = rollouts.n_items[rows] == 0
    amounts = {}
    for name, column in columns.items():
        amount = column[rows]
        if np.nan_to_num(amount[:1000]).any() or np.nan_to_num(amount).any():
            amounts[name] = np.where(idle, np.nan, amount) if idle.any() else amount
    return amounts


def _slices(entry: Loaded, scoring: measure.Scoring) -> dict[str, tuple[Ints, tuple[str, ...]]]:
    """The fields that describe tasks, by task."""
    slices_of = {}
    for name, (codes, labels) in slices.by_row(entry.run.rollouts, scoring, entry.benchmark).items():
        by_task = np.full(len(entry.run.rollouts.task_keys), -1, np.int64)
        by_task[scoring.tasks] = codes[scoring.starts]
        slices_of[name] = by_task, labels
    return slices_of


def _contents(judged: Judged, grains_of: array[int]) -> dict[str, Hashes]:
    """What rows ended with, in each grain by row; 0 where a row was not read."""
    grains = np.frombuffer(grains_of, np.uint64).reshape(-1, 1 + len(_GRAINS))
    size = 1 + int(max(judged.rows.max(initial=0), grains[:, 0].max(initial=0)))
    by_position = np.zeros((size, len(_GRAINS)), np.uint64)
    by_position[grains[:, 0].astype(np.int64)] = grains[:, 1:]
    of_rows = by_position[judged.rows].T.copy()  # so that each is a column of its own
    return dict(zip(_GRAINS, of_rows, strict=True))


def _answers(entry: Loaded, scoring: measure.Scoring) -> dict[str, Hashes]:
    """The answer of every row, where a verifier wrote it down."""
    fields = entry.run.rollouts.fields
    name = next((name for name in (entry.benchmark.answer, *_ANSWERS) if name in fields), None)
    if name is None:
        return {}
    column = fields[name]
    return {"read": np.where(column.kind[scoring.rows] > 1, column.hash[scoring.rows], np.uint64(0))}


def with_hashes(sides: Sequence[Side], loaded: Sequence[Loaded]) -> list[Side]:
    """The sides; those that agree in rows, score, bytes and their first rows with the hashes of all.

    An index keeps no hash of rows that are numbered: it would cost a pass over every byte, and only runs
    that look the same need it.
    """
    alike: defaultdict[tuple[int, float, int], list[int]] = defaultdict(list)
    for place, (side, entry) in enumerate(zip(sides, loaded, strict=True)):
        # what identical runs have in common, from the columns alone: rows, score and bytes
        lengths = entry.run.rows.numbers("length")[entry.run.rollouts.row_id[side.judged.rows]]
        alike[side.judged.rows.size, float(side.judged.score.sum()), int(lengths.sum())].append(place)
    hashed = list(sides)
    for group in alike.values():
        if len(group) > 1 and len({_hashes(loaded[place], sides[place], FIRST).tobytes() for place in group}) == 1:
            for place in group:
                hashed[place] = replace(sides[place], row_hash=_hashes(loaded[place], sides[place], None))
    return hashed


def _hashes(entry: Loaded, side: Side, most: int | None) -> Hashes:
    rows = entry.run.rollouts.row_id[side.judged.rows[:most]].tolist()
    return np.fromiter((entry.run.rows.row_hash(row) for row in rows), np.uint64, len(rows))


# ---- Settings -------------------------------------------------------------------------------------


def _constant(entry: Loaded) -> dict[str, str]:
    """Fields named like a setting that hold one and the same value in every row of the run."""
    fields = entry.run.rollouts.fields
    constants = {}
    for name in sorted(name for name in fields if _SETTING.search(name.lower()))[:MAX_CONSTANTS]:
        column = fields[name]
        kinds = set(column.kind.tolist())
        if len(set(column.hash.tolist())) == 1 and kinds <= {2, 3, 4} and kinds:
            text = column.texts[int(column.code[0])] if column.code[0] >= 0 else f"{column.number[0]:g}"
            constants[name] = text[:200]
    return constants


def _requested(entry: Loaded) -> dict[str, str]:
    """The tools and the instructions that rollouts were given, as a few rows of the run show them."""
    n = len(entry.run.rollouts.task)
    positions = sorted({round(place * (n - 1) / (SAMPLED - 1)) for place in range(SAMPLED)}) if n else []
    rows = [single_rows.row(entry.run, position).get("responses_create_params") for position in positions]
    requests = [request for request in rows if isinstance(request, dict)]
    tools = {_digest(request.get("tools")) for request in requests if request.get("tools")}
    prompts = {_digest(text) for request in requests if (text := _instructions(request))}
    settings = {}
    if len(tools) == 1:
        n_tools = sum(isinstance(tool, dict) for tool in _listed(requests[0].get("tools")))
        settings["tools"] = f"{n_tools} tools, {tools.pop()}"
    if len(prompts) == 1:
        settings["system prompt"] = prompts.pop()
    return settings


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _instructions(request: Mapping[str, Any]) -> str:
    """The system prompt: `instructions`, or the first message of system or developer."""
    instructions = request.get("instructions")
    if isinstance(instructions, str) and instructions:
        return instructions
    for item in _listed(request.get("input"))[:3]:
        if isinstance(item, dict) and item.get("role") in ("system", "developer"):
            content = item.get("content")
            return content if isinstance(content, str) else json.dumps(content, sort_keys=True)
    return ""


def _digest(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
