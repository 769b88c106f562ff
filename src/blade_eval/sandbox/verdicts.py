"""Judge a solution by its tests: printed output, returned values, or programs that call it.

The solution runs in a box; what it answers is judged where it cannot reach. Tests that are programs run in a box
of their own, and what of them cannot be done that way is read from their text, before anything runs.
"""

from __future__ import annotations

import asyncio
import json
import math
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import msgspec

from blade_eval import limited
from blade_eval.environment import Unmeasured
from blade_eval.sandbox import names, plain
from blade_eval.sandbox.assertions import Asserted, Reading
from blade_eval.sandbox.box import Limits, Session, run, session
from blade_eval.sandbox.plain import BROKEN, SHOWN

WRONG, TIME, RUNTIME = -2, -3, -4
COMPARING = 2  # seconds of computing at most for reading and comparing one answer
STARTING = 60.0  # seconds on the clock until an interpreter runs in its box; no solution pays for these

TRANSPORT = 0.001  # seconds that a question and its answer take on the way
UNANSWERED = "Time limit: no answer after"

How = Literal["outputs", "calls", "apart", "in_process"]


@dataclass(frozen=True)
class Fault:
    """Why a test did not pass: wrong answer, time limit or runtime error, and what was seen."""

    code: int
    message: str
    got: str = ""


class Ended(Exception):
    """The tests are over: one failed, or the solution gave no answer any more."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


@dataclass
class Judged:
    """The tests in order, up to the first that failed, and how they were checked; within it, `Ended` ends them."""

    how: How
    passed: int = 0
    fault: Fault | None = None
    seconds: float = 0.0
    review: Sequence[str] = ()  # known ways in which a wrong solution passes these tests

    def __enter__(self) -> Judged:
        self.seconds -= time.monotonic()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        self.seconds += time.monotonic()
        if isinstance(error, Ended):
            self.fault = error.fault
        return isinstance(error, Ended)


class Raise(msgspec.Struct):
    """An exception, as a box tells of it."""

    type: str
    message: str
    trace: str = ""
    line: list[str] = []
    held: str | None = None


class Said(msgspec.Struct):
    """A line from a box. Its fields are typed so that nothing else of a hostile line is ever built here."""

    loaded: bool | None = None
    raised: Raise | None = None
    value: str | None = None
    args: str | None = None
    printed: str | None = None
    ask: str | None = None
    on: str | int | None = None
    given: str | None = None
    hears: bool = False
    how: str = ""
    unreachable: str | None = None
    nonce: str | None = None
    passed: bool | None = None
    wrong: bool = False
    failed: Raise | None = None


READ = msgspec.json.Decoder(Said)


def _stopped(stopped: str | None, code: int | None, output: bytes, limits: Limits) -> Fault | None:
    """A fault of what the box tells of a program's end; None when it ended by itself and well."""
    text = output.decode("utf-8", "replace")[-SHOWN:]
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
    with Judged("outputs") as judged:
        for arguments, wanted in zip(inputs, expected, strict=True):
            enough = replace(limits, output=max(limits.output, 8 * len(wanted)))
            outcome = await run(code, arguments.encode("utf-8", "surrogatepass"), enough)
            if fault := _stopped(outcome.stopped, outcome.code, outcome.stderr, limits):
                raise Ended(fault)
            output = outcome.stdout.decode("utf-8", "replace")
            if difference := differs(output, wanted):
                raise Ended(Fault(WRONG, f"Wrong answer: {difference}", output[:SHOWN]))
            judged.passed += 1
    return judged


def differs(output: str, wanted: str) -> str | None:
    """Where two outputs differ: lines without the spaces around them, and numbers by value."""
    lengths = [text.strip().count("\n") + 1 for text in (output, wanted)]
    if lengths[0] != lengths[1]:  # before anything as long as the output is made of it
        return f"{lengths[0]} lines where {lengths[1]} are expected"
    ours, theirs = output.strip().split("\n"), wanted.strip().split("\n")
    for number, (mine, other) in enumerate(zip(ours, theirs, strict=True), 1):
        if mine.strip() != other.strip() and not _same_numbers(mine, other):
            return f"line {number} is {mine.strip()[:80]!r} where {other.strip()[:80]!r} is expected"
    return None


def _same_numbers(mine: str, other: str) -> bool:
    from decimal import Decimal

    words = other.split()
    if "_" in mine or not mine.isascii():  # which Python reads as numbers too
        return False
    try:
        return [Decimal(word) for word in mine.split(None, len(words))] == [Decimal(word) for word in words]
    except (ArithmeticError, ValueError):
        return False


async def _reply(box: Session, message: Mapping[str, Any], limits: Limits, until: float | None = None) -> Said:
    """Ask the program in a box; `Ended` when it does not answer in time or breaks what was agreed."""
    left = limits.clock if until is None else until - time.monotonic()
    try:
        async with asyncio.timeout(left):
            await box.send(json.dumps(message).encode())
            line = await box.line()
    except TimeoutError:
        raise Ended(Fault(TIME, f"{UNANSWERED} {limits.clock:g} s")) from None
    if line is None:
        box.stop()
        ending = await box.ended()
        stopped = "cpu" if ending["code"] == -24 else ending["stopped"]
        fault = _stopped(stopped, ending["code"], bytes(box.errors), limits)
        raise Ended(fault or Fault(RUNTIME, "Runtime error: the program ended without an answer"))
    try:
        return READ.decode(line)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        raise Ended(Fault(RUNTIME, BROKEN)) from None


def _raised(reply: Said) -> Fault | None:
    if reply.raised is None:
        return None
    message = f"Runtime error: {reply.raised.type}: {reply.raised.message}"
    return Fault(RUNTIME, message[:SHOWN], reply.raised.trace[-SHOWN:])


async def _begun(*boxes: Session) -> None:
    """Wait until the interpreters run: how long that takes says nothing of a solution."""
    for box in boxes:
        try:
            await _reply(box, {"begin": True}, Limits(wall=STARTING))
        except Ended as ended:
            raise Unmeasured("sandbox_failed", f"the box did not start: {ended.fault.message}") from ended


async def _loaded(box: Session, code: str, before: str, entry: str | None, limits: Limits) -> None:
    reply = await _reply(box, {"load": code, "before": before, "entry": entry}, limits)
    if fault := _raised(reply):
        raise Ended(fault)
    if reply.loaded is not True:
        raise Ended(Fault(RUNTIME, "Runtime error: the program took the place of its own loading"))


def _whole(limits: Limits, n: int) -> Limits:
    """The limits of a box that answers n times: each answer has its own time, and the box the sum."""
    rounds = n + 1
    return replace(limits, cpu=limits.cpu * rounds, wall=limits.clock * rounds + STARTING)


async def calls(
    code: str, name: str, arguments: Sequence[Sequence[Any]], expected: Sequence[Any], limits: Limits
) -> Judged:
    """Call a function of the solution and compare what it returns, outside of the box."""
    try:
        inputs = [plain.encoded([list(args), {}]) for args in arguments]
        outcomes = [plain.encoded(wanted) for wanted in expected]
    except plain.NotPlain as error:
        raise _invalid(f"a value of the tests cannot cross: {error}") from error
    async with session("driver.py", {}, _whole(limits, len(arguments))) as box:
        with Judged("calls") as judged:
            await _begun(box)
            await _loaded(box, code, "", None, limits)
            for args, wanted in zip(inputs, outcomes, strict=True):
                message = {"ask": "call", "on": name, "given": args}
                reply = await _reply(box, message, limits)
                if fault := _raised(reply) or await _unequal(reply, wanted, limits):
                    raise Ended(fault)
                judged.passed += 1
    return judged


async def _unequal(reply: Said, wanted: str, limits: Limits) -> Fault | None:
    """In a worker: numbers of one hash or fractions of a million digits take long to be read or compared."""
    if reply.value is None:
        return Fault(RUNTIME, BROKEN)
    seconds = min(COMPARING, math.ceil(limits.cpu))
    try:
        difference = await limited.call(
            "blade_eval.sandbox.plain:unequal", reply.value, wanted, seconds=seconds
        )
    except limited.TooCostly as fault:
        return Fault(RUNTIME, f"Runtime error: the answer cannot be compared: {fault}")
    if difference is None:
        return None
    return Fault(WRONG if difference["wrong"] else RUNTIME, difference["message"], difference["got"])


async def asserted(
    code: str, task: Asserted, limits: Limits, *, in_process: bool = False, or_in_process: bool = False
) -> Judged:
    """Run tests in one box and the solution in another; only plain data and numbers go between them.

    What passes there must pass in one process too: copies hide what a list that is shared by mistake would show. What cannot
    be done apart by the tests' own doing, such as passing a function, is not measured unless one process for both is
    allowed, where a solution can forge what it likes. The result says so then.
    """
    whole = _whole(limits, len(task.tests))
    reading = Reading(task)
    result: Judged | str | None = None
    if not in_process:
        result = reading.unreachable() or await _fairly(code, task, reading, limits, whole)
    if in_process or (isinstance(result, str) and or_in_process):
        result = await _together(code, task, reading, limits, whole, "in_process")
    elif isinstance(result, Judged) and result.fault is None:
        again = await _together(code, task, reading, limits, whole, "beside")
        result = replace(again, how="apart", seconds=result.seconds + again.seconds)
    if isinstance(result, Judged):
        return replace(result, review=reading.review())
    raise Unmeasured(
        "unsafe_check", f"{result}; that takes one process for both, where a solution can forge its verdict",
        terminal=True,
    )


def _message(task: Asserted, test: str, nonce: str, how: str) -> dict[str, Any]:
    return {"test": test, "names": dict(task.names), "how": how, "nonce": nonce}


def _verdict(reply: Said, nonce: str) -> Fault | None:
    if reply.nonce != nonce:
        return Fault(RUNTIME, "Runtime error: a verdict was written that is not the tests' own")
    if reply.passed is True:
        return None
    failed = reply.failed or Raise("Exception", "no reason was given")
    shown = f"{failed.type}: {failed.message}"
    trace = failed.trace[-SHOWN:]
    if reply.wrong:
        return Fault(WRONG, f"Wrong answer: {shown}", trace)
    return Fault(RUNTIME, f"Runtime error: {shown}", trace)


@dataclass
class Between:
    """Two boxes, and whether the tests in the one have used anything of the solution in the other."""

    solution: Session
    tests: Session
    limits: Limits
    load: Callable[[], Awaitable[None]]
    is_loaded: bool = False
    is_used: bool = False

    async def loaded(self) -> None:
        if not self.is_loaded:
            self.is_loaded = True
            await self.load()

    async def run(self, message: Mapping[str, Any]) -> Said:
        """What the tests' box says in the end; what it asks of the solution meanwhile is passed on."""
        left = self.limits.clock  # for all calls of a test together
        reply = await self._of_tests(message)
        while reply.ask is not None:
            self.is_used = self.is_used or reply.on not in names.REPLAYED
            await self.loaded()
            begun = time.monotonic()
            request = {"ask": reply.ask, "on": reply.on, "given": reply.given, "hears": reply.hears, "how": reply.how}
            answer = await _reply(self.solution, request, self.limits, begun + left)
            left -= max(0.0, time.monotonic() - begun - TRANSPORT)
            reply = await self._of_tests(_clean(answer))
        if reply.unreachable is not None and self.is_used:  # by what it gave, perhaps
            raise Ended(Fault(RUNTIME, f"Runtime error: {reply.unreachable}"))
        return reply

    async def _of_tests(self, message: Mapping[str, Any]) -> Said:
        """The tests end by the solution's doing once they hold something of it: it may be endless."""
        try:
            return await _reply(self.tests, message, self.limits)
        except Ended as ended:
            if self.is_used:
                words = f"{ended.fault.message} (in the tests, with what the solution gave them)"
                raise Ended(replace(ended.fault, message=words)) from ended
            by_clock = ended.fault.message.startswith(UNANSWERED)  # on a busy machine, perhaps not the tests' fault
            raise _invalid(f"the tests themselves ended: {ended.fault.message}", not by_clock) from ended


def _invalid(reason: str, terminal: bool = True) -> Unmeasured:
    return Unmeasured("task_invalid", reason, terminal=terminal)


def _clean(answer: Said) -> dict[str, Any]:
    """What the tests may hear of a solution's answer: a value, read in their box, or what was raised."""
    clean: dict[str, Any] = {"args": answer.args, "printed": answer.printed}
    if (raised := answer.raised) is not None:
        words = {"type": raised.type, "message": raised.message, "line": raised.line[:20], "held": raised.held}
        return {**clean, "raised": words}
    if answer.value is None:
        raise Ended(Fault(RUNTIME, BROKEN))
    return {**clean, "value": answer.value}


async def _fairly(code: str, task: Asserted, reading: Reading, limits: Limits, whole: Limits) -> Judged | str:
    """Run the solution only once it is asked, so that it cannot keep the tests from their time.

    Tests that look at the clock would measure its loading, so there it runs before; it is not what ends them.
    """
    if reading.is_timed:
        try:
            return await _apart(code, task, reading, limits, whole, is_first=True)
        except Unmeasured as missing:
            if missing.kind != "task_invalid":
                raise
    return await _apart(code, task, reading, limits, whole, is_first=False)


async def _apart(code: str, task: Asserted, reading: Reading, limits: Limits, whole: Limits, *, is_first: bool) -> Judged | str:
    """The reason when the tests ask for what cannot cross."""
    # The tests wait for the solution, and must not run out of time because of it.
    patient = replace(whole, wall=2 * whole.clock + 60)
    async with session("driver.py", {}, whole) as solution, session("driver.py", {}, patient) as tests:
        between = Between(solution, tests, limits, lambda: _loaded(solution, code, task.before, task.entry, limits))
        with Judged("apart") as judged:
            await _begun(solution, tests)
            if is_first:
                await between.loaded()
            if reason := await _prepared(between, task, reading):
                return reason
            for test in task.tests:
                nonce = secrets.token_hex(16)
                reply = await between.run(_message(task, test, nonce, "apart"))
                if reply.unreachable is not None:
                    return reply.unreachable
                if fault := _verdict(reply, nonce):
                    if not between.is_used:
                        raise _invalid(f"the tests fail without any use of the solution: {fault.message}")
                    raise Ended(fault)
                judged.passed += 1
    if not between.is_used:
        raise _invalid("the tests pass without any use of the solution")
    return judged


async def _prepared(between: Between, task: Asserted, reading: Reading) -> str | None:
    """Load what the tests need; the task's own text is tried first, for the helpers it may define."""
    reply = await between.run(_setting(task, reading, "apart"))
    if fault := _raised(reply):
        if between.is_used:
            raise Ended(fault)
        raise _invalid(f"the setup of the tests does not run: {fault.message}")
    return reply.unreachable


def _setting(task: Asserted, reading: Reading, how: str) -> dict[str, Any]:
    message = {"set_up": task.setup, "before": task.before, "entry": task.entry, "names": dict(task.names), "how": how}
    text = {"arrays": reading.arrays, "types": reading.types, "seeded": reading.seeded}
    return {**message, **text, "roles": dict(sorted(reading.roles().items()))}


async def _together(code: str, task: Asserted, reading: Reading, limits: Limits, whole: Limits, how: str) -> Judged:
    """Solution and tests in one process, with one set of names or with names of their own, `beside` each other.

    The tests and the nonce come only after the solution was loaded.
    """
    async with session("driver.py", {}, whole) as box:
        with Judged("in_process") as judged:
            await _begun(box)
            await _loaded(box, code, task.before, task.entry, limits)
            if how == "beside":
                if fault := _raised(await _reply(box, _setting(task, reading, how), limits)):
                    raise Ended(fault)
            elif task.setup:
                await _loaded(box, task.setup, "", None, limits)
            for test in task.tests:
                nonce = secrets.token_hex(16)
                reply = await _reply(box, _message(task, test, nonce, how), limits)
                if fault := _verdict(reply, nonce):
                    raise Ended(fault)
                judged.passed += 1
    return judged
