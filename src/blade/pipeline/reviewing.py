"""Serve readers of single tasks: the queue, dossiers, judgements that are kept, labels by condition."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from blade import hostile
from blade.agent import judgements
from blade.agent import queue as queueing
from blade.agent.dossier import BUDGET, Dossier
from blade.agent.dossier import dossier as write_dossier
from blade.errors import UsageError
from blade.formats import opened
from blade.formats.items import NOTHING, quotable, value_at
from blade.model import Judgement, Waiting
from blade.pipeline import report_pages, trace_reading
from blade.pipeline.session import Session, depends_on
from blade.query import select
from blade.query.ground import FIELD_TEXTS, Ground, Table
from blade.tables import cache
from blade.tables.database import literal

if TYPE_CHECKING:
    from blade.pipeline.load import Loaded
    from blade.query.ground import Ground

_AROUND = 90  # characters of a text on either side of what a condition finds in it
_TRIED = 3  # places of each part of a condition that are tried
_KINDS = {"": "message", "model": "message", "tool": "result"}  # who says it -> kind of step
_STEPS = ("message", "result", "user", "system", "reasoning", "call")
_WHEN = "2000-01-01T00:00:00Z"  # only to see whether a place would be kept

Place = Mapping[str, Any]  # step or field, and quote


def proposals_where(
    one: Loaded, ground: Ground, condition: str, given: Mapping[str, Any], threshold: float | None = None
) -> list[Mapping[str, Any]]:
    """A judgement for each failed task with a rollout that meets the condition: its first failing one.

    Each keeps the condition, and quotes what the condition speaks of where that can be quoted.
    """
    rows = meeting(ground, condition)
    if not rows:
        raise UsageError(
            "no failing rollout meets the condition",
            f'count them with blade query RUN "count where not passed and ({condition})"',
            "nothing-to-judge",
        )
    tree = select.parsed(f"select 1 from rollouts where ({condition})", ground.connection(False))
    scoring = report_pages.scoring_of(one, threshold)
    judged = trace_reading.judged_of(one, scoring)
    first: dict[str, tuple[int, int]] = {}
    for task, repeat, row in rows:
        first.setdefault(task, (repeat, row))
    found: list[Mapping[str, Any]] = []
    for task, (repeat, row) in first.items():
        said = {**given, "task": task, "repeat": repeat, "condition": condition}
        seen = trace_reading.seen_of(one, judged, task, None, scoring.is_bounded)
        tried = ({**said, **place} for place in _places(one, ground, tree, row))
        is_kept = (
            proposal
            for proposal in tried
            if isinstance(judgements.verified(proposal, seen, "by condition", _WHEN), Judgement)
        )
        found.append(next(is_kept, said))
    return found


def meeting(ground: Ground, condition: str) -> list[tuple[str, int, int]]:
    """Task, repeat and row of the failing rollouts that meet a condition."""
    sql = f'select task, repeat, "row" from rollouts where passed = false and ({condition}) order by "row"'
    found = ground.ask(sql)
    assert isinstance(found, Table)
    return [(task, repeat, row) for task, repeat, row in found.rows]


def _places(one: Loaded, ground: Ground, tree: dict[str, Any], row: int) -> Iterator[Place]:
    """What a condition speaks of in a rollout, in the order of the condition; then the fields it names."""
    for name, words in _functions(tree):
        if name == "says":
            yield from _spoken(ground, row, *words)
        elif name == "calls":
            yield from _steps(ground, row, f"kind = 'call' and tool = {literal(words[0])}")
        elif name == "check_failed":
            yield from _checks(one, ground, row, words[0])
    columns = select.columns_in(tree)
    if "last_tool" in columns:
        yield from _steps(ground, row, "kind = 'call'", last=True)
    yield from _fields(one, ground, row, sorted(columns))


def _functions(tree: dict[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """Our functions in a condition with the texts they are given, in the order in which they stand."""
    called = [node for node in select.nodes(tree) if node.get("type") == "FUNCTION"]
    for node in sorted(called, key=lambda node: int(node.get("query_location") or 0)):
        name = str(node.get("function_name", "")).lower()
        given = [argument["expression"] for argument in node.get("arguments", [])]
        words = [part["literal"]["text"] for part in given if isinstance(part.get("literal"), dict)]
        if name in select.OUR_FUNCTIONS and words and all(isinstance(word, str) for word in words):
            yield name, words


def _spoken(ground: Ground, row: int, pattern: str, speaker: str = "") -> Iterator[Place]:
    """Words that match a pattern, where a speaker says them: in a step, or in a text field of the row."""
    kind, matches = _KINDS.get(speaker, speaker), f"regexp_matches(text, {literal(pattern)})"
    if kind in _STEPS or speaker == "any":
        where = matches if speaker == "any" else f"{matches} and kind = {literal(kind)}"
        yield from _steps(ground, row, where, pattern)
    if kind not in _STEPS:
        at = "true" if speaker == "any" else f"path = {literal(speaker)}"
        hit = f"regexp_extract(text, {literal(pattern)})"
        sql = f'select path, text, {hit} from {FIELD_TEXTS} where "row" = {row} and {at} and {matches}'
        rows = ground.connection(True).execute(f"{sql} order by path").fetchall()
        for path, text, found in rows[:_TRIED]:
            for quote in _quotations(text, found):
                yield {"field": path.partition("[]")[0], "quote": quote}


def _steps(ground: Ground, row: int, where: str, pattern: str = "", last: bool = False) -> Iterator[Place]:
    """The first steps of a rollout that meet a condition, or the last ones, with words of each."""
    hit = f"regexp_extract(text, {literal(pattern)})" if pattern else "''"
    order = f"order by step {'desc' if last else ''} limit {_TRIED}"
    sql = f'select step, text, {hit} from steps where "row" = {row} and {where} and length(text) > 0 {order}'
    for step, text, found in ground.connection(True).execute(sql).fetchall():
        for quote in _quotations(text, found):
            yield {"step": step, "quote": quote}


def _quotations(text: str, hit: str) -> Iterator[str]:
    """Parts of a text around what was found in it, the longest first: a few words alone show nothing."""
    at = max(text.find(hit), 0)
    for around in (_AROUND, _AROUND // 6, 0):
        part = text[max(0, at - around) : at + min(len(hit), 2 * _AROUND) + around].strip()
        if part:
            yield part


def _checks(one: Loaded, ground: Ground, row: int, name: str) -> Iterator[Place]:
    """The status of a check that failed, as a field of the row."""
    named = f"{literal(name)} in (name, path, path || '.' || name)"
    where = f""""row" = {row} and status = 'failed' and {named}"""
    sql = f"select path, name from checks where {where} order by all"
    data = opened.row(one.run, row)
    for path, member in ground.connection(False).execute(sql).fetchall()[:_TRIED]:
        for field in (f"{path}.{member}", path):
            if (value := value_at(data, field)) not in (NOTHING, None, ""):
                yield {"field": field, "quote": quotable(value)[: 2 * _AROUND]}


def _fields(one: Loaded, ground: Ground, row: int, columns: list[str]) -> Iterator[Place]:
    """The fields of the row that a condition names."""
    known = ground.ask('select lower("column"), path from fields where "column" is not null')
    assert isinstance(known, Table)
    paths, data = dict(known.rows), opened.row(one.run, row)
    for column in columns:
        field = paths.get(column, column)
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


_MOST_REFUSED = 10  # refused judgements that an error names
__all__ = ["BUDGET", "Queue", "checked", "dossier", "label", "queue", "withdraw"]


class Queue(msgspec.Struct, frozen=True):
    """The tasks of a run that wait to be read, those first whose reading is worth most."""

    run: str
    waiting: tuple[Waiting, ...]
    n_failed: int  # tasks that lose points
    n_judged: int  # of these, judged already
    n_waiting: int  # tasks that wait, listed or not
    value: float  # points of score that hang on labels nobody has confirmed, of all of them


def queue(
    session: Session,
    run: str | None = None,
    most: int | None = 20,
    budget: int = BUDGET,
    judged: bool = False,
) -> Queue:
    """What to read next; `judged` keeps tasks in it on which somebody has spoken and nobody disagreed."""
    if most is not None and most < 1:
        raise UsageError(f"{most} is no number of tasks", "give 1 or more, or none for all", "usage")
    one = session.run(run)
    told = session.facts[one.name]
    worths = [queueing.worth(found) for found in told.attributions]
    kept = [found for found in worths if judged or not found.is_settled]

    with _prices(session, one, budget) as known:

        def tokens(task: str) -> int:
            if task not in known:
                known[task] = dossier(session, task, one.name, budget).tokens
            return known[task]

        waiting = queueing.queue(kept, {task.task: task for task in told.tasks}, tokens, most)
    n_judged = sum(bool(found.judged_by) for found in told.attributions)
    n_waiting = sum(found.value > 0 for found in kept)
    value = sum(found.value for found in kept)
    return Queue(one.name, waiting, len(worths), n_judged, n_waiting, value)


@contextlib.contextmanager
def _prices(session: Session, one: Loaded, budget: int) -> Iterator[dict[str, int]]:
    """The tokens of dossiers as they were counted before; what is added is kept for the next time."""
    key = depends_on(session.loaded, f"prices {one.name} {session.threshold} {budget}")
    source = Path(one.sources[0].path)
    held = cache.kept(source, "prices", key) if key else None
    try:
        known = msgspec.msgpack.decode(held, type=dict[str, int]) if held else {}
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
    one = session.run(run)
    key = session.key(one, task)
    return write_dossier(session.facts[one.name], key, session.traces(one, key), budget, repeat)


# ---- Judgements --------------------------------------------------------------------------------


def checked(
    session: Session, proposals: Sequence[Mapping[str, Any]], by: str, run: str | None = None
) -> tuple[list[Judgement], list[str]]:
    """What would be kept, and the reasons against the rest; nothing is written."""
    from blade.pipeline.tabling import ground_of

    one = session.run(run)
    ground: Ground | None = None  # made for the first judgement by condition
    scoring = report_pages.scoring_of(one, session.threshold)
    judged = trace_reading.judged_of(one, scoring)
    engine = {found.task: found.proposed or found.cause for found in session.facts[one.name].attributions}
    at = _now()
    found: list[Judgement] = []
    refused: list[str] = []
    for number, given in enumerate(proposals, 1):
        named = hostile.line(str(given.get("task")), 60)
        try:
            key = session.key(one, str(given.get("task")))
        except UsageError as error:
            refused.append(f"{number}. task {named}: {error.message}; {error.hint}")
            continue
        seen = trace_reading.seen_of(one, judged, key, engine.get(key), scoring.is_bounded)
        told = judgements.verified({**given, "task": key}, seen, by, at)
        if isinstance(told, Judgement) and told.condition:
            ground = ground or ground_of([one], session.threshold)
            problem = unmet(ground, told.condition, told.task, told.repeat)
            told = [problem] if problem else told
        if isinstance(told, Judgement):
            found.append(told)
        else:
            refused.append(f"{number}. task {named}: {'; '.join(told)}")
    return found, refused


def label(
    session: Session, proposals: Sequence[Mapping[str, Any]], by: str, run: str | None = None
) -> tuple[Judgement, ...]:
    """Keep judgements beside the run: all of them, or none and the reasons why."""
    one = session.run(run)
    path = _path(one)
    found, refused = checked(session, proposals, by, run)
    if refused:
        more = [f"and {len(refused) - _MOST_REFUSED} more"] if len(refused) > _MOST_REFUSED else []
        raise UsageError(
            "\n".join([f"{len(refused)} of {len(proposals)} refused, nothing kept", *refused[:_MOST_REFUSED], *more]),
            f"look again: blade show {hostile.line(one.sources[0].path)} TASK/REPEAT --steps A:B",
            "judgement-refused",
        )
    judgements.append(path, found)
    return tuple(found)


def withdraw(session: Session, task: str, by: str, run: str | None = None) -> tuple[Judgement, ...]:
    """Take back what an author said of a task."""
    one = session.run(run)
    gone = {told.task for told in one.judgements} - set(one.run.rollouts.task_keys)
    key = task if task in gone else session.key(one, task)  # also of tasks that are no longer there
    found = judgements.held(one.judgements, key, by)
    if not found:
        authors = sorted({told.by for told in one.judgements if told.task == key})
        hint = f"judged it: {', '.join(authors)}" if authors else "nobody has judged it"
        raise UsageError(f"{by} has not judged task {key}", hint, "judgement-refused")
    judgements.append(_path(one), [judgements.withdrawal(told, by, _now()) for told in found])
    return found


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _path(one: Loaded) -> Any:
    if one.judged_in is None:
        raise UsageError(
            "judgements are kept beside a file", "name a rollouts file, not standard input", "usage"
        )
    return one.judged_in
