"""Cover failing rows by few facts: pure ones first, then by lost points and purity, each tested against chance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from blade.diagnose.groups import Group, group
from blade.diagnose.population import Ints, Mask, Population
from blade.model import Gain
from blade.stats.intervals import Z95, special, t_quantile
from blade.stats.paired_changes import hypergeometric_tail

PURE, PURE_SHARE = 0.99, 0.15
IMPURE, IMPURE_WITHIN = 0.7, 0.3  # least purity of a group: between tasks, and where the same tasks pass without the fact
FOLLOWS = 0.9  # share of a group's rows that show a later fact too, from which it is a consequence
LEVEL = 0.05
RARER = 10  # rows of the rarer outcome in mixed tasks, below which nothing is a mechanism
MAX_GROUPS = 8
LEAST = 2  # rows of a group


@dataclass
class Candidate:
    """A fact that may name a group."""

    rows: Mask  # all rows that show it
    make: Callable[[Mask, Any], Group]  # failing rows, what the test gave -> the group
    order: int = 0  # earlier in a rollout is upstream: the smaller names a group of equal rows
    is_tested: bool = True  # False: a difference from the gold, which passing shows to be what is graded
    purity: float = 0.0  # least purity, where a group must be purer than others
    is_fault: bool = False  # wrong in itself, such as an error: it may be blamed where a kind of task never passes


def candidate(
    people: Population, kind: str, rows: Mask, order: int, facts: Callable[[Mask, Any], dict[str, Any]] = lambda rows, test: {}, *,
    is_tested: bool = True, purity: float = 0.0, is_fault: bool = False, **how: Any,
) -> Candidate:  # fmt: skip
    """A fact with the card of its group; `facts` are what its sentences count among the rows that it explains."""
    make = lambda claimed, test: group(kind, people, claimed, **how, **facts(claimed, test))  # noqa: E731
    return Candidate(rows, make, order, is_tested, purity, is_fault)


@dataclass
class Contrast:
    """How rows with a fact pass beside rows without, in the same tasks where they repeat."""

    pass_with: float
    pass_without: float
    p: float
    is_within: bool  # within tasks
    rows: Mask  # failing rows it may claim
    scope: Mask | None = None  # the rows that were compared: not all where it is within kinds of task

    @property
    def purity(self) -> float:
        return 1 - self.pass_with / self.pass_without if self.pass_without > 0 else 0.0


def contrast(people: Population, rows: Mask, left: Mask, least: int = RARER, is_fault: bool = False) -> Contrast | None:
    """The contrast of a fact; None where it cannot be computed. `is_fault`: the fact is wrong in itself, such as an error."""
    return _within_tasks(people, rows, left, least, is_fault) if people.has_repeats else _between_tasks(people, rows, left, is_fault)


def _within_tasks(people: Population, rows: Mask, left: Mask, least: int, is_fault: bool) -> Contrast | None:
    used = people.is_mixed & (people.passed | left)
    if min(int((people.passed & used).sum()), int((people.failed & used).sum())) < least:
        return None
    p = _stratified(people, rows, used, people.task)
    if p is None:
        return None
    yes, no = rows & used, ~rows & used
    # it may claim only rows of tasks in which some pass lacks it; a fault that no pass of the run shows also those that never pass
    claimed = rows & left
    if not is_fault or people.passed[rows].any():
        claimed &= _free(people, rows, people.task)[people.task]
    return Contrast(people.rate(yes), people.rate(no), p, True, claimed)


def _between_tasks(people: Population, rows: Mask, left: Mask, is_fault: bool) -> Contrast | None:
    """With one try: a fact that some passes show too must hold within kinds of task, lest hard kinds stand for it."""
    used = people.passed | left
    yes, no = rows & used, ~rows & used
    if not yes.any() or not no.any():
        return None
    # Fisher, one-sided: passing is rarer with the fact
    crude = hypergeometric_tail(int(people.passed[yes].sum()), int(yes.sum()), int(people.passed[used].sum()), int(used.sum()))
    claimed = rows & left
    scope = None
    if people.passed[yes].any():
        p = _stratified(people, rows, used, people.kind)
        free = _free(people, rows, people.kind)[people.kind]
        if p is not None and p <= LEVEL and (yes & free).any() and (no & free).any():
            yes, no, claimed, crude, scope = yes & free, no & free, claimed & free, p, free
        elif is_fault:  # in kinds of task that never pass and nearly always show it
            size, passes, marked = (np.bincount(people.kind, weights=mask) for mask in (~people.none, people.passed, rows))
            claimed &= ((passes == 0) & (marked >= FOLLOWS * size) & (size >= 5))[people.kind]
        else:
            return None
    return Contrast(people.rate(yes), people.rate(no), crude, False, claimed, scope)


def _free(people: Population, rows: Mask, strata: Ints) -> Mask:
    """The tasks or kinds of task in which some pass lacks a fact."""
    free = np.zeros(int(strata.max(initial=0)) + 1, bool)
    free[strata[people.passed & ~rows]] = True
    return free


def _stratified(people: Population, rows: Mask, used: Mask, strata: Ints) -> float | None:
    """One-sided test within tasks or kinds of task: passes among rows with the fact, against the hypergeometric of each."""
    size, passes, marked = (np.bincount(strata[used], weights=mask[used]) for mask in (used, people.passed, rows))
    size, passes, marked = (counts[size > 1] for counts in (size, passes, marked))
    mean = passes * marked / size
    total = float((mean * (1 - passes / size) * (size - marked) / (size - 1)).sum())
    both = float((people.passed & rows & used).sum())
    return float(special().ndtr((both + 0.5 - mean.sum()) / np.sqrt(total))) if total > 0 else None


def cover(people: Population, candidates: Sequence[Candidate], left: Mask) -> list[Group]:
    """Few candidates that together explain the failing rows that are left."""
    distinct: dict[bytes, Candidate] = {}  # of candidates that hold for the same rows the one that is upstream
    for entry in sorted(candidates, key=lambda entry: entry.order):
        distinct.setdefault(np.packbits(entry.rows).tobytes(), entry)
    known = list(distinct.values())
    # equal facts are one test, and one that too few rows show or lack can prove nothing
    n_tests = max(sum(entry.is_tested and LEAST < entry.rows.sum() < people.n - LEAST for entry in known), 1)
    groups: list[Group] = []
    rest = left.copy()
    total = int(left.sum())
    while len(groups) < MAX_GROUPS and rest.any():
        scored = [(score, entry) for entry in known if (score := _scored(people, entry, rest, total, n_tests)) is not None]
        if not scored:
            break
        (_, claimed, test), best = max(scored, key=lambda pair: pair[0][0])
        proved = best.make(claimed, test)
        proved.consequences += _consequences(people, candidates, best, claimed, left)
        # where kinds of task are compared, the passes of other kinds say nothing about these failures
        shown = best.rows if test is None or test.scope is None else best.rows & test.scope
        proved.passed, proved.matched, proved.rows = int((people.passed & shown).sum()), shown, claimed
        proved.recount = best.make
        groups.append(proved)
        rest &= ~claimed
        known = [entry for entry in known if entry is not best]
    return groups


def _consequences(people: Population, candidates: Sequence[Candidate], chosen: Candidate, claimed: Mask, left: Mask) -> list[str]:
    """Later facts on the same rows, as groups would be called by them."""
    result = []
    for other in candidates:
        rows = other.rows & left
        both = int((rows & claimed).sum())
        if other.order > chosen.order and both >= FOLLOWS * claimed.sum() and both >= FOLLOWS * rows.sum():
            test = contrast(people, other.rows, left) if other.is_tested else None
            if test is not None or not other.is_tested:
                result.append(other.make(claimed, test).name)
    return result[:3]


def _scored(
    people: Population, fact: Candidate, rest: Mask, total: int, n_tests: int
) -> tuple[tuple[Any, ...], Mask, Contrast | None] | None:
    """How good a fact is for what is left: pure and large ones before all others."""
    test: Contrast | None = None
    claimed, purity = fact.rows & rest, 1 - people.rate(fact.rows)
    if claimed.sum() < (LEAST if fact.is_tested else 1) or (not fact.is_tested and purity < 0.9):
        return None
    if fact.is_tested:
        test = contrast(people, fact.rows, rest, is_fault=fact.is_fault)
        least = max(fact.purity, IMPURE_WITHIN if test is not None and test.is_within else IMPURE)
        if test is None or test.p * n_tests > LEVEL or test.purity < least or (test.rows & rest).sum() < LEAST:
            return None
        claimed, purity = test.rows & rest, test.purity
    is_pure = purity >= PURE and claimed.sum() >= PURE_SHARE * total
    return (is_pure, float(people.lost[claimed].sum()) * purity, -fact.order), claimed, test


SPREAD = 0.95  # level of the interval of a gain
DRAWS = 2000
CHOSEN = 0.05  # one-sided p on the half that chooses, from which the other half estimates


def gain(people: Population, source: Group) -> Gain | None:
    """The gain with its interval; None where no task shows both, or where passes define the fact."""
    if source.rung != "behaviour" or source.is_defined_by_passes or not people.has_repeats:
        return None
    # rows that show the fact and that another group explains are neither with it nor free of it
    affected = source.rows | (source.matched & people.passed)
    used = affected | ~source.matched
    order, even = np.argsort(people.task, kind="stable"), people.none  # every second row of each task
    even[order] = (np.arange(people.n) - np.searchsorted(people.task[order], people.task[order])) % 2 == 0
    uses = [half & used for half, other in ((even, ~even), (~even, even)) if _is_chosen(people, affected, other & used)]
    if not uses:
        return None
    parts = [_by_task(people, affected, half) for half in uses]
    total = float(np.mean([_total(*part) for part in parts]))
    if not total:
        return None
    n = parts[0][0].size
    draws = np.random.default_rng(0).integers(0, n, (DRAWS, n))
    # the estimate for tasks that do not show both is made anew in every draw
    sums = np.mean([[_total(gap[draw], weight[draw]) for draw in draws] for gap, weight in parts], axis=0)
    low, high = np.quantile(sums, [(1 - SPREAD) / 2, (1 + SPREAD) / 2])
    # resampling few tasks says too narrow an interval: Student's t, and n - 1
    few = min(int(np.isfinite(gap).sum()) for gap, _ in parts)
    wider = float(t_quantile((1 + SPREAD) / 2, few - 1) / Z95 * np.sqrt(few / (few - 1))) if few >= 2 else 3.0
    low, high = total - wider * (total - low), total + wider * (high - total)
    most = float(people.lost[source.rows].sum())  # no more can be won than these rows lose
    if low >= most:  # resampling rows that never vary shows no width: the rule of three bounds what n passes in a row prove
        n_free = int((~affected & used & np.isin(people.task, people.task[source.rows])).sum())
        low = most * (1 - 3 / max(n_free, 4))
    return Gain(min(float(low), most), min(total, most), min(float(high), most), SPREAD)


def _is_chosen(people: Population, rows: Mask, half: Mask) -> bool:
    """Whether a half of the rows by itself shows that rows with the fact pass less often."""
    part = Population(
        people.run, [row for row, flag in zip(people.rows, half, strict=True) if flag], people.passed[half],
        people.lost[half], people.task[half], people.repeat[half], people.keys,
    )  # fmt: skip
    test = contrast(part, rows[half], part.failed, least=RARER // 2)
    return test is not None and test.p <= CHOSEN


def _by_task(people: Population, matched: Mask, half: Mask) -> tuple[np.ndarray, np.ndarray]:
    """By task, how much more often rows without the fact pass in this half (nan if it lacks either), and the points of all rows with it."""
    task = np.unique(people.task, return_inverse=True)[1]
    size = np.bincount(task)

    def passing(rows: Mask) -> np.ndarray:
        n, passes = (np.bincount(task, weights=mask) for mask in (rows, rows & people.passed))
        return np.where(n > 0, passes / np.maximum(n, 1), np.nan)

    return passing(~matched & half) - passing(matched & half), np.bincount(task, weights=matched) / size / size.size


def _total(gap: np.ndarray, weight: np.ndarray) -> float:
    """The points that all rows with the fact would win: tasks that do not show both take the mean of those that do."""
    known = np.isfinite(gap) & (weight > 0)
    if not known.any():
        return 0.0
    mean = np.average(gap[known], weights=weight[known])
    return float((gap[known] * weight[known]).sum() + mean * weight[~known].sum())
