"""Judge a solution by its tests: printed output, returned values, or programs that call it.

The solution runs in a box; what it answers is judged where it cannot reach. Tests that are programs run in a box
of their own, and what of them cannot be done that way is read from their text, before anything runs.
"""

from __future__ import annotations

import ast
import asyncio
import builtins
import json
import math
import re
import secrets
import symtable
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import msgspec

from blade_eval import limited
from blade_eval.environment import Unmeasured
from blade_eval.sandbox import names, plain
from blade_eval.sandbox.box import Limits, Session, run, session
from blade_eval.sandbox.plain import BROKEN, SHOWN
from blade_eval.task_row import faulty

WRONG, TIME, RUNTIME = -2, -3, -4
COMPARING = 2  # seconds of computing at most for reading and comparing one answer
STARTING = 60.0  # seconds on the clock until an interpreter runs in its box; no solution pays for these
HANDLE = re.compile(r'\{"(?:thing|coroutine)":\d{1,9}\}')

UNANSWERED = "Time limit: no answer after"

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
    review: Sequence[str] = ()  # known ways in which a wrong solution passes these tests


class Raise(msgspec.Struct):
    """An exception, as a box tells of it."""

    type: str
    message: str
    trace: str = ""
    line: list[str] = []


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
    unreachable: str | None = None
    nonce: str | None = None
    passed: bool | None = None
    wrong: bool = False
    failed: Raise | None = None


READ = msgspec.json.Decoder(Said)


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
    from decimal import Decimal

    try:
        return [Decimal(word) for word in one.split()] == [Decimal(word) for word in other.split()]
    except (ArithmeticError, ValueError):
        return False


async def _reply(
    box: Session, message: Mapping[str, Any], limits: Limits, until: float | None = None
) -> Said:
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
    code: str, name: str, given: Sequence[Sequence[Any]], expected: Sequence[Any], limits: Limits
) -> Judged:
    """Call a function of the solution and compare what it returns, outside of the box."""
    begun, position = time.monotonic(), 0
    async with session("driver.py", {}, _whole(limits, len(given))) as box:
        try:
            await _begun(box)
            await _loaded(box, code, "", None, limits)
            for args, wanted in zip(given, expected, strict=True):
                message = {"ask": "call", "on": name, "given": plain.encoded([list(args), {}])}
                reply = await _reply(box, message, limits)
                if fault := _raised(reply) or await _unequal(reply, wanted, limits):
                    raise Ended(fault)
                position += 1
        except Ended as ended:
            return Judged(position, ended.fault, time.monotonic() - begun, "calls")
    return Judged(position, None, time.monotonic() - begun, "calls")


async def _unequal(reply: Said, wanted: Any, limits: Limits) -> Fault | None:
    """In a worker: numbers of one hash or fractions of a million digits take long to be read or compared."""
    if reply.value is None:
        return Fault(RUNTIME, BROKEN)
    seconds = min(COMPARING, math.ceil(limits.cpu))
    try:
        difference = await limited.call(
            "blade_eval.sandbox.plain:unequal", reply.value, plain.encoded(wanted), seconds=seconds
        )
    except limited.TooCostly as fault:
        return Fault(RUNTIME, f"Runtime error: the answer cannot be compared: {fault}")
    if difference is None:
        return None
    return Fault(WRONG if difference["wrong"] else RUNTIME, difference["message"], difference["got"])


@dataclass(frozen=True)
class Asserted:
    """Tests that are programs: they call the solution by its names and fail by an exception."""

    tests: Sequence[str]
    setup: str = ""  # runs before the tests, out of the solution's reach
    before: str = ""  # runs before the solution: what the task gave, such as imports and helpers
    entry: str | None = None
    names: Mapping[str, str] = field(default_factory=dict)  # other names under which the tests know the solution's


async def asserted(
    code: str, task: Asserted, limits: Limits, *, in_process: bool = False, or_in_process: bool = False
) -> Judged:
    """Run tests in one box and the solution in another; only plain data and numbers go between them.

    What cannot be done that way by the tests' own doing, such as passing a function, is not measured unless
    one process for both is allowed, where a solution can forge what it likes. The result says so then.
    """
    begun = time.monotonic()
    whole = _whole(limits, len(task.tests))
    reading = Reading(task)
    result: Judged | str | None = None
    if not in_process:
        result = reading.unreachable() or await _apart(code, task, reading, limits, whole, begun)
    if in_process or (isinstance(result, str) and or_in_process):
        result = await _together(code, task, limits, whole, begun)
    if isinstance(result, Judged):
        return replace(result, review=reading.review())
    raise Unmeasured(
        "unsafe_check",
        f"{result}; that takes one process for both, where a solution can forge its verdict",
        terminal=True,
    )


class Reading:
    """What the text of the tests says of the names in it: which are theirs, and which the solution's."""

    def __init__(self, task: Asserted) -> None:
        self.task = task
        self.trees = [_tree(text) for text in (task.setup, *task.tests)]
        self.free = [_free(text) for text in (task.setup, *task.tests)]
        self.others = set[str]().union(*self.free) - CUSTOMARY - task.names.keys()
        self.classes = self._classes()

    def unreachable(self) -> str | None:
        """What cannot be seen from another process, whatever the solution does: identity, and being a base."""
        given = _tree(self.task.before, lenient=True)
        known = {node.name for node in given.body if isinstance(node, ast.ClassDef)} | CUSTOMARY
        for node in (node for tree in self.trees for node in ast.walk(tree)):
            sides: list[ast.expr] = []
            if isinstance(node, ast.Call) and _last_name(node.func) in ("assertIs", "assertIsNot"):
                sides = node.args[:2]
            elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Is | ast.IsNot):
                sides = [node.left, node.comparators[0]]
            elif isinstance(node, ast.ClassDef):
                bases = {base.id for base in node.bases if isinstance(base, ast.Name)}
                if own := bases & self.others - known:
                    return f"the tests derive a class from {min(own)}"
            called = [side.func if isinstance(side, ast.Call) else side for side in sides]
            if called and all(isinstance(side, ast.Name) and not hasattr(builtins, side.id) for side in called):
                return "the tests ask whether two values are the same object"
        return None

    def review(self) -> list[str]:
        """Known ways in which a wrong solution passes such tests, by name; read from their text alone."""
        hacks = set()
        for node in (node for tree in self.trees for node in ast.walk(tree)):
            if isinstance(node, ast.Call) and _last_name(node.func) in ("allclose", "isclose", "assert_allclose"):
                hacks.add("an empty array is close to any number")
            loops = node.generators if isinstance(node, ast.GeneratorExp | ast.ListComp) else [node]
            if any(isinstance(loop, ast.For | ast.comprehension) and self._calls(loop.iter) for loop in loops):
                hacks.add("an empty answer ends a loop over it before anything is compared")
            if isinstance(node, ast.Assert):
                if self._calls(node.test):
                    hacks.add("any answer that counts as true passes")
                elif isinstance(node.test, ast.Compare) and len(node.test.ops) == 1:
                    if self._calls(node.test.left) and self._calls(node.test.comparators[0]):
                        hacks.add("answers are compared with one another: one answer to everything passes")
                    elif isinstance(node.test.ops[0], ast.NotEq | ast.IsNot):
                        hacks.add("any answer but one passes")
        return sorted(hacks)

    def _calls(self, node: ast.expr) -> bool:
        """Is this a call of the solution?"""
        known = self.others | self.task.names.keys()
        return isinstance(node, ast.Call) and _last_name(node.func) in known

    def sources(self, place: int) -> dict[str, str]:
        """Who answers for each name that a text uses and does not define; the text at 0 is the setup."""
        tree, free = self.trees[place], self.free[place]
        caught = {name.id for node in ast.walk(tree) for name in _caught(node)}
        wrapping = {name for name in names.HOME if any(_wraps(node, name, free) for node in ast.walk(tree))}
        found = {}
        for name in sorted(free | caught):
            if name in caught:
                found[name] = "caught"
            elif self._is_under_test(name, tree):
                found[name] = "solution"
            elif name in names.JUDGED_BY or name in names.ALIASES or name in wrapping:
                found[name] = "tests"
            elif not hasattr(builtins, name):
                found[name] = "solution"
        return found

    def _is_under_test(self, name: str, tree: ast.Module) -> bool:
        """Is a name that Python or a library has the solution's? If it is the entry, or nothing else can be."""
        if name not in names.JUDGED_BY and not hasattr(builtins, name):
            return False
        if name == self.task.entry:
            return True
        if self.others or self.task.entry or isinstance(getattr(builtins, name, None), type):
            return False
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
        own = [node for node in calls if _last_name(node.func) == name]
        inner = [part for node in own for part in ast.walk(node) if isinstance(part, ast.Call) and part is not node]
        return bool(own) and not inner and name not in ("print", "isinstance", "len")

    def _classes(self) -> set[str]:
        """Names that the tests use as classes: an attribute of theirs or of what they make is used as of an object."""
        classes, makers = set(), dict[str, str]()
        nodes = [node for tree in self.trees for node in ast.walk(tree)]
        for node in nodes:
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
                makers |= {ast.unparse(target): _last_name(node.value.func) for target in node.targets}
            if isinstance(node, ast.Call) and _last_name(node.func) == "isinstance" and len(node.args) > 1:
                classes |= {part.id for part in ast.walk(node.args[1]) if isinstance(part, ast.Name)}
        for node in nodes:
            if isinstance(node, ast.Attribute):
                holder = node.value
                if isinstance(holder, ast.Name) and holder.id not in makers:
                    classes.add(holder.id)
                elif node.attr not in QUERIES:
                    maker = _last_name(holder.func) if isinstance(holder, ast.Call) else ""
                    classes.add(maker or makers.get(ast.unparse(holder), ""))
        classes = {self.task.names.get(name, name) for name in classes}
        return {name for name in classes if name[:1].isupper()}


CUSTOMARY = {*names.HOME, *names.MODULES, *names.JUDGED_BY, *names.ALIASES, *dir(builtins)}
CHANGES = set("add append clear discard extend insert pop popitem remove reverse sort update".split())
QUERIES = {name for kind in (str, list, dict, set, int, float) for name in dir(kind)} - CHANGES


def _tree(text: str, lenient: bool = False) -> ast.Module:
    """The text of a task, parsed; one that is no Python is the task's fault."""
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        if lenient:
            return ast.Module([], [])
        raise faulty(f"the tests are no Python: {error}") from error


def _free(text: str) -> set[str]:
    """The names that a program looks up and does not define."""
    tables = [symtable.symtable(text, "<test>", "exec")]
    own = {symbol.get_name() for symbol in tables[0].get_symbols() if symbol.is_assigned() or symbol.is_imported()}
    free = set()
    while tables:
        table = tables.pop()
        tables += table.get_children()
        is_top = table.get_type() == "module"
        free |= {s.get_name() for s in table.get_symbols() if s.is_referenced() and (is_top or s.is_global())}
    return free - own


def _last_name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _caught(node: ast.AST) -> Iterator[ast.Name]:
    """The names of exceptions that the tests expect."""
    kinds: ast.expr | None = None
    if isinstance(node, ast.ExceptHandler):
        kinds = node.type
    elif isinstance(node, ast.Call) and node.args and _last_name(node.func).startswith(("raises", "assertRaises")):
        kinds = node.args[0]
    if kinds is not None:
        yield from (part for part in ast.walk(kinds) if isinstance(part, ast.Name))


def _wraps(node: ast.AST, name: str, free: set[str]) -> bool:
    """Is a customary name called on what another name of the solution gives? Then it only judges."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.func.id != name:
        return False
    inner = {part.id for argument in node.args for part in ast.walk(argument) if isinstance(part, ast.Name)}
    return bool((inner & free) - {name, *dir(builtins)})


def _message(task: Asserted, test: str, nonce: str, sources: Mapping[str, str] | None = None) -> dict[str, Any]:
    remote = sources is not None
    return {"test": test, "names": dict(task.names), "remote": remote, "nonce": nonce, "sources": sources or {}}


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
    is_used: bool = False

    async def run(self, message: Mapping[str, Any]) -> Said:
        """What the tests' box says in the end; what it asks of the solution meanwhile is passed on."""
        until: float | None = None  # for all calls of a test together
        reply = await self._of_tests(message)
        while reply.ask is not None:
            until = until or time.monotonic() + self.limits.clock
            request = {"ask": reply.ask, "on": reply.on, "given": reply.given, "hears": reply.hears}
            answer = await _reply(self.solution, request, self.limits, until)
            is_data = answer.value is not None and not HANDLE.fullmatch(answer.value)
            self.is_used = self.is_used or reply.ask != "value" or is_data
            reply = await self._of_tests(_clean(answer))
        return reply

    async def _of_tests(self, message: Mapping[str, Any]) -> Said:
        """The tests end by the solution's doing once they hold something of it: it may be endless."""
        try:
            return await _reply(self.tests, message, self.limits)
        except Ended as ended:
            if self.is_used:
                told = f"{ended.fault.message} (in the tests, with what the solution gave them)"
                raise Ended(replace(ended.fault, message=told)) from ended
            by_clock = ended.fault.message.startswith(UNANSWERED)  # on a busy machine, perhaps not the tests' fault
            raise _invalid(f"the tests themselves ended: {ended.fault.message}", not by_clock) from ended


def _invalid(reason: str, terminal: bool = True) -> Unmeasured:
    return Unmeasured("task_invalid", reason, terminal=terminal)


def _clean(answer: Said) -> dict[str, Any]:
    """What the tests may hear of a solution's answer: a value, read in their box, or what was raised."""
    clean: dict[str, Any] = {"args": answer.args, "printed": answer.printed}
    if (raised := answer.raised) is not None:
        told = {"type": raised.type, "message": raised.message, "line": raised.line[:20]}
        return {**clean, "raised": told}
    if answer.value is None:
        raise Ended(Fault(RUNTIME, BROKEN))
    return {**clean, "value": answer.value}


async def _apart(
    code: str, task: Asserted, reading: Reading, limits: Limits, whole: Limits, begun: float
) -> Judged | str:
    """The reason when the tests ask for what cannot cross."""
    position = 0
    # The tests wait for the solution, and must not run out of time because of it.
    patient = replace(whole, wall=2 * whole.clock + 60)
    async with session("driver.py", {}, whole) as solution, session("driver.py", {}, patient) as tests:
        between = Between(solution, tests, limits)
        try:
            await _begun(solution, tests)
            await _loaded(solution, code, task.before, task.entry, limits)
            if reason := await _prepared(between, task, reading):
                return reason
            for place, test in enumerate(task.tests, 1):
                nonce = secrets.token_hex(16)
                reply = await between.run(_message(task, test, nonce, reading.sources(place)))
                if reply.unreachable is not None:
                    return reply.unreachable
                if fault := _verdict(reply, nonce):
                    if not between.is_used:
                        raise _invalid(f"the tests fail without any use of the solution: {fault.message}")
                    raise Ended(fault)
                position += 1
        except Ended as ended:
            return Judged(position, ended.fault, time.monotonic() - begun, "apart")
    if not between.is_used:
        raise _invalid("the tests pass without any use of the solution")
    return Judged(position, None, time.monotonic() - begun, "apart")


async def _prepared(between: Between, task: Asserted, reading: Reading) -> str | None:
    """Load what the tests need; the task's own text is tried first, for the helpers it may define."""
    message = {"set_up": task.setup, "before": task.before, "entry": task.entry, "names": dict(task.names)}
    reply = await between.run({**message, "classes": sorted(reading.classes), "sources": reading.sources(0)})
    if fault := _raised(reply):
        if between.is_used:
            raise Ended(fault)
        raise _invalid(f"the setup of the tests does not run: {fault.message}")
    return reply.unreachable


async def _together(code: str, task: Asserted, limits: Limits, whole: Limits, begun: float) -> Judged:
    """Solution and tests in one process: the tests and the nonce come only after the solution was loaded."""
    position = 0
    async with session("driver.py", {}, whole) as box:
        try:
            await _begun(box)
            await _loaded(box, code, task.before, task.entry, limits)
            if task.setup:
                await _loaded(box, task.setup, "", None, limits)
            for test in task.tests:
                nonce = secrets.token_hex(16)
                reply = await _reply(box, _message(task, test, nonce), limits)
                if fault := _verdict(reply, nonce):
                    raise Ended(fault)
                position += 1
        except Ended as ended:
            return Judged(position, ended.fault, time.monotonic() - begun, "in_process")
    return Judged(position, None, time.monotonic() - begun, "in_process")


# ---- The text of tests --------------------------------------------------------------------------

DEFINED = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
FIXTURES = {"setup_method", "teardown_method", "setup_class", "teardown_class", "setup", "teardown"}
SUITE = "import unittest\nunittest.defaultTestLoader.loadTestsFromTestCase({}).debug()"


def _does(text: str) -> bool:
    """Does a text do anything when it runs? Imports, definitions and comments do not."""
    return any(not _is_still(node) for node in _tree(text).body)


def listed(tests: Sequence[str]) -> list[str]:
    """A list of tests, of which at least one does something."""
    if not any(_does(test) for test in tests):
        raise faulty("the tests do nothing when they run")
    return list(tests)


def statements(text: str, has_entry: bool) -> tuple[str, list[str]]:
    """What comes first, and the tests: `check(candidate)`, each test function or case, or each assertion.

    In front of assertions, only imports and definitions come first: what else stands there is part of a test.
    """
    body = [node for node in _tree(text).body if not _runs_all(node)]
    called = {name for node in body if not isinstance(node, DEFINED) for name in _called(node)}
    check = next((node for node in body if isinstance(node, ast.FunctionDef) and node.name == "check"), None)
    tests = [test for node in body for test in _tests_of(node, called)]
    if check is not None and "check" not in called:
        if check.args.args and not has_entry:
            raise faulty("the tests define check(candidate), and the row has no entry_point")
        tests.append("check(candidate)" if check.args.args else "check()")
    others = [node for node in body if not _is_still(node)]
    source = "\n".join(_source(text, node) for node in body)
    if tests:
        return source, tests
    if not others:
        raise faulty("the tests define functions that nothing calls")
    if not all(isinstance(node, ast.Assert) for node in others):
        return "", [source]
    first = min(node.lineno for node in others)
    still = [node for node in body if _is_still(node)]
    if any(node.lineno > first for node in still):
        return "", [source]
    return "\n".join(_source(text, node) for node in still), [_source(text, node) for node in others]


def _source(text: str, node: ast.stmt) -> str:
    """With its decorators, which stand before the place of a definition."""
    lines = text.splitlines()
    decorators = getattr(node, "decorator_list", [])
    begin = min([node.lineno, *(decorator.lineno for decorator in decorators)])
    if node.col_offset == 0 and decorators:
        return "\n".join(lines[begin - 1 : node.end_lineno])
    return ast.get_source_segment(text, node) or ""


def _is_still(node: ast.stmt) -> bool:
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return isinstance(node, (*DEFINED, ast.Pass)) or is_text


def _called(node: ast.AST) -> set[str]:
    calls = [part.func for part in ast.walk(node) if isinstance(part, ast.Call)]
    return {func.id for func in calls if isinstance(func, ast.Name)}


def _runs_all(node: ast.stmt) -> bool:
    """`unittest.main()` and the like, also behind a guard: it would look for tests in another module."""
    if isinstance(node, ast.If) and "__name__" in ast.dump(node.test):
        return True
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call):
        return False
    return ast.unparse(node.value.func) in ("unittest.main", "pytest.main")


def _tests_of(node: ast.stmt, called: set[str]) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
        if node.name in called:
            return []
        needs = len(node.args.args) - len(node.args.defaults)
        if isinstance(node, ast.AsyncFunctionDef) or needs or node.decorator_list:
            raise faulty(f"{node.name} needs pytest: fixtures, parameters and decorators are not provided")
        return [f"{node.name}()"]
    if not isinstance(node, ast.ClassDef) or node.name in called:
        return []
    if any(ast.unparse(name).endswith("TestCase") for name in node.bases):
        return [SUITE.format(node.name)]
    methods = [part.name for part in node.body if isinstance(part, ast.FunctionDef)]
    wanted = [name for name in methods if name.startswith("test")] if node.name.startswith("Test") else []
    if wanted and FIXTURES & set(methods):
        raise faulty(f"{node.name} needs pytest, which would set it up")
    return [f"{node.name}().{name}()" for name in wanted]
