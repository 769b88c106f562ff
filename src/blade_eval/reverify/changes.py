"""Count what a new verdict changed: rewards, passes, and the other fields that a verifier writes."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from blade_eval.environment import Row

Key = tuple[int, int]  # task and repeat

# From the old verdict to the new; `none` is a verdict that was not there, or could not be given.
WAYS = (
    "passed to failed", "failed to passed", "lower", "higher", "none to passed", "none to failed",
    "passed to none", "failed to none", "none to none", "same",
)  # fmt: skip


class Change(NamedTuple):
    """One rollout whose verdict is another than before."""

    key: Key
    agent: str
    way: str
    before: float | None
    after: float | None
    fields: tuple[str, ...]  # of the verifier, that differ
    reason: str = ""  # why there is no verdict now


@dataclass
class Changes:
    """What became of all verdicts."""

    threshold: float = 1.0
    ways: Counter[str] = field(default_factory=Counter)
    fields: Counter[str] = field(default_factory=Counter)  # rollouts in which a verifier's field differs
    rows: list[Change] = field(default_factory=list)  # whose reward changed, or that lost or gained one
    pairs: list[tuple[float, float]] = field(default_factory=list)  # rewards before and after

    def judged(self, key: Key, agent: str, old: Row, fields: Row) -> None:
        """A rollout that has a verdict now; `old` is its stored row, `fields` what the verifier says."""
        names = [name for name in fields if name in old and not same(old[name], fields[name])]
        self.fields.update(names)
        others = tuple(name for name in names if name != "reward")
        self._add(key, agent, reward_of(old), reward_of(fields), others, "")

    def unjudged(self, key: Key, agent: str, old: Row, reason: str) -> None:
        self._add(key, agent, reward_of(old), None, (), reason)

    def _add(
        self, key: Key, agent: str, before: float | None, after: float | None, fields: tuple[str, ...], reason: str
    ) -> None:
        old, new = (
            "none" if reward is None else "passed" if reward >= self.threshold else "failed"
            for reward in (before, after)
        )
        way = f"{old} to {new}"
        if before is not None and after is not None:
            self.pairs.append((before, after))
            if old == new:
                way = "same" if before == after else "lower" if after < before else "higher"
        self.ways[way] += 1
        if way != "same":
            self.rows.append(Change(key, agent, way, before, after, fields, reason))

    @property
    def n_both(self) -> int:
        return len(self.pairs)

    def means(self) -> tuple[float, float] | None:
        """The mean reward before and after, over the rollouts that have both."""
        if not self.pairs:
            return None
        before, after = (math.fsum(rewards) / self.n_both for rewards in zip(*self.pairs, strict=True))
        return before, after

    def ordered(self) -> list[Change]:
        return sorted(self.rows, key=lambda change: (change.agent, change.key))

    def folded(self, way: str) -> list[list[Change]]:
        """The changes of a way; those without a verdict for the same reason stand together."""
        alike: dict[object, list[Change]] = {}
        for change in (change for change in self.ordered() if change.way == way):
            same_as = (change.before, change.reason) if change.reason else (change.agent, change.key)
            alike.setdefault(same_as, []).append(change)
        return list(alike.values())

    def as_json(self) -> Row:
        means = self.means()
        return {
            "rollouts": sum(self.ways.values()),
            "pass_threshold": self.threshold,
            "ways": {way: self.ways[way] for way in WAYS},
            "rollouts_with_both_rewards": self.n_both,
            "mean_reward_before": means[0] if means else None,
            "mean_reward_after": means[1] if means else None,
            "fields": dict(sorted(self.fields.items())),
            "changes": [
                {
                    "_ng_task_index": change.key[0], "_ng_rollout_index": change.key[1], "agent": change.agent,
                    "way": change.way, "reward_before": change.before, "reward_after": change.after,
                    "fields": list(change.fields), **({"reason": change.reason} if change.reason else {}),
                }
                for change in self.ordered()
            ],
        }  # fmt: skip


def reward_of(row: Row) -> float | None:
    """The reward that a row was given; a failure line and a masked row have none, whatever they say."""
    reward = row.get("reward")
    if row.get("mask_sample") is True:
        return None
    if row.get("_ng_failure_class") is not None or not isinstance(reward, int | float):
        return None
    return float(reward) if math.isfinite(reward) else None


def same(old: Any, new: Any) -> bool:
    """Equal as JSON: a reward of 1 is that of 1.0, a NaN is the null that it was written as."""
    if isinstance(new, float) and not math.isfinite(new):
        return old is None
    if isinstance(old, dict) and isinstance(new, dict):
        return old.keys() == new.keys() and all(same(old[key], new[key]) for key in old)
    if isinstance(old, list | tuple) and isinstance(new, list | tuple):
        return len(old) == len(new) and all(map(same, old, new))
    return bool(old == new) and isinstance(old, bool) == isinstance(new, bool)
