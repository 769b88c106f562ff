"""Quantiles of the normal and of Student's t, without scipy where they can be."""

from __future__ import annotations

import importlib
from statistics import NormalDist
from typing import Any

Z95 = NormalDist().inv_cdf(0.975)
_EXPANSION_DF = 200.0
_EXPANSION_Z = 4.0  # beyond, four terms at 200 degrees of freedom lose the ninth digit


def special() -> Any:
    """`scipy.special`, loaded on first need: the import costs more than the summary of a large run."""
    return importlib.import_module("scipy.special")


def t_quantile(p: float, df: float) -> float:
    """Student's t quantile; `ValueError` unless 0 < p < 1 and df > 0."""
    if not (0.0 < p < 1.0 and df > 0.0):
        raise ValueError(f"no t quantile at p={p}, df={df}")
    z = NormalDist().inv_cdf(p)
    if df >= _EXPANSION_DF and abs(z) <= _EXPANSION_Z:
        return _cornish_fisher(z, df)
    return float(special().stdtrit(df, p))


def _cornish_fisher(z: float, df: float) -> float:
    """Abramowitz & Stegun 26.7.5: the t quantile as a series in 1/df around the normal one."""
    z2 = z * z
    g1 = (z2 + 1) / 4
    g2 = ((5 * z2 + 16) * z2 + 3) / 96
    g3 = (((3 * z2 + 19) * z2 + 17) * z2 - 15) / 384
    g4 = ((((79 * z2 + 776) * z2 + 1482) * z2 - 1920) * z2 - 945) / 92160
    return z * (1 + (g1 + (g2 + (g3 + g4 / df) / df) / df) / df)
