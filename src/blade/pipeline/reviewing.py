"""Serve readers of single tasks: the queue, dossiers, judgements that are kept, labels by condition."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from blade import hostile
from blade.agent import judgements
from blade.agent import queue as queueing
from blade.agent.dossier import BUDGET, Dossier
from blade.agent.dossier import dossier as write_dossier
from blade.errors import UsageError
from blade.formats import single_rows
from blade.formats.rollout_steps import NOTHING, quotable, value_at
from blade.model import Judgement, Waiting
from blade.pipeline import trace_reading
from blade.pipeline.load import Loaded
from blade.pipeline.run_tables import ground_of
from blade.pipeline.session import Session, depends_on
from blade.query import select
from blade.query.query_ground import FIELD_TEXTS, Ground, Table
from blade.tables import cache
from blade.tables.database import literal

__all__ = ["BUDGET", "Queue", "checked", "dossier", "label", "queue", "withdraw"]

_AROUND = 90  # characters of a text on either side of what a condition finds in it
_TRIED = 3  # places of each part of a condition that are tried
_MOST_REFUSED = 10  # refused judgements that an error names
_KINDS = {"": "message", "model": "message", "tool": "result"}  # who says it -> kind of step
_STEPS = ("message", "result", "user", "system", "reasoning", "call")
_WHEN = "2000-01-01T00:00:00Z"  # only to see whether a place would be kept

Place = Mapping[str, Any]  # step or field, and quote


def proposals_where(
    entry: Loaded, ground: Ground, condition: str, template: Mapping[str, Any], threshold: float | None = None
) -> list[Mapping[str, Any]]:
    """A judgement for each failed task with a rollout that meets the condition: its first failing one.

    Each keeps the condition, and quotes what the condition speaks of where that can be quoted.
    """
    rows = meeting(ground, condition)
    if not rows:
        hint = f'count them with blade query RUN "count where not passed and ({condition})"'
        raise UsageError("no failing rollout meets the condition", hint, "nothing-to-judge")
    tree = select.parsed(f"select 1 from rollouts where ({condition})", ground.connection(False))
    bench = trace_reading.Bench(entry, threshold)
    first: dict[str, tuple[int, int]] = {}
    for task, repeat, row in rows:
        first.setdefault(task, (repeat, row))
    proposals: list[Mapping[str, Any]] = []
    for task, (repeat, row) in first.items():
        draft = {**template, "task": task, "repeat": repeat, "condition": condition}
        seen = bench.seen(task)
        for place in _places(entry, ground, tree, row):
            if isinstance(judgements.verified({**draft, **place}, seen, "by condition", _WHEN), Judgement):
                draft |= place
                break
        proposals.append(draft)
    return proposals


def meeting(ground: Ground, condition: str) -> list[tuple[str, int, int]]:
    """Task, repeat and row of the failing rollouts that meet a condition."""
    sql = f'select task, repeat, "row" from rollouts where passed = false and ({condition}) order by "row"'
    table = ground.ask(sql)
    assert isinstance(table, Table)
    return [(task, repeat, row) for task, repeat, row in table.rows]


def _places(entry: Loaded, ground: Ground, tree: dict[str, Any], row: int) -> Iterator[Place]:
    """What a condition speaks of in a rollout, in the order of the condition; then the fields it names."""
    for name, words in _functions(tree):
        if name == "says":
            yield from _spoken(ground, row, *words)
        elif name == "calls":
            yield from _steps(ground, row, f"kind = 'call' and tool = {literal(words[0])}")
        elif name == "check_failed":
            # the status of the check, as a field of the row
            named = f"{literal(words[0])} in (name, path, path || '.' || name)"
            where = f""""row" = {row} and status = 'failed' and {named}"""
            sql = f"select path, name from checks where {where} order by all"
            for path, member in ground.connection(False).execute(sql).fetchall()[:_TRIED]:
                yield from _values(entry, row, (f"{path}.{member}", path))
    columns = select.columns_in(tree)
    if "last_tool" in columns:
        yield from _steps(ground, row, "kind = 'call'", last=True)
    known = ground.ask('select lower("column"), path from fields where "column" is not null')
    assert isinstance(known, Table)
    paths = dict(known.rows)
    yield from _values(entry, row, [paths.get(column, column) for column in sorted(columns)])


def _functions(tree: dict[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """Our functions in a condition with the texts they are given, in the order in which they stand."""
    called = [node for node in select.nodes(tree) if node.get("type") == "FUNCTION"]
    for node in sorted(called, key=lambda node: int(node.get("query_location") or 0)):
        name = str(node.get("function_name", "")).lower()
        arguments = [argument["expression"] for argument in node.get("arguments", [])]
        words = [part["literal"]["text"] for part in arguments if isinstance(part.get("literal"), dict)]
        if name in select.OUR_FUNCTIONS and words and all(isinstance(word, str) for word in words):
            yield name, words


def _spoken(ground: Ground, row: int, pattern: str, speaker: str = "") -> Iterator[Place]:
    """Words that match a pattern, where a speaker says them: in a step, or in a text field of the row."""
    kind, matches = _KINDS.get(speaker, speaker), f"regexp_matches(text, {literal(pattern)})"
    if kind in _STEPS or speaker == "any":
        where = matches if speaker == "any" else f"{matches} and kind = {literal(kind)}"
        yield from _steps(ground, row, where, pattern)
    if kind not in _STEPS:
        place = "true" if speaker == "any" else f"path = {literal(speaker)}"
        hit = f"regexp_extract(text, {literal(pattern)})"
        sql = f'select path, text, {hit} from {FIELD_TEXTS} where "row" = {row} and {place} and {matches}'
        rows = ground.connection(True).execute(f"{sql} order by path").fetchall()
        for path, text, hit_text in rows[:_TRIED]:
            for quote in _quotations(text, hit_text):
                yield {"field": path.partition("[]")[0], "quote": quote}


def _steps(ground: Ground, row: int, where: str, pattern: str = "", last: bool = False) -> Iterator[Place]:
    """The first steps of a rollout that meet a condition, or the last ones, with words of each."""
    hit = f"regexp_extract(text, {literal(pattern)})" if pattern else "''"
    order = f"order by step {'desc' if last else ''} limit {_TRIED}"
    sql = f'select step, text, {hit} from steps where "row" = {row} and {where} and length(text) > 0 {order}'
    for step, text, hit_text in ground.connection(True).execute(sql).fetchall():
        for quote in _quotations(text, hit_text):
            yield {"step": step, "quote": quote}


def _quotations(text: str, hit: str) -> Iterator[str]:
    """Parts of a text around what was found in it, the longest first: a few words alone show nothing."""
    place = max(text.find(hit), 0)
    for around in (_AROUND, _AROUND // 6, 0):
        part = text[max(0, place - around) : place + min(len(hit), 2 * _AROUND) + around].strip()
        if part:
            yield part


def _values(entry: Loaded, row: int, fields: Iterable[str]) -> Iterator[Place]:
    data = single_rows.row(entry.run, row)
    for field in fields:
        if (value := value_at(data, field)) not in (NOTHING, None, ""):
            yield {"field": field, "quote": quotable(value)[: 2 * _AROUND]}


def unmet(ground: Ground, condition: str, task: str, repeat: Any) -> str | None:
    """Why a condition cannot stand for a judgement of a rollout; None where the rollout meets it."""
    try:
        rows = meeting(ground, condition)
    except UsageError as error:
        return f"the condition cannot be asked: {error.message}"
    if any((key, number) == (task, repeat) for key, number, _ in rows):
        return None
    return f"no failing row of {task}/{repeat} meets the condition"


# ---- The queue, and what a reader of one task needs --------------------------------------------------


class Queue(msgspec.Struct, frozen=True):
    """The tasks of a run that wait to be read, those first whose reading is worth most."""

    run: str
    waiting: tuple[Waiting, ...]
    n_failed: int  # tasks that lose points
    n_judged: int  # of these, judged already
    n_waiting: int  # tasks that wait, listed or not
    value: float  # points of score that hang on labels nobody has confirmed, of all of them


def queue(
    session: Session, run: str | None = None, most: int | None = 20, budget: int = BUDGET,
    judged: bool = False,
) -> Queue:
    """What to read next; `judged` keeps tasks in it on which somebody has spoken and nobody disagreed."""
    if most is not None and most < 1:
        raise UsageError(f"{most} is no number of tasks", "give 1 or more, or none for all", "usage")
    entry = session.run(run)
    facts = session.facts[entry.name]
    waiting = [each for each in facts.attributions if judged or not queueing.is_settled(each)]

    with _prices(session, entry, budget) as known:

        def tokens(task: str) -> int:
            if task not in known:
                known[task] = dossier(session, task, entry.name, budget).tokens
            return known[task]

        first = queueing.queue(waiting, {task.task: task for task in facts.tasks}, tokens, most)
    n_judged = sum(bool(attribution.judged_by) for attribution in facts.attributions)
    values = [*map(queueing.worth, waiting)]
    return Queue(entry.name, first, len(facts.attributions), n_judged, sum(value > 0 for value in values), sum(values))


@contextlib.contextmanager
def _prices(session: Session, entry: Loaded, budget: int) -> Iterator[dict[str, int]]:
    """The tokens of dossiers as they were counted before; what is added is kept for the next time."""
    key = depends_on(session.loaded, f"prices {entry.name} {session.threshold} {budget}")
    source = Path(entry.sources[0].path)
    packed = cache.kept(source, "prices", key) if key else None
    try:
        known = msgspec.msgpack.decode(packed, type=dict[str, int]) if packed else {}
    except msgspec.DecodeError:
        known = {}
    before = len(known)
    yield known
    if key and len(known) > before:
        cache.keep(source, "prices", key, msgspec.msgpack.encode(known))


def dossier(
    session: Session, task: str, run: str | None = None, budget: int = BUDGET, repeat: int | None = None
) -> Dossier:
    """What is needed to judge one task, within a budget of tokens; `repeat` is the rollout in focus."""
    entry = session.run(run)
    key = session.key(entry, task)
    return write_dossier(session.facts[entry.name], key, session.traces(entry, key), budget, repeat)


# ---- Judgements --------------------------------------------------------------------------------


def checked(
    session: Session, proposals: Sequence[Mapping[str, Any]], by: str, run: str | None = None
) -> tuple[list[Judgement], list[str]]:
    """What would be kept, and the reasons against the rest; nothing is written."""
    entry = session.run(run)
    ground: Ground | None = None  # made for the first judgement by condition
    bench = trace_reading.Bench(entry, session.threshold)
    engine = {each.task: each.proposed or each.cause for each in session.facts[entry.name].attributions}
    now = _now()
    accepted: list[Judgement] = []
    refused: list[str] = []
    for number, proposal in enumerate(proposals, 1):
        named = hostile.line(str(proposal.get("task")), 60)
        try:
            key = session.key(entry, str(proposal.get("task")))
        except UsageError as error:
            refused.append(f"{number}. task {named}: {error.message}; {error.hint}")
            continue
        verdict = judgements.verified({**proposal, "task": key}, bench.seen(key, engine.get(key)), by, now)
        if isinstance(verdict, Judgement) and verdict.condition:
            ground = ground or ground_of([entry], session.threshold)
            problem = unmet(ground, verdict.condition, verdict.task, verdict.repeat)
            verdict = [problem] if problem else verdict
        if isinstance(verdict, Judgement):
            accepted.append(verdict)
        else:
            refused.append(f"{number}. task {named}: {'; '.join(verdict)}")
    return accepted, refused


def label(
    session: Session, proposals: Sequence[Mapping[str, Any]], by: str, run: str | None = None
) -> tuple[Judgement, ...]:
    """Keep judgements beside the run: all of them, or none and the reasons why."""
    entry = session.run(run)
    path = _path(entry)
    accepted, refused = checked(session, proposals, by, run)
    if refused:
        more = [f"and {len(refused) - _MOST_REFUSED} more"] if len(refused) > _MOST_REFUSED else []
        lines = [f"{len(refused)} of {len(proposals)} refused, nothing kept", *refused[:_MOST_REFUSED], *more]
        hint = f"look again: blade show {hostile.line(entry.sources[0].path)} TASK/REPEAT --steps A:B"
        raise UsageError("\n".join(lines), hint, "judgement-refused")
    judgements.append(path, accepted)
    return tuple(accepted)


def withdraw(session: Session, task: str, by: str, run: str | None = None) -> tuple[Judgement, ...]:
    """Take back what an author said of a task."""
    entry = session.run(run)
    gone = {judgement.task for judgement in entry.judgements} - set(entry.run.rollouts.task_keys)
    key = task if task in gone else session.key(entry, task)  # also of tasks that are no longer there
    withdrawn = tuple(each for each in entry.judgements if (each.task, each.by) == (key, by))
    if not withdrawn:
        authors = sorted({judgement.by for judgement in entry.judgements if judgement.task == key})
        hint = f"judged it: {', '.join(authors)}" if authors else "nobody has judged it"
        raise UsageError(f"{by} has not judged task {key}", hint, "judgement-refused")
    judgements.append(_path(entry), [judgements.Withdrawn(each.id, by, _now()) for each in withdrawn])
    return withdrawn


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _path(entry: Loaded) -> Any:
    if entry.judged_in is None:
        raise UsageError("judgements are kept beside a file", "name a rollouts file, not standard input", "usage")
    return entry.judged_in
