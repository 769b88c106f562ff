"""Turn a row into what it says of its own end: errors, limits, token use, why it stopped."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from blade.events import step_text
from blade.model import Call, Episode, Trace

HOLDERS = ("", "verifier", "verifier_metadata", "metadata", "info", "result")
_NOTHING = frozenset(("", "none", "null", "no_error", "ok", "success", "false", "[]", "{}"))

# A row says that something broke around the model when one of these holds a text, a code or a yes.
_ERRORS = (
    "failure_kind error exception_type exception agent_error_kind error_kind verifier_error judge_error "
    "evaluation_error memory_limit_exceeded_error context_length_exceeded_error"
).split()
_STOPS = "termination_reason stop_reason finish_reason exit_reason exit_status end_reason".split()
_ERROR_NAMES, _STOP_NAMES = frozenset(_ERRORS), frozenset(_STOPS)

OVERFLOW = re.compile(
    r"context[ _-]?(?:length|window)[ _-]?(?:\w+[ _-]){0,3}(?:exceed|error|overflow)"
    r"|exceed\w*(?: \S+){0,5} context[ _-](?:length|window)|maximum context"
    r"|(?:prompt|input|request) is too long|ContextWindowExceeded|context_overflow"
    r"|too many (?:input )?tokens",
    re.IGNORECASE,
)
TIMEOUT = re.compile(
    r"\btimed?[ _-]?out\b|\btimeout(?:s|ed|error|exception|expired)?\b|\b\w+Timeout\b"
    r"|_timeout\b|timeout_exceeded|\bdeadline[ _]exceeded\b",
    re.IGNORECASE,
)
# How simulated users end a conversation: ###STOP###, [END], <done>.
_CLOSED = re.compile(
    r"(?:#{2,}|[<\[])/?\s*(?:STOP|END|DONE|EXIT|TRANSFER|TERMINATE|FINISHED|OUT[ _-]OF[ _-]SCOPE)\b",
    re.IGNORECASE,
)
# Status codes count only beside a word that makes them one.
INFRA = re.compile(
    r"\b(?:HTTP(?:/\d(?:\.\d)?)?|(?:status|error)(?:[ _]?code)?|code|response)\W{0,4}(?:429|5[0-2]\d)\b"
    r"|\b(?:429|50[0-4])\W{1,3}(?:too many|internal server|bad gateway|service unavail|gateway time)"
    r"|\bECONN\w+|\bENOTFOUND\b|\bEAI_AGAIN\b|\bENOSPC\b|\bsocket hang up\b"
    r"|\bconnection (?:was |has been )?(?:reset|refused|aborted|lost)\b"
    r"|\bOOM-?Killed\b|\bexit(?:ed)?(?: with)?(?: code| status)?:? *137\b"
    r"|\bsandbox\b[^\n]{0,40}\b(?:fail\w*|crash\w*|died|unavailable|(?:did|could|was) not (?:start|run)\w*)\b"
    r"|\bfailed to (?:start|create|launch) (?:the )?(?:sandbox|container|environment|session|browser)\b"
    r"|\btemporary failure in name resolution|\bcould not resolve host|\bgetaddrinfo failed"
    r"|\bDNS (?:error|lookup|resolution)?\W?(?:fail\w*|error)|\bno space left on device\b"
    r"|\brate limit (?:exceeded|reached|hit)\b|\btoo many requests\b|\bquota exceeded\b"
    r"|\binternal server error\b|\bservice (?:is )?(?:temporarily )?unavailable\b|\bbad gateway\b"
    r"|\b\w*(?:APIConnection|APIStatus|RateLimit|InternalServer|ServiceUnavailable)Error\b",
    re.IGNORECASE,
)


def value_at(row: Mapping[str, Any], path: str) -> Any:
    """The value at a dotted path; None if there is none."""
    value: Any = row
    for key in path.split("."):
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


def fields(row: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Every top-level field and every field of what verifiers and runners nest: path, name, value."""
    for holder in HOLDERS:
        inner = row.get(holder) if holder else row
        if isinstance(inner, dict):
            for name, value in inner.items():
                yield (f"{holder}.{name}" if holder else name), name, value


def first_of(row: Mapping[str, Any], names: tuple[str, ...]) -> tuple[str, Any] | None:
    """The first of these fields that the row fills, wherever it nests it."""
    for holder in HOLDERS:
        inner = row.get(holder) if holder else row
        if isinstance(inner, dict):
            for name in names:
                if inner.get(name) is not None:
                    return (f"{holder}.{name}" if holder else name), inner[name]
    return None


def errors(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The errors that a row itself carries, as field and text; the response's own first."""
    told = _error_text(value_at(row, "response.error"))
    if told:
        yield "response.error", told
    if not _ERROR_NAMES.isdisjoint(row):
        for name in _ERRORS:
            text = _error_text(row.get(name))
            if text:
                yield name, text
    for holder in ("verifier", "verifier_metadata", "metadata", "info"):
        inner = row.get(holder)
        text = _error_text(inner.get("verifier_error")) if isinstance(inner, dict) else ""
        if text:
            yield f"{holder}.verifier_error", text


def is_overflow(field: str, text: str) -> bool:
    """Whether an error of the row is about the length of the context, which has a rule of its own."""
    return "context_length" in field or OVERFLOW.search(text) is not None


def _error_text(value: Any) -> str:
    if value is None or value is False or (isinstance(value, int | float) and not isinstance(value, bool)):
        return ""
    if isinstance(value, Mapping):  # a provider's error object
        parts = [str(value[key]) for key in ("code", "type", "message") if value.get(key)]
        value = " ".join(parts) or (str(dict(value)) if value else "")
    text = str(value).strip()
    return "" if text.casefold() in _NOTHING else text[:2000]


def stop_reason(row: Mapping[str, Any]) -> tuple[str, str] | None:
    """Why the rollout ended, in the word of the row: field and value."""
    for holder, inner in (("", row), ("response.", row.get("response"))):
        if isinstance(inner, dict) and not _STOP_NAMES.isdisjoint(inner):
            for name in _STOPS:
                value = inner.get(name)
                if isinstance(value, str) and value:
                    return f"{holder}{name}", value[:200]
    return None


def used(row: Mapping[str, Any], name: str) -> int | None:
    """Tokens that the response says it used: input_tokens, output_tokens."""
    value = value_at(row, f"response.usage.{name}")
    return (
        int(value) if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0 else None
    )


def token_limit(row: Mapping[str, Any]) -> int | None:
    """How many tokens the model may write in one go."""
    for path in (
        "responses_create_params.max_output_tokens",
        "response.max_output_tokens",
        "responses_create_params.max_tokens",
    ):
        value = value_at(row, path)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return None


def cut_by(trace: Trace) -> str | None:
    """The field in which a row says that its text was cut at a token limit; None if it does not."""
    row = trace.row
    reason = value_at(row, "response.incomplete_details.reason")
    if reason in ("max_output_tokens", "max_tokens", "length"):
        return "response.incomplete_details.reason"
    stopped = stop_reason(row)
    if stopped is not None and stopped[1] in ("length", "max_tokens", "max_output_tokens"):
        return stopped[0]
    limit, written = token_limit(row), used(row, "output_tokens")
    one_go = n_turns(trace) <= 1  # the use of several turns adds up, the limit holds for each
    if limit is not None and written is not None and one_go and written >= 0.99 * limit:
        return "response.usage.output_tokens"
    items = value_at(row, "response.output")
    last = items[-1] if isinstance(items, list) and items else None
    if isinstance(last, Mapping) and last.get("status") == "incomplete" and reason in (None, ""):
        return "response.status" if value_at(row, "response.status") == "incomplete" else "response.output"
    if value_at(row, "response.status") == "incomplete" and reason in (None, ""):
        return "response.status"
    return None


def n_turns(trace: Trace) -> int:
    """Model turns: runs of items that the model made without being answered in between."""
    turns, in_turn = 0, False
    for step in trace.steps:
        by_model = step.kind in ("message", "reasoning", "call")
        turns += by_model and not in_turn
        in_turn = by_model
    return turns


def is_open(episode: Episode) -> bool:
    """Whether the rollout ends without the model's last word: no final text, or somebody else spoke last."""
    last = episode.trace.steps[-1] if episode.trace.steps else None
    if last is not None and last.kind == "user" and _CLOSED.search(last.text[-200:]):
        return False
    spoke = last is not None and last.kind in ("message", "reasoning")
    return not episode.final.strip() or (episode.has_user and not spoke)


def is_silent(trace: Trace) -> bool:
    """A row without output items and without token use: the model was never asked, or never heard."""
    return not trace.steps and not used(trace.row, "output_tokens")


def last_quotable(episode: Episode) -> int:
    """The last step that says anything; -1 if none does."""
    return next((step.index for step in reversed(episode.trace.steps) if step_text(step)), -1)


def successes(episode: Episode) -> dict[str, int]:
    """The last step at which each tool worked."""
    return {
        call.tool: call.step for call in episode.calls if not call.failed and call.result_step is not None
    }


def result_place(call: Call) -> int:
    """Where a call's result stands, or the call itself."""
    return call.result_step if call.result_step is not None else call.step
