"""Turn a session into what a reader of single tasks needs: the queue, dossiers, kept judgements."""

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
from blade.model import Judgement, Waiting
from blade.pipeline import judging, pages, reading
from blade.pipeline.session import Session, depends_on
from blade.tables import cache

if TYPE_CHECKING:
    from blade.pipeline.load import Loaded
    from blade.query.ground import Ground

_TOLD = 10  # refused judgements that an error names
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
    from blade.pipeline.conditions import unmet
    from blade.pipeline.tabling import ground_of

    one = session.run(run)
    ground: Ground | None = None  # made for the first judgement by condition
    scoring = pages.scoring_of(one, session.threshold)
    judged = reading.judged_of(one, scoring)
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
        seen = judging.seen_of(one, judged, key, engine.get(key), scoring.is_bounded)
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
        more = [f"and {len(refused) - _TOLD} more"] if len(refused) > _TOLD else []
        raise UsageError(
            "\n".join([f"{len(refused)} of {len(proposals)} refused, nothing kept", *refused[:_TOLD], *more]),
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
