"""Let a solution be called from outside its box, and judge what it answers where it cannot reach."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from blade.evaluate.environment import Unmeasured
from blade.evaluate.sandbox import plain
from blade.evaluate.sandbox.box import Limits, Session, run, session

WRONG, TIME, RUNTIME = -2, -3, -4
SHOWN = 2000

How = Literal["outputs", "calls", "apart", "in_process"]


@dataclass(frozen=True)
class Fault:
    """Why a test did not pass: wrong answer, time limit or runtime error, and what was seen."""

    code: int
    message: str
    got: str = ""


@dataclass(frozen=True)
class Judged:
    """The tests in order, up to the first that failed, and how they were checked."""

    passed: int
    fault: Fault | None
    seconds: float
    how: How


class Ended(Exception):
    """The solution gave no answer any more."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


def _stopped(stopped: str | None, code: int | None, said: bytes, limits: Limits) -> Fault | None:
    """A fault of what the box tells of a program's end; None when it ended by itself and well."""
    text = said.decode("utf-8", "replace")[-SHOWN:]
    if stopped == "cpu":
        return Fault(TIME, f"Time limit: more than {limits.cpu:g} s of processor time")
    if stopped == "wall":
        return Fault(TIME, f"Time limit: not done after {limits.clock:g} s")
    if stopped == "memory":
        return Fault(RUNTIME, f"Memory limit: more than {limits.memory >> 20} MB held together")
    if stopped == "output":
        return Fault(RUNTIME, f"Output limit: more than {limits.output >> 20} MB written")
    if code:
        last = text.strip().rpartition("\n")[2]
        ended = f"signal {-code}" if code < 0 else f"exit code {code}"
        return Fault(RUNTIME, f"Runtime error: {last or ended}", text)
    return None


async def outputs(code: str, inputs: Sequence[str], expected: Sequence[str], limits: Limits) -> Judged:
    """Run the solution once for each input and compare what it printed, outside of the box."""
    begun = time.monotonic()
    for position, (given, wanted) in enumerate(zip(inputs, expected, strict=True)):
        outcome = await run(code, given.encode("utf-8", "surrogatepass"), limits)
        fault = _stopped(outcome.stopped, outcome.code, outcome.stderr, limits)
        if fault is None:
            said = outcome.stdout.decode("utf-8", "replace")
            difference = differs(said, wanted)
            fault = Fault(WRONG, f"Wrong answer: {difference}", said[:SHOWN]) if difference else None
        if fault is not None:
            return Judged(position, fault, time.monotonic() - begun, "outputs")
    return Judged(len(inputs), None, time.monotonic() - begun, "outputs")


def differs(said: str, wanted: str) -> str | None:
    """Where two outputs differ: lines without the spaces around them, and numbers by value."""
    ours, theirs = said.strip().split("\n"), wanted.strip().split("\n")
    if len(ours) != len(theirs):
        return f"{len(ours)} lines where {len(theirs)} are expected"
    for number, (one, other) in enumerate(zip(ours, theirs, strict=True), 1):
        if one.strip() != other.strip() and not _same_numbers(one, other):
            return f"line {number} is {one.strip()[:80]!r} where {other.strip()[:80]!r} is expected"
    return None


def _same_numbers(one: str, other: str) -> bool:
    from decimal import Decimal, InvalidOperation

    try:
        return [Decimal(word) for word in one.split()] == [Decimal(word) for word in other.split()]
    except (InvalidOperation, ValueError):
        return False


async def _reply(
    box: Session, message: Mapping[str, Any], limits: Limits, until: float | None = None
) -> dict[str, Any]:
    """Ask the program in a box; `Ended` when it does not answer in time or breaks what was agreed."""
    left = limits.clock if until is None else until - time.monotonic()
    try:
        async with asyncio.timeout(left):
            await box.send(json.dumps(message).encode())
            line = await box.line()
    except TimeoutError:
        raise Ended(Fault(TIME, f"Time limit: no answer after {limits.clock:g} s")) from None
    if line is None:
        box.stop()
        ending = await box.ended()
        stopped = "cpu" if ending["code"] == -24 else ending["stopped"]
        fault = _stopped(stopped, ending["code"], bytes(box.errors), limits)
        raise Ended(fault or Fault(RUNTIME, "Runtime error: the program ended without an answer"))
    try:
        reply = json.loads(line)
    except ValueError:
        reply = None
    if not isinstance(reply, dict):
        raise Ended(Fault(RUNTIME, "Runtime error: something else was written where the answer belongs"))
    return reply


def _raised(reply: Mapping[str, Any]) -> Fault | None:
    raised = reply.get("raised")
    if not isinstance(raised, dict):
        return None
    message = f"Runtime error: {raised.get('type')}: {raised.get('message')}"
    return Fault(RUNTIME, message[:SHOWN], str(raised.get("trace", ""))[-SHOWN:])


async def _loaded(box: Session, code: str, before: str, entry: str | None, limits: Limits) -> None:
    reply = await _reply(box, {"load": code, "before": before, "entry": entry}, limits)
    if fault := _raised(reply):
        raise Ended(fault)
    if reply.get("loaded") is not True:
        raise Ended(Fault(RUNTIME, "Runtime error: the program took the place of its own loading"))


def _whole(limits: Limits, n: int) -> Limits:
    """The limits of a box that answers n times: each answer has its own time, and the box the sum."""
    rounds = n + 1
    return replace(limits, cpu=limits.cpu * rounds, wall=limits.clock * rounds)


async def calls(
    code: str, name: str, given: Sequence[Sequence[Any]], expected: Sequence[Any], limits: Limits
) -> Judged:
    """Call a function of the solution and compare what it returns, outside of the box."""
    begun, position = time.monotonic(), 0
    async with session("inside.py", {}, _whole(limits, len(given))) as box:
        try:
            await _loaded(box, code, "", None, limits)
            for args, wanted in zip(given, expected, strict=True):
                message = {"call": name, "given": plain.encoded([list(args), {}])}
                reply = await _reply(box, message, limits)
                if fault := _raised(reply) or _unequal(reply, wanted):
                    raise Ended(fault)
                position += 1
        except Ended as ended:
            return Judged(position, ended.fault, time.monotonic() - begun, "calls")
    return Judged(position, None, time.monotonic() - begun, "calls")


def _unequal(reply: Mapping[str, Any], wanted: Any) -> Fault | None:
    try:
        value = plain.decoded(str(reply["value"]))
        if _listed(value) == _listed(wanted):
            return None
    except (ValueError, KeyError, RecursionError):
        return Fault(RUNTIME, "Runtime error: something else was written where the answer belongs")
    shown = _shown(value)
    return Fault(WRONG, f"Wrong answer: {shown[:80]} where {_shown(wanted)[:80]} is expected", shown[:SHOWN])


def _shown(value: Any) -> str:
    if isinstance(value, Iterator):
        return "an iterator"
    try:
        return repr(value)
    except (ValueError, RecursionError):  # a number of too many digits to be written
        return f"a {type(value).__name__} too large to be shown"


def _listed(value: Any) -> Any:
    """Expected values come from JSON, which has no tuples."""
    if isinstance(value, list | tuple):
        return [_listed(item) for item in value]
    return value


@dataclass(frozen=True)
class Asserted:
    """Tests that are programs: they call the solution by its names and fail by an exception."""

    tests: Sequence[str]
    setup: str = ""  # runs before the tests, out of the solution's reach
    before: str = ""  # runs before the solution: what the task gave, such as imports and helpers
    entry: str | None = None
    names: Mapping[str, str] | None = None  # other names under which the tests know the solution's


async def asserted(code: str, task: Asserted, limits: Limits, *, in_process: bool = False) -> Judged:
    """Run tests in one box and the solution in another; only plain data goes between them.

    What cannot be done that way by the tests' own doing (they pass a function, or use a class of the
    solution) runs in one process, and the result says so. The solution cannot bring that about.
    """
    begun = time.monotonic()
    whole = _whole(limits, len(task.tests))
    if not in_process:
        result = await _apart(code, task, limits, whole, begun)
        if result is not None:
            return result
    return await _together(code, task, limits, whole, begun)


def _message(task: Asserted, test: str, nonce: str, remote: bool) -> dict[str, Any]:
    return {"test": test, "names": dict(task.names or {}), "remote": remote, "nonce": nonce}


def _verdict(reply: Mapping[str, Any], nonce: str) -> Fault | None:
    if reply.get("nonce") != nonce:
        return Fault(RUNTIME, "Runtime error: a verdict was written that is not the tests' own")
    if reply.get("passed") is True:
        return None
    failed = reply.get("failed") or {}
    shown = f"{failed.get('type')}: {failed.get('message')}"
    trace = str(failed.get("trace", ""))[-SHOWN:]
    if reply.get("wrong"):
        return Fault(WRONG, f"Wrong answer: {shown}", trace)
    return Fault(RUNTIME, f"Runtime error: {shown}", trace)


async def _apart(code: str, task: Asserted, limits: Limits, whole: Limits, begun: float) -> Judged | None:
    """None when the tests ask for what cannot cross."""
    position = 0
    # The tests wait for the solution, and must not run out of time because of it.
    patient = replace(whole, wall=2 * whole.clock + 60)
    async with session("inside.py", {}, whole) as solution, session("inside.py", {}, patient) as tests:
        try:
            await _loaded(solution, code, task.before, task.entry, limits)
            await _prepared(tests, task, limits)
            for test in task.tests:
                nonce = secrets.token_hex(16)
                reply = await _asked(tests, _message(task, test, nonce, True), limits)
                until = time.monotonic() + limits.clock  # for all calls of a test together
                while "call" in reply:
                    answer = await _reply(solution, reply, limits, until)
                    reply = await _asked(tests, _clean(answer), limits)
                if "unreachable" in reply:
                    return None
                if fault := _verdict(reply, nonce):
                    raise Ended(fault)
                position += 1
        except Ended as ended:
            return Judged(position, ended.fault, time.monotonic() - begun, "apart")
    return Judged(position, None, time.monotonic() - begun, "apart")


async def _prepared(tests: Session, task: Asserted, limits: Limits) -> None:
    """Load what the tests need; the task's own text is tried first, for the helpers it may define."""
    message = {"load": task.setup, "before": task.before, "entry": task.entry}
    reply = await _asked(tests, message, limits)
    if fault := _raised(reply):
        raise Unmeasured(
            "task_invalid", f"the setup of the tests does not run: {fault.message}", terminal=True
        )


async def _asked(tests: Session, message: Mapping[str, Any], limits: Limits) -> dict[str, Any]:
    """Ask the box of the tests, whose failures are not the solution's."""
    try:
        return await _reply(tests, message, limits)
    except Ended as ended:
        raise Unmeasured("task_invalid", f"the tests themselves ended: {ended.fault.message}") from ended


def _clean(answer: Mapping[str, Any]) -> dict[str, Any]:
    """What the tests may hear of a solution's answer: a value that can be read, or what was raised."""
    raised = answer.get("raised")
    if isinstance(raised, dict):
        return {"raised": {"type": str(raised.get("type")), "message": str(raised.get("message"))}}
    try:
        value, args = str(answer["value"]), str(answer.get("args", "[]"))
        plain.decoded(value)
        plain.decoded(args)
    except (ValueError, KeyError):
        raise Ended(
            Fault(RUNTIME, "Runtime error: something else was written where the answer belongs")
        ) from None
    return {"value": value, "args": args}


async def _together(code: str, task: Asserted, limits: Limits, whole: Limits, begun: float) -> Judged:
    """Solution and tests in one process: the tests and the nonce come only after the solution was loaded."""
    position = 0
    async with session("inside.py", {}, whole) as box:
        try:
            await _loaded(box, code, task.before, task.entry, limits)
            if task.setup:
                await _loaded(box, task.setup, "", None, limits)
            for test in task.tests:
                nonce = secrets.token_hex(16)
                reply = await _reply(box, _message(task, test, nonce, False), limits)
                if fault := _verdict(reply, nonce):
                    raise Ended(fault)
                position += 1
        except Ended as ended:
            return Judged(position, ended.fault, time.monotonic() - begun, "in_process")
    return Judged(position, None, time.monotonic() - begun, "in_process")
