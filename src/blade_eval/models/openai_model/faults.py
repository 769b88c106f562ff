"""Find what an answer that is no answer means: another try, another form, or the end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from blade import refusal
from blade.backoff import asked_wait
from blade_eval.models.openai_model.chat import ChatForm

_CUT = 2000  # characters of a body that a failure line keeps
_AGAIN = frozenset({408, 409, 425, 429})
_LIMITS = ("max_tokens", "max_completion_tokens")  # what chats call it; the second is tried after the first


class Fault(Exception):
    """A try without an answer."""

    def __init__(
        self, kind: str, text: str, *, again: bool = False, status: int | None = None, body: str = ""
    ) -> None:
        super().__init__(text)
        self.kind, self.text, self.status, self.body = kind, text, status, body
        self.again = again  # worth another try
        self.is_terminal = False  # the same request fails on every later day too
        self.wait: float | None = None  # seconds that the server asks for


def of_status(status: int, body: str, headers: Mapping[str, str]) -> Fault:
    """The fault of an HTTP status other than 200."""
    said = said_in(body)
    text = f"it answered {status}" + (f": {said}" if said else "")
    if status == 402 or (status == 429 and refusal.has_no_credit(said)):
        return Fault("model_refused", f"{text} (no credit is left)", status=status, body=body)
    if status in _AGAIN or (status >= 500 and status != 501):
        kind = {429: "model_rate_limited", 408: "model_timeout"}.get(status, "model_unreachable")
        fault = Fault(kind, text, again=True, status=status, body=body)
        fault.wait = asked_wait(headers)
        return fault
    if (
        status in (400, 413, 422)
        and refusal.is_too_long(said)
        and not any(refusal.refuses(name, said) for name in _LIMITS)
    ):
        fault = Fault("context_length_exceeded", text, status=status, body=body)
        fault.is_terminal = True
        return fault
    if 300 <= status < 400:
        text += " (redirects are not followed)"
    return Fault("model_refused", text, status=status, body=body)


def in_body(error: Any, body: str) -> Fault:
    """The fault of an error object that came where an answer should be."""
    said = refusal.words({"error": error})
    if refusal.is_too_long(said):
        fault = Fault("context_length_exceeded", said, body=body)
        fault.is_terminal = True
        return fault
    return Fault("model_garbage", f"an error in place of the answer: {said}", again=True, body=body)


def is_without_model(fault: Fault) -> bool:
    """Does a refusal mean that the server does not have the model."""
    return refusal.has_no_model(said_in(fault.body))


def has_no_responses(fault: Fault) -> bool:
    """Does a refusal mean that the server has no Responses API, rather than not this model."""
    if fault.status in (404, 405, 501):
        return not is_without_model(fault)
    is_refusal = fault.status in (400, 415, 422) and fault.kind == "model_refused"
    return is_refusal and refusal.has_no_responses(said_in(fault.body))


def simpler(form: ChatForm, fault: Fault) -> ChatForm | None:
    """The form of a chat request that a refusal asks for, or None; the limit is renamed, never dropped."""
    said = said_in(fault.body)
    if fault.status not in (400, 422) or fault.kind != "model_refused":
        return None
    if form.has_reasoning and "reasoning_content" in said:
        return msgspec.structs.replace(form, has_reasoning=False)
    first, second = _LIMITS
    if form.limit == first and refusal.refuses(first, said):
        return msgspec.structs.replace(form, limit=second)
    return None


def said_in(body: str) -> str:
    """What an error body says."""
    return refusal.words(_decoded(body))


def _decoded(body: str) -> Any:
    """The object of an error body, or its text where it is none."""
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return body


def cut(text: str) -> str:
    """A body as a failure line keeps it."""
    return text if len(text) <= _CUT else text[:_CUT] + "…"
