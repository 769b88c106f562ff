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
from typing import NamedTuple

from blade.errors import BladeError, Unreadable
from blade_eval.environment import JUDGE_UNREACHED, Row, Unmeasured
from blade_eval.runner import json_lines
from blade_eval.runner.progress import Progress
from blade_eval.runner.run_files import Kept, Places, Standing


class Stop:
    """Whether a run shall stop; the first request lets what is under way finish, the second does not."""

    def __init__(self) -> None:
        self.is_set = False
        self.workers: Sequence[asyncio.Task[None]] = ()
        self._event = asyncio.Event()

    def ask(self, is_urgent: bool = False) -> None:
        """Asked again, or urgently, let go of what is under way: it leaves no trace and runs again."""
        for worker in self.workers if self.is_set or is_urgent else ():
            if worker is not asyncio.current_task():
                worker.cancel()
        self.is_set = True
        self._event.set()

    async def within(self, seconds: float) -> bool:
        """Wait so long; True as soon as the run shall stop."""
        try:
            return await asyncio.wait_for(self._event.wait(), seconds)
        except TimeoutError:
            return False


@contextmanager
def _listening(stop: Stop) -> Iterator[None]:
    """Ctrl-C and a polite kill ask `stop`; elsewhere than in the main thread signals are not ours."""
    is_main = threading.current_thread() is threading.main_thread()
    signals = (signal.SIGINT, signal.SIGTERM) if is_main else ()
    loop = asyncio.get_running_loop()
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
    kind = {"_ng_failure_type": type(error).__name__}
    return Unmeasured("agent_run_error", str(error) or "no reason given", fields=kind)


def is_endpoint(failure: Unmeasured) -> bool:
    """Whether a failure speaks of the server of model or agent; one that refuses a request with a reason answers the next one."""
    status = failure.fields.get("_ng_failure_http_status")
    if failure.terminal or status in _OF_THE_ROW or (failure.kind == "model_refused" and status is None):
        return False
    return failure.kind.startswith(("model_", "transport_", "agent_request_failed", "environment_server_failed"))


def is_judge(failure: Unmeasured) -> bool:
    """Whether a failure speaks of the judge's server in the same way."""
    is_unreached = failure.fields.get("_ng_failure_type") == JUDGE_UNREACHED
    status = failure.fields.get("_ng_failure_http_status")
    return is_unreached and not failure.terminal and status not in _OF_THE_ROW


def stamped(result: Row, row: Row, earlier: int) -> Row:
    """A result row with what the framework appends, in its order."""
    if not _OURS.isdisjoint(result):
        result = {key: value for key, value in result.items() if key not in _OURS}
    tail = {"_ng_task_index": row["_ng_task_index"], "_ng_rollout_index": row["_ng_rollout_index"]}
    tail |= {key: row[key] for key in _APPENDED if row.get(key) is not None}
    if earlier:
        tail["_ng_attempt_index"] = earlier
    if row.get("_ng_rollout_id") is not None:
        tail["_ng_rollout_id"] = row["_ng_rollout_id"]
    return result | tail


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
    return stamped(fields | head, row, earlier)


Runner = Callable[[Row], Awaitable[Row]]  # a materialised row to a result row, or Unmeasured

ATTEMPTS = 3
_SYNC_S = 5.0
_TURNS = 16  # rollouts after which a worker lets others have their turn, even if it never waited
_GC = (50_000, 50, 100)  # a fifth of the time of a run otherwise goes to looking for garbage among live rows
_DEAD_FROM_START = 10  # failures at the endpoint, and no success yet
_DEAD_AFTERWARDS = 2  # times the concurrency, and at least _DEAD_FROM_START: failures since the last success


class Summary(NamedTuple):
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
class Course:
    """A sitting: what is not there yet is run until all is done, given up, or stopped."""

    places: Places
    run: Runner
    kept: Kept
    standing: Standing
    expected: int
    concurrency: int = 64
    attempts: int = ATTEMPTS
    retry_wait_s: float = 1.0  # before the second attempt; doubled before each further one
    watch: Progress = field(default_factory=lambda: Progress(is_quiet=True))
    stop: Stop = field(default_factory=Stop)

    def __post_init__(self) -> None:
        self.rows = self._waiting()
        self.n_scored = self.n_failed = self.n_lines = self.n_retries = 0
        self.unreached = 0  # failures at the endpoint since the last success
        self.failures: list[Row] = []  # at the endpoint, not yet written
        self.under_way = 0
        self.doubt = ""  # why the endpoint seems dead; while there is doubt, nothing new is begun
        self.dead = ""
        self.settled = asyncio.Event()  # cleared while there is doubt
        self.settled.set()

    async def summary(self) -> Summary:
        begun = time.monotonic()
        given_up, before = self.standing.n_given_up(self.attempts), len(self.standing.scored)
        n_workers = min(self.concurrency, max(0, self.expected - before - given_up))
        try:
            with _listening(self.stop), _less_gc():
                async with asyncio.TaskGroup() as group:
                    syncer = group.create_task(self._syncer())
                    self.stop.workers = workers = [group.create_task(self._worker()) for _ in range(n_workers)]
                    await asyncio.gather(*workers, return_exceptions=True)
                    syncer.cancel()
        except BaseExceptionGroup as several:  # not `except*`: Python 3.11.2 wraps what is raised there once more
            faults = several.subgroup(BladeError)
            raise (several if faults is None else faults.exceptions[0]) from None
        finally:
            self._release(is_alive=not self.dead)
        scored, failed = before + self.n_scored, given_up + self.n_failed
        if self.dead:
            raise Unreadable(
                f"the model, judge or agent server gives no answer ({self.dead}); stopped at {scored:,} of"
                f" {self.expected:,} rollouts; what it did not answer counts as no attempt",
                "see that the server runs and that address, key and model name are right; then add --resume",
                "endpoint-dead",
            )
        return Summary(
            self.expected, scored, before, failed, max(0, self.expected - scored - failed), self.n_lines,
            self.n_retries, time.monotonic() - begun, self.stop.is_set,
        )  # fmt: skip

    def _waiting(self) -> Iterator[Row]:
        """The materialised rows that have no rollout yet and are not given up, in their order."""
        with self.places.materialized.open("rb") as file:
            for row in map(json_lines.decode, file):
                key = (row["_ng_task_index"], row["_ng_rollout_index"])
                if key not in self.standing.scored and not self.standing.is_given_up(key, self.attempts):
                    yield row

    async def _worker(self) -> None:
        while not self.stop.is_set:
            await self.settled.wait()
            row = None if self.stop.is_set else next(self.rows, None)
            if row is None:
                return
            await self._rollout(row)
            if self.n_scored % _TURNS == 0:
                await asyncio.sleep(0)  # a model that answers at once must not keep Ctrl-C waiting

    async def _rollout(self, row: Row) -> None:
        """One row to its result, or to as many failure lines as it takes."""
        earlier = self.standing.failed[row["_ng_task_index"], row["_ng_rollout_index"]]
        while True:
            self.under_way += 1
            try:
                result = await self.run(row)
                line = json_lines.line(stamped(result, row, earlier))
            except BladeError:
                raise  # what is wrong with the run itself is told once
            except Exception as error:
                failure = unmeasured(error)
                self.under_way -= 1
            else:
                self.under_way -= 1
                self.kept.rollout(line)
                self.n_scored += 1
                self._release(is_alive=True)
                self.watch.scored(result.get("reward"), (result.get("response") or {}).get("usage"))
                return
            earlier += 1
            is_final = failure.terminal or earlier >= self.attempts
            self._failed(failure, failure_line(failure, row, earlier - 1), is_final)
            if is_final or await self.stop.within(self.retry_wait_s * 2 ** (earlier - 1)):
                return
            await self.settled.wait()
            if self.stop.is_set:
                return
            self.n_retries += 1

    def _failed(self, failure: Unmeasured, line: Row, is_final: bool) -> None:
        """A failure at the endpoint is written once another rollout shows that the endpoint lives.

        An endpoint that is dead would otherwise use up the attempts of every row it never answered. After many
        such failures the endpoint is doubted; it is dead when what is under way has failed as well.
        """
        if is_endpoint(failure):
            self.failures.append(line)
        else:
            self.kept.failure(line)
            self.n_lines += 1
        self.n_failed += is_final
        self.watch.failed(failure.kind, is_final)
        if is_endpoint(failure) or is_judge(failure):
            self.unreached += 1
            most = max(_DEAD_FROM_START, _DEAD_AFTERWARDS * self.concurrency if self.n_scored else 0)
            if self.unreached >= most and not self.doubt:
                self.doubt = str(failure)
                self.settled.clear()
        if self.doubt and not self.under_way and not self.dead:
            self.dead = self.doubt
            self.stop.ask(is_urgent=True)
            self.settled.set()

    def _release(self, is_alive: bool) -> None:
        self.unreached, self.doubt = 0, ""
        self.settled.set()
        for line in self.failures if is_alive else ():
            self.kept.failure(line)
            self.n_lines += 1
        self.failures.clear()

    async def _syncer(self) -> None:
        while True:
            await asyncio.sleep(_SYNC_S)
            await asyncio.to_thread(self.kept.synced)
            self.watch.waited()


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
