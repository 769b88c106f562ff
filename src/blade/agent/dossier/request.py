"""State what a task asks and expects, which expected calls were made, and what the verifier left in the row."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from blade import events, hostile
from blade.agent.dossier import budget
from blade.agent.dossier.case import Case
from blade.model import Call, Trace

# Fields of a row that belong to the task rather than to its verdict.
TASK = re.compile(
    r"instruction|^question|^problem|^prompt|^task_(?:purpose|description)|^scenario|^goal$|^input$|^query$"
)
EXPECTED = re.compile(r"expected|^gold|ground_truth|^gt_|reference_|^target|^answer$|^solution$|answer_key")
_NAME = 80  # characters of a field's name that say what it holds
_ACTIONS = ("expected_actions", "gold_actions", "expected_tool_calls", "expected_calls")
_SYSTEM = 40  # tokens of a system prompt: all tasks share it, so it is read once elsewhere
_MAX_TOOLS = 40
_MAX_CALLS = 8  # expected calls that were not made as expected
_MAX_GOLD = 60
_SHORTEST, _LONGEST = 1, 120  # characters of an answer that is looked for


def request(case: Case, room: int) -> list[str]:
    """State the request in at most about `room` tokens."""
    if case.focus is None:
        return []
    # a row that broke may lack the request, which its siblings have
    rows = (trace.row for trace in (case.focus, *case.traces.values()))
    row = next((row for row in rows if next(_turns(row), None) is not None), case.focus.row)
    turns = list(_turns(row))
    fields = [
        (key, row[key]) for key in row if TASK.search(key[:_NAME]) and isinstance(row[key], str) and row[key]
    ]
    known = " ".join(text for _, text in turns)[:20_000]
    parts: list[tuple[str, str, int]] = []
    for name, text in fields:
        if text[:200] not in known:
            parts.append(("field", f"{hostile.line(name, 40)}: {text}", 4))
    system = [text for role, text in turns if role in ("system", "developer")]
    others = [(role, text) for role, text in turns if role not in ("system", "developer")]
    if others:
        parts.append((f"first {others[0][0]} turn", others[0][1], 2 if parts else 6))
    if len(others) > 1:
        parts.append((f"last of {len(others)} turns", others[-1][1], 2))
    if system:
        parts.append(("system prompt", "\n".join(system), 1))
    shares = sum(share for _, _, share in parts) or 1
    lines = []
    for name, text, share in parts:
        most = max(12, room * share // shares)
        if share == 1:
            lines.append(budget.behind(name, text, min(most, _SYSTEM)))
        else:
            lines += budget.several(name, text, most)
    return [*lines, *_tools(row, room // 4)]


def expected(case: Case, room: int) -> list[str]:
    """State the expected answer, and each expected call beside what the rollout did instead."""
    if case.focus is None:
        return []
    lines = []
    if case.gold.answer is not None:
        lines.append(budget.behind("expected answer", case.gold.answer, room // 2))
        lines += _occurrences(case, case.gold.answer)
    done, undone = _compared(case)
    each = max(20, room // max(2, min(len(undone), 4)))
    lines += [budget.behind(f"expected call, {did}", text, each) for did, text in undone[:_MAX_CALLS]]
    if done:
        lines.append(
            budget.behind("expected calls that were made, with their steps", ", ".join(done), room // 4)
        )
    left = len(undone) - _MAX_CALLS + max(0, len(case.gold.actions) - _MAX_GOLD)
    lines += [f"{left} more expected calls not listed"] if left > 0 else []
    lines += ["no call is expected: the list is empty" for key in _ACTIONS if case.focus.row.get(key) == []][
        :1
    ]
    known = (case.gold.answer_field, case.gold.actions_field)
    others = [key for key in case.focus.row if EXPECTED.search(key[:_NAME]) and key not in known]
    for key in others[:3]:
        value = case.focus.row[key]
        if value not in (None, "", [], {}):
            text = value if isinstance(value, str) else _listed(value)
            lines.append(budget.behind("expected, field", f"{hostile.line(key, 40)}: {text}", room // 2))
    return lines


def _occurrences(case: Case, answer: str) -> list[str]:
    """Say where the expected answer occurs word for word: in what tools returned, and in what the model said."""
    wanted = answer.strip()
    if case.focus is None or not _SHORTEST <= len(wanted) <= _LONGEST:
        return []
    word = re.compile(rf"(?<![\w.]){re.escape(wanted)}(?![\w]|\.\d)")
    hits = [step for step in case.focus.steps if word.search(events.step_text(step))]
    brought = [f"[{step.index}]" for step in hits if step.kind == "result"]
    spoken = [f"[{step.index}]" for step in hits if step.kind == "message"]
    results = f"in results {', '.join(brought[:5])}" if brought else "in no result"
    says = f"says it at {', '.join(spoken[:5])}" if spoken else "never says it"
    return [f"it occurs word for word {results}; the model {says}"]


def _listed(value: Any) -> str:
    """Spell a list of calls by name and arguments, and anything else as JSON."""
    if isinstance(value, list) and all(isinstance(each, Mapping) and "name" in each for each in value):
        return "; ".join(map(_call, value[:_MAX_GOLD]))
    return events.compact(value)


def _call(each: Mapping[str, Any]) -> str:
    arguments = each.get("arguments", each.get("kwargs", {}))
    return f"{each.get('requestor', '')} {each['name']} {events.compact(arguments)}".strip()


def _compared(case: Case) -> tuple[list[str], list[tuple[str, str]]]:
    """Split the expected calls into those made, with their step, and the others, with what was done instead."""
    free = [call for call in case.calls.values() if not call.failed]
    done: list[str] = []
    waiting: list[tuple[str, Any]] = []
    for tool, arguments in case.gold.actions[:_MAX_GOLD]:
        want = events.canonical(arguments)
        hit = next(
            (c for c in case.calls.values() if c.tool == tool and not c.failed and _spelled(c) == want), None
        )
        if hit is None:
            waiting.append((tool, arguments))
        else:
            free = [call for call in free if call.step != hit.step]
            done.append(f"{hostile.line(tool, 40)} [{hit.step}]")
    undone = []
    for tool, arguments in waiting:
        likely = [(_differing(arguments, call.arguments), call) for call in free if call.tool == tool]
        differs, call = min(likely, key=lambda each: len(each[0]), default=([], None))
        failed = next((c for c in case.calls.values() if c.tool == tool and c.failed), None)
        did = f"not made in repeat {case.focus.rollout.repeat}" if case.focus is not None else "never made"
        if call is not None:
            did = f"made differently at step {call.step}"
        elif failed is not None:
            did = f"made but failed, at step {failed.step}"
        names = f" (differs in {', '.join(hostile.line(key, 24) for key in differs[:5])})" if differs else ""
        undone.append((did, f"{hostile.line(tool, 60)} {events.compact(arguments)}{names}"))
    return done, undone


def _spelled(call: Call) -> str | None:
    return events.canonical(call.arguments) if call.arguments is not None else None


def _differing(want: Any, got: Any) -> list[str]:
    if not isinstance(want, Mapping) or not isinstance(got, Mapping):
        return ["arguments"]
    return sorted(str(key) for key in {*want, *got} if want.get(key) != got.get(key))


def _tools(row: Mapping[str, Any], room: int) -> list[str]:
    names = list(events.declared_tools(row))
    if not names:
        return []
    listing = ", ".join(hostile.line(name, 40) for name in names[:_MAX_TOOLS])
    return [budget.behind(f"{len(names)} tools", listing, max(12, room))]


def _turns(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield role and text of each turn of the request."""
    params = row.get("responses_create_params")
    if not isinstance(params, Mapping):
        return
    if params.get("instructions"):
        yield "system", _said({"content": params["instructions"]})
    turns = params.get("input")
    for item in turns if isinstance(turns, list) else [turns]:
        role = item.get("role") if isinstance(item, Mapping) else "user"
        text = _said(item if isinstance(item, Mapping) else {"content": item})
        if text.strip():
            yield role if role in ("system", "developer", "user", "assistant") else "other", text


def _said(turn: Mapping[str, Any]) -> str:
    return events.prompt({"responses_create_params": {"input": [turn]}})


_PASSED_OVER = frozenset(
    "responses_create_params response agent_ref skills_ref messages trajectory subagent_trajectories "
    "osworld_steps delegated_response ng_model_call_capture ng_agent_observations ng_trajectory ng_perf "
    "tools input judge_prompt reward task_id id uuid name task_name problem_id instance_id "
    "question_id".split()
)
_LOUD = re.compile(
    r"error|fail|exception|stderr|verdict|judge|reason|explan|rationale|feedback|check|message|assert|test"
    r"|verifier|valid|status|termination|rubric|grader",
    re.IGNORECASE,
)
_DULL = re.compile(
    r"cost|duration|_ms$|latency|^published|^run_id|hash|timestamp|_s$|^dataset", re.IGNORECASE
)
_MET = re.compile(r"(^|_)(met|passed|match|matched|success|succeeded|satisfied|correct|ok|valid)$")
_NAMES = ("name", "func_name", "criterion", "criteria", "check", "test", "instruction", "rule", "title")
_WORTH = 160  # characters of a value beyond which the failed checks in it come first
_MAX_NODES, _MAX_ITEMS, _MAX_UNMET = 400, 40, 8
_MAX_FIELDS = 16
_LONG = 200_000  # characters of a value beyond which only its beginning is spelled


def verdict(trace: Trace | None, each: int) -> list[str]:
    """List the fields that may hold a verdict, the telling ones first, each in about `each` tokens."""
    if trace is None:
        return []
    lines = [f"reward {'none' if trace.rollout.reward is None else repr(trace.rollout.reward)}"]
    quiet: list[str] = []
    fields = sorted(
        _fields(trace.row), key=lambda field: (not _LOUD.search(field[0]), bool(_DULL.search(field[0])))
    )
    n_left = max(0, len(fields) - _MAX_FIELDS)
    for name, value in fields[:_MAX_FIELDS]:
        text = value if isinstance(value, str) else _as_text(value)
        unmet = _unmet(value) if len(text) > _WORTH else []
        if unmet:
            text = f"not met: {', '.join(unmet)}; {text}"
        size = each if _LOUD.search(name) else each // 3
        if len(text) <= 24 and not _LOUD.search(name):
            quiet.append(f"{hostile.line(name, 40)}={hostile.line(text)}")
        else:
            lines.append(budget.behind("field", f"{hostile.line(name, 60)}: {text}", max(12, size)))
    if quiet:
        lines.append(budget.behind("other fields", ", ".join(quiet), each))
    return [*lines, f"{n_left} more fields"] if n_left else lines


def _unmet(value: Any) -> list[str]:
    """Name the checks inside a value that were not met."""
    unmet: list[str] = []
    waiting: list[tuple[str, Any]] = [("", value)]
    for _ in range(_MAX_NODES):
        if not waiting:
            break
        name, inner = waiting.pop()
        if isinstance(inner, Mapping):
            name = next((str(inner[key]) for key in _NAMES if isinstance(inner.get(key), str)), name)
            parts = [each for each in inner.values() if isinstance(each, Mapping)]
            deep = (each[key] for each in parts for key in _NAMES if isinstance(each.get(key), str))
            named = hostile.line(name or next(deep, ""), 60)
            failed = [str(key) for key, each in inner.items() if each is False and _MET.search(str(key))]
            unmet += [
                f"{named} ({hostile.line(key, 30)})" if named else hostile.line(key, 30) for key in failed
            ]
            waiting += [("", each) for each in list(inner.values())[::-1] if isinstance(each, Mapping | list)]
        elif isinstance(inner, list):
            waiting += [("", each) for each in reversed(inner[:_MAX_ITEMS])]
    return list(dict.fromkeys(unmet))[:_MAX_UNMET]


def _fields(row: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    response = row.get("response")
    if isinstance(response, Mapping):
        for key in ("error", "incomplete_details"):
            if response.get(key):
                yield f"response.{key}", response[key]
        if response.get("status") not in (None, "completed"):
            yield "response.status", response["status"]
    elif "response" not in row or response is None:
        yield "response", "missing" if "response" not in row else "null"
    for key, value in row.items():
        name = key[:_NAME]
        if key in _PASSED_OVER or key.startswith("_ng_") or value in (None, "", [], {}):
            continue
        if isinstance(value, str) and TASK.search(name):
            continue
        if EXPECTED.search(name) or _DULL.search(name):
            continue
        yield name, value


def _as_text(value: Any) -> str:
    try:
        return events.compact(value)[:_LONG]
    except (TypeError, ValueError, RecursionError):
        return repr(value)[:_LONG]
