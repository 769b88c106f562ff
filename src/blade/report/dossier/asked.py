"""Say what a task asks and expects, and which of the expected calls the rollout made."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from blade import events, hostile
from blade.report.dossier import frame
from blade.report.dossier.case import Case

# Fields of a row that belong to the task rather than to its verdict.
TASK = re.compile(
    r"instruction|^question|^problem|^prompt|^task_(?:purpose|description)|^scenario|^goal$|^input$|^query$"
)
EXPECTED = re.compile(r"expected|^gold|ground_truth|^gt_|reference_|^target|^answer$|^solution$|answer_key")
_MAX_TOOLS = 40
_MAX_CALLS = 12


def lines(case: Case, room: int) -> list[str]:
    """The request, then what is expected, in at most about `room` tokens."""
    if case.focus is None:
        return []
    row = case.focus.row
    turns = list(_turns(row))
    fields = [(key, row[key]) for key in row if TASK.search(key) and isinstance(row[key], str) and row[key]]
    known = " ".join(text for _, text in turns)[:20_000]
    told: list[tuple[str, str, int]] = []
    for name, text in fields:
        if text[:200] not in known:
            told.append(("field", f"{hostile.line(name, 40)}: {text}", 4))
    system = [text for role, text in turns if role in ("system", "developer")]
    others = [(role, text) for role, text in turns if role not in ("system", "developer")]
    if others:
        told.append((f"first {others[0][0]} turn", others[0][1], 2 if told else 6))
    if len(others) > 1:
        told.append((f"last of {len(others)} turns", others[-1][1], 2))
    if system:
        told.append(("system prompt", "\n".join(system), 1))
    shares = sum(share for _, _, share in told) or 1
    found = []
    for name, text, share in told:
        found.append(frame.behind(name, text, max(12, room * share // shares)))
    return [*found, *_tools(row, room // 4)]


def expected(case: Case, room: int) -> list[str]:
    """The expected answer, and each expected call beside what the rollout did instead."""
    found = []
    if case.gold.answer is not None:
        found.append(frame.behind("expected answer", case.gold.answer, room // 2))
    actions = case.gold.actions[:_MAX_CALLS]
    for tool, arguments in actions:
        did, differs = made(case, tool, arguments)
        said = f"{hostile.line(tool, 60)} {events.compact(arguments)}{differs}"
        each = max(16, room // max(2, len(actions)))
        found.append(frame.behind(f"expected call, {did}", said, each))
    left = len(case.gold.actions) - len(actions)
    if left > 0:
        found.append(f"{left} more expected calls are left out")
    if found or case.focus is None:
        return found
    for key, value in case.focus.row.items():
        if EXPECTED.search(key) and value not in (None, "", [], {}):
            said = value if isinstance(value, str) else events.compact(value)
            found.append(frame.behind("expected", f"{hostile.line(key, 40)}: {said}", room // 2))
    return found[:4]


def made(case: Case, tool: str, arguments: Any) -> tuple[str, str]:
    """What the rollout in focus did about an expected call, in our words; and the arguments that differ."""
    same = [call for call in case.calls.values() if call.tool == tool]
    if not same:
        return "never called", ""
    want = events.canonical(arguments)
    hit = next((c for c in same if c.arguments is not None and events.canonical(c.arguments) == want), None)
    if hit is not None:
        return f"made at step {hit.step}{' (failed)' if hit.failed else ''}", ""
    return f"made otherwise at step {same[-1].step}", _differing(arguments, same[-1].arguments)


def _differing(want: Any, got: Any) -> str:
    if not isinstance(want, Mapping) or not isinstance(got, Mapping):
        return ""
    keys = sorted(str(key) for key in {*want, *got} if want.get(key) != got.get(key))
    return f" (differs in {', '.join(hostile.line(key, 24) for key in keys[:5])})" if keys else ""


def _tools(row: Mapping[str, Any], room: int) -> list[str]:
    names = list(events.declared_tools(row))
    if not names:
        return []
    said = ", ".join(hostile.line(name, 40) for name in names[:_MAX_TOOLS])
    return [frame.behind(f"{len(names)} tools", said, max(12, room))]


def _turns(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Role and text of each turn of the request."""
    params = row.get("responses_create_params")
    if not isinstance(params, Mapping):
        return
    if params.get("instructions"):
        yield "system", _said({"content": params["instructions"]})
    given = params.get("input")
    for item in given if isinstance(given, list) else [given]:
        role = item.get("role") if isinstance(item, Mapping) else "user"
        text = _said(item if isinstance(item, Mapping) else {"content": item})
        if text.strip():
            yield role if role in ("system", "developer", "user", "assistant") else "other", text


def _said(turn: Mapping[str, Any]) -> str:
    return events.prompt({"responses_create_params": {"input": [turn]}})
