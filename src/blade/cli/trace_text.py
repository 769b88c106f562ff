"""Lay out one rollout, or the repeats of one task, for a terminal or a program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from blade.hostile import lines
from blade.ingest.items import Told, quotable, steps_of, text_of

_IDS = ("task_id", "problem_id", "instance_id", "question_id", "id", "uuid", "task_name", "name")
_FRAMEWORK = ("responses_create_params", "response", "reward")
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


def rollout(shown: Shown, wanted: tuple[int, int | None]) -> dict[str, Any]:
    """One rollout: what the row says, the request, the steps."""
    steps, source = steps_of(shown.row)
    first, last = wanted
    chosen = [step for step in steps if step["index"] >= first and (last is None or step["index"] < last)]
    params = shown.row.get("responses_create_params")
    request = params.get("input") if isinstance(params, dict) else None
    return {
        **_head(shown),
        "fields": {key: value for key, value in shown.row.items() if key not in _FRAMEWORK},
        "request": [_turn(item) for item in request]
        if isinstance(request, list)
        else [text_of(request)],
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


def render(result: dict[str, Any], chars: int) -> str:
    """Plain text; control sequences are gone and long texts are cut."""
    found = _render_task(result) if "repeats" in result else _render_rollout(result, chars)
    return "\n".join(lines(line) for line in found) + "\n"


def _render_task(result: dict[str, Any]) -> list[str]:
    found = [f"task {result['task']} ({result['task_name']}) of {result['run']}", ""]
    for one in result["repeats"]:
        said = " ".join(one["last_words"].split())
        said = said[:_SAID] + ("…" if len(said) > _SAID else "")
        found.append(
            f"  repeat {one['repeat']:<3} reward {one['reward']!s:<6} {one['n_steps']:>3} steps "
            f"{one['n_calls']:>3} calls  {said}"
        )
    found += ["", f"One of them: blade show RUN {result['task']}/{result['repeats'][0]['repeat']}"]
    return found


def _render_rollout(result: dict[str, Any], chars: int) -> list[str]:
    found = [
        f"task {result['task']} ({result['task_name']}) repeat {result['repeat']} of {result['run']}",
        f"reward {result['reward']}   {result['n_steps']} steps from {result['steps_from']}",
        f"{result['file']}:{result['line']}",
        "",
    ]
    for key, value in result["fields"].items():
        found.append(f"  {key}: {_cut(quotable(value), 160)}")
    for turn in result["request"]:
        turn = turn if isinstance(turn, dict) else {"role": "user", "text": turn}
        found += ["", f"[request] {turn['role']}", _indented(turn["text"], chars)]
    for step in result["steps"]:
        found += ["", f"[{step['index']}] {step['kind']}{_about(step)}"]
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
