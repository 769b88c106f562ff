"""Turn all judgements of a run into those that stand: of each author the last word on each task."""

from __future__ import annotations

from collections.abc import Iterable

from blade.model import Judgement


def standing(judgements: Iterable[Judgement]) -> dict[str, tuple[Judgement, ...]]:
    """Task -> the last judgement of each author, the newest last."""
    latest: dict[str, dict[str, Judgement]] = {}
    for one in sorted(judgements, key=lambda one: one.at):  # stable: of one moment, the later line
        latest.setdefault(one.task, {})[one.by] = one
    return {
        task: tuple(sorted(by_author.values(), key=lambda one: (one.at, one.by)))
        for task, by_author in latest.items()
    }
