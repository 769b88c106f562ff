"""Turn a seed and a design into two simulated runs of the same tasks, and say what is true of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Rng = np.random.Generator

# How hard tasks are: from the law of their pass rates.
LAWS: dict[str, Callable[[Rng, int], Array]] = {
    "spread": lambda rng, n: rng.beta(0.5, 0.5, n),
    "middle": lambda rng, n: rng.beta(3, 3, n),
    "ceiling": lambda rng, n: rng.beta(2, 0.3, n),
    "near ceiling": lambda rng, n: np.full(n, 0.97),
    "floor": lambda rng, n: rng.beta(0.3, 2, n),
    "mostly solved": lambda rng, n: np.where(rng.random(n) < 0.85, 1.0, rng.beta(1, 1, n)),
    "half solved": lambda rng, n: np.where(rng.random(n) < 0.5, 1.0, rng.beta(1, 1, n)),
}


@dataclass(frozen=True)
class Cell:
    """One design of a paired comparison."""

    n: int  # tasks
    k: int  # repeats
    law: str
    # balanced; unbalanced: the candidate has twice as many; lopsided: it has one; missing: a tenth is lost
    rows: str = "balanced"

    @property
    def name(self) -> str:
        return f"n={self.n} k={self.k} {self.law}, {self.rows}"


@dataclass(frozen=True)
class Drawn:
    """Counts of both runs, one entry a task, and the true rates behind them."""

    n_a: Array
    n_b: Array
    c_a: Array
    c_b: Array
    p_a: Array
    p_b: Array

    @property
    def noise(self) -> Array:
        """True variance of the difference of each task over its repeats."""
        found: Array = self.p_a * (1 - self.p_a) / self.n_a + self.p_b * (1 - self.p_b) / self.n_b
        return found

    @property
    def se_these(self) -> float:
        """True standard error of the mean change over repeats of these tasks."""
        return float(np.sqrt(self.noise.sum()) / self.n_a.size)

    @property
    def se_new(self) -> float:
        """And over tasks drawn anew as well, as far as these tasks tell."""
        spread = float(np.var(self.p_b - self.p_a, ddof=1)) if self.n_a.size > 1 else 0.0
        return float(np.sqrt((self.noise.mean() + spread) / self.n_a.size))


def rates(cell: Cell, rng: Rng, shift: float, churn: float) -> tuple[Array, Array]:
    """True pass rates of both runs: the candidate's moved by `shift` and, by chance, by `churn` logits."""
    p = LAWS[cell.law](rng, cell.n)
    if not shift and not churn:
        return p, p
    edge = np.clip(p, 1e-9, 1 - 1e-9)
    base = np.log(edge / (1 - edge))
    wobble = rng.normal(0, churn, cell.n) if churn else np.zeros(cell.n)
    # half of it on either side, so that the two runs are alike but for `shift`
    low, high = (1 / (1 + np.exp(-(base + sign * (shift + wobble) / 2))) for sign in (-1, 1))
    fixed = (p == 0) | (p == 1)  # a task that cannot fail cannot change
    return np.where(fixed, p, low), np.where(fixed, p, high)


def draw(cell: Cell, rng: Rng, shift: float = 0.0, churn: float = 0.0) -> Drawn:
    """Two runs of the cell's design."""
    p_a, p_b = rates(cell, rng, shift, churn)
    n_a = np.full(cell.n, cell.k)
    n_b = np.full(cell.n, {"unbalanced": 2 * cell.k, "lopsided": 1}.get(cell.rows, cell.k))
    if cell.rows == "missing":
        n_a, n_b = (rng.binomial(n, 0.9) for n in (n_a, n_b))
        kept = (n_a > 0) & (n_b > 0)
        n_a, n_b, p_a, p_b = n_a[kept], n_b[kept], p_a[kept], p_b[kept]
    return Drawn(n_a, n_b, rng.binomial(n_a, p_a), rng.binomial(n_b, p_b), p_a, p_b)
