"""Turn a prompt into the body of a request, and the body of a response into the text of a reply."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from blade.agent.reader.questions import Prompt
from blade.agent.reader.spending import Usage

RESPONSES, CHAT = "responses", "chat"
LIMITS = ("max_completion_tokens", "max_tokens", "")  # what chat endpoints call it; the last knows none


class Form(msgspec.Struct, frozen=True):
    """What an endpoint was found to understand."""

    api: str = RESPONSES
    has_schema: bool = True
    limit: str = LIMITS[0]


class Reply(msgspec.Struct, frozen=True):
    """What came back: the text, what it cost, and why there may be no text."""

    text: str
    usage: Usage | None  # None: the endpoint does not say
    fault: str = ""  # cut short, refused


def body(
    form: Form,
    model: str,
    prompt: Prompt,
    turns: Sequence[tuple[str, str]],
    schema: dict[str, Any],
    limit: int,
) -> dict[str, Any]:
    """The request; `turns` are what was said after the prompt, by role."""
    system = prompt.system
    if not form.has_schema:
        told = msgspec.json.encode(schema).decode()
        system += f"\n\nReply with one JSON object and nothing else, valid under this JSON Schema:\n{told}"
    said = [("user", prompt.user), *turns]
    messages = [{"role": role, "content": text} for role, text in said]
    if form.api == RESPONSES:
        shape: dict[str, Any] = {
            "format": {"type": "json_schema", "name": "answer", "strict": True, "schema": schema}
        }
        return {
            "model": model,
            "instructions": system,
            "input": messages,
            "max_output_tokens": limit,
            "store": False,  # the endpoint is asked to keep nothing
            **({"text": shape} if form.has_schema else {}),
        }
    shape = {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": schema}}
    return {
        "model": model,
        "messages": [{"role": "system", "content": system}, *messages],
        **({form.limit: limit} if form.limit else {}),
        **({"response_format": shape} if form.has_schema else {}),
    }


# ---- What comes back ---------------------------------------------------------------------------


class _Part(msgspec.Struct, frozen=True):
    type: str = ""
    text: str | None = None
    refusal: str | None = None


class _Item(msgspec.Struct, frozen=True):
    type: str = ""
    content: tuple[_Part, ...] | None = None


class _Counts(msgspec.Struct, frozen=True):
    input_tokens: int | None = None
    output_tokens: int | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class _Responses(msgspec.Struct, frozen=True):
    output: tuple[_Item, ...]
    status: str | None = None
    usage: _Counts | None = None


class _Message(msgspec.Struct, frozen=True):
    content: str | tuple[_Part, ...] | None = None
    refusal: str | None = None


class _Choice(msgspec.Struct, frozen=True):
    message: _Message
    finish_reason: str | None = None


class _Chat(msgspec.Struct, frozen=True):
    choices: tuple[_Choice, ...]
    usage: _Counts | None = None


def reply(form: Form, content: bytes) -> Reply:
    """The reply in a body; raises msgspec.DecodeError where the body is no response of this kind."""
    if form.api == RESPONSES:
        found = msgspec.json.decode(content, type=_Responses)
        parts = [part for item in found.output if item.type == "message" for part in item.content or ()]
        return _reply(parts, found.usage, found.status == "incomplete")
    chat = msgspec.json.decode(content, type=_Chat)
    if not chat.choices:
        return Reply("", _usage(chat.usage), "the endpoint gave no choice")
    first = chat.choices[0]
    told = first.message.content
    parts = [_Part("text", told)] if isinstance(told, str) else list(told or ())
    if first.message.refusal:
        parts.append(_Part("refusal", refusal=first.message.refusal))
    return _reply(parts, chat.usage, first.finish_reason == "length")


def _reply(parts: Sequence[_Part], usage: _Counts | None, is_cut: bool) -> Reply:
    text = "".join(part.text or "" for part in parts if part.type in ("output_text", "text"))
    refusal = next((part.refusal for part in parts if part.refusal), "")
    fault = ""
    if is_cut:
        fault = "the reply was cut short at the limit of output tokens; --max-output raises it"
    elif refusal:
        fault = f"the model refused: {refusal}"
    elif not text.strip():
        fault = "the reply is empty"
    return Reply(text, _usage(usage), fault)


def _usage(counts: _Counts | None) -> Usage | None:
    if counts is None:
        return None
    told_in = counts.input_tokens if counts.input_tokens is not None else counts.prompt_tokens
    told_out = counts.output_tokens if counts.output_tokens is not None else counts.completion_tokens
    if told_in is None or told_out is None or told_in < 0 or told_out < 0:
        return None
    return Usage(told_in, told_out)
