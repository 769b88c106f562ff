"""Turn masked lines into templates: words that vary freely become <*>, alike explanations become one.

A parser of log streams such as Drain is not used: what it makes of a line depends on the lines before it,
and after masking hardly more than one varying word is left to find.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from blade.model import Floats

ANY = "<*>"
_VARIANTS = 3  # otherwise equal lines from which on a word counts as a parameter
_ROUNDS = 3  # parameters of one template
_MAX_LINES = 20_000
_CONSTANT = re.compile(r"[A-Za-z]{3,}")
_MIN_CONSTANT = 2  # words that must stay

_MAX_TEXTS = 1000
_DISTANCE = 0.35  # average cosine distance up to which explanations are one
_DIMENSIONS = 8192
_GRAMS = (3, 4, 5)

Tokens = tuple[str, ...]


def templates(lines: Mapping[str, int]) -> dict[str, str]:
    """The template of each masked line; lines are given with how often they occur."""
    common = sorted(lines, key=lambda line: (-lines[line], line))[:_MAX_LINES]
    now: dict[str, Tokens] = {line: tuple(line.split(" ")) for line in common}
    for _ in range(_ROUNDS):
        merged = _merged(set(now.values()))
        if not merged:
            break
        now = {line: merged.get(tokens, tokens) for line, tokens in now.items()}
    return {line: " ".join(now[line]) if line in now else line for line in lines}


def _merged(patterns: set[Tokens]) -> dict[Tokens, Tokens]:
    """Patterns that differ in one word only, and that word in many ways, with what they become."""
    alike: defaultdict[Tokens, list[Tokens]] = defaultdict(list)
    for tokens in sorted(patterns):
        for place, token in enumerate(tokens):
            if token != ANY:
                alike[(*tokens[:place], ANY, *tokens[place + 1 :])].append(tokens)
    found: dict[Tokens, Tokens] = {}
    for pattern in sorted(alike, key=lambda pattern: (-len(alike[pattern]), pattern)):
        if len(alike[pattern]) < _VARIANTS:
            break
        free = [tokens for tokens in alike[pattern] if tokens not in found]
        if len(free) >= _VARIANTS and _n_constant(pattern) >= _MIN_CONSTANT:
            found |= dict.fromkeys(free, pattern)
    return found


def _n_constant(tokens: Iterable[str]) -> int:
    return sum(1 for token in tokens if not token.startswith("<") and _CONSTANT.search(token))


# ---- Explanations ------------------------------------------------------------------------------


def alike(texts: Mapping[str, int]) -> dict[str, str]:
    """The text that stands for each: the most central of those that say nearly the same."""
    common = sorted(texts, key=lambda text: (-texts[text], text))[:_MAX_TEXTS]
    stands = {text: text for text in texts}
    if len(common) < 2:
        return stands
    similar = _similarity(common)
    for members in _components(similar >= 1 - _DISTANCE):
        for cluster in _average_linkage(similar[np.ix_(members, members)]):
            chosen = members[cluster]
            inside = similar[np.ix_(chosen, chosen)].sum(1)
            centre = common[chosen[int(np.argmax(np.round(inside, 6)))]]
            stands |= {common[one]: centre for one in chosen}
    return stands


def _similarity(texts: Sequence[str]) -> Floats:
    """Cosine of character n-grams, rare ones weighing more (TF-IDF)."""
    weights = np.zeros((len(texts), _DIMENSIONS), np.float32)
    for row, text in enumerate(texts):
        lower = text.lower()
        grams = Counter(lower[at : at + n] for n in _GRAMS for at in range(len(lower) - n + 1))
        for gram, count in grams.items():
            weights[row, zlib.crc32(gram.encode("utf-8", "replace")) % _DIMENSIONS] += 1 + np.log(count)
    weights *= np.log((1 + len(texts)) / (1 + np.count_nonzero(weights, axis=0))) + 1
    norm = np.linalg.norm(weights, axis=1, keepdims=True)
    weights /= np.where(norm == 0, 1, norm)
    found: Floats = (weights @ weights.T).astype(np.float64)
    return found


def _components(near: NDArray[np.bool_]) -> list[NDArray[np.int64]]:
    """The groups of texts that chains of near ones connect; average linkage never joins across them."""
    left = np.ones(len(near), np.bool_)
    found = []
    for start in range(len(near)):
        if not left[start]:
            continue
        inside = np.zeros(len(near), np.bool_)
        fresh = inside.copy()
        fresh[start] = True
        while fresh.any():
            inside |= fresh
            fresh = near[fresh].any(0) & ~inside
        left &= ~inside
        if np.count_nonzero(inside) > 1:
            found.append(np.flatnonzero(inside))
    return found


def _average_linkage(similar: Floats) -> list[list[int]]:
    """Clusters joined nearest first, as long as their members are near enough on average."""
    clusters: list[list[int]] = [[one] for one in range(len(similar))]
    mean = similar.copy()
    np.fill_diagonal(mean, -1.0)
    while len(clusters) > 1:
        best = int(np.argmax(np.round(mean, 9)))
        one, other = divmod(best, len(mean))
        if mean[one, other] < 1 - _DISTANCE:
            break
        a, b = len(clusters[one]), len(clusters[other])
        joined = (a * mean[one] + b * mean[other]) / (a + b)
        mean[one], mean[:, one] = joined, joined
        mean[one, one] = -1.0
        mean = np.delete(np.delete(mean, other, 0), other, 1)
        clusters[one] += clusters.pop(other)
    return clusters
