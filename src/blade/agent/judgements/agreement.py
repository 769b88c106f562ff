"""Turn labels of the same tasks by several authors and the engine into how far they agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations

from blade import stats
from blade.model import Agreement, Cause, Judgement

ENGINE = "engine"
MOST = 12  # authors that are held against one another, those who judged most


def agreements(
    run: str, judged: Mapping[str, Sequence[Judgement]], proposed: Mapping[str, Cause]
) -> tuple[Agreement, ...]:
    """Of each author with the engine, then of each two authors, over the tasks that both labelled."""
    labels: dict[str, dict[str, Cause]] = {}
    for task, told in judged.items():
        for one in told:
            labels.setdefault(one.by, {})[task] = one.cause
    authors = sorted(labels)
    pairs = [(ENGINE, author, proposed, labels[author]) for author in authors]
    busiest = sorted(sorted(authors, key=lambda name: (-len(labels[name]), name))[:MOST])
    pairs += [(a, b, labels[a], labels[b]) for a, b in combinations(busiest, 2)]
    found = [_agreement(run, *pair) for pair in pairs]
    return tuple(one for one in found if one.n)


def _agreement(
    run: str, first: str, second: str, a: Mapping[str, Cause], b: Mapping[str, Cause]
) -> Agreement:
    counts = Counter((a[task], b[task]) for task in a if task in b)
    causes = list(Cause)
    matrix = [[float(counts[x, y]) for y in causes] for x in causes]
    n = sum(counts.values())
    agreed = sum(count for (x, y), count in counts.items() if x is y)
    told = tuple((x, y, counts[x, y]) for x in causes for y in causes if counts[x, y])
    return Agreement(run, first, second, n, agreed, stats.cohen_kappa(matrix), told)
