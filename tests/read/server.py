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


class Call:
    """A request as it came in."""

    def __init__(self, path: str, body: dict[str, Any], headers: dict[str, str]) -> None:
        self.path, self.body, self.headers = path, body, headers
        self.is_chat = path.endswith("/chat/completions")
        self.system = str(body["messages"][0]["content"] if self.is_chat else body["instructions"])
        self.turns: list[dict[str, str]] = list(body["messages"][1:] if self.is_chat else body["input"])  # what came after it
        self.about = next(iter(re.findall(r"^> id: (.*)$", self.turns[0]["content"], re.MULTILINE)), "")
        self.has_schema = "response_format" in body or "text" in body
        self.is_second = len(self.turns) == 3  # the model is asked to correct itself


@dataclass(frozen=True)
class Says:
    """A reply of the model: a text, or an object that is written as JSON; after 20 blanks if it drips."""

    text: Any
    usage: tuple[int, int] | None = (1000, 100)
    is_cut: bool = False
    refusal: str = ""
    drip: float = 0.0  # seconds before each blank

    def body(self, is_chat: bool) -> bytes:
        text = self.text if isinstance(self.text, str) else json.dumps(self.text)
        names = ("prompt_tokens", "completion_tokens") if is_chat else ("input_tokens", "output_tokens")
        usage = self.usage and dict(zip(names, self.usage, strict=True))
        message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": self.refusal or None}
        if is_chat:
            choice = {"index": 0, "message": message, "finish_reason": "length" if self.is_cut else "stop"}
            return json.dumps({"id": "c", "object": "chat.completion", "choices": [choice], "usage": usage}).encode()
        part = {"type": "refusal", "refusal": self.refusal} if self.refusal else {"type": "output_text", "text": text}
        output = [{"type": "reasoning", "summary": []}, {"type": "message", "role": "assistant", "content": [part]}]
        status = "incomplete" if self.is_cut else "completed"
        return json.dumps({"id": "r", "object": "response", "status": status, "output": output, "usage": usage}).encode()


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
class Gone:
    """The connection ends after a while of silence, or is reset."""

    seconds: float = 0.0


Act = Says | Status | Raw | Gone
Script = Callable[[Call, int], Act]  # the call, and how many came before it


class Server:
    """What tests see of the endpoint."""

    def __init__(self, port: int) -> None:
        self.host = f"127.0.0.1:{port}"
        self.url = f"http://{self.host}/v1"
        self.calls: list[Call] = []
        self.script: Script = lambda call, number: Status(500, "no script")
        self.lock = threading.Lock()


@contextmanager
def serving() -> Iterator[Server]:
    """An endpoint while the block lasts."""
    http = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    http.daemon_threads = True
    http.told = server = Server(http.server_address[1])
    threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
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
        with server.lock:
            number = len(server.calls)
            server.calls.append(call)
        try:
            self._act(call, server.script(call, number))
        except OSError:
            self.close_connection = True

    def _act(self, call: Call, act: Act) -> None:
        if isinstance(act, Says):
            self._send(200, act.body(call.is_chat), drip=act.drip)
        elif isinstance(act, Status):
            error = {"message": act.message, "code": act.error_code, "type": "test"}
            self._send(act.code, json.dumps({"error": error}).encode(), act.headers)
        elif isinstance(act, Raw):
            self._send(200, act.content, declared=act.declared)
            self.close_connection = act.declared is not None
        else:
            self.close_connection = True
            time.sleep(act.seconds)
            if not act.seconds:
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.connection.close()

    def _send(
        self, code: int, content: bytes, headers: dict[str, str] | None = None, declared: int | None = None, drip: float = 0.0
    ) -> None:
        self.send_response(code)
        length = len(content) + 20 * bool(drip) if declared is None else declared
        for name, value in {"Content-Type": "application/json", "Content-Length": str(length), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        for _ in range(20 * bool(drip)):
            self.wfile.write(b" ")
            self.wfile.flush()
            time.sleep(drip)
        self.wfile.write(content)
