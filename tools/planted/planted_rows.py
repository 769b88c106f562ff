"""Invent office text, and write the items of rollouts with it: messages, calls, results, requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import msgspec

WHO = (
    "The clerk", "Our depot", "The customer", "A courier", "The night shift", "The warehouse",
    "The help desk", "The second team", "A returning buyer", "The billing office", "The packing line",
    "The supplier",
)  # fmt: skip
DOES = (
    "asks for", "has confirmed", "still waits for", "cannot find", "has corrected", "wants to cancel",
    "reports", "has opened", "must approve", "has written down", "doubts", "repeats",
)  # fmt: skip
WHAT = (
    "the delivery note", "a second invoice", "the address change", "a partial refund",
    "the missing parcel", "an express upgrade", "the return label", "the price match", "a damaged lamp",
    "the order total", "the pickup window", "a gift receipt", "the warranty card", "the spare cable",
)  # fmt: skip
WHEN = (
    "before noon", "since Tuesday", "after the weekend", "within two days", "for the third time",
    "at closing time", "this quarter", "without a reference", "as the policy allows",
    "in the old system", "on the same ticket",
)  # fmt: skip
ABROAD = (
    "die Rückgabe läuft über das Lager in Köln",
    "le reçu n’a pas été envoyé à temps",
    "注文は昨日発送されました",
    "el número de pedido está equivocado",
    "zwrot środków trwa trzy dni – proszę czekać",
    "заказ уже отправлен",
    "a encomenda não chegou ☂",
)


def sentences(rng: Random, count: int) -> list[str]:
    """Draw `count` plain English sentences; some carry numbers, quotes or a list mark."""
    drawn = []
    for who, does, what, when in zip(
        rng.choices(WHO, k=count),
        rng.choices(DOES, k=count),
        rng.choices(WHAT, k=count),
        rng.choices(WHEN, k=count),
        strict=True,
    ):
        shape = rng.random()
        if shape < 0.12:
            drawn.append(f"{who} {does} {what} (ref {rng.randrange(10_000, 99_999)}) {when}.")
        elif shape < 0.2:
            drawn.append(f'{who} {does} {what} and says "please settle this {when}".')
        elif shape < 0.28:
            drawn.append(f"\n- {who} {does} {what} {when};")
        else:
            drawn.append(f"{who} {does} {what} {when}.")
    return drawn


def talk(rng: Random, count: int) -> str:
    """`count` whole sentences in one paragraph."""
    return " ".join(sentence.strip("\n- ;").rstrip(".") + "." for sentence in sentences(rng, count))


def prose(rng: Random, size: int, *, abroad: bool = False) -> str:
    """About `size` characters of text in paragraphs; with `abroad` some of it is not ASCII."""
    drawn = sentences(rng, max(1, size // 50 + 2))
    if abroad:
        for place in range(0, len(drawn), 5):
            drawn[place] = rng.choice(ABROAD) + "."
    paragraphs = [" ".join(drawn[place : place + 6]) for place in range(0, len(drawn), 6)]
    return "\n\n".join(paragraphs)[: max(1, size)].rstrip()


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
