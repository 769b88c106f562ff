"""A real server as a process of its own, and the official client that asks it."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from tests.conftest import ROOT

COMMAND = [sys.executable, "-m", "blade", "mcp"]


def environment(cache: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT / "src"), "BLADE_CACHE_DIR": str(cache)}


class Asking:
    """Calls tools and waits for what they answer."""

    def __init__(self, portal: BlockingPortal, client: Client, errors: Path) -> None:
        self.portal, self.client, self.errors = portal, client, errors

    def raw(self, name: str, **given: Any) -> Any:
        return self.portal.call(self.client.call_tool, name, given)

    def text(self, name: str, **given: Any) -> str:
        told = self.raw(name, **given)
        assert not told.is_error, told.content[0].text
        assert told.structured_content is None
        (said,) = told.content
        return str(said.text)

    def json(self, name: str, **given: Any) -> dict[str, Any]:
        told = self.raw(name, format="json", **given)
        assert not told.is_error, told.content[0].text
        found = told.structured_content
        assert isinstance(found, dict)
        assert json.loads(told.content[0].text) == found
        return found

    def error(self, name: str, **given: Any) -> str:
        told = self.raw(name, **given)
        assert told.is_error
        said = str(told.content[0].text)
        assert "Traceback" not in said
        assert [
            part.split(":")[0] for part in said.splitlines() if part.startswith(("error", "hint", "see"))
        ] == ["error", "hint", "see"]
        return said

    def both(self, name: str, other: dict[str, Any], /, **given: Any) -> list[Any]:
        """Two calls at the same time."""
        calls = [self.portal.start_task_soon(self.client.call_tool, name, one) for one in (given, other)]
        return [call.result() for call in calls]


@contextlib.contextmanager
def asking(cache: Path, *specs: object, cwd: Path | None = None) -> Iterator[Asking]:
    """A server over `specs`, up to the end of the block."""
    errors = cache / "stderr.txt"
    with errors.open("w") as log, start_blocking_portal() as portal:
        parameters = StdioServerParameters(
            command=COMMAND[0], args=[*COMMAND[1:], *map(str, specs)], env=environment(cache), cwd=cwd
        )
        with portal.wrap_async_context_manager(Client(stdio_client(parameters, log))) as client:
            yield Asking(portal, client, errors)


def frames(*calls: tuple[str, dict[str, Any]]) -> bytes:
    """What a client would write: the handshake, then one call after another."""
    hello = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }
    told: list[dict[str, Any]] = [
        {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
    ]
    for number, (method, params) in enumerate(calls, 1):
        told.append({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
    return b"".join(json.dumps(one).encode() + b"\n" for one in told)


def started(cache: Path, *specs: object, command: list[str] = COMMAND) -> subprocess.Popen[bytes]:
    """The bare process, to be spoken to by hand."""
    return subprocess.Popen(
        [*command, *map(str, specs)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(cache),
    )  # fmt: skip
