"""Rewrite rows of another shape as NeMo Gym rows, by the fields that a user names: trace, reward, task."""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from itertools import chain, islice
from pathlib import Path
from typing import Any

from blade.errors import UsageError
from blade.formats import lines
from blade.formats.rollout_steps import NOTHING, parsed, value_at

TARGETS = ("task", "repeat", "reward", "trace", "model", "agent", "prompt")
EXAMPLE = "trace=messages,reward=score,task=id"
_KEYS = {"task": "_ng_task_index", "repeat": "_ng_rollout_index", "reward": "reward"}


def mapping_of(text: str) -> dict[str, str]:
    """`trace=messages,reward=score,task=id` as a mapping; a dotted path names a field inside an object."""
    mapping: dict[str, str] = {}
    for entry in text.split(","):
        target, equals, path = (part.strip() for part in entry.partition("="))
        if target not in TARGETS or not equals or not path:
            hint = f"write {EXAMPLE}; a name is one of {', '.join(TARGETS)}"
            raise UsageError(f"--map cannot read {entry.strip()!r}", hint, "bad-map")
        mapping[target] = path
    return mapping


# Words that such fields are called by; among fields of the right type a name only breaks ties.
_NAMED = {
    "trace": "messages conversation transcript trajectory traj completion output response generation".split(),
    "reward": "reward score correct success passed pass accuracy acc is_correct resolved".split(),
    "task": "task_id example_id question_id instance_id problem_id task example question id index".split(),
    "repeat": "repeat trial attempt sample rollout seed run epoch".split(),
}


def proposal(path: Path) -> str | None:
    """A `--map` that may fit the first rows of a file; None where no field looks like a trace or a reward."""
    rows = _first_rows(path, 200)
    fields = {key: [row.get(key) for row in rows] for key in chain.from_iterable(rows)}
    fits: dict[str, Callable[[Any], bool]] = {
        "trace": _is_trace,
        "reward": lambda value: isinstance(value, bool) or (isinstance(value, int | float) and 0 <= value <= 1),
        "task": lambda value: isinstance(value, str | int) and not isinstance(value, bool),
        "repeat": lambda value: isinstance(value, int) and not isinstance(value, bool),
    }
    fields_of: dict[str, str] = {}
    for target, is_fit in fits.items():
        names = [key for key, values in fields.items() if key not in fields_of.values() and all(map(is_fit, values))]
        ranked = sorted((_rank(target, name), name) for name in names)
        if ranked and (ranked[0][0] < len(_NAMED[target]) or (target == "trace" and len(names) == 1)):
            fields_of[target] = ranked[0][1]
    if not fields_of.keys() & {"trace", "reward"}:
        return None
    named = ",".join(f"{target}={name}" for target, name in fields_of.items())
    return f"these fields look like a rollout: try --map {named}"


def _rank(target: str, name: str) -> int:
    words = _NAMED[target]
    return next((place for place, word in enumerate(words) if word in name.lower()), len(words))


def _is_trace(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) > 20
    is_list = isinstance(value, list) and bool(value)
    return is_list and all(isinstance(turn, dict) and "role" in turn for turn in value)


def mapped_copy(path: Path, mapping: Mapping[str, str], folder: Path) -> Path:
    """A copy of a file whose rows are NeMo Gym's, in a new folder within `folder`; the source is left alone."""
    target = Path(tempfile.mkdtemp(dir=folder)) / path.name  # the rows tell their file; what is compressed is told by its first bytes
    absent, known = list(mapping.values()), set[str]()
    with target.open("xb") as file:
        for number, line in enumerate(_lines(path)):  # once: a stream cannot be read again
            row = parsed(line)[0]
            if row is not None and number < 1000:
                absent, known = [field for field in absent if value_at(row, field) is NOTHING], known | row.keys()
            elif absent and known:
                break
            file.write((line if row is None else _rewritten(row, mapping)) + b"\n")
    if absent and known:
        raise UsageError(f"no row has the field {absent[0]!r}", f"the rows have {', '.join(sorted(known)[:20])}", "bad-map")
    return target


def _lines(path: Path) -> Iterator[bytes]:
    for block in lines.blocks(path):
        yield from (line for line in block.data[: block.size].split(b"\n") if line.strip())


def _first_rows(path: Path, most: int) -> list[dict[str, Any]]:
    return [row for line in islice(_lines(path), most) if (row := parsed(line)[0]) is not None]


def _rewritten(row: Mapping[str, Any], mapping: Mapping[str, str]) -> bytes:
    """The row with its fields where NeMo Gym keeps them."""
    values = {target: value_at(row, path) for target, path in mapping.items()}
    new = dict(row) | {key: values[target] for target, key in _KEYS.items() if target in values}
    new = {key: None if value is NOTHING else value for key, value in new.items()}
    values = {target: value for target, value in values.items() if value is not NOTHING or target == "trace"}
    if isinstance(new.get("reward"), str):
        with contextlib.suppress(ValueError):
            new["reward"] = float(new["reward"])
    if "trace" in values:
        new["response"] = {"output": _items(values["trace"])}
    if "model" in values and isinstance(new.setdefault("response", {}), dict):
        new["response"]["model"] = str(values["model"])
    if "agent" in values:
        new["agent_ref"] = {"name": str(values["agent"])}
    if "prompt" in values:
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
            function = call.get("function") if isinstance(call, dict) else None
            if isinstance(function, dict):
                items.append({"type": "function_call", "call_id": call.get("id"), "name": function.get("name"),
                              "arguments": function.get("arguments")})  # fmt: skip
    return items
