"""List the tools and serve them over stdio: nothing on stdout but the protocol, no error that ends the server."""

from __future__ import annotations

import json
import logging
import math
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import Meta

import blade
from blade.agent.mcp import tool_answers
from blade.agent.mcp.pages import Answer
from blade.agent.mcp.roots import House, roots
from blade.errors import EXIT_INTERRUPTED, BladeError, UsageError, with_pages
from blade.hostile import line, under

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server
    from mcp_types import CallToolRequestParams, CallToolResult, ListToolsResult, Tool

PARSE_ERROR, INVALID_REQUEST = -32700, -32600  # as JSON-RPC numbers them
ERROR = 6_000  # characters of what went wrong
TOOLS: dict[str, Callable[[House, Any], Answer]] = {
    "blade_list_runs": tool_answers.list_runs,
    "blade_summary": tool_answers.summary,
    "blade_query": tool_answers.query,
    "blade_fields": tool_answers.fields,
    "blade_tasks": tool_answers.tasks,
    "blade_queue": tool_answers.queue,
    "blade_dossier": tool_answers.dossier,
    "blade_show": tool_answers.show,
    "blade_groups": tool_answers.groups,
    "blade_health": tool_answers.health,
    "blade_compare": tool_answers.compare,
    "blade_check_claims": tool_answers.check_claims,
    "blade_record_judgement": tool_answers.record,
    "blade_judgements": tool_answers.judgements,
}
TYPES: dict[str, Any] = {"text": str, "whole": int, "number": float, "flag": bool, "texts": list[str]}


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

    offered = [*map(_offered, TOOLS)]

    async def on_list_tools(context: Any, params: Any) -> ListToolsResult:
        return ListToolsResult(tools=offered)

    async def on_call_tool(context: Any, params: CallToolRequestParams) -> CallToolResult:
        # in a thread, so that pings and other calls are answered meanwhile
        return await anyio.to_thread.run_sync(_answered, house, params.name, params.arguments)

    return Server(
        "blade", version=blade.__version__, title="BLADE", instructions=words()["instructions"],
        on_list_tools=on_list_tools, on_call_tool=on_call_tool,
    )  # fmt: skip


def _offered(name: str) -> Tool:
    from mcp_types import Tool, ToolAnnotations

    tool = words()["tools"][name]
    title, description, writes = tool["title"], tool["description"], "writes" in tool
    hints = ToolAnnotations(
        title=title, read_only_hint=not writes, destructive_hint=False, idempotent_hint=True,
        open_world_hint=False,
    )  # fmt: skip
    return Tool(name=name, title=title, description=description, input_schema=schema(name), annotations=hints)


def _answered(house: House, name: str, arguments: dict[str, Any] | None) -> CallToolResult:
    """What a tool answers, or what went wrong and what to do about it; never a traceback."""
    from mcp_types import CallToolResult, TextContent

    try:
        answer = called(house, name, arguments)
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


# -- the tools: what each takes, in the words of `tools.yaml` ------------------------------------------


@cache
def words() -> dict[str, Any]:
    """What the server says of itself and of its tools."""
    import yaml

    return dict(yaml.safe_load(Path(__file__).with_name("tools.yaml").read_text(encoding="utf-8")))


@cache
def struct_of(name: str) -> type[msgspec.Struct]:
    """What a tool takes."""
    rows = words()["tools"][name]["takes"].split()
    return _struct(TOOLS[name].__name__, {row: words()["arguments"][row] for row in rows})


def _struct(name: str, rows: Mapping[str, Mapping[str, Any]], **namespace: str) -> type[msgspec.Struct]:
    fields = [(row.partition(".")[0], *_field(**argument)) for row, argument in rows.items()]
    return msgspec.defstruct(
        name, fields, frozen=True, forbid_unknown_fields=True, kw_only=True, namespace=namespace
    )


def _field(type: str | list[str], description: str, optional: bool = False, **bounds: Any) -> tuple[Any, ...]:
    """The type of an argument, and its default where it need not be given."""
    default = (bounds.pop("default"),) if "default" in bounds else (None,) if optional else ()
    kind: Any = Literal[tuple(type)] if isinstance(type, list) else TYPES.get(type)
    if type == "proposals":
        proposal = _struct("Proposal", words()["proposal"], __doc__="One judgement to be verified.")
        kind = list[proposal]  # type: ignore[valid-type]
    kind = Annotated[kind, Meta(**bounds)] if bounds else kind
    return Annotated[kind | None if optional else kind, Meta(description=description)], *default


def called(house: House, name: str, arguments: Mapping[str, Any] | None) -> Answer:
    """What a tool answers; a BladeError says what to do otherwise."""
    if name not in TOOLS:
        raise UsageError(f"there is no tool {line(name, 80)}", f"the tools are {', '.join(TOOLS)}", "usage")
    try:
        question = msgspec.convert(dict(arguments or {}), struct_of(name), strict=False)
    except msgspec.ValidationError as error:
        names = []
        for key, argument in schema(name)["properties"].items():
            # with the words it may be, where they are few
            parts = (argument, *argument.get("anyOf", ()))
            choices = [str(word) for part in parts for word in part.get("enum", ()) if word]
            names.append(f"{key} ({' | '.join(choices)})" if choices else key)
        hint = f"{name} takes {', '.join(names)}"
        raise UsageError(f"{name}: {line(str(error), 300)}", hint, "usage") from error
    threshold = getattr(question, "pass_threshold", None)
    if threshold is not None and not math.isfinite(threshold):
        raise UsageError(f"{threshold} is no number to pass at", "give a finite number", "bad-threshold")
    return TOOLS[name](house, question)


def schema(name: str) -> dict[str, Any]:
    """The JSON Schema of what a tool takes, in one piece."""
    whole = msgspec.json.schema(struct_of(name))
    parts: dict[str, Any] = _in_one(whole, whole.get("$defs", {}))
    wanted = ("type", "properties", "required", "additionalProperties")
    return {key: value for key, value in parts.items() if key in wanted}


def _in_one(value: Any, parts: Mapping[str, Any]) -> Any:
    """A schema with its references replaced by what they refer to: not every client follows them."""
    if isinstance(value, dict):
        if "$ref" in value:
            return _in_one(parts[value["$ref"].rpartition("/")[2]], parts)
        whole = {key: _in_one(item, parts) for key, item in value.items() if key != "$defs"}
        choices = whole.get("enum")
        is_word = isinstance(choices, list) and all(isinstance(word, str) for word in choices)
        return {"type": "string", **whole} if is_word else whole
    return [_in_one(item, parts) for item in value] if isinstance(value, list) else value
