"""Serve the tools over stdio: nothing on stdout but the protocol, no error that ends the server."""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import blade
from blade.agent.mcp import tool_table
from blade.agent.mcp.roots import House, roots
from blade.errors import EXIT_INTERRUPTED, BladeError, UsageError, with_pages
from blade.hostile import line, under

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server
    from mcp_types import CallToolRequestParams, CallToolResult, ListToolsResult, Tool

PARSE_ERROR, INVALID_REQUEST = -32700, -32600  # as JSON-RPC numbers them
ERROR = 6_000  # characters of what went wrong


def serve(specs: Sequence[str]) -> None:
    """Answer over stdin and stdout until the client closes them."""
    try:
        import anyio
        import mcp.server.lowlevel  # noqa: F401
    except ImportError as error:
        hint = "install it: pip install 'blade-diagnostics[mcp]'"
        raise UsageError("the MCP server needs the package mcp", hint, "mcp-not-installed") from error
    house = House(roots(specs))
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="blade mcp: %(message)s")
    # a thread waits for the next line of stdin and nothing wakes it: only an exit at once ends in time
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    signal.signal(signal.SIGINT, lambda *_: os._exit(EXIT_INTERRUPTED))
    anyio.run(_served, house)


async def _served(house: House) -> None:
    import anyio
    from mcp.server.stdio import stdio_server

    server = _server(house)
    async with stdio_server() as (reader, writer), anyio.create_task_group() as group:
        sys.stdout = sys.stderr  # the protocol has stdout: all else is printed there, what is flushed last too
        requests, waiting = anyio.create_memory_object_stream[Any]()
        group.start_soon(_read, reader, requests, writer)
        await server.run(waiting, writer, server.create_initialization_options())


async def _read(reader: Any, requests: Any, writer: Any) -> None:
    """Pass the lines on that hold a request, and answer the others here: no line stays without an answer."""
    from mcp_types import JSONRPCError

    async with requests:
        async for item in reader:
            request = mended(item) if isinstance(item, Exception) else item
            is_refused = isinstance(item, Exception) and isinstance(request.message, JSONRPCError)
            await (writer if is_refused else requests).send(request)


def _server(house: House) -> Server[Any]:
    import anyio.to_thread
    from mcp.server.lowlevel import Server
    from mcp_types import ListToolsResult

    offered = [*map(_offered, tool_table.TOOLS)]

    async def on_list_tools(context: Any, params: Any) -> ListToolsResult:
        return ListToolsResult(tools=offered)

    async def on_call_tool(context: Any, params: CallToolRequestParams) -> CallToolResult:
        # in a thread, so that pings and other calls are answered meanwhile
        return await anyio.to_thread.run_sync(_answered, house, params.name, params.arguments)

    return Server(
        "blade", version=blade.__version__, title="BLADE", instructions=tool_table.words()["instructions"],
        on_list_tools=on_list_tools, on_call_tool=on_call_tool,
    )  # fmt: skip


def _offered(name: str) -> Tool:
    from mcp_types import Tool, ToolAnnotations

    words = tool_table.words()["tools"][name]
    title, description, writes = words["title"], words["description"], "writes" in words
    hints = ToolAnnotations(
        title=title, read_only_hint=not writes, destructive_hint=False, idempotent_hint=True,
        open_world_hint=False,
    )  # fmt: skip
    schema = tool_table.schema(name)
    return Tool(name=name, title=title, description=description, input_schema=schema, annotations=hints)


def _answered(house: House, name: str, arguments: dict[str, Any] | None) -> CallToolResult:
    """What a tool answers, or what went wrong and what to do about it; never a traceback."""
    from mcp_types import CallToolResult, TextContent

    try:
        answer = tool_table.called(house, name, arguments)
        content = TextContent(type="text", text=answer.text)
        return CallToolResult(content=[content], structured_content=answer.document)
    except BladeError as error:
        wrong = f"{under('error: ', error.message)}\n{under('hint: ', error.hint)}\nsee: {error.see}"
    except Exception as error:
        logging.getLogger(__name__).exception("a tool failed")
        wrong = (
            f"error: {type(error).__name__}: {line(str(error), 300)}\n"
            f"hint: this is a fault of BLADE, the server goes on; the log on its stderr says more\n"
            f"see: {with_pages('docs/errors.md#internal-error')}"
        )
    return CallToolResult(content=[TextContent(type="text", text=wrong[:ERROR])], is_error=True)


# -- lines that the protocol cannot read ------------------------------------------------------------


def mended(error: Exception) -> Any:
    """The message of a line that was refused for halves of characters, each set to \ufffd; else an error.

    Rollouts hold such halves and clients repeat them, but they are no text that JSON may carry.
    """
    import mcp_types
    from mcp.shared.message import SessionMessage
    from pydantic import ValidationError

    errors = error.errors() if isinstance(error, ValidationError) else []
    # JSON of another form has no line here
    text = errors[0]["input"] if errors and errors[0]["type"] == "json_invalid" else None
    if not isinstance(text, str):
        return _refusal(INVALID_REQUEST, "the line is no request of JSON-RPC 2.0")
    try:
        request = _whole(json.loads(text))
        return SessionMessage(mcp_types.jsonrpc_message_adapter.validate_python(request, by_name=False))
    except ValidationError:  # which is a ValueError, too
        return _refusal(INVALID_REQUEST, "the line is no request of JSON-RPC 2.0")
    except (ValueError, RecursionError) as wrong:
        return _refusal(PARSE_ERROR, f"the line is no JSON: {line(str(wrong), 200)}")


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
