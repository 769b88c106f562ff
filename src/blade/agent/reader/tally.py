"""Count answers: how often each was given, and how far labels agree with those of the engine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from blade.agent.reader.asked import STATUSES, Result
from blade.model import Agreement, Cause
from blade.stats import cohen_kappa


def statuses(results: Sequence[Result]) -> dict[str, int]:
    """How many questions ended how."""
    found = Counter(result.status for result in results)
    return {status: found[status] for status in STATUSES}


def answers(results: Sequence[Result]) -> list[tuple[str, tuple[str, ...]]]:
    """Each answer with the tasks it was given of, the most frequent first; case does not matter."""
    found: dict[str, tuple[str, list[str]]] = {}
    for result in results:
        if result.answer is not None:
            key = result.answer.answer.casefold()
            found.setdefault(key, (result.answer.answer, []))[1].append(result.question.about)
    told = [(spelled, tuple(abouts)) for spelled, abouts in found.values()]
    return sorted(told, key=lambda one: (-len(one[1]), one[0]))


def agreement(
    run: str, by: str, results: Sequence[Result], proposed: Mapping[str, Cause]
) -> Agreement | None:
    """How far the accepted labels say what the engine proposes; None where there are none."""
    pairs = [
        (proposed[result.question.about], Cause(result.answer.answer))
        for result in results
        if result.answer is not None and result.question.about in proposed
    ]
    if not pairs:
        return None
    causes, found = list(Cause), Counter(pairs)
    matrix = [[float(found[a, b]) for b in causes] for a in causes]
    confusion = tuple((a, b, found[a, b]) for a in causes for b in causes if found[a, b])
    agreed = sum(count for (a, b), count in found.items() if a is b)
    return Agreement(run, "engine", by, len(pairs), agreed, cohen_kappa(matrix), confusion)
