"""Turn all judgements of a run into those that stand: of each author the last word on each task."""

from __future__ import annotations

from collections.abc import Iterable

from blade.model import Judgement


def standing(judgements: Iterable[Judgement]) -> dict[str, tuple[Judgement, ...]]:
    """Task -> the last judgement of each author, the newest last; lines come in the order they were given,
    which clocks may not."""
    latest: dict[str, dict[str, Judgement]] = {}
    for one in judgements:
        authors = latest.setdefault(one.task, {})
        authors.pop(one.by, None)
        authors[one.by] = one
    return {task: tuple(authors.values()) for task, authors in latest.items()}
