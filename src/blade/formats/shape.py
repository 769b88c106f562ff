"""The part of a NeMo Gym row that becomes columns, as typed structs; the rest is skipped unread."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from blade.formats.nested import Scalar, Shape

Number = float | None  # takes whole numbers too, and refuses those beyond a double

# The framework's own keys; everything else is a field.
KNOWN = {
    "params": "responses_create_params",
    "response": "response",
    "reward": "reward",
    "task": "_ng_task_index",
    "repeat": "_ng_rollout_index",
    "attempt": "_ng_attempt_index",
    "agent": "agent_ref",
    "skills": "skills_ref",
    "mask": "mask_sample",
    "failure_class": "_ng_failure_class",
}
UNREAD = (  # attachments of any size that no column needs
    "ng_model_call_capture",
    "ng_trajectory",
    "ng_agent_observations",
)


class Params(msgspec.Struct, gc=False):
    input: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    model: str | None = None
    temperature: Number = None
    top_p: Number = None
    max_output_tokens: Number = None


class Item(msgspec.Struct, gc=False):
    type: str | None = None
    role: str | None = None
    name: str | None = None  # of a call
    content: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    arguments: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    tool_calls: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class Incomplete(msgspec.Struct, gc=False):
    reason: str | None = None


class Details(msgspec.Struct, gc=False):
    reasoning_tokens: Number = None
    cached_tokens: Number = None


class Usage(msgspec.Struct, gc=False):
    input_tokens: Number = None
    output_tokens: Number = None
    total_tokens: Number = None
    prompt_tokens: Number = None  # chat-style names of the same three
    completion_tokens: Number = None
    cost: Number = None
    output_tokens_details: Details | None = None
    completion_tokens_details: Details | None = None


class Response(msgspec.Struct, gc=False):  # `usage` is added with the keys that rows show
    output: list[Item | list[Item]] | None = None
    model: str | None = None
    error: Any = None
    incomplete_details: Incomplete | None = None


class WholeResponse(Response, gc=False):
    usage: Usage | None = None


class Agent(msgspec.Struct, gc=False):
    name: str | None = None


class Skills(msgspec.Struct, gc=False):
    hash: str | None = None


TYPES: dict[str, Any] = {
    "params": Params | None,
    "response": WholeResponse | None,
    "reward": Scalar | msgspec.UnsetType,
    "task": int | float | str | None,
    "repeat": int | float | str | None,
    "attempt": int | float | None,
    "agent": Agent | None,
    "skills": Skills | None,
    "mask": Scalar,
    "failure_class": str | None,
}


# The known objects that may hold further scalars, and where each stands in a row.
INNER: dict[str, tuple[type[msgspec.Struct], str]] = {
    "params": (Params, "responses_create_params"),
    "response": (Response, "response"),
    "usage": (Usage, "response.usage"),
    "agent": (Agent, "agent_ref"),
    "skills": (Skills, "skills_ref"),
}


def inner_shapes() -> dict[str, Shape]:
    """The known objects before any row was seen."""
    return {name: Shape(base=struct) for name, (struct, _) in INNER.items()}


class RowDecoder:
    """Decodes rows whose other top-level keys are `fields`: True for scalars, False for raw JSON.

    It refuses rows with a key it does not know, because a struct would drop that key in silence.
    """

    def __init__(self, fields: Mapping[str, bool], inner: Mapping[str, Shape]) -> None:
        usage = inner["usage"].type | None
        known = {name: shape.type for name, shape in inner.items() if name != "response"}
        known["response"] = inner["response"].struct(("usage", usage, None))
        self.empty = {name: struct() for name, struct in known.items()}
        columns: list[tuple[str, Any, Any]] = [
            (name, known[name] | None if name in known else kind, msgspec.UNSET if name == "reward" else None)
            for name, kind in TYPES.items()
        ]
        rename = dict(KNOWN)
        for number, (key, is_scalar) in enumerate(fields.items()):
            kind = Scalar | msgspec.UnsetType if is_scalar else msgspec.Raw | msgspec.UnsetType
            columns.append((f"f{number}", kind, msgspec.UNSET))
            rename[f"f{number}"] = key
        for number, key in enumerate(UNREAD):
            columns.append((f"unread{number}", msgspec.Raw | msgspec.UnsetType, msgspec.UNSET))
            rename[f"unread{number}"] = key
        row = msgspec.defstruct("Row", columns, rename=rename, forbid_unknown_fields=True, gc=False)
        decoder = msgspec.json.Decoder(row)
        self.decode, self.decode_lines = decoder.decode, decoder.decode_lines


_TOKENS = ("input_tokens", "output_tokens", "total_tokens")


def filled(values: tuple[Any, ...], default: msgspec.Struct) -> tuple[Any, ...]:
    """`values` with `default` in the place of None."""
    return tuple([default if one is None else one for one in values]) if None in values else values


def usage_columns(
    told: Mapping[str, tuple[Any, ...]], usage: Sequence[Usage]
) -> Iterator[tuple[str, tuple[Number, ...]]]:
    """Token counts and cost, None where not reported; zero in and zero out mean not reported."""
    counts: tuple[tuple[Number, ...], ...] = tuple(told[name] for name in _TOKENS)
    if not all(map(all, counts)):
        counts = _reconciled(usage)
    yield from zip(_TOKENS, counts, strict=True)
    details = told["output_tokens_details"]
    if not any(details):
        details = told["completion_tokens_details"]
    yield "reasoning_tokens", tuple([one and one.reasoning_tokens for one in details])
    yield "cost_usd", told["cost"]


def _reconciled(usage: Sequence[Usage]) -> tuple[tuple[Number, ...], ...]:
    """Counts in, out and in all, whichever names they go by."""
    found: list[tuple[Number, Number, Number]] = []
    for one in usage:
        came_in = one.input_tokens if one.input_tokens is not None else one.prompt_tokens
        went_out = one.output_tokens if one.output_tokens is not None else one.completion_tokens
        if came_in or went_out:
            found.append((came_in, went_out, one.total_tokens or (came_in or 0) + (went_out or 0)))
        else:
            found.append((None, None, None))
    return tuple(zip(*found, strict=True))
