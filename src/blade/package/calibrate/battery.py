"""Find out whether a package tells a golden report from attacks on it, and from none of its equals."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from blade.package.calibrate import attacks, perturbed
from blade.package.judge.anchors import Anchor
from blade.package.judge.matching import matched
from blade.package.judge.predicates import Predicate, met, said
from blade.package.judge.result import as_json
from blade.package.judge.score import Bench, Judged, accepting, judged, score
from blade.package.judge.sources import Case, world_for
from blade.package.judge.units import Unit, names

if TYPE_CHECKING:
    from blade.store.index import Watcher

SEEDS = 2  # of attacks that draw; the worst counts
TARGETS = {
    "golden_vs_self_min": 0.85,
    "shallow_vs_golden_max": attacks.TEXT_LIMIT,
    "spread_min": 0.50,
    "attack_on_text_max": attacks.TEXT_LIMIT,
    "false_evidence_max": attacks.EVIDENCE_LIMIT,
    "perturbation_loss_min": 0.30,
    "reordered_difference_max": 0.02,
    "paraphrase_min": 0.75,
    "half_of_the_facts_min": 0.35,
    "half_of_the_facts_max": 0.65,
}
NOTE = (
    "Scores are recomputed from the rollouts; see `blade package score`. A package is calibrated only if "
    "the golden report separates from every attack and the controls hold; attacks that draw show their "
    "worst of several seeds."
)


class Trial(msgspec.Struct, frozen=True):
    """One report put to the judge, with the bound that its score must keep."""

    name: str
    score: float | None  # None: it could not be tried
    bound: str
    held: bool | None  # None: it could not be tried
    why: str = ""  # why it could not be tried


class Calibration(msgspec.Struct, frozen=True):
    golden: Judged
    shallow: Judged
    attacks: tuple[Trial, ...]
    controls: tuple[Trial, ...]
    min_spread: float

    @property
    def spread(self) -> float:
        return self.golden.score - self.shallow.score

    @property
    def problems(self) -> list[str]:
        """What keeps the package from being calibrated."""
        found = (
            []
            if self.golden.score >= TARGETS["golden_vs_self_min"]
            else ["the golden report scores below its target"]
        )
        if self.spread < self.min_spread:
            found.append(f"golden and shallow report are {self.spread:.2f} apart, not {self.min_spread:.2f}")
        return found + [
            f"{one.name}: {_number(one.score)}, {one.bound}"
            for one in (*self.attacks, *self.controls)
            if one.held is False
        ]


def calibrated(
    case: Case, seat: Bench, watcher: Watcher, min_spread: float = 0.50, seeds: int = SEEDS
) -> Calibration:
    """Put the golden report, the attacks on it and its equals to the judge."""
    golden = score(seat.golden, seat)
    thin = judged(case.shallow, seat)
    material = _material(case, seat)
    tried = []
    for name, (make, limit) in attacks.ATTACKS.items():
        texts = _drawn(make, material, seeds)
        if name == "swapped models" and not case.others:
            tried.append(_untried(name, "the package has one model"))
        elif not texts:
            tried.append(_untried(name, "there is nothing in the golden report that it would change"))
        else:
            known = {case.shallow: thin}
            worst = max((known.get(text) or judged(text, seat)).score for text in texts)
            tried.append(Trial(name, worst, f"at most {limit:.2f}", worst <= limit))
    tried += _worse(seat, golden, material, seeds)
    tried += _perturbed(case, seat, golden, watcher)
    return Calibration(
        golden,
        thin,
        tuple(tried),
        tuple(_controls(case, seat, golden, max(1, seeds))),
        min_spread,
    )


def _worse(seat: Bench, golden: Judged, material: attacks.Material, seeds: int) -> list[Trial]:
    """Reports that say all that golden says, and more or other things beside it that nothing bears out."""
    found = []
    for name, (make, least) in attacks.WORSE.items():
        texts = _drawn(make, material, seeds)
        if not texts:
            found.append(_untried(name, "the golden report has no such section"))
            continue
        worst = max(judged(text, seat).score for text in texts)
        bound = f"at most {golden.score - least:.2f}, {least:.2f} less than golden"
        found.append(Trial(name, worst, bound, golden.score - worst >= least))
    return found


def _material(case: Case, seat: Bench) -> attacks.Material:
    ids = dict.fromkeys(name for one in seat.world.report.tasks for name in (one.task, one.task_name) if name)
    ours = seat.known.ours
    others = case.others or ("another-model",)
    pairs = tuple(others[at % len(others)] for at in range(len(ours)))
    facts = tuple(one.fact for one in case.anchors)
    return attacks.Material(case.golden, facts, tuple(ids), ours, pairs, case.shallow)


def _drawn(make: attacks.Attack, material: attacks.Material, seeds: int) -> list[str]:
    """The texts that an attack makes, each once; none if it leaves the report as it is."""
    made = dict.fromkeys(make(replace(material, seed=seed)) for seed in range(max(1, seeds)))
    return [text for text in made if text != material.golden]


def _untried(name: str, why: str) -> Trial:
    return Trial(name, None, "could not be tried", None, why)


def _perturbed(case: Case, seat: Bench, golden: Judged, watcher: Watcher) -> list[Trial]:
    """The unchanged report against rollouts that were changed."""
    least = TARGETS["perturbation_loss_min"]
    bound = f"at most {golden.score - least:.2f}, {least:.2f} less than golden"
    found = []
    with tempfile.TemporaryDirectory() as folder:
        tries: dict[str, Callable[[], list[Path]]] = {}
        tries["flipped rewards"] = lambda: perturbed.flipped(case.rollouts, Path(folder) / "flipped")
        if case.beside:
            tries["swapped rollouts"] = lambda: perturbed.swapped(
                case.rollouts, case.beside, Path(folder) / "swapped"
            )
        for name, make in tries.items():
            world = world_for(case, make(), watcher)
            # The anchors are those of the package: what the changed rollouts make of them is not asked.
            known = accepting(names(world.report, seat.known.ours, seat.known.others), seat.anchors)
            told = judged(case.golden, replace(seat, world=world, known=known))
            found.append(Trial(name, told.score, bound, golden.score - told.score >= least))
    if not case.beside:
        found.append(_untried("swapped rollouts", "the package has one run"))
    return found


def _controls(case: Case, seat: Bench, golden: Judged, seeds: int) -> list[Trial]:
    """Reports that are as good as golden, and one that is half as good."""
    moved = [judged(attacks.reordered(case.golden, seed), seat).score for seed in range(seeds)]
    farthest = max(moved, key=lambda one: abs(one - golden.score))
    worded = min(judged(attacks.reworded(case.golden, seed), seat).score for seed in range(seeds))
    half = judged(halved(case.golden, seat), seat).score
    near, least = TARGETS["reordered_difference_max"], TARGETS["paraphrase_min"]
    low, high = TARGETS["half_of_the_facts_min"], TARGETS["half_of_the_facts_max"]
    return [
        Trial(
            "sections reordered",
            farthest,
            f"within {near:.2f} of golden",
            abs(farthest - golden.score) <= near,
        ),
        Trial("paraphrase", worded, f"at least {least:.2f}", worded >= least),
        Trial("half of the facts", half, f"between {low:.2f} and {high:.2f}", low <= half <= high),
    ]


def halved(text: str, seat: Bench, seed: int = 0) -> str:
    """A report without what it says of half of its anchors, by weight."""
    order = [one for one in seat.usable if one.weighs and one.predicate is not None]
    Random(f"half/{seed}").shuffle(order)
    whole = _recalled(seat.golden, order)
    best: tuple[float, set[int]] = (whole, set())
    dropped: set[int] = set()
    for one in order:
        if one.predicate is not None:
            dropped = dropped | _lines_of(seat.golden, one.predicate)
        left = _recalled([unit for unit in seat.golden if unit.line not in dropped], order)
        if abs(left - whole / 2) < abs(best[0] - whole / 2):
            best = (left, dropped)
    return attacks.without_lines(text, best[1])


def _recalled(read: Sequence[Unit], order: Sequence[Anchor]) -> float:
    wanted = [one.predicate for one in order if one.predicate is not None]
    return sum(order[at].weighs for at in matched(read, wanted, met))


def _lines_of(read: Sequence[Unit], predicate: Predicate) -> set[int]:
    """The lines that say what a predicate says; a quotation goes with the label above it."""
    found: set[int] = set()
    for at, unit in enumerate(read):
        if not any(True for _ in said(unit, predicate)):
            continue
        gone = [unit]
        if unit.kind == "quote":
            gone += [one for one in read[max(0, at - 3) : at] if one.text.endswith(":")][-1:]
        elif unit.text.endswith(":"):
            gone += [one for one in read[at + 1 : at + 4] if one.kind == "quote"][:1]
        for one in gone:
            found |= set(range(one.line, one.last_line + 1))
    return found


def as_summary(told: Calibration) -> dict[str, Any]:
    """The summary under the names that others know, and under ours."""
    return {
        "golden_vs_self": _round(told.golden.score),
        "shallow_vs_golden": _round(told.shallow.score),
        "spread": _round(told.spread),
        "targets": TARGETS | {"spread_min": told.min_spread},
        "note": NOTE,
        "calibrated": not told.problems,
        "problems": told.problems,
        "attacks": [_trial(one) for one in told.attacks],
        "controls": [_trial(one) for one in told.controls],
    }


def _trial(one: Trial) -> dict[str, Any]:
    told = {"name": one.name, "score": None if one.score is None else _round(one.score), "bound": one.bound}
    return {**told, "held": one.held, "tried": one.score is not None, **({"why": one.why} if one.why else {})}


def _round(value: float) -> float:
    return round(value, 4)


def _number(value: float | None) -> str:
    return "could not be tried" if value is None else f"{value:.2f}"


def rewards(told: Calibration, seat: Bench) -> dict[str, dict[str, Any]]:
    """What goes into `reward.json` of each folder."""
    return {"golden-vs-self": as_json(told.golden, seat), "shallow-vs-golden": as_json(told.shallow, seat)}


def lines(told: Calibration) -> list[str]:
    """The calibration for a reader: what was tried, what it scored, what bound it had to keep."""
    found = [
        f"{'golden report':<28} {told.golden.score:6.3f}  at least {TARGETS['golden_vs_self_min']:.2f}",
        f"{'shallow report':<28} {told.shallow.score:6.3f}  {told.min_spread:.2f} less than golden",
        "",
    ]
    for title, trials in (("Attacks", told.attacks), ("Controls", told.controls)):
        found.append(title)
        for one in trials:
            score = f"{one.score:6.3f}" if one.score is not None else "     –"
            note = ("  BROKEN" if one.held is False else "") + (one.why and f": {one.why}")
            found.append(f"  {one.name:<26} {score}  {one.bound}{note}")
        found.append("")
    problems = told.problems
    return [*found, "calibrated" if not problems else f"not calibrated: {'; '.join(problems)}"]
