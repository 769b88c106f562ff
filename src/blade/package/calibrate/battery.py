"""Calibrate a package: golden above its baseline, attacks low, graded reports in their order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from blade.package.calibrate.attacks import ATTACKS, Material
from blade.package.judge.result import WORDING, as_json
from blade.package.judge.score import Bench, Score, judged
from blade.package.judge.sources import Case
from blade.package.layout import GRADES

TARGETS = {
    "golden_vs_self_min": 0.70,
    "shallow_vs_golden_max": 0.25,
    "spread_min": 0.50,
    "attack_max": 0.25,
    "excellent_min": 0.70,
    "fabricated_max": 0.20,
    "gap_min": 0.05,
}
NOTE = (
    "Scores are those of `blade package score`. A package is calibrated if the golden report is well above "
    "its shallow baseline, every attack stays below its limit, and graded reports come out in their order."
)


class Trial(msgspec.Struct, frozen=True):
    """One text put to the judge, with the bound that its score must keep."""

    name: str
    score: float | None  # None: it could not be tried
    bound: str
    held: bool | None


class Calibration(msgspec.Struct, frozen=True):
    golden: Score
    shallow: Score
    attacks: tuple[Trial, ...]
    graded: tuple[Trial, ...]
    min_spread: float
    rests_on: str = ""

    @property
    def spread(self) -> float:
        return self.golden.score - self.shallow.score

    @property
    def problems(self) -> list[str]:
        """What keeps the package from being calibrated."""
        golden, least = self.golden.score, TARGETS["golden_vs_self_min"]
        shallow, most = self.shallow.score, TARGETS["shallow_vs_golden_max"]
        reasons = []
        if golden < least:
            by_own = f"the golden report scores {golden:.2f} by its own anchors"
            reasons.append(f"{by_own}, at least {least:.2f} is needed")
        if shallow > most:
            reasons.append(f"the shallow report scores {shallow:.2f}, at most {most:.2f} is allowed")
        if self.spread < self.min_spread:
            apart = f"{self.spread:.2f} apart, not {self.min_spread:.2f}"
            reasons.append(f"golden and shallow report are {apart}")
        broken = [trial for trial in (*self.attacks, *self.graded) if trial.held is False]
        return reasons + [f"{trial.name}: {trial.score or 0:.2f}, {trial.bound}" for trial in broken]


def calibrated(
    case: Case, bench: Bench, graded: Mapping[str, str], min_spread: float = 0.50, seeds: int = 2
) -> Calibration:
    """Put the golden report, its baseline, the attacks and the graded reports to the judge."""
    facts = tuple((anchor.fact, anchor.query, anchor.value) for anchor in case.anchors)
    material = Material(case.golden, facts, case.other_goldens)
    return Calibration(
        judged(case.golden, bench), judged(case.shallow, bench), tuple(_attacks(material, bench, seeds)),
        tuple(ranked({grade: judged(text, bench).score for grade, text in graded.items()})), min_spread,
        WORDING if bench.worlds is None else "rollouts",
    )  # fmt: skip


def _attacks(material: Material, bench: Bench, seeds: int) -> list[Trial]:
    """The worst of several draws of each attack."""
    trials = []
    for name, attack in ATTACKS.items():
        texts = dict.fromkeys(attack(replace(material, seed=seed)) for seed in range(max(1, seeds)))
        if not any(texts):
            trials.append(Trial(name, None, "not tried: the package has no other golden report", None))
            continue
        worst, most = max(judged(text, bench).score for text in texts), TARGETS["attack_max"]
        trials.append(Trial(name, worst, f"at most {most:.2f}", worst <= most))
    return trials


def ranked(scores: Mapping[str, float]) -> list[Trial]:
    """The graded reports, each below the one before it by a clear gap."""
    trials: list[Trial] = []
    above: tuple[str, float] | None = None
    for grade in (grade for grade in GRADES if grade in scores):
        score, bounds, held = scores[grade], [], True
        if above is not None:
            bounds.append(f"at least {TARGETS['gap_min']:.2f} below {above[0]}")
            held = above[1] - score >= TARGETS["gap_min"]
        if grade == GRADES[0]:
            bounds.append(f"at least {TARGETS['excellent_min']:.2f}")
            held = held and score >= TARGETS["excellent_min"]
        if grade == GRADES[-1]:
            bounds.append(f"at most {TARGETS['fabricated_max']:.2f}")
            held = held and score <= TARGETS["fabricated_max"]
        trials.append(Trial(grade, score, ", ".join(bounds), held))
        above = grade, score
    return trials


def as_summary(calibration: Calibration) -> dict[str, Any]:
    """The summary under the names that other tools know, and under ours."""
    return {
        "golden_vs_self": round(calibration.golden.score, 4),
        "shallow_vs_golden": round(calibration.shallow.score, 4),
        "spread": round(calibration.spread, 4),
        "targets": TARGETS | {"spread_min": calibration.min_spread},
        "note": NOTE,
        "rests_on": calibration.rests_on,
        "calibrated": not calibration.problems,
        "problems": calibration.problems,
        "attacks": [_trial(trial) for trial in calibration.attacks],
        "graded": [_trial(trial) for trial in calibration.graded],
    }


def _trial(trial: Trial) -> dict[str, Any]:
    score = None if trial.score is None else round(trial.score, 4)
    tried = trial.score is not None
    return {"name": trial.name, "score": score, "bound": trial.bound, "held": trial.held, "tried": tried}


def rewards(calibration: Calibration, bench: Bench) -> dict[str, dict[str, Any]]:
    """What goes into `reward.json` of each folder."""
    return {
        "golden-vs-self": as_json(calibration.golden, bench),
        "shallow-vs-golden": as_json(calibration.shallow, bench),
    }
