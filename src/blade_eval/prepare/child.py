"""Run one prepare script in this process, under limits and a warden that ends all it started."""

from __future__ import annotations

import ctypes
import errno
import importlib.util
import json
import os
import resource
import signal
import sys
import sysconfig
import time
import traceback
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from blade_eval.prepare import fetch
from blade_eval.prepare.raw_records import Found, NotReadable

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
    def end(sign: int, frame: FrameType | None) -> None:
        _end_all(script)
        os._exit(128 + sign)

    for sign in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM):
        signal.signal(sign, end)
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
    below = [pid]
    for parent_pid in below:  # grows while it is walked
        below += children.get(parent_pid, [])
    return below[1:]


def _prctl(what: int, value: int) -> None:
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(what, value)


def main(arguments: list[str]) -> int:
    """`python -m blade_eval.prepare.child JOB RESULT`: both are JSON files."""
    job = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
    watched(job["runner"], job["limits"]["wall_s"])
    limited(job["limits"])
    result = outcome(Path(job["script"]), Path(job["root"]), job["args"])
    result["sources"] = fetch.used
    Path(arguments[1]).write_text(json.dumps(result), encoding="utf-8")
    return 0 if "path" in result else 1


def limited(limits: Mapping[str, int]) -> None:
    """Set the limits of this process and of all it starts; a system without one of them goes without."""
    cpu, memory, size = limits["cpu_s"], limits["memory_bytes"], limits["file_bytes"]
    whats = (resource.RLIMIT_CPU, resource.RLIMIT_AS, resource.RLIMIT_FSIZE, resource.RLIMIT_CORE)
    for what, most in zip(whats, (cpu, memory, size, 0), strict=True):
        with suppress(ValueError, OSError):
            hard = resource.getrlimit(what)[1]
            least = most if hard == resource.RLIM_INFINITY else min(most, hard)
            # the soft limit of the CPU sends a signal by which the parent knows it; the hard one kills
            upper = least + 5 if what == resource.RLIMIT_CPU and hard == resource.RLIM_INFINITY else least
            resource.setrlimit(what, (least, upper))


def outcome(script: Path, root: Path, args: Mapping[str, Any]) -> dict[str, Any]:
    """What `prepare(**args)` returned, or why it did not return."""
    try:
        module = loaded(script, root)
        prepare = getattr(module, "prepare", None)
        if not callable(prepare):
            return {"error": "it has no function prepare()"}
        try:
            returned = prepare(**args)
        except fetch.Missing as error:  # the file that was missed first, and those of SOURCES that would be next
            declared = getattr(module, "SOURCES", None)
            rest = fetch.lacking(fetch.current(), declared) if isinstance(declared, Mapping) else []
            by_name = {file.name: file for file in (*rest, *error.lacking)}
            names = dict.fromkeys(file.name for file in (*error.lacking, *rest))
            return {"missing": [asdict(by_name[name]) for name in names]}
    except fetch.Mismatch as error:
        return {"mismatch": str(error)}
    except NotReadable as error:
        return {"unfit": str(error)}
    except MemoryError:
        return {"limit": "memory"}
    except (Exception, SystemExit) as error:
        if isinstance(error, OSError) and error.errno == errno.EFBIG:  # Python ignores the signal, the write fails
            return {"limit": "file size"}
        return raised(error, script)
    if not isinstance(returned, str | Path):
        return {"error": f"prepare() returned {type(returned).__name__}, not a path"}
    return {"path": str(Path(returned).absolute())}


def loaded(script: Path, root: Path) -> Any:
    """The script as a module, which may import from its own tree."""
    # after Python's own modules, as a json.py in somebody's folder is not meant for us; before installed ones
    own = {sysconfig.get_path(kind) for kind in ("stdlib", "platstdlib")}
    places = [n for n, place in enumerate(sys.path, 1) if place in own or place.endswith("lib-dynload")]
    sys.path.insert(max(places, default=0), str(root))
    spec = importlib.util.spec_from_file_location("prepare_script", script)
    if spec is None or spec.loader is None:
        raise ImportError(f"{script} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    # from its text: compiled code is taken for current if a change came within the second and kept the length
    exec(compile(script.read_bytes(), str(script), "exec"), module.__dict__)
    return module


def raised(error: BaseException, script: Path) -> dict[str, Any]:
    """An exception of the script: where in the script it came from, and at which record."""
    trace = error.__traceback__
    frames = list(traceback.walk_tb(trace))
    # what stands above the script is ours, and tells its author nothing
    while trace is not None and trace.tb_frame.f_code.co_filename != str(script):
        trace = trace.tb_next
    traceback.print_exception(type(error), error, trace or error.__traceback__)
    text = f"{type(error).__name__}: {error}"
    if frames:
        text += f" ({frames[-1][0].f_code.co_filename}:{frames[-1][1]})"
    # the innermost record at hand, by what it is and not by what the script calls it
    records = [value for frame, _ in frames for value in frame.f_locals.values() if type(value) is Found]
    return {"error": f"{text}, at {records[-1].place()}" if records else text}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
