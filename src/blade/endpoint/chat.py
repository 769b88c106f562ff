"""Convert a Responses request to a chat request, and a chat completion to a Responses object."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

import msgspec

Row = dict[str, Any]

# What only the Responses API can do; leaving it out in silence would be another request.
_IMPOSSIBLE = ("previous_response_id", "conversation", "prompt", "background")
# What says nothing to a chat endpoint, or is said in another way below. OpenAI takes `metadata` in a chat
# only together with `store`.
_OTHERWISE = frozenset(
    {"input", "instructions", "tools", "tool_choice", "parallel_tool_calls", "max_output_tokens", "reasoning",
     "text", "metadata", "include", "max_tool_calls", "truncation", "stream", "top_logprobs", *_IMPOSSIBLE}
)  # fmt: skip
_CALLS = {"function_call": "function", "custom_tool_call": "custom"}
_FIELDS = {"function": "arguments", "custom": "input"}  # of a call: what it is called with
_OUTPUTS = ("function_call_output", "custom_tool_call_output")
_THOUGHT = re.compile(r"\s*<think>(.*?)(?:</think>|\Z)\s*", re.DOTALL)
# A chat template may open the thought itself, so that the text begins inside it.
_CLOSED = re.compile(r"((?:(?!<think>).)*?)</think>\s*", re.DOTALL)


class Unsayable(ValueError):
    """The request has something that a chat endpoint cannot be told."""


class BadRequest(ValueError):
    """What is to be sent is no request."""


class Form(msgspec.Struct, frozen=True):
    """What an endpoint was found to understand."""

    # names of the limit in a chat, those before were refused; every endpoint knows max_tokens or says that
    # it wants the other, while the other is often ignored in silence; "" leaves the limit out
    limits: tuple[str, ...] = ("max_tokens", "max_completion_tokens")
    has_reasoning: bool = True  # a chat takes the thoughts of earlier steps back
    has_schema: bool = True  # JSON Schemas of replies are understood


# ---- The request -------------------------------------------------------------------------------


PLAIN = Form()  # as an endpoint is asked at first


def chat_request(params: Mapping[str, Any], form: Form = PLAIN) -> Row:
    """The body of a chat request that asks the same as `params`, which hold no nulls."""
    for name in _IMPOSSIBLE:
        if params.get(name):
            raise Unsayable(f"the request uses {name}, which no chat endpoint has")
    body: Row = {name: value for name, value in params.items() if name not in _OTHERWISE}
    body["messages"] = _messages(params, form)
    if params.get("tools"):
        tools = [_object(tool, "a tool") for tool in params["tools"]]
        for kind in (tool.get("type", "function") for tool in tools):
            if kind not in ("function", "custom"):
                raise Unsayable(f"the request has a tool of type {str(kind)[:40]}, which no chat endpoint has")
        body["tools"] = [_nested(tool, tool.get("type", "function")) for tool in tools]
        body |= {name: params[name] for name in ("tool_choice", "parallel_tool_calls") if name in params}
        if isinstance(choice := body.get("tool_choice"), Mapping):
            body["tool_choice"] = _nested(choice, str(choice.get("type")))
    if "max_output_tokens" in params and form.limits[0]:
        body[form.limits[0]] = params["max_output_tokens"]
    if effort := _object(params.get("reasoning") or {}, "reasoning").get("effort"):
        body["reasoning_effort"] = effort
    if params.get("top_logprobs"):
        body |= {"logprobs": True, "top_logprobs": params["top_logprobs"]}
    return body | _text(_object(params.get("text") or {}, "text"))


def _text(text: Mapping[str, Any]) -> Row:
    shape = _object(text.get("format") or {}, "text.format")
    forms = {"json_schema": _nested(shape, "json_schema"), "json_object": {"type": "json_object"}}
    form = forms.get(str(shape.get("type")))
    verbosity = {"verbosity": text["verbosity"]} if text.get("verbosity") else {}
    return verbosity | ({"response_format": form} if form else {})


def _nested(value: Mapping[str, Any], kind: str, name: str = "") -> Row:
    """What a chat has under the name of its kind, and the Responses API beside its type."""
    return {"type": name or kind, name or kind: {key: item for key, item in value.items() if key != "type"}}


def _object(value: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise BadRequest(f"{what} of the request is no object")
    return value


def _words(item: Mapping[str, Any], field: str) -> str:
    value = item.get(field)
    if not isinstance(value, str):
        raise BadRequest(f"an item {str(item.get('type'))[:40]} of the request has no {field}")
    return value


def _messages(params: Mapping[str, Any], form: Form) -> list[Row]:
    prompt = params.get("input") or []
    if not isinstance(prompt, str | list):
        raise BadRequest("the input of the request is no text and no list")
    turns = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
    items = [_object(item, "an item") for item in turns]
    system, thought = params.get("instructions"), ""
    messages: list[Row] = [{"role": "system", "content": system}] if system else []
    # Thoughts before the last question are over: chat templates leave them out, some endpoints refuse them.
    last_question = max((place for place, item in enumerate(items) if item.get("role") == "user"), default=-1)
    for place, item in enumerate(items):
        kind = item.get("type") or "message"
        if kind == "reasoning":
            thoughts = (item.get("content") or item.get("summary") or []) if place > last_question else []
            thought += "".join(str(part.get("text") or "") for part in thoughts if isinstance(part, Mapping))
            continue
        if kind in _OUTPUTS:
            output = _parts(item.get("output"))
            messages.append({"role": "tool", "tool_call_id": _words(item, "call_id"), "content": output})
            continue
        if kind in _CALLS:  # a chat has calls in one with the assistant's message before them
            if not messages or messages[-1]["role"] != "assistant":
                messages.append({"role": "assistant", "content": None})
            messages[-1].setdefault("tool_calls", []).append(_call(item, _CALLS[kind]))
        elif kind == "message":
            # Few endpoints know the developer, and all that do read the system's words the same way.
            role = "system" if item.get("role") == "developer" else str(item.get("role") or "user")
            messages.append({"role": role, "content": _parts(item.get("content"), joined=role == "assistant")})
        else:
            raise Unsayable(f"the request holds an item of type {str(kind)[:40]}, which no chat endpoint has")
        if thought and form.has_reasoning and messages[-1]["role"] == "assistant":
            # a chat has the calls of several steps in one message, and so their thoughts
            before = messages[-1].get("reasoning_content")
            messages[-1]["reasoning_content"] = f"{before}\n\n{thought}" if before else thought
        thought = ""
    return messages


def _call(item: Mapping[str, Any], kind: str) -> Row:
    field = _FIELDS[kind]
    inner = {"name": _words(item, "name"), field: item.get(field) or ""}
    return {"id": _words(item, "call_id"), "type": kind, kind: inner}


def _parts(content: Any, joined: bool = False) -> Any:
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        return msgspec.json.encode(content).decode()
    parts = [_part(part) for part in content]
    texts = [part["text"] for part in parts if part["type"] == "text"]
    if len(texts) == len(parts) and (joined or len(parts) <= 1):
        return "".join(texts)
    return parts


def _part(part: Any) -> Row:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    kind = _object(part, "a part of an item").get("type")
    if kind in ("input_text", "output_text", "text", "summary_text"):
        return {"type": "text", "text": part.get("text") or ""}
    if kind == "input_image" and part.get("image_url"):
        url = part["image_url"]
        detail = {"detail": part["detail"]} if part.get("detail") else {}
        inner = dict(url) if isinstance(url, Mapping) else {"url": url}
        return {"type": "image_url", "image_url": inner | detail}
    if kind == "input_file" or (kind == "input_audio" and "input_audio" not in part):
        return _nested(part, kind, "file" if kind == "input_file" else "")
    if kind in ("input_audio", "audio_url", "image_url", "video_url", "file", "refusal"):
        return dict(part)
    raise Unsayable(f"the request holds a part of type {str(kind)[:40]}, which no chat endpoint has")


# ---- The response ------------------------------------------------------------------------------


def response_of(chat: Mapping[str, Any], params: Mapping[str, Any], splits_thoughts: bool = True) -> Row:
    """A chat completion as a Responses object; raises where it is none."""
    choices = chat.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], Mapping):
        raise ValueError("the chat completion has no choice")
    choice, message = choices[0], choices[0].get("message")
    if not isinstance(message, Mapping):
        raise ValueError("the chat completion has no message")
    name = str(chat.get("id") or "chat-" + hashlib.sha256(msgspec.json.encode(chat)).hexdigest()[:24])
    why, usage = choice.get("finish_reason"), _usage(chat.get("usage"))
    if why == "error":
        raise ValueError("the chat completion ended in an error")
    cut = {"length": "max_output_tokens", "content_filter": "content_filter"}.get(str(why))
    status = "incomplete" if cut else "completed"
    output = _output(message, choice, name, status, splits_thoughts)
    if not output:
        # the model's own silence comes with a reason and with what it cost; else a server has failed
        if not (cut or (why == "stop" and usage)):
            raise ValueError("the chat completion says nothing, nor why")
        output = [_message([{"annotations": [], "text": "", "type": "output_text"}], name, status)]
    return {
        "id": f"resp_{name}", "created_at": float(chat.get("created") or 0), "error": None,
        "incomplete_details": {"reason": cut} if cut else None,
        "instructions": params.get("instructions"), "metadata": params.get("metadata"),
        "model": str(chat.get("model") or params.get("model") or ""), "object": "response", "output": output,
        "parallel_tool_calls": params.get("parallel_tool_calls", True), "temperature": params.get("temperature"),
        "tool_choice": params.get("tool_choice", "auto"), "tools": params.get("tools") or [],
        **{key: params.get(key) for key in ("top_p", "max_output_tokens", "reasoning")},
        "status": status, "usage": usage,
    }  # fmt: skip


def _output(
    message: Mapping[str, Any], choice: Mapping[str, Any], name: str, status: str, splits: bool
) -> list[Row]:
    text = _text_of(message.get("content"))
    thought = message.get("reasoning_content") or message.get("reasoning") or ""
    if not thought and splits:
        hit = _THOUGHT.match(text) or (_CLOSED.match(text) if "</think>" in text else None)
        thought, text = (hit[1].strip(), text[hit.end() :]) if hit else ("", text)
    logprobs = choice.get("logprobs")
    scores = logprobs.get("content") if isinstance(logprobs, Mapping) else None
    content: list[Row] = []
    if text:
        shown = {"annotations": [], "text": text, "type": "output_text"}
        content.append(shown | ({"logprobs": scores} if scores else {}))
    if message.get("refusal"):
        content.append({"type": "refusal", "refusal": str(message["refusal"])})
    items: list[Row] = []
    if thought:
        summary = [{"type": "summary_text", "text": str(thought)}]
        items.append({"id": f"rs_{name}", "summary": summary, "type": "reasoning", "encrypted_content": None})
    return [*items, *([_message(content, name, status)] if content else []), *_calls(message, name)]


def _message(content: list[Row], name: str, status: str) -> Row:
    return {"id": f"msg_{name}", "content": content, "role": "assistant", "status": status, "type": "message"}


def _text_of(content: Any) -> str:
    """What a chat says in words; raises for what no chat says."""
    parts = [content or ""] if content is None or isinstance(content, str) else content
    if not isinstance(parts, list):
        raise ValueError(f"the content of the chat completion is {type(content).__name__}, not text")
    texts = [part if isinstance(part, str) else part["text"] for part in parts]
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("a part of the chat completion has no text")
    return "".join(texts)


def _calls(message: Mapping[str, Any], name: str) -> list[Row]:
    calls = message.get("tool_calls") or []
    if not calls and isinstance(message.get("function_call"), Mapping):  # as before chats had tools
        calls = [{"function": message["function_call"]}]
    items: list[Row] = []
    for place, call in enumerate(calls):
        kind = "custom" if call.get("type") == "custom" else "function"
        inner, field = call.get(kind), _FIELDS[kind]
        if not isinstance(inner, Mapping):
            raise ValueError("a tool call of the chat completion names no function")
        value = inner.get(field)
        items.append({
            field: value if isinstance(value, str) else msgspec.json.encode(value or {}).decode(),
            "call_id": str(call.get("id") or f"call_{name}_{place}"), "name": str(inner.get("name") or ""),
            "type": "custom_tool_call" if kind == "custom" else "function_call",
            "id": f"fc_{name}_{place}", "status": "completed",
        })  # fmt: skip
    return items


def _usage(counts: Any) -> Row | None:
    if not isinstance(counts, Mapping):
        return None
    sent = counts.get("prompt_tokens", counts.get("input_tokens"))
    answered = counts.get("completion_tokens", counts.get("output_tokens"))
    if not isinstance(sent, int) or not isinstance(answered, int):
        return None
    cached = (counts.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
    thought = (counts.get("completion_tokens_details") or {}).get("reasoning_tokens") or 0
    usage: Row = {
        "input_tokens": sent,
        "input_tokens_details": {"cached_tokens": cached},
        "output_tokens": answered,
        "output_tokens_details": {"reasoning_tokens": thought},
        "total_tokens": counts.get("total_tokens") or sent + answered,
    }
    return usage | ({"cost": counts["cost"]} if isinstance(counts.get("cost"), int | float) else {})
