"""Small runs as files: rows as Gym writes them, and the sidecars beside them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import zstandard

Row = dict[str, Any]
Line = Mapping[str, Any] | bytes | str  # a row, or a line as it shall stand in the file


class _Drop:
    """A value that removes its key; its name is the same in every process that collects tests."""

    def __repr__(self) -> str:
        return "DROP"


DROP = _Drop()


def make_message(text: str, role: str = "assistant") -> Row:
    """A message of the model, or of someone else inside its output."""
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "id": "msg_1", "role": role, "status": "completed", "content": content}


def make_call(call_id: str, name: str = "look", arguments: str = "{}") -> Row:
    """A function call of the model."""
    return {"type": "function_call", "id": "fc_1", "call_id": call_id, "name": name, "arguments": arguments}


def make_result(call_id: str, output: str) -> Row:
    """What a function call returned."""
    return {"type": "function_call_output", "call_id": call_id, "output": output, "id": None, "status": None}


def make_response(output: Any = None, **changed: Any) -> Row:
    """A Responses object; one message unless told otherwise."""
    usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
    told = {
        "id": "resp_1",
        "model": "sim-model",
        "object": "response",
        "output": [make_message("the answer")] if output is None else output,
        "error": None,
        "incomplete_details": None,
        "usage": usage,
    }
    return {key: value for key, value in {**told, **changed}.items() if value is not DROP}


def make_row(task: Any = 0, repeat: Any = 0, reward: Any = 1.0, /, **changed: Any) -> Row:
    """A row of the main file; `DROP` as a value takes the key away."""
    row = {
        "responses_create_params": {"input": [{"role": "user", "content": f"question {task}"}]},
        "response": make_response(),
        "reward": reward,
        "question": f"question {task}",
        "_ng_task_index": task,
        "_ng_rollout_index": repeat,
        "agent_ref": {"type": "responses_api_agents", "name": "sim_agent"},
    }
    return {key: value for key, value in {**row, **changed}.items() if value is not DROP}


def make_rows(rewards: Mapping[Any, Sequence[Any]], **changed: Any) -> list[Row]:
    """Rows from the rewards of each task."""
    return [make_row(task, at, value, **changed) for task, values in rewards.items() for at, value in enumerate(values)]


def make_input(row: Row) -> Row:
    """The materialised input of a row."""
    return {key: value for key, value in row.items() if key not in ("response", "reward")}


def encode(line: Line) -> bytes:
    """A line of a file without its newline; strings and bytes stand as they are."""
    if isinstance(line, bytes):
        return line
    if isinstance(line, str):
        return line.encode()
    return json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode()


def make_run(
    folder: Path,
    lines: Iterable[Line],
    *,
    name: str = "rollouts",
    inputs: Iterable[Line] | None = None,
    failures: Iterable[Line] | None = None,
    compress: str | None = None,
    ending: bytes = b"\n",
    tail: bytes = b"",
) -> Path:
    """Write the rollouts file and its row sidecars; the path of the rollouts file.

    `ending` closes every line, `tail` stands after the last one.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.jsonl{'.' + compress if compress else ''}"
    path.write_bytes(packed(joined(lines, ending) + tail, compress))
    for which, rows in (("materialized_inputs", inputs), ("failures", failures)):
        if rows is not None:
            (folder / f"{name}_{which}.jsonl").write_bytes(joined(rows, b"\n"))
    return path


def joined(lines: Iterable[Line], ending: bytes = b"\n") -> bytes:
    """Lines as the bytes of a file."""
    return b"".join(encode(line) + ending for line in lines)


def packed(content: bytes, how: str | None) -> bytes:
    """Content as gzip, zstd, or as it is."""
    if how == "gz":
        return gzip.compress(content, mtime=0)
    return zstandard.compress(content) if how == "zst" else content
