"""Answer every request with the same response, so fast that this server is not the bottleneck."""

from __future__ import annotations

import asyncio
import json

ITEM = {
    "id": "m", "type": "message", "role": "assistant", "status": "completed",
    "content": [{"type": "output_text", "text": "It is one more. Answer: B", "annotations": []}],
}  # fmt: skip
RESPONSE = {
    "id": "r", "object": "response", "created_at": 0.0, "model": "m", "status": "completed", "output": [ITEM],
    "parallel_tool_calls": True, "tool_choice": "auto", "tools": [],
    "usage": {"input_tokens": 40, "output_tokens": 9, "total_tokens": 49},
}  # fmt: skip
BODY = json.dumps(RESPONSE).encode()
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (
    len(BODY),
    BODY,
)
BACKLOG = 4096


class Canned(asyncio.Protocol):
    """Just enough of HTTP to know where a request ends."""

    def __init__(self) -> None:
        self._held = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._held += data
        while True:
            head, end, rest = self._held.partition(b"\r\n\r\n")
            if not end:
                return
            length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0] or 0)
            if len(rest) < length:
                return
            self._held = rest[length:]
            if self._transport is not None:
                self._transport.write(ANSWER)


async def main() -> None:
    """Serve until terminated; the first line of output is the base URL."""
    server = await asyncio.get_running_loop().create_server(Canned, "127.0.0.1", 0, backlog=BACKLOG)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
