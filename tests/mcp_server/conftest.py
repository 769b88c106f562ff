"""One folder with runs, and the tools over it: asked in this process, or through the client of a real server."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from blade.agent.mcp import server
from blade.agent.mcp.roots import House, roots
from tests.conftest import ROOT
from tools.planted import write_run

COMMAND = [sys.executable, "-m", "blade", "mcp"]


def environment(cache: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT / "src"), "BLADE_CACHE_DIR": str(cache)}


class Asking:
    """Calls tools and takes what they answer apart."""

    def __init__(self, raw: Callable[[str, dict[str, Any]], Any]) -> None:
        self.raw = raw

    def text(self, name: str, **given: Any) -> str:
        answer = self.raw(name, given)
        assert (answer.is_error or False, answer.structured_content) == (False, None), answer.content[0].text
        return str(answer.content[0].text)

    def json(self, name: str, **given: Any) -> dict[str, Any]:
        answer = self.raw(name, {**given, "format": "json"})
        assert not answer.is_error, answer.content[0].text
        assert json.loads(answer.content[0].text) == answer.structured_content
        return dict(answer.structured_content)

    def error(self, name: str, **given: Any) -> str:
        answer = self.raw(name, given)
        assert answer.is_error
        text = str(answer.content[0].text)
        starts = [line.split(":")[0] for line in text.splitlines()]
        assert [start for start in starts if start in ("error", "hint", "see", "Traceback")] == ["error", "hint", "see"]
        return text

    def pages(self, name: str, key: str, **given: Any) -> list[dict[str, Any]]:
        """The entries of all pages."""
        entries: list[dict[str, Any]] = []
        offset: int | None = 0
        while offset is not None:
            page = self.json(name, offset=offset, **given)
            entries += page[key]
            offset = page["next_offset"]
        return entries


def here(*specs: object) -> Asking:
    """The tools of a server over `specs`, in this process."""
    house = House(roots([str(spec) for spec in specs]))
    return Asking(lambda name, given: server._answered(house, name, given))


@contextlib.contextmanager
def served(cache: Path, *specs: object) -> Iterator[Any]:
    """The official client of a server over `specs`, up to the end of the block; it writes to stderr.txt in `cache`."""
    arguments = [*COMMAND[1:], *map(str, specs)]
    with (cache / "stderr.txt").open("w") as log, start_blocking_portal() as portal:
        parameters = StdioServerParameters(command=COMMAND[0], args=arguments, env=environment(cache))
        with portal.wrap_async_context_manager(Client(stdio_client(parameters, log))) as client:
            yield portal, client


def frames(*calls: tuple[str, dict[str, Any]]) -> bytes:
    """What a client would write: the handshake, then one call after another."""
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    requests: list[dict[str, Any]] = [
        {"id": 0, "method": "initialize", "params": hello},
        {"method": "notifications/initialized"},
        *({"id": number, "method": method, "params": params} for number, (method, params) in enumerate(calls, 1)),
    ]
    return b"".join(json.dumps({"jsonrpc": "2.0", **request}).encode() + b"\n" for request in requests)


def started(cache: Path, *specs: object, command: list[str] = COMMAND, said: bytes = b"") -> Any:
    """The bare process, to be spoken to by hand."""
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    process = subprocess.Popen([*command, *map(str, specs)], env=environment(cache), **pipes)
    process.stdin.write(said)
    process.stdin.flush()
    return process


@pytest.fixture(scope="package")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of the same tasks in a folder, and a secret beside it."""
    folder = tmp_path_factory.mktemp("served")
    write_run(folder / "runs", name="first", n_tasks=8, repeats=3, faults=("provider_errors:2", "lost_rows:1"))
    write_run(folder / "runs", name="second", n_tasks=8, repeats=3, seed=5)
    write_run(folder / "secret", name="hidden", n_tasks=2, repeats=1)
    (folder / "secret" / "report.md").write_text("# Secret\n\n3 of 2 tasks failed.\n")
    (folder / "runs" / "report.md").write_text("# Report\n\n7 of 5 tasks failed.\n")
    return folder


@pytest.fixture(scope="package", autouse=True)
def cached(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("cache")
        patch.setenv("BLADE_CACHE_DIR", str(folder))
        yield folder


@pytest.fixture(scope="package")
def ask(folder: Path) -> Asking:
    return here(folder / "runs")
