"""Judge stored rollouts again in this process, each with its task; write the new rows in order and count what changed."""

from __future__ import annotations

import asyncio
import math
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from blade.errors import NothingToRead, Unreadable, UsageError
from blade_eval.aggregate import shards
from blade_eval.config import Resolved
from blade_eval.environment import Attempt, Row, Unmeasured
from blade_eval.profile import row_table
from blade_eval.profile.row_table import BOM, Keyed, Line, Seen, Table
from blade_eval.runner import agent, benchmark_run, collect, json_lines, run_files
from blade_eval.runner.components import Components, Judging
from blade_eval.runner.inputs import agent_of
from blade_eval.runner.run_files import FAILURES, METRICS, Places, beside

UNSAFE = "unsafe_"
Key = tuple[int, int]  # task and repeat

# From the old verdict to the new; `none` is a verdict that was not there, or could not be given.
WAYS = (
    "passed to failed", "failed to passed", "lower", "higher", "none to passed", "none to failed",
    "passed to none", "failed to none", "none to none", "same",
)  # fmt: skip


class Change(NamedTuple):
    """One rollout whose verdict is another than before."""

    key: Key
    agent: str
    way: str
    before: float | None
    after: float | None
    fields: tuple[str, ...]  # of the verifier, that differ
    reason: str = ""  # why there is no verdict now


@dataclass
class Changes:
    """What became of all verdicts."""

    threshold: float = 1.0
    ways: Counter[str] = field(default_factory=Counter)
    fields: Counter[str] = field(default_factory=Counter)  # rollouts in which a verifier's field differs
    rows: list[Change] = field(default_factory=list)  # whose reward changed, or that lost or gained one
    pairs: list[tuple[float, float]] = field(default_factory=list)  # rewards before and after

    def add(self, key: Key, agent: str, old: Row, new: Row, reason: str = "") -> None:
        """A rollout: `old` is its stored row, `new` what the verifier says now, nothing where there is a reason."""
        names = [name for name in new if name in old and not same(old[name], new[name])]
        self.fields.update(names)
        before, after = reward_of(old), reward_of(new)
        was, now = (
            "none" if reward is None else "passed" if reward >= self.threshold else "failed"
            for reward in (before, after)
        )
        way = f"{was} to {now}"
        if before is not None and after is not None:
            self.pairs.append((before, after))
            if was == now:
                way = "same" if before == after else "lower" if after < before else "higher"
        self.ways[way] += 1
        if way != "same":
            others = tuple(name for name in names if name != "reward")
            self.rows.append(Change(key, agent, way, before, after, others, reason))

    @property
    def n_both(self) -> int:
        return len(self.pairs)

    def means(self) -> tuple[float, float] | None:
        """The mean reward before and after, over the rollouts that have both."""
        if not self.pairs:
            return None
        before, after = (math.fsum(rewards) / self.n_both for rewards in zip(*self.pairs, strict=True))
        return before, after

    def ordered(self) -> list[Change]:
        return sorted(self.rows, key=lambda change: (change.agent, change.key))

    def folded(self, way: str) -> list[list[Change]]:
        """The changes of a way; those without a verdict for the same reason stand together."""
        alike: dict[object, list[Change]] = {}
        for change in (change for change in self.ordered() if change.way == way):
            same_as = (change.before, change.reason) if change.reason else (change.agent, change.key)
            alike.setdefault(same_as, []).append(change)
        return list(alike.values())

    def as_json(self) -> Row:
        means = self.means()
        return {
            "rollouts": sum(self.ways.values()),
            "pass_threshold": self.threshold,
            "ways": {way: self.ways[way] for way in WAYS},
            "rollouts_with_both_rewards": self.n_both,
            "mean_reward_before": means[0] if means else None,
            "mean_reward_after": means[1] if means else None,
            "fields": dict(sorted(self.fields.items())),
            "changes": [
                {
                    "_ng_task_index": change.key[0], "_ng_rollout_index": change.key[1], "agent": change.agent,
                    "way": change.way, "reward_before": change.before, "reward_after": change.after,
                    "fields": list(change.fields), **({"reason": change.reason} if change.reason else {}),
                }
                for change in self.ordered()
            ],
        }  # fmt: skip


def reward_of(row: Row) -> float | None:
    """The reward that a row was given; a failure line and a masked row have none, whatever they say."""
    reward = row.get("reward")
    if row.get("mask_sample") is True:
        return None
    if row.get("_ng_failure_class") is not None or not isinstance(reward, int | float):
        return None
    return float(reward) if math.isfinite(reward) else None


def same(old: Any, new: Any) -> bool:
    """Equal as JSON: a reward of 1 is that of 1.0, a NaN is the null that it was written as."""
    if isinstance(new, float) and not math.isfinite(new):
        return old is None
    if isinstance(old, dict) and isinstance(new, dict):
        return old.keys() == new.keys() and all(same(old[key], new[key]) for key in old)
    if isinstance(old, list | tuple) and isinstance(new, list | tuple):
        return len(old) == len(new) and all(map(same, old, new))
    return bool(old == new) and isinstance(old, bool) == isinstance(new, bool)


# -- judging --------------------------------------------------------------------------------------


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


class _Bench(NamedTuple):
    """Who judges a row: the resources server of the agent that it names."""

    config: Resolved
    judges: dict[str, Judging]
    alone: list[str]  # resources servers that name a model as judge, and none is chosen

    def of(self, name: str) -> Judging:
        server = self.config.server(name) if name else None
        if server is not None and (instance := server.named("resources_server")) in self.judges:
            return self.judges[instance]
        if len(self.judges) == 1:  # a run of another day may have called its agent otherwise
            return next(iter(self.judges.values()))
        what = f"nothing in the configuration judges the rows of {name or 'a row without agent'!r}"
        hint = f"there are {', '.join(sorted(self.judges))}; name the resources server of the run"
        raise UsageError(what, hint, "no-server")

    def others(self, rollouts: Path) -> list[str]:
        """What is to be told where the run's manifest names other verifiers than judge now."""
        agents = (shards.identity_of(rollouts) or {}).get("agents")
        blocks = agents.items() if isinstance(agents, dict) else ()
        servers = {name: block.get("resources_servers") for name, block in blocks if isinstance(block, dict)}
        notices = []
        for name, then in servers.items():
            with suppress(UsageError):  # which a row of that agent will raise, if there is one
                now = self.of(name).environment.name
                if isinstance(then, dict) and then and now not in then:
                    notices.append(f"the run was judged by {' and '.join(sorted(then))}, and {now} judges now")
        return list(dict.fromkeys(notices))


async def reverified(config: Resolved, wish: Wish, tick: Callable[[int], None] = lambda _: None) -> Done:
    if wish.append and not wish.judge_failed_only:
        raise UsageError("--append goes with --judge-failed-only", "leave it out, or add that", "usage")
    if wish.output.suffix in (".gz", ".zst"):
        raise UsageError(f"{wish.output} would not be packed", "give --output a name that ends in .jsonl", "usage")
    if sum((wish.append, wish.overwrite, wish.resume)) > 1:
        raise UsageError("--append, --overwrite and --resume exclude one another", "choose one", "usage")
    insist(wish.rollouts)  # before the inputs, whose name is often derived from theirs
    async with _bench(config) as bench:
        unsafe = [name for name, judge in bench.judges.items() if judge.environment.reverify != "stateless"]
        if unsafe and not wish.force:
            what = f"{', '.join(unsafe)} cannot judge a stored rollout: it needs more than the response"
            hint = f"run the tasks again, or add --force; the files are then called {UNSAFE}…"
            raise UsageError(what, hint, "reverify-unsupported")
        output = wish.output.with_name(UNSAFE + wish.output.name) if unsafe else wish.output
        done = Done(beside(output), Changes(wish.threshold))
        _refuse(wish, done.places)
        done.notices += [f"no model judges for {name}: --model-type chooses one" for name in bench.alone]
        done.notices += bench.others(wish.rollouts)
        inputs = Inputs(wish.inputs)
        try:
            done.notices += check(inputs, wish.rollouts)
            await _judge_all(bench, wish, inputs, done, tick)
        finally:
            inputs.close()
        if wish.sums_up:
            done.aggregate = benchmark_run.sum_up(done.places, lambda name: bench.of(name).environment)
    return done


def _refuse(wish: Wish, places: Places) -> None:
    """What was stored is never written to, and what is there is replaced only when asked."""
    read = {path.resolve() for path in (wish.inputs, wish.rollouts, _failures(wish))}
    ours = (places.rollouts, places.failures, places.aggregate)
    if wish.sums_up:
        read.add(row_table.beside(wish.rollouts, METRICS).resolve())
    for path in ours:
        if path.resolve() in read:
            what = f"{path} belongs to the run that is judged again"
            raise UsageError(what, "choose another --output", "output-is-input")
    present = [path for path in ours[:2] if path.exists()]
    if present and not (wish.overwrite or wish.resume or wish.append):
        hint = "add --overwrite to replace it, or --resume to go on; or choose another --output"
        raise UsageError(f"{present[0]} is there already", hint, "output-exists")


@asynccontextmanager
async def _bench(config: Resolved) -> AsyncIterator[_Bench]:
    """Every resources server with its judge; no other model is opened."""
    alone: list[str] = []
    unset = {problem.path.partition(".")[0] for problem in config.of("model", "unset")}
    async with AsyncExitStack() as stack:
        parts = Components(config, stack)
        for server in (server for server in config.servers if server.kind == "resources_servers"):
            # many verdicts need no judge, so one whose model is not chosen is no error
            judge = server.named("judge_model_server")
            is_alone = judge is not None and (judge in unset or config.server(judge) is None)
            alone += [server.instance] if is_alone else []
            await parts.resources(server.instance, server.instance, has_judge=not is_alone)
        if not parts.judging:
            what = "the configuration has no resources server, so nobody can judge"
            hint = "name the one of the run, such as --resources-server mcqa or --benchmark NAME"
            raise UsageError(what, hint, "no-server")
        yield _Bench(config, parts.judging, alone)


async def _judge_all(
    bench: _Bench, wish: Wish, inputs: Inputs, done: Done, tick: Callable[[int], None]
) -> None:
    goes_on = wish.resume or wish.append
    if goes_on:
        done.notices += filter(None, map(run_files.mend, (done.places.rollouts, done.places.failures)))
    writer = run_files.Kept(done.places)
    try:
        if not goes_on:
            writer.emptied()
        ready = inputs.present(done.places.rollouts)
        done.n_before = len(ready)
        await _judge(bench, wish, _waiting(wish, inputs, done, ready), done, writer, tick)
    finally:
        writer.close()
    if not (done.n_judged or done.n_failed or done.n_copied or done.n_before):
        what = "rollout that lacks only the judge's verdict" if wish.judge_failed_only else "rollout"
        raise NothingToRead(f"{wish.rollouts} holds no {what}", "there is nothing to judge", "no-rollouts")


def _waiting(wish: Wish, inputs: Inputs, done: Done, ready: set[Who]) -> Iterator[Pair]:
    """The pairs that have no new verdict yet; with judge_failed_only the others are taken over first."""
    if not wish.judge_failed_only:
        waiting = (inputs.pair(wish.rollouts, stored) for stored in keyed(wish.rollouts))
    else:
        failures: dict[Who, Stored] = {}  # the last of every rollout that only lacks the judge's verdict
        for stored in keyed(_failures(wish)) if _failures(wish).exists() else ():
            if stored.row().get("_ng_failure_class") in JUDGE_FAILED:
                failures[inputs.asked_for(_failures(wish), stored)] = stored
        lacking = sorted(failures.keys() - inputs.present(wish.rollouts))
        waiting = (inputs.pair(_failures(wish), failures[who]) for who in lacking)
        done.notices.append(
            "the rows come from two sources: successes as they were judged then, judge failures as judged now"
        )
        if not wish.append:  # byte for byte
            with done.places.rollouts.open("ab") as file:
                for stored in keyed(wish.rollouts):
                    if inputs.who(stored) not in ready:
                        file.write(stored.line.data.removeprefix(BOM) + b"\n")
                        done.n_copied += 1
    return islice((pair for pair in waiting if pair.who not in ready), wish.limit)


def _failures(wish: Wish) -> Path:
    return row_table.sidecar(wish.rollouts, FAILURES) or row_table.beside(wish.rollouts, FAILURES)


async def _judge(
    bench: _Bench, wish: Wish, waiting: Iterator[Pair], done: Done, writer: run_files.Kept,
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
                writer.rollout(json_lines.line(collect.stamped(result, pair.stamp(), 0)))
                done.n_judged += 1
                done.n_masked += bool(pair.mask())
                done.changes.add(pair.who[:2], pair.agent(), pair.stored, fields)
            except Unmeasured as failure:
                response = pair.stored.get("response")
                body = {"responses_create_params": pair.params(), "response": response} if response else {}
                failure.fields = {**body, **failure.fields, "_ng_failure_stage": "verify"}
                writer.failure(collect.failure_line(failure, pair.stamp(), 0))
                done.n_failed += 1
                reason = f"{failure.kind}: {failure.reason}"
                done.changes.add(pair.who[:2], pair.agent(), pair.stored, {}, reason)
            tick(done.n_judged + done.n_failed)
    finally:
        for _, task in window:
            task.cancel()


async def _fields(bench: _Bench, pair: Pair) -> tuple[Row, Row]:
    response = pair.stored.get("response")
    if not isinstance(response, dict):
        raise Unmeasured("response_missing", "the stored row has no response to judge", terminal=True)
    judge = bench.of(pair.agent())
    try:
        fields = await judge.environment.verify(Attempt(pair.task, response, None, judge.ask))
    except (Unmeasured, UsageError):
        raise
    except Exception as error:
        kind = {"_ng_failure_type": type(error).__name__}
        raise Unmeasured("verifier_error", str(error) or "no reason given", fields=kind) from error
    fields = pair.mask() | fields
    return agent.result(pair.task, pair.params(), response, fields), fields


JUDGE_FAILED = ("judge_failed", "judge_invalid")
Who = tuple[int, int, str]  # a rollout: task, repeat, and the agent where several were asked for both


class Stored(NamedTuple):
    key: Key
    agent: str  # or nothing
    line: Line

    def row(self) -> Row:
        return json_lines.any_row(self.line.data.removeprefix(BOM)) or {}


class Pair(NamedTuple):
    """A task as it was asked, and the stored row of what came of it."""

    who: Who
    task: Row
    stored: Row

    def agent(self) -> str:
        reference = self.stored.get("agent_ref") or self.task.get("agent_ref")
        return agent_of({"agent_ref": reference}) or ""

    def params(self) -> Row:
        """The request as it was sent, which may name skills that the materialised one does not."""
        params = self.stored.get("responses_create_params")
        return params if isinstance(params, dict) else self.task.get("responses_create_params") or {}

    def stamp(self) -> Row:
        """What stamps the new row: the task's, and what only the stored row has."""
        names = ("agent_ref", "task_source", "skills_ref", "_ng_rollout_id")
        return {name: self.stored[name] for name in names if self.stored.get(name) is not None} | self.task

    def mask(self) -> Row:
        """That the run took its own reward for none, which no new verdict changes; a failure was no row."""
        is_masked = self.stored.get("mask_sample") is True and self.stored.get("_ng_failure_class") is None
        return {"mask_sample": True} if is_masked else {}


class Inputs:
    """The materialised rows of a run, by task, repeat and agent; only their places are held in memory."""

    def __init__(self, path: Path) -> None:
        self._table = Table()
        agents: dict[Key, dict[str, int]] = {}

        def take(line: Line, seen: Seen) -> Keyed | None:
            if key := row_table.key_of(line, seen):
                of_key = agents.setdefault((key.task, key.repeat), {})
                if (key.agent or "") in of_key:
                    raise _wrong(path, Stored((key.task, key.repeat), key.agent or "", line), "stands there twice")
                of_key[key.agent or ""] = len(self._table)
            return key

        insist(path)
        if (seen := self._table.read(path, take)).bad:
            raise _unreadable(seen)
        if not agents:
            raise NothingToRead(f"{path} holds no row", "give --inputs the materialised inputs", "no-rollouts")
        self._shared = {key for key, of_key in agents.items() if len(of_key) > 1}
        self._rows: dict[Who, int] = {
            (*key, agent if key in self._shared else ""): row for key, of_key in agents.items() for agent, row in of_key.items()
        }

    def who(self, stored: Stored) -> Who | None:
        """Which rollout a row is of; None if nobody was asked for it. An agent asked alone needs no name."""
        who = (*stored.key, stored.agent if stored.key in self._shared else "")
        return who if who in self._rows else None

    def asked_for(self, path: Path, stored: Stored) -> Who:
        who = self.who(stored)
        if who is None:
            raise _wrong(path, stored, "is none of the inputs")
        return who

    def present(self, path: Path) -> set[Who]:
        """The rollouts that a file holds, if it is there."""
        return {who for stored in keyed(path) if (who := self.who(stored))} if path.exists() else set()

    def pair(self, path: Path, stored: Stored) -> Pair:
        who = self.asked_for(path, stored)
        return Pair(who, json_lines.any_row(self._table.line(self._rows[who])) or {}, stored.row())

    def close(self) -> None:
        self._table.close()


def check(inputs: Inputs, path: Path) -> list[str]:
    """Find what is wrong with a file of rollouts before anything is written for it; what is to be told."""
    seen, known = Seen(path), set[Who]()
    for stored in keyed(path, seen):
        who = inputs.asked_for(path, stored)
        if who in known:
            raise _wrong(path, stored, "stands there twice")
        known.add(who)
    return seen.notices()


def keyed(path: Path, seen: Seen | None = None) -> Iterator[Stored]:
    """Every row with its key. Only a torn end, as a killed run leaves it, is passed over and noted."""
    insist(path)
    seen = seen or Seen(path)
    for line in row_table.read(path, seen):
        if key := row_table.key_of(line, seen):
            yield Stored((key.task, key.repeat), key.agent or "", line)
        elif seen.bad and line.is_ended:
            raise _unreadable(seen)


def _unreadable(seen: Seen) -> Unreadable:
    number, reason = seen.bad[0]
    hint = "restore the file, or judge a copy without the lines that are no rows"
    return Unreadable(f"{seen.path}, line {number}: {reason}", hint, "unreadable-line")


def insist(path: Path) -> None:
    try:
        path.open("rb").close()
    except FileNotFoundError:
        raise NothingToRead(f"there is no file {path}", "check the path", "no-such-path") from None
    except OSError as error:
        what = f"cannot read {path}: {error.strerror or error}"
        raise Unreadable(what, "check its rights", "unreadable-file") from error


def _wrong(path: Path, stored: Stored, what: str) -> Unreadable:
    (task, repeat), name = stored.key, f" of {stored.agent}" if stored.agent else ""
    message = f"{path}, line {stored.line.number}: task {task}, repeat {repeat}{name} {what}"
    hint = "--inputs and --rollouts must be of one run: X_materialized_inputs.jsonl and X.jsonl"
    return Unreadable(message, hint, "reverify-mismatch")
