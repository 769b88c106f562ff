"""Find what an answer that is no answer means: another try, another form, or the end."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from blade.backoff import asked_wait
from blade.evaluate.models.openai_model.chat import ChatForm

_CUT = 2000  # characters of a body that a failure line keeps
_AGAIN = frozenset({408, 409, 425, 429})
_LIMITS = ("max_tokens", "max_completion_tokens")  # what chats call it; the second is tried after the first
_NO_MODEL = re.compile(
    r"model_not_found|\bmodel\b.{0,200}\b(?:does not exist|not found|not exist|unknown)\b", re.I | re.S
)
# A parameter that is not supported, an image's URL that is invalid and a link to a manual's page about
# responses are no missing route.
_NO_ROUTE = re.compile(
    r"\b(?:unknown|invalid|unrecogni[sz]ed|unsupported|no such) (?:request )?(?:(?:api )?(?:endpoint|route)\b"
    r"|(?:url|path)\b\W{0,3}(?:post )?\S*/responses\b(?!/))"
    r"|(?:\b(?:endpoint|route|responses api)|/responses(?!/))\b.{0,30}"
    r"(?:not (?:supported|implemented|available|found|exist)|unsupported)",
    re.IGNORECASE,
)
_NOT_KNOWN = r"un(?:supported|known|recogni[sz]ed|expected)|not (?:supported|permitted|allowed|recogni[sz]ed)"
# OpenAI, vLLM, SGLang, llama.cpp, TGI and Anthropic each have their own words for the same.
_TOO_LONG = re.compile(
    r"context_length_exceeded|context[ _]?(?:length|window|size)"
    r"|maximum (?:context|model|input|prompt) length|max_model_len|prompt is too long|input (?:is )?too long"
    r"|exceeds? .{0,40}\bcontext\b|inputs? tokens? \+",
    re.IGNORECASE,
)


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
    if status == 402 or (status == 429 and "insufficient_quota" in _codes(body)):
        return Fault("model_refused", f"{text} (no credit is left)", status=status, body=body)
    if status in _AGAIN or (status >= 500 and status != 501):
        kind = {429: "model_rate_limited", 408: "model_timeout"}.get(status, "model_unreachable")
        fault = Fault(kind, text, again=True, status=status, body=body)
        fault.wait = asked_wait(headers)
        return fault
    if (
        status in (400, 413, 422)
        and _TOO_LONG.search(said)
        and not any(_refuses(name, said) for name in _LIMITS)
    ):
        fault = Fault("context_length_exceeded", text, status=status, body=body)
        fault.is_terminal = True
        return fault
    if 300 <= status < 400:
        text += " (redirects are not followed)"
    return Fault("model_refused", text, status=status, body=body)


def in_body(error: Any, body: str) -> Fault:
    """The fault of an error object that came where an answer should be."""
    said = _words({"error": error})
    if _TOO_LONG.search(said):
        fault = Fault("context_length_exceeded", said, body=body)
        fault.is_terminal = True
        return fault
    return Fault("model_garbage", f"an error in place of the answer: {said}", again=True, body=body)


def _refuses(name: str, said: str) -> bool:
    """Does the server not know a parameter of that name, rather than dislike its value."""
    if re.search(
        r"unsupported[ _]value|invalid_value|too (?:large|big|high|small)|at (?:most|least)", said, re.I
    ):
        return False
    named = rf"\b{name}\b"
    return (
        re.search(rf"(?:{_NOT_KNOWN}).{{0,40}}{named}|{named}.{{0,60}}(?:{_NOT_KNOWN})", said, re.I)
        is not None
    )


def is_without_model(fault: Fault) -> bool:
    """Does a refusal mean that the server does not have the model."""
    return _NO_MODEL.search(said_in(fault.body)) is not None


def has_no_responses(fault: Fault) -> bool:
    """Does a refusal mean that the server has no Responses API, rather than not this model."""
    if fault.status in (404, 405, 501):
        return not is_without_model(fault)
    is_refusal = fault.status in (400, 415, 422) and fault.kind == "model_refused"
    return is_refusal and _NO_ROUTE.search(said_in(fault.body)) is not None


def simpler(form: ChatForm, fault: Fault) -> ChatForm | None:
    """The form of a chat request that a refusal asks for, or None; the limit is renamed, never dropped."""
    said = said_in(fault.body)
    if fault.status not in (400, 422) or fault.kind != "model_refused":
        return None
    if form.has_reasoning and "reasoning_content" in said:
        return msgspec.structs.replace(form, has_reasoning=False)
    first, second = _LIMITS
    if form.limit == first and _refuses(first, said):
        return msgspec.structs.replace(form, limit=second)
    return None


def said_in(body: str) -> str:
    """What an error body says."""
    try:
        found = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return body[:_CUT]
    return _words(found)


def _codes(body: str) -> set[str]:
    """What an error body says for programs: its words may link to anything."""
    try:
        found = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return set()
    inner = found.get("error", found) if isinstance(found, dict) else None
    return {str(inner.get(name)) for name in ("code", "type")} if isinstance(inner, dict) else set()


def _words(found: Any) -> str:
    if isinstance(found, dict):
        inner = found.get("error") or found
        told = inner if isinstance(inner, dict) else {"message": inner}
        names = ("message", "detail", "code", "type", "param")
        return "; ".join(str(told[name]) for name in names if told.get(name))[:_CUT]
    return str(found)[:_CUT]


def cut(text: str) -> str:
    """A body as a failure line keeps it."""
    return text if len(text) <= _CUT else text[:_CUT] + "…"
