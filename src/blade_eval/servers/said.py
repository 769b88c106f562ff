"""Say over HTTP that a reward was not measured, and understand it on the other side."""

from __future__ import annotations

from typing import Any

import msgspec

from blade.endpoint.faults import cut
from blade_eval.environment import Row, Unmeasured


def failure(unmeasured: Unmeasured) -> tuple[int, Row]:
    """The status and the body of a failure; another attempt helps against 503, never against 500."""
    body = {
        "failure_class": unmeasured.kind,
        "reason": unmeasured.reason,
        "terminal": unmeasured.terminal,
        "fields": unmeasured.fields,
    }
    return (500 if unmeasured.terminal else 503), body


def understood(status: int, content: bytes) -> Unmeasured:
    """What an answer other than 200 means."""
    try:
        found: Any = msgspec.json.decode(content)
    except (msgspec.DecodeError, RecursionError, ValueError):
        found = None
    if isinstance(found, dict) and isinstance(found.get("failure_class"), str):
        fields = found.get("fields")
        return Unmeasured(
            found["failure_class"],
            str(found.get("reason") or ""),
            terminal=found.get("terminal") is True,
            fields=fields if isinstance(fields, dict) else None,
        )
    told = cut(content.decode("utf-8", "replace"))
    fields = {"_ng_failure_http_status": status, "_ng_failure_response_body": told}
    return Unmeasured("agent_request_failed", f"the agent server answered {status}", fields=fields)


def routed(result: Row) -> Row:
    """A result row; one that the server itself labels as a failure is none."""
    kind = result.get("_ng_failure_class")
    if not isinstance(kind, str):
        return result
    reason = (
        result.get("failure_reason") or result.get("_ng_failure_judge_error") or "the server gave no reason"
    )
    raise Unmeasured(
        kind,
        cut(str(reason)),
        terminal=result.get("_ng_failure_terminal") is True,
        fields={key: value for key, value in result.items() if key != "_ng_failure_class"},
    )
