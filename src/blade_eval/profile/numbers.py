"""Turn one result row into its key, its numeric columns, and what is told of it among its repeats."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from blade_eval.profile.reading import Members, members_of

TASK, REPEAT = "_ng_task_index", "_ng_rollout_index"
MASK = "mask_sample"
LIGHT = 8 << 10  # bytes; a longer row is not parsed whole
LONG = frozenset({"response", "responses_create_params"})
FAR = 1 << 62  # beyond, an index is no index

Number = int | float


class Result(NamedTuple):
    """What profiling keeps of a row."""

    task: int
    repeat: int
    agent: str | None
    server: str | None  # `_ng_environment_server`
    masked: bool
    numbers: dict[str, Number]  # top-level numbers, then those of `response.usage`
    info: bytes  # the row's entry of `rollout_infos`
    is_beyond: bool = False  # a number is larger than any float, and read as null


class NoKey(ValueError):
    """The row does not say which task and which repeat it is."""


class _Response(msgspec.Struct, gc=False):
    usage: msgspec.Raw = msgspec.Raw(b"null")


class Agent(msgspec.Struct, gc=False):
    name: str | None = None


_response = msgspec.json.Decoder(_Response).decode
_agent = msgspec.json.Decoder(Agent).decode
_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode
_BEGINS = tuple(b"%c" % byte for byte in b"-0123456789")
_names: dict[bytes, str | None] = {}  # few agents, many rows


def of_line(data: bytes) -> Result | None:
    """A row of few bytes, parsed whole, which takes less time than to step around what is not needed."""
    try:
        row = _decode(data)
    except (msgspec.DecodeError, RecursionError):
        return None
    return of_row(row) if type(row) is dict else None


def of_members(members: Members) -> Result:
    """A row as its file holds it; what is long is not looked into beyond the usage."""
    read = {
        name: number(bytes(raw))
        for name, raw in members.items()
        if name not in LONG and not name.startswith("_") and name != MASK
    }
    reward = members.get("reward")
    usage = _usage(members.get("response"))
    found = _result(
        index(members, TASK),
        index(members, REPEAT),
        agent_name(members.get("agent_ref")),
        _text(members.get("_ng_environment_server")),
        bytes(members.get(MASK, b"")) == b"true",
        _known(read),
        _known({name: number(bytes(raw)) for name, raw in usage.items()}),
        {} if reward is None else {"reward": _told(reward)},
    )
    is_beyond = any(value is None and beyond(bytes(members[name])) for name, value in read.items())
    return found._replace(is_beyond=is_beyond or any(beyond(bytes(raw)) for raw in usage.values()))


def of_row(row: Mapping[str, Any]) -> Result:
    """The same of a row that was parsed already."""
    response = row.get("response")
    usage = response.get("usage") if isinstance(response, dict) else None
    agent = row.get("agent_ref")
    name = agent.get("name") if isinstance(agent, dict) else None
    server = row.get("_ng_environment_server")
    task, repeat = row.get(TASK), row.get(REPEAT)
    if type(task) is not int or type(repeat) is not int or abs(task) >= FAR or abs(repeat) >= FAR:
        raise _no_key(row)
    reward = row.get("reward")
    own = _finite(row)
    own.pop(MASK, None)
    return _result(
        task,
        repeat,
        name if isinstance(name, str) else None,
        server if isinstance(server, str) else None,
        row.get(MASK) is True,
        own,
        _finite(usage) if isinstance(usage, dict) else {},
        {"reward": int(reward) if reward is True or reward is False else reward} if "reward" in row else {},
    )


def _no_key(row: Mapping[str, Any]) -> NoKey:
    for key in (TASK, REPEAT):
        value = row.get(key)
        if key not in row:
            return NoKey(f"it has no {key}")
        if type(value) is not int or abs(value) >= FAR:
            return NoKey(f"{key} is {str(value)[:40]!r}, not a whole number")
    raise AssertionError("a row with both indices")


def _result(
    task: int,
    repeat: int,
    agent: str | None,
    server: str | None,
    masked: bool,
    own: dict[str, Number],
    usage: dict[str, Number],
    reward: dict[str, Any],
) -> Result:
    told = {"rollout_id": f"{task}:{repeat}", TASK: task, REPEAT: repeat, **reward, **usage, **own}
    if not usage.keys().isdisjoint(own):
        told.update(usage)
    try:
        info = _encode(told)
    except OverflowError:  # a whole number of more than 64 bits
        info = _encode(
            {name: float(v) if isinstance(v, int) and abs(v) >= 1 << 63 else v for name, v in told.items()}
        )
    return Result(task, repeat, agent, server, masked, {**own, **usage}, info)


def _finite(values: Mapping[str, Any]) -> dict[str, Number]:
    """The numbers among them whose names do not start with `_`; a bool is 0 or 1."""
    found: dict[str, Number] = {}
    for name, value in values.items():
        kind = type(value)
        if kind is str or kind is dict or name[:1] == "_":
            continue
        if kind is bool:
            found[name] = int(value)
        elif (kind is float or kind is int) and _is_finite(value):
            found[name] = value
    return found


def _is_finite(value: Number) -> bool:
    if -1e308 < value < 1e308:
        return True
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def number(data: bytes) -> Number | None:
    """The number that a JSON value is, a bool being 0 or 1; None for anything else."""
    first = data[:1]
    if first in (b'"', b"[", b"{", b"n"):
        return None
    if first == b"t":
        return 1
    if first == b"f":
        return 0
    if len(data) < 19 and (data.isdigit() or data[1:].isdigit()):
        return int(data)
    value: Number = float(data)
    if not math.isfinite(value):
        return None
    is_whole = not any(mark in data for mark in (b".", b"e", b"E"))
    return int(data) if is_whole else value


def index(members: Members, name: str) -> int:
    """An index of the row."""
    raw = members.get(name)
    if raw is None:
        raise NoKey(f"it has no {name}")
    data = bytes(raw)
    digits = data.removeprefix(b"-")
    if not digits.isdigit() or len(digits) > 18:
        raise NoKey(f"{name} is {data[:40].decode(errors='replace')}, not a whole number")
    return int(data)


def agent_name(raw: msgspec.Raw | None) -> str | None:
    """The name in an `agent_ref`."""
    if raw is None:
        return None
    data = bytes(raw)
    if data not in _names:
        if len(_names) > 10_000:  # a hostile file names an agent a row
            _names.clear()
        try:
            _names[data] = _agent(data).name
        except msgspec.DecodeError:
            _names[data] = None
    return _names[data]


def _text(raw: msgspec.Raw | None) -> str | None:
    if raw is None or bytes(memoryview(raw)[:1]) != b'"':
        return None
    value = _decode(raw)
    return value if isinstance(value, str) else None


def _known(values: Mapping[str, Number | None]) -> dict[str, Number]:
    return {name: value for name, value in values.items() if value is not None}


def beyond(data: bytes) -> bool:
    """Is a JSON value a number that no float can hold."""
    return data[:1] in _BEGINS and number(data) is None


def _usage(raw: msgspec.Raw | None) -> Members:
    if raw is None:
        return {}
    try:
        usage = members_of(_response(raw).usage)
    except (msgspec.DecodeError, RecursionError):
        return {}
    return {name: value for name, value in usage.items() if name[:1] != "_"}


def _told(raw: msgspec.Raw) -> Any:
    """A reward as it is told again, which need not be a number."""
    data = bytes(raw)
    value = number(data)
    return value if value is not None or beyond(data) else _decode(data)
