"""Turn the error that an OpenAI-compatible server answers with into what it means: its words vary."""

from __future__ import annotations

import re
from typing import Any

MOST = 2000  # characters of what an error says
_NO_MODEL = re.compile(
    r"model_not_found|\bmodel\b.{0,200}\b(?:does not exist|not found|not exist|unknown)\b", re.I | re.S
)
# A parameter that is not supported, an image's URL that is invalid and a link to a manual's page about
# responses are no missing route.
_NO_ROUTE = re.compile(
    r"\b(?:unknown|invalid|unrecogni[sz]ed|unsupported|no such) (?:request )?(?:(?:api )?(?:endpoint|route)\b"
    r"|(?:url|path)\b\W{0,3}(?:post )?\S*/responses\b(?!/))"
    r"|(?:\b(?:endpoint|route|responses api)|/responses(?!/))\b.{0,30}"
    r"(?:not (?:supported|implemented|available|found|exist)|unsupported|enabled only|only enabled)"
    r"|not (?:supported|available|enabled) (?:with|by|in|on|for|through|via) the responses api\b",
    re.IGNORECASE,
)
# Codes alone: words may say "if you are out of credit", or link to a page about billing.
_NO_CREDIT = re.compile(
    r"\b(?:insufficient_(?:quota|funds|balance|credits?)|billing_(?:not_active|hard_limit_reached))\b"
)
_NOT_KNOWN = r"un(?:supported|known|recogni[sz]ed|expected)|not (?:supported|permitted|allowed|recogni[sz]ed)"
_NO_VALUE = re.compile(
    r"unsupported[ _]value|invalid_value|too (?:large|big|high|small)|at (?:most|least)", re.IGNORECASE
)
# OpenAI, vLLM, SGLang, llama.cpp, TGI and Anthropic each have their own words for the same.
_TOO_LONG = re.compile(
    r"context_length_exceeded|context[ _]?(?:length|window|size)"
    r"|maximum (?:context|model|input|prompt) length|max_model_len|prompt is too long|input (?:is )?too long"
    r"|exceeds? .{0,40}\bcontext\b|inputs? tokens? \+",
    re.IGNORECASE,
)


def words(found: Any) -> str:
    """What a decoded error body says, within its `error` or bare; nothing else of it is shown."""
    if isinstance(found, list):
        return words(found[0]) if found and isinstance(found[0], dict) else ""
    if isinstance(found, dict):
        inner = found.get("error") or found
        told = inner if isinstance(inner, dict) else {"message": inner}
        names = ("message", "detail", "code", "type", "param")
        return "; ".join(str(told[name]) for name in names if told.get(name))[:MOST]
    return found[:MOST] if isinstance(found, str) else ""


def has_no_credit(said: str) -> bool:
    """Whether a 429 is for good."""
    return _NO_CREDIT.search(said) is not None


def has_no_model(said: str) -> bool:
    return _NO_MODEL.search(said) is not None


def has_no_responses(said: str) -> bool:
    """Whether the server has no Responses API."""
    return _NO_ROUTE.search(said) is not None


def is_too_long(said: str) -> bool:
    """Whether the request is longer than the model's context."""
    return _TOO_LONG.search(said) is not None


def needs(name: str, said: str) -> bool:
    """Whether the server asks for a parameter of that name."""
    return re.search(rf"\b{name}\b.{{0,40}}\b(?:required|missing)\b", said, re.IGNORECASE) is not None


def refuses(name: str, said: str) -> bool:
    """Whether the server does not know a parameter of that name, rather than dislike its value."""
    if _NO_VALUE.search(said):
        return False
    named = rf"\b{name}\b"
    way = rf"(?:{_NOT_KNOWN}).{{0,40}}{named}|{named}.{{0,60}}(?:{_NOT_KNOWN})"
    return re.search(way, said, re.IGNORECASE) is not None
