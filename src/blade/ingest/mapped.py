"""Rewrite rows of another shape as NeMo Gym rows, by the fields that a user names: trace, reward, task."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from blade.errors import UsageError
from blade.ingest import lines
from blade.ingest.items import NOTHING, parsed, value_at

TARGETS = ("task", "repeat", "reward", "trace", "model", "agent", "prompt")
EXAMPLE = "trace=messages,reward=score,task=id"
_KEYS = {"task": "_ng_task_index", "repeat": "_ng_rollout_index", "reward": "reward"}


def mapping_of(text: str) -> dict[str, str]:
    """`trace=messages,reward=score,task=id` as a mapping; a dotted path names a field inside an object."""
    mapping: dict[str, str] = {}
    for entry in text.split(","):
        target, equals, path = (part.strip() for part in entry.partition("="))
        if target not in TARGETS or not equals or not path:
            raise UsageError(
                f"--map cannot read {entry.strip()!r}",
                f"write {EXAMPLE}; a name is one of {', '.join(TARGETS)}",
                "bad-map",
            )
        mapping[target] = path
    if "reward" not in mapping:
        raise UsageError("--map names no reward", "add reward=FIELD, such as reward=score", "bad-map")
    return mapping


def mapped_copy(path: Path, mapping: Mapping[str, str], folder: Path) -> Path:
    """A copy of a file in `folder` whose rows are NeMo Gym's; the source is left alone."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    _refuse_unknown(path, mapping)
    target = folder / path.name  # the rows tell their file; what is compressed is told by its first bytes
    handle, name = tempfile.mkstemp(dir=folder, prefix="mapped-")
    with os.fdopen(handle, "wb") as file:
        for line in _lines(path):
            file.write(_rewritten(line, mapping) + b"\n")
    os.replace(name, target)
    return target


def _lines(path: Path) -> Iterator[bytes]:
    size = path.stat().st_size
    blocks = lines.stream_blocks(path) if lines.is_stream(path) else lines.plain_blocks(path, 0, size)
    for block in blocks:
        yield from (line for line in block.data[: block.size].split(b"\n") if line.strip())


def _refuse_unknown(path: Path, mapping: Mapping[str, str]) -> None:
    """Refuse a field that none of the first rows has."""
    rows = [row for line in islice(_lines(path), 1000) if (row := parsed(line)[0]) is not None]
    for field in mapping.values() if rows else ():
        if all(value_at(row, field) is NOTHING for row in rows):
            known = ", ".join(sorted({key for row in rows for key in row})[:20])
            raise UsageError(f"no row has the field {field!r}", f"the rows have {known}", "bad-map")


def _rewritten(line: bytes, mapping: Mapping[str, str]) -> bytes:
    """The line with its fields where NeMo Gym keeps them; a line that is no row stays as it is."""
    row = parsed(line)[0]
    if row is None:
        return line
    values = {target: value_at(row, path) for target, path in mapping.items()}
    new: dict[str, Any] = dict(row)
    for target, key in _KEYS.items():
        if target in values:
            new[key] = None if values[target] is NOTHING else values[target]
    if isinstance(new.get("reward"), str):
        new["reward"] = _number(new["reward"])
    if "trace" in values:
        new["response"] = {"output": _items(values["trace"])}
    if values.get("model", NOTHING) is not NOTHING:
        new.setdefault("response", {})
        if isinstance(new["response"], dict):
            new["response"]["model"] = str(values["model"])
    if values.get("agent", NOTHING) is not NOTHING:
        new["agent_ref"] = {"name": str(values["agent"])}
    if values.get("prompt", NOTHING) is not NOTHING:
        new["responses_create_params"] = {"input": values["prompt"]}
    return json.dumps(new, ensure_ascii=False).encode("utf-8", "surrogatepass")


def _items(trace: Any) -> list[Any]:
    """A trace as output items: a text is one message, and calls inside a chat message stand on their own."""
    if isinstance(trace, str):
        trace = [{"role": "assistant", "content": trace}]
    items: list[Any] = []
    for turn in trace if isinstance(trace, list) else []:
        if not isinstance(turn, dict):
            items.append(turn)
            continue
        calls = turn.get("tool_calls")
        bare = {key: value for key, value in turn.items() if key != "tool_calls"}
        if bare.get("role") == "tool":
            items.append({"type": "function_call_output", "call_id": bare.get("tool_call_id"),
                          "output": bare.get("content")})  # fmt: skip
        elif bare.get("content") or not calls:
            items.append({"type": "message", **bare} if "role" in bare else bare)
        for call in calls if isinstance(calls, list) else []:
            told = call.get("function") if isinstance(call, dict) else None
            if isinstance(told, dict):
                items.append({"type": "function_call", "call_id": call.get("id"), "name": told.get("name"),
                              "arguments": told.get("arguments")})  # fmt: skip
    return items


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text
