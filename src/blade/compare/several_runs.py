"""Compare several runs at once: verdicts that hold together, one matrix, solvers, Pareto fronts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from blade import stats
from blade.compare.alignment import align
from blade.compare.change_verdict import ALPHA, EQUIVALENT, IMPROVED, INCONCLUSIVE, NEW, REGRESSED, THESE
from blade.compare.task_pairs import counts, means
from blade.model import Alone, Comparison, Matrix, Placed, Side, Tested
from blade.stats.intervals import special

if TYPE_CHECKING:
    from blade.model import Bools, Floats, Ints

MIRRORED = {IMPROVED: REGRESSED, REGRESSED: IMPROVED}
REFUSED = "refused"

Pairs = Mapping[tuple[str, str], Comparison]


def answer(comparison: Comparison, question: str) -> Tested | None:
    """What a comparison says to one of the two questions."""
    return next((tested for tested in comparison.tests if tested.question == question), None)


# ---- Many candidates against one baseline ---------------------------------------------------------


def adjusted(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """Holm's adjustment over the candidates that are held against one baseline, for each question apart.

    A change that does not survive it is claimed no longer. One candidate is left as it is.
    """
    out = list(comparisons)
    for baseline in sorted({comparison.baseline for comparison in comparisons}):
        places = [i for i, comparison in enumerate(out) if comparison.baseline == baseline]
        if len(places) < 2:
            continue
        family = [out[i] for i in places]
        these, new = (
            stats.holm([_p(comparison, question) for comparison in family]) for question in (THESE, NEW)
        )
        for i, p_these, p_new in zip(places, these, new, strict=True):
            out[i] = _adjusted(out[i], p_these, p_new, len(family))
    return out


def _adjusted(comparison: Comparison, p_these: float | None, p_new: float | None, n: int) -> Comparison:
    verdict = _kept(comparison, THESE, comparison.verdict, p_these)
    verdict_new = _kept(comparison, NEW, comparison.verdict_new_tasks, p_new)
    notes = list(comparison.notes)
    for question, old, former, p in (
        (THESE, comparison.verdict, verdict, p_these),
        (NEW, comparison.verdict_new_tasks, verdict_new, p_new),
    ):
        if old != former:
            notes.append(
                f"On {question}: {old} if this were the only candidate (p = {_p(comparison, question):.2g}), "
                f"{former} as one of {n} compared with the same baseline (p = {p:.2g}, Holm)."
            )
    return msgspec.structs.replace(
        comparison,
        verdict=verdict,
        verdict_new_tasks=verdict_new,
        p_adjusted=p_these,
        p_adjusted_new=p_new,
        notes=tuple(notes),
    )


def _p(comparison: Comparison, question: str) -> float | None:
    tested = answer(comparison, question)
    return None if tested is None or comparison.refused else tested.p


def _kept(comparison: Comparison, question: str, verdict: str | None, p: float | None) -> str | None:
    """The verdict, or what is left of it where the adjusted p does not bear out a change."""
    if verdict not in MIRRORED or p is None or p <= ALPHA:
        return verdict
    tested = answer(comparison, question)
    if tested is None or tested.low90 is None or tested.high90 is None:
        return INCONCLUSIVE
    within = -comparison.margin < tested.low90 and tested.high90 < comparison.margin
    return EQUIVALENT if within else INCONCLUSIVE


# ---- All against all ------------------------------------------------------------------------------


def matrix(sides: Sequence[Side], comparisons: Pairs) -> Matrix:
    """Every run against every other, by (baseline, candidate); one direction of a pair is enough."""
    runs = tuple(side.run for side in sides)
    pairs = _pairs(runs, comparisons)
    ps = stats.holm([_p(comparison, NEW) for _, _, comparison in pairs])
    size = len(runs)
    verdicts = [[""] * size for _ in runs]
    deltas: list[list[float | None]] = [[None] * size for _ in runs]
    adjusted_p: list[list[float | None]] = [[None] * size for _ in runs]
    for (row, column, comparison), p in zip(pairs, ps, strict=True):
        verdict = REFUSED if comparison.refused else _kept(comparison, NEW, comparison.verdict_new_tasks, p)
        delta = None if comparison.refused else comparison.delta_common
        verdicts[row][column] = verdict or ""
        verdicts[column][row] = MIRRORED.get(verdict or "", verdict or "")
        deltas[row][column] = delta
        deltas[column][row] = None if delta is None else 0.0 - delta
        adjusted_p[row][column] = adjusted_p[column][row] = p
    runs_shared = shared(sides, comparisons)
    placed, remarks = placements(runs_shared)
    return Matrix(
        runs=runs,
        n_tasks=len(runs_shared.keys),
        verdicts=tuple(map(tuple, verdicts)),
        deltas=tuple(map(tuple, deltas)),
        p_adjusted=tuple(map(tuple, adjusted_p)),
        placed=placed,
        only_one=only_one(runs_shared),
        none_solves=solved_by(runs_shared, 0),
        all_solve=solved_by(runs_shared, size),
        alone=alone(runs_shared),
        expected_alone=expected_alone(runs_shared),
        notes=(*notes(runs_shared), *remarks),
    )


def _pairs(runs: tuple[str, ...], comparisons: Pairs) -> list[tuple[int, int, Comparison]]:
    """Each pair once: place of the candidate, place of the baseline, and how they compare."""
    pairs = []
    for i, run in enumerate(runs):
        for j, other in enumerate(runs[:i]):
            if (other, run) in comparisons:
                pairs.append((i, j, comparisons[other, run]))
            elif (run, other) in comparisons:
                pairs.append((j, i, comparisons[run, other]))
    return pairs


@dataclass(frozen=True)
class Shared:
    """Runs over the tasks they all share; the tables have one row for each run, one column for each task."""

    sides: tuple[Side, ...]
    keys: tuple[str, ...]
    names: tuple[str, ...]
    codes: Ints  # of the task in each run
    n: Ints  # counted rows
    passes: Ints  # of these
    mean: Floats  # of the score

    @property
    def is_judged(self) -> bool:
        """Every run has a threshold that says what passes."""
        return all(side.judged.judged for side in self.sides)


def shared(sides: Sequence[Side], comparisons: Mapping[tuple[str, str], Comparison] | None = None) -> Shared:
    """The tasks for which every run has a counted row, under the keys of the first run.

    Each run is aligned with the first; comparisons with it, by (baseline, candidate), have done so already.
    """
    first, *others = sides
    known = comparisons or {}
    places = [_place(first, other, known.get((first.run, other.run))) for other in others]
    own = {key: code for code, key in enumerate(first.judged.task_keys)}
    n_first = counts(first)
    keys = tuple(key for key, code in own.items() if n_first[code] and all(key in place for place in places))
    codes = np.array([[place[key] for key in keys] for place in (own, *places)], np.int64)
    codes = codes.reshape(len(sides), len(keys))
    rows = list(zip(sides, codes, strict=True))
    return Shared(
        tuple(sides),
        keys,
        tuple(first.task_names[code] for code in codes[0].tolist()),
        codes,
        np.stack([counts(side)[code] for side, code in rows]),
        np.stack([_passes(side)[code] for side, code in rows]),
        np.stack([means(side, side.judged.score)[code] for side, code in rows]),
    )


def _place(first: Side, other: Side, comparison: Comparison | None) -> dict[str, int]:
    """The code that another run gives each task it shares with the first, by the first's key."""
    alignment = align(first, other) if comparison is None else comparison.alignment
    code = {key: code for code, key in enumerate(other.judged.task_keys)}
    names = alignment.common_candidate or alignment.common
    return {key: code[name] for key, name in zip(alignment.common, names, strict=True)}


def _passes(side: Side) -> Ints:
    return np.bincount(side.judged.task[side.judged.passed], minlength=len(side.judged.task_keys))


def placements(runs: Shared) -> tuple[tuple[Placed, ...], list[str]]:
    """Score, dollars and output tokens of every run over the tasks all have, and what limits them."""
    has_tasks = bool(runs.keys)
    scores = [math.fsum(row) / len(row) if has_tasks else None for row in runs.mean.tolist()]
    cost, cost_notes = _effort(runs, "cost_usd")
    tokens, token_notes = _effort(runs, "output_tokens")
    by_cost, by_tokens = front(scores, cost), front(scores, tokens)
    entries = tuple(
        Placed(side.run, scores[i], cost[i], tokens[i], by_cost[i], by_tokens[i])
        for i, side in enumerate(runs.sides)
    )
    notes = [*cost_notes, *token_notes]
    if any(known is not None for known in (*by_cost, *by_tokens)):
        notes.append("A front goes by the values as measured; the matrix says which scores truly differ.")
    return entries, notes


def front(scores: Sequence[float | None], costs: Sequence[float | None]) -> list[bool | None]:
    """Which runs no other beats: none scores as much for less, none more for as much. Ties stay on it."""

    def is_beaten(score: float, cost: float) -> bool:
        return any(
            s >= score and c <= cost and (s > score or c < cost)
            for s, c in zip(scores, costs, strict=True)
            if s is not None and c is not None
        )

    return [
        None if score is None or cost is None else not is_beaten(score, cost)
        for score, cost in zip(scores, costs, strict=True)
    ]


def _effort(runs: Shared, name: str) -> tuple[list[float | None], list[str]]:
    """The mean of a rollout, over the tasks for which every run that reports it at all does so."""
    columns = [_reported(side, name, code) for side, code in zip(runs.sides, runs.codes, strict=True)]
    reported = [column for column in columns if column is not None]
    if not reported:
        return [None] * len(columns), []
    is_reported = np.isfinite(np.stack(reported)).all(0)
    n = int(is_reported.sum())
    if not n:
        return [None] * len(columns), [f"{name}: for no task do all runs that report it do so."]
    notes = [] if n == is_reported.size else [f"{name}: over the {n:,} of {is_reported.size:,} tasks that report it."]
    return [None if column is None else math.fsum(column[is_reported].tolist()) / n for column in columns], notes


def _reported(side: Side, name: str, codes: Ints) -> Floats | None:
    """The mean of every shared task over the rows that report it; None where no row does."""
    values = side.effort.get(name)
    if values is None:
        return None
    reported = np.isfinite(values)
    size = len(side.judged.task_keys)
    n = np.bincount(side.judged.task[reported], minlength=size)
    sums = np.bincount(side.judged.task[reported], weights=values[reported], minlength=size)
    with np.errstate(invalid="ignore"):
        means_of: Floats = (sums / n)[codes]
    return means_of if np.isfinite(means_of).any() else None


LISTED = 50  # tasks of each run that are given with their counts


def solved(runs: Shared) -> Bools:
    """At least one pass: by run and task. Nothing is solved where no threshold says what passes."""
    is_solved: Bools = runs.passes > 0
    return is_solved


def solved_by(runs: Shared, n_runs: int) -> tuple[str, ...]:
    """The tasks that so many of the runs solve."""
    if not runs.is_judged:
        return ()
    return _keys(runs, solved(runs).sum(0) == n_runs)


def only_one(runs: Shared) -> dict[str, tuple[str, ...]]:
    """For each run the tasks that it alone solves."""
    own = _own(runs)
    return {side.run: _keys(runs, own[i]) for i, side in enumerate(runs.sides)}


def alone(runs: Shared) -> tuple[Alone, ...]:
    """The tasks of `only_one` with their counts: what chance explains least first, LISTED of each run."""
    own = _own(runs)
    chance = np.minimum(_chances(runs).sum(0), 1.0)
    total = runs.n.sum(0)
    listed = []
    for i, side in enumerate(runs.sides):
        places = np.flatnonzero(own[i])
        order = places[np.lexsort((places, -runs.passes[i, places], np.round(chance[places], 12)))]
        for task in order[:LISTED].tolist():
            n = int(runs.n[i, task])
            listed.append(
                Alone(
                    run=side.run,
                    task=runs.keys[task],
                    task_name=runs.names[task],
                    passes=int(runs.passes[i, task]),
                    repeats=n,
                    others=int(total[task]) - n,
                    p_chance=float(chance[task]),
                )
            )
    return tuple(listed)


def expected_alone(runs: Shared) -> dict[str, float]:
    """How many tasks each run alone would solve if the passes of a task fell to the runs at random."""
    if not runs.is_judged or len(runs.sides) < 2:
        return {}
    chances = _chances(runs).tolist()
    return {side.run: math.fsum(row) for side, row in zip(runs.sides, chances, strict=True)}


def notes(runs: Shared) -> list[str]:
    """What a reader must know before trusting these lists."""
    if not runs.keys:
        return ["No task has a counted row in every run."]
    if not runs.is_judged:
        return ["Which tasks a run solves is unknown: no threshold says what passes."]
    by = solved(runs).sum(0)
    single, none = int((by == 1).sum()), by == 0
    remarks = []
    if single and len(runs.sides) > 1:
        expected = math.fsum(expected_alone(runs).values())
        remarks.append(
            f"{_tasks(single)} solved by one run alone; {expected:.1f} would be so if passes fell to "
            "the runs at random. A single pass always falls to one run and proves nothing; the tasks that "
            "chance explains least are listed first."
        )
    if none.any():
        least = int(runs.n.sum(0)[none].min())
        repeats = f"{least:,} repeats" if least > 1 else "one repeat"
        remarks.append(
            f"{_tasks(int(none.sum()))} solved by no run; the one with the fewest has {repeats} of all runs "
            f"together, where a pass rate of up to {1 - 0.05 ** (1 / least):.0%} can stay unseen (95% bound)."
        )
    return remarks


def _own(runs: Shared) -> Bools:
    """By run and task: this run solves it, and no other does."""
    passed = solved(runs)
    counts = runs.is_judged and len(runs.sides) > 1
    own: Bools = passed & (passed.sum(0) == 1) & counts
    return own


def _chances(runs: Shared) -> Floats:
    """That the passes of a task all fall to one run, if they were dealt to the rows of all runs at random.

    By run and task: C(n_r, c) / C(N, c); 0 where nobody passes, or where the run has fewer rows than that.
    """
    log = special().gammaln
    n, c = runs.n.astype(np.float64), runs.passes.sum(0).astype(np.float64)
    rows = n.sum(0)
    fits = (c > 0) & (n >= c)
    rest = np.where(fits, n - c, 0.0)
    chance = np.exp(log(n + 1) - log(rest + 1) - log(rows + 1) + log(rows - c + 1))
    chances: Floats = np.where(fits, chance, 0.0)
    return chances


def _keys(runs: Shared, chosen: Bools) -> tuple[str, ...]:
    return tuple(runs.keys[i] for i in np.flatnonzero(chosen).tolist())


def _tasks(n: int) -> str:
    return f"{n:,} task is" if n == 1 else f"{n:,} tasks are"
