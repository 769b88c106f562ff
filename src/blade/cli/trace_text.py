"""Lay out one rollout, or the repeats of one task, for a terminal or a program."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from blade.hostile import line, lines
from blade.ingest.items import Told, quotable, steps_of, text_of

_IDS = ("task_id", "problem_id", "instance_id", "question_id", "id", "uuid", "task_name", "name")
_FRAMEWORK = ("responses_create_params", "response", "reward")
_TOTAL = 100_000  # characters of a rollout before we stop, unless all was asked for
_SAID = 100  # characters of the last words in the list of repeats


@dataclass(frozen=True, slots=True)
class Shown:
    """A row to be shown and where it lies."""

    run: str
    task: str
    repeat: int
    file: str
    line: int
    row: dict[str, Any]
    is_one: bool  # the user asked for this repeat


def rollout(shown: Shown, wanted: Sequence[tuple[int, int | None]]) -> dict[str, Any]:
    """One rollout: what the row says, the request, the steps."""
    steps, source = steps_of(shown.row)
    chosen = [
        step for step in steps
        if any(first <= step["index"] and (last is None or step["index"] < last) for first, last in wanted)
    ]  # fmt: skip
    params = shown.row.get("responses_create_params")
    request = params.get("input") if isinstance(params, dict) else None
    return {
        **_head(shown),
        "fields": {key: value for key, value in shown.row.items() if key not in _FRAMEWORK},
        "request": [_turn(item) for item in request] if isinstance(request, list) else [text_of(request)],
        "steps_from": source,
        "n_steps": len(steps),
        "steps": [_step(step) for step in chosen],
    }


def task(rows: list[Shown]) -> dict[str, Any]:
    """One task: its repeats, each with its reward and last words."""
    repeats = []
    for shown in rows:
        steps, _ = steps_of(shown.row)
        said = [step["text"] for step in steps if step["kind"] == "message" and step["text"]]
        calls = sum(step["kind"] == "call" for step in steps)
        repeats.append(
            {**_head(shown), "n_steps": len(steps), "n_calls": calls, "last_words": said[-1] if said else ""}
        )
    return {"run": rows[0].run, "task": rows[0].task, "task_name": _name(rows[0]), "repeats": repeats}


def _head(shown: Shown) -> dict[str, Any]:
    return {
        "run": shown.run,
        "task": shown.task,
        "task_name": _name(shown),
        "repeat": shown.repeat,
        "reward": shown.row.get("reward"),
        "file": shown.file,
        "line": shown.line,
    }


def _name(shown: Shown) -> str:
    for key in _IDS:
        value = shown.row.get(key)
        if isinstance(value, str | int) and not isinstance(value, bool):
            return str(value)
    return shown.task


def _turn(item: Any) -> dict[str, str]:
    if not isinstance(item, dict):
        return {"role": "other", "text": text_of(item)}
    role = item.get("role") or item.get("type") or "other"
    return {
        "role": str(role),
        "text": text_of(item.get("content", item.get("output", item.get("arguments")))),
    }


def _step(step: Told) -> Told:
    """A step without what it does not say; the arguments of a call are its text."""
    always = ("index", "kind", "text")
    return {
        key: value
        for key, value in step.items()
        if key in always or (value not in (None, "") and key not in ("arguments", "tokens"))
    }


def render(result: dict[str, Any], chars: int, is_whole: bool = True) -> str:
    """Plain text; control sequences are gone and long texts are cut. A part of a rollout comes without what
    stood before it."""
    found = _render_task(result) if "repeats" in result else _render_rollout(result, chars, is_whole)
    return "\n".join(map(lines, found)) + "\n"


def as_json(result: Any) -> str:
    """The same for a program; nothing in it deceives whoever prints it."""
    from blade.report.wire import escaped

    return escaped(json.dumps(_finite(result), indent=2, ensure_ascii=False, allow_nan=False))


def _finite(value: Any) -> Any:
    """JSON has no NaN and no infinity."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return {key: _finite(item) for key, item in value.items()} if isinstance(value, dict) else value


def _titled(result: dict[str, Any]) -> str:
    name = "" if result["task_name"] == result["task"] else f" ({result['task_name']})"
    return line(f"task {result['task']}{name}", 300)


def _render_task(result: dict[str, Any]) -> list[str]:
    found = [f"{_titled(result)} of {line(result['run'])}", ""]
    for one in result["repeats"]:
        counts = f"{one['n_steps']:>3} steps {one['n_calls']:>3} calls"
        reward, said = line(str(one["reward"]), 20), line(one["last_words"], _SAID)
        found.append(f"  repeat {one['repeat']:<3} reward {reward:<6} {counts}  {said}")
    found += ["", line(f"One of them: blade show RUN {result['task']}/{result['repeats'][0]['repeat']}")]
    return found


def _render_rollout(result: dict[str, Any], chars: int, is_whole: bool) -> list[str]:
    """What a rollout wrote stands indented or on the line it belongs to, so that it cannot pose as ours."""
    found = [
        f"{_titled(result)} repeat {result['repeat']} of {line(result['run'])}",
        f"reward {line(str(result['reward']), 40)}   {result['n_steps']} steps from {result['steps_from']}",
        f"{line(result['file'])}:{result['line']}",
    ]
    found += _render_given(result, chars) if is_whole else []
    room = _TOTAL - sum(map(len, found))
    if result["n_steps"] and not result["steps"] and not is_whole:
        found += ["", f"no step in this range: they are numbered 0 to {result['n_steps'] - 1}"]
    for number, step in enumerate(result["steps"]):
        if chars > 0 and room < 0:
            left = len(result["steps"]) - number
            found += ["", f"… {left} more steps: --steps {step['index']}: goes on, --chars 0 shows all"]
            break
        shown = _render_step(step, chars)
        room -= sum(map(len, shown))
        found += shown
    return found


def _render_given(result: dict[str, Any], chars: int) -> list[str]:
    """What stood before the rollout began: the fields of the row, and the request."""
    found = [""]
    for key, value in result["fields"].items():
        found.append(f"  {line(key, 80)}: {_field(value, chars)}")
    for turn in result["request"]:
        turn = turn if isinstance(turn, dict) else {"role": "user", "text": turn}
        found += ["", f"[request] {line(turn['role'], 40)}", _indented(turn["text"], chars)]
    return found


def _field(value: Any, chars: int) -> str:
    text = quotable(value)
    return line(text) if chars <= 0 else _cut(line(text[:2000]), 160)


def _render_step(step: Told, chars: int) -> list[str]:
    found = ["", f"[{step['index']}] {line(step['kind'] + _about(step), 120)}"]
    if step.get("reasoning"):
        found.append(_indented(f"(thinking) {step['reasoning']}", chars))
    if step["text"] or not step.get("reasoning"):
        found.append(_indented(step["text"] or "(empty)", chars))
    return found


def _about(step: dict[str, Any]) -> str:
    words = [f" {step['tool']}" if step.get("tool") else ""]
    if step.get("answered") is False:
        words.append(" (never answered)")
    if step.get("failed"):
        words.append(" (failed)")
    return "".join(words)


def _indented(text: str, chars: int) -> str:
    return "\n".join("    " + line for line in _cut(text, chars).splitlines() or [""])


def _cut(text: str, chars: int) -> str:
    if chars <= 0 or len(text) <= chars:
        return text
    return f"{text[:chars]} … ({len(text) - chars:,} more characters; --chars 0 shows all)"
