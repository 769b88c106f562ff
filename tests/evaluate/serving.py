"""Start `blade env start` in a process of its own, for tests, and stop it as a person does."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.case_tables import tables

_START = """
import sys
from blade_eval.config import Asked, insist, resolved
from blade_eval.servers import sites
sites.start(insist(resolved(Asked(paths=(sys.argv[1],), environ={}))), head_port=int(sys.argv[2]))
"""

CONFIGS: dict[str, str] = tables(__file__, "configs.yaml")


def config_of(url: str) -> str:
    """A short-answer environment, its agent, and a model at an address."""
    return (CONFIGS["model"] + CONFIGS["words"]).replace("URL", url)


def free_port() -> int:
    with socket.socket() as trial:
        trial.bind(("127.0.0.1", 0))
        return int(trial.getsockname()[1])


class Started:
    """A process that serves, and what it printed."""

    def __init__(self, process: subprocess.Popen[str], head: str) -> None:
        self.process, self.head = process, head
        self.lines: list[str] = []

    def ready(self) -> None:
        assert self.process.stdout is not None
        slow = threading.Timer(60, self.process.kill)
        slow.start()
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))
            if line.startswith("All servers ready"):
                slow.cancel()
                return
        raise AssertionError("\n".join(["the servers did not start", *self.lines]))

    def stopped(self, by: signal.Signals = signal.SIGINT) -> int:
        """The exit code after a signal."""
        if self.process.poll() is None:
            self.process.send_signal(by)
        code = self.process.wait(30)
        assert self.process.stdout is not None
        self.lines += self.process.stdout.read().splitlines()
        return code


@contextmanager
def running(command: list[str], port: int, folder: Path | None = None, **environ: str) -> Iterator[Started]:
    """A command that serves, once it is ready."""
    how: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    process = subprocess.Popen(command, cwd=folder, env={**os.environ, **environ}, **how)
    started = Started(process, f"http://127.0.0.1:{port}")
    try:
        started.ready()
        yield started
    finally:
        if process.poll() is None:
            process.kill()
            process.wait(30)


@contextmanager
def served(folder: Path, model_url: str) -> Iterator[Started]:
    """A short-answer environment, its agent and a model, behind a head server of their own."""
    config = folder / "served.yaml"
    config.write_text(config_of(model_url), encoding="utf-8")
    port = free_port()
    with running([sys.executable, "-c", _START, str(config), str(port)], port) as started:
        yield started
