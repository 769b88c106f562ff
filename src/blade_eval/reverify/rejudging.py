"""Judge stored rollouts again in this process, each with its task, and write the new rows in order."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from blade.errors import NothingToRead, Unreadable, UsageError
from blade_eval import models, verifiers
from blade_eval.aggregate import shards
from blade_eval.aggregate.shards import identity_of
from blade_eval.config import Resolved, Server
from blade_eval.environment import Attempt, Environment, Respond, Row, Unmeasured
from blade_eval.profile import row_table as files
from blade_eval.profile import row_table as reading
from blade_eval.profile.row_table import BOM, Keyed, Line, Seen, Table
from blade_eval.reverify.changes import Changes
from blade_eval.runner import agent, benchmark_run, collect, json_lines, run_files
from blade_eval.runner.run_files import Places, beside

UNSAFE = "unsafe_"


@dataclass(frozen=True)
class Wish:
    """What is to be judged again, and where the verdicts go."""

    inputs: Path
    rollouts: Path
    output: Path
    concurrency: int = 64
    limit: int | None = None
    force: bool = False
    overwrite: bool = False
    resume: bool = False
    append: bool = False
    judge_failed_only: bool = False
    sums_up: bool = True
    threshold: float = 1.0


@dataclass
class Done:
    """What came of it."""

    places: Places
    changes: Changes
    n_judged: int = 0
    n_failed: int = 0
    n_copied: int = 0  # rows that were taken over as they are
    n_masked: int = 0  # of the judged, rows whose reward the run itself takes for none
    n_before: int = 0  # rows that an earlier sitting has left
    aggregate: Path | None = None
    notices: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Judge:
    implementation: str
    environment: Environment
    ask: Respond | None


class _Bench:
    """Who judges a row: the resources server of the agent that it names."""

    def __init__(self, found: Resolved, judges: dict[str, _Judge], alone: list[str]) -> None:
        self._found, self._judges = found, judges
        self.alone = alone  # resources servers that name a model as judge, and none is chosen

    def of(self, name: str) -> _Judge:
        """The judge of an agent's rows."""
        server = self._found.server(name) if name else None
        if server is not None and (instance := server.named("resources_server")) in self._judges:
            return self._judges[instance]
        if len(self._judges) == 1:  # a run of another day may have called its agent otherwise
            return next(iter(self._judges.values()))
        raise UsageError(
            f"nothing in the configuration judges the rows of {name or 'a row without agent'!r}",
            f"there are {', '.join(sorted(self._judges))}; name the resources server of the run",
            "no-server",
        )

    def others(self, rollouts: Path) -> list[str]:
        """What is to be told where the run's manifest names other verifiers than judge now."""
        told = []
        for name, then in recorded_verifiers(rollouts).items():
            try:
                now = self.of(name).implementation
            except UsageError:  # which a row of that agent will raise, if there is one
                continue
            if now not in then:
                told.append(f"the run was judged by {' and '.join(then)}, and {now} judges now")
        return list(dict.fromkeys(told))

    def unsafe(self) -> list[str]:
        """The resources servers that need more than the response to judge."""
        return [name for name, judge in self._judges.items() if judge.environment.reverify != "stateless"]


async def reverified(found: Resolved, wish: Wish, tick: Callable[[int], None] = lambda _: None) -> Done:
    """Judge again; `tick` is told how many were."""
    _check(wish)
    insist(wish.rollouts)  # before the inputs, whose name is often derived from theirs
    async with _bench(found) as bench:
        unsafe = bench.unsafe()
        if unsafe and not wish.force:
            raise UsageError(
                f"{', '.join(unsafe)} cannot judge a stored rollout: it needs more than the response",
                f"run the tasks again, or add --force; the files are then called {UNSAFE}…",
                "reverify-unsupported",
            )
        output = wish.output.with_name(UNSAFE + wish.output.name) if unsafe else wish.output
        done = Done(beside(output), Changes(wish.threshold))
        _refuse(wish, done.places)
        done.notices += [f"no model judges for {name}: --model-type chooses one" for name in bench.alone]
        done.notices += bench.others(wish.rollouts)
        inputs = Inputs(wish.inputs)
        try:
            done.notices += check(inputs, wish.rollouts)
            await _all(bench, wish, inputs, done, tick)
        finally:
            inputs.close()
        if wish.sums_up:
            done.aggregate = benchmark_run.sum_up(done.places, lambda name: bench.of(name).environment)
    return done


def _check(wish: Wish) -> None:
    if wish.append and not wish.judge_failed_only:
        raise UsageError("--append goes with --judge-failed-only", "leave it out, or add that", "usage")
    if wish.output.suffix in (".gz", ".zst"):
        raise UsageError(
            f"{wish.output} would not be packed", "give --output a name that ends in .jsonl", "usage"
        )
    if sum((wish.append, wish.overwrite, wish.resume)) > 1:
        raise UsageError("--append, --overwrite and --resume exclude one another", "choose one", "usage")


def _refuse(wish: Wish, places: Places) -> None:
    """What was stored is never written to, and what is there is replaced only when asked."""
    read = {path.resolve() for path in (wish.inputs, wish.rollouts, _failures(wish))}
    ours = (places.rollouts, places.failures, places.aggregate)
    if wish.sums_up:
        read.add(files.beside(wish.rollouts, shards.METRICS).resolve())
    for path in ours:
        if path.resolve() in read:
            raise UsageError(
                f"{path} belongs to the run that is judged again",
                "choose another --output",
                "output-is-input",
            )
    there = [path for path in ours[:2] if path.exists()]
    if there and not (wish.overwrite or wish.resume or wish.append):
        raise UsageError(
            f"{there[0]} is there already",
            "add --overwrite to replace it, or --resume to go on; or choose another --output",
            "output-exists",
        )


@asynccontextmanager
async def _bench(found: Resolved) -> AsyncIterator[_Bench]:
    """Every resources server with its judge; no other model is opened."""
    judges: dict[str, _Judge] = {}
    alone: list[str] = []
    async with AsyncExitStack() as stack:
        opened: dict[str, Respond] = {}
        for server in found.servers:
            if server.kind != "resources_servers":
                continue
            ask = None
            if named := server.named("judge_model_server"):
                model = _model(found, named)
                if model is not None and named not in opened:
                    entered = models.model(model.implementation, model.settings)
                    opened[named] = models.as_judge(await stack.enter_async_context(entered))
                ask = opened.get(named)
                alone += [server.instance] if ask is None else []
            built = verifiers.environment(server.implementation, server.settings)
            judges[server.instance] = _Judge(server.implementation, built, ask)
        if not judges:
            raise UsageError(
                "the configuration has no resources server, so nobody can judge",
                "name the one of the run, such as --resources-server mcqa or --benchmark NAME",
                "no-server",
            )
        yield _Bench(found, judges, alone)


def _model(found: Resolved, name: str) -> Server | None:
    """The judge's model; None where none is chosen, for many verdicts need no judge."""
    model = found.server(name)
    is_unset = any(problem.path.startswith(f"{name}.") for problem in found.of("model", "unset"))
    return None if model is None or is_unset else model


async def _all(bench: _Bench, wish: Wish, inputs: Inputs, done: Done, tick: Callable[[int], None]) -> None:
    if wish.resume or wish.append:
        for path in (done.places.rollouts, done.places.failures):
            if told := run_files.mend(path):
                done.notices.append(told)
    writer = run_files.Kept(done.places)
    try:
        if not (wish.resume or wish.append):
            writer.emptied()
        there = rollouts_of(inputs, done.places.rollouts)
        done.n_before = len(there)
        waiting = _waiting(wish, inputs, done, there)
        await _judged(bench, wish, waiting, done, writer, tick)
    finally:
        writer.close()
    if not (done.n_judged or done.n_failed or done.n_copied or done.n_before):
        what = "rollout that lacks only the judge's verdict" if wish.judge_failed_only else "rollout"
        raise NothingToRead(f"{wish.rollouts} holds no {what}", "there is nothing to judge", "no-rollouts")


def _waiting(wish: Wish, inputs: Inputs, done: Done, there: set[Who]) -> Iterator[Pair]:
    """The pairs that have no new verdict yet; with judge_failed_only the others are taken over first."""
    if not wish.judge_failed_only:
        found = pairs(inputs, wish.rollouts)
    else:
        succeeded = rollouts_of(inputs, wish.rollouts)
        done.notices.append(
            "the rows come from two sources: successes as they were judged then, judge failures as judged now"
        )
        if not wish.append:
            done.n_copied = _copied(inputs, wish.rollouts, done.places.rollouts, there)
        found = judge_failed(inputs, _failures(wish), succeeded)
    return islice((pair for pair in found if pair.who not in there), wish.limit)


def _failures(wish: Wish) -> Path:
    """Those of the stored run, packed or not."""
    return files.sidecar(wish.rollouts, shards.FAILURES) or files.beside(wish.rollouts, shards.FAILURES)


def _copied(inputs: Inputs, source: Path, target: Path, there: set[Who]) -> int:
    """Take rows over as they are, byte for byte; how many they were."""
    count = 0
    with target.open("ab") as file:
        for stored in keyed(source):
            if inputs.who(stored) not in there:
                file.write(stored.line.data.removeprefix(BOM) + b"\n")
                count += 1
    return count


async def _judged(
    bench: _Bench,
    wish: Wish,
    waiting: Iterator[Pair],
    done: Done,
    writer: run_files.Kept,
    tick: Callable[[int], None],
) -> None:
    """A window of pairs under way; results are written in the order of the pairs."""
    window: deque[tuple[Pair, asyncio.Task[tuple[Row, Row]]]] = deque()
    try:
        while True:
            for pair in islice(waiting, wish.concurrency - len(window)):
                window.append((pair, asyncio.create_task(_fields(bench, pair))))
            if not window:
                return
            pair, task = window.popleft()
            try:
                result, fields = await task
                writer.rollouts([json_lines.line(collect.stamped(result, _row(pair), 0))])
                done.n_judged += 1
                done.n_masked += bool(_mask(pair))
                done.changes.judged(pair.key, _agent(pair), pair.stored, fields)
            except Unmeasured as failure:
                _failed(pair, failure, done, writer)
            tick(done.n_judged + done.n_failed)
    finally:
        for _, task in window:
            task.cancel()


async def _fields(bench: _Bench, pair: Pair) -> tuple[Row, Row]:
    """The row as it is now, and what of it the verifier says."""
    response = pair.stored.get("response")
    if not isinstance(response, dict):
        raise Unmeasured("response_missing", "the stored row has no response to judge", terminal=True)
    judge = bench.of(_agent(pair))
    try:
        fields = await judge.environment.verify(Attempt(pair.task, response, None, judge.ask))
    except (Unmeasured, UsageError):
        raise
    except Exception as error:
        told = Unmeasured("verifier_error", str(error) or "no reason given")
        told.fields = {"_ng_failure_type": type(error).__name__}
        raise told from error
    fields = _mask(pair) | fields
    return agent.result(pair.task, _asked(pair), response, fields), fields


def _mask(pair: Pair) -> Row:
    """What the run said of its own reward, that it is none, no new verdict changes; a failure was no row."""
    is_masked = pair.stored.get("mask_sample") is True and pair.stored.get("_ng_failure_class") is None
    return {"mask_sample": True} if is_masked else {}


def _failed(pair: Pair, failure: Unmeasured, done: Done, writer: run_files.Kept) -> None:
    response = pair.stored.get("response")
    echoed = {"responses_create_params": _asked(pair), "response": response} if response else {}
    failure.fields = {**echoed, **failure.fields, "_ng_failure_stage": "verify"}
    writer.failure(collect.failure_line(failure, _row(pair), 0))
    done.n_failed += 1
    done.changes.unjudged(pair.key, _agent(pair), pair.stored, f"{failure.kind}: {failure.reason}")


def _asked(pair: Pair) -> Row:
    """The request as it was sent, which may name skills that the materialised one does not."""
    stored = pair.stored.get("responses_create_params")
    return stored if isinstance(stored, dict) else pair.task.get("responses_create_params") or {}


def _row(pair: Pair) -> Row:
    """What stamps the new row: the task's, and what only the stored row has."""
    extra = ("agent_ref", "task_source", "skills_ref", "_ng_rollout_id")
    found = {name: pair.stored[name] for name in extra if pair.stored.get(name) is not None}
    return {**found, **pair.task}


def _agent(pair: Pair) -> str:
    reference = pair.stored.get("agent_ref") or pair.task.get("agent_ref")
    name = reference.get("name") if isinstance(reference, dict) else None
    return name if isinstance(name, str) else ""


JUDGE_FAILED = ("judge_failed", "judge_invalid")
Key = tuple[int, int]
Who = tuple[int, int, str]  # a rollout: task, repeat, and the agent where several were asked for both


class Stored(NamedTuple):
    """A line of a file of rows."""

    key: Key
    agent: str  # or nothing
    line: Line

    def row(self) -> Row:
        """What stands there; NaN is none."""
        return json_lines.any_row(self.line.data.removeprefix(reading.BOM)) or {}


@dataclass(frozen=True)
class Pair:
    """A task as it was asked, and the stored row of what came of it."""

    key: Key
    who: Who
    task: Row
    stored: Row


class Inputs:
    """The materialised rows of a run, by task, repeat and agent; only their places are held in memory."""

    def __init__(self, path: Path) -> None:
        self._table = Table()
        self._rows: dict[Key, dict[str, int]] = {}

        def take(line: Line, seen: Seen) -> Keyed | None:
            key = reading.key_of(line, seen)
            if key is not None:
                of_key = self._rows.setdefault((key.task, key.repeat), {})
                if (key.agent or "") in of_key:
                    raise _wrong(
                        path, Stored((key.task, key.repeat), key.agent or "", line), "stands there twice"
                    )
                of_key[key.agent or ""] = len(self._table)
            return key

        insist(path)
        if (seen := self._table.read(path, take)).bad:
            raise _unreadable(seen)
        if not self._rows:
            raise NothingToRead(
                f"{path} holds no row", "give --inputs the materialised inputs", "no-rollouts"
            )

    def who(self, stored: Stored) -> Who | None:
        """Which rollout a row is of; None if nobody was asked for it. An agent asked alone needs no name."""
        agents = self._rows.get(stored.key, {})
        if len(agents) < 2:
            return (*stored.key, "") if agents else None
        return (*stored.key, stored.agent) if stored.agent in agents else None

    def task(self, who: Who) -> Row:
        """The input of a rollout."""
        agents = self._rows[who[0], who[1]]
        row = agents[who[2]] if len(agents) > 1 else next(iter(agents.values()))
        return json_lines.any_row(self._table.line(row)) or {}

    def close(self) -> None:
        self._table.close()


def check(inputs: Inputs, path: Path) -> list[str]:
    """Find what is wrong with a file of rollouts before anything is written for it; what is to be told."""
    seen, found = Seen(path), set()
    for stored in keyed(path, seen):
        who = inputs.who(stored)
        if who is None:
            raise _wrong(path, stored, "is none of the inputs")
        if who in found:
            raise _wrong(path, stored, "stands there twice")
        found.add(who)
    return seen.notices()


def pairs(inputs: Inputs, path: Path) -> Iterator[Pair]:
    """Every rollout of a file with its task, in the order of the file."""
    for stored in keyed(path):
        yield _pair(inputs, path, stored)


def judge_failed(inputs: Inputs, path: Path, succeeded: set[Who]) -> Iterator[Pair]:
    """The last failure of every rollout that only lacks the judge's verdict."""
    found: dict[Who, Stored] = {}
    if path.exists():
        for stored in keyed(path):
            if stored.row().get("_ng_failure_class") in JUDGE_FAILED:
                who = inputs.who(stored)
                if who is None:
                    raise _wrong(path, stored, "is none of the inputs")
                if who not in succeeded:
                    found[who] = stored
    for _, stored in sorted(found.items(), key=lambda one: one[0]):
        yield _pair(inputs, path, stored)


def rollouts_of(inputs: Inputs, path: Path) -> set[Who]:
    """The rollouts of which a file has rows."""
    found = (inputs.who(stored) for stored in keyed(path)) if path.exists() else ()
    return {who for who in found if who is not None}


def recorded_verifiers(rollouts: Path) -> dict[str, list[str]]:
    """The implementations that judged each agent's rows, as far as the run's manifest tells."""
    agents = (identity_of(rollouts) or {}).get("agents")
    found = {}
    for name, described in agents.items() if isinstance(agents, dict) else ():
        named = described.get("resources_servers") if isinstance(described, dict) else None
        if isinstance(named, dict) and named:
            found[name] = sorted(named)
    return found


def keyed(path: Path, seen: Seen | None = None) -> Iterator[Stored]:
    """Every row with its key. Only a torn end, as a killed run leaves it, is passed over and noted."""
    insist(path)
    seen = seen or Seen(path)
    for line in reading.read(path, seen):
        found = _stored(path, line, seen)
        if found is not None:
            yield found
        elif seen.bad and line.is_ended:
            raise _unreadable(seen)


def _stored(path: Path, line: Line, seen: Seen) -> Stored | None:
    key = reading.key_of(line, seen)
    return None if key is None else Stored((key.task, key.repeat), key.agent or "", line)


def _unreadable(seen: Seen) -> Unreadable:
    number, reason = seen.bad[0]
    return Unreadable(
        f"{seen.path}, line {number}: {reason}",
        "restore the file, or judge a copy without the lines that are no rows",
        "unreadable-line",
    )


def _pair(inputs: Inputs, path: Path, stored: Stored) -> Pair:
    who = inputs.who(stored)
    if who is None:
        raise _wrong(path, stored, "is none of the inputs")
    return Pair(stored.key, who, inputs.task(who), stored.row())


def insist(path: Path) -> None:
    """That there is a file, and that we may read it."""
    try:
        path.open("rb").close()
    except FileNotFoundError:
        raise NothingToRead(f"there is no file {path}", "check the path", "no-such-path") from None
    except OSError as error:
        why = error.strerror or error
        raise Unreadable(f"cannot read {path}: {why}", "check its rights", "unreadable-file") from error


def _wrong(path: Path, stored: Stored, what: str) -> Unreadable:
    (task, repeat), agent = stored.key, f" of {stored.agent}" if stored.agent else ""
    return Unreadable(
        f"{path}, line {stored.line.number}: task {task}, repeat {repeat}{agent} {what}",
        "--inputs and --rollouts must be of one run: X_materialized_inputs.jsonl and X.jsonl",
        "reverify-mismatch",
    )
