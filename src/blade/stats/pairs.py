"""A formula of (n, c) into one value a task, computed once for each distinct pair."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from blade.model import Bools, Floats, Ints


def valid_pairs(n: ArrayLike, c: ArrayLike, least: int) -> tuple[Ints, Ints, Bools]:
    """The pairs with n >= `least` and 0 <= c <= n, and which tasks they are."""
    rows, passes = np.broadcast_arrays(*np.atleast_1d(np.asarray(n, np.int64), np.asarray(c, np.int64)))
    valid: Bools = (rows >= least) & (passes >= 0) & (passes <= rows)
    return rows[valid], passes[valid], valid


def distinct_pairs(n: Ints, c: Ints) -> tuple[Ints, Ints, Ints]:
    """Distinct (n, c), and for each task the place of its own among them."""
    if n.size == 0:
        return n, c, n
    width = int(n.max()) + 1
    key = n * width + c
    span = width * width
    if span > 4 * n.size + 4096:
        found, place = np.unique(key, return_inverse=True)
    else:  # a table beats a sort tenfold, and repeats are few in almost every run
        found = np.flatnonzero(np.bincount(key, minlength=span))
        table = np.zeros(span, np.int64)
        table[found] = np.arange(found.size)
        place = table[key]
    return found // width, found % width, place


def per_pair(n: ArrayLike, c: ArrayLike, least: int, formula: Callable[[Ints, Ints], Floats]) -> Floats:
    """`formula` for every task along the last axis; nan where n < `least` or c is impossible."""
    rows, passes, valid = valid_pairs(n, c, least)
    distinct_n, distinct_c, place = distinct_pairs(rows, passes)
    values = np.asarray(formula(distinct_n, distinct_c), np.float64)
    out = np.full((*values.shape[:-1], valid.size), np.nan)
    out[..., valid] = values[..., place]
    return out
