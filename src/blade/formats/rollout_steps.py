"""Parse one rollout row into its ordered steps as plain data, with the standard library alone."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

Told = dict[str, Any]  # the fields of a `Step`, by name
NOTHING = object()  # unlike None, which is a value of JSON

CALLS = frozenset(
    "function_call tool_call tool_use mcp_call mcp_list_tools mcp_approval_request file_search_call "
    "web_search_call computer_call image_generation_call code_interpreter_call local_shell_call "
    "custom_tool_call".split()
)
_HOSTED = CALLS - set(
    "function_call tool_call tool_use computer_call local_shell_call custom_tool_call".split()
)
_ROLES = {"user": "user", "system": "system", "developer": "system", "tool": "result", "assistant": "message"}


@lru_cache(maxsize=1000)
def kind_of(item_type: str | None, role: str | None) -> str:
    """Our word for an output item: message, user, system, reasoning, call, result or other."""
    if item_type in CALLS:
        return "call"
    if item_type == "reasoning":
        return "reasoning"
    if item_type is not None and (item_type.endswith("_output") or item_type == "tool_result"):
        return "result"
    if item_type not in (None, "message"):
        return "other"
    return _ROLES.get(role or "", "message" if item_type == "message" else "other")


def flat(output: Iterable[Any] | None) -> list[Any]:
    """Output items in order; one environment writes a list of lists, one list per step."""
    return [item for entry in output or () for item in (entry if isinstance(entry, list) else [entry])]


# Where some environments keep the trajectory when `response.output` is empty, in order of preference.
_NESTED = (
    ("result", "messages"),
    ("result", "trajectory"),
    ("delegated_response", "response", "output"),
    ("trajectory",),
    ("verifier_metadata", "osworld_steps"),
    ("subagent_trajectories",),
    ("messages",),
)
NESTED_KEYS = frozenset(path[0] for path in _NESTED)
_LONG = 1000  # characters that cannot be prose if they have no space
_BASE64 = re.compile(rf'"(?:data:[\w/+.-]+;base64,)?[A-Za-z0-9+/_-]{{{_LONG},}}={{0,2}}"')
_THINK = re.compile(r"<think>(.*?)(?:</think>|\Z)", re.DOTALL)


def steps_of(row: Mapping[str, Any]) -> tuple[list[Told], str]:
    """The steps of a row as plain data, and the field they were read from."""
    response = row.get("response")
    output = response.get("output") if isinstance(response, dict) else None
    if isinstance(output, str):
        output = [{"type": "message", "role": "assistant", "content": output}]
    items, source = flat(output if isinstance(output, list) else None), "response.output"
    if not items:
        items, source = _nested(row)
    steps = [step for item in items for step in _of_item(item)]
    pairs = answers_of([(step["kind"], step["call_id"]) for step in steps])
    for index, step in enumerate(steps):
        step["index"] = index
        if step["kind"] == "call" and step["call_id"]:
            step["answered"] = index in pairs
    return steps, source


def answers_of(steps: Sequence[tuple[str, str | None]]) -> dict[int, int]:
    """The step that answers each call, given the kind and the call id of all steps.

    A result answers the first open call of its id. An id with more results than calls is none: some harnesses
    write the id of the last of several calls on all their results, which come in the order of the calls.
    """
    counts = Counter(steps)
    waiting: dict[int, str | None] = {}
    pairs: dict[int, int] = {}
    for index, (kind, call_id) in enumerate(steps):
        if kind == "call":
            waiting[index] = call_id
        elif kind == "result":
            is_loose = counts["result", call_id] > counts["call", call_id] > 0
            call = next((open_ for open_, its in waiting.items() if is_loose or its == call_id), None)
            if call is not None:
                pairs[call] = index
                del waiting[call]
    return pairs


def _told(kind: str, text: str, **others: Any) -> Told:
    return {"index": 0, "kind": kind, "text": text, "call_id": None, **others}


def _nested(row: Mapping[str, Any]) -> tuple[list[Any], str]:
    for path in _NESTED:
        value: Any = row
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        if isinstance(value, dict):  # one trajectory per agent
            value = list(value.values()) if path == ("subagent_trajectories",) else None
        if isinstance(value, list) and value:
            return flat(map(_unfolded, value)), ".".join(path)
    return [], "response.output"


def _unfolded(entry: Any) -> Any:
    """The items of an entry that is itself a trajectory, or the entry."""
    if isinstance(entry, dict) and not {"role", "type"} & entry.keys():
        for key in ("messages", "trajectory", "output", "steps"):
            if isinstance(entry.get(key), list):
                return entry[key]
    return entry


def _of_item(item: Any) -> Iterable[Told]:
    """The step of an output item; a chat message with tool calls is several."""
    if not isinstance(item, dict):
        yield _told("other", text_of(item))
        return
    calls = [call for call in _listed(item.get("tool_calls")) if isinstance(call, dict)]
    kind = kind_of(_str(item.get("type")), _str(item.get("role")))
    if kind == "call":
        yield _call(item)
    elif kind == "result":
        yield from _results(item)
    elif kind == "reasoning":
        parts = [*_listed(item.get("summary")), *_listed(item.get("content"))]
        yield _told("reasoning", "\n".join(filter(None, map(text_of, parts))))
    elif kind == "other":
        yield _told("other", text_of(dict(item)))
    else:
        text, thought = _without_thinking(text_of(item.get("content", item.get("text"))))
        thought = "\n".join(filter(None, (text_of(item.get("reasoning_content")), thought)))
        ids = item.get("generation_token_ids")
        if text or thought or not calls:
            yield _told(kind, text, reasoning=thought, tokens=len(ids) if isinstance(ids, list) else None)
    for call in calls:  # of the model, or of a simulated user: then the model is not to blame for it
        yield {**_call(call), "kind": kind if kind in ("user", "system") else "call"}


def _results(item: dict[str, Any]) -> Iterable[Told]:
    """The result of a call; one message of a chat may carry several."""
    several = [message for message in _listed(item.get("tool_messages")) if isinstance(message, dict)]
    for message in several or [item]:
        call_id = _str(message.get("call_id") or message.get("tool_call_id"))
        by_id = message.get("id") if message.get("role") == "tool" else None  # in chats it may be the id of the call
        text = text_of(message.get("output", message.get("content")))
        yield _told("result", text, call_id=call_id or _str(by_id), failed=_failed(message))


def _call(item: Mapping[str, Any]) -> Told:
    inner = item.get("function")
    function: Mapping[str, Any] = inner if isinstance(inner, dict) else item
    arguments = text_of(function.get("arguments", function.get("input", function.get("action"))))
    name = _str(function.get("name")) or _str(item.get("type"))
    if item.get("type") in _HOSTED:  # its result, if any, stands in the same item
        text = "\n".join(filter(None, (arguments, text_of(item.get("output", item.get("outputs"))))))
        return _told("call", text, tool=name, arguments=arguments, failed=_failed(item))
    call_id = _str(item.get("call_id") or item.get("id"))
    return _told("call", arguments, tool=name, arguments=arguments, call_id=call_id)


def text_of(value: Any) -> str:
    """Text of content in any of its shapes: a string, parts with a text, or JSON for all else."""
    if value is None:
        return ""
    if isinstance(value, str):
        return "[image]" if value.startswith("data:image/") else value
    if isinstance(value, list) and value and all(isinstance(part, dict) and "type" in part for part in value):
        return "\n".join(filter(None, map(_part_text, value)))
    if isinstance(value, dict) and isinstance(value.get("text"), str):
        return str(value["text"])
    if isinstance(value, dict) and ("image" in str(value.get("type")) or "image_url" in value):
        return "[image]"  # a data URL of megabytes says nothing to a reader
    text = _compact(value) if value != [] else ""
    # images and the like inside it are not dumped
    return text if len(text) <= _LONG else _BASE64.sub(lambda hit: f'"[{len(hit[0]) - 2:,} characters of base64]"', text)


def _part_text(part: Mapping[str, Any]) -> str:
    for key in ("text", "refusal", "output"):
        if isinstance(part.get(key), str):
            return str(part[key])
    return text_of(part)


def _without_thinking(text: str) -> tuple[str, str]:
    """Text without its `<think>` spans, and the spans; a lone closing tag ends a span from the start."""
    if "<think>" not in text and "</think>" in text:
        thought, _, rest = text.partition("</think>")
        return rest.strip(), thought.strip()
    if "<think>" not in text:
        return text, ""
    thoughts = "\n".join(match.strip() for match in _THINK.findall(text))
    return _THINK.sub("", text).strip(), thoughts


def _failed(item: Mapping[str, Any]) -> bool | None:
    """Does the item itself say that it failed; most say nothing."""
    for value in (item.get("is_error"), item.get("error")):
        if isinstance(value, bool):
            return value
    return bool(item.get("error")) or item.get("status") in ("failed", "incomplete", "error") or None


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _str(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def parsed(line: bytes) -> tuple[dict[str, Any] | None, str | None]:
    """The object in a line, NaN and Infinity allowed; or the reason why there is none."""
    try:
        row = json.loads(line, parse_int=integer)
    except (ValueError, RecursionError) as error:
        text = str(error) if isinstance(error, ValueError) else "too deeply nested"
        return None, f"not JSON: {text}"
    if not isinstance(row, dict):
        word = {list: "array", str: "string", bool: "boolean", type(None): "null"}.get(type(row), "number")
        return None, f"a JSON {word}, not an object"
    return row, None


def integer(digits: str) -> int | str:
    """A whole number; as text if it is longer than the interpreter turns into one."""
    return int(digits) if len(digits) <= 4000 else digits


def value_at(row: Mapping[str, Any], path: str) -> Any:
    """The value at a dotted path, NOTHING if there is none; a key that holds dots itself is tried first."""
    if path in row:
        return row[path]
    head, _, rest = path.partition(".")
    inner = row.get(head)
    return value_at(inner, rest) if rest and isinstance(inner, dict) else NOTHING


def quotable(value: Any) -> str:
    """A value as it is quoted: a string as it is, all else as compact JSON."""
    return value if isinstance(value, str) else _compact(value)
