"""Turn the rollouts of one task into what its conclusion needs: features as bits, and divergences."""

from __future__ import annotations

import msgspec

from blade.align import divergences
from blade.contrast.features import ORDER, shown
from blade.model import Divergence, Episode, TaskTraces

MAX_FEATURES = 400  # of one task; the plainest, and of these the most even


class Observed(msgspec.Struct, frozen=True):
    """What some rollouts of a task do and others do not; empty unless some pass and some fail."""

    task: str
    positions: tuple[int, ...]  # of the rollouts in `Rollouts`, ascending
    features: tuple[str, ...]
    kinds: tuple[int, ...]  # of each feature
    bits: tuple[int, ...]  # of each feature: bit i is set where rollout i shows it
    divergences: tuple[Divergence, ...]


def observe(task: TaskTraces, parted: tuple[Divergence, ...] | None = None) -> Observed:
    """Read one task; `parted` are its divergences where they are known already."""
    episodes = sorted(task.episodes, key=lambda episode: episode.position)
    positions = tuple(episode.position for episode in episodes)
    outcomes = {episode.passed for episode in episodes}
    if not {True, False} <= outcomes:
        return Observed(task.task, positions, (), (), (), ())
    features, kinds, bits = features_of(episodes)
    return Observed(
        task.task, positions, features, kinds, bits, divergences(task) if parted is None else parted
    )


def features_of(episodes: list[Episode]) -> tuple[tuple[str, ...], tuple[int, ...], tuple[int, ...]]:
    """The features that some of the rollouts show and others do not, their kinds and their bits.

    An order that none of them reverses only says that both tools are used, which other features say.
    """
    kinds: dict[str, int] = {}
    reverses: dict[str, str] = {}
    bits: dict[str, int] = {}
    for at, episode in enumerate(episodes):
        for feature, place in shown(episode).items():
            kinds.setdefault(feature, place.kind)
            reverses.setdefault(feature, place.reverse)
            bits[feature] = bits.get(feature, 0) | 1 << at
    n = len(episodes)
    varying = [
        feature
        for feature, those in bits.items()
        if those.bit_count() < n and (kinds[feature] != ORDER or reverses[feature] in bits)
    ]
    varying.sort(key=lambda name: (kinds[name], abs(2 * bits[name].bit_count() - n), name))
    kept = tuple(varying[:MAX_FEATURES])
    return kept, tuple(kinds[name] for name in kept), tuple(bits[name] for name in kept)
