"""Name what an answer that is no answer means: another try, another form, or the end. Servers' words vary."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from blade.endpoint.chat import Form

_MOST = 2000  # characters of what an error says, and of a body that a failure keeps
_AGAIN = frozenset({408, 409, 425, 429})
_LIMITS = ("max_tokens", "max_completion_tokens")
_NOT_KNOWN = r"un(?:supported|known|recogni[sz]ed|expected)|not (?:supported|permitted|allowed|recogni[sz]ed)"


@cache
def _refusals() -> dict[str, re.Pattern[str]]:
    import yaml

    words = yaml.safe_load(Path(__file__).with_name("refusals.yaml").read_text(encoding="utf-8"))
    return {name: re.compile("|".join(parts), re.IGNORECASE) for name, parts in words.items()}


def _says(name: str, text: str) -> bool:
    return _refusals()[name].search(text) is not None


class Fault(Exception):
    """A try without an answer."""

    def __init__(
        self, kind: str, text: str, *, again: bool = False, status: int | None = None, body: str = "",
        is_terminal: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(text)
        self.kind = kind  # of few, such as model_refused
        self.text, self.status, self.body = text, status, body
        self.again = again  # worth another try
        self.is_terminal = is_terminal  # the same request fails on every later day too
        self.wait: float | None = None  # seconds that the server asks for

    @property
    def said(self) -> str:
        """What the body of a refusal says."""
        try:
            return words(msgspec.json.decode(self.body))
        except (msgspec.DecodeError, RecursionError):
            return words(self.body)

    @property
    def has_no_credit(self) -> bool:
        """Whether the account is empty, so that a 429 is for good."""
        return self.status == 402 or (self.status == 429 and _says("no_credit", self.said))

    @property
    def has_no_model(self) -> bool:
        return _says("no_model", self.said)

    @property
    def has_no_responses(self) -> bool:
        """Whether the server has no Responses API, rather than not this model."""
        if self.status in (404, 405, 501):
            return not self.has_no_model
        is_refusal = self.status in (400, 415, 422) and self.kind == "model_refused"
        return is_refusal and _says("no_route", self.said)


def of_status(status: int, body: str, headers: Mapping[str, str]) -> Fault:
    """The fault of an HTTP status other than 200."""
    fault = Fault("model_refused", f"answered {status}", status=status, body=body)
    text = fault.said
    fault.text += f": {text}" if text else ""
    if fault.has_no_credit:
        fault.text += " (no credit is left)"
    elif status in _AGAIN or (status >= 500 and status != 501):
        fault.kind = {429: "model_rate_limited", 408: "model_timeout"}.get(status, "model_unreachable")
        fault.again, fault.wait = True, asked_wait(headers)
    elif status in (400, 413, 422) and is_too_long(text) and not any(refuses(name, text) for name in _LIMITS):
        fault.kind, fault.is_terminal = "context_length_exceeded", True
    elif 300 <= status < 400:
        fault.text += " (redirects are not followed)"
    return fault


def in_body(error: Any, body: str) -> Fault:
    """The fault of an error object that came where an answer should be."""
    text = words({"error": error})
    if is_too_long(text):
        return Fault("context_length_exceeded", text, body=body, is_terminal=True)
    return Fault("model_garbage", f"sent an error in place of the answer: {text}", again=True, body=body)


def simpler(form: Form, fault: Fault, is_chat: bool) -> Form | None:
    """The form that a refusal asks for, or None where there is none to try."""
    text = fault.said
    if fault.status not in (400, 415, 422) or fault.kind != "model_refused":
        return None
    if form.has_schema and _says("no_schema", text):
        return msgspec.structs.replace(form, has_schema=False)
    if not is_chat:
        return None
    if form.has_reasoning and "reasoning_content" in text:
        return msgspec.structs.replace(form, has_reasoning=False)
    limit, *others = form.limits
    needs = rf"\b{others[0]}\b.{{0,40}}\b(?:required|missing)\b" if others and others[0] else "(?!)"
    if others and (refuses(limit, text) or re.search(needs, text, re.IGNORECASE)):
        return msgspec.structs.replace(form, limits=tuple(others))
    return None


def cut(text: str) -> str:
    """A body as a failure keeps it."""
    return text if len(text) <= _MOST else text[:_MOST] + "…"


def words(body: Any) -> str:
    """What a decoded error body says, within its `error` or bare; nothing else of it is shown."""
    if isinstance(body, list):
        return words(body[0]) if body and isinstance(body[0], dict) else ""
    if isinstance(body, dict):
        inner = body.get("error") or body
        error = inner if isinstance(inner, dict) else {"message": inner}
        names = ("message", "detail", "code", "type", "param")
        return "; ".join(str(error[name]) for name in names if error.get(name))[:_MOST]
    return body[:_MOST] if isinstance(body, str) else ""


def is_too_long(text: str) -> bool:
    """Whether the request is longer than the model's context."""
    return _says("too_long", text)


def refuses(name: str, text: str) -> bool:
    """Whether the server does not know a parameter of that name, rather than dislike its value."""
    if _says("no_value", text):
        return False
    named = rf"\b{name}\b"
    way = rf"(?:{_NOT_KNOWN}).{{0,40}}{named}|{named}.{{0,60}}(?:{_NOT_KNOWN})"
    return re.search(way, text, re.IGNORECASE) is not None


def asked_wait(headers: Mapping[str, str]) -> float | None:
    """The seconds of Retry-After, given as a number or as a date; None if it says nothing."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        text = headers.get(name, "")
        try:
            seconds = float(text) / unit
        except ValueError:
            try:
                seconds = parsedate_to_datetime(text).timestamp() - time.time()
            except (ValueError, TypeError):
                continue
        if math.isfinite(seconds) or seconds < 0:
            return max(0.0, seconds)
    return None
