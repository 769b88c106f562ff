"""Compare several runs at once: verdicts that hold together, one matrix, solvers, Pareto fronts, trends of checkpoints."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from msgspec.structs import replace

from blade import model, stats
from blade.compare import change_verdict
from blade.compare.alignment import align
from blade.compare.change_verdict import ALPHA, EQUIVALENT, IMPROVED, INCONCLUSIVE, NEW, REGRESSED, THESE
from blade.compare.flips import LEVEL, p_better, sure_flips
from blade.compare.task_pairs import codes_of, counts, known_means, means, paired
from blade.model import Alignment, Bools, Comparison, Floats, Ints, Side, Tested
from blade.number_format import count
from blade.stats.intervals import special

MIRRORED = {IMPROVED: REGRESSED, REGRESSED: IMPROVED}
LISTED = 50  # tasks of each run that are listed
NO_TASK = "No task has a counted row in every run."

Pairs = Mapping[tuple[str, str], Comparison]


def answer(comparison: Comparison, question: str) -> Tested | None:
    """What a comparison says to one of the two questions."""
    return next((tested for tested in comparison.tests if tested.question == question), None)


# ---- Many candidates against one baseline ---------------------------------------------------------


def adjusted(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """Holm's adjustment over the candidates against one baseline, by question: what does not survive it is claimed no longer."""
    out = list(comparisons)
    for baseline in {comparison.baseline for comparison in comparisons}:
        places = [i for i, comparison in enumerate(out) if comparison.baseline == baseline]
        these, new = (stats.holm([_p(out[i], question) for i in places]) for question in (THESE, NEW))
        for i, p_these, p_new in zip(places, these, new, strict=True):
            out[i] = _adjusted(out[i], p_these, p_new, len(places)) if len(places) > 1 else out[i]
    return out


def _adjusted(comparison: Comparison, p_these: float | None, p_new: float | None, n: int) -> Comparison:
    notes, verdicts = list(comparison.notes), []
    for question, alone, p in ((THESE, comparison.verdict, p_these), (NEW, comparison.verdict_new_tasks, p_new)):
        verdicts.append(_surviving(comparison, question, alone, p))
        if alone != verdicts[-1]:
            notes.append(
                f"On {question}: {alone} if this were the only candidate (p = {_p(comparison, question):.2g}), "
                f"{verdicts[-1]} as one of {n} compared with the same baseline (p = {p:.2g}, Holm)."
            )
    return replace(
        comparison, verdict=verdicts[0], verdict_new_tasks=verdicts[1], p_adjusted=p_these, p_adjusted_new=p_new, notes=tuple(notes)
    )


def _p(comparison: Comparison, question: str) -> float | None:
    tested = answer(comparison, question)
    return None if tested is None or comparison.refused else tested.p


def _surviving(comparison: Comparison, question: str, verdict: str | None, p: float | None) -> str | None:
    """The verdict, or what is left of it where the adjusted p does not bear out a change."""
    if verdict not in MIRRORED or p is None or p <= ALPHA:
        return verdict
    tested = answer(comparison, question)
    if tested is None or tested.low90 is None or tested.high90 is None:
        return INCONCLUSIVE
    within = -comparison.margin < tested.low90 and tested.high90 < comparison.margin
    return EQUIVALENT if within else INCONCLUSIVE


# ---- All against all ------------------------------------------------------------------------------


def matrix(sides: Sequence[Side], comparisons: Pairs) -> model.Matrix:
    """Every run against every other, by (baseline, candidate); one direction of a pair is enough."""
    runs = tuple(side.run for side in sides)
    # each pair once: the place of the candidate, that of the baseline
    places = [(i, j) for i, a in enumerate(runs) for j, b in enumerate(runs) if i != j and (b, a) in comparisons]
    places = [(i, j) for i, j in places if i > j or (j, i) not in places]
    pairs = [comparisons[runs[j], runs[i]] for i, j in places]
    size = len(runs)
    verdicts = [[""] * size for _ in runs]
    deltas: list[list[float | None]] = [[None] * size for _ in runs]
    adjusted_p: list[list[float | None]] = [[None] * size for _ in runs]
    ps = stats.holm([_p(comparison, NEW) for comparison in pairs])
    for (row, column), comparison, p in zip(places, pairs, ps, strict=True):
        left = _surviving(comparison, NEW, comparison.verdict_new_tasks, p) or ""
        verdict, delta = ("refused", None) if comparison.refused else (left, comparison.delta_common)
        verdicts[row][column], verdicts[column][row] = verdict, MIRRORED.get(verdict, verdict)
        deltas[row][column], deltas[column][row] = delta, None if delta is None else 0.0 - delta
        adjusted_p[row][column] = adjusted_p[column][row] = p
    over = shared(sides, comparisons)
    placed, remarks = placements(over)
    solvers = _solvers(over)
    return model.Matrix(
        runs=runs, n_tasks=len(over.keys), verdicts=tuple(map(tuple, verdicts)), deltas=tuple(map(tuple, deltas)),
        p_adjusted=tuple(map(tuple, adjusted_p)), placed=placed, **solvers,
        notes=(*_notes(over, solvers["expected_alone"]), *remarks),
    )  # fmt: skip


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

    @property
    def scores(self) -> list[float]:
        return [math.fsum(row) / len(row) for row in self.mean.tolist()]

    def named(self, chosen: Bools) -> tuple[str, ...]:
        return tuple(self.keys[task] for task in np.flatnonzero(chosen).tolist())


def shared(sides: Sequence[Side], comparisons: Pairs | None = None) -> Shared:
    """The tasks for which every run has a counted row, under the keys of the first run; comparisons with it are aligned already."""
    first, *others = sides
    own, known = first.judged.task_keys, comparisons or {}
    places = [np.arange(len(own))]
    for other in others:
        comparison = known.get((first.run, other.run))
        alignment = align(first, other) if comparison is None else comparison.alignment
        place = np.full(len(own), -1)
        place[codes_of(first, alignment.common)] = codes_of(other, alignment.common_candidate or alignment.common)
        places.append(place)
    codes = np.stack(places)
    codes = codes[:, (codes >= 0).all(0) & (counts(first) > 0)]
    keys = tuple(own[code] for code in codes[0].tolist())

    def table(column: Any) -> Any:
        return np.stack([column(side)[code] for side, code in zip(sides, codes, strict=True)])

    def passes(side: Side) -> Ints:
        return np.bincount(side.judged.task[side.judged.passed], minlength=len(side.judged.task_keys))

    names = tuple(first.task_names[code] for code in codes[0].tolist())
    mean = table(lambda side: means(side, side.judged.score))
    return Shared(tuple(sides), keys, names, codes, table(counts), table(passes), mean)


# ---- Fronts ---------------------------------------------------------------------------------------


def placements(runs: Shared) -> tuple[tuple[model.Placed, ...], list[str]]:
    """Score, dollars and output tokens of every run over the tasks all have, and what limits them."""
    scores: list[float | None] = [*runs.scores] if runs.keys else [None] * len(runs.sides)
    (cost, cost_notes), (tokens, token_notes) = _effort(runs, "cost_usd"), _effort(runs, "output_tokens")
    by_cost, by_tokens = front(scores, cost), front(scores, tokens)
    names = [side.run for side in runs.sides]
    entries = tuple(model.Placed(*entry) for entry in zip(names, scores, cost, tokens, by_cost, by_tokens, strict=True))
    remarks = [*cost_notes, *token_notes]
    if any(known is not None for known in (*by_cost, *by_tokens)):
        remarks.append("A front goes by the values as measured; the matrix says which scores truly differ.")
    return entries, remarks


def front(scores: Sequence[float | None], costs: Sequence[float | None]) -> list[bool | None]:
    """Which runs no other beats: none scores as much for less, none more for as much. Ties stay on it."""
    points = [(s, c) for s, c in zip(scores, costs, strict=True) if s is not None and c is not None]

    def is_beaten(score: float, cost: float) -> bool:
        return any(s >= score and c <= cost and (s > score or c < cost) for s, c in points)

    return [None if s is None or c is None else not is_beaten(s, c) for s, c in zip(scores, costs, strict=True)]


def _effort(runs: Shared, name: str) -> tuple[list[float | None], list[str]]:
    """The mean of a rollout, over the tasks for which every run that reports it at all does so."""
    columns = [
        known_means(side, side.effort[name], codes) if name in side.effort else np.full(codes.size, np.nan)
        for side, codes in zip(runs.sides, runs.codes, strict=True)
    ]
    reported = [column for column in columns if np.isfinite(column).any()]
    if not reported:
        return [None] * len(columns), []
    is_reported = np.isfinite(np.stack(reported)).all(0)
    n = int(is_reported.sum())
    if not n:
        return [None] * len(columns), [f"{name}: for no task do all runs that report it do so."]
    remarks = [] if n == is_reported.size else [f"{name}: over the {n:,} of {is_reported.size:,} tasks that report it."]
    return [math.fsum(x[is_reported].tolist()) / n if np.isfinite(x).any() else None for x in columns], remarks


# ---- Who solves what ------------------------------------------------------------------------------


def _solvers(runs: Shared) -> dict[str, Any]:
    """The tasks that one run alone solves, none does or all do: pass at least once. Unknown where nothing says what passes."""
    names, solved = [side.run for side in runs.sides], runs.passes > 0
    n_solvers, has_others = solved.sum(0), runs.is_judged and len(names) > 1
    own = solved & (n_solvers == 1) & has_others
    # by run and task C(n_r, c) / C(N, c), that all passes fall to the run if dealt at random; 0 where they cannot
    log = special().gammaln
    n, c = runs.n.astype(np.float64), runs.passes.sum(0).astype(np.float64)
    rows, fits = n.sum(0), (c > 0) & (n >= c)
    rest = np.where(fits, n - c, 0.0)
    chances = np.where(fits, np.exp(log(n + 1) - log(rest + 1) - log(rows + 1) + log(rows - c + 1)), 0.0)
    return {
        "only_one": {run: runs.named(tasks) for run, tasks in zip(names, own, strict=True)},
        "none_solves": runs.named((n_solvers == 0) & runs.is_judged),
        "all_solve": runs.named((n_solvers == len(names)) & runs.is_judged),
        "alone": tuple(_alone(runs, own, np.minimum(chances.sum(0), 1.0))),
        # if the passes of a task fell to the runs at random
        "expected_alone": dict(zip(names, map(math.fsum, chances.tolist()), strict=True)) if has_others else {},
    }


def _alone(runs: Shared, own: Bools, chance: Floats) -> Iterator[model.Alone]:
    """The tasks that one run alone solves, with their counts: what chance explains least first, LISTED of each run."""
    total = runs.n.sum(0)
    for i, side in enumerate(runs.sides):
        places = np.flatnonzero(own[i])
        order = places[np.lexsort((places, -runs.passes[i, places], np.round(chance[places], 12)))]
        for task in order[:LISTED].tolist():
            n, passes = int(runs.n[i, task]), int(runs.passes[i, task])
            others, p = int(total[task]) - n, float(chance[task])
            yield model.Alone(side.run, runs.keys[task], runs.names[task], passes, n, others, p)


def _notes(runs: Shared, expected_alone: Mapping[str, float]) -> Iterator[str]:
    """What a reader must know before trusting these lists."""
    if not runs.keys:
        yield NO_TASK
        return
    if not runs.is_judged:
        yield "Which tasks a run solves is unknown: no threshold says what passes."
        return
    by = (runs.passes > 0).sum(0)
    single, none = int((by == 1).sum()), by == 0
    if single and len(runs.sides) > 1:
        expected = math.fsum(expected_alone.values())
        yield (
            f"{count(single, 'task is', 'tasks are')} solved by one run alone; {expected:.1f} would be so if passes fell to "
            "the runs at random. A single pass always falls to one run and proves nothing; the tasks that "
            "chance explains least are listed first."
        )
    if none.any():
        least = int(runs.n.sum(0)[none].min())
        repeats = f"{least:,} repeats" if least > 1 else "one repeat"
        yield (
            f"{count(int(none.sum()), 'task is', 'tasks are')} solved by no run; the one with the fewest has {repeats} of all runs "
            f"together, where a pass rate of up to {1 - 0.05 ** (1 / least):.0%} can stay unseen (95% bound)."
        )


# ---- Checkpoints in order -------------------------------------------------------------------------


def series(sides: Sequence[Side], comparisons: Pairs | None = None) -> model.Series:
    """The trend of the runs in the order given, over the tasks all of them have; comparisons spare aligning again."""
    runs = shared(sides, comparisons)
    trend = None
    if len(sides) > 1:
        # what each checkpoint adds to a least-squares slope over the positions 0, 1, 2, ...
        centred = np.arange(len(sides), dtype=np.float64) - (len(sides) - 1) / 2
        weights = centred / (centred @ centred)
        # what one rollout that goes the other way changes the slope of its task by, on average
        step = float((np.abs(weights)[:, None] / runs.n).mean()) if runs.n.size else 1.0
        trend = stats.mean_change(weights @ runs.mean, step)
    checkpoints, moved = _checkpoints(runs), _moved(runs)
    different = (point.run for point in checkpoints if change_verdict.is_claimed(point.p_adjusted, point.low, point.high))
    slope, low, high, p = (trend.estimate, trend.low, trend.high, trend.p) if trend else (None, None, None, None)
    return model.Series(
        tuple(side.run for side in sides), len(runs.keys), slope, low, high, p, checkpoints,
        first_different=next(different, None), notes=tuple(_series_notes(runs, moved)), **moved,
    )


def _checkpoints(runs: Shared) -> tuple[model.Checkpoint, ...]:
    """Every run against the first, adjusted by Holm over them all."""
    if not runs.keys:
        return ()
    changes = [
        stats.mean_change(mean - runs.mean[0], float((1 / n + 1 / runs.n[0]).mean() / 2))
        for mean, n in zip(runs.mean[1:], runs.n[1:], strict=True)
    ]
    ps = stats.holm([change.p if change else None for change in changes])
    first, *scores = runs.scores
    points = [model.Checkpoint(runs.sides[0].run, first, None, None, None, None)]
    for side, score, change, p in zip(runs.sides[1:], scores, changes, ps, strict=True):
        of_change = (change.estimate, change.low, change.high, p) if change else (score - first, None, None, None)
        points.append(model.Checkpoint(side.run, score, *of_change))
    return tuple(points)


def _moved(runs: Shared) -> dict[str, Any]:
    """Tasks that the last run surely does better, or worse, than the first; with how many chance alone would show."""
    if runs.keys and len(runs.sides) > 1:
        last = runs.sides[-1]
        names = tuple(last.judged.task_keys[code] for code in runs.codes[-1].tolist())
        pair = paired(runs.sides[0], last, Alignment("as shared", runs.keys, common_candidate=names))
        p, sure = p_better(pair), sure_flips(pair)
        if p is not None and sure is not None:
            return {
                "learned": _listed(runs.keys, np.where(pair.d > 0, p, 0.0)), "n_learned": sure.up, "null_learned": sure.null_up,
                "forgotten": _listed(runs.keys, np.where(pair.d < 0, 1 - p, 0.0)), "n_forgotten": sure.down,
                "null_forgotten": sure.null_down,
            }  # fmt: skip
    return dict.fromkeys(("learned", "forgotten"), ())


def _listed(keys: tuple[str, ...], probability: Floats) -> tuple[tuple[str, float], ...]:
    """Tasks with their probability, surest first."""
    sure = np.flatnonzero(probability >= LEVEL - 1e-9)
    order = sure[np.lexsort((sure, -np.round(probability[sure], 9)))]
    return tuple((keys[i], float(probability[i])) for i in order[:LISTED].tolist())


def _series_notes(runs: Shared, moved: Mapping[str, Any]) -> Iterator[str]:
    if not runs.keys:
        yield NO_TASK
        return
    if len(runs.sides) < 3:
        yield "A trend needs three checkpoints; with two the slope is the change between them."
    if moved.get("null_learned") is None:
        yield "Tasks learned and forgotten are unknown: nothing shows how repeats of a task vary."
    elif not moved["n_learned"] and not moved["n_forgotten"]:
        yield f"No single task is surely learned or forgotten from the first to the last ({LEVEL:.0%} each)."
    else:
        learned, forgotten = (_beside(moved[f"n_{way}"], moved[f"null_{way}"], way) for way in ("learned", "forgotten"))
        yield (
            f"From the first to the last, with {LEVEL:.0%} each: {learned}; {forgotten}. Chance is what dealing "
            "the rollouts of each task anew to the two would show."
        )


def _beside(n: int, null: float, way: str) -> str:
    """A count beside what chance alone would count."""
    tasks = f"{count(n, 'task')} {way}"
    if not n:
        return tasks
    if n <= null + 2 * math.sqrt(null):
        return f"{tasks}, no more than chance shows ({null:.1f})"
    return f"{tasks} where chance shows {null:.1f}"
