"""Decode rollout rows into typed structs; read an odd line as far as it can be read, or say why it cannot."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

import msgspec

from blade.formats.field_columns import Scalar, Shape, can_be_column, rank
from blade.formats.rollout_steps import flat, integer, parsed

Number = float | None  # takes whole numbers too, and refuses those beyond a double

# Attachments of any size that no column needs.
UNREAD = ("ng_model_call_capture", "ng_trajectory", "ng_agent_observations")


class Params(msgspec.Struct, gc=False):
    input: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    model: str | None = None
    temperature: Number = None
    top_p: Number = None
    max_output_tokens: Number = None


class Item(msgspec.Struct, gc=False):
    type: str | None = None
    role: str | None = None
    name: str | None = None  # of a call
    content: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    arguments: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    tool_calls: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class Incomplete(msgspec.Struct, gc=False):
    reason: str | None = None


class Details(msgspec.Struct, gc=False):
    reasoning_tokens: Number = None
    cached_tokens: Number = None


class Usage(msgspec.Struct, gc=False):
    input_tokens: Number = None
    output_tokens: Number = None
    total_tokens: Number = None
    prompt_tokens: Number = None  # chat-style names of the same three
    completion_tokens: Number = None
    cost: Number = None
    output_tokens_details: Details | None = None
    completion_tokens_details: Details | None = None


class Response(msgspec.Struct, gc=False):  # `usage` is added with the keys that rows show
    output: list[Item | list[Item]] | None = None
    model: str | None = None
    error: Any = None
    incomplete_details: Incomplete | None = None


class WholeResponse(Response, gc=False):
    usage: Usage | None = None


class Agent(msgspec.Struct, gc=False):
    name: str | None = None


class Skills(msgspec.Struct, gc=False):
    hash: str | None = None


# The framework's own keys and what they hold, under our names for them; everything else is a field.
_OWN: dict[str, tuple[str, Any]] = {
    "params": ("responses_create_params", Params | None),
    "response": ("response", WholeResponse | None),
    "reward": ("reward", Scalar | msgspec.UnsetType),
    "task": ("_ng_task_index", int | float | str | None),
    "repeat": ("_ng_rollout_index", int | float | str | None),
    "attempt": ("_ng_attempt_index", int | float | None),
    "agent": ("agent_ref", Agent | None),
    "skills": ("skills_ref", Skills | None),
    "mask": ("mask_sample", Scalar),
    "failure_class": ("_ng_failure_class", str | None),
}
KNOWN = {name: key for name, (key, _) in _OWN.items()}
_TOKENS = ("input_tokens", "output_tokens", "total_tokens")


# The known objects that may hold further scalars, and where each stands in a row.
INNER: dict[str, tuple[type[msgspec.Struct], str]] = {
    "params": (Params, "responses_create_params"),
    "response": (Response, "response"),
    "usage": (Usage, "response.usage"),
    "agent": (Agent, "agent_ref"),
    "skills": (Skills, "skills_ref"),
}


class RowDecoder:
    """Decodes rows whose other top-level keys are `fields`: True for scalars, False for raw JSON."""

    def __init__(self, fields: Mapping[str, bool], inner: Mapping[str, Shape]) -> None:
        usage = inner["usage"].type | None
        known = {name: shape.type for name, shape in inner.items() if name != "response"}
        known["response"] = inner["response"].struct(("usage", usage, None))
        self.empty = {name: struct() for name, struct in known.items()}
        columns: list[tuple[str, Any, Any]] = [
            (name, known[name] | None if name in known else kind, msgspec.UNSET if name == "reward" else None)
            for name, (_, kind) in _OWN.items()
        ]
        others = [(key, Scalar if is_scalar else msgspec.Raw) for key, is_scalar in fields.items()]
        others += [(key, msgspec.Raw) for key in UNREAD]
        columns += [(f"f{number}", kind | msgspec.UnsetType, msgspec.UNSET) for number, (_, kind) in enumerate(others)]
        rename = KNOWN | {f"f{number}": key for number, (key, _) in enumerate(others)}
        # refuses rows with a key it does not know, which a struct would drop in silence
        row = msgspec.defstruct("Row", columns, rename=rename, forbid_unknown_fields=True, gc=False)
        decoder = msgspec.json.Decoder(row)
        self.decode, self.decode_lines = decoder.decode, decoder.decode_lines


def filled(values: tuple[Any, ...], default: msgspec.Struct) -> tuple[Any, ...]:
    """`values` with `default` in the place of None."""
    return tuple([default if value is None else value for value in values]) if None in values else values


def usage_columns(
    counts_of: Mapping[str, tuple[Any, ...]], usage: Sequence[Usage]
) -> Iterator[tuple[str, tuple[Number, ...]]]:
    """Token counts and cost, None where not reported; zero in and zero out mean not reported."""
    counts = [counts_of[name] for name in _TOKENS]
    if not all(map(all, counts)):
        counts = list(zip(*map(_reconciled, usage), strict=True))
    yield from zip(_TOKENS, counts, strict=True)
    details = counts_of["output_tokens_details"]
    if not any(details):
        details = counts_of["completion_tokens_details"]
    yield "reasoning_tokens", tuple([entry and entry.reasoning_tokens for entry in details])
    yield "cost_usd", counts_of["cost"]


def _reconciled(entry: Usage) -> tuple[Number, Number, Number]:
    """Tokens in, out and in all, whichever names they go by."""
    came_in = entry.input_tokens if entry.input_tokens is not None else entry.prompt_tokens
    went_out = entry.output_tokens if entry.output_tokens is not None else entry.completion_tokens
    if not came_in and not went_out:
        return None, None, None
    return came_in, went_out, entry.total_tokens or (came_in or 0) + (went_out or 0)


MAX_DEPTH = 512
MAX_NODES = 3_000_000  # lists and objects of a line: each takes some hundred bytes of memory, and as little as two of the line
MAX_FIELDS = 512  # further keys of a row are left to those who open it

# possessive, or a string of a million escapes would cost gigabytes of places to come back to
_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_STRINGS = re.compile(_STRING, re.DOTALL)
_NOT_FINITE = re.compile(_STRING + rb"|-?Infinity|NaN", re.DOTALL)
_ESCAPES = re.compile(  # a surrogate pair, half of one, or any other
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\.",
    re.DOTALL,
)
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]")

Members = Mapping[str, msgspec.Raw]
_members = msgspec.json.Decoder(dict[str, msgspec.Raw])


def is_utf8(data: bytes) -> bool:
    """Is it valid UTF-8."""
    if data.isascii():
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def refusal(line: bytes) -> str | None:
    """Why a line is not even tried, if so."""
    if line[:2] in (b"\xff\xfe", b"\xfe\xff") or line[1:2] == b"\x00":
        return "UTF-16 text, not UTF-8"
    if _CONTROL.search(line):
        return "raw control characters"
    if not is_utf8(line):
        return "not valid UTF-8"
    if has_too_many_nodes(line):
        return f"more than {MAX_NODES:,} lists and objects"
    return f"nested deeper than {MAX_DEPTH} levels" if is_too_deep(line) else None


def has_too_many_nodes(line: bytes) -> bool:
    """Does it hold more lists and objects than there is memory for."""
    return len(line) > 2 * MAX_NODES and line.count(b"[") + line.count(b"{") > MAX_NODES


def is_too_deep(line: bytes) -> bool:
    """Is it nested deeper than we follow."""
    if line.count(b"[") + line.count(b"{") <= MAX_DEPTH:
        return False
    depth = 0
    for byte in _STRINGS.sub(b"", line).translate(None, _NOT_BRACKETS):
        depth += 1 if byte in b"[{" else -1
        if depth > MAX_DEPTH:
            return True
    return False


def members(line: bytes) -> tuple[Members | None, str | None]:
    """The keys of the object in a line, each with its JSON as it stands; or the reason why there is none."""
    for strict in (bytes, _strict):
        try:
            return _members.decode(strict(line)), None
        except (msgspec.DecodeError, RecursionError):
            pass
    return None, parsed(line)[1] or "not JSON"


def _strict(line: bytes) -> bytes:
    """The line with null for NaN and the infinities, and U+FFFD for halves of a surrogate pair."""
    if b"NaN" in line or b"Infinity" in line:
        line = _NOT_FINITE.sub(lambda hit: hit[0] if hit[0].startswith(b'"') else b"null", line)
    if b"\\u" in line:
        line = _ESCAPES.sub(lambda hit: rb"\ufffd" if hit[1] else hit[0], line)
    return line


def learn(fields: dict[str, bool], row: Members) -> bool:
    """Make room in `fields` for the keys of `row` and for values of a kind not met before."""
    known = {*KNOWN.values(), *UNREAD}
    before = dict(fields)
    for key, value in row.items():
        if key in known or not can_be_column(key):
            continue
        if key not in fields and len(fields) >= MAX_FIELDS:
            last = max(fields, key=rank)  # the first in rank stay, so that the order of the rows does not matter
            if rank(key) > rank(last):
                continue
            del fields[last]
        is_scalar = bytes(memoryview(value)[:1]) not in (b"[", b"{")
        fields[key] = fields.get(key, True) and is_scalar
    return before != fields


def learn_inner(inner: Mapping[str, Shape], row: Members) -> bool:
    """The same for the keys of the known objects inside a row."""
    has_changed = False
    for name, (struct, path) in INNER.items():
        value = _object_at(row, path)
        if value is None:
            continue
        known = {field.encode_name for field in msgspec.structs.fields(struct)}
        known |= {"usage"} if name == "response" else set()
        has_changed |= inner[name].learn((key, member) for key, member in value.items() if key not in known)
    return has_changed


def _object_at(row: Members, path: str) -> dict[str, Any] | None:
    """The object at a path, its members decoded but for those that may be long."""
    value: Any = row
    for key in path.split("."):
        raw = value.get(key) if value is not None else None
        try:
            value = None if raw is None else _members.decode(raw)
        except msgspec.DecodeError:
            return None
    return None if value is None else {key: _outlined(raw) for key, raw in value.items()}


def _outlined(raw: msgspec.Raw) -> Any:
    """A member as far as its shape goes: a list stands for any list."""
    if memoryview(raw)[0] == ord("["):
        return []
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return []  # left as it stands


def coerced(row: Members, fields: dict[str, bool]) -> bytes:
    """The row as strict JSON with only what our structs can take; what fits stands as it stood."""
    values: dict[str, bytes] = {}
    for name, (key, kind) in _OWN.items():
        value = bytes(row.get(key, b""))
        if name == "agent" and value.startswith(b'"'):
            values[key] = b'{"name":' + value + b"}"
        elif value and (fitting := _fitting(value, kind)) is not None:
            values[key] = fitting
        elif value and name == "reward":
            values[key] = b'""'  # any text marks a reward that is no number
    for key, is_scalar in fields.items():
        if key in row:
            value = bytes(row[key])
            values[key] = value if not is_scalar or _fits(value, Scalar) else b"null"
    return _object(values)


def _fitting(value: bytes, kind: Any) -> bytes | None:
    """`value` if it is of `kind`, the known members that fit of an object, else None."""
    kinds = (option for option in get_args(kind) if isinstance(option, type) and issubclass(option, msgspec.Struct))
    struct = next(kinds, None)
    if struct is None or not value.startswith(b"{"):
        return value if _fits(value, kind) else None
    known = _members.decode(value)
    values: dict[str, bytes] = {}
    for field in msgspec.structs.fields(struct):
        if field.name not in known:
            continue
        inner = _fitting(bytes(known[field.name]), field.type)
        if inner is None and issubclass(struct, Response) and field.name == "output":
            inner = _outline(bytes(known[field.name]))
        if inner is not None:
            values[field.name] = inner
    return _object(values)


def _outline(output: bytes) -> bytes | None:
    """What the items of an odd output are, in the words of ordinary ones; None if it is no output."""
    value = json.loads(output, parse_int=integer)
    if isinstance(value, str):
        value = [{"type": "message", "role": "assistant"}]
    if not isinstance(value, list):
        return None
    items = [item if isinstance(item, dict) else {"type": "other"} for item in flat(value)]
    words = ("type", "role")
    return msgspec.json.encode([{key: item[key] for key in words if isinstance(item.get(key), str)} for item in items])


def _fits(value: bytes, kind: Any) -> bool:
    try:
        msgspec.json.decode(value, type=kind)
    except (msgspec.MsgspecError, RecursionError):
        return False
    return True


def _object(members: Mapping[str, bytes]) -> bytes:
    return b"{" + b",".join(b'"%b":%b' % (key.encode(), value) for key, value in members.items()) + b"}"
