"""Turn comparisons of several runs into verdicts that hold together, and into one matrix of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from blade import stats
from blade.compare import fronts, solvers
from blade.compare.shared import shared
from blade.compare.verdict import ALPHA, EQUIVALENT, IMPROVED, INCONCLUSIVE, NEW, REGRESSED, THESE
from blade.model import Comparison, Matrix, Side, Tested

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
    for question, old, kept, p in (
        (THESE, comparison.verdict, verdict, p_these),
        (NEW, comparison.verdict_new_tasks, verdict_new, p_new),
    ):
        if old != kept:
            notes.append(
                f"On {question}: {old} if this were the only candidate (p = {_p(comparison, question):.2g}), "
                f"{kept} as one of {n} compared with the same baseline (p = {p:.2g}, Holm)."
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
    placed, notes = fronts.placed(runs_shared)
    return Matrix(
        runs=runs,
        n_tasks=len(runs_shared.keys),
        verdicts=tuple(map(tuple, verdicts)),
        deltas=tuple(map(tuple, deltas)),
        p_adjusted=tuple(map(tuple, adjusted_p)),
        placed=placed,
        only_one=solvers.only_one(runs_shared),
        none_solves=solvers.solved_by(runs_shared, 0),
        all_solve=solvers.solved_by(runs_shared, size),
        alone=solvers.alone(runs_shared),
        expected_alone=solvers.expected_alone(runs_shared),
        notes=(*solvers.notes(runs_shared), *notes),
    )


def _pairs(runs: tuple[str, ...], comparisons: Pairs) -> list[tuple[int, int, Comparison]]:
    """Each pair once: place of the candidate, place of the baseline, and how they compare."""
    found = []
    for i, one in enumerate(runs):
        for j, other in enumerate(runs[:i]):
            if (other, one) in comparisons:
                found.append((i, j, comparisons[other, one]))
            elif (one, other) in comparisons:
                found.append((j, i, comparisons[one, other]))
    return found
