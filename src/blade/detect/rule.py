"""What a detector is made of: its rule in words, and the hits it yields."""

from __future__ import annotations

import msgspec

from blade.model import Cause, Episode, Evidence, Rule

# What a detector cannot do without; `run` asks before it calls, and counts where the answer is no.
NEEDS = {
    "steps": "a rollout with output items",
    "calls": "a tool call",
    "declared tools": "declared tools",
    "passes": "a passing rollout of the same task",
    "gold actions": "expected actions",
    "gold answer": "an expected answer",
    "judged": "a pass threshold",
}


class Hit(msgspec.Struct, frozen=True):
    """One place where a rule holds."""

    episode: Episode
    summary: str  # what happened, with the tool and the number concerned
    severity: int  # 1 weak, 2 plain, 3 decisive
    evidence: tuple[Evidence, ...]  # the decisive step first; never empty
    detail: str = ""  # the tool, field or limit concerned, to group hits by
    cause: Cause | None = None  # where this hit points to another cause than the rule
    certain: bool = False  # the row itself says so; else it is the reading of a text


def hit(
    episode: Episode,
    summary: str,
    severity: int,
    *evidence: Evidence | None,
    detail: str = "",
    cause: Cause | None = None,
    certain: bool = False,
) -> Hit | None:
    """A hit, unless nothing of it can be quoted."""
    found = tuple(one for one in evidence if one is not None)
    return Hit(episode, summary, severity, found, detail, cause, certain) if found else None


__all__ = ["NEEDS", "Hit", "Rule", "hit"]
