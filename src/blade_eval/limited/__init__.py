"""Call a function on hostile input in a worker process that may be killed without harm.

A verifier that computes on a model's answer can be sent into a computation without end, and no signal
reaches Python inside it. So the call is made by a worker whose computing time and memory the kernel limits;
a worker that dies is replaced at the next call. The limit is on computing time, not on the clock: that the
machine is busy costs no answer its reward.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import select
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any
from weakref import WeakKeyDictionary

import msgspec

from blade_eval.environment import Unmeasured

WORKERS = max(1, min(4, os.cpu_count() or 1))
COMPUTING = 8  # seconds of processor time for one call
MEMORY = 2 << 30  # bytes beyond what the worker holds when the call starts
PATIENCE = 60, 20  # seconds, and times the computing time, on the clock until the worker counts as stuck


class TooCostly(Exception):
    """The call used up its computing time or its memory; the message says which."""


class Slots:
    """So many calls under way at once in each event loop, and no more than there are processors."""

    def __init__(self, most: int) -> None:
        self._most = min(most, os.cpu_count() or 1)
        self._slots: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()

    def here(self) -> asyncio.Semaphore:
        return self._slots.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(self._most))


_threads = ThreadPoolExecutor(WORKERS, thread_name_prefix="limited")
_mine = threading.local()
_alive: set[subprocess.Popen[bytes]] = set()


async def call(function: str, *arguments: Any, seconds: int = COMPUTING) -> Any:
    """What `module:function` returns for plain arguments; `TooCostly` when it exceeds the limits."""
    request = msgspec.json.encode({"function": function, "arguments": arguments, "seconds": seconds})
    return await asyncio.get_running_loop().run_in_executor(_threads, _called, request, seconds)


def _called(request: bytes, seconds: int) -> Any:
    worker: subprocess.Popen[bytes] | None = getattr(_mine, "worker", None)
    if worker is None or worker.poll() is not None:
        worker = _mine.worker = _started()
    assert worker.stdin is not None
    try:
        worker.stdin.write(request + b"\n")
        worker.stdin.flush()
        line = _line(worker, time.monotonic() + PATIENCE[0] + seconds * PATIENCE[1])
    except BrokenPipeError:
        line = b""
    if not line.endswith(b"\n"):
        _mine.worker = None
        raise _died(worker, seconds)
    reply = msgspec.json.decode(line)
    if "too_costly" in reply:
        raise TooCostly(reply["too_costly"])
    if "error" in reply:
        raise Unmeasured("verifier_error", reply["error"])
    return reply["result"]


def _line(worker: subprocess.Popen[bytes], deadline: float) -> bytes:
    """The worker's next line; less than a line when it dies or does not answer in time."""
    assert worker.stdout is not None
    waiting = select.poll()
    waiting.register(worker.stdout, select.POLLIN | select.POLLHUP)
    got = b""
    while not got.endswith(b"\n") and waiting.poll(max(0.0, deadline - time.monotonic()) * 1000):
        if not (more := os.read(worker.stdout.fileno(), 1 << 16)):
            break
        got += more
    return got


def _died(worker: subprocess.Popen[bytes], seconds: int) -> Exception:
    """Why there is no answer: the limit that the kernel enforced, or something that is no answer's fault."""
    try:
        status = worker.wait(timeout=1)
    except subprocess.TimeoutExpired:
        worker.kill()
        worker.wait()
        status = None
    _alive.discard(worker)
    for pipe in filter(None, (worker.stdin, worker.stdout)):
        with suppress(BrokenPipeError):
            pipe.close()
    if status == -signal.SIGXCPU:
        return TooCostly(f"more than {seconds} s of computing")
    if status in (-signal.SIGSEGV, -signal.SIGABRT):  # what C ends in that lacks stack or memory
        return TooCostly("more depth or memory than the library can use")
    how = "did not answer" if status is None else f"ended with status {status}"
    return Unmeasured("verifier_error", f"the verifier's worker {how}")


def _started() -> subprocess.Popen[bytes]:
    # -P: no module of the directory in which somebody evaluates. A session of its own: an interrupt at the
    # terminal lets the rollouts under way finish, so it must not reach the worker that judges them.
    worker = subprocess.Popen(
        [sys.executable, "-P", "-m", "blade_eval.limited.worker", str(MEMORY)], stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True,
    )
    _alive.add(worker)
    return worker


@atexit.register
def _closed() -> None:
    for worker in list(_alive):
        worker.kill()
