"""Turn the rollouts of one task into the lines in which something tells of an error."""

from __future__ import annotations

import sys
from bisect import bisect
from collections import Counter
from collections.abc import Iterator

import msgspec

from blade import events
from blade.model import Call, Episode, TaskTraces
from blade.signatures import fields, wording

TOOL = "tool"
MAX_LINES = 20  # of one rollout
_MAX_CALLS = 2000  # failed calls of one rollout that are looked at


class Line(msgspec.Struct, frozen=True):
    """One error text of one rollout; equal texts of one source are one line."""

    position: int  # of the row in `Rollouts`
    sort: str  # tool, error, code, check, prose
    source: str  # a field, or `tool NAME`
    kind: str  # the class
    masked: str
    quote: str  # the informative line, exactly as it stands in the step or field
    step: int | None
    field: str | None
    times: int = 1  # how often the rollout shows it
    comparable: bool = False  # the same action was taken in the same state elsewhere in the task
    mixed: bool = False  # ... and had another outcome there


def observe(task: TaskTraces) -> list[Line]:
    """The error texts of every rollout of a task."""
    calls = _calls(task)
    empty = [episode.position for episode in task.episodes if not episode.trace.steps]
    found: list[Line] = []
    for episode in task.episodes:
        of_row: dict[tuple[str, str], Line] = {}
        for line in (*_of_fields(episode), *calls.get(episode.position, ())):
            key = (line.source, line.masked)
            if key in of_row:
                before = of_row[key]
                of_row[key] = msgspec.structs.replace(
                    before,
                    times=before.times + 1,
                    comparable=before.comparable or line.comparable,
                    mixed=before.mixed or line.mixed,
                )
            elif len(of_row) < MAX_LINES:
                of_row[key] = line
        found += of_row.values()
    return _with_requests(found, set(empty), len(task.episodes))


# ---- Fields ------------------------------------------------------------------------------------


def _of_fields(episode: Episode) -> Iterator[Line]:
    seen: list[str] = []
    for one in fields.told(episode.trace.row):
        if one.sort == fields.PROSE and episode.passed:
            continue  # whoever explains a pass tells of no error
        text = one.text.strip()
        in_words = one.sort in (fields.ERROR, fields.PROSE)
        line = wording.informative(text) if in_words else text[: wording.LONGEST]
        if not line:
            continue
        masked = wording.masked(line) if in_words else line
        if one.sort == fields.ERROR:
            # A traceback repeats the message beside it: one error, told twice.
            if any(masked in other or other in masked for other in seen):
                continue
            seen.append(masked)
            at = wording.frame(text)
            masked = f"{masked} at {at}" if at else masked
        yield Line(
            episode.position,
            one.sort,
            sys.intern(one.source),
            sys.intern(_kind(one, line)),
            sys.intern(masked),
            fields.quote(one, line),
            None,
            one.field,
        )


def _kind(one: fields.Told, line: str) -> str:
    if one.sort == fields.CODE:
        return f"exit {line}" if line.lstrip("-").isdigit() else line[:60]
    if one.sort == fields.CHECK:
        return "check not met"
    kind = wording.kind(line)
    return "explanation" if one.sort == fields.PROSE and kind[:1].islower() else kind


# ---- Calls -------------------------------------------------------------------------------------


def _calls(task: TaskTraces) -> dict[int, list[Line]]:
    """The failed calls by row, compared with the same calls in the same state elsewhere in the task."""
    if not any(call.failed for episode in task.episodes for call in episode.calls):
        return {}
    taken: Counter[int] = Counter()
    failed: list[tuple[Episode, Call, int, str, str]] = []
    for episode in task.episodes:
        n_failed = 0
        for call, action in _actions(episode):
            taken[action] += 1
            if call.failed and n_failed < _MAX_CALLS:
                n_failed += 1
                line = wording.informative(wording.told(call.output))
                failed.append((episode, call, action, line, wording.masked(line)))
    outcomes = Counter((action, masked) for _, _, action, _, masked in failed)
    found: dict[int, list[Line]] = {}
    for episode, call, action, line, masked in failed:
        place = call.result_step if call.result_step is not None else call.step
        quote = line if line and line in _text(episode, place) else _text(episode, place)[: wording.LONGEST]
        if quote:
            found.setdefault(episode.position, []).append(
                Line(
                    episode.position,
                    TOOL,
                    sys.intern(f"tool {call.tool}"),
                    sys.intern(wording.kind(line)),
                    sys.intern(masked or "(no text)"),
                    quote,
                    place,
                    None,
                    comparable=taken[action] > 1,
                    mixed=outcomes[action, masked] < taken[action],
                )
            )
    return found


def _text(episode: Episode, index: int) -> str:
    steps = episode.trace.steps
    return events.step_text(steps[index]) if 0 <= index < len(steps) else ""


def _actions(episode: Episode) -> Iterator[tuple[Call, int]]:
    """Each call with what it was and what had been done before it: equal numbers are the same experiment."""
    users = [step.index for step in episode.trace.steps if step.kind == "user"] if episode.has_user else []
    state = 0
    for call in episode.calls:
        yield call, hash((state, bisect(users, call.step), call.key))
        # A shell keeps a folder and variables, so any command may matter to the next.
        in_shell = events.command_of(call.tool, call.arguments) is not None
        if in_shell or (call.does == events.WRITE and not call.failed):
            state = hash((state, call.key))


# ---- Requests ----------------------------------------------------------------------------------


def _with_requests(found: list[Line], empty: set[int], n_rows: int) -> list[Line]:
    """Errors of rows without a step: the request is the action, and other repeats made the same one."""
    alike = Counter((line.source, line.masked) for line in found)
    return [
        msgspec.structs.replace(line, comparable=True, mixed=alike[line.source, line.masked] < n_rows)
        if line.position in empty and line.sort == fields.ERROR and n_rows > 1
        else line
        for line in found
    ]
