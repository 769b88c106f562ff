"""Calibrate a package: golden above its baseline, attacks low, graded reports in their order."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

import msgspec

from blade.package.layout import GRADES
from blade.package.report_score import WORDING, Bench, Case, Score, as_json, judged

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
    """What all texts scored."""

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
        low = f"the golden report scores {golden:.2f} by its own anchors, at least {least:.2f} is needed"
        high = f"the shallow report scores {shallow:.2f}, at most {most:.2f} is allowed"
        near = f"golden and shallow report are {self.spread:.2f} apart, not {self.min_spread:.2f}"
        bounds = ((golden < least, low), (shallow > most, high), (self.spread < self.min_spread, near))
        broken = [trial for trial in (*self.attacks, *self.graded) if trial.held is False]
        reasons = [reason for is_broken, reason in bounds if is_broken]
        return reasons + [f"{trial.name}: {trial.score or 0:.2f}, {trial.bound}" for trial in broken]


def calibrated(
    case: Case, bench: Bench, graded: Mapping[str, str], min_spread: float = 0.50, seeds: int = 2
) -> Calibration:
    """Put the golden report, its baseline, the attacks and the graded reports to the judge."""
    return Calibration(
        judged(case.golden, bench), judged(case.shallow, bench), tuple(_attacks(case, bench, seeds)),
        tuple(ranked({grade: judged(text, bench).score for grade, text in graded.items()})), min_spread,
        WORDING if bench.worlds is None else "rollouts",
    )  # fmt: skip


def _attacks(case: Case, bench: Bench, seeds: int) -> list[Trial]:
    trials = []
    for name, attack in ATTACKS.items():
        texts = dict.fromkeys(attack(case, seed) for seed in range(max(1, seeds)))
        if not any(texts):
            trials.append(Trial(name, None, "not tried: the package has no other golden report", None))
            continue
        worst, most = max(judged(text, bench).score for text in texts), TARGETS["attack_max"]
        trials.append(Trial(name, worst, f"at most {most:.2f}", worst <= most))
    return trials


def ranked(scores: Mapping[str, float]) -> list[Trial]:
    """The graded reports, each below the one before it by a clear gap."""
    trials: list[Trial] = []
    gap, least, most = (TARGETS[name] for name in ("gap_min", "excellent_min", "fabricated_max"))
    grades = [grade for grade in GRADES if grade in scores]
    for above, grade in zip([None, *grades], grades, strict=False):
        score, bounds = scores[grade], {}
        if above is not None:
            bounds[f"at least {gap:.2f} below {above}"] = scores[above] - score >= gap
        if grade == GRADES[0]:
            bounds[f"at least {least:.2f}"] = score >= least
        if grade == GRADES[-1]:
            bounds[f"at most {most:.2f}"] = score <= most
        trials.append(Trial(grade, score, ", ".join(bounds), all(bounds.values())))
    return trials


def as_summary(calibration: Calibration) -> dict[str, Any]:
    """The summary under the names that other tools know, and under ours."""

    def entry(trial: Trial) -> dict[str, Any]:
        score = None if trial.score is None else round(trial.score, 4)
        return msgspec.structs.asdict(trial) | {"score": score, "tried": score is not None}

    return {
        "golden_vs_self": round(calibration.golden.score, 4),
        "shallow_vs_golden": round(calibration.shallow.score, 4),
        "spread": round(calibration.spread, 4),
        "targets": TARGETS | {"spread_min": calibration.min_spread},
        "note": NOTE,
        "rests_on": calibration.rests_on,
        "calibrated": not calibration.problems,
        "problems": calibration.problems,
        "attacks": list(map(entry, calibration.attacks)),
        "graded": list(map(entry, calibration.graded)),
    }


def rewards(calibration: Calibration, bench: Bench) -> dict[str, dict[str, Any]]:
    """What goes into `reward.json` of each folder."""
    scores = {"golden-vs-self": calibration.golden, "shallow-vs-golden": calibration.shallow}
    return {folder: as_json(score, bench) for folder, score in scores.items()}


# -- texts that must not pass for a report ----------------------------------------------------------

_WORD = re.compile(r"\S+")


def pasted(case: Case, seed: int) -> str:
    """The facts of the anchors, line by line, each with its number cited."""
    cited = (f" {each.value}<!--blade: {each.query}-->" if each.query is not None else "" for each in case.anchors)
    lines = [f"- {each.fact}{citation}" for each, citation in zip(case.anchors, cited, strict=True)]
    return "\n".join(["# Findings", "", *lines, ""])


def anchors_file(case: Case, seed: int) -> str:
    """The file of anchors itself."""
    entries = [{"fact": each.fact, "query": each.query, "value": each.value} for each in case.anchors]
    return "# Report\n\n" + json.dumps(entries, indent=2, ensure_ascii=False).replace("[", "(", 1)


def keywords(case: Case, seed: int) -> str:
    """The vocabulary of the anchors in any order, with the look of a report."""
    random = Random(f"keywords/{seed}")
    words = _WORD.findall(" ".join(anchor.fact for anchor in case.anchors))
    random.shuffle(words)
    size = max(1, len(words) // 8)
    parts = [words[start : start + size] for start in range(0, len(words), size)]
    return "# report\n\n" + "\n\n".join(f"## {part[0]}\n\n{' '.join(part)}" for part in parts) + "\n\n| 1 |\n"


def _mark(line: str) -> str:
    """What a line begins with before its words: of a heading, an item or a quotation."""
    hit = re.match(r"\s*(?:#{1,6}|[-*+>]|\d{1,9}[.)])?\s*", line)
    return hit[0] if hit else ""


def shuffled(case: Case, seed: int) -> str:
    """The words of each line in any order: every heading, id and number stays in its line."""
    random = Random(f"shuffled/{seed}")

    def mixed(line: str) -> str:
        start = _mark(line)
        words = _WORD.findall(line[len(start) :])
        random.shuffle(words)
        return start + " ".join(words)

    return "\n".join(mixed(line) for line in case.golden.split("\n"))


def other_numbers(case: Case, seed: int) -> str:
    """Every number another one."""
    random = Random(f"numbers/{seed}")

    def other(hit: re.Match[str]) -> str:
        first = str((int(hit[0][0]) + random.randint(1, 8)) % 9 + 1) if len(hit[0]) > 1 else ""
        rest = "".join(random.choice("0123456789") for _ in hit[0][len(first) :])
        return first + rest if first + rest != hit[0] else first + str((int(rest or 0) + 1) % 10)

    return re.sub(r"\d+", other, case.golden)


def negated(case: Case, seed: int) -> str:
    """Every sentence of the prose denied; headings and tables stay."""

    def denied(line: str) -> str:
        if not line.strip() or line.startswith(("#", "|", ">", "```", "<!--")):
            return line
        start = _mark(line)
        parts = re.split(r"(?<=[.!?])\s+(?=[*_`(]*[A-Z0-9`])", line[len(start) :])
        return start + " ".join(f"It is false that {part[:1].lower()}{part[1:]}" for part in parts)

    return "\n".join(denied(line) for line in case.golden.split("\n"))


def headings(case: Case, seed: int) -> str:
    """The headings of the golden report, with nothing under them."""
    return "\n\n".join(line for line in case.golden.split("\n") if line.startswith("#")) + "\n"


ATTACKS: dict[str, Callable[[Case, int], str]] = {
    "anchors pasted": pasted,
    "anchors file": anchors_file,
    "keywords": keywords,
    "shuffled words": shuffled,
    "other numbers": other_numbers,
    "negated sentences": negated,
    "empty headings": headings,
    "another model's report": lambda case, _: case.other_goldens[0] if case.other_goldens else "",
}
