"""An OpenAI-compatible endpoint for tests: real HTTP on loopback, well-behaved or badly as a script says."""

from __future__ import annotations

import json
import re
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SAME = object()


@dataclass(frozen=True)
class Call:
    """A request as it came in."""

    path: str
    body: dict[str, Any]
    headers: dict[str, str]

    @property
    def is_chat(self) -> bool:
        return self.path.endswith("/chat/completions")

    @property
    def system(self) -> str:
        return str(self.body["messages"][0]["content"] if self.is_chat else self.body["instructions"])

    @property
    def turns(self) -> list[dict[str, str]]:
        """What was said after the system text."""
        return list(self.body["messages"][1:] if self.is_chat else self.body["input"])

    @property
    def about(self) -> str:
        """The id that the question is about."""
        found = re.search(r"^> id: (.*)$", self.turns[0]["content"], re.MULTILINE)
        assert found, self.turns[0]["content"][:300]
        return found[1]

    @property
    def has_schema(self) -> bool:
        return "response_format" in self.body or "text" in self.body

    @property
    def is_second(self) -> bool:
        """Is the model asked to correct itself."""
        return len(self.turns) == 3


@dataclass(frozen=True)
class Says:
    """A reply of the model: a text, or an object that is written as JSON."""

    text: Any
    usage: tuple[int, int] | None = (1000, 100)
    is_cut: bool = False
    refusal: str = ""


@dataclass(frozen=True)
class Status:
    """An HTTP answer other than a reply."""

    code: int
    message: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    error_code: str | None = None


@dataclass(frozen=True)
class Raw:
    """Bytes as they stand; `declared` is the length that the header promises."""

    content: bytes
    declared: int | None = None


@dataclass(frozen=True)
class Slow:
    """Nothing for a while."""

    seconds: float


@dataclass(frozen=True)
class Drip:
    """A good reply after 20 blanks, each of them late: something comes all the time."""

    seconds: float
    says: Says


class Reset:
    """The connection breaks."""


Act = Says | Status | Raw | Slow | Drip | Reset
Script = Callable[[Call, int], Act]  # the call, and how many came before it


class Server:
    """What tests see of the endpoint."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}/v1"
        self.host = f"127.0.0.1:{port}"
        self.calls: list[Call] = []
        self.script: Script = lambda call, number: Status(500, "no script")
        self.most_at_once = 0
        self._at_once = 0
        self._lock = threading.Lock()

    def taken(self, call: Call) -> Act:
        with self._lock:
            number = len(self.calls)
            self.calls.append(call)
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        return self.script(call, number)

    def done(self) -> None:
        with self._lock:
            self._at_once -= 1


@contextmanager
def serving() -> Iterator[Server]:
    """An endpoint while the block lasts."""
    http = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    http.daemon_threads = True
    server = Server(http.server_address[1])
    http.told = server
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        http.shutdown()
        http.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_POST(self) -> None:
        server: Server = self.server.told
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        call = Call(self.path, body, {name.lower(): value for name, value in self.headers.items()})
        act = server.taken(call)
        try:
            self._act(call, act)
        except OSError:
            self.close_connection = True
        finally:
            server.done()

    def _act(self, call: Call, act: Act) -> None:
        if isinstance(act, Says):
            self._send(200, json.dumps(_body(call, act)).encode())
        elif isinstance(act, Status):
            told = {"error": {"message": act.message, "code": act.error_code, "type": "test"}}
            self._send(act.code, json.dumps(told).encode(), act.headers)
        elif isinstance(act, Raw):
            self._send(200, act.content, declared=act.declared)
        elif isinstance(act, Slow):
            time.sleep(act.seconds)
            self.close_connection = True
        elif isinstance(act, Drip):
            content = json.dumps(_body(call, act.says)).encode()
            self._head(200, len(content) + 20, {})
            for _ in range(20):
                self.wfile.write(b" ")
                self.wfile.flush()
                time.sleep(act.seconds)
            self.wfile.write(content)
        else:
            linger = struct.pack("ii", 1, 0)
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            self.connection.close()
            self.close_connection = True

    def _head(self, code: int, length: int, headers: dict[str, str]) -> None:
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(length))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def _send(
        self, code: int, content: bytes, headers: dict[str, str] | None = None, declared: int | None = None
    ) -> None:
        self._head(code, len(content) if declared is None else declared, headers or {})
        self.wfile.write(content)
        if declared is not None and declared != len(content):
            self.close_connection = True


def _body(call: Call, says: Says) -> dict[str, Any]:
    text = says.text if isinstance(says.text, str) else json.dumps(says.text)
    if call.is_chat:
        usage = says.usage and {"prompt_tokens": says.usage[0], "completion_tokens": says.usage[1]}
        message = {"role": "assistant", "content": text, "refusal": says.refusal or None}
        choice = {"index": 0, "message": message, "finish_reason": "length" if says.is_cut else "stop"}
        return {"id": "c", "object": "chat.completion", "choices": [choice], "usage": usage}
    part = (
        {"type": "refusal", "refusal": says.refusal}
        if says.refusal
        else {"type": "output_text", "text": text, "annotations": []}
    )
    usage = says.usage and {"input_tokens": says.usage[0], "output_tokens": says.usage[1]}
    return {
        "id": "r",
        "object": "response",
        "status": "incomplete" if says.is_cut else "completed",
        "output": [
            {"type": "reasoning", "summary": []},
            {"type": "message", "role": "assistant", "content": [part]},
        ],
        "usage": usage,
    }
