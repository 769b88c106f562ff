"""Split the change in further ways: by slice, by task, by setting, by outcome; and claim the terms that moved the score."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from blade import stats
from blade.compare.bridge import COMPOSITION, MODEL, is_named, lost, model_modes, term_of
from blade.compare.run_settings import changed, signed
from blade.compare.task_pairs import Paired, Spread, TaskSets, mean, means, reach, rows_of, spread, task_sets
from blade.model import Floats, Ints, Mover, Setting, Side, Term, View
from blade.stats.intervals import special
from blade.stats.passes_at_k import per_pair

# A row that shows several counts for the first.
OUTCOMES = ("errored", "timed out", "truncated", "no usable reward")
OTHER_FAILURES = "other failures"
MAX_FIELDS = 8
MAX_LABELS = 30
NONE = "(none)"
NAME = "slices: "  # and the field
LISTED = 15  # gains, and as many losses
_SAME = 1e-12
_MIX = "Terms of other fields cut the same change in other ways: they do not add up with these."
_NOTES = {
    "outcomes": "What the row itself says of its end, before any reading of traces. A row with several marks counts for "
    f"the first of: {', '.join(OUTCOMES)}.",
    "tasks": "Tasks are picked for their size, which chance alone makes large for some: an interval is of one task's "
    "repeats and allows for no picking. Nothing here is claimed to have moved the score.",
    "slices": _MIX,
    "mix": f"{_MIX} The runs have other shares of these labels: a share term says what that alone changes, where a "
    "label that grew is a gain if it scores above the mean. A label that only one run has is all share.",
}


def views(
    pair: Paired, delta_terms: Sequence[Term], config_diff: Sequence[Setting], separable: bool | None
) -> tuple[View, ...]:
    """Every view adds up to the same change as `delta_terms`, the terms of the bridge."""
    sets = task_sets(pair)
    if not sets.n_common:
        return ()
    outside = tuple(term for term in delta_terms if term.side in COMPOSITION)
    parts = [slice_view(pair, sets, field) for field in fields(pair, sets)]
    parts.append(View("tasks", (*outside, *task_terms(pair)), _NOTES["tasks"]))
    setting, note = _setting(pair, config_diff, separable)
    parts.append(View("settings", (*outside, setting), note))
    marked = any(flag.any() for side in (pair.a, pair.b) for flag in side.flags.values())
    if marked and pair.is_bounded:
        parts.append(View("outcomes", (*outside, *_outcomes(pair)), _NOTES["outcomes"]))
    return tuple(parts)


def _setting(pair: Paired, config_diff: Sequence[Setting], separable: bool | None) -> tuple[Term, str]:
    """The change of the common tasks, on the one setting that differs if there is one."""
    keys = changed(config_diff)
    if not keys:
        name, note = "no known setting differs", "What changed, if anything did, is not among the known settings."
    elif len(keys) == 1:
        before, after = ("not stated" if value is None else value for value in (keys[0].baseline, keys[0].candidate))
        name = f"{keys[0].key}: {before} → {after}"
        note = "Only this setting is known to differ. What no file states may differ as well."
        if not separable:
            note += " Some settings are stated by one run only."
    else:
        name = "not separable: " + ", ".join(sorted(setting.key for setting in keys))
        note = "Several settings changed at once: two runs cannot say which of them moved the score."
    change = stats.mean_change(pair.d, pair.step)
    return term_of(name, mean(pair.d), change, reach(pair), "setting", pair.d.size), note


def _outcomes(pair: Paired) -> Iterator[Term]:
    """What the common tasks lose to rows that ended in one way or another."""
    names = (*OUTCOMES, OTHER_FAILURES)
    by_end = (lost(side, codes).by_task(_ended(side), len(names)) for side, codes, _ in pair.runs)
    for name, a, b in zip(names, *by_end, strict=True):
        concerned = int(np.count_nonzero((a > 0) | (b > 0)))
        if concerned or name == OTHER_FAILURES:
            yield term_of(name, mean(a - b), stats.mean_change(a - b, pair.step), 1.0, "outcome", concerned)


def _ended(side: Side) -> Ints:
    """How each row ended, as a place in the names above."""
    codes = np.full(side.judged.task.size, len(OUTCOMES))
    for place in reversed(range(len(OUTCOMES))):
        if OUTCOMES[place] in side.flags:
            codes[side.flags[OUTCOMES[place]]] = place
    return codes


# ---- Slices ----------------------------------------------------------------------------------------


class Labelled(NamedTuple):
    """One field over the tasks of both runs."""

    labels: tuple[str, ...]
    is_named: tuple[bool, ...]  # False: several labels in one
    cell_a: Ints  # place in `labels`, in the order of `TaskSets`
    cell_b: Ints


def fields(pair: Paired, sets: TaskSets) -> list[str]:
    """The fields that both runs label tasks with; coarse ones first, which rest on more tasks a label."""
    distinct = {field: len(_texts(pair, sets, field)) for field in set(pair.a.slices) & set(pair.b.slices)}
    several = (field for field in distinct if distinct[field] > 1)
    return sorted(several, key=lambda field: (distinct[field], field))[:MAX_FIELDS]


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
            # a task of two minds is neither inside nor outside
            is_a, is_b = labels.cell_a[: sets.n_common] == i, labels.cell_b[: sets.n_common] == i
            inside, outside = d[is_a & is_b], d[~is_a & ~is_b]
            alone = np.eye(n_a.size)[i]  # the weight of this label alone
            change = stats.mean_change(inside, step) if are_paired else around.of_sum(-alone / n_a[i], alone / n_b[i])
            excess = _p_excess(inside, outside, change)
            scaled = change and change._replace(low=w * change.low, high=w * change.high)
            term = term_of(f"{field}={label}", float(rates[i]), scaled, w * widest, "slice", n)
            rate_terms.append(replace(term, expected=w * float(rates.sum()), p_excess=excess))
        if int(n_a[i]) * int(n_b.sum()) != int(n_b[i]) * int(n_a.sum()):
            grown = abs(float(shares[1][i] - shares[0][i]))
            change = _mix_change(around, i, shares)
            mix_terms.append(term_of(f"share of {field}={label}", float(mixes[i]), change, grown * widest, "mix", n))
    ordered = (*sorted(rate_terms, key=_largest), *sorted(mix_terms, key=_largest))
    return View(NAME + field, ordered, _NOTES["mix" if mix_terms else "slices"])


def _largest(term: Term) -> tuple[float, str]:
    return -round(abs(term.value), 12), term.term


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


# ---- Tasks -----------------------------------------------------------------------------------------


def task_terms(pair: Paired) -> tuple[Term, ...]:
    """The largest gains and losses of the common tasks, then what is left of either."""
    d, n = pair.d, pair.d.size
    low, high = task_intervals(pair)
    # by the size of their change, equal ones in the order of their keys
    order = np.argsort(-np.round(np.abs(d), 12), kind="stable")
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
    if pair.is_binary:
        low_a, high_a = _wilson(pair.n_a, pair.mean_a)
        low_b, high_b = _wilson(pair.n_b, pair.mean_b)
        below = np.hypot(pair.mean_b - low_b, high_a - pair.mean_a)
        above = np.hypot(high_b - pair.mean_b, pair.mean_a - low_a)
        return d - below, d + above
    var_a, var_b = (_variance(*run) for run in pair.runs)
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


def _variance(side: Side, codes: Ints, n: Ints) -> Floats:
    """Of the mean of each task's rows."""
    squares = means(side, (side.judged.score - means(side, side.judged.score)[side.judged.task]) ** 2)[codes]
    variance: Floats = squares / np.maximum(n - 1, 1)
    return np.where(variance > 1e-24, variance, 0.0)


def _wilson(n: Ints, means_: Floats) -> tuple[Floats, Floats]:
    def limits(rows: Ints, passes: Ints) -> Floats:
        bounds = [stats.wilson(c, k) for k, c in zip(rows.tolist(), passes.tolist(), strict=True)]
        return np.array([(x.low, x.high) for x in bounds if x is not None], np.float64).reshape(-1, 2).T

    low, high = per_pair(n, np.rint(means_ * n).astype(np.int64), 1, limits)
    return low, high


# ---- Claims ----------------------------------------------------------------------------------------

LEVEL = 0.05  # of comparisons in which nothing changed, at most this share claims anything
MIN_TASKS = 5  # fewer cannot be told from chance, and would only make the others harder to tell
MANY = 5  # rollouts from which it is said what they have in common
MOST = 0.6  # of them must show another fact for it to be said
SHOWN = 5  # rollouts of a claim
BRIDGE = "bridge"
_MECHANICAL = (*COMPOSITION, "infrastructure", "task or verifier")
_LIMITED = ("truncat", "cut off", "timeout", "timed out", "context", "limit", "budget")


class _Candidate(NamedTuple):
    view: str
    term: Term
    p: float  # by which it is claimed
    p_excess: float  # by which it is ranked
    is_mechanical: bool

    @property
    def rank(self) -> tuple[bool, float, float, str, str]:
        return not self.is_mechanical, self.p_excess, -abs(self.term.value), self.view, self.term.term


def movers(
    pair: Paired, bridge: Sequence[Term], views: Sequence[View], config_diff: Sequence[Setting]
) -> tuple[Mover, ...]:
    """Claim the terms that are beyond noise, corrected for all that were looked at (Holm 1979).

    The largest failure group that moved with the score needs no more than that. Any other group, and any slice,
    must also have moved by more than its share: otherwise a change of everything alike would claim them all.
    """
    sets = task_sets(pair)
    limit_changed = any(setting.kind == "limit" for setting in config_diff)
    candidates = [*_of_bridge(bridge, limit_changed), *_of_slices(pair, sets, views)]
    # Modes that are told together were looked at, too: it is the largest changes that are told apart.
    n_modes = sum(1 for candidate in candidates if candidate.term.side == MODEL)
    unseen = [1.0] * max(0, model_modes(pair, MIN_TASKS) - n_modes)
    adjusted = stats.holm([*(candidate.p for candidate in candidates), *unseen])
    claimed = [(claim, p) for claim, p in zip(candidates, adjusted, strict=False) if p is not None and p <= LEVEL]
    claimed.sort(key=lambda claim: claim[0].rank)
    return tuple(_mover(pair, sets, candidate, p) for candidate, p in claimed)


def _of_bridge(bridge: Sequence[Term], limit_changed: bool) -> Iterator[_Candidate]:
    change = sum(term.value for term in bridge if term.side not in COMPOSITION)
    named = [term for term in bridge if term.side == MODEL and is_named(term) and term.value * change > 0]
    largest = max(named, key=lambda term: abs(term.value), default=None)  # part of the change, in its direction
    for term in bridge:
        if term.p is None:
            continue
        if term.side == MODEL:
            if not is_named(term) or term.n < MIN_TASKS:
                continue
            excess = max(term.p, 1.0 if term.p_excess is None else term.p_excess)
            is_limit = limit_changed and any(word in term.term.lower() for word in _LIMITED)
            yield _Candidate(BRIDGE, term, term.p if term is largest else excess, excess, is_limit)
        elif term.side in (*_MECHANICAL, "data"):
            yield _Candidate(BRIDGE, term, term.p, term.p, term.side in _MECHANICAL)


def _of_slices(pair: Paired, sets: TaskSets, views: Sequence[View]) -> Iterator[_Candidate]:
    """Rates of labels; labels that mark the same tasks count once."""
    seen: set[tuple[bytes, bytes]] = set()
    for view in views:
        if not view.name.startswith(NAME):
            continue
        field = view.name.removeprefix(NAME)
        labels = labelled(pair, sets, field)
        place = {f"{field}={label}": i for i, label in enumerate(labels.labels)}
        for term in view.terms:
            i = place.get(term.term)
            if term.side != "slice" or term.p is None or term.p_excess is None or i is None:
                continue
            marked = (labels.cell_a == i).tobytes(), (labels.cell_b == i).tobytes()
            if term.n < MIN_TASKS or not labels.is_named[i] or marked in seen:
                continue
            seen.add(marked)
            p = max(term.p, term.p_excess, _exchanged(pair, field, labels.labels[i]))
            yield _Candidate(view.name, term, p, p, False)


def _exchanged(pair: Paired, field: str, label: str) -> float:
    """p of an exchange of rows within the tasks of a slice, where the runs have different numbers of rows."""
    rows = rows_of(pair)
    if field not in pair.a.slices or not stats.is_lopsided(rows):
        return 0.0
    codes, labels = pair.a.slices[field]
    inside = codes[pair.code_a] == (labels.index(label) if label in labels else -2)
    change = stats.within_change(rows.of(inside), pair.step) if inside.any() else None
    return 0.0 if change is None or change.p is None else change.p


def _mover(pair: Paired, sets: TaskSets, candidate: _Candidate, p: float) -> Mover:
    term = candidate.term
    rollouts, beside = shown(pair, term) if candidate.view == BRIDGE else ((), ())
    return Mover(
        view=candidate.view, term=term.term, side=term.side, value=term.value, low=term.low, high=term.high, p_adjusted=p,
        share=term.value / sets.delta if abs(sets.delta) > 1e-9 else None, mechanical=candidate.is_mechanical,
        text=_text(pair, sets, term), rollouts=rollouts, beside=beside,
    )  # fmt: skip


def _text(pair: Paired, sets: TaskSets, term: Term) -> str:
    """Say in one sentence what moved, how much, what its share would be, and on how many tasks it rests."""

    def amount(value: float) -> str:
        return signed(100 * value, ".1f") if pair.is_bounded else signed(value, ".3g")

    of_all = term.side in ("slice", *COMPOSITION)
    name = term.term if of_all else f"{term.term} ({term.side})"
    moved = f"{name} accounts for {amount(term.value)} {'points' if pair.is_bounded else 'of the mean reward'}"
    if term.expected is not None:
        moved += f"; in proportion to the losses of both runs it would be {amount(term.expected)}"
    return f"{moved} ({term.n} of {sets.n_all if of_all else sets.n_common} tasks concerned)"


def shown(pair: Paired, term: Term) -> tuple[tuple[tuple[str, str, int], ...], tuple[str, ...]]:
    """Run, task and repeat of some rollouts booked under the term, of the run with more of them; and what most of these show as well."""
    rows_a, rows_b = (_rows(side, common, term) for side, common, _ in pair.runs)
    more_in_a = (rows_a.size, pair.a.run) > (rows_b.size, pair.b.run)
    side, rows = (pair.a, rows_a) if more_in_a else (pair.b, rows_b)
    judged = side.judged
    listed = tuple(
        (side.run, judged.task_keys[int(judged.task[row])], int(judged.repeat[row])) for row in rows[:SHOWN]
    )
    return listed, _beside(side, rows, term)


def _rows(side: Side, common: Ints, term: Term) -> Ints:
    codes = [code for code, mode in enumerate(side.modes) if mode == (term.side, term.term)]
    return np.flatnonzero(np.isin(side.mode, codes) & np.isin(side.judged.task, common))


def _beside(side: Side, rows: Ints, term: Term) -> tuple[str, ...]:
    if rows.size < MANY or term.side != "model":
        return ()
    counts = ((int(np.isin(rows, others).sum()), name) for name, others in side.behaviours.items() if name != term.term)
    also = sorted((-n, name) for n, name in counts if n >= MOST * rows.size)
    return tuple(f"{-n} of its {rows.size} failing rollouts in {side.run} also show: {name}" for n, name in also[:2])
