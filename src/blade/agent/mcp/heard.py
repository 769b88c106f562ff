"""Turn lines that the protocol cannot read into requests, or into errors that say why not."""

from __future__ import annotations

import json
from typing import Any

from blade import hostile

PARSE_ERROR, INVALID_REQUEST = -32700, -32600  # as JSON-RPC numbers them


class Heard:
    """What comes in, line by line: no line stays without an answer."""

    def __init__(self, reader: Any, writer: Any) -> None:
        self._reader, self._writer = reader, writer

    @property
    def last_context(self) -> Any:
        """In which context the last message was sent; the server asks for it."""
        return getattr(self._reader, "last_context", None)

    async def receive(self) -> Any:
        """The next request; one that cannot be read is answered here."""
        while True:
            item = await self._reader.receive()
            if not isinstance(item, Exception):
                return item
            found = mended(item)
            if not _is_error(found):
                return found
            await self._writer.send(found)

    async def aclose(self) -> None:
        await self._reader.aclose()

    def __aiter__(self) -> Heard:
        return self

    async def __anext__(self) -> Any:
        import anyio

        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Heard:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def mended(error: Exception) -> Any:
    """The message of a line that was refused for halves of characters, each set to \ufffd; else an error.

    Rollouts hold such halves and clients repeat them, but they are no text that JSON may carry.
    """
    import mcp_types
    from mcp.shared.message import SessionMessage
    from pydantic import ValidationError

    line = _line(error)
    if line is None:
        return _refusal(INVALID_REQUEST, "the line is no request of JSON-RPC 2.0")
    try:
        told = _whole(json.loads(line))
    except (ValueError, RecursionError) as wrong:
        return _refusal(PARSE_ERROR, f"the line is no JSON: {hostile.line(str(wrong), 200)}")
    try:
        return SessionMessage(mcp_types.jsonrpc_message_adapter.validate_python(told, by_name=False))
    except ValidationError:
        return _refusal(INVALID_REQUEST, "the line is no request of JSON-RPC 2.0")


def _line(error: Exception) -> str | None:
    """The line that is no JSON, as the error holds it; None where it is JSON of another form."""
    from pydantic import ValidationError

    told = error.errors() if isinstance(error, ValidationError) else []
    given = told[0]["input"] if told and told[0]["type"] == "json_invalid" else None
    return given if isinstance(given, str) else None


def _whole(value: Any) -> Any:
    """JSON values without halves of characters."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_whole(key): _whole(item) for key, item in value.items()}
    return [_whole(item) for item in value] if isinstance(value, list) else value


def _refusal(code: int, why: str) -> Any:
    """The answer to what is no request, which has no number that can be told."""
    from mcp.shared.message import SessionMessage
    from mcp_types import ErrorData, JSONRPCError

    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=None, error=ErrorData(code=code, message=why)))


def _is_error(message: Any) -> bool:
    from mcp_types import JSONRPCError

    return isinstance(message.message, JSONRPCError)
