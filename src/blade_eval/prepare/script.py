"""Run a prepare script in a process of its own: limited, without our secrets, ended as a whole."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from blade_eval.prepare.fetch import CONTEXT, Context

# What a script may need of our environment: to find programs and a home, to get through a proxy, to log in at
# a dataset hub. Everything else, keys of model servers above all, stays here.
_PASSED = frozenset(
    "PATH HOME USER LANG LANGUAGE TZ TMPDIR PYTHONPATH VIRTUAL_ENV LD_LIBRARY_PATH XDG_CACHE_HOME "
    "SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE CURL_CA_BUNDLE HUGGING_FACE_HUB_TOKEN "
    "HTTP_PROXY HTTPS_PROXY NO_PROXY ALL_PROXY".split()
)
_PASSED_STARTS = ("LC_", "HF_")
_MERCY_S = 10.0  # for the warden, to end all that the script started before it is ended itself
_LINE_MOST = 4000


@dataclass(frozen=True)
class Limits:
    """What one script may use."""

    wall_s: int = 3600
    cpu_s: int = 1800
    memory_bytes: int = 8 << 30
    file_bytes: int = 8 << 30


DEFAULTS = Limits()


@dataclass(frozen=True)
class Job:
    """A script, where its tree begins, where it works, and what it is called with."""

    script: Path
    root: Path
    work: Path
    args: Mapping[str, Any]
    context: Context
    limits: Limits = DEFAULTS


def ran(job: Job, tell: Callable[[str], None]) -> dict[str, Any]:
    """Run the job and pass on each line it prints; what its process said at the end, or what ended it."""
    with tempfile.TemporaryDirectory(prefix="blade-prepare-") as folder:
        job_file, result_file = Path(folder, "job.json"), Path(folder, "result.json")
        document: dict[str, Any] = {"script": str(job.script), "root": str(job.root), "args": dict(job.args)}
        document |= {"limits": asdict(job.limits), "runner": os.getpid()}
        job_file.write_text(json.dumps(document), encoding="utf-8")
        process = subprocess.Popen(
            # -P: without it a json.py in the folder would stand in for Python's own
            [sys.executable, "-P", "-m", "blade_eval.prepare.child", str(job_file), str(result_file)],
            cwd=job.work,
            env=environment(os.environ, job.context),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            in_time = _listened(process, time.monotonic() + job.limits.wall_s, tell)
        finally:
            _ended(process)
        if not in_time:
            return {"limit": "time"}
        return _result(result_file, process.returncode)


def environment(ours: Mapping[str, str], context: Context) -> dict[str, str]:
    """The environment of a script: what it may need of ours, and its context."""
    names = [name for name in ours if name.upper() in _PASSED or name.upper().startswith(_PASSED_STARTS)]
    passed = {name: ours[name] for name in names}
    return {**passed, "PYTHONUNBUFFERED": "1", CONTEXT: json.dumps(asdict(context))}


def _listened(process: subprocess.Popen[bytes], until: float, tell: Callable[[str], None]) -> bool:
    """Pass on what it prints until it ends; False if its time ran out first."""
    assert process.stdout is not None
    pipe = process.stdout.fileno()
    os.set_blocking(pipe, False)
    rest = b""
    with selectors.DefaultSelector() as ready:
        ready.register(pipe, selectors.EVENT_READ)
        while time.monotonic() < until:
            heard = ready.select(timeout=min(0.2, max(0.0, until - time.monotonic())))
            piece = os.read(pipe, 1 << 16) if heard else b""
            # an end of the pipe, or silence after the process ended: what it started may hold the pipe open
            if not piece and (heard or process.poll() is not None):
                with suppress(subprocess.TimeoutExpired):
                    process.wait(timeout=max(0.0, until - time.monotonic()))
                _pass_on(rest, tell)
                return process.poll() is not None
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                _pass_on(line, tell)
            if len(rest) > _LINE_MOST:
                _pass_on(rest, tell)
                rest = b""
    return False


def _pass_on(line: bytes, tell: Callable[[str], None]) -> None:
    text = line.decode("utf-8", "replace").rstrip()
    if text:
        tell(text[:_LINE_MOST])


def _ended(process: subprocess.Popen[bytes]) -> None:
    """End the warden if it still runs, which ends the rest; then whatever is left of the group."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, sign)
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=_MERCY_S)
    if process.stdout is not None:
        process.stdout.close()


def _result(file: Path, code: int) -> dict[str, Any]:
    with suppress(OSError, ValueError):
        result: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        return result
    if code == -signal.SIGXCPU:
        return {"limit": "CPU time"}
    if code < 0:
        return {"error": f"its process was ended by {signal.Signals(-code).name}"}
    return {"error": f"its process ended with code {code} without a result"}
