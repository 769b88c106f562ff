"""List the tools of the server with what each takes, and call one; their words are in `tools.yaml`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from blade.agent.mcp import tool_answers
from blade.agent.mcp.pages import Answer
from blade.agent.mcp.roots import House
from blade.errors import UsageError
from blade.hostile import line

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
        names = (_taken(key, argument) for key, argument in schema(name)["properties"].items())
        hint = f"{name} takes {', '.join(names)}"
        raise UsageError(f"{name}: {line(str(error), 300)}", hint, "usage") from error
    threshold = getattr(question, "pass_threshold", None)
    if threshold is not None and not math.isfinite(threshold):
        raise UsageError(f"{threshold} is no number to pass at", "give a finite number", "bad-threshold")
    return TOOLS[name](house, question)


def _taken(name: str, argument: Mapping[str, Any]) -> str:
    """An argument and the words it may be, where they are few."""
    parts = (argument, *argument.get("anyOf", ()))
    choices = [str(word) for part in parts for word in part.get("enum", ()) if word]
    return f"{name} ({' | '.join(choices)})" if choices else name


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
        schema = {key: _in_one(item, parts) for key, item in value.items() if key != "$defs"}
        choices = schema.get("enum")
        is_word = isinstance(choices, list) and all(isinstance(word, str) for word in choices)
        return {"type": "string", **schema} if is_word else schema
    return [_in_one(item, parts) for item in value] if isinstance(value, list) else value
