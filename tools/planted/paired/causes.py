"""List how two runs of one design come to differ, each by one cause of growing size: the CAUSES table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import exp
from random import Random

from tools.planted.paired.design import NORMAL, SPREAD, Conditions, Design, as_usual
from tools.planted.paired.worlds import HARMLESS, VISIBLE, WORLDS

KEPT = 0.5  # of the tasks at the least are in both runs
LOWER = (4, 8)  # by how much a limit is lowered
NEW = "sim-model-b"


@dataclass(frozen=True, slots=True)
class Plan:
    """Two runs that differ in one thing, and how a comparison may name it."""

    design: Design
    a: Conditions
    b: Conditions
    sides: tuple[str, ...] = ()  # of the loss or of the bridge that a right claim has
    terms: tuple[str, ...] = ()  # the slice that a right claim names, or the way to fail that its rollouts show


@dataclass(frozen=True, slots=True)
class Cause:
    """One way for two runs to differ; `plans` are of growing size."""

    means: tuple[float, float]  # shares of solved rollouts from which it can move a score
    plans: Callable[[Design, Random], Iterator[Plan]]
    harmless: bool = True  # loose forms are only those that no rule takes for a fault


def tasks_dropped(design: Design, rng: Random) -> Iterator[Plan]:
    """The candidate lacks hard tasks, or easy ones."""
    sign = rng.choice((-1, 1))
    blur = {at: sign * task.rate + rng.gauss(0.0, 0.1) for at, task in enumerate(design.tasks)}
    order = sorted(blur, key=lambda at: blur[at])
    as_before = as_usual(design)
    for n in range(4, round(KEPT * len(order)) + 1):
        fewer = replace(as_before, dropped=frozenset(order[:n]))
        yield Plan(design, as_before, fewer, sides=("composition",))


def infra_outage(design: Design, rng: Random) -> Iterator[Plan]:
    """The provider fails for a share of the candidate's rows: here and there, or for a while."""
    n = len(design.tasks)
    at_once, start = rng.random() < 0.4, rng.random()
    as_before = as_usual(design)
    for step in range(4, 38):
        share = 0.02 * step
        if at_once:
            first = round(start * (n - share * n))
            hit = [0.95 if first <= at < first + share * n else design.broken for at in range(n)]
        else:
            hit = [max(share, design.broken)] * n
        yield Plan(design, as_before, replace(as_before, outage=tuple(hit)), sides=("infrastructure",))


def limit_lowered(design: Design, rng: Random) -> Iterator[Plan]:
    """The candidate may write fewer tokens, and what is longer is cut."""
    lower = design.limit // rng.choice(LOWER)
    for step in range(4, 36):
        # the median length for which this share of the rollouts is longer than the lower limit
        typical = lower * exp(-SPREAD * NORMAL.inv_cdf(1 - 0.02 * step))
        long = replace(design, typical=typical)
        a = as_usual(long)
        yield Plan(long, a, replace(a, limit=lower), sides=("task or verifier",))


def slice_worse(design: Design, rng: Random) -> Iterator[Plan]:
    """Tasks of one category are solved less often; what fails fails as before."""
    sizes: dict[str, int] = {}
    for task in design.tasks:
        sizes[task.category] = sizes.get(task.category, 0) + 1
    large = sorted(name for name, size in sizes.items() if 0.25 <= size / len(design.tasks) <= 0.7)
    if not large:
        return
    category = rng.choice(large)
    a, b = as_usual(design), as_usual(design, model=rng.choice((NEW, "sim-model-a")))
    for step in range(4, 20):
        worse = replace(b, worse={category: 0.05 * step})
        yield Plan(design, a, worse, sides=("slice",), terms=(f"category={category}",))


def mode_fixed(design: Design, rng: Random) -> Iterator[Plan]:
    """What fails in one way in the baseline is solved in the candidate; only ways that a trace shows."""
    visible = [name for name in design.mix if name in VISIBLE]
    if not visible:
        return
    way = rng.choice(visible)
    rest = 1 - design.mix[way]
    model = rng.choice((NEW, "sim-model-a"))
    for step in range(4, 19):
        share = 0.05 * step
        mix = {name: share if name == way else (1 - share) * old / rest for name, old in design.mix.items()}
        mixed = replace(design, mix=mix)
        b = replace(as_usual(mixed, model=model), fixed=way)
        yield Plan(mixed, as_usual(mixed), b, sides=("model",), terms=(way,))


def verifier_changed(design: Design, rng: Random) -> Iterator[Plan]:
    """The candidate's verifier rejects a form of right results that the baseline's accepts."""
    by_task = rng.random() < 0.5
    versions = rng.choice(((None, None), ("1.4.0", "1.5.0")))
    for step in range(3, 18):
        loose = replace(design, loose=0.05 * step, loose_by_task=by_task)
        a = replace(as_usual(loose), verifier=versions[0])
        b = replace(a, strict=True, verifier=versions[1])
        yield Plan(loose, a, b, sides=("task or verifier",))


def nothing(design: Design, rng: Random) -> Iterator[Plan]:
    """Nothing that matters differs; a setting may."""
    a = as_usual(design)
    others = (a, replace(a, model=NEW), replace(a, temperature=0.8), replace(a, verifier="1.5.0"))
    b = rng.choice(others)
    yield Plan(design, replace(a, verifier="1.4.0") if b.verifier else a, b)


CAUSES: Mapping[str, Cause] = {
    "tasks dropped": Cause((0.4, 0.75), tasks_dropped),
    "infra outage": Cause((0.5, 0.9), infra_outage),
    "truncation limit lowered": Cause((0.5, 0.9), limit_lowered),
    "one slice worse": Cause((0.6, 0.9), slice_worse),
    "one failure mode fixed": Cause((0.15, 0.5), mode_fixed),
    "verifier changed": Cause((0.5, 0.9), verifier_changed, harmless=False),
    "nothing": Cause((0.2, 0.9), nothing),
}


def forms(world: str, cause: Cause) -> tuple[str, ...]:
    """The loose forms that a run of a world may show."""
    return HARMLESS[world] if cause.harmless else tuple(WORLDS[world].forms)
