"""Turn independent discrete terms into the law of their sum."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from blade.model import Floats, Ints

_EXACT_CELLS = 1 << 17  # up to which a common measure is kept
_CELLS = 1 << 14  # of the grid on which sums are kept where their values have no common measure


class Law(NamedTuple):
    """Probabilities of lowest, lowest + 1, ... cells of a grid."""

    lowest: int
    probability: Floats
    slack: int  # cells by which rounding to the grid may have moved a sum

    def at_least(self, cell: int) -> float:
        """P(sum >= cell), ties included."""
        return self._mass(max(0, cell - self.slack - self.lowest), None)

    def at_most(self, cell: int) -> float:
        return self._mass(None, max(0, cell + self.slack - self.lowest + 1))

    def _mass(self, start: int | None, end: int | None) -> float:
        return min(1.0, float(self.probability[start:end].sum()))


def cell_size(values: Floats, measures: Sequence[int]) -> tuple[float, bool]:
    """The grid for sums of `values`, multiples of 1/m for m in `measures`; whether it is exact."""
    reach = float(np.abs(values).sum())
    whole = math.lcm(*measures) if measures else 0
    if whole > 0 and reach * whole <= _EXACT_CELLS:
        return 1.0 / whole, True
    return max(reach, 1e-300) / _CELLS, False


def law_of_sum(terms: Sequence[tuple[Ints, Floats]], slack: int) -> Law:
    """The law of a sum of independent terms, each given as cells and their probabilities."""
    lowest, law = 0, np.ones(1)
    for cells, probabilities in terms:
        first, last = int(cells.min()), int(cells.max())
        wider = np.zeros(law.size + last - first)
        for cell, probability in zip(cells.tolist(), probabilities.tolist(), strict=True):
            at = cell - first
            wider[at : at + law.size] += probability * law
        lowest, law = lowest + first, wider
    return Law(lowest, law, slack)
