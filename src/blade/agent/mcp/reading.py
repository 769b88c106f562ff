"""Tell what to read and let it be read: the queue, the dossier of a task, the steps of a rollout."""

from __future__ import annotations

from typing import Any

import msgspec

from blade import number_format
from blade.agent.mcp import arguments
from blade.agent.mcp.answers import Answer, Page, listed, paged, told
from blade.agent.mcp.house import House, key_of
from blade.agent.mcp.overview import one_table
from blade.errors import UsageError
from blade.formats.items import quotable
from blade.hostile import line, quoted
from blade.model import Trace, Waiting
from blade.report.blocks import Block, Bullets, Code, Heading, Quote, Table, cells, para

FRAMEWORK = ("responses_create_params", "response", "reward")
FIELDS = 40  # fields of a row that are told
FIELD = 160  # characters of one
TURNS = 6  # turns of the request
DOSSIER = 100_000  # characters: it keeps to its budget itself
LAST = 200  # characters of the last words of a repeat


def queue(house: House, asked: arguments.Queue) -> Answer:
    """List the failed tasks worth reading, the most valuable for its tokens first."""
    from blade.pipeline import reviewing

    session, run = house.session(asked)
    # as many as the command would be asked for, so that both tell one order
    found = reviewing.queue(session, run.name, asked.offset + asked.limit)
    page = paged(found.waiting, asked, msgspec.to_builtins, lambda one: (_waiting(one),), found.n_waiting)
    head = {"run": found.run, "n_failed": found.n_failed, "n_judged": found.n_judged, "value": found.value}
    intro = [
        para(
            f"{found.n_failed:,} failed tasks, {found.n_judged:,} judged. Value is points lost times how often "
            "such labels are wrong, a rough guide. Read one: blade_dossier."
        )
    ]
    return listed(asked, f"Queue of {line(run.name, 120)}", head, "waiting", page, intro, one_table)


def _waiting(one: Waiting) -> Table:
    row = cells(
        Code(line(one.task, 80)), Code(line(one.task_name, 80)), one.bucket or number_format.NONE,
        one.cause.value, one.confidence.value, f"{one.lost * 100:.2f}",
        f"{one.value * 100:.2f}", f"{one.tokens:,}",
        Code(line(one.reason.replace("`", ""), 200)),  # the name of a group repeats words of rows
    )  # fmt: skip
    header = ("Task", "Name", "Bucket", "Cause", "Confidence", "Lost", "Value", "Tokens", "Why")
    return Table(header, (row,), "lllllrrrl")


def dossier(house: House, asked: arguments.Dossier) -> Answer:
    """All that is needed to judge one task, within a budget."""
    from blade.pipeline import reviewing

    session, run = house.session(asked)
    task = key_of(session, run, asked.task)
    budget = {} if asked.budget is None else {"budget": asked.budget}
    found = reviewing.dossier(session, task, run.name, **budget)
    if asked.format == "json":
        return told(msgspec.to_builtins(found), DOSSIER)
    return Answer(found.text)


def show(house: House, asked: arguments.Show) -> Answer:
    """The repeats of a task, or the steps of one of them."""
    session, run = house.session(asked)
    task = key_of(session, run, asked.task)
    traces = session.traces(run, task)
    if asked.repeat is None:
        return _task(asked, run.name, task, traces)
    chosen = [trace for trace in traces if trace.rollout.repeat == asked.repeat]
    if not chosen:
        there = ", ".join(str(trace.rollout.repeat) for trace in traces[:20]) or "none: its rows were lost"
        raise UsageError(
            f"task {line(task, 80)} has no repeat {asked.repeat}", f"its repeats are {there}", "unknown-task"
        )
    return _rollout(asked, run.name, chosen)


def _head(run: str, trace: Trace) -> dict[str, Any]:
    at = trace.rollout
    return {
        "run": run,
        "task": at.task,
        "task_name": at.task_name,
        "repeat": int(at.repeat),
        "reward": trace.row.get("reward"),
        "file": at.file,
        "line": int(at.line),
        "n_steps": len(trace.steps),
    }


def _task(asked: arguments.Show, run: str, task: str, traces: tuple[Trace, ...]) -> Answer:
    page = paged(
        traces, asked, lambda trace: _repeat(run, trace), lambda trace: (_repeats(_repeat(run, trace)),)
    )
    intro = [para("Each repeat with its last words; its number as repeat opens it step by step.")]
    title = f"Task {line(task, 80)} of {line(run, 80)}"
    return listed(asked, title, {"run": run, "task": task}, "repeats", page, intro, one_table)


def _repeat(run: str, trace: Trace) -> dict[str, Any]:
    said = [step.text for step in trace.steps if step.kind == "message" and step.text]
    calls = sum(step.kind == "call" for step in trace.steps)
    return {**_head(run, trace), "n_calls": calls, "last_words": said[-1] if said else ""}


def _repeats(one: dict[str, Any]) -> Table:
    counts = (str(one["repeat"]), line(quotable(one["reward"]), 20), str(one["n_steps"]), str(one["n_calls"]))
    row = cells(*counts, Code(line(one["last_words"], LAST)) if one["last_words"].strip() else "")
    return Table(("Repeat", "Reward", "Steps", "Calls", "Last words"), (row,), "rrrrl")


def _rollout(asked: arguments.Show, run: str, chosen: list[Trace]) -> Answer:
    trace = chosen[0]
    page = paged(
        trace.steps, asked, lambda step: _wire(step, asked.chars), lambda step: _step(step, asked.chars)
    )
    head = {**_head(run, trace), "rows_of_this_repeat": len(chosen), "steps_from": trace.steps_from}
    if asked.offset == 0:
        head |= {"fields": _fields(trace), "request": _request(trace, asked.chars)}
    return listed(asked, _title(head), head, "steps", page, _about(head, asked, page))


def _title(head: dict[str, Any]) -> str:
    return f"Task {line(head['task'], 80)} repeat {head['repeat']} of {line(head['run'], 80)}"


def _about(head: dict[str, Any], asked: arguments.Show, page: Page) -> list[Block]:
    """What stands before the steps; the row and the request on the first page only."""
    reward = line(quotable(head["reward"]), 40)
    where = (f"Reward {reward}, {head['n_steps']} steps from ", Code(head["steps_from"]))
    found: list[Block] = [para(*where, ", ", Code(line(head["file"], 200)), f", line {head['line']}.")]
    if head["rows_of_this_repeat"] > 1:
        found.append(para(f"{head['rows_of_this_repeat']} rows have this number; this is the first of them."))
    if asked.offset:
        return found
    items = [(Code(one["field"]), ": ", Code(one["value"])) for one in head["fields"]]
    found += [Bullets(tuple(items))] if items else []
    for turn in head["request"]:
        found.append(Quote(("Request, ", Code(turn["role"])), turn["text"]))
    return [*found, para("Steps:")] if page.count else found


def _fields(trace: Trace) -> list[dict[str, str]]:
    """What the row says beside the request and the steps; no name of a field becomes a key."""
    found = [(key, value) for key, value in trace.row.items() if key not in FRAMEWORK]
    return [
        {"field": line(str(key), 80), "value": line(quotable(value), FIELD)} for key, value in found[:FIELDS]
    ]


def _request(trace: Trace, chars: int) -> list[dict[str, str]]:
    params = trace.row.get("responses_create_params")
    asked = params.get("input") if isinstance(params, dict) else None
    turns = asked if isinstance(asked, list) else [asked] if asked else []
    found = [
        {"role": line(str(turn.get("role") or turn.get("type") or "other"), 40), "text": _text(turn, chars)}
        if isinstance(turn, dict)
        else {"role": "user", "text": quoted(quotable(turn), chars)}
        for turn in turns[:TURNS]
    ]
    left = len(turns) - TURNS
    return [*found, {"role": "left out", "text": f"{left} more turns"}] if left > 0 else found


def _text(turn: dict[str, Any], chars: int) -> str:
    content = turn.get("content", turn.get("output", turn.get("arguments")))
    if isinstance(content, list):
        parts = [part.get("text") if isinstance(part, dict) else part for part in content]
        content = "\n".join(quotable(part) for part in parts if part is not None)
    return quoted(content if isinstance(content, str) else quotable(content), chars)


def _wire(step: Any, chars: int) -> dict[str, Any]:
    """A step without what it does not say."""
    found = {key: value for key, value in msgspec.to_builtins(step).items() if value not in (None, "")}
    found = {key: value for key, value in found.items() if key not in ("arguments", "tokens")}
    return {
        **found,
        "text": quoted(step.text, chars),
        **({"reasoning": quoted(step.reasoning, chars)} if step.reasoning else {}),
    }


def _step(step: Any, chars: int) -> tuple[Block, ...]:
    about: tuple[Any, ...] = (f"Step {step.index}, {step.kind}",)
    about += (" ", Code(line(step.tool, 80))) if step.tool else ()
    about += (" (never answered)",) if step.answered is False else ()
    about += (" (failed)",) if step.failed else ()
    thought = (Quote(("Thinking",), quoted(step.reasoning, chars)),) if step.reasoning else ()
    said = (Quote(("Text",), quoted(step.text or "(empty)", chars)),) if step.text or not thought else ()
    return (Heading(about), *thought, *said)
