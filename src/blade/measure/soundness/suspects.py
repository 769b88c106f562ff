"""Turn doubts about tasks into a score without them: excluded, and counted as passed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from blade.measure.soundness.sounding import REVIEW, SUSPECT, Suspects, points
from blade.model import Health, Judged, Level, Suspicion

LISTED = 100  # tasks listed one by one


class Without(NamedTuple):
    """The score if the suspect tasks were not there, and if they had passed."""

    excluded: float | None  # None: no task is left
    n: int  # tasks left
    as_passed: float | None


def merged(*parts: Mapping[str, Iterable[Suspicion]]) -> dict[str, tuple[Suspicion, ...]]:
    """All suspicions by task, the weightiest first, one of each kind."""
    found: dict[str, dict[str, Suspicion]] = {}
    for part in parts:
        for key, suspicions in part.items():
            for one in suspicions:
                known = found.setdefault(key, {})
                if one.flag not in known or known[one.flag].points < one.points:
                    known[one.flag] = one
    return {
        key: tuple(sorted(kinds.values(), key=lambda one: (-one.points, one.flag)))
        for key, kinds in found.items()
    }


def suspect_keys(suspects: Suspects) -> set[str]:
    return {key for key, suspicions in suspects.items() if points(suspicions) >= SUSPECT}


def without_suspects(judged: Judged, suspects: Suspects) -> Without:
    """The score over the other tasks, how many these are, and the score with the suspects as passed."""
    doubted = suspect_keys(suspects)
    means = _task_means(judged)
    left = [mean for key, mean in means.items() if key not in doubted]
    passed = [1.0 if key in doubted else mean for key, mean in means.items()]
    excluded = float(np.mean(left)) if left else None
    return Without(excluded, len(left), float(np.mean(passed)) if passed else None)


def _task_means(judged: Judged) -> dict[str, float]:
    n = np.bincount(judged.task, minlength=len(judged.task_keys))
    total = np.bincount(judged.task, weights=judged.score, minlength=len(judged.task_keys))
    codes = np.flatnonzero(n).tolist()
    return {judged.task_keys[code]: float(total[code] / n[code]) for code in codes}


def listed(judged: Judged, suspects: Suspects) -> Iterator[Health]:
    """The tasks in doubt one by one, and what the score would be without them."""
    order = {key: at for at, key in enumerate(judged.task_keys)}
    means = _task_means(judged)
    counted = [(points(told), key) for key, told in suspects.items() if key in means]
    ranked = sorted(counted, key=lambda one: (-one[0], order[one[1]]))
    doubted = [(n, key) for n, key in ranked if n >= SUSPECT]
    rows = np.bincount(judged.task, minlength=len(judged.task_keys))
    if doubted:
        yield _sensitivity(judged, suspects, means, len(doubted))
    for n, key in [one for one in ranked if one[0] >= REVIEW][:LISTED]:
        told = suspects[key]
        text = "; ".join(f"{one.text} ({one.cause.value})" for one in told)
        yield Health(
            judged.run,
            "suspect_task" if n >= SUSPECT else "task_to_review",
            Level.INFO,  # the flag of the run that raises the doubt says how grave it is
            f"{text}. Points: {n}; suspect from {SUSPECT}, to review from {REVIEW}.",
            float(n),
            int(rows[order[key]]),
            key,
            tuple(evidence for one in told for evidence in one.evidence)[:3],
        )


def _sensitivity(judged: Judged, suspects: Suspects, means: Mapping[str, float], n_doubted: int) -> Health:
    values = np.array(list(means.values()))
    score = float(values.mean())
    without = without_suspects(judged, suspects)
    error = float(values.std(ddof=1)) / float(np.sqrt(values.size)) if values.size > 1 else 0.0
    moved = [abs(other - score) for other in (without.excluded, without.as_passed) if other is not None]
    matters = bool(moved) and max(moved) > error
    said = ".1%" if judged.judged else ".4g"
    noun = "tasks is" if n_doubted == 1 else "tasks are"
    excluded = (
        f"{without.excluded:{said}} over the other {without.n:,}"
        if without.excluded is not None
        else "nothing is left"
    )
    text = f"{n_doubted:,} of {values.size:,} {noun} suspect. The score is {score:{said}}; without them "
    text += excluded
    if without.as_passed is not None:
        text += f", with them counted as passed {without.as_passed:{said}}"
    text += "; that is more than one standard error." if matters else "; that is within one standard error."
    level = Level.WARNING if matters else Level.INFO
    return Health(judged.run, "score_without_suspects", level, text, without.excluded, without.n)
