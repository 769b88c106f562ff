"""The part of a NeMo Gym row that becomes columns, as typed structs; the rest is skipped unread."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

Number = float | None  # takes whole numbers too, and refuses those beyond a double
Scalar = bool | int | float | str | None

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


class Response(msgspec.Struct, gc=False):
    output: list[Item | list[Item]] | None = None
    model: str | None = None
    error: Any = None
    incomplete_details: Incomplete | None = None
    usage: Usage | None = None


class Agent(msgspec.Struct, gc=False):
    name: str | None = None


class Skills(msgspec.Struct, gc=False):
    hash: str | None = None


TYPES: dict[str, Any] = {
    "params": Params | None,
    "response": Response | None,
    "reward": Scalar | msgspec.UnsetType,
    "task": int | float | str | None,
    "repeat": int | float | str | None,
    "attempt": int | float | None,
    "agent": Agent | None,
    "skills": Skills | None,
    "mask": Scalar,
    "failure_class": str | None,
}


def row_decoder(fields: dict[str, bool]) -> msgspec.json.Decoder[Any]:
    """A decoder for rows whose other top-level keys are `fields`: True for scalars, False for raw JSON.

    It refuses rows with a key it does not know, because a struct would drop that key in silence.
    """
    columns: list[tuple[str, Any, Any]] = [
        (name, kind, msgspec.UNSET if name == "reward" else None) for name, kind in TYPES.items()
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
    return msgspec.json.Decoder(row)


NO_PARAMS = Params()
NO_RESPONSE = Response()
NO_USAGE = Usage()
_TOKENS = ("input_tokens", "output_tokens", "total_tokens")


def transposed(rows: Sequence[msgspec.Struct]) -> dict[str, tuple[Any, ...]]:
    """Structs of one type as columns by attribute, without a Python step per value."""
    columns = zip(*map(msgspec.structs.astuple, rows), strict=True)
    return dict(zip(rows[0].__struct_fields__, columns, strict=True))


def filled(values: tuple[Any, ...], default: msgspec.Struct) -> tuple[Any, ...]:
    """`values` with `default` in the place of None."""
    return tuple([default if one is None else one for one in values]) if None in values else values


def usage_columns(usage: Sequence[Usage]) -> Iterator[tuple[str, tuple[Number, ...]]]:
    """Token counts and cost, None where not reported; zero in and zero out mean not reported."""
    told = transposed(usage)
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
