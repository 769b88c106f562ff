"""Turn a seed into drawn tasks, and two conditions into the true change between their runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import log, sqrt
from random import Random
from statistics import NormalDist, fmean, variance

OWN = 0.6  # of the failures of a task are of its own way, the others of any
TASKS = range(30, 81)
REPEATS = (1, 2, 2, 4, 4, 4, 6)
LIMITS = (8192, 16384, 32768)
DETECTABLE = 2.8  # standard errors: what 80 of 100 comparisons would see at the 5% level
CATEGORIES = ("billing", "delivery", "returns", "accounts")
DIFFICULTIES = ("easy", "medium", "hard")
SPREAD = 0.6  # of the logarithm of a rollout's length
SHARED = 0.6  # of that spread, as a correlation, belongs to the task
NORMAL = NormalDist()


@dataclass(frozen=True, slots=True)
class Drawn:
    """One task as drawn: what it is, and how rollouts of it go."""

    number: int  # of the task in its world
    category: str
    difficulty: str
    rate: float  # of rollouts that are solved
    turn: float  # in [0, 1): picks the task's own way to fail
    length: float  # of its rollouts, in standard deviations
    habit: float  # in [0, 1): picks the tasks whose results are always written in the loose form


@dataclass(frozen=True, slots=True)
class Design:
    """What two runs have in common."""

    seed: str  # of every stream of draws
    world: str
    tasks: tuple[Drawn, ...]  # the index of a task is its place here
    mix: Mapping[str, float]  # shares of the ways to fail
    rows: tuple[tuple[int, ...], tuple[int, ...]]  # of each task, in the baseline and in the candidate
    repeats: tuple[int, int]
    limit: int  # of output tokens
    typical: float  # length of a rollout in tokens, the median
    broken: float  # share of rows that a provider error spoils in any run
    loose: float  # share of solved rollouts that write the result in another form
    loose_by_task: bool  # some tasks always, instead of all tasks now and then
    form: str  # of the loose results
    extracts: bool  # the verifier writes down the answer it has read


@dataclass(frozen=True, slots=True)
class Conditions:
    """What one run is played under; the defaults are what is usual."""

    limit: int
    outage: tuple[float, ...]  # by task: share of rows that a provider error spoils
    dropped: frozenset[int] = frozenset()  # tasks that the run does not have
    worse: Mapping[str, float] = field(default_factory=dict)  # category -> share of solved ones lost
    fixed: str | None = None  # a way to fail that is none any more
    strict: bool = False  # the verifier rejects the loose form
    model: str = "sim-model-a"
    temperature: float = 1.0
    verifier: str | None = None  # its version, where rows state it


@dataclass(frozen=True, slots=True)
class Change:
    """The true difference between two runs, and what a comparison of them can see."""

    delta: float  # of the headline scores, over the tasks that each run has
    delta_common: float  # over the tasks that both have
    se: float  # of the change over common tasks, for new tasks like these
    mde: float
    n_common: int


def draw(rng: Random, seed: str, world: str, ways: tuple[str, ...], forms: tuple[str, ...], mean: float,
         n_tasks: int | None, repeats: int | None) -> Design:  # fmt: skip
    """A design; `mean` is about the share of rollouts that are solved."""
    n = n_tasks or rng.choice(TASKS)
    tasks = _tasks(rng, n, mean)
    usual = repeats or rng.choice(REPEATS)
    other = usual if repeats or rng.random() < 0.75 else min(6, max(1, usual + rng.choice((-1, 1))))
    lost = 0.03 if rng.random() < 0.3 else 0.0
    rows = tuple(
        tuple(max(1, k - sum(rng.random() < lost for _ in range(k))) for _ in tasks) for k in (usual, other)
    )
    limit = rng.choice(LIMITS)
    weights = [rng.gammavariate(2.0, 1.0) for _ in ways]
    return Design(
        seed=seed,
        world=world,
        tasks=tasks,
        mix={way: weight / sum(weights) for way, weight in zip(ways, weights, strict=True)},
        rows=(rows[0], rows[1]),
        repeats=(usual, other),
        limit=limit,
        typical=limit * rng.uniform(0.2, 0.35),
        broken=rng.choice((0.0, 0.01, 0.02)),
        loose=rng.uniform(0.1, 0.3),
        loose_by_task=False,
        form=rng.choice(forms),
        extracts=rng.random() < 0.5,
    )


def _tasks(rng: Random, n: int, mean: float) -> tuple[Drawn, ...]:
    """Tasks in categories of unequal size, with a difficulty that has nothing to do with them."""
    wide, steep = rng.uniform(0.8, 3.0), rng.uniform(0.0, 0.15)  # the smaller, the more rates at 0 and 1
    sizes = [rng.uniform(0.7, 1.6) for _ in CATEGORIES[: rng.choice((2, 3, 3, 4))]]
    start = rng.randrange(1000)
    found = []
    for at in range(n):
        level = rng.randrange(3)
        middle = min(0.95, max(0.05, mean + steep * (1 - level)))
        found.append(
            Drawn(
                number=start + at,
                category=rng.choices(CATEGORIES[: len(sizes)], sizes)[0],
                difficulty=DIFFICULTIES[level],
                rate=rng.betavariate(middle * wide, (1 - middle) * wide),
                turn=rng.random(),
                length=rng.gauss(0.0, 1.0),
                habit=rng.random(),
            )
        )
    return tuple(found)


def as_usual(design: Design, *, model: str = "sim-model-a") -> Conditions:
    return Conditions(design.limit, (design.broken,) * len(design.tasks), model=model)


def own_way(task: Drawn, mix: Mapping[str, float]) -> str:
    """The way in which a task mostly fails."""
    left = task.turn
    for way, share in mix.items():
        left -= share
        if left < 0:
            return way
    return list(mix)[-1]


def way_share(task: Drawn, mix: Mapping[str, float], way: str) -> float:
    """The share of a task's failures that are of this way."""
    return OWN * (own_way(task, mix) == way) + (1 - OWN) * mix[way]


def loose_share(task: Drawn, design: Design) -> float:
    """The share of a task's solved rollouts whose result is written in the loose form."""
    if not design.loose_by_task:
        return design.loose
    return 0.97 if task.habit < design.loose else 0.03


def cut_share(task: Drawn, design: Design, limit: int) -> float:
    """The share of a task's rollouts that are longer than a limit."""
    above = (log(limit / design.typical) / SPREAD - SHARED * task.length) / sqrt(1 - SHARED**2)
    return 1 - NORMAL.cdf(above)


def solved_share(task: Drawn, design: Design, under: Conditions) -> float:
    """The share of a task's rollouts that reach the right result, were they not disturbed."""
    solved = task.rate * (1 - under.worse.get(task.category, 0.0))
    if under.fixed is not None:
        solved += (1 - solved) * way_share(task, design.mix, under.fixed)
    return solved


def passing(design: Design, under: Conditions) -> tuple[float, ...]:
    """The true pass rate of every task under the conditions of a run."""
    found = []
    for at, task in enumerate(design.tasks):
        whole = (1 - under.outage[at]) * (1 - cut_share(task, design, under.limit))
        accepted = 1 - loose_share(task, design) if under.strict else 1.0
        found.append(whole * accepted * solved_share(task, design, under))
    return tuple(found)


def change(design: Design, a: Conditions, b: Conditions) -> Change:
    """What truly differs between two runs of a design, by the rates that were drawn."""
    rates = passing(design, a), passing(design, b)
    held = [[at for at in range(len(design.tasks)) if at not in one.dropped] for one in (a, b)]
    common = sorted(set(held[0]) & set(held[1]))
    d = [rates[1][at] - rates[0][at] for at in common]
    noise = fmean(
        rate[at] * (1 - rate[at]) / n[at] for rate, n in zip(rates, design.rows, strict=True) for at in common
    )
    se = sqrt((variance(d) + 2 * noise) / len(common))  # the mean ran over both runs
    headline = [fmean(rate[at] for at in kept) for rate, kept in zip(rates, held, strict=True)]
    return Change(headline[1] - headline[0], fmean(d), se, DETECTABLE * se, len(common))
