"""Watch over a prepare script from one process above it, and end with it all that it started."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import time
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import NoReturn

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_PR_SET_CHILD_SUBREAPER = 36
_TRIES, _PAUSE_S = 200, 0.01


def watched(runner: int, wall_s: int) -> None:
    """Return in a new process; this one stays behind, and ends when that one does or `runner` does.

    On Linux what a script started and left behind comes to the one that stays, whatever session or group it
    has gone to, so that it can be found and ended.
    """
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    above = os.getpid()
    ours = os.fork()
    if ours:
        _stay(ours, runner, wall_s)
    # should the one that stays be killed: on Linux at once, elsewhere by the clock
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != above:
        os._exit(1)
    signal.alarm(wall_s + 60)


def _stay(script: int, runner: int, wall_s: int) -> NoReturn:
    def told(sign: int, frame: FrameType | None) -> None:
        _end_all(script)
        os._exit(128 + sign)

    for sign in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM):
        signal.signal(sign, told)
    _prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    signal.alarm(wall_s + 60)
    if os.getppid() != runner:  # it was gone before we could ask to be told
        signal.raise_signal(signal.SIGTERM)
    ended, status = 0, 0
    while ended != script:
        ended, status = os.waitpid(-1, 0)
    for sign in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM):
        signal.signal(sign, signal.SIG_IGN)  # we are at it
    _end_all(None)
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        # end as the script ended, so that whoever runs us reads the cause from us
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with suppress(OSError):
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code if code >= 0 else 1)


def _end_all(script: int | None) -> None:
    """Kill until nothing is left: what is not dead yet may start others meanwhile."""
    for _ in range(_TRIES):
        left = _below(os.getpid())
        for pid in {*left, *([script] if script else [])}:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            while ended := os.waitpid(-1, os.WNOHANG)[0]:
                # once collected its number may be another's
                script = None if ended == script else script
        if not left:
            return
        time.sleep(_PAUSE_S)


def _below(pid: int) -> list[int]:
    """The living processes that descend from `pid`; none are known on a system without /proc."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError, IndexError):
            # the name, in brackets, may hold anything
            state, parent = stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[:2]
            if state not in "ZX":
                children.setdefault(int(parent), []).append(int(stat.parent.name))
    found, ahead = [], [pid]
    while ahead:
        below = children.get(ahead.pop(), [])
        found += below
        ahead += below
    return found


def _prctl(what: int, value: int) -> None:
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(what, value)
