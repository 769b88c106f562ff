"""Collect the rollouts of a run: many at a time, again where one failed, each kept as it comes."""

from __future__ import annotations

import asyncio
import gc
import signal
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from blade.errors import BladeError, Unreadable
from blade_eval.environment import JUDGE_UNREACHED, Row, Unmeasured
from blade_eval.runner import json_lines
from blade_eval.runner.run_files import Kept, Places, Standing


class Stop:
    """Whether a run shall stop; the first request lets what is under way finish, the second does not."""

    def __init__(self) -> None:
        self.is_set = False
        self.workers: Sequence[asyncio.Task[None]] = ()
        self._event: asyncio.Event | None = None

    def ask(self) -> None:
        """No new rollouts; asked again, none at all."""
        if self.is_set:
            self.now()
        self._set()

    def now(self) -> None:
        """Let go of what is under way: it leaves no trace and runs again."""
        self._set()
        here = asyncio.current_task()
        for worker in self.workers:
            if worker is not here:
                worker.cancel()

    def _set(self) -> None:
        self.is_set = True
        if self._event is not None:
            self._event.set()

    async def within(self, seconds: float) -> bool:
        """Wait so long; True as soon as the run shall stop."""
        if self.is_set:
            return True
        if self._event is None:
            self._event = asyncio.Event()
        try:
            await asyncio.wait_for(self._event.wait(), seconds)
        except TimeoutError:
            return False
        return True


@contextmanager
def listening(stop: Stop) -> Iterator[None]:
    """Ctrl-C and a polite kill ask `stop`; elsewhere than in the main thread signals are not ours."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    signals = (signal.SIGINT, signal.SIGTERM)
    for number in signals:
        loop.add_signal_handler(number, stop.ask)
    try:
        yield
    finally:
        for number in signals:
            loop.remove_signal_handler(number)


_MOST = 2_000  # characters of a foreign text
_APPENDED = ("agent_ref", "task_source", "skills_ref")
_OURS = frozenset(("_ng_task_index", "_ng_rollout_index", "_ng_attempt_index", *_APPENDED))
_OF_THE_ROW = (400, 413, 414, 415, 422, 431, 451)  # statuses by which a server answers: not this request


def unmeasured(error: Exception) -> Unmeasured:
    """Any exception of a rollout as one of few kinds: a verifier's bug is not the model's failure."""
    if isinstance(error, Unmeasured):
        return error
    if isinstance(error, TimeoutError):
        return Unmeasured("timeout_exceeded", str(error) or "no answer in time")
    failure = Unmeasured("agent_run_error", str(error) or "no reason given")
    failure.fields = {"_ng_failure_type": type(error).__name__}
    return failure


def is_endpoint(failure: Unmeasured) -> bool:
    """Whether a failure speaks of the model or agent server rather than of the rollout.

    A server that refuses one request with a reason has answered, and answers the next one.
    """
    status = failure.fields.get("_ng_failure_http_status")
    if failure.terminal or status in _OF_THE_ROW or (failure.kind == "model_refused" and status is None):
        return False
    return failure.kind.startswith(("model_", "transport_")) or failure.kind in (
        "agent_request_failed",
        "environment_server_failed",
    )


def is_judge(failure: Unmeasured) -> bool:
    """Whether a failure speaks of the judge's server in the same way."""
    is_unreached = failure.fields.get("_ng_failure_type") == JUDGE_UNREACHED
    status = failure.fields.get("_ng_failure_http_status")
    return is_unreached and not failure.terminal and status not in _OF_THE_ROW


def stamped(result: Row, row: Row, earlier: int) -> Row:
    """A result row with what the framework appends, in its order."""
    if not _OURS.isdisjoint(result):
        result = {key: value for key, value in result.items() if key not in _OURS}
    return result | _appended(row, earlier)


def _appended(row: Row, earlier: int) -> Row:
    tail = {"_ng_task_index": row["_ng_task_index"], "_ng_rollout_index": row["_ng_rollout_index"]}
    tail |= {key: row[key] for key in _APPENDED if row.get(key) is not None}
    if earlier:
        tail["_ng_attempt_index"] = earlier
    if row.get("_ng_rollout_id") is not None:
        tail["_ng_rollout_id"] = row["_ng_rollout_id"]
    return tail


def failure_line(failure: Unmeasured, row: Row, earlier: int) -> Row:
    """One failed attempt; it has no reward, because none was measured."""
    fields = {key: value for key, value in failure.fields.items() if key != "reward"}
    reason = failure.reason if len(failure.reason) <= _MOST else failure.reason[:_MOST] + "…"
    head: Row = {
        "_ng_failure_class": failure.kind,
        "_ng_failure_type": fields.pop("_ng_failure_type", type(failure).__name__),
        "_ng_failure_message": reason,
    }
    for key in ("_ng_failure_http_status", "_ng_failure_response_body", "_ng_failure_stage"):
        if fields.get(key) is not None:
            head[key] = fields.pop(key)
    if failure.kind.startswith("judge"):
        head["_ng_failure_judge_error"] = reason
    if failure.terminal:
        head["_ng_failure_terminal"] = True
    head |= {"mask_sample": True, "failure_kind": failure.kind, "failure_reason": reason}
    return stamped({**fields, **head}, row, earlier)


Runner = Callable[[Row], Awaitable[Row]]  # a materialised row to a result row, or Unmeasured

ATTEMPTS = 3
_SYNC_S = 5.0
_MOMENT_S = 0.05  # for which a line may wait for others to be written with
_TURNS = 16  # rollouts after which a worker lets others have their turn, even if it never waited
_GC = (50_000, 50, 100)  # a fifth of the time of a run otherwise goes to looking for garbage among live rows
_DEAD_FROM_START = 10  # failures at the endpoint, and no success yet
_DEAD_AFTERWARDS = 2  # times the concurrency, and at least _DEAD_FROM_START: failures since the last success


class Watch(Protocol):
    """Who follows a run."""

    def scored(self, reward: Any, usage: Any) -> None: ...
    def failed(self, kind: str, is_final: bool) -> None: ...
    def waited(self) -> None: ...


@dataclass(frozen=True)
class Plan:
    """What is to be collected, by whom, and where it is kept."""

    places: Places
    run: Runner
    kept: Kept
    standing: Standing
    expected: int
    concurrency: int = 64
    attempts: int = ATTEMPTS
    retry_wait_s: float = 1.0  # before the second attempt; doubled before each further one
    watch: Watch | None = None
    stop: Stop = field(default_factory=Stop)


@dataclass(frozen=True)
class Summary:
    """What became of the rollouts that were expected."""

    expected: int
    scored: int  # of all sittings
    scored_before: int
    failed: int  # given up: as many failure lines as attempts are allowed, or one that is terminal
    unfinished: int
    failure_lines: int  # of this sitting
    retries: int
    seconds: float
    is_interrupted: bool = False


@dataclass
class _Course:
    """How a sitting goes."""

    rows: Iterator[Row]
    n_scored: int = 0
    n_failed: int = 0
    n_lines: int = 0
    n_retries: int = 0
    unreached: int = 0  # failures at the endpoint since the last success
    came: list[bytes] = field(default_factory=list)  # lines of this moment, which are written together
    has_come: asyncio.Event = field(default_factory=asyncio.Event)
    written: float = field(default_factory=time.monotonic)  # when lines were last written
    held: list[Row] = field(default_factory=list)
    under_way: int = 0
    doubt: str = ""  # why the endpoint seems dead; while there is doubt, nothing new is begun
    dead: str = ""
    settled: asyncio.Event = field(default_factory=asyncio.Event)  # cleared while there is doubt


async def collected(plan: Plan) -> Summary:
    """Run what is not there yet; returns when all is done, given up, or stopped."""
    begun = time.monotonic()
    course = _Course(_waiting(plan))
    course.settled.set()
    given_up = plan.standing.n_given_up(plan.attempts)
    before = plan.standing.n_scored
    waiting = max(0, plan.expected - before - given_up)
    try:
        with listening(plan.stop), _less_gc():
            async with asyncio.TaskGroup() as group:
                clerks = [group.create_task(_written(plan, course)), group.create_task(_synced(plan))]
                workers = [
                    group.create_task(_work(plan, course)) for _ in range(min(plan.concurrency, waiting))
                ]
                plan.stop.workers = workers
                await asyncio.gather(*workers, return_exceptions=True)
                for clerk in clerks:
                    clerk.cancel()
    except* BladeError as several:
        raise several.exceptions[0] from None
    finally:
        _put(plan, course)
        _released(plan, course, is_alive=not course.dead)
    if course.dead:
        raise _dead(plan, course)
    scored = before + course.n_scored
    failed = given_up + course.n_failed
    return Summary(
        expected=plan.expected,
        scored=scored,
        scored_before=before,
        failed=failed,
        unfinished=max(0, plan.expected - scored - failed),
        failure_lines=course.n_lines,
        retries=course.n_retries,
        seconds=time.monotonic() - begun,
        is_interrupted=plan.stop.is_set,
    )


def _waiting(plan: Plan) -> Iterator[Row]:
    """The materialised rows that have no rollout yet and are not given up, in their order."""
    with plan.places.materialized.open("rb") as file:
        for line in file:
            row = json_lines.decode(line)
            key = (row["_ng_task_index"], row["_ng_rollout_index"])
            if not plan.standing.has(key) and not plan.standing.is_given_up(key, plan.attempts):
                yield row


async def _work(plan: Plan, course: _Course) -> None:
    while not plan.stop.is_set:
        await course.settled.wait()
        row = None if plan.stop.is_set else next(course.rows, None)
        if row is None:
            return
        await _rollout(plan, course, row)
        if course.n_scored % _TURNS == 0:
            await asyncio.sleep(0)  # a model that answers at once must not keep Ctrl-C waiting


async def _rollout(plan: Plan, course: _Course, row: Row) -> None:
    """One row to its result, or to as many failure lines as it takes."""
    key = (row["_ng_task_index"], row["_ng_rollout_index"])
    earlier = plan.standing.failed.get(key, 0)
    while True:
        course.under_way += 1
        try:
            result = await plan.run(row)
            line = json_lines.line(stamped(result, row, earlier))
        except BladeError:
            raise  # what is wrong with the run itself is told once
        except Exception as error:
            failure = unmeasured(error)
            course.under_way -= 1
        else:
            course.under_way -= 1
            course.came.append(line)
            course.n_scored += 1
            if time.monotonic() - course.written < _MOMENT_S:
                course.has_come.set()
            else:  # verifiers that compute keep the loop from going round
                _put(plan, course)
            _released(plan, course, is_alive=True)
            if plan.watch is not None:
                plan.watch.scored(result.get("reward"), (result.get("response") or {}).get("usage"))
            return
        earlier += 1
        is_final = failure.terminal or earlier >= plan.attempts
        _failed(plan, course, failure, failure_line(failure, row, earlier - 1))
        if is_final:
            course.n_failed += 1
        if plan.watch is not None:
            plan.watch.failed(failure.kind, is_final)
        _counted(plan, course, failure)
        if is_final or await plan.stop.within(plan.retry_wait_s * 2 ** (earlier - 1)):
            return
        await course.settled.wait()
        if plan.stop.is_set:
            return
        course.n_retries += 1


def _failed(plan: Plan, course: _Course, failure: Unmeasured, line: Row) -> None:
    """A failure at the endpoint is written once another rollout shows that the endpoint lives.

    An endpoint that is dead would otherwise use up the attempts of every row it never answered.
    """
    if is_endpoint(failure):
        course.held.append(line)
    else:
        plan.kept.failure(line)
        course.n_lines += 1


def _counted(plan: Plan, course: _Course, failure: Unmeasured) -> None:
    """Doubt the endpoint after many failures; it is dead when what is under way has failed as well."""
    if is_endpoint(failure) or is_judge(failure):
        course.unreached += 1
        most = (
            _DEAD_FROM_START
            if not course.n_scored
            else max(_DEAD_FROM_START, _DEAD_AFTERWARDS * plan.concurrency)
        )
        if course.unreached >= most and not course.doubt:
            course.doubt = str(failure)
            course.settled.clear()
    if course.doubt and not course.under_way and not course.dead:
        course.dead = course.doubt
        plan.stop.now()
        course.settled.set()


def _released(plan: Plan, course: _Course, is_alive: bool) -> None:
    course.unreached, course.doubt = 0, ""
    course.settled.set()
    if course.held and is_alive:
        for line in course.held:
            plan.kept.failure(line)
            course.n_lines += 1
    course.held.clear()


def _dead(plan: Plan, course: _Course) -> Unreadable:
    done = plan.standing.n_scored + course.n_scored
    return Unreadable(
        f"the model, judge or agent server gives no answer ({course.dead}); stopped at {done:,} of"
        f" {plan.expected:,} rollouts, and no attempt is held against those it did not answer",
        "see that the server runs and that address, key and model name are right; then add --resume",
        "endpoint-dead",
    )


@contextmanager
def _less_gc() -> Iterator[None]:
    """Look for garbage less often: rows are trees, which are freed without it."""
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(*_GC)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


async def _written(plan: Plan, course: _Course) -> None:
    """Write what came while the loop went round once: a write for each costs more than what it writes."""
    while True:
        await course.has_come.wait()
        course.has_come.clear()
        _put(plan, course)


def _put(plan: Plan, course: _Course) -> None:
    lines, course.came = course.came, []
    course.written = time.monotonic()
    plan.kept.rollouts(lines)


async def _synced(plan: Plan) -> None:
    while True:
        await asyncio.sleep(_SYNC_S)
        await asyncio.to_thread(plan.kept.synced)
        if plan.watch is not None:
            plan.watch.waited()
