"""Run untrusted programs in boxes: a whole run with its output, or a session of lines there and back."""

from __future__ import annotations

import asyncio
import marshal
import math
import os
import signal
import struct
import sys
import sysconfig
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from blade_eval.environment import Unmeasured

HERE = Path(__file__).parent
LAUNCHER = HERE / "launch.py"
MEGABYTE = 1 << 20
LINE = 16 * MEGABYTE  # of a session, at least: values of honest answers, which programs do not print
PATIENCE = 5.0  # seconds beyond the limit of a box until its watcher is ended too


@dataclass(frozen=True)
class Limits:
    """What a program may use. The time of the processor decides; the clock bounds who does not use it."""

    cpu: float = 10.0  # seconds of processor time, rounded up to whole ones, of each process
    wall: float | None = None  # seconds by the clock; twice the processor time and two more unless told
    memory: int = 1024 * MEGABYTE  # address space of each process, and what all hold together
    processes: int = 64  # threads count
    open_files: int = 256
    disk: int = 64 * MEGABYTE  # all files together, in memory
    output: int = 8 * MEGABYTE  # standard output; of standard error the end is kept

    @property
    def clock(self) -> float:
        return self.wall if self.wall is not None else 2 * self.cpu + 2


@dataclass(frozen=True)
class Outcome:
    """How a program ended and what it said."""

    code: int | None  # the exit code; negative for a signal; None when the box was ended from outside
    stopped: str | None  # why it was ended: wall, cpu, memory, output
    stdout: bytes
    stderr: bytes
    wall: float
    cpu: float | None
    peak: int  # bytes that were held together, as far as they were seen


@dataclass
class Session:
    """A program in its box that is spoken to in lines."""

    process: asyncio.subprocess.Process
    stdin: asyncio.StreamWriter
    status: asyncio.StreamReader
    errors: bytearray = field(default_factory=bytearray)
    ending: dict[str, Any] | None = None

    async def send(self, line: bytes) -> None:
        """Send a line; a program that has ended does not hear it."""
        try:
            self.stdin.write(line + b"\n")
            await self.stdin.drain()
        except (ConnectionError, RuntimeError):
            pass

    async def line(self) -> bytes | None:
        """The next line without its end; None when there is none any more, or it is longer than allowed."""
        assert self.process.stdout is not None
        try:
            line = await self.process.stdout.readline()
        except ValueError:
            return None
        return line[:-1] if line.endswith(b"\n") else None

    def stop(self) -> None:
        """End the box, and wait for nothing."""
        _signal(self.process, signal.SIGTERM)

    async def ended(self) -> dict[str, Any]:
        """How the box ended; waits for that."""
        if self.ending is None:
            self.ending = await _ending(self.status)
        return self.ending


async def run(
    code: str, stdin: bytes = b"", limits: Limits | None = None, *, files: Mapping[str, str] | None = None,
    readable: Sequence[str] = (),
) -> Outcome:
    """Run a Python program in a box of its own and give what it wrote.

    Raises `Unmeasured` when any part of the box cannot be had; the program was not run then.
    """
    limits = limits or Limits()
    async with session("program.py", {**(files or {}), "solution.py": code}, limits, readable) as box:
        process = box.process
        assert process.stdout is not None
        feeding = asyncio.create_task(_fed(box.stdin, stdin))
        try:
            stdout, too_long = await _capped(process.stdout, box.errors, limits.output)
            if too_long:
                box.stop()
            ending = await box.ended()
        finally:
            feeding.cancel()
    stopped = "output" if too_long else _why(ending, limits)
    return Outcome(
        code=None if stopped in ("output", "wall", "memory") else ending["code"], stopped=stopped,
        stdout=stdout, stderr=bytes(box.errors), wall=ending["wall"], cpu=ending["cpu"], peak=ending["peak"],
    )


@asynccontextmanager
async def session(
    program: str, files: Mapping[str, str], limits: Limits, readable: Sequence[str] = ()
) -> AsyncIterator[Session]:
    """A box in which one of the files runs as a Python program; gone, with all that is in it, at the end."""
    header = marshal.dumps(plan(program, files, limits, readable))
    reading, writing = os.pipe()
    theirs, ours = os.pipe()  # not asyncio's own, which is a socket and cannot be opened as /dev/stdin
    try:
        process = await asyncio.create_subprocess_exec(
            *(interpreter(), "-I", "-S", str(LAUNCHER), str(writing)), stdin=theirs,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, pass_fds=(writing,), env={},
            cwd="/", start_new_session=True, limit=max(limits.output, LINE),
        )
    except OSError as fault:
        os.close(reading)
        os.close(ours)
        raise Unmeasured("sandbox_unavailable", f"the box cannot be started: {fault}") from fault
    finally:
        os.close(writing)
        os.close(theirs)
    status, stdin = await _pipe(reading), await _writer(ours)
    assert process.stderr is not None
    box = Session(process, stdin, status)
    listening = asyncio.create_task(_kept(process.stderr, box.errors))
    try:
        stdin.write(struct.pack(">Q", len(header)) + header)
        yield box
        await _finished(process, listening)
    finally:
        listening.cancel()
        stdin.close()
        await _gone(process)
        status._transport.close()  # type: ignore[attr-defined]


async def _finished(process: asyncio.subprocess.Process, listening: asyncio.Task[None]) -> None:
    _signal(process, signal.SIGTERM)
    try:
        await asyncio.wait_for(listening, PATIENCE)
    except TimeoutError:
        pass


async def _gone(process: asyncio.subprocess.Process) -> None:
    """End the watcher, which ends the box; whoever does not go is killed, and the kernel ends the box."""
    _signal(process, signal.SIGTERM)
    try:
        await asyncio.wait_for(process.wait(), PATIENCE)
    except TimeoutError:
        _signal(process, signal.SIGKILL)
        await process.wait()


def _signal(process: asyncio.subprocess.Process, number: int) -> None:
    """Not asyncio's own `terminate`, which may collect the process before its watcher does."""
    if process.returncode is None:
        try:
            os.kill(process.pid, number)
        except ProcessLookupError:
            pass


async def _pipe(fd: int) -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(reader)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, os.fdopen(fd, "rb"))
    return reader


async def _writer(fd: int) -> asyncio.StreamWriter:
    loop = asyncio.get_running_loop()
    kind = asyncio.streams.FlowControlMixin
    transport, protocol = await loop.connect_write_pipe(kind, os.fdopen(fd, "wb"))
    return asyncio.StreamWriter(transport, protocol, None, loop)


async def _ending(status: asyncio.StreamReader) -> dict[str, Any]:
    report = await status.read()
    if not report:
        raise Unmeasured("sandbox_failed", "the watcher of the box ended without a word")
    ending: dict[str, Any] = marshal.loads(report)  # of our own watcher, which no program in a box can speak for
    if "refused" in ending:
        raise Unmeasured("sandbox_unavailable", ending["refused"])
    return ending


async def _fed(stdin: asyncio.StreamWriter, data: bytes) -> None:
    try:
        stdin.write(data)
        await stdin.drain()
        stdin.close()
    except (ConnectionError, RuntimeError):
        pass  # the program did not read it all, which is its right


async def _capped(stdout: asyncio.StreamReader, errors: bytearray, cap: int) -> tuple[bytes, bool]:
    data = bytearray()
    while chunk := await stdout.read(1 << 16):
        data += chunk
        if len(data) + len(errors) > cap:
            return bytes(data[:cap]), True
    return bytes(data), False


async def _kept(stderr: asyncio.StreamReader, tail: bytearray, cap: int = 1 << 16) -> None:
    """Keep the end of what a program says of its errors: that is where the exception stands."""
    while chunk := await stderr.read(1 << 16):
        tail += chunk
        del tail[: max(0, len(tail) - cap)]


def _why(ending: Mapping[str, Any], limits: Limits) -> str | None:
    if ending["stopped"]:
        return str(ending["stopped"])
    # SIGXCPU, or the kill that follows when it is ignored.
    if ending["code"] == -24 or (ending["code"] == -9 and (ending["cpu"] or 0) >= math.ceil(limits.cpu)):
        return "cpu"
    return None


def plan(program: str, files: Mapping[str, str], limits: Limits, readable: Sequence[str]) -> dict[str, Any]:
    """What the launcher is told."""
    code = filter_of(os.uname().machine)
    if sys.platform != "linux" or code is None:
        machine = f"{os.uname().sysname} on {os.uname().machine}"
        raise Unmeasured("sandbox_unavailable", f"the box is made for Linux on x86_64 and aarch64, not {machine}")
    flags = ("-s", "-S", "-B", "-X", "utf8")
    return {
        "argv": [interpreter(), *flags, f"/tmp/box/{program}"],
        # Nothing of our own environment; a fixed order of sets, so that a verdict does not hang on chance.
        "environment": {
            "PATH": "/usr/bin:/bin", "HOME": "/tmp/box", "LANG": "C.UTF-8", "PYTHONHASHSEED": "0",
            "PYTHONPATH": packages(), "OPENBLAS_NUM_THREADS": "1",
        },
        "files": {**driver(), **files},
        "filter": code.hex(),
        "readable": [*system_folders(), packages(), *readable],
        **asdict(limits),
        "cpu": math.ceil(limits.cpu), "wall": limits.clock, "inodes": 4096 + limits.disk // 4096,
    }


@cache
def driver() -> dict[str, str]:
    """The few files of BLADE that lie in every box, in a package of that name with nothing else in it."""
    package = "blade_eval/sandbox/"
    empty = dict.fromkeys(("blade_eval/__init__.py", package + "__init__.py"), "")
    shared = {package + name: (HERE / name).read_text("utf-8") for name in ("names.py", "plain.py")}
    programs = {"driver.py": (HERE / "driver.py").read_text("utf-8"), "program.py": shared[package + "names.py"]}
    return {**empty, **shared, **programs}  # names.py also runs a program that reads its input


@cache
def interpreter() -> str:
    """The Python that runs programs: the one that runs BLADE, without its virtual environment."""
    return os.path.realpath(getattr(sys, "_base_executable", sys.executable))


@cache
def packages() -> str:
    """The folder of installed packages, numpy among them, which programs may import."""
    return sysconfig.get_paths()["purelib"]


@cache
def system_folders() -> tuple[str, ...]:
    """What a Python needs of the system: itself, the libraries, the clock's zone; no homes, no settings."""
    system = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/nix/store")
    return (*system, "/etc/ld.so.cache", "/etc/localtime", sys.base_prefix, os.path.dirname(interpreter()))


# ---- The system call filter: a program that the kernel runs before each call --------------------

LOAD, JUMP_EQUAL, JUMP_GREATER, JUMP_SET, RETURN = 0x20, 0x15, 0x25, 0x45, 0x06
NUMBER, ARCHITECTURE, ARGUMENT = 0, 4, 16  # places in what the kernel shows of a call; arguments take 8 bytes
ALLOW, KILL, ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
EPERM, ENOSYS, EAFNOSUPPORT = 1, 38, 97

NAMESPACE_FLAGS = 0x7E020080  # any of CLONE_NEW*, the time namespace included
FAMILIES = (1, 2, 10, 16)  # unix, inet, inet6, netlink: namespaces of the network hold these. Not vsock.
BUFFERS = (7, 8, 32, 33)  # SO_SNDBUF, SO_RCVBUF and their FORCE, on whatever level
# F_GETLK, F_OFD_GETLK, F_SETLEASE, F_NOTIFY: what tells of other boxes' doings on a file that all may read.
SPYING = (5, 36, 1024, 1026)

AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
CLONE3 = 435  # this number and those below are the same on both
# clone, socket, setsockopt, fcntl: calls that hang on their arguments.
LOOKED_INTO = {"x86_64": (56, 41, 54, 72), "aarch64": (220, 198, 208, 25)}


@cache
def refused_calls(machine: str) -> tuple[int, ...]:
    """What no program under test needs, and escapes, hidden memory, spying and channels between boxes are made of."""
    head, *lines = (line.split() for line in (HERE / "refused_calls.txt").read_text("utf-8").splitlines())
    return tuple(int(line[head.index(machine)]) for line in lines if line[head.index(machine)] != "-")


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, value)


def _refused(errno: int) -> bytes:
    return _step(RETURN, ERRNO | errno)


def _is_one_of(number: int, argument: int, values: tuple[int, ...], inside: bytes, outside: bytes) -> list[bytes]:
    """For one call: what becomes of it when an argument is one of these values, and when it is not."""
    tests = [_step(JUMP_EQUAL, value, len(values) - place) for place, value in enumerate(values)]
    return [_step(JUMP_EQUAL, number, 0, len(values) + 3), _step(LOAD, ARGUMENT + 8 * argument), *tests, outside, inside]


def _steps(machine: str) -> Iterator[bytes]:
    clone, socket, setsockopt, fcntl = LOOKED_INTO[machine]
    yield _step(LOAD, ARCHITECTURE)
    yield _step(JUMP_EQUAL, AUDIT[machine], 1, 0)
    yield _step(RETURN, KILL)  # the calls of another architecture would have other numbers
    yield _step(LOAD, NUMBER)
    if machine == "x86_64":
        yield _step(JUMP_GREATER, 0x3FFFFFFF, 0, 1)  # the x32 numbers
        yield _step(RETURN, KILL)
    for number in refused_calls(machine):
        yield _step(JUMP_EQUAL, number, 0, 1)
        yield _refused(EPERM)
    # Flags of clone3 stand behind a pointer, where a filter cannot look; without it libraries use clone.
    yield _step(JUMP_EQUAL, CLONE3, 0, 1)
    yield _refused(ENOSYS)
    yield _step(JUMP_EQUAL, clone, 0, 4)
    yield _step(LOAD, ARGUMENT)
    yield _step(JUMP_SET, NAMESPACE_FLAGS, 0, 1)
    yield _refused(EPERM)
    yield _step(RETURN, ALLOW)
    # What a socket holds is the memory of nobody: the watcher counts each at its size, so that must stay.
    yield from _is_one_of(setsockopt, 2, BUFFERS, _refused(EPERM), _step(RETURN, ALLOW))
    yield from _is_one_of(socket, 0, FAMILIES, _step(RETURN, ALLOW), _refused(EAFNOSUPPORT))
    yield from _is_one_of(fcntl, 1, SPYING, _refused(EPERM), _step(RETURN, ALLOW))
    yield _step(RETURN, ALLOW)


def filter_of(machine: str) -> bytes | None:
    """The filter for this architecture; None where the numbers of its calls are not known here."""
    return b"".join(_steps(machine)) if machine in AUDIT else None
