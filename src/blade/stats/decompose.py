"""Turn shares and rates of groups in two runs into what rates changed and what the mix changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from blade.model import Floats


def kitagawa(w_a: ArrayLike, r_a: ArrayLike, w_b: ArrayLike, r_b: ArrayLike) -> tuple[Floats, Floats]:
    """Rate and mix terms of every group; together they add up to the change (Kitagawa 1955, two-fold).

    Mix terms are centred on the mean rate: a group that grows helps only if it is easier than the others.
    """
    shares_a, rates_a, shares_b, rates_b = (np.asarray(x, np.float64) for x in (w_a, r_a, w_b, r_b))
    weight, rate = (shares_a + shares_b) / 2, (rates_a + rates_b) / 2
    centre = float((weight * rate).sum() / weight.sum()) if weight.sum() > 0 else 0.0
    rate_terms: Floats = weight * (rates_b - rates_a)
    mix_terms: Floats = (shares_b - shares_a) * (rate - centre)
    return rate_terms, mix_terms
