"""Convert columns of a run into typed arrays that a database takes: integers, numbers, truths, texts."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from blade.model import Values

# What a value is; the codes of `Values.kind`.
ABSENT, NULL, BOOL, NUMBER, TEXT, LIST, OBJECT = range(7)
MAX_WHOLE = float(1 << 53)
Array = NDArray[Any]


def typed(values: Values, order: Array) -> tuple[Array, str] | None:
    """The values of some rows and their type; None where no row holds a scalar. Mixed types become text."""
    kind, number = values.kind[order], values.number[order]
    kinds = {int(k) for k in np.unique(kind)} - {ABSENT, NULL, LIST, OBJECT}
    if not kinds:
        return None
    if kinds == {BOOL}:
        return masked(np.nan_to_num(number) != 0, kind != BOOL), "boolean"
    if kinds == {NUMBER}:
        return numbers(number), "number"
    texts = np.array([*values.texts, None], object)[values.code[order]]
    if kinds == {TEXT}:
        return texts, "text"
    for code, spell in ((BOOL, _truth), (NUMBER, spelled)):
        rows = np.flatnonzero(kind == code)
        texts[rows] = [spell(value) for value in number[rows].tolist()]
    return texts, "mixed"


def numbers(values: Array) -> Array:
    """Numbers as integers where all are whole; what is no number is masked."""
    gone = np.isnan(values)
    held = values[~gone]
    if held.size and np.all(np.abs(held) < MAX_WHOLE) and np.all(held == np.floor(held)):
        return masked(np.nan_to_num(values).astype(np.int64), gone)
    return masked(values, gone)


def masked(values: Array, gone: Array) -> Array:
    """Values, some of which are missing."""
    array: Array = np.ma.masked_array(values, gone)
    return array


def is_none(texts: Array) -> Array:
    """Which of some texts are missing."""
    return np.array([text is None for text in texts.tolist()], bool)


def joined(parts: list[Array]) -> Array:
    """Arrays one after the other; what is missing in one stays missing."""
    if not any(map(np.ma.isMaskedArray, parts)):
        return np.concatenate(parts)
    array: Array = np.ma.concatenate(parts)  # type: ignore[no-untyped-call]
    return array


def coded(codes: Array, texts: tuple[str, ...]) -> Array:
    """Texts by their codes, None for -1."""
    return np.array([*texts, None], object)[codes]


def spelled(value: float) -> str:
    """A number as JSON would write it."""
    return str(int(value)) if value.is_integer() and abs(value) < MAX_WHOLE else repr(value)


def _truth(value: float) -> str:
    return "true" if value else "false"
