"""Simulate two runs of the same tasks by a design whose truth is known, and count how often a verdict and its interval hold."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats as second_opinion

from blade import stats
from blade.compare.change_verdict import EQUIVALENT, IMPROVED, REGRESSED, answers, verdict

Array = NDArray[Any]
Rng = np.random.Generator

# How hard tasks are: from the law of their pass rates.
LAWS: dict[str, Callable[[Rng, int], Array]] = {
    "spread": lambda rng, n: rng.beta(0.5, 0.5, n),
    "middle": lambda rng, n: rng.beta(3, 3, n),
    "ceiling": lambda rng, n: rng.beta(2, 0.3, n),
    "near ceiling": lambda rng, n: np.full(n, 0.97),
    "floor": lambda rng, n: rng.beta(0.3, 2, n),
    "mostly solved": lambda rng, n: np.where(rng.random(n) < 0.85, 1.0, rng.beta(1, 1, n)),
    "half solved": lambda rng, n: np.where(rng.random(n) < 0.5, 1.0, rng.beta(1, 1, n)),
}


@dataclass(frozen=True)
class Cell:
    """One design of a paired comparison."""

    n: int  # tasks
    k: int  # repeats
    law: str
    # balanced; unbalanced: the candidate has twice as many; lopsided: it has one; missing: a tenth is lost
    rows: str = "balanced"

    @property
    def name(self) -> str:
        return f"n={self.n} k={self.k} {self.law}, {self.rows}"


@dataclass(frozen=True)
class Drawn:
    """Counts of both runs, one entry a task, and the true rates behind them."""

    n_a: Array
    n_b: Array
    c_a: Array
    c_b: Array
    p_a: Array
    p_b: Array

    @property
    def noise(self) -> Array:
        """True variance of the difference of each task over its repeats."""
        variance: Array = self.p_a * (1 - self.p_a) / self.n_a + self.p_b * (1 - self.p_b) / self.n_b
        return variance

    @property
    def se_these(self) -> float:
        """True standard error of the mean change over repeats of these tasks."""
        return float(np.sqrt(self.noise.sum()) / self.n_a.size)

    @property
    def se_new(self) -> float:
        """And over tasks drawn anew as well, as far as these tasks tell."""
        spread = float(np.var(self.p_b - self.p_a, ddof=1)) if self.n_a.size > 1 else 0.0
        return float(np.sqrt((self.noise.mean() + spread) / self.n_a.size))


def rates(cell: Cell, rng: Rng, shift: float, churn: float) -> tuple[Array, Array]:
    """True pass rates of both runs: the candidate's moved by `shift` and, by chance, by `churn` logits."""
    p = LAWS[cell.law](rng, cell.n)
    if not shift and not churn:
        return p, p
    edge = np.clip(p, 1e-9, 1 - 1e-9)
    base = np.log(edge / (1 - edge))
    wobble = rng.normal(0, churn, cell.n) if churn else np.zeros(cell.n)
    # half of it on either side, so that the two runs are alike but for `shift`
    low, high = (1 / (1 + np.exp(-(base + sign * (shift + wobble) / 2))) for sign in (-1, 1))
    fixed = (p == 0) | (p == 1)  # a task that cannot fail cannot change
    return np.where(fixed, p, low), np.where(fixed, p, high)


def draw(cell: Cell, rng: Rng, shift: float = 0.0, churn: float = 0.0) -> Drawn:
    """Two runs of the cell's design."""
    p_a, p_b = rates(cell, rng, shift, churn)
    n_a = np.full(cell.n, cell.k)
    n_b = np.full(cell.n, {"unbalanced": 2 * cell.k, "lopsided": 1}.get(cell.rows, cell.k))
    if cell.rows == "missing":
        n_a, n_b = (rng.binomial(n, 0.9) for n in (n_a, n_b))
        has_both = (n_a > 0) & (n_b > 0)
        n_a, n_b, p_a, p_b = n_a[has_both], n_b[has_both], p_a[has_both], p_b[has_both]
    return Drawn(n_a, n_b, rng.binomial(n_a, p_a), rng.binomial(n_b, p_b), p_a, p_b)


MARGIN = 0.03
ENOUGH_SE = 3.1  # standard errors in the margin from which equivalence must be found
SEEN = 25  # tasks that differ, from which a cell must not be conservative either
SHIFT, CHURN = 0.6, 1.0  # logits
# What is simulated: shift and churn of the candidate's rates.
WORLDS = {
    "unchanged": (0.0, 0.0),
    "churn": (0.0, CHURN),
    "shift": (SHIFT, 0.0),
    "both": (SHIFT, CHURN),
    "large shift": (5 * SHIFT, 0.0),
}
AT_MARGIN = "at the margin"  # a shift by which the mean changes by exactly the margin: not equivalent
QUESTIONS = ("these tasks", "new tasks")


@dataclass
class Tally:
    """What was seen over the pairs of one cell in one world."""

    pairs: int = 0
    rejected: dict[str, int] = field(default_factory=lambda: dict.fromkeys(QUESTIONS, 0))
    covered: dict[str, int] = field(default_factory=lambda: dict.fromkeys(QUESTIONS, 0))
    equivalent: dict[str, int] = field(default_factory=lambda: dict.fromkeys(QUESTIONS, 0))
    se_these: list[float] = field(default_factory=list)
    se_new: list[float] = field(default_factory=list)
    true_these: list[float] = field(default_factory=list)
    differ: list[int] = field(default_factory=list)
    true_new: float = 0.0


def cells() -> Iterator[Cell]:
    """The grid: every size and number of repeats, tasks from floor to ceiling, unbalanced and with gaps."""
    for law in ("spread", "middle", "ceiling", "floor", "half solved", "mostly solved"):
        for n in (10, 20, 50, 100, 300, 2000):
            for k in (1, 2, 4, 8, 16):
                if law in ("spread", "ceiling") or (n in (10, 50, 300) and k in (1, 4, 16)):
                    yield Cell(n, k, law)
    for rows in ("unbalanced", "missing"):
        for law in ("spread", "ceiling", "half solved"):
            for n in (10, 50, 300):
                yield from (Cell(n, k, law, rows) for k in (1, 4, 16))
    for law in ("near ceiling", "ceiling", "spread"):
        for n in (20, 50, 100, 300):
            yield from (Cell(n, k, law, "lopsided") for k in (8, 64))


def simulate(cell: Cell, world: str, pairs: int, seed: int) -> Tally:
    """The verdicts on `pairs` simulated pairs of runs."""
    shift, churn = (shift_to(cell.law, MARGIN), 0.0) if world == AT_MARGIN else WORLDS[world]
    rng = stats.seeded_rng("calibration", str(seed), cell.name, world)
    tally = Tally(true_new=_true_change(cell, shift, churn))
    while tally.pairs < pairs:
        drawn = draw(cell, rng, shift, churn)
        if drawn.n_a.size >= 2:
            _judge(tally, drawn)
    return tally


def _true_change(cell: Cell, shift: float, churn: float) -> float:
    if not shift:  # gains and losses are drawn alike
        return 0.0
    return _mean_change(cell.law, shift, churn)


def _mean_change(law: str, shift: float, churn: float) -> float:
    low, high = rates(Cell(400_000, 1, law), stats.seeded_rng("true", law), shift, churn)
    return float((high - low).mean())


@lru_cache
def shift_to(law: str, change: float) -> float:
    """The shift in logits by which tasks of this law change by so much on average."""
    low, high = 0.0, 8.0
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (middle, high) if _mean_change(law, middle, 0.0) < change else (low, middle)
    return high


def judged(drawn: Drawn) -> dict[str, stats.Change]:
    """Both questions put to one pair, as `blade compare` puts them."""
    c_a, c_b = drawn.c_a.astype(float), drawn.c_b.astype(float)
    rows = stats.Rows(drawn.n_a, drawn.n_b, c_a, c_b, c_a, c_b, True)
    these, new = answers(rows, c_b / drawn.n_b - c_a / drawn.n_a)
    assert these is not None
    assert new is not None
    return dict(zip(QUESTIONS, (these, new), strict=True))


def _judge(tally: Tally, drawn: Drawn) -> None:
    true = {"these tasks": float((drawn.p_b - drawn.p_a).mean()), "new tasks": tally.true_new}
    for question, change in judged(drawn).items():
        answer = verdict(change, MARGIN)
        tally.rejected[question] += answer in (IMPROVED, REGRESSED)
        tally.covered[question] += change.low - 1e-12 <= true[question] <= change.high + 1e-12
        tally.equivalent[question] += answer == EQUIVALENT
    tally.pairs += 1
    tally.se_these.append(drawn.se_these)
    tally.se_new.append(drawn.se_new)
    tally.true_these.append(true["these tasks"])
    tally.differ.append(int(np.count_nonzero(drawn.c_b * drawn.n_a != drawn.c_a * drawn.n_b)))


@dataclass(frozen=True)
class Line:
    """One number of a cell beside its limits."""

    cell: str
    world: str
    question: str
    what: str
    value: float
    least: float | None
    most: float | None
    slack: float  # two Monte-Carlo standard errors

    @property
    def holds(self) -> bool:
        low = self.least is None or self.value >= self.least - self.slack - 1e-12
        return low and (self.most is None or self.value <= self.most + self.slack + 1e-12)


def _adder(
    tally: list[Line], cell: str, world: str, question: str, pairs: int
) -> Callable[[str, float, float | None, float | None, float], None]:
    """What adds a number of one question in one world."""

    def line(what: str, count: float, least: float | None, most: float | None, level: float) -> None:
        slack = 2 * math.sqrt(level * (1 - level) / pairs)
        tally.append(Line(cell, world, question, what, count / pairs, least, most, slack))

    return line


def lines(cell: Cell, tallies: dict[str, Tally]) -> list[Line]:
    """Every limit of a cell: type-I error, coverage, power and equivalence."""
    result: list[Line] = []
    for world, tally in tallies.items():
        # with one row against many, few ways to fall make every exact test coarse: only errors are limited
        big = cell.n >= 50 and float(np.mean(tally.differ)) >= SEEN and cell.rows != "lopsided"
        for question in QUESTIONS:
            null = world == "unchanged" or (world == "churn" and question == "new tasks")
            line = _adder(result, cell.name, world, question, tally.pairs)
            if world == AT_MARGIN:
                # equivalence claimed where there is none; nominal 5%, and skewed tasks make it more
                if question == "new tasks":
                    line("false equivalence", tally.equivalent[question], None, 0.1, 0.05)
                continue
            if null:
                rate = tally.rejected[question] / tally.pairs
                line("type I", tally.rejected[question], 0.035 if big else None, 0.06, max(rate, 0.035))
            # with one row a task, chance and churn cannot be told apart: the interval covers both
            blurred = cell.k == 1 and question == "these tasks" and world in ("churn", "both")
            line("coverage", tally.covered[question], 0.93, 0.975 if big and not blurred else None, 0.95)
            if world == "shift" and big:
                power = _t_power(cell, tally, question)
                seen = tally.rejected[question]
                line("power", seen, power - 0.03, power + 0.03, min(max(power, 0.02), 0.98))
            se = _true_se(tally, question)
            if world == "unchanged" and cell.n >= 50 and se <= MARGIN / ENOUGH_SE:
                line("equivalent", tally.equivalent[question], 0.8, None, 0.8)
    return result


def _true_se(tally: Tally, question: str) -> float:
    """From the true rates, not from the estimates: their spread would bring its own error."""
    values = tally.se_new if question == "new tasks" else tally.se_these
    return float(np.sqrt(np.mean(np.square(values))))


def _t_power(cell: Cell, tally: Tally, question: str) -> float:
    """Power of a t test with the true standard error."""
    effect = tally.true_new if question == "new tasks" else float(np.mean(tally.true_these))
    df = cell.n - 1
    shift = effect / _true_se(tally, question)
    edge = float(second_opinion.t.ppf(0.975, df))
    if shift > edge + 6:  # the noncentral law is not computed that far out
        return 1.0
    law = second_opinion.nct(df, shift)
    return float(law.sf(edge) + law.cdf(-edge))


def measure(job: tuple[Cell, int, int]) -> list[Line]:
    cell, pairs, seed = job
    return lines(cell, {world: simulate(cell, world, pairs, seed) for world in (*WORLDS, AT_MARGIN)})


def run(pairs: int, seed: int, workers: int = 2, chosen: list[Cell] | None = None) -> list[Line]:
    """All limits of all cells."""
    jobs = [(cell, pairs, seed) for cell in (list(cells()) if chosen is None else chosen)]
    with ProcessPoolExecutor(workers) as pool:
        return [line for tally in pool.map(measure, jobs) for line in tally]


def summary(tally: list[Line]) -> list[dict[str, Any]]:
    """For each limit: the extreme values over all cells, and the cells that break it."""
    entries = []
    for key in sorted(
        {(line.question, line.what, line.least is not None, line.most is not None) for line in tally}
    ):
        content = [x for x in tally if (x.question, x.what, x.least is not None, x.most is not None) == key]
        low, high = min(content, key=lambda x: x.value), max(content, key=lambda x: x.value)
        entries.append(
            {
                "question": key[0],
                "what": key[1],
                "cells": len(content),
                "lowest": low.value,
                "in": f"{low.cell}, {low.world}",
                "highest": high.value,
                "of": f"{high.cell}, {high.world}",
                "least": low.least,
                "most": high.most,
                "broken": [x for x in content if not x.holds],
            }
        )
    return entries


def told(tally: list[Line], pairs: int, seed: int) -> str:
    """The table: for each limit the worst cells, with what two Monte-Carlo standard errors allow."""
    cells_seen = {line.cell for line in tally}
    lines_told = [
        f"Verdicts of simulated pairs: {len(cells_seen)} designs x {len(WORLDS) + 1} worlds "
        f"x {pairs:,} pairs, seed {seed}.",
        f"Margin {MARGIN}; limits are widened by two Monte-Carlo standard errors (at 5% and {pairs:,} pairs: "
        f"{2 * math.sqrt(0.05 * 0.95 / pairs):.4f}).",
        "",
        "| Question | Measure | Cells | Limits | Lowest, in | Highest, in | Broken |",
        "|---|---|---|---|---|---|---|",
    ]
    for entry in summary(tally):
        limits = f"{_number(entry['least'])} to {_number(entry['most'])}"
        if entry["what"] == "power":
            limits = "t-based ± .03"
        lines_told.append(
            f"| {entry['question']} | {entry['what']} | {entry['cells']} | {limits} "
            f"| {entry['lowest']:.3f}, {entry['in']} | {entry['highest']:.3f}, {entry['of']} "
            f"| {len(entry['broken'])} |"
        )
    apart = [line for line in tally if line.what == "power" and line.least is not None]
    if apart:
        worst = max(apart, key=lambda line: abs(line.value - (line.least or 0.0) - 0.03))
        lines_told += ["", f"Power is furthest from a t-based calculation in {worst.cell}, {worst.question}: "
                       f"{worst.value:.3f} against {(worst.least or 0.0) + 0.03:.3f}."]  # fmt: skip
    for line in tally:
        if not line.holds:
            lines_told.append(
                f"BROKEN: {line.cell}, {line.world}, {line.question}: {line.what} {line.value:.4f}, limits "
                f"{_number(line.least)} to {_number(line.most)} ± {line.slack:.4f}"
            )
    return "\n".join(lines_told)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
