"""Turn a set function over a few players into the share of each: Shapley values."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

MAX_EXACT = 12
SAMPLES = 2000


def shapley(
    players: Sequence[str], value: Callable[[frozenset[str]], float], seed: int = 0
) -> dict[str, float]:
    """The share of each player in value(all) - value(none): exact for few, sampled for many."""
    known: dict[frozenset[str], float] = {}

    def worth(some: frozenset[str]) -> float:
        if some not in known:
            known[some] = value(some)
        return known[some]

    if len(players) <= MAX_EXACT:
        return {player: _exact(player, players, worth) for player in players}
    return _sampled(players, worth, seed)


def _exact(player: str, players: Sequence[str], worth: Callable[[frozenset[str]], float]) -> float:
    others = [other for other in players if other != player]
    n, total = len(players), 0.0
    for mask in range(1 << len(others)):
        some = frozenset(other for bit, other in enumerate(others) if mask >> bit & 1)
        weight = math.factorial(len(some)) * math.factorial(n - len(some) - 1) / math.factorial(n)
        total += weight * (worth(some | {player}) - worth(some))
    return total


def _sampled(players: Sequence[str], worth: Callable[[frozenset[str]], float], seed: int) -> dict[str, float]:
    from random import Random

    rng = Random(seed)
    found = dict.fromkeys(players, 0.0)
    order = list(players)
    for _ in range(SAMPLES):
        rng.shuffle(order)
        some: frozenset[str] = frozenset()
        for player in order:
            found[player] += worth(some | {player}) - worth(some)
            some |= {player}
    return {player: total / SAMPLES for player, total in found.items()}
