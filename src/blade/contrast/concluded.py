"""Turn what the tasks showed into contrasts: over all tasks that do both, and of single tasks."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from blade.contrast import words
from blade.contrast.observed import Observed
from blade.contrast.shuffled import BAR, Stratum, max_adjusted, task_adjusted, unpacked, variance
from blade.model import Contrast, Episode, Judged
from blade.stats import benjamini_hochberg, mantel_haenszel, spectrum

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from blade.model import Bools, Floats

MIN_TASKS = 3  # in which a feature varies, for it to say something of the run
MAX_POOLED = 1500  # features that are tested over the run: those that vary most
MAX_CONSIDERED = 60  # of those that hold, the strongest
MAX_OF_RUN = 10
# The control holds the share of shuffled runs with any contrast at its bar, so a measurement of that share
# scatters around the bar: at .02 one over 200 runs stays below .05, at .05 every other one would not.
BAR_OF_RUN = 0.02
MAX_OF_TASK = 2
ALIKE = 0.8  # correlation from which two features tell the same story
GAP = 0.5  # difference in shares from which a feature tells passes and failures of a task apart
MAX_OPENED = 40  # rows that are opened again to quote them


class Task(NamedTuple):
    """A task with passes and failures, as far as its rollouts count."""

    key: str
    positions: tuple[int, ...]
    features: tuple[str, ...]
    place: Mapping[str, int]  # of each feature
    kinds: tuple[int, ...]
    shows: Bools  # features as rows, rollouts as columns
    failed: Bools
    observed: Observed

    def shares(self, at: int) -> tuple[float, float]:
        """Of failing and of passing rollouts with a feature."""
        return float(self.shows[at, self.failed].mean()), float(self.shows[at, ~self.failed].mean())

    def table(self, at: int) -> list[list[int]]:
        """Rollouts with and without a feature, failing and passing."""
        shows, failed = self.shows[at], self.failed
        counts = [[int((rows & those).sum()) for those in (failed, ~failed)] for rows in (shows, ~shows)]
        return counts


class Pooled(NamedTuple):
    """A feature that goes with failing or passing over the tasks of a run."""

    feature: str
    kind: int
    sign: int  # 1: goes with failing
    p: float
    p_adjusted: float
    shows: Bools  # which rollouts show it, over all tasks in their order; False where a task does not vary


def conclude(
    judged: Judged, observed: Iterable[Observed], opener: Callable[[int], Episode]
) -> list[Contrast]:
    """The contrasts of a run, those over all its tasks first."""
    tasks = _tasks(judged, observed)
    if not tasks:
        return []
    pooled = _pooled(tasks)
    quotes = words.Quotes(opener, MAX_OPENED)
    ranked = sorted(distinct(pooled, tasks), key=lambda one: (-_suspicion(tasks, one), one.p, one.feature))
    ranked = ranked[:MAX_OF_RUN]
    of_run = [_of_run(judged.run, tasks, one, at + 1, quotes) for at, one in enumerate(ranked)]
    told = of_run + _of_tasks(judged.run, tasks, [*ranked, *pooled], quotes)
    return [one for one in told if one.evidence]  # what cannot be quoted is not claimed


def _tasks(judged: Judged, observed: Iterable[Observed]) -> list[Task]:
    if not judged.judged:
        return []
    place = {int(position): at for at, position in enumerate(judged.rows)}
    order = {key: at for at, key in enumerate(judged.task_keys)}
    found = []
    for one in observed:
        kept = [
            at
            for at, position in enumerate(one.positions)
            if position in place and not judged.broken[place[position]]
        ]
        failed = np.array([not judged.passed[place[one.positions[at]]] for at in kept], bool)
        if not one.features or failed.all() or not failed.any():
            continue
        shows = unpacked(one.bits, len(one.positions))[:, kept]
        varies = np.flatnonzero(shows.any(1) & ~shows.all(1))
        if varies.size:
            names = tuple(one.features[at] for at in varies)
            found.append(
                Task(
                    one.task,
                    tuple(one.positions[at] for at in kept),
                    names,
                    {name: at for at, name in enumerate(names)},
                    tuple(one.kinds[at] for at in varies),
                    shows[varies],
                    failed,
                    one,
                )
            )
    return sorted(found, key=lambda task: order.get(task.key, len(order)))


# ---- Over all tasks ----------------------------------------------------------------------------


def _pooled(tasks: Sequence[Task]) -> list[Pooled]:
    """Features that hold against shuffled outcomes, the plainest of those that are the same rollouts."""
    names, kinds = _candidates(tasks)
    if not names:
        return []
    code = {name: at for at, name in enumerate(names)}
    spread, sums = np.zeros(len(names)), np.zeros(len(names))
    strata: list[Stratum] = []
    for task in tasks:
        mine = [at for at, name in enumerate(task.features) if name in code]
        if not mine:
            continue
        columns = np.array([code[task.features[at]] for at in mine])
        shows = task.shows[mine]
        strata.append(Stratum(shows, columns, task.failed))
        fails = int(task.failed.sum())
        spread[columns] += variance(shows, fails)
        sums[columns] += shows[:, task.failed].sum(1) - shows.mean(1) * fails
    scale = np.sqrt(spread)
    z = sums / scale
    raw = [math.erfc(abs(one) / math.sqrt(2)) for one in z]
    fdr = benjamini_hochberg(raw)
    adjusted = max_adjusted(strata, len(names), z, scale)
    kept = [at for at, q in enumerate(fdr) if q is not None and q <= BAR and adjusted[at] <= BAR_OF_RUN]
    kept.sort(key=lambda at: (adjusted[at], -abs(z[at]), kinds[at], names[at]))
    return [
        Pooled(
            names[at],
            kinds[at],
            1 if z[at] > 0 else -1,
            raw[at],
            float(adjusted[at]),
            _over_all(tasks, names[at]),
        )
        for at in kept[:MAX_CONSIDERED]
    ]


def _candidates(tasks: Sequence[Task]) -> tuple[list[str], list[int]]:
    """What varies in several tasks; one name for features that the same rollouts show."""
    n_tasks: Counter[str] = Counter()
    told: dict[str, list[tuple[int, bytes]]] = {}
    kinds: dict[str, int] = {}
    weight: dict[str, float] = {}
    for number, task in enumerate(tasks):
        n_tasks.update(task.features)
        for at, name in enumerate(task.features):
            kinds[name] = task.kinds[at]
            told.setdefault(name, []).append((number, task.shows[at].tobytes()))
        for name, one in zip(task.features, variance(task.shows, int(task.failed.sum())), strict=True):
            weight[name] = weight.get(name, 0.0) + float(one)
    several = [name for name, count in n_tasks.items() if count >= MIN_TASKS]
    several.sort(key=lambda name: (kinds[name], len(name), name))
    distinct: dict[tuple[tuple[int, bytes], ...], str] = {}
    for name in several:
        distinct.setdefault(tuple(told[name]), name)
    kept = sorted(distinct.values(), key=lambda name: (-weight[name], name))[:MAX_POOLED]
    return kept, [kinds[name] for name in kept]


def _over_all(tasks: Sequence[Task], feature: str) -> Bools:
    parts = [
        task.shows[task.place[feature]] if feature in task.place else np.zeros(task.failed.size, bool)
        for task in tasks
    ]
    return np.concatenate(parts)


def distinct(pooled: Sequence[Pooled], tasks: Sequence[Task]) -> list[Pooled]:
    """The strongest, and what tells failures from passes where those before it say nothing.

    A plainer feature stands for one that it goes along with nearly always.
    """
    strata = np.concatenate([np.full(task.failed.size, at) for at, task in enumerate(tasks)])
    failed = np.concatenate([task.failed for task in tasks])
    kept: list[Pooled] = []
    for one in pooled:
        twin = next((at for at, other in enumerate(kept) if _alike(one.shows, other.shows, strata)), None)
        if twin is not None:
            if one.kind < kept[twin].kind and one.p <= 10 * kept[twin].p:
                kept[twin] = one
        elif len(kept) < MAX_OF_RUN and _adds(one, kept, strata, failed):
            kept.append(one)
    return kept


def _alike(one: Bools, other: Bools, strata: NDArray[np.int64]) -> bool:
    x, y = _centred(one, strata), _centred(other, strata)
    norm = math.sqrt(float(x @ x) * float(y @ y))
    return norm > 0 and abs(float(x @ y)) >= ALIKE * norm


def _centred(shows: Bools, strata: NDArray[np.int64]) -> Floats:
    means = np.bincount(strata, shows) / np.bincount(strata)
    found: Floats = shows - means[strata]
    return found


def _adds(one: Pooled, kept: Sequence[Pooled], strata: NDArray[np.int64], failed: Bools) -> bool:
    """Whether a feature still goes with the outcome among rollouts that are alike in all that is kept."""
    for other in kept:
        strata = 2 * strata + other.shows
    codes = np.unique(strata, return_inverse=True)[1]
    n, with_it, fails, both = (
        np.bincount(codes, weight) for weight in (np.ones(codes.size), one.shows, failed, one.shows & failed)
    )
    spread = (with_it * (n - with_it) * fails * (n - fails) / (n * n * np.maximum(n - 1, 1))).sum()
    if spread <= 0:
        return False
    z = one.sign * (both - with_it * fails / n).sum() / math.sqrt(spread)
    return z > 0 and math.erfc(z / math.sqrt(2)) <= BAR


def _suspicion(tasks: Sequence[Task], pooled: Pooled) -> float:
    """How well the feature, or its absence, covers the failures and only them, where repeats differ in it."""
    fails = sum(int(task.failed.sum()) for task in tasks)
    passes = sum(task.failed.size for task in tasks) - fails
    shown_fails = shown_passes = 0
    for task in tasks:
        if pooled.feature in task.place:
            with_it, without = task.table(task.place[pooled.feature])
            shown = with_it if pooled.sign > 0 else without
            shown_fails, shown_passes = shown_fails + shown[0], shown_passes + shown[1]
    return spectrum(shown_fails, fails - shown_fails, shown_passes, passes - shown_passes).ochiai


def _of_run(run: str, tasks: Sequence[Task], pooled: Pooled, rank: int, quotes: words.Quotes) -> Contrast:
    telling = [task for task in tasks if pooled.feature in task.place]
    places = [task.place[pooled.feature] for task in telling]
    tables = [task.table(at)[:: pooled.sign] for task, at in zip(telling, places, strict=True)]
    shares = [task.shares(at) for task, at in zip(telling, places, strict=True)]
    n_fail = [int(task.failed.sum()) for task in telling]
    n_pass = [task.failed.size - fails for task, fails in zip(telling, n_fail, strict=True)]
    weights = [fails * passes / (fails + passes) for fails, passes in zip(n_fail, n_pass, strict=True)]
    in_fail, in_pass = (
        float(np.average([pair[side] for pair in shares], weights=weights)) for side in (0, 1)
    )
    best = max(range(len(telling)), key=lambda at: (pooled.sign * (shares[at][0] - shares[at][1]), -at))
    return Contrast(
        id=f"contrast:run#{rank}",
        run=run,
        task=None,
        feature=pooled.feature,
        in_pass=in_pass,
        in_fail=in_fail,
        n_pass=sum(n_pass),
        n_fail=sum(n_fail),
        p=pooled.p,
        p_adjusted=pooled.p_adjusted,
        text=words.of_run(
            pooled.feature, pooled.kind, in_fail, in_pass, len(telling), mantel_haenszel(tables)
        ),
        other_run=None,
        evidence=_evidence(telling[best], places[best], pooled.sign, quotes),
    )


# ---- Single tasks ------------------------------------------------------------------------------


def _of_tasks(
    run: str, tasks: Sequence[Task], pooled: Sequence[Pooled], quotes: words.Quotes
) -> list[Contrast]:
    """Of each task what tells its outcomes apart, if that holds over the run or among its own repeats."""
    alone = _alone(tasks)
    found = []
    for task in tasks:
        held = _held(task, pooled)
        if task.key in alone:
            at, p, adjusted = alone[task.key]
            if all(at != other[0] for other in held):
                held.append((at, p, adjusted, "own"))
        for rank, (at, p, adjusted, ground) in enumerate(held[:MAX_OF_TASK]):
            in_fail, in_pass = task.shares(at)
            n_fail = int(task.failed.sum())
            n_pass = int(task.failed.size) - n_fail
            found.append(
                Contrast(
                    id=f"contrast:{task.key}#{rank + 1}",
                    run=run,
                    task=task.key,
                    feature=task.features[at],
                    in_pass=in_pass,
                    in_fail=in_fail,
                    n_pass=n_pass,
                    n_fail=n_fail,
                    p=p,
                    p_adjusted=adjusted,
                    text=words.of_task(
                        task.features[at], task.kinds[at], in_fail, in_pass, n_fail, n_pass, ground
                    ),
                    other_run=None,
                    evidence=_evidence(task, at, 1 if in_fail > in_pass else -1, quotes),
                )
            )
    return found


def _held(task: Task, pooled: Sequence[Pooled]) -> list[tuple[int, float, float, str]]:
    """Features that hold over the run and tell the outcomes of this task apart in the same direction."""
    found: list[tuple[float, int, tuple[int, float, float, str]]] = []
    for one in pooled:
        if one.feature in task.place:
            at = task.place[one.feature]
            in_fail, in_pass = task.shares(at)
            gap = one.sign * (in_fail - in_pass)
            if gap >= GAP and all(at != entry[0] for *_, entry in found):
                found.append((-gap, len(found), (at, one.p, one.p_adjusted, "run")))
    return [entry for *_, entry in sorted(found)]


def _alone(tasks: Sequence[Task]) -> dict[str, tuple[int, float, float]]:
    """The strongest feature of tasks with enough repeats to speak for themselves."""
    tested = [(task.key, task_adjusted(task.shows, task.failed)) for task in tasks]
    told = [(key, *found) for key, found in tested if found is not None]
    fdr = benjamini_hochberg([p for _, p, _ in told])
    return {key: (at, p, q) for (key, p, at), q in zip(told, fdr, strict=True) if q is not None and q <= BAR}


def _evidence(task: Task, at: int, sign: int, quotes: words.Quotes) -> tuple[words.Evidence, ...]:
    """Quotes of a rollout that shows the feature and of one that does not, the failing one first."""
    shows = task.shows[at] if sign > 0 else ~task.shows[at]
    fails, passes = np.flatnonzero(task.failed & shows), np.flatnonzero(~task.failed & ~shows)
    if fails.size and passes.size:
        pair = (task.positions[fails[0]], task.positions[passes[0]])
        found = quotes.of(task.features[at], *pair, failing_shows=sign > 0)
        if found:
            return found
    return task.observed.divergences[0].evidence if task.observed.divergences else ()
