"""List rollouts that show a term of the bridge, and say what most of them show as well."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from blade.compare.pairing import Paired
from blade.model import Side, Term

if TYPE_CHECKING:
    from blade.model import Ints

MANY = 5  # rollouts from which it is said what they have in common
MOST = 0.6  # of them must show another fact for it to be said
LISTED = 5


def signed(number: float, form: str) -> str:
    """Print a number with its sign: `+0.264`, `−0.410`."""
    return f"{number:+{form}}".replace("-", "−")


def shown(pair: Paired, term: Term) -> tuple[tuple[tuple[str, str, int], ...], tuple[str, ...]]:
    """List run, task and repeat of some rollouts booked under the term, of the run that has more of them; and
    what most of these show as well, in words."""
    rows_a, rows_b = _rows(pair.a, pair.code_a, term), _rows(pair.b, pair.code_b, term)
    more_in_a = (rows_a.size, pair.a.run) > (rows_b.size, pair.b.run)
    side, rows = (pair.a, rows_a) if more_in_a else (pair.b, rows_b)
    judged = side.judged
    listed = tuple(
        (side.run, judged.task_keys[int(judged.task[row])], int(judged.repeat[row])) for row in rows[:LISTED]
    )
    return listed, _beside(side, rows, term)


def _rows(side: Side, common: Ints, term: Term) -> Ints:
    codes = [code for code, mode in enumerate(side.modes) if mode == (term.side, term.term)]
    return np.flatnonzero(np.isin(side.mode, codes) & np.isin(side.judged.task, common))


def _beside(side: Side, rows: Ints, term: Term) -> tuple[str, ...]:
    if rows.size < MANY or term.side != "model":
        return ()
    also = []
    for name, others in side.behaviours.items():
        n = int(np.isin(rows, others).sum())
        if name != term.term and n >= MOST * rows.size:
            also.append((-n, name))
    return tuple(
        f"{-n} of its {rows.size} failing rollouts in {side.run} also show: {name}"
        for n, name in sorted(also)[:2]
    )
