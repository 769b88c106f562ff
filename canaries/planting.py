"""Turn a canary into a row that holds it: in a value, a key, an address, a tool's output, base64, a diff."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, unquote

from canaries.kinds import Canary

Row = dict[str, Any]


def _row(**changed: Any) -> Row:
    row: Row = {
        "_ng_task_index": 3,
        "_ng_rollout_index": 1,
        "reward": 0.25,
        "task_id": "task-0003",
        "failure_kind": "wrong_answer",
        "response": {"output": [{"type": "message", "role": "assistant", "content": "done"}]},
    }
    return {**row, **changed}


def _in_value(canary: Canary) -> Row:
    if canary.name:
        return _row(metadata={"settings": {canary.name: canary.value}, "n": 4})
    return _row(metadata={"note": f"We saw it: {canary.said} and went on."})


def _in_key(canary: Canary) -> Row:
    return _row(metadata={"counts": {canary.said: 2, "other": 1}})


def _in_url(canary: Canary) -> Row:
    said = (
        canary.said
        if canary.said.startswith("http")
        else f"https://example.org/log?q={quote(canary.said)}&page=2"
    )
    return _row(question=f"open {said} and read")


def _in_tool_output(canary: Canary) -> Row:
    text = f"$ run\nstep 1 ok\n{canary.said}\nexit 0\n"
    call = {
        "type": "function_call_output",
        "call_id": "call_1",
        "output": json.dumps({"stdout": text, "code": 0}),
    }
    return _row(response={"output": [call]})


def _in_base64(canary: Canary) -> Row:
    held = base64.b64encode(f"line one\n{canary.said}\nline three\n".encode()).decode()
    return _row(artifact={"name": "log.txt", "data": held})


def _in_diff(canary: Canary) -> Row:
    added = "\n".join("+" + line for line in canary.said.split("\n"))
    head = "diff --git a/conf b/conf\n--- a/conf\n+++ b/conf\n@@ -1,2 +1,3 @@\n"
    text = f"{head} context\n-old line\n{added}\n tail\n"
    return _row(model_patch=text)


def _in_arguments(canary: Canary) -> Row:
    inner = json.dumps({"command": f"echo start && {canary.said}", "timeout": 30})
    return _row(response={"output": [{"type": "function_call", "name": "shell", "arguments": inner}]})


PLACES: dict[str, Callable[[Canary], Row]] = {
    "value": _in_value,
    "key": _in_key,
    "url": _in_url,
    "tool output": _in_tool_output,
    "base64": _in_base64,
    "diff": _in_diff,
    "arguments": _in_arguments,
}


def survives(canary: Canary, text: str) -> bool:
    """Is the value still there: as it is, escaped, or encoded."""
    return any(canary.value in form for form in _forms(text))


def _forms(text: str) -> list[str]:
    """A text, and what a curious reader would make of it."""
    forms = [
        text,
        unquote(text),
        text.replace("\\\\", "\\"),
        text.replace("\\/", "/"),
        text.replace("\\", ""),
    ]
    for word in text.replace('"', " ").replace("\\n", " ").split():
        if len(word) >= 24 and len(word) % 4 == 0:
            try:
                forms.append(base64.b64decode(word, validate=True).decode())
            except ValueError:
                pass
    return forms
