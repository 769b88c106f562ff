"""Turn labels and stated probabilities beside the truth into agreement, calibration and F1."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence


def cohen_kappa(matrix: Sequence[Sequence[float]]) -> float | None:
    """Agreement beyond chance of a square table of counts."""
    total = sum(map(sum, matrix))
    if not total:
        return None
    agreed = sum(matrix[i][i] for i in range(len(matrix))) / total
    chance = sum(sum(matrix[i]) * sum(row[i] for row in matrix) for i in range(len(matrix))) / total**2
    return (agreed - chance) / (1 - chance) if chance < 1 else None


def brier(stated: Sequence[float], happened: Sequence[bool]) -> float | None:
    """Mean squared distance of probabilities from what happened."""
    if not stated:
        return None
    return sum((p - y) ** 2 for p, y in zip(stated, happened, strict=True)) / len(stated)


def log_loss(stated: Sequence[float], happened: Sequence[bool]) -> float | None:
    """Mean negative log-likelihood of what happened."""
    if not stated:
        return None
    kept = [min(max(p if y else 1 - p, 1e-12), 1.0) for p, y in zip(stated, happened, strict=True)]
    return -sum(map(math.log, kept)) / len(kept)


def calibration_error(stated: Sequence[float], happened: Sequence[bool], bins: int = 10) -> float | None:
    """Expected distance between stated probability and frequency over equal bins."""
    if not stated:
        return None
    sums: dict[int, list[float]] = {}
    for p, y in zip(stated, happened, strict=True):
        held = sums.setdefault(min(int(p * bins), bins - 1), [0.0, 0.0, 0.0])
        held[0] += 1
        held[1] += p
        held[2] += y
    return sum(abs(held[1] - held[2]) for held in sums.values()) / len(stated)


def macro_f1(truth: Sequence[str], told: Sequence[str]) -> float | None:
    """Mean F1 over the labels that occur in the truth."""
    if not truth:
        return None
    right = Counter(t for t, s in zip(truth, told, strict=True) if t == s)
    n_truth, n_told = Counter(truth), Counter(told)
    scores = [2 * right[label] / (n_truth[label] + n_told[label]) for label in n_truth]
    return sum(scores) / len(scores)
