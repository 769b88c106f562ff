"""Turn a task that never passes here, and another run's passes on it, into what sets them apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from blade.align import parted
from blade.contrast import words
from blade.contrast.concluded import GAP
from blade.contrast.features import USE
from blade.contrast.observed import features_of
from blade.contrast.shuffled import task_adjusted, unpacked
from blade.model import Contrast, Divergence, Episode, TaskTraces
from blade.stats import two_groups

if TYPE_CHECKING:
    from blade.model import Bools


def borrowed(task: TaskTraces, passers: Sequence[Episode], other_run: str) -> Contrast | None:
    """What tells a task that never passes from the passes of another run; None if nothing does."""
    failing = [episode for episode in task.episodes if episode.passed is False]
    passing = [episode for episode in passers if episode.passed]
    if not failing or not passing or any(episode.passed for episode in task.episodes):
        return None
    features, kinds, bits = features_of([*failing, *passing])
    if not features:
        return None
    shows = unpacked(bits, len(failing) + len(passing))
    failed = np.arange(shows.shape[1]) < len(failing)
    in_fail, in_pass = shows[:, failed].mean(1), shows[:, ~failed].mean(1)
    gaps = np.abs(in_fail - in_pass)
    # what passing rollouts do and these do not is the plainer advice than what these do besides
    order = sorted(
        range(len(features)),
        key=lambda at: (
            -round(gaps[at], 9),
            kinds[at] > USE,
            in_fail[at] > in_pass[at],
            kinds[at],
            features[at],
        ),
    )
    best = order[0]
    if gaps[best] < GAP:
        return None
    tested = task_adjusted(shows, failed)
    at_best = tested is not None and bool((shows[tested[1]] == shows[best]).all())
    told = Contrast(
        id=f"contrast:{task.task}@{other_run}",
        run=task.run,
        task=task.task,
        feature=features[best],
        in_pass=float(in_pass[best]),
        in_fail=float(in_fail[best]),
        n_pass=len(passing),
        n_fail=len(failing),
        p=two_groups(shows[best, failed].astype(float), shows[best, ~failed].astype(float)),
        p_adjusted=tested[0] if tested is not None and at_best else None,
        text=words.of_borrowed(
            features[best], float(in_fail[best]), float(in_pass[best]), len(failing), len(passing), other_run
        ),
        other_run=other_run,
        evidence=_evidence(
            features[best], shows[best], failing, passing, bool(in_fail[best] > in_pass[best])
        ),
    )
    return told if told.evidence else None  # nothing of it can be quoted


def _evidence(
    feature: str, shows: Bools, failing: list[Episode], passing: list[Episode], failing_shows: bool
) -> tuple[words.Evidence, ...]:
    fail = next((at for at in range(len(failing)) if bool(shows[at]) is failing_shows), 0)
    pick = next((at for at in range(len(passing)) if bool(shows[len(failing) + at]) is not failing_shows), 0)
    return words.quoted_pair(feature, failing[fail], passing[pick], failing_shows=failing_shows)


def borrowed_divergences(task: TaskTraces, passers: Sequence[Episode]) -> tuple[Divergence, ...]:
    """Where each failing rollout leaves the nearest pass of another run."""
    failing = [episode for episode in task.episodes if episode.passed is False]
    return parted(failing, [episode for episode in passers if episode.passed])
