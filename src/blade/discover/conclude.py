"""Turn features and outcomes into mechanisms: tested, controlled, covering the failures, quoted."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from blade import stats
from blade.discover import choose, gather, grammar, kinds, permute, phrase
from blade.discover.candidates import candidates
from blade.discover.choose import Predicate
from blade.discover.gather import Gathered, Rows
from blade.discover.permute import Design
from blade.discover.quote import quote
from blade.model import Column, Episode, Evidence, Judged, Mechanism

if TYPE_CHECKING:
    from blade.model import Bools, Floats, Ints

MIN_ROWS = 10
MAX_QUOTES = 3
TRIES = 8  # rows opened for the quotes of one mechanism


def conclude(
    judged: Judged,
    fields: Mapping[str, Column],
    task_fields: frozenset[str],
    observed: Iterable[tuple[int, tuple[str, ...]]] | Gathered,
    opener: Callable[[int], Episode],
    restating: frozenset[str] = frozenset(),
) -> list[Mechanism]:
    """The mechanisms of a run, those that cover most first, then the leads."""
    if not judged.judged:
        return []
    rows = gather.rows(judged, observed)
    if rows.n < MIN_ROWS or rows.passed.all() or not rows.passed.any():
        return []
    layout = permute.design(rows, *kinds.strata(rows, fields, task_fields))
    found = candidates(rows, fields, task_fields, restating)
    if not found.pairs:
        return []
    tested = permute.test(found, layout)
    if np.isnan(tested.z).all():
        layout = permute.unstratified(rows)
        tested = permute.test(found, layout)
    chosen = choose.choose(rows, found, tested, layout)
    made = (_mechanism(one, rows, layout, judged, opener) for one in chosen)
    told = [one for one in made if one.evidence]  # what cannot be quoted is not claimed
    count = {"mechanism": 0, "lead": 0}
    numbered = []
    for one in told:
        count[one.standing] += 1
        numbered.append(replace(one, id=f"{one.standing[0]}{count[one.standing]}"))
    return numbered


def _mechanism(
    one: Predicate, rows: Rows, layout: Design, judged: Judged, opener: Callable[[int], Episode]
) -> Mechanism:
    failing = np.flatnonzero(one.shown & ~rows.passed)
    p = choose.exact(one, rows, layout)
    p = one.p if p is None else p
    p_adjusted = max(p, one.p_adjusted)
    low, high = _interval(one, rows)
    return Mechanism(
        id="",
        explains=grammar.explains(one.feature),
        near_reward=one.is_near or one.condition.startswith("gold_lacks("),
        feature=one.feature,
        condition=one.condition,
        absent=one.absent,
        run=judged.run,
        text=phrase.sentence(one),
        predicate=phrase.predicate(one),
        n_with=one.n_with,
        pass_with=one.c_with / one.n_with,
        n_without=one.n_without,
        pass_without=one.c_without / one.n_without,
        low=low,
        high=high,
        p=p,
        p_adjusted=p_adjusted,
        within_task=layout.within_task,
        control=_control(one, rows, layout),
        standing="mechanism"
        if layout.firm and p_adjusted <= choose.ALPHA and one.difference >= choose.MIN_EFFECT
        else "lead",
        share_of_failures=failing.size / int((~rows.passed).sum()),
        actionable=grammar.subject(one.feature),
        rollouts=tuple((judged.task_keys[int(rows.task[at])], int(rows.repeat[at])) for at in failing),
        evidence=_evidence(one, rows, failing, opener),
    )


def _control(one: Predicate, rows: Rows, layout: Design) -> str:
    """How difficulty was held fixed, and what speaks against reading it as a cause."""
    told = [
        layout.control,
        "p adjusted by the largest value that shuffled outcomes reach over all predicates",
    ]
    told.append(
        "interval: Newcombe"
        if _is_single(rows)
        else "interval: the wider of Newcombe and one with tasks as units"
    )
    if one.is_near:
        told.append(
            f"the task itself expects {_what(one)}, so its absence comes close to restating the reward"
        )
    elif one.condition.startswith("gold_lacks("):
        told.append(
            "the task expects no such call, so where it changes something it comes close to the reward"
        )
    elif grammar.split(one.feature)[0] in grammar.LATE:
        told.append("it stands at the end of the rollout and may follow from how it went")
    elif grammar.kind(one.feature) in ("n_calls", "n_tools", "n_user_turns", "effort"):
        told.append("a rollout that goes wrong may be longer or shorter for it")
    return "; ".join(told)


def _what(one: Predicate) -> str:
    return "these ids in a call" if grammar.kind(one.feature) == "gold_ids_touched" else "this call"


# ---- Interval ---------------------------------------------------------------------------------


def _is_single(rows: Rows) -> bool:
    return rows.starts.size == rows.n


def _interval(one: Predicate, rows: Rows) -> tuple[float | None, float | None]:
    """Of the difference in pass rate, 95%; rows of one task are not independent."""
    low, high = _newcombe(one)
    if not _is_single(rows) and low is not None and high is not None:
        half = stats.t_quantile(0.975, max(1, rows.starts.size - 1)) * _spread(one, rows)
        low, high = max(-1.0, min(low, one.difference - half)), min(1.0, max(high, one.difference + half))
    return low, high


def _newcombe(one: Predicate) -> tuple[float | None, float | None]:
    """Newcombe (1998), method 10."""
    with_it, without = stats.wilson(one.c_with, one.n_with), stats.wilson(one.c_without, one.n_without)
    if with_it is None or without is None:
        return None, None
    p1, p0 = one.c_with / one.n_with, one.c_without / one.n_without
    low = p0 - p1 - math.hypot(p0 - without.low, with_it.high - p1)
    return low, p0 - p1 + math.hypot(without.high - p0, p1 - with_it.low)


def _spread(one: Predicate, rows: Rows) -> float:
    """Standard error of the difference with tasks as units: from the part of each in the deviation."""

    def deviation(side: Bools, count: int, n: int) -> Floats:
        passes = np.add.reduceat((side & rows.passed).astype(np.float64), rows.starts)
        found: Floats = (passes - count / n * np.add.reduceat(side.astype(np.float64), rows.starts)) / n
        return found

    parts = deviation(one.others, one.c_without, one.n_without) - deviation(one.shown, one.c_with, one.n_with)
    n = parts.size
    return math.sqrt(n / (n - 1) * float((parts**2).sum())) if n > 1 else 0.0


# ---- Evidence ---------------------------------------------------------------------------------


def _evidence(
    one: Predicate, rows: Rows, failing: Ints, opener: Callable[[int], Episode]
) -> tuple[Evidence, ...]:
    """Quotes from failing rollouts that show it, of different tasks where there are such."""
    codes = rows.task[failing]
    first = np.unique(codes, return_index=True)[1].tolist()
    order = [*first, *sorted(set(range(min(len(failing), TRIES))) - set(first))]
    found: list[Evidence] = []
    for at in order[:TRIES]:
        told = quote(opener(int(rows.position[failing[at]])), one)
        if told is not None:
            found.append(told)
        if len(found) == MAX_QUOTES:
            break
    return tuple(found)
