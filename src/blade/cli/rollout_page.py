"""Print one rollout, what decides first, or the repeats of one task, for a terminal or a program."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from blade.cli.query import finite
from blade.formats.rollout_steps import Told, quotable, steps_of, text_of
from blade.hostile import json_text, line, lines
from blade.tables import cache

_IDS = ("task_id", "problem_id", "instance_id", "question_id", "id", "uuid", "task_name", "name")
_FRAMEWORK = ("responses_create_params", "response", "reward")
_TOTAL = 100_000  # characters of a rollout before we stop, unless all was asked for
_LAST_WORDS = 100  # characters of the last words in the list of repeats
_VALUE = 300  # characters of a value at the head
_FAILED = 40  # failed checks at the head
_LAST = 3  # steps that are shown at the head as well
_END, _END_LINES = 800, 8  # characters and lines from the end of a long text
_TOLERANCE = 1e-9  # of rewards


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
    params = shown.row.get("responses_create_params")
    request = params.get("input") if isinstance(params, dict) else None
    fields = {key: value for key, value in shown.row.items() if key not in _FRAMEWORK}
    stopped = stops(shown.row.get("response"))
    return {
        **_head(shown),
        "failed_checks": sorted_fields(fields, stopped).failed,
        "stopped": stopped,
        "last_steps": [_step(step) for step in steps[-_LAST:]],
        "fields": fields,
        "diagnosed": cache.kept_row(Path(shown.file), f"{shown.task}/{shown.repeat}"),
        "request": [_turn(item) for item in request] if isinstance(request, list) else [text_of(request)],
        "steps_from": source,
        "n_steps": len(steps),
        "steps": [_step(step) for step in chosen],
    }


def task(rows: list[Shown]) -> dict[str, Any]:
    """Collect one task: its repeats, each with its reward and last words."""
    repeats = []
    for shown in rows:
        steps, _ = steps_of(shown.row)
        messages = [step["text"] for step in steps if step["kind"] == "message" and step["text"]]
        calls = sum(step["kind"] == "call" for step in steps)
        last = messages[-1] if messages else ""
        repeats.append({**_head(shown), "n_steps": len(steps), "n_calls": calls, "last_words": last})
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


def _turn(item: Any) -> dict[str, str]:
    if not isinstance(item, dict):
        return {"role": "other", "text": text_of(item)}
    text = text_of(item.get("content", item.get("output", item.get("arguments"))))
    return {"role": str(item.get("role") or item.get("type") or "other"), "text": text}


def _step(step: Told) -> Told:
    """Drop what a step does not say; the arguments of a call are its text."""
    always, never = ("index", "kind", "text"), ("arguments", "tokens")
    return {key: value for key, value in step.items() if key in always or (value not in (None, "") and key not in never)}


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
        reward, last = line(str(item["reward"]), 20), line(_end(item["last_words"], _LAST_WORDS))
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
        shown = _render_step(step, chars)
        room -= sum(map(len, shown))
        page += shown
    return page


def _render_given(result: dict[str, Any], chars: int) -> list[str]:
    """Lay out what decides, then the other fields of the row, then the request."""
    fields = sorted_fields(result["fields"], result["stopped"])
    is_all = chars <= 0
    failed = fields.failed if is_all else fields.failed[:_FAILED]
    more = len(fields.failed) - len(failed)

    def named(pairs: Sequence[tuple[str, Any]], spell: Callable[[Any], str]) -> list[str]:
        return [f"  {line(name, 80)}: {spell(value)}" for name, value in pairs]

    def value(value: Any) -> str:  # cut before it is cleaned, since it may be very long
        text, half = quotable(value), _VALUE // 2
        return line(text if is_all or len(text) <= _VALUE else f"{text[:half]} … {text[-half:]}")

    recorded = named(fields.recorded, value)
    for name, text in fields.texts:
        last = [row for row in text[-20 * _END :].splitlines() if row.strip()][-_END_LINES:]
        end = text if is_all else _end("\n".join(last), _END)
        recorded += [f"  {line(name, 80)} ({len(text):,} characters){'' if is_all else ', its end'}:", _indented(end, 0)]
    page = []
    if result["diagnosed"] is not None:
        label, name, step = result["diagnosed"]
        page += ["", line(f"Diagnosed: {name} ({label}){f', at step [{step}]' if step is not None else ''}")]
    page += _part("Not passed", [f"  {value(check)}" for check in failed])
    page += [f"  … {more} more; --chars 0 shows all"] if more else []
    page += _part("Recorded", recorded) + _part("Expected", named(fields.expected, value))
    # how a text ends says more of its outcome than how it begins
    ends = [(step, step["text"] or step.get("reasoning") or "(empty)") for step in result["last_steps"]]
    ended = [f"  {_heading(step)}: {line(_end(text, _END // 2))}" for step, text in ends]
    page += _part("Ended with", ended or ["  no step is recorded"])
    if result["passed"] is False:
        page += ["", line(f"Proposed cause: blade show {result['file']} {result['task']} --dossier")]
    cut = 160 if chars > 0 else 0
    page += _part("Other fields", named(fields.others, lambda value: line(_cut(quotable(value), cut))))
    for turn in result["request"]:
        turn = turn if isinstance(turn, dict) else {"role": "user", "text": turn}
        page += ["", f"[request] {line(turn['role'], 40)}", _indented(turn["text"], chars)]
    return page


def _part(name: str, rows: list[str]) -> list[str]:
    return ["", name, *rows] if rows else []


def _render_step(step: Told, chars: int) -> list[str]:
    texts = [f"(thinking) {step['reasoning']}"] if step.get("reasoning") else []
    texts += [step["text"] or "(empty)"] if step["text"] or not texts else []
    return ["", _heading(step), *(_indented(text, chars) for text in texts)]


def _heading(step: Told) -> str:
    tool = f" {step['tool']}" if step.get("tool") else ""
    answered = " (never answered)" if step.get("answered") is False else ""
    return f"[{step['index']}] {line(step['kind'] + tool + answered + ' (failed)' * bool(step.get('failed')), 120)}"


def _indented(text: str, chars: int) -> str:
    return "\n".join("    " + line for line in _cut(text, chars).splitlines() or [""])


def _cut(text: str, chars: int) -> str:
    """Cut a text in the middle: errors and answers come at its end."""
    if chars <= 0 or len(text) <= chars:
        return text
    head, tail = chars - chars // 3, chars // 3
    left = f"({len(text) - chars:,} characters left out; --chars 0 shows all)"
    return f"{text[:head]} … {left} … {text[len(text) - tail :]}"


def _end(text: str, most: int) -> str:
    return text if len(text) <= most else f"… {text[-most:]}"


# Names only decide the order of print: a field that no pattern knows is shown among what was recorded.
_KEYS = re.compile(r"^_ng_|^(?:agent_ref|skills_ref|uuid|id|name|task_name|\w+_id)$")
_TASK = re.compile(
    r"instruction|^question|^problem|^prompt|^task_(?:purpose|description)|^scenario|^goal$|^query$"
)
_STEPS = set("trajectory messages subagent_trajectories delegated_response osworld_steps tools input".split())
_EXPECTED = re.compile(r"expected|^gold|ground_truth|^gt_|reference_|^target|^answer$|^solution$|answer_key")
_TELLING = re.compile(
    r"error|fail|exception|stderr|verdict|judge|reason|explan|feedback|check|message|assert|test|verif|valid|status"
    r"|termination|rubric|grade|reward|score|match|correct|answer|log",
    re.IGNORECASE,
)
_JUDGES = re.compile(
    r"verif|check|test|judge|assert|rubric|grade|criteri|match|pass|correct|success|valid|\bmet$|resolved|satisf|solved"
    r"|follow",
    re.IGNORECASE,
)
_BAD_IF_TRUE = re.compile(r"error|fail|timed?_?out|truncat|crash|invalid|incomplete|violat", re.IGNORECASE)
_BAD = frozenset("failed fail failure error errored incorrect wrong unmet timeout".split())
_STOPS = ("status", "error", "incomplete_details", "stop_reason", "finish_reason")  # of `response`
_DEPTH = 8
_NODES = 5000  # values of a row that are looked into for failed checks
_MEMBERS = 12  # values of an object up to which each has a line of its own
_LINES = 30  # of what was recorded
_LONG = 200  # characters from which a text is told by its end
_TEXTS = 4


@dataclass(slots=True)
class Sorted:
    """The fields of a row in the order in which they help a reader."""

    failed: list[str] = field(default_factory=list)  # checks inside the fields that did not pass
    recorded: list[tuple[str, Any]] = field(default_factory=list)  # path and value
    texts: list[tuple[str, str]] = field(default_factory=list)  # long ones
    expected: list[tuple[str, Any]] = field(default_factory=list)
    others: list[tuple[str, Any]] = field(default_factory=list)  # given before, or without room above


def sorted_fields(fields: Mapping[str, Any], stops: Mapping[str, Any]) -> Sorted:
    """Sort the fields of a row, `stops` of its response among them."""
    ranked = Sorted()
    open_: list[tuple[str, Any]] = list(stops.items())
    for name, value in fields.items():
        # there before the rollout, or its steps: keys, the task, trajectories
        is_given = _KEYS.search(name) or name in _STEPS or (isinstance(value, str) and _TASK.search(name))
        if value in (None, "", [], {}) or is_given:
            ranked.others.append((name, value))
        elif _EXPECTED.search(name):
            ranked.expected.append((name, value))
        else:
            open_.append((name, value))
    checks = [check for name, value in open_ for check in _failed(name, value, iter(range(_NODES)))]
    ranked.failed = [text for _, text in checks]
    failing = Counter(path for path, _ in checks)
    open_.sort(key=lambda item: not _TELLING.search(item[0]))
    for name, value in open_:
        _place(ranked, name, value, failing)
    return ranked


def stops(response: Any) -> dict[str, Any]:
    """Collect what a response says of how it stopped; nothing where it completed."""
    if not isinstance(response, Mapping):
        return {"response": "missing"}
    says = {key: response[key] for key in _STOPS if response.get(key)}
    return {f"response.{key}": value for key, value in says.items() if (key, value) != ("status", "completed")}


def _place(ranked: Sorted, name: str, value: Any, failing: Counter[str]) -> None:
    """Put a field where it is read first and still fits; its failed checks are not repeated."""
    leaves = list(_leaves(name, value, _DEPTH))
    texts = [(path, text) for path, text in leaves if isinstance(text, str)]
    texts = [leaf for leaf in texts if len(leaf[1]) > _LONG or "\n" in leaf[1].strip()]
    ranked.texts += (texts := texts[: _TEXTS - len(ranked.texts)])
    members = [leaf for leaf in leaves if leaf not in texts]
    members = members if len(members) <= _MEMBERS else [(name, value)]
    members = [
        (path, f"{len(inner):,} entries, {failing[path]} not passed") if path in failing else (path, inner)
        for path, inner in members
        if path not in failing or isinstance(inner, list)
    ]
    if len(ranked.recorded) + len(members) <= _LINES:
        ranked.recorded += members
    else:
        ranked.others.append((name, value))


def _leaves(path: str, value: Any, depth: int) -> Iterator[tuple[str, Any]]:
    """Yield the values inside objects by their dotted path, empty ones apart."""
    if isinstance(value, Mapping) and depth:
        for key, inner in value.items():
            yield from _leaves(f"{path}.{key}", inner, depth - 1)
    elif value not in (None, "", [], {}):
        yield path, value


def _failed(path: str, value: Any, nodes: Iterator[int], depth: int = _DEPTH) -> Iterator[tuple[str, str]]:
    """Yield the checks inside a value that did not pass: the path of the value or list, and its own words."""
    if next(nodes, None) is None or not depth:
        return
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _failed(f"{path}.{key}", inner, nodes, depth - 1)
    elif isinstance(value, list):
        yield from _failed_in_list(path, value, nodes, depth)
    elif is_bad(path, value):
        yield path, f"{path} = {quotable(value)}"


def _failed_in_list(path: str, values: list[Any], nodes: Iterator[int], depth: int) -> Iterator[tuple[str, str]]:
    if values and all(isinstance(value, bool) for value in values):
        places = [str(place) for place, value in enumerate(values) if not value]
        if places and _JUDGES.search(path):
            more = " …" if len(places) > 20 else ""
            yield "", f"{path}: {len(places)} of {len(values)} false, at {', '.join(places[:20])}{more}"
        return
    if values and isinstance(values[0], Mapping) and {"role", "content"} <= values[0].keys():
        return  # a conversation, not a list of checks
    for place, record in enumerate(values):
        if next(nodes, None) is None:
            return
        if not isinstance(record, Mapping):
            continue
        bad = next((key for key, value in record.items() if is_bad(f"{path}.{key}", value)), None)
        if bad is not None:
            yield path, f"{path}[{place}] {bad} = {quotable(record[bad])}: {quotable(record)}"
        else:
            for key, inner in record.items():
                if isinstance(inner, Mapping | list):
                    yield from _failed(f"{path}[{place}].{key}", inner, nodes, depth - 1)


def is_bad(path: str, value: Any) -> bool:
    """Decide whether a value says of a check that it did not pass: a word for it, or a truth by its name."""
    if isinstance(value, bool):
        name = path.rpartition(".")[2]
        return value if _BAD_IF_TRUE.search(name) else not value and bool(_JUDGES.search(path))
    return isinstance(value, str) and value.strip().lower() in _BAD
