"""Quote what the verifier left in a row: rewards, errors, checks that failed, words of judges."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from blade import events, hostile
from blade.agent.dossier import asked, frame
from blade.model import Trace

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
_NAME = 80
_LONG = 200_000  # characters of a value beyond which only its beginning is spelled


def lines(trace: Trace | None, each: int) -> list[str]:
    """List the fields that may hold a verdict, the telling ones first, each in about `each` tokens."""
    if trace is None:
        return []
    found = [f"reward {'none' if trace.rollout.reward is None else repr(trace.rollout.reward)}"]
    quiet: list[str] = []
    fields = sorted(
        _fields(trace.row), key=lambda one: (not _LOUD.search(one[0]), bool(_DULL.search(one[0])))
    )
    n_left = max(0, len(fields) - _MAX_FIELDS)
    for name, value in fields[:_MAX_FIELDS]:
        said = value if isinstance(value, str) else _spelled(value)
        unmet = _unmet(value) if len(said) > _WORTH else []
        if unmet:
            said = f"not met: {', '.join(unmet)}; {said}"
        size = each if _LOUD.search(name) else each // 3
        if len(said) <= 24 and not _LOUD.search(name):
            quiet.append(f"{hostile.line(name, 40)}={hostile.line(said)}")
        else:
            found.append(frame.behind("field", f"{hostile.line(name, 60)}: {said}", max(12, size)))
    if quiet:
        found.append(frame.behind("other fields", ", ".join(quiet), each))
    return [*found, f"{n_left} more fields"] if n_left else found


def _unmet(value: Any) -> list[str]:
    """Name the checks inside a value that were not met."""
    found: list[str] = []
    waiting: list[tuple[str, Any]] = [("", value)]
    for _ in range(_MAX_NODES):
        if not waiting:
            break
        name, inner = waiting.pop()
        if isinstance(inner, Mapping):
            name = next((str(inner[key]) for key in _NAMES if isinstance(inner.get(key), str)), name)
            held = [one for one in inner.values() if isinstance(one, Mapping)]
            deep = (one[key] for one in held for key in _NAMES if isinstance(one.get(key), str))
            named = hostile.line(name or next(deep, ""), 60)
            failed = [str(key) for key, one in inner.items() if one is False and _MET.search(str(key))]
            found += [
                f"{named} ({hostile.line(key, 30)})" if named else hostile.line(key, 30) for key in failed
            ]
            waiting += [("", one) for one in list(inner.values())[::-1] if isinstance(one, Mapping | list)]
        elif isinstance(inner, list):
            waiting += [("", one) for one in reversed(inner[:_MAX_ITEMS])]
    return list(dict.fromkeys(found))[:_MAX_UNMET]


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
        if isinstance(value, str) and asked.TASK.search(name):
            continue
        if asked.EXPECTED.search(name) or _DULL.search(name):
            continue
        yield name, value


def _spelled(value: Any) -> str:
    try:
        return events.compact(value)[:_LONG]
    except (TypeError, ValueError, RecursionError):
        return repr(value)[:_LONG]
