"""Split the change in further ways: by slice, by task, by setting, by outcome."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from blade import stats
from blade.compare.bridge import COMPOSITION
from blade.compare.losses import lost
from blade.compare.run_settings import changed
from blade.compare.task_pairs import Paired, Spread, TaskSets, mean, means, reach, spread, task_sets
from blade.model import Setting, Side, Term, View
from blade.stats.intervals import special
from blade.stats.passes_at_k import per_pair

if TYPE_CHECKING:
    from blade.model import Bools, Floats, Ints

# A row that shows several counts for the first.
OUTCOMES = ("errored", "timed out", "truncated", "no usable reward")
OTHER_FAILURES = "other failures"


def views(
    pair: Paired, delta_terms: Sequence[Term], config_diff: Sequence[Setting], separable: bool | None
) -> tuple[View, ...]:
    """Every view adds up to the same change as `delta_terms`, the terms of the bridge."""
    sets = task_sets(pair)
    if not sets.n_common:
        return ()
    outside = tuple(term for term in delta_terms if term.side in COMPOSITION)
    parts = [slice_view(pair, sets, field) for field in fields(pair, sets)]
    parts.append(View("tasks", (*outside, *task_terms(pair)), NOTE))
    parts.append(_settings(pair, outside, config_diff, separable))
    marked = any(flag.any() for side in (pair.a, pair.b) for flag in side.flags.values())
    if marked and pair.a.is_bounded and pair.b.is_bounded:
        parts.append(_outcomes(pair, outside))
    return tuple(parts)


# ---- Settings --------------------------------------------------------------------------------------


def _settings(
    pair: Paired, outside: tuple[Term, ...], config_diff: Sequence[Setting], separable: bool | None
) -> View:
    """The change of the common tasks, on the one setting that differs if there is one; the tasks apart."""
    keys = changed(config_diff)
    if not keys:
        name, note = (
            "no known setting differs",
            "What changed, if anything did, is not among the known settings.",
        )
    elif len(keys) == 1:
        name = f"{keys[0].key}: {_stated(keys[0].baseline)} → {_stated(keys[0].candidate)}"
        note = "Only this setting is known to differ. What no file states may differ as well."
        if not separable:
            note += " Some settings are stated by one run only."
    else:
        name = "not separable: " + ", ".join(sorted(setting.key for setting in keys))
        note = "Several settings changed at once: two runs cannot say which of them moved the score."
    change, value = stats.mean_change(pair.d, pair.step), mean(pair.d)
    widest = max(abs(value), reach(pair))
    low, high, p = (-widest, widest, None) if change is None else (change.low, change.high, change.p)
    return View("settings", (*outside, Term(name, value, low, high, p, "setting", pair.d.size)), note)


def _stated(value: str | None) -> str:
    return "not stated" if value is None else value


# ---- Outcomes --------------------------------------------------------------------------------------


def _outcomes(pair: Paired, outside: tuple[Term, ...]) -> View:
    """What the common tasks lose to rows that ended in one way or another."""
    names = (*OUTCOMES, OTHER_FAILURES)
    lost_a, lost_b = lost(pair)
    by_end = lost_a.by_task(_ended(pair.a), len(names)), lost_b.by_task(_ended(pair.b), len(names))
    terms = []
    for name, a, b in zip(names, *by_end, strict=True):
        concerned = int(np.count_nonzero((a > 0) | (b > 0)))
        if not concerned and name != OTHER_FAILURES:
            continue
        change = stats.mean_change(a - b, pair.step)
        low, high, p = (-1.0, 1.0, None) if change is None else (change.low, change.high, change.p)
        terms.append(Term(name, mean(a - b), low, high, p, "outcome", concerned))
    return View("outcomes", (*outside, *terms), _OUTCOME_NOTE)


_OUTCOME_NOTE = (
    "What the row itself says of its end, before any reading of traces. A row with several marks counts for "
    "the first of: " + ", ".join(OUTCOMES) + "."
)


def _ended(side: Side) -> Ints:
    """How each row ended, as a place in the names above."""
    codes = np.full(side.judged.task.size, len(OUTCOMES))
    for place in reversed(range(len(OUTCOMES))):
        if OUTCOMES[place] in side.flags:
            codes[side.flags[OUTCOMES[place]]] = place
    return codes


MAX_FIELDS = 8
MAX_LABELS = 30
NONE = "(none)"
NAME = "slices: "  # and the field


@dataclass(frozen=True)
class Labelled:
    """One field over the tasks of both runs."""

    labels: tuple[str, ...]
    is_named: tuple[bool, ...]  # False: several labels in one
    cell_a: Ints  # place in `labels`, in the order of `TaskSets`
    cell_b: Ints

    def common(self, label: int, n: int) -> tuple[Bools, Bools]:
        """Which common tasks have the label, and which do not; a task of two minds is neither."""
        in_a, in_b = self.cell_a[:n] == label, self.cell_b[:n] == label
        return in_a & in_b, ~in_a & ~in_b


def fields(pair: Paired, sets: TaskSets) -> list[str]:
    """The fields that both runs label tasks with; coarse ones first, which rest on more tasks a label."""
    distinct = {field: len(_texts(pair, sets, field)) for field in set(pair.a.slices) & set(pair.b.slices)}
    return sorted((field for field in distinct if distinct[field] > 1), key=lambda f: (distinct[f], f))[
        :MAX_FIELDS
    ]


def _texts(pair: Paired, sets: TaskSets, field: str) -> list[str]:
    """The labels that a task with a counted row has in either run."""
    texts = set()
    for side, tasks in ((pair.a, sets.codes_a), (pair.b, sets.codes_b)):
        codes, labels = side.slices[field]
        used = np.flatnonzero(np.bincount(codes[tasks] + 1)).tolist()
        texts |= {labels[code - 1] if code else NONE for code in used}
    return sorted(texts)


def labelled(pair: Paired, sets: TaskSets, field: str) -> Labelled:
    """The labels of a field joined by their text; small ones together."""
    texts = _texts(pair, sets, field)
    place = {text: i for i, text in enumerate(texts)}
    cells = []
    for side, codes in ((pair.a, sets.codes_a), (pair.b, sets.codes_b)):
        own, labels = side.slices[field]
        # The last stands for -1; labels that no task has are never looked up.
        to_place = np.array([place.get(text, -1) for text in (*labels, NONE)], np.int64)
        cells.append(to_place[own[codes]])
    sizes = np.bincount(np.concatenate(cells), minlength=len(texts))
    order = sorted(range(len(texts)), key=lambda i: (-int(sizes[i]), texts[i]))
    if len(texts) <= MAX_LABELS:
        return Labelled(tuple(texts), (True,) * len(texts), cells[0], cells[1])
    largest = sorted(order[: MAX_LABELS - 1])
    slot = np.full(len(texts), MAX_LABELS - 1)
    slot[largest] = np.arange(len(largest))
    names = (*(texts[i] for i in largest), f"other labels ({len(texts) - len(largest)})")
    is_named = (*(True for _ in largest), False)
    return Labelled(names, is_named, slot[cells[0]], slot[cells[1]])


def slice_view(pair: Paired, sets: TaskSets, field: str) -> View:
    """By label what its own rate changed, and, where its share of the tasks differs, what that changed."""
    labels, d, step = labelled(pair, sets, field), pair.d, pair.step
    around = spread(sets, (labels.cell_a, labels.cell_b), len(labels.labels), step)
    n_a, n_b = around.sizes
    rate_a, rate_b = (around.sums[run] / np.maximum(around.sizes[run], 1) for run in (0, 1))
    # A label that one run lacks has no change of rate: all that it does is mix.
    rate_a, rate_b = np.where(n_a > 0, rate_a, rate_b), np.where(n_b > 0, rate_b, rate_a)
    shares = n_a / n_a.sum(), n_b / n_b.sum()
    rates, mixes = stats.kitagawa(shares[0], rate_a, shares[1], rate_b)
    weight, widest = (shares[0] + shares[1]) / 2, reach(pair)
    are_paired = sets.are_equal and bool((labels.cell_a == labels.cell_b).all())
    concerned = n_a + n_b - np.diag(around.shared)
    rate_terms, mix_terms = [], []
    for i, label in enumerate(labels.labels):
        n, w = int(concerned[i]), float(weight[i])
        if n_a[i] and n_b[i]:
            inside, outside = labels.common(i, sets.n_common)
            change = stats.mean_change(d[inside], step) if are_paired else _rate_change(around, i)
            term = _interval_term(float(rates[i]), change, w, w * widest)
            excess = _p_excess(d[inside], d[outside], change)
            expected = w * float(rates.sum())
            rate_terms.append(Term(f"{field}={label}", *term, "slice", n, expected, excess))
        if int(n_a[i]) * int(n_b.sum()) != int(n_b[i]) * int(n_a.sum()):
            grown = abs(float(shares[1][i] - shares[0][i]))
            term = _interval_term(float(mixes[i]), _mix_change(around, i, shares), 1.0, grown * widest)
            mix_terms.append(Term(f"share of {field}={label}", *term, "mix", n))
    ordered = (*sorted(rate_terms, key=_largest), *sorted(mix_terms, key=_largest))
    return View(NAME + field, ordered, _MIX_NOTE if mix_terms else _NOTE)


_NOTE = "Terms of other fields cut the same change in other ways: they do not add up with these."
_MIX_NOTE = (
    f"{_NOTE} The runs have other shares of these labels: a share term says what that alone changes, where a "
    "label that grew is a gain if it scores above the mean. A label that only one run has is all share."
)


def _largest(term: Term) -> tuple[float, str]:
    return -round(abs(term.value), 12), term.term


def _interval_term(
    value: float, change: stats.Change | None, scale: float, widest: float
) -> tuple[float, float, float, float | None]:
    """Value, interval and p; where nothing says how sure it is, all that is possible."""
    if change is None:
        return value, min(value, -widest), max(value, widest), None
    return value, scale * change.low, scale * change.high, change.p


def _rate_change(around: Spread, label: int) -> stats.Change | None:
    """What the tasks of a label changed by, where the runs do not have the same."""
    weights = np.zeros(around.sizes[0].size)
    weights[label] = 1.0
    return around.of_sum(-weights / around.sizes[0][label], weights / around.sizes[1][label])


def _mix_change(around: Spread, label: int, shares: tuple[Floats, Floats]) -> stats.Change | None:
    """What another share of a label changes, the shares being what they are and the rates uncertain."""
    pull = -(shares[0] + shares[1]) / 2
    pull[label] += 1
    pull *= shares[1][label] - shares[0][label]
    # The rate of a label is the mean of both runs', or that of the one that has it.
    weights = [
        pull * np.where(shares[1 - run] > 0, 0.5, 1.0) / np.maximum(around.sizes[run], 1) for run in (0, 1)
    ]
    return around.of_sum(weights[0], weights[1])


def _p_excess(inside: Floats, outside: Floats, change: stats.Change | None) -> float | None:
    """That the common tasks of a label changed as much as the others did."""
    difference = stats.two_means(outside, inside)
    if difference is not None:
        return difference.p
    if min(inside.size, outside.size) < 2:
        return None
    # Neither group varies: as sure as the label's own change, or no difference at all.
    is_same = abs(mean(inside) - mean(outside)) < 1e-12
    return 1.0 if is_same or change is None else change.p


LISTED = 15  # gains, and as many losses
NOTE = (
    "Tasks are picked for their size, which chance alone makes large for some: an interval is of one task's "
    "repeats and allows for no picking. Nothing here is claimed to have moved the score."
)
_SAME = 1e-12


def task_terms(pair: Paired) -> tuple[Term, ...]:
    """The largest gains and losses of the common tasks, then what is left of either."""
    d, n = pair.d, pair.d.size
    low, high = task_intervals(pair)
    order = _by_size(pair)
    gains, losses = order[d[order] > _SAME], order[d[order] < -_SAME]
    terms = [
        Term(_name(pair, int(i)), float(d[i] / n), float(low[i] / n), float(high[i] / n), None, "task", 1)
        for i in (*gains[:LISTED], *losses[:LISTED])
    ]
    for name, rest in (("all other gains", gains[LISTED:]), ("all other losses", losses[LISTED:])):
        if rest.size:
            terms.append(_together(name, d[rest], low[rest], high[rest], n))
    if not terms:
        terms.append(_together("no task changed", d, low, high, n))
    return tuple(terms)


def _by_size(pair: Paired) -> Ints:
    """Common tasks by the size of their change, equal ones in the order of their keys."""
    return np.argsort(-np.round(np.abs(pair.d), 12), kind="stable")


def _name(pair: Paired, i: int) -> str:
    """The readable name of a common task if both runs call it that, and its key or keys."""
    code_a, code_b = pair.code_a[i], pair.code_b[i]
    keys = sorted({pair.a.judged.task_keys[code_a], pair.b.judged.task_keys[code_b]})
    key, name = " / ".join(keys), pair.a.task_names[code_a]
    return key if name in keys or name != pair.b.task_names[code_b] else f"{name} [{key}]"


def _together(name: str, d: Floats, low: Floats, high: Floats, n: int) -> Term:
    """The sum of tasks, whose distances to their limits add up as squares (Zou & Donner 2008)."""
    value = math.fsum(d.tolist())
    below, above = (math.sqrt(math.fsum(((d - limit) ** 2).tolist())) for limit in (low, high))
    return Term(name, value / n, (value - below) / n, (value + above) / n, None, "task", d.size)


def task_intervals(pair: Paired) -> tuple[Floats, Floats]:
    """For each common task the range that its repeats leave open for its change.

    Passes and fails: Newcombe (1998), method 10. Other scores: Welch's t where both runs have repeats that
    differ; else all that is possible.
    """
    d = pair.d
    if pair.a.is_binary and pair.b.is_binary:
        low_a, high_a = _wilson(pair.n_a, pair.mean_a)
        low_b, high_b = _wilson(pair.n_b, pair.mean_b)
        below = np.hypot(pair.mean_b - low_b, high_a - pair.mean_a)
        above = np.hypot(high_b - pair.mean_b, pair.mean_a - low_a)
        return d - below, d + above
    var_a, var_b = _variance(pair.a, pair.code_a, pair.n_a), _variance(pair.b, pair.code_b, pair.n_b)
    variance = var_a + var_b
    known = (pair.n_a > 1) & (pair.n_b > 1) & (variance > 0)
    df = np.ones(d.size)
    spread = var_a**2 / np.maximum(pair.n_a - 1, 1) + var_b**2 / np.maximum(pair.n_b - 1, 1)
    df[known] = variance[known] ** 2 / spread[known]
    half = special().stdtrit(df, 0.975) * np.sqrt(variance)
    widest = reach(pair)
    low = np.where(known, d - half, np.minimum(d, -widest))
    high = np.where(known, d + half, np.maximum(d, widest))
    return np.maximum(low, np.minimum(d, -widest)), np.minimum(high, np.maximum(d, widest))


def _wilson(n: Ints, means_: Floats) -> tuple[Floats, Floats]:
    def limits(rows: Ints, passes: Ints) -> Floats:
        bounds = [stats.wilson(c, k) for k, c in zip(rows.tolist(), passes.tolist(), strict=True)]
        return np.array([(x.low, x.high) for x in bounds if x is not None], np.float64).reshape(-1, 2).T

    low, high = per_pair(n, np.rint(means_ * n).astype(np.int64), 1, limits)
    return low, high


def _variance(side: Side, codes: Ints, n: Ints) -> Floats:
    """Of the mean of each task's rows."""
    centre = means(side, side.judged.score)
    squares = means(side, (side.judged.score - centre[side.judged.task]) ** 2)[codes]
    variance: Floats = squares / np.maximum(n - 1, 1)
    return np.where(variance > 1e-24, variance, 0.0)
