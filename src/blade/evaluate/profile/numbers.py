"""Turn one result row into its key, its numeric columns, and what is told of it among its repeats."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from blade.evaluate.profile.reading import Members, members_of

TASK, REPEAT = "_ng_task_index", "_ng_rollout_index"
MASK = "mask_sample"
LONG = frozenset({"response", "responses_create_params"})
_FAR = 1 << 62  # beyond, an index is no index

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


class NoKey(ValueError):
    """The row does not say which task and which repeat it is."""


class _Response(msgspec.Struct, gc=False):
    usage: msgspec.Raw = msgspec.Raw(b"null")


class _Agent(msgspec.Struct, gc=False):
    name: str | None = None


_response = msgspec.json.Decoder(_Response).decode
_agent = msgspec.json.Decoder(_Agent).decode
_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode
_names: dict[bytes, str | None] = {}  # few agents, many rows


def of_members(members: Members) -> Result:
    """A row as its file holds it; what is long is not looked into beyond the usage."""
    own: dict[str, Number] = {}
    for name, raw in members.items():
        if name in LONG or name.startswith("_") or name == MASK:
            continue
        value = number(bytes(raw))
        if value is not None:
            own[name] = value
    reward = members.get("reward")
    return _result(
        index(members, TASK),
        index(members, REPEAT),
        agent_name(members.get("agent_ref")),
        _text(members.get("_ng_environment_server")),
        bytes(members.get(MASK, b"")) == b"true",
        own,
        _usage(members.get("response")),
        {} if reward is None else {"reward": _told(reward)},
    )


def of_row(row: Mapping[str, Any]) -> Result:
    """The same of a row that was parsed already."""
    response = row.get("response")
    usage = response.get("usage") if isinstance(response, Mapping) else None
    agent = row.get("agent_ref")
    name = agent.get("name") if isinstance(agent, Mapping) else None
    server = row.get("_ng_environment_server")
    task, repeat = row.get(TASK), row.get(REPEAT)
    for key, value in ((TASK, task), (REPEAT, repeat)):
        if not isinstance(value, int) or isinstance(value, bool) or abs(value) >= _FAR:
            raise NoKey(f"{key} is {value!r}" if key in row else f"it has no {key}")
    reward = row.get("reward")
    return _result(
        int(task or 0),
        int(repeat or 0),
        name if isinstance(name, str) else None,
        server if isinstance(server, str) else None,
        row.get(MASK) is True,
        _finite({name: value for name, value in row.items() if not name.startswith("_") and name != MASK}),
        _finite(usage) if isinstance(usage, Mapping) else {},
        {"reward": int(reward) if isinstance(reward, bool) else reward} if "reward" in row else {},
    )


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
    told = {"rollout_id": f"{task}:{repeat}", TASK: task, REPEAT: repeat, **reward, **usage}
    told.update((name, value) for name, value in own.items() if name not in told)
    try:
        info = _encode(told)
    except OverflowError:  # a whole number of more than 64 bits
        info = _encode(
            {name: float(v) if isinstance(v, int) and abs(v) >= 1 << 63 else v for name, v in told.items()}
        )
    return Result(task, repeat, agent, server, masked, {**own, **usage}, info)


def _finite(values: Mapping[str, Any]) -> dict[str, Number]:
    """The numbers among them; a bool is 0 or 1."""
    found: dict[str, Number] = {}
    for name, value in values.items():
        if isinstance(value, bool):
            found[name] = int(value)
        elif isinstance(value, int | float) and _is_finite(value):
            found[name] = value
    return found


def _is_finite(value: Number) -> bool:
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


def _usage(raw: msgspec.Raw | None) -> dict[str, Number]:
    if raw is None:
        return {}
    try:
        usage = members_of(_response(raw).usage)
    except (msgspec.DecodeError, RecursionError):
        return {}
    found = {name: number(bytes(value)) for name, value in usage.items()}
    return {name: value for name, value in found.items() if value is not None}


def _told(raw: msgspec.Raw) -> Any:
    """A reward as it is told again, which need not be a number."""
    data = bytes(raw)
    value = number(data)
    return _decode(data) if value is None else value
