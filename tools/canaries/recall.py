"""Plant canaries in rows and clean data, and count two numbers: the share caught, and the share changed."""

from __future__ import annotations

import base64
import json
import random
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from html import escape, unescape
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus, unquote, unquote_plus

from blade.sanitize import Cleaner, Key, Policy
from tools import planted
from tools.canaries.canary_kinds import DISGUISED, KINDS, LABELLED, PEOPLE, PUBLIC, UNRELEASED, Canary

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
    logged = f"https://example.org/log?q={quote(canary.said)}&page=2"
    return _row(question=f"open {canary.said if canary.said.startswith('http') else logged} and read")


def _in_tool_output(canary: Canary) -> Row:
    text = f"$ run\nstep 1 ok\n{canary.said}\nexit 0\n"
    call = {"type": "function_call_output", "call_id": "call_1"}
    return _row(response={"output": [{**call, "output": json.dumps({"stdout": text, "code": 0})}]})


def _in_base64(canary: Canary) -> Row:
    content = base64.b64encode(f"line one\n{canary.said}\nline three\n".encode()).decode()
    return _row(artifact={"name": "log.txt", "data": content})


def _in_diff(canary: Canary) -> Row:
    added = "\n".join("+" + line for line in canary.said.split("\n"))
    head = "diff --git a/conf b/conf\n--- a/conf\n+++ b/conf\n@@ -1,2 +1,3 @@\n"
    text = f"{head} context\n-old line\n{added}\n tail\n"
    return _row(model_patch=text)


def _in_arguments(canary: Canary) -> Row:
    inner = json.dumps({"command": f"echo start && {canary.said}", "timeout": 30})
    return _row(response={"output": [{"type": "function_call", "name": "shell", "arguments": inner}]})


def _in_yaml(canary: Canary) -> Row:
    lines = canary.said.split("\n")
    note = "  note: |\n" + "".join(f"    {line}\n" for line in lines)
    content = note if len(lines) > 1 else f"  env:\n    - {canary.said}\n"
    return _row(config=f"version: 2\njob:\n{content}  steps: 4\n")


def _in_shell(canary: Canary) -> Row:
    text = f"set -e\ncd /tmp/x && {canary.said} | tee out.log; echo done\n"
    return _row(response={"output": [{"type": "function_call", "name": "bash", "arguments": text}]})


def _in_trace(canary: Canary) -> Row:
    head = 'Traceback (most recent call last):\n  File "/app/run.py", line 3, in main\n    client.go()'
    return _row(error=f"{head}\nValueError: failed with {canary.said!r} (code 3)\n")


def _in_attribute(canary: Canary) -> Row:
    content = escape(canary.said, quote=True).replace("\n", "&#10;")
    return _row(page=f'<form><input type="hidden" name="x" value="{content}" data-n="2"></form>')


def _in_nested(canary: Canary) -> Row:
    inner = json.dumps({"log": json.dumps({"line": canary.said, "n": 1})})
    return _row(state=f"snapshot {inner} taken")


def _in_table(canary: Canary) -> Row:
    cell = canary.said.replace("|", "\\|").replace("\n", "<br>")
    return _row(summary=f"| step | what |\n|---|---|\n| 1 | {cell} |\n| 2 | fine |\n")


def _in_continued(canary: Canary) -> Row:
    text = canary.said if "\n" in canary.said else canary.said.replace(" ", " \\\n    ")
    return _row(script=f"run \\\n  --fast \\\n  {text}\n")


def _in_form(canary: Canary) -> Row:
    return _row(body=f"step=3&text={quote_plus(canary.said)}&n=2")


PLACES: dict[str, Callable[[Canary], Row]] = {
    "value": _in_value,
    "key": _in_key,
    "url": _in_url,
    "tool output": _in_tool_output,
    "base64": _in_base64,
    "diff": _in_diff,
    "arguments": _in_arguments,
    "yaml": _in_yaml,
    "shell": _in_shell,
    "trace": _in_trace,
    "attribute": _in_attribute,
    "nested": _in_nested,
    "table": _in_table,
    "continued": _in_continued,
    "form": _in_form,
}


def survives(canary: Canary, text: str) -> bool:
    """Is the value still there: as it is, escaped, or encoded."""
    return any(canary.value in form for form in _forms(text))


_CONTINUED = re.compile(r"[ \t]*\\\n[ \t]*")
_ESCAPED = re.compile(r"\\+(?:u200[b-f]|u2060|ufeff|u00ad|xad)")
_UNSEEN = dict.fromkeys(map(ord, "\u200b\u200c\u200d\u2060\ufeff\u00ad"))


def _forms(text: str) -> set[str]:
    """A text, and what a curious reader would make of it."""
    texts = "\n".join(_strings(text))
    forms = {text, texts, _CONTINUED.sub(" ", texts)}
    for _ in range(2):
        for form in tuple(forms):
            forms |= {unquote(form), unquote_plus(form), unescape(form), form.replace("\\\\", "\\")}
            forms |= {form.replace("\\/", "/"), form.replace("\\", ""), form.translate(_UNSEEN)}
            forms.add(_ESCAPED.sub("", form))
    for word in text.replace('"', " ").replace("\\n", " ").split():
        if len(word) >= 24 and len(word) % 4 == 0:
            try:
                texts = base64.b64decode(word, validate=True).decode()
            except ValueError:
                continue
            forms |= {texts, texts.translate(_UNSEEN)}
    return forms


def _strings(text: str) -> list[str]:
    """All strings in JSON text, and in the JSON that they hold."""
    try:
        content = json.loads(text)
    except ValueError:
        return []
    results, todo = list[str](), [content]
    while todo:
        value = todo.pop()
        if isinstance(value, dict):
            todo += [*value, *value.values()]
        elif isinstance(value, list):
            todo += value
        elif isinstance(value, str):
            results += [value, *_strings(value)]
    return results


RECALL, CHANGED = 0.995, 0.005  # at least, at most
KEY = Key(b"a key for canaries, not for use")
POLICY = Policy(names=(*UNRELEASED, *PEOPLE))
GROUPS = {"well known": KINDS, "public forms": PUBLIC, "in disguise": DISGUISED, "labelled": LABELLED}
ALL = {kind: make for kinds in GROUPS.values() for kind, make in kinds.items()}
_KEPT = ("_ng_task_index", "_ng_rollout_index", "reward", "task_id", "failure_kind")
_TOKEN = re.compile(r"\w+|[^\w\s]")


def recall(
    each: int, seed: int, kinds: Mapping[str, Callable[[random.Random], Canary]] = ALL
) -> tuple[Counter[tuple[str, str]], Counter[tuple[str, str]], int]:
    """Canaries planted and caught by kind and place, and rows whose ids or reward moved."""
    planted_, caught = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    moved = 0
    for kind, make in kinds.items():
        rng = random.Random(f"{seed} {kind}")
        for place, plant in PLACES.items():
            for _ in range(each):
                canary = make(rng)
                row = plant(canary)
                new = Cleaner(KEY, POLICY).row(json.dumps(row))
                planted_[kind, place] += 1
                caught[kind, place] += not survives(canary, new)
                moved += any(json.loads(new)[field] != row[field] for field in _KEPT)
    return planted_, caught, moved


def changed(lines: Iterable[str]) -> tuple[int, int, Counter[str]]:
    """Tokens of clean rows, how many of them changed, and by which kind."""
    kinds: Counter[str] = Counter()
    lost = 0

    def seen(field: str, kind: str, value: str) -> None:
        nonlocal lost
        kinds[kind] += 1
        lost += len(_TOKEN.findall(value))

    cleaner = Cleaner(KEY, POLICY, seen)
    tokens = 0
    cleaned = []
    for line in lines:
        cleaned.append(cleaner.row(line))
        tokens += len(_TOKEN.findall(line))
    echoing = cleaner.echoing(seen)
    for line in cleaned:
        echoing.row(line)
    return tokens, lost, kinds


def simulated_lines() -> list[str]:
    """Rows of a simulated run: nothing in them is private."""
    with tempfile.TemporaryDirectory() as folder:
        planted.write_demo(Path(folder))
        paths = sorted(Path(folder).glob("*.jsonl"))
        return [line for path in paths for line in path.read_text(encoding="utf-8").splitlines()]
