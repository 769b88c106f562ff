"""Build the parts of a Responses object: messages, calls, results, reasoning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

Item = dict[str, Any]


def encode(value: object) -> bytes:
    """Compact JSON as Gym writes it: raw UTF-8, no spaces."""
    return msgspec.json.encode(value)


def message(ident: str, text: str, **extra: object) -> Item:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {
        "id": f"msg_{ident}",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": content,
        **extra,
    }


def reasoning(ident: str, text: str) -> Item:
    return {
        "id": f"rs_{ident}",
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": text}],
        "encrypted_content": None,
    }


def call(ident: str, tool: str, arguments: Mapping[str, Any]) -> Item:
    return {
        "id": f"fc_{ident}",
        "type": "function_call",
        "call_id": f"call_{ident}",
        "name": tool,
        "arguments": encode(arguments).decode(),
        "status": "completed",
    }


def result(ident: str, output: str) -> Item:
    return {
        "id": None,
        "type": "function_call_output",
        "call_id": f"call_{ident}",
        "output": output,
        "status": None,
    }


def usage(n_input: int, n_output: int, n_reasoning: int) -> Item:
    return {
        "input_tokens": n_input,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": n_output,
        "output_tokens_details": {"reasoning_tokens": n_reasoning},
        "total_tokens": n_input + n_output,
    }


def response(
    ident: str, model: str, output: Sequence[Item], used: Item | None, *, truncated: bool = False
) -> Item:
    return {
        "id": f"resp_{ident}",
        "created_at": 1_700_000_000.0,
        "model": model,
        "object": "response",
        "output": list(output),
        "parallel_tool_calls": False,
        "tool_choice": "auto",
        "tools": [],
        "error": None,
        "incomplete_details": {"reason": "max_output_tokens"} if truncated else None,
        "instructions": None,
        "metadata": None,
        "temperature": None,
        "top_p": None,
        "max_output_tokens": None,
        "previous_response_id": None,
        "status": "incomplete" if truncated else "completed",
        "usage": used,
    }


def tool(name: str, description: str, properties: Mapping[str, Any], required: Sequence[str]) -> Item:
    parameters = {
        "type": "object",
        "properties": dict(properties),
        "required": list(required),
        "additionalProperties": False,
    }
    return {
        "type": "function",
        "name": name,
        "description": description,
        "parameters": parameters,
        "strict": True,
    }
