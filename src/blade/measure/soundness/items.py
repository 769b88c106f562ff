"""Hold several runs of the same tasks against each other: which tasks go against the rest."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from blade import stats
from blade.measure.soundness.patterns import item_rest, loevinger, rasch
from blade.measure.soundness.rows import answers_openly, count, named
from blade.measure.soundness.sounding import OTHER, Heard, Sound, Sounding
from blade.measure.soundness.suspects import merged
from blade.measure.soundness.verdicts import UNANIMOUS
from blade.model import Cause, Evidence, Health, Judged, Level, Suspicion

if TYPE_CHECKING:
    from blade.model import Floats, Ints

FEWEST_TASKS = 5
SAME_TASKS = 0.8  # share of tasks that must expect the same in two runs for their keys to mean the same
RESPONDENTS = 3  # runs from which a correlation over runs means anything
LIKELY = 0.95
DRAWS = 200  # runs simulated to learn what chance alone gives
Soundings = Mapping[str, Sequence[Sounding]]


class Table(NamedTuple):
    """Runs by tasks: the tasks that every run has a usable row of."""

    runs: list[str]
    tasks: list[str]
    n: Ints  # rows
    c: Ints  # of them passes

    @property
    def rates(self) -> Floats:
        return np.asarray(self.c / self.n, np.float64)


def items(judged_by_run: Mapping[str, Judged], soundings_by_run: Soundings | None = None) -> Sound:
    """What several runs show of their tasks; nothing where it is not certain that the tasks are the same."""
    names = sorted(name for name, judged in judged_by_run.items() if judged.judged)
    if len(names) < 2 or (soundings_by_run is not None and not _same_tasks(names, soundings_by_run)):
        return Sound()
    table = _table(names, judged_by_run)
    if len(table.tasks) < FEWEST_TASKS:
        return Sound()
    parts = [_patterns(table), _reversals(table)]
    if soundings_by_run is not None:
        parts.append(_unanimous(names, judged_by_run, soundings_by_run))
    health = tuple(flag for part in parts for flag in part.health)
    return Sound(health, merged(*(part.suspects for part in parts)))


def _same_tasks(names: Sequence[str], soundings: Soundings) -> bool:
    """Whether what tasks of one key expect, or else their prompts, mostly agree between the runs."""
    known = [{one.task: one for one in soundings.get(name, ())} for name in names]
    for other in known[1:]:
        pairs = [(one, other[key]) for key, one in known[0].items() if key in other]
        told = [(a.identity, b.identity) for a, b in pairs if a.identity and b.identity]
        told = told or [(a.prompt, b.prompt) for a, b in pairs if a.prompt and b.prompt]
        if not told or sum(a == b for a, b in told) < SAME_TASKS * len(told):
            return False
    return True


def _table(names: Sequence[str], judged_by_run: Mapping[str, Judged]) -> Table:
    tallies: list[dict[str, tuple[int, int]]] = []
    for name in names:
        judged = judged_by_run[name]
        kept = ~judged.broken
        size = len(judged.task_keys)
        n = np.bincount(judged.task[kept], minlength=size)
        c = np.bincount(judged.task[kept], weights=judged.passed[kept], minlength=size)
        codes = np.flatnonzero(n).tolist()
        tallies.append({judged.task_keys[code]: (int(n[code]), int(c[code])) for code in codes})
    order = {key: at for at, key in enumerate(judged_by_run[names[0]].task_keys)}
    shared = sorted(set.intersection(*map(set, tallies)), key=lambda key: (order.get(key, 0), key))
    counts = np.array([[tally[key] for key in shared] for tally in tallies], np.int64)
    if not shared:
        counts = counts.reshape(len(names), 0, 2)
    return Table(list(names), shared, counts[:, :, 0], counts[:, :, 1])


# ---- Item-rest correlation and scalability ------------------------------------------------------


def _patterns(table: Table) -> Sound:
    """Tasks on which doing well goes with doing badly elsewhere."""
    if len(table.runs) < RESPONDENTS:
        return Sound()
    r, h = item_rest(table.rates), loevinger(table.rates)
    known = ~np.isnan(r)
    odd = known & (r < 0)
    if not odd.any():
        return Sound()
    drawn = _drawn(table, "item-rest")
    with np.errstate(invalid="ignore"):
        below = np.mean([item_rest(rates) <= r for rates in drawn], axis=0)
    strange = odd & (below <= 1 - LIKELY)
    n, seen = int(known.sum()), int(strange.sum())
    excess = _binomial_tail(seen, n, 1 - LIKELY) <= 1 - LIKELY
    best = table.runs[int(table.rates.mean(axis=1).argmax())]
    order = sorted(np.flatnonzero(odd).tolist(), key=lambda j: (r[j], j))
    lowest = ", ".join(f"{table.tasks[j]} (r {r[j]:.2f}, H {_said(h[j])})" for j in order[:5])
    text = (
        f"Over {len(table.runs)} runs {int(odd.sum()):,} of {count(n, 'task')} that tell them apart go "
        "against the "
        f"rest (item-rest correlation below 0): {lowest}. {seen:,} of them lie below what chance gives "
        "in 95 of 100 "
        f"draws, where {0.05 * n:.1f} would by chance alone" + ("." if excess else ": no more than noise.")
    )
    level = Level.WARNING if excess else Level.INFO
    health = Health(best, "item_rest", level, text, float(odd.sum()) / n, n)
    if not excess:
        return Sound((health,))
    suspects = {}
    for j in np.flatnonzero(strange).tolist():
        key = table.tasks[j]
        told = [_doubt(key, "item_rest", f"item-rest correlation {r[j]:.2f}")]
        if h[j] < 0:
            told.append(_doubt(key, "scalability", f"Loevinger's H {h[j]:.2f}"))
        suspects[key] = tuple(told)
    return Sound((health,), suspects)


def _doubt(task: str, flag: str, text: str, evidence: tuple[Evidence, ...] = ()) -> Suspicion:
    """What response patterns say of a task is one point: a reason to look, no proof."""
    return Suspicion(task, flag, 1, Cause.TASK_OR_VERIFIER, text, evidence)


def _said(value: float) -> str:
    return "unknown" if math.isnan(value) else f"{value:.2f}"


def _drawn(table: Table, what: str) -> list[Floats]:
    """Rates as they would come if each run had one ability and each task one difficulty."""
    chance = rasch(table.n, table.c)
    rng = stats.seeded_rng(what, *table.runs, *table.tasks)
    return [rng.binomial(table.n, chance) / table.n for _ in range(DRAWS)]


def _binomial_tail(seen: int, n: int, chance: float) -> float:
    from scipy.special import bdtrc

    return float(bdtrc(seen - 1, n, chance)) if seen > 0 else 1.0


# ---- Reversals ----------------------------------------------------------------------------------


def _reversals(table: Table) -> Sound:
    """Tasks that the better of two runs fails and the worse passes, beyond what chance gives."""
    health: list[Health] = []
    suspects: dict[str, tuple[Suspicion, ...]] = {}
    for one, other in combinations(range(len(table.runs)), 2):
        pair = _ordered(table, one, other)
        if pair is None:
            continue
        strong, weak = pair
        found = _reversed(table.n[[strong, weak]], table.c[[strong, weak]])
        if not found:
            continue
        both = Table(
            [table.runs[i] for i in pair], table.tasks, table.n[[strong, weak]], table.c[[strong, weak]]
        )
        by_chance = [len(_reversed(both.n, np.rint(rates * both.n).astype(np.int64)))
                     for rates in _drawn(both, "reversals")]  # fmt: skip
        usual, most = float(np.mean(by_chance)), float(np.quantile(by_chance, LIKELY))
        real = len(found) > most
        keys = [table.tasks[j] for j in found]
        text = (
            f"{both.runs[1]} passes and {both.runs[0]}, better on the rest, fails {named(keys)}: "
            f"{len(found):,} of "
            f"{count(len(table.tasks), 'shared task')} (posterior at least 95%, Benjamini-Hochberg); "
            "chance alone gives "
            f"{usual:.1f} (parametric bootstrap)" + ("." if real else ": no more than noise.")
        )
        level = Level.WARNING if real else Level.INFO
        health.append(Health(both.runs[0], "reversals", level, text, float(len(found)), len(table.tasks)))
        if real:
            said = f"{both.runs[1]} passes it and {both.runs[0]}, better on the rest, fails it"
            new = {key: (_doubt(key, "reversals", said),) for key in keys}
            suspects = merged(suspects, new)
    return Sound(tuple(health), suspects)


def _ordered(table: Table, one: int, other: int) -> tuple[int, int] | None:
    """The better and the worse of two runs; None where the tasks do not say which is which."""
    gap = table.rates[one] - table.rates[other]
    interval = stats.t_interval(gap)
    if interval is None or interval.low <= 0 <= interval.high:
        return None
    return (one, other) if gap.mean() > 0 else (other, one)


def _reversed(n: Ints, c: Ints) -> list[int]:
    """Tasks of the first, better run that it nearly always fails and the second nearly always passes."""
    candidates = (c[0] <= 1) & (c[1] >= n[1] - 1) & (n.min(axis=0) > 1)
    p: list[float | None] = []
    for j in range(n.shape[1]):
        at = (int(n[0, j]), int(c[0, j]), int(n[1, j]), int(c[1, j]))
        p.append(1 - above(*at))
    adjusted = stats.benjamini_hochberg(p)
    return [
        j
        for j in np.flatnonzero(candidates).tolist()
        if (p[j] or 0.0) <= 1 - LIKELY and (adjusted[j] or 0.0) <= 1 - LIKELY
    ]


@lru_cache(maxsize=10_000)
def above(n: int, c: int, n_other: int, c_other: int) -> float:
    """P(the other rate is the larger), both with a uniform prior (the sum for whole parameters)."""
    a, b, a2, b2 = c + 1, n - c + 1, c_other + 1, n_other - c_other + 1

    def log_beta(x: float, y: float) -> float:
        return math.lgamma(x) + math.lgamma(y) - math.lgamma(x + y)

    terms = (
        math.exp(log_beta(a + i, b + b2) - math.log(b2 + i) - log_beta(1 + i, b2) - log_beta(a, b))
        for i in range(a2)
    )
    return min(1.0, math.fsum(terms))


# ---- The same wrong answer ----------------------------------------------------------------------


def _unanimous(names: Sequence[str], judged_by_run: Mapping[str, Judged], soundings: Soundings) -> Sound:
    """Tasks on which several runs nearly always give the same wrong answer."""
    told: dict[str, dict[str, list[tuple[str, Evidence | None]]]] = {}  # task -> answer -> runs
    n_tasks: set[str] = set()
    for name in names:
        judged = judged_by_run[name]
        spoiled = set(judged.rows[judged.broken].tolist())
        passed = set(judged.rows[judged.passed].tolist())
        for task in soundings.get(name, ()):
            voting = [one for one in task.heard if one.position not in spoiled and answers_openly(one)]
            changes = task.n_expected_writes > 0 or any(one.n_writes for one in task.heard)
            if not task.gold or not task.same_gold or not voting or changes:
                continue
            n_tasks.add(task.task)
            answer = _shared_answer(voting, passed)
            if answer is not None:
                first = next(one for one in voting if one.answer == answer)
                runs = told.setdefault(task.task, {}).setdefault(answer, [])
                runs.append((name, task.quotes.get(first.position)))
    found = {key: max(by.values(), key=len) for key, by in told.items()}
    found = {key: runs for key, runs in found.items() if len(runs) > 1}
    if not found:
        return Sound()
    keys = [key for key in judged_by_run[names[0]].task_keys if key in found]
    text = (
        f"On {len(found):,} of {count(len(n_tasks), 'task')} with a gold answer several runs give the "
        "same wrong "
        f"answer in at least {UNANIMOUS:.0%} of their rows ({named(keys)}): the key may be wrong."
    )
    cited = [quote for key in keys for _, quote in found[key] if quote is not None][:3]
    health = Health(
        names[0], "unanimous_wrong_answer", Level.WARNING, text, len(found) / len(n_tasks), len(n_tasks),
        None, tuple(cited),
    )  # fmt: skip
    suspects = {}
    for key, runs in found.items():
        quotes = tuple(quote for _, quote in runs if quote is not None)[:2]
        said = f"{len(runs)} runs give the same wrong answer"
        suspects[key] = (_doubt(key, "unanimous_wrong_answer", said, quotes),)
    return Sound((health,), suspects)


def _shared_answer(voting: Iterable[Heard], passed: set[int]) -> str | None:
    voters = list(voting)
    wrong = [one.answer for one in voters if one.relation == OTHER and one.position not in passed]
    top = max(sorted(set(wrong)), key=wrong.count, default=None)
    return top if top is not None and wrong.count(top) >= UNANIMOUS * len(voters) else None
