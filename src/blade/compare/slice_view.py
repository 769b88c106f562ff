"""Turn what tasks are labelled with into the change of score by label: other rates, and another mix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from blade import stats
from blade.compare.pairing import Paired
from blade.compare.task_sets import Spread, TaskSets, mean, reach, spread
from blade.model import Term, View

if TYPE_CHECKING:
    from blade.model import Bools, Floats, Ints

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
    found = set()
    for side, tasks in ((pair.a, sets.codes_a), (pair.b, sets.codes_b)):
        codes, labels = side.slices[field]
        used = np.flatnonzero(np.bincount(codes[tasks] + 1)).tolist()
        found |= {labels[code - 1] if code else NONE for code in used}
    return sorted(found)


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
    kept = sorted(order[: MAX_LABELS - 1])
    slot = np.full(len(texts), MAX_LABELS - 1)
    slot[kept] = np.arange(len(kept))
    names = (*(texts[i] for i in kept), f"other labels ({len(texts) - len(kept)})")
    is_named = (*(True for _ in kept), False)
    return Labelled(names, is_named, slot[cells[0]], slot[cells[1]])


def slice_view(pair: Paired, sets: TaskSets, field: str) -> View:
    """By label what its own rate changed, and, where its share of the tasks differs, what that changed."""
    told, d, step = labelled(pair, sets, field), pair.d, pair.step
    around = spread(sets, (told.cell_a, told.cell_b), len(told.labels), step)
    n_a, n_b = around.sizes
    rate_a, rate_b = (around.sums[run] / np.maximum(around.sizes[run], 1) for run in (0, 1))
    # A label that one run lacks has no change of rate: all that it does is mix.
    rate_a, rate_b = np.where(n_a > 0, rate_a, rate_b), np.where(n_b > 0, rate_b, rate_a)
    shares = n_a / n_a.sum(), n_b / n_b.sum()
    rates, mixes = stats.kitagawa(shares[0], rate_a, shares[1], rate_b)
    weight, widest = (shares[0] + shares[1]) / 2, reach(pair)
    are_paired = sets.are_equal and bool((told.cell_a == told.cell_b).all())
    concerned = n_a + n_b - np.diag(around.shared)
    rate_terms, mix_terms = [], []
    for i, label in enumerate(told.labels):
        n, w = int(concerned[i]), float(weight[i])
        if n_a[i] and n_b[i]:
            inside, outside = told.common(i, sets.n_common)
            change = stats.mean_change(d[inside], step) if are_paired else _rate_change(around, i)
            told_term = _told(float(rates[i]), change, w, w * widest)
            excess = _p_excess(d[inside], d[outside], change)
            expected = w * float(rates.sum())
            rate_terms.append(Term(f"{field}={label}", *told_term, "slice", n, expected, excess))
        if int(n_a[i]) * int(n_b.sum()) != int(n_b[i]) * int(n_a.sum()):
            grown = abs(float(shares[1][i] - shares[0][i]))
            told_term = _told(float(mixes[i]), _mix_change(around, i, shares), 1.0, grown * widest)
            mix_terms.append(Term(f"share of {field}={label}", *told_term, "mix", n))
    ordered = (*sorted(rate_terms, key=_largest), *sorted(mix_terms, key=_largest))
    return View(NAME + field, ordered, _MIX_NOTE if mix_terms else _NOTE)


_NOTE = "Terms of other fields cut the same change in other ways: they do not add up with these."
_MIX_NOTE = (
    f"{_NOTE} The runs have other shares of these labels: a share term says what that alone changes, where a "
    "label that grew is a gain if it scores above the mean. A label that only one run has is all share."
)


def _largest(term: Term) -> tuple[float, str]:
    return -round(abs(term.value), 12), term.term


def _told(
    value: float, change: stats.Change | None, scale: float, widest: float
) -> tuple[float, float, float, float | None]:
    """Value, interval and p; where nothing says how sure it is, all that is possible."""
    if change is None:
        return value, min(value, -widest), max(value, widest), None
    return value, scale * change.low, scale * change.high, change.p


def _rate_change(around: Spread, label: int) -> stats.Change | None:
    """What the tasks of a label changed by, where the runs do not have the same."""
    at = np.zeros(around.sizes[0].size)
    at[label] = 1.0
    return around.of_sum(-at / around.sizes[0][label], at / around.sizes[1][label])


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
    found = stats.two_means(outside, inside)
    if found is not None:
        return found.p
    if min(inside.size, outside.size) < 2:
        return None
    # Neither group varies: as sure as the label's own change, or no difference at all.
    is_same = abs(mean(inside) - mean(outside)) < 1e-12
    return 1.0 if is_same or change is None else change.p
