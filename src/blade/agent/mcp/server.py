"""Serve the tools over stdio: nothing on stdout but the protocol, no error that ends the server."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any

import blade
from blade.agent.mcp import tools
from blade.agent.mcp.heard import Heard
from blade.agent.mcp.house import House
from blade.agent.mcp.roots import roots
from blade.errors import EXIT_INTERRUPTED, BladeError, UsageError
from blade.hostile import line, lines

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server
    from mcp_types import CallToolRequestParams, CallToolResult, ListToolsResult, Tool

ERROR = 6_000  # characters of what went wrong


def serve(specs: Sequence[str]) -> None:
    """Answer over stdin and stdout until the client closes them."""
    try:
        import anyio
        import mcp.server.lowlevel  # noqa: F401
    except ImportError as error:
        raise UsageError(
            "the MCP server needs the package mcp",
            "install it: pip install 'blade-diagnostics[mcp]'",
            "mcp-not-installed",
        ) from error
    house = House(roots(specs))
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="blade mcp: %(message)s")
    # a thread waits for the next line of stdin and nothing wakes it: only an exit at once ends in time
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    signal.signal(signal.SIGINT, lambda *_: os._exit(EXIT_INTERRUPTED))
    anyio.run(_served, house)


async def _served(house: House) -> None:
    from mcp.server.stdio import stdio_server

    server = _server(house)
    async with stdio_server() as (reader, writer):
        heard = Heard(reader, writer)
        await server.run(heard, writer, server.create_initialization_options())


def _server(house: House) -> Server[None]:
    import anyio.to_thread
    from mcp.server.lowlevel import Server
    from mcp_types import ListToolsResult

    offered = [_offered(name, tool) for name, tool in tools.TOOLS.items()]

    async def on_list_tools(context: Any, params: Any) -> ListToolsResult:
        return ListToolsResult(tools=offered)

    async def on_call_tool(context: Any, params: CallToolRequestParams) -> CallToolResult:
        # in a thread, so that pings and other calls are answered meanwhile
        return await anyio.to_thread.run_sync(_answered, house, params.name, params.arguments)

    return Server(
        "blade",
        version=blade.__version__,
        title="BLADE",
        instructions=tools.INSTRUCTIONS,
        lifespan=_quiet,
        on_list_tools=on_list_tools,
        on_call_tool=on_call_tool,
    )


@contextlib.asynccontextmanager
async def _quiet(server: Any) -> AsyncIterator[None]:
    """While the protocol has stdout, all else that is printed goes to stderr, also what is flushed last."""
    sys.stdout = sys.stderr
    yield


def _offered(name: str, tool: tools.Tool) -> Tool:
    from mcp_types import Tool, ToolAnnotations

    hints = ToolAnnotations(
        title=tool.title,
        read_only_hint=not tool.writes,
        destructive_hint=False,
        idempotent_hint=True,
        open_world_hint=False,
    )
    return Tool(
        name=name,
        title=tool.title,
        description=tool.description,
        input_schema=tools.schema(tool),
        annotations=hints,
    )


def _answered(house: House, name: str, given: dict[str, Any] | None) -> CallToolResult:
    """What a tool answers, or what went wrong and what to do about it; never a traceback."""
    from mcp_types import CallToolResult, TextContent

    try:
        answer = tools.called(house, name, given)
        said = TextContent(type="text", text=answer.text)
        return CallToolResult(content=[said], structured_content=answer.document)
    except BladeError as error:
        wrong = f"error: {lines(error.message)}\nhint: {lines(error.hint)}\nsee: docs/errors.md#{error.slug}"
    except Exception as error:
        logging.getLogger(__name__).exception("a tool failed")
        wrong = (
            f"error: {type(error).__name__}: {line(str(error), 300)}\n"
            f"hint: this is a fault of BLADE, the server goes on; the log on its stderr says more\n"
            f"see: docs/errors.md#internal-error"
        )
    return CallToolResult(content=[TextContent(type="text", text=wrong[:ERROR])], is_error=True)
