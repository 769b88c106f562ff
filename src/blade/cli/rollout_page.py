"""Print one rollout, what decides first, or the repeats of one task, for a terminal or a program."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from blade import rollout_text
from blade.cli.query import finite
from blade.formats.rollout_steps import Told, quotable, steps_of
from blade.hostile import json_text, line, lines
from blade.rollout_text import EMPTY, FRAMEWORK, Fields, end_of, middle_cut
from blade.tables import cache

_IDS = ("task_id", "problem_id", "instance_id", "question_id", "id", "uuid", "task_name", "name")
_TOTAL = 100_000  # characters of a rollout before we stop, unless all was asked for
_LAST_WORDS = 100  # characters of the last words in the list of repeats
_VALUE = 300  # characters of a value at the head
_FAILED = 40  # failed checks at the head
_LAST = 3  # steps that are shown at the head as well
_END, _END_LINES = 800, 8  # characters and lines from the end of a long text
_TOLERANCE = 1e-9  # of rewards
_DEPTH = 8
_MEMBERS = 12  # values of an object up to which each has a line of its own
_LINES = 30  # of what was recorded
_LONG = 200  # characters from which a text is shown by its end
_TEXTS = 4


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
    threshold: float | None = None  # at which a row passes, where the user or blade.toml says so


def rollout(shown: Shown, wanted: Sequence[tuple[int, int | None]]) -> dict[str, Any]:
    """Collect one rollout: its verdict, how it ended, the fields of the row, the request, the steps."""
    steps, source = steps_of(shown.row)
    chosen = [
        step for step in steps
        if any(first <= step["index"] and (last is None or step["index"] < last) for first, last in wanted)
    ]  # fmt: skip
    fields = {key: value for key, value in shown.row.items() if key not in FRAMEWORK}
    stopped = rollout_text.stops(shown.row.get("response"))
    failed = rollout_text.sorted_fields(fields, stopped).failed
    return {
        **_head(shown), "failed_checks": [check.text for checks in failed.values() for check in checks],
        "stopped": stopped, "last_steps": [rollout_text.step(step) for step in steps[-_LAST:]], "fields": fields,
        "diagnosed": cache.kept_row(Path(shown.file), f"{shown.task}/{shown.repeat}"),
        "request": rollout_text.turns(shown.row), "steps_from": source, "n_steps": len(steps),
        "steps": [rollout_text.step(step) for step in chosen],
    }  # fmt: skip


def task(rows: list[Shown]) -> dict[str, Any]:
    """Collect one task: its repeats, each with its reward and last words."""
    repeats = [{**_head(shown), **rollout_text.effort(steps_of(shown.row)[0])} for shown in rows]
    return {"run": rows[0].run, "task": rows[0].task, "task_name": _name(rows[0]), "repeats": repeats}


def _head(shown: Shown) -> dict[str, Any]:
    reward = shown.row.get("reward")
    return {
        "run": shown.run, "task": shown.task, "task_name": _name(shown), "repeat": shown.repeat, "reward": reward,
        "passed": passed(reward, shown.threshold), "pass_threshold": shown.threshold,
        "file": shown.file, "line": shown.line,
    }  # fmt: skip


def passed(reward: Any, threshold: float | None) -> bool | None:
    """Judge a reward, at 1 where nothing else is said; None for no reward, or one outside 0 to 1."""
    if not _is_number(reward):
        return None
    if threshold is None and not -_TOLERANCE <= reward <= 1 + _TOLERANCE:
        return None
    return bool(reward >= (1.0 if threshold is None else threshold) - _TOLERANCE)


def _is_number(value: Any) -> bool:
    return isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))


def _name(shown: Shown) -> str:
    values = (shown.row.get(key) for key in _IDS)
    names = (str(value) for value in values if isinstance(value, str | int) and not isinstance(value, bool))
    return next(names, shown.task)


def render(result: dict[str, Any], chars: int, is_whole: bool = True) -> str:
    """Write plain text without control sequences, long texts cut; of a part of a rollout only its steps."""
    page = _render_task(result) if "repeats" in result else _render_rollout(result, chars, is_whole)
    return "\n".join(map(lines, page)) + "\n"


def as_json(result: Any) -> str:
    """Write the same for a program; nothing in it deceives whoever prints it."""
    return json_text(json.dumps(finite(result), indent=2, ensure_ascii=False, allow_nan=False))


def _titled(result: dict[str, Any]) -> str:
    name = "" if result["task_name"] == result["task"] else f" ({result['task_name']})"
    return line(f"task {result['task']}{name}", 300)


def _verdict(result: dict[str, Any]) -> str:
    """Say passed or failed with the reward, and by which threshold where that is not plain."""
    reward, threshold = result["reward"], result["pass_threshold"]
    page = f"reward {line(str(reward), 40)}"
    if result["passed"] is None:
        return f"{page}, {'not judged: no pass threshold is known' if _is_number(reward) else 'no usable reward'}"
    least = threshold if threshold is not None or reward in (0, 1) else 1
    passes_at = f" (passes at {least:g})" if least is not None else ""
    return f"{'passed' if result['passed'] else 'failed'}, {page}{passes_at}"


def _render_task(result: dict[str, Any]) -> list[str]:
    page = [f"{_titled(result)} of {line(result['run'])}", ""]
    for item in result["repeats"]:
        counts = f"{item['n_steps']:>3} steps {item['n_calls']:>3} calls"
        words = {True: "passed", False: "failed", None: ""}[item["passed"]]
        reward, last = line(str(item["reward"]), 20), line(end_of(item["last_words"], _LAST_WORDS))
        page.append(f"  repeat {item['repeat']:<3} {words:<6} reward {reward:<6} {counts}  {last}")
    page += ["", line(f"One of them: blade show RUN {result['task']}/{result['repeats'][0]['repeat']}")]
    return page


def _render_rollout(result: dict[str, Any], chars: int, is_whole: bool) -> list[str]:
    """Lay a rollout out; its own text is indented or behind its name, so that it cannot pose as ours."""
    page = [
        f"{_titled(result)} repeat {result['repeat']} of {line(result['run'])}: {_verdict(result)}",
        f"{result['n_steps']} {'step' if result['n_steps'] == 1 else 'steps'} from {result['steps_from']}",
        f"{line(result['file'])}:{result['line']}",
    ]
    page += _render_given(result, chars) if is_whole else []
    room = _TOTAL - sum(map(len, page))
    if result["n_steps"] and not result["steps"] and not is_whole:
        page += ["", f"no step in this range: they are numbered 0 to {result['n_steps'] - 1}"]
    for number, step in enumerate(result["steps"]):
        if chars > 0 and room < 0:
            left = len(result["steps"]) - number
            page += ["", f"… {left} more steps: --steps {step['index']}: continues, --chars 0 shows all"]
            break
        texts = [f"(thinking) {step['reasoning']}"] if step.get("reasoning") else []
        texts += [step["text"] or "(empty)"] if step["text"] or not texts else []
        shown = ["", _heading(step), *(_indented(text, chars) for text in texts)]
        room -= sum(map(len, shown))
        page += shown
    return page


def _render_given(result: dict[str, Any], chars: int) -> list[str]:
    """Lay out what decides, then the other fields of the row, then the request."""
    fields = rollout_text.sorted_fields(result["fields"], result["stopped"])
    recorded, texts, others = laid_out(fields)
    is_all = chars <= 0
    checks = result["failed_checks"]
    failed = checks if is_all else checks[:_FAILED]
    more = len(checks) - len(failed)

    def named(pairs: Sequence[tuple[str, Any]], spell: Callable[[Any], str]) -> list[str]:
        return [f"  {line(name, 80)}: {spell(value)}" for name, value in pairs]

    def value(value: Any) -> str:  # cut before it is cleaned, since it may be very long
        text, half = quotable(value), _VALUE // 2
        return line(text if is_all or len(text) <= _VALUE else f"{text[:half]} … {text[-half:]}")

    rows = named(recorded, value)
    for name, text in texts:
        last = [row for row in text[-20 * _END :].splitlines() if row.strip()][-_END_LINES:]
        end = text if is_all else end_of("\n".join(last), _END)
        rows += [f"  {line(name, 80)} ({len(text):,} characters){'' if is_all else ', its end'}:", _indented(end, 0)]
    page = []
    if result["diagnosed"] is not None:
        label, name, step = result["diagnosed"]
        page += ["", line(f"Diagnosed: {name} ({label}){f', at step [{step}]' if step is not None else ''}")]
    page += _part("Not passed", [f"  {value(check)}" for check in failed])
    page += [f"  … {more} more; --chars 0 shows all"] if more else []
    page += _part("Recorded", rows) + _part("Expected", named(fields.expected, value))
    # how a text ends says more of its outcome than how it begins
    ends = [(step, step["text"] or step.get("reasoning") or "(empty)") for step in result["last_steps"]]
    ended = [f"  {_heading(step)}: {line(end_of(text, _END // 2))}" for step, text in ends]
    page += _part("Ended with", ended or ["  no step is recorded"])
    if result["passed"] is False:
        page += ["", line(f"Proposed cause: blade show {result['file']} {result['task']} --dossier")]
    cut = 160 if chars > 0 else 0
    page += _part("Other fields", named(others, lambda value: line(middle_cut(quotable(value), cut))))
    for turn in result["request"]:
        page += ["", f"[request] {line(turn['role'], 40)}", _indented(turn["text"], chars)]
    return page


def _part(name: str, rows: list[str]) -> list[str]:
    return ["", name, *rows] if rows else []


def _heading(step: Told) -> str:
    tool = f" {step['tool']}" if step.get("tool") else ""
    states = rollout_text.states(step.get("answered"), step.get("failed"))
    return f"[{step['index']}] {line(step['kind'] + tool + ''.join(f' ({state})' for state in states), 120)}"


def _indented(text: str, chars: int) -> str:
    return "\n".join("    " + line for line in middle_cut(text, chars).splitlines() or [""])


def laid_out(fields: Fields) -> tuple[list[tuple[str, Any]], list[tuple[str, str]], list[tuple[str, Any]]]:
    """Lay out what was recorded as values by their path, long texts, and fields without room among them."""
    counts = Counter(check.path for checks in fields.failed.values() for check in checks)
    values: list[tuple[str, Any]] = []
    texts: list[tuple[str, str]] = []
    others = list(fields.others)
    for name, value in fields.recorded:
        leaves = list(_leaves(name, value, _DEPTH))
        long = [(path, text) for path, text in leaves if isinstance(text, str) and (len(text) > _LONG or "\n" in text.strip())]
        texts += (long := long[: _TEXTS - len(texts)])
        members = [leaf for leaf in leaves if leaf not in long]
        members = [  # failed checks are not repeated
            (path, f"{len(inner):,} entries, {counts[path]} not passed") if path in counts else (path, inner)
            for path, inner in (members if len(members) <= _MEMBERS else [(name, value)])
            if path not in counts or isinstance(inner, list)
        ]
        if len(values) + len(members) <= _LINES:
            values += members
        else:
            others.append((name, value))
    return values, texts, others


def _leaves(path: str, value: Any, depth: int) -> Iterator[tuple[str, Any]]:
    """Yield the values inside objects by their dotted path, empty ones apart."""
    if isinstance(value, Mapping) and depth:
        for key, inner in value.items():
            yield from _leaves(f"{path}.{key}", inner, depth - 1)
    elif value not in EMPTY:
        yield path, value
