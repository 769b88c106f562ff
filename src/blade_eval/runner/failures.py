"""Turn what kept a rollout from its reward into a line of the failures file."""

from __future__ import annotations

from blade_eval.environment import JUDGE_UNREACHED, Row, Unmeasured

_MOST = 2_000  # characters of a foreign text
_APPENDED = ("agent_ref", "task_source", "skills_ref")
_OURS = frozenset(("_ng_task_index", "_ng_rollout_index", "_ng_attempt_index", *_APPENDED))
_OF_THE_ROW = (400, 413, 414, 415, 422, 431, 451)  # statuses by which a server answers: not this request


def unmeasured(error: Exception) -> Unmeasured:
    """Any exception of a rollout as one of few kinds: a verifier's bug is not the model's failure."""
    if isinstance(error, Unmeasured):
        return error
    if isinstance(error, TimeoutError):
        return Unmeasured("timeout_exceeded", str(error) or "no answer in time")
    told = Unmeasured("agent_run_error", str(error) or "no reason given")
    told.fields = {"_ng_failure_type": type(error).__name__}
    return told


def is_endpoint(failure: Unmeasured) -> bool:
    """Whether a failure speaks of the model or agent server rather than of the rollout.

    A server that refuses one request with a reason has answered, and answers the next one.
    """
    status = failure.fields.get("_ng_failure_http_status")
    if failure.terminal or status in _OF_THE_ROW or (failure.kind == "model_refused" and status is None):
        return False
    return failure.kind.startswith(("model_", "transport_")) or failure.kind in (
        "agent_request_failed",
        "environment_server_failed",
    )


def is_judge(failure: Unmeasured) -> bool:
    """Whether a failure speaks of the judge's server in the same way."""
    is_unreached = failure.fields.get("_ng_failure_type") == JUDGE_UNREACHED
    status = failure.fields.get("_ng_failure_http_status")
    return is_unreached and not failure.terminal and status not in _OF_THE_ROW


def stamped(result: Row, row: Row, earlier: int) -> Row:
    """A result row with what the framework appends, in its order."""
    if not _OURS.isdisjoint(result):
        result = {key: value for key, value in result.items() if key not in _OURS}
    return result | _appended(row, earlier)


def _appended(row: Row, earlier: int) -> Row:
    tail = {"_ng_task_index": row["_ng_task_index"], "_ng_rollout_index": row["_ng_rollout_index"]}
    tail |= {key: row[key] for key in _APPENDED if row.get(key) is not None}
    if earlier:
        tail["_ng_attempt_index"] = earlier
    if row.get("_ng_rollout_id") is not None:
        tail["_ng_rollout_id"] = row["_ng_rollout_id"]
    return tail


def line(failure: Unmeasured, row: Row, earlier: int) -> Row:
    """One failed attempt; it has no reward, because none was measured."""
    fields = {key: value for key, value in failure.fields.items() if key != "reward"}
    reason = failure.reason if len(failure.reason) <= _MOST else failure.reason[:_MOST] + "…"
    told: Row = {
        "_ng_failure_class": failure.kind,
        "_ng_failure_type": fields.pop("_ng_failure_type", type(failure).__name__),
        "_ng_failure_message": reason,
    }
    for key in ("_ng_failure_http_status", "_ng_failure_response_body", "_ng_failure_stage"):
        if fields.get(key) is not None:
            told[key] = fields.pop(key)
    if failure.kind.startswith("judge"):
        told["_ng_failure_judge_error"] = reason
    if failure.terminal:
        told["_ng_failure_terminal"] = True
    told |= {"mask_sample": True, "failure_kind": failure.kind, "failure_reason": reason}
    return stamped({**fields, **told}, row, earlier)
