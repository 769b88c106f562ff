"""Turn variances of a paired design into what it can see, and into the size that would see a change."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import NamedTuple

_REACH = NormalDist().inv_cdf(0.975) + NormalDist().inv_cdf(0.8)  # 5 % two-sided, 80 % power


class Design(NamedTuple):
    """Where the spread of task differences comes from (Miller 2024)."""

    omega2: float  # variance of the true change over tasks
    sigma2_a: float  # variance between rows of a task
    sigma2_b: float

    def spread(self, k_a: float, k_b: float) -> float:
        """Variance of the difference of one task with so many rows in each run."""
        return self.omega2 + self.sigma2_a / k_a + self.sigma2_b / k_b


def detectable(se: float) -> float:
    """The smallest true change that a two-sided 5 % test sees in 80 of 100 comparisons."""
    return _REACH * se


def tasks_needed(design: Design, k_a: float, k_b: float, effect: float) -> float:
    """Tasks that see `effect` with these repeats; infinite for no effect."""
    return _REACH**2 * design.spread(k_a, k_b) / effect**2 if effect else math.inf


def repeats_needed(design: Design, n: int, effect: float) -> float | None:
    """Repeats in each run that see `effect` on n tasks; None where no number of repeats is enough."""
    room = n * effect**2 / _REACH**2 - design.omega2
    return (design.sigma2_a + design.sigma2_b) / room if room > 0 else None
