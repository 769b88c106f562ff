"""Write two runs that differ by one known cause of known size, and say what is true of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tools.planted.injected.scene import Key
from tools.planted.paired.causes import CAUSES, Plan, forms
from tools.planted.paired.design import Change, change, draw, passing
from tools.planted.paired.play import play
from tools.planted.paired.worlds import WORLDS
from tools.planted.sidecars import lines

TRIES = 500  # designs until one lets the cause be as large as was asked for
LARGER = 1.4  # times that size is the largest aim


@dataclass(frozen=True, slots=True)
class PlantedPair:
    """Two written runs and the truth about them; signs are candidate minus baseline."""

    baseline: Path
    candidate: Path
    cause: str  # of CAUSES
    sides: tuple[str, ...]  # of a right claim
    terms: tuple[str, ...]  # the slice that a right claim names, or the way to fail that its rollouts show
    delta: float  # true change of the headline score
    delta_common: float  # true change over the tasks that both have
    se: float  # of the change over common tasks, for new tasks like these
    mde: float  # smallest change that the design would see: the cause is `effect` times it, or 0
    n_tasks: tuple[int, int]
    n_common: int
    repeats: tuple[int, int]
    world: str
    form: str  # in which right results are now and then written
    swapped: bool  # what the cause does to a run was done to the baseline
    settings: tuple[str, ...]  # that differ between the runs, whether they matter or not
    rates: tuple[Mapping[str, float], Mapping[str, float]]  # true pass rates by task key
    how: tuple[Mapping[Key, str], Mapping[Key, str]]  # how each rollout went


def write_pair(
    folder: Path,
    cause: str,
    *,
    seed: int,
    n_tasks: int | None = None,
    repeats: int | None = None,
    effect: float = 2.0,
) -> PlantedPair:
    """Write `baseline.jsonl` and `candidate.jsonl`; what is not given is drawn from the seed.

    The true change is at least `effect` times the smallest change that the design can detect, unless the
    cause is "nothing"; ValueError where no such design is found.
    """
    rng = Random(f"pair/{cause}/{seed}")
    plan, told = planned(cause, rng, f"{cause}/{seed}", n_tasks, repeats, effect)
    swapped = rng.random() < 0.5
    folder.mkdir(parents=True, exist_ok=True)
    paths = folder / "baseline.jsonl", folder / "candidate.jsonl"
    under = (plan.a, plan.b)
    played = [play(plan.design, one, role) for role, one in enumerate(under)]
    rates = [
        {str(at): rate for at, rate in enumerate(passing(plan.design, one)) if at not in one.dropped}
        for one in under
    ]
    roles = (1, 0) if swapped else (0, 1)
    for path, role in zip(paths, roles, strict=True):
        path.write_bytes(lines(played[role].rows))
    sign = -1 if swapped else 1
    first, second = roles
    return PlantedPair(
        baseline=paths[0],
        candidate=paths[1],
        cause=cause,
        sides=plan.sides,
        terms=plan.terms,
        delta=sign * told.delta + 0.0,  # no negative zero
        delta_common=sign * told.delta_common + 0.0,
        se=told.se,
        mde=told.mde,
        n_tasks=(len(rates[first]), len(rates[second])),
        n_common=told.n_common,
        repeats=(plan.design.repeats[first], plan.design.repeats[second]),
        world=plan.design.world,
        form=plan.design.form,
        swapped=swapped,
        settings=differing(plan),
        rates=(rates[first], rates[second]),
        how=(played[first].how, played[second].how),
    )


def planned(
    cause: str, rng: Random, seed: str, n_tasks: int | None, repeats: int | None, effect: float
) -> tuple[Plan, Change]:
    """The first design that lets the cause be as large as asked, with the smallest size that is."""
    wanted = CAUSES[cause]
    for _ in range(TRIES):
        world = rng.choice(sorted(WORLDS))
        ways, loose = tuple(WORLDS[world].ways), forms(world, wanted)
        design = draw(rng, seed, world, ways, loose, rng.uniform(*wanted.means), n_tasks, repeats)
        aim = effect * rng.uniform(1.0, LARGER)
        for plan in wanted.plans(design, rng):
            told = change(plan.design, plan.a, plan.b)
            if abs(told.delta) >= aim * told.mde or cause == "nothing":
                return plan, told
    raise ValueError(f"no design of {n_tasks} tasks and {repeats} repeats shows {cause!r} at {effect} × MDE")


def differing(plan: Plan) -> tuple[str, ...]:
    """The settings that rows of the two runs state differently."""
    pairs = {
        "model": (plan.a.model, plan.b.model),
        "temperature": (plan.a.temperature, plan.b.temperature),
        "max_output_tokens": (plan.a.limit, plan.b.limit),
        "verifier_version": (plan.a.verifier, plan.b.verifier),
        "repeats": plan.design.repeats,
    }
    return tuple(name for name, (one, other) in pairs.items() if one != other)
