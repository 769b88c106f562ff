"""Draft the SKILL.md of one benchmark from its runs: schema, stages, failure groups, worked examples."""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from blade import __version__, events
from blade.agent.skills import PAGE, skill_name
from blade.diagnose.ladder import RULES
from blade.errors import UsageError
from blade.formats import single_rows
from blade.formats.field_columns import is_task_field
from blade.hostile import line, markdown_code, markdown_fence
from blade.model import ID_FIELDS, Attribution, Cause, Confidence, Report
from blade.number_format import count
from blade.pipeline.load import Loaded
from blade.pipeline.session import Session
from blade.report import row_addresses
from blade.report.run_facts import Facts, facts
from blade.targets import refuse_link

TEMPLATE = Path(__file__).with_name("skill.md.j2")
MAX_VALUES = 8
MAX_EXAMPLES = 3
SAMPLE = 400  # rows looked at in each run, spread over all of them
_LOOKED_AT = 40  # rows of a run in which calls are looked for, where none declares its tools


def folder_of(name: str | None, session: Session, into: Path, force: bool) -> tuple[str, Path]:
    """The benchmark as it is called, and the folder of its skill; over one that is there only if told to."""
    names = (run.benchmark for run in session.report.runs if run.benchmark)
    called = name or next(names, None) or session.loaded[0].name
    folder = into / skill_name(called)
    refuse_link(folder / PAGE, into)
    if (folder / PAGE).exists() and not force:
        raise UsageError(f"{folder / PAGE} is there already", "name another, or add --force", "output-not-empty")
    return called, folder


def write(called: str, folder: Path, session: Session) -> Path:
    """The SKILL.md of a benchmark; its commands name the runs as they lie, seen from here."""
    if any(source.path == "-" for run in session.loaded for source in run.sources):
        raise UsageError("a skill names its runs, and standard input has no name", "name a file", "usage")
    paths, here = {}, Path.cwd()
    for run in session.loaded:
        place = Path(run.sources[0].path)
        is_below = place.is_absolute() and place.is_relative_to(here)
        paths[run.name] = str(place.relative_to(here)) if is_below else run.sources[0].path
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / PAGE
    path.write_text(skill(called, session.loaded, [session.report], paths), encoding="utf-8")
    return path


def skill(name: str, loaded: Sequence[Loaded], reports: Sequence[Report], paths: Mapping[str, str]) -> str:
    """The draft, from reports on the runs; `paths` are the rollouts files as its reader names them."""
    runs = [run for report in reports for run in facts(report)]
    n_rows, fields = schema(loaded, reports)
    slices: dict[str, set[str]] = {}
    for part in (part for run in runs for part in run.slices):
        slices.setdefault(part.field, set()).add(part.value)
    codes = [code for run in loaded for code in run.benchmark.codes]
    examples, rungs = _examples(runs), {group.rung for run in runs for group in run.groups}
    text: str = _template().render(
        name=name, runs=runs, version=__version__, skill_name=skill_name(name),
        kinds_of_reward=list(dict.fromkeys(str(run.run.reward_kind) for run in runs)), acts=_tools(loaded),
        verifier=[field.name for field in fields if field.role == VERIFIER][:12],
        n_rows=n_rows, fields=[field for field in fields if field.types != ("null",)],
        slices={field: sorted(values) for field, values in slices.items()},
        funnels=[run.funnel for run in runs if run.funnel is not None],
        stages={stage.name: stage for run in loaded for stage in run.benchmark.stages},
        codes=[code for place, code in enumerate(codes) if code not in codes[:place]],
        doubts=[doubt for run in runs for doubt in run.trust if doubt.level != "note"], kinds=_kinds(runs),
        unexplained=sum(run.unexplained.rows for run in runs if run.unexplained is not None),
        rules=[rule for rule in RULES if rule.name in rungs],
        paths=paths, examples=examples,
    )  # fmt: skip
    return text.rstrip() + "\n"


@cache
def _template() -> Any:
    import jinja2

    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {
        "code": _code, "codes": _codes, "few": _few, "count": count, "n": "{:,}".format,
        "line": line, "argument": shlex.quote, "json": lambda value: json.dumps(value, default=str),
        "quoted": lambda text: json.dumps(re.sub("[<>]", "", text)[:1024], ensure_ascii=False),
        "fence": lambda text, language="text": markdown_fence(text, language),
        # what happened, as one piece of code: names in it need no marks of their own
        "said": lambda text, limit: _code(text.replace("`", ""), limit),
    }  # fmt: skip
    return environment.from_string(TEMPLATE.read_text(encoding="utf-8"))


def _code(text: str, limit: int = 80) -> str:
    """Words of a row, of a file beside it or of a judge: never prose, for prose here is an instruction."""
    # before a pipe a backslash cannot stand in a table without leaving the code
    return markdown_code(re.sub(r"\\+\|", "|", line(text, limit)), in_table=True)


def _codes(names: Iterable[str], joint: str = ", ") -> str:
    return joint.join(map(_code, names))


def _few(names: Sequence[str]) -> str:
    return _codes(names[:MAX_VALUES]) + (f" and {len(names) - MAX_VALUES} more" * (len(names) > MAX_VALUES))


def _tools(loaded: Sequence[Loaded]) -> str:
    """The tools that the first rows declare, or else those that their rollouts call."""
    runs = [each.run for each in loaded]
    rows = [single_rows.row(run, 0) for run in runs if len(run.rollouts.task)]
    if names := list(dict.fromkeys(tool for row in rows for tool in events.declared_tools(row)))[:20]:
        return f"The agent acts through {count(len(names), 'tool')}: {_codes(names)}."
    places = ((run, place) for run in runs for place in range(min(len(run.rollouts.task), _LOOKED_AT)))
    traces = (single_rows.traced(run, place) for run, place in places)
    called = ({step.tool for step in trace.steps if step.kind == "call" and step.tool} for trace in traces)
    used = Counter(tool for tools in called for tool in tools)
    if not used:
        return "The rows declare no tools: a rollout is an answer to a prompt."
    names = sorted(used, key=lambda tool: (-used[tool], tool))
    return f"The rows declare no tools; their rollouts call {_few(names)}."


def _kinds(runs: Sequence[Facts]) -> list[dict[str, Any]]:
    """Collect the groups of all runs by label and name, then what judges named otherwise; the largest first."""
    kinds: dict[tuple[str, str], dict[str, Any]] = {}

    def add(label: str, name: str, rows: int, tasks: int, example: str, text: str) -> None:
        first = {"label": label, "name": name, "rows": 0, "tasks": 0, "example": example, "text": text}
        kind = kinds.setdefault((label, name), first)
        kind |= {"rows": kind["rows"] + rows, "tasks": kind["tasks"] + tasks}

    for group in (group for run in runs for group in run.groups):
        add(group.label.value, group.name, group.rows, group.tasks, group.examples[0], group.text)
    grouped = set(kinds)
    for cause in (cause for run in runs for cause in run.attributions if cause.judged_by and not cause.group):
        if (cause.cause.value, cause.mode) not in grouped:
            place = row_addresses.place(cause.task, cause.repeat)
            add(cause.cause.value, cause.mode, 1, 1, place, cause.mechanism)
    return sorted(kinds.values(), key=lambda kind: (-kind["rows"], kind["label"], kind["name"]))


def _examples(runs: Sequence[Facts]) -> list[Attribution]:
    """The surest quoted label of each cause, tasks that pass in other repeats first."""
    sometimes = {(run.run.name, task) for run in runs for task in run.buckets.sometimes}
    causes = [cause for run in runs for cause in run.attributions if any(part.quote for part in cause.evidence)]
    causes = [cause for cause in causes if cause.cause is not Cause.UNDETERMINED] or causes
    sure = tuple(reversed(Confidence))  # the surest last

    def rank(cause: Attribution) -> tuple[bool, int, float]:
        return (cause.run, cause.task) in sometimes, sure.index(cause.confidence), cause.lost

    best: dict[Cause, Attribution] = {}
    for cause in sorted(causes, key=rank, reverse=True):
        best.setdefault(cause.cause, cause)
    return list(best.values())[:MAX_EXAMPLES]


# -- the fields of the rows -------------------------------------------------------------------------

_WIDE = 40  # keys up to which an object is a record and not a map
_NESTED = frozenset("response responses_create_params agent_ref verifier_metadata metadata".split())
_REPEATS = ("_ng_rollout_index", "_rollout_index", "rollout_index", "rollout_id")
_TASKS = {"_ng_task_index", "_task_index", "task_index"}
_TYPES = {
    bool: "true or false", int: "whole number", float: "number", str: "text", list: "list", dict: "object",
    type(None): "null",
}  # fmt: skip
TASK_ID, ROLLOUT_ID, REWARD, OUTPUT, VERIFIER, SLICE, TASK, REQUEST, OTHER = ROLES = (
    "task id", "rollout id", "reward", "output", "verifier", "slice", "task", "request", "bookkeeping",
)  # fmt: skip


class Field(NamedTuple):
    """One field of the rows."""

    name: str
    role: str
    types: tuple[str, ...]  # the commonest first
    present: int  # rows that have it


def schema(loaded: Sequence[Loaded], reports: Sequence[Report]) -> tuple[int, list[Field]]:
    """How many rows were looked at, and their fields by role and name."""
    types: dict[str, Counter[str]] = {}
    n_rows = 0
    for run in (each.run for each in loaded):
        n = len(run.rollouts.task)
        for place in range(min(n, SAMPLE)):
            n_rows += 1
            for name, value in _members(single_rows.row(run, place * n // min(n, SAMPLE))):
                types.setdefault(name, Counter())[_TYPES.get(type(value), "other")] += 1
    role_of = _roles(loaded, reports)
    fields = [
        Field(name, role_of(name), tuple(sorted(kinds, key=lambda kind: (-kinds[kind], kind))), kinds.total())
        for name, kinds in types.items()
    ]
    return n_rows, sorted(fields, key=lambda field: (ROLES.index(field.role), field.name))


def _members(row: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The top-level fields; of objects that are records, theirs as well."""
    for name, value in row.items():
        if isinstance(value, dict) and 0 < len(value) <= _WIDE and name in _NESTED:
            yield from ((f"{name}.{below}", inner) for below, inner in value.items())
        else:
            yield name, value


def _roles(loaded: Sequence[Loaded], reports: Sequence[Report]) -> Callable[[str], str]:
    """What each field is for, by its name and by what was learned from its values."""
    benchmarks = [run.benchmark for run in loaded]
    inputs = {name for run in loaded for name in run.run.rollouts.input_fields}
    rated = {code.field for benchmark in benchmarks for code in benchmark.codes}
    rated |= {stage.field for benchmark in benchmarks for stage in benchmark.stages}
    named = dict.fromkeys(rated, VERIFIER)
    named |= dict.fromkeys((part.field for report in reports for part in report.slices), SLICE)
    declared = {benchmark.task_id for benchmark in benchmarks if benchmark.task_id}
    own = dict.fromkeys({*_TASKS, *ID_FIELDS, *declared} - {"id", "uuid", "name"}, TASK_ID)
    own |= dict.fromkeys(_REPEATS, ROLLOUT_ID) | dict.fromkeys(("reward", "score"), REWARD)
    parts = {"response": OUTPUT, "responses_create_params": REQUEST}

    def role_of(name: str) -> str:
        first = name.partition(".")[0]
        role = own.get(name) or parts.get(first) or named.get(name)
        if role is None and (first.startswith("_ng") or first == "agent_ref"):
            return OTHER
        return role or (TASK if name in inputs or is_task_field(first) else VERIFIER)

    return role_of
