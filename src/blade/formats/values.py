"""Turn single values of a row into the numbers of its columns."""

from __future__ import annotations

import math
from array import array
from functools import lru_cache
from typing import Any

import msgspec
from xxhash import xxh3_64_intdigest

from blade.formats.items import flat, kind_of
from blade.model import LAST_KINDS

LONGEST_TEXT = 1000  # of a name of an agent, a model or a task
NO_INDEX = -(1 << 63)  # a task or repeat index that is not there
MAX_REWARD = 1e100  # beyond it a reward is no measurement, and its square no number
_LAST = {name: code for code, name in enumerate(LAST_KINDS)}
_nan = math.nan

# What a reward can be, the codes of `reward_kind`.
REWARD_ABSENT, REWARD_NULL, REWARD_BOOL, REWARD_NUMBER, REWARD_OTHER, REWARD_NOT_FINITE = range(6)


def integers(values: tuple[Any, ...]) -> array[int] | None:
    """The values as whole numbers, or None if any of them is something else."""
    try:
        return array("q", values)
    except (TypeError, OverflowError):
        return None


def index_of(value: Any) -> int:
    """An index as a number; text and nonsense have none."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 63:
        return value
    if isinstance(value, float) and value.is_integer() and abs(value) < 1 << 53:
        return int(value)
    return NO_INDEX


def text_index(value: Any) -> str | None:
    """An index that is no whole number of ordinary size, as the text of a key."""
    if value is None or index_of(value) != NO_INDEX:
        return None
    text = value if isinstance(value, str) else repr(value)
    if len(text) <= LONGEST_TEXT:
        return text
    return f"{text[:100]}...{xxh3_64_intdigest(text.encode()):016x}"


def is_yes(value: Any) -> bool:
    return value.strip().lower() in ("true", "yes", "1") if isinstance(value, str) else bool(value)


def reward_of(value: Any) -> tuple[float, int]:
    if value is msgspec.UNSET:
        return _nan, REWARD_ABSENT
    if value is None:
        return _nan, REWARD_NULL
    if isinstance(value, bool):
        return float(value), REWARD_BOOL
    if isinstance(value, int | float):
        try:
            number = float(value)
        except OverflowError:
            return _nan, REWARD_NOT_FINITE
        return (number, REWARD_NUMBER) if abs(number) <= MAX_REWARD else (_nan, REWARD_NOT_FINITE)
    return _nan, REWARD_OTHER


_Counts = tuple[int, int, int, int]
_NO_ITEMS: _Counts = (0, 0, 0, 0)
_KNOWN_SHAPES: dict[tuple[Any, ...], _Counts] = {}  # short outputs come in few shapes


def output_counts(output: Any) -> _Counts:
    """Items, tool calls, turns and the kind of the last item."""
    if not output:
        return _NO_ITEMS
    try:
        if len(output) <= 2:
            first, last = output[0], output[-1]
            return _counts_of_few(len(output), first.type, first.role, last.type, last.role)
        key = tuple([(item.type, item.role) for item in output])
    except AttributeError:  # a list of lists
        key = tuple([(item.type, item.role) for item in flat(output)])
    known = _KNOWN_SHAPES.get(key)
    if known is None:
        known = counts_of_kinds(tuple([kind_of(*one) for one in key]))
        if len(key) <= 8 and len(_KNOWN_SHAPES) < 10_000:
            _KNOWN_SHAPES[key] = known
    return known


@lru_cache(maxsize=1000)
def _counts_of_few(n: int, *types_and_roles: str | None) -> _Counts:
    """The counts of one or two items, the commonest outputs."""
    first, last = types_and_roles[:2], types_and_roles[2:]
    return counts_of_kinds(tuple([kind_of(*one) for one in ([first, last] if n == 2 else [first])]))


def counts_of_kinds(kinds: tuple[str, ...]) -> _Counts:
    """A turn is a run of items that the model made without being answered in between."""
    n_calls = n_turns = 0
    in_turn = False
    for kind in kinds:
        by_model = kind in ("message", "reasoning", "call")
        n_calls += kind == "call"
        n_turns += by_model and not in_turn
        in_turn = by_model
    return len(kinds), n_calls, n_turns, _LAST[kinds[-1]] if kinds else 0
