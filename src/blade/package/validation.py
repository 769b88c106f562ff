"""Validate a package phase by phase, and draw up the checklist that says whether it is ready."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from blade.package.layout import Layout, json_or_nothing, layout

if TYPE_CHECKING:
    from blade.tables.index import Watcher


ALL = "all"
# What a check counts for in the readiness checklist; an empty one counts for none.
SKILL, RUNS, EVIDENCE, METRICS, ANCHORS = "skill", "runs", "evidence", "metrics", "anchors"
SHALLOW, SANITISED = "shallow", "sanitised"
DRAFT = "draft"  # what a person has yet to read
LINES = {
    SKILL: "D1 skill has overview, schema, taxonomy, workflow and report template, filled",
    RUNS: "D2 rollouts hold at least two scored, comparable runs",
    EVIDENCE: "D3 golden reports cite task-level evidence, not only aggregates",
    METRICS: "Metrics sidecars parse and match the report",
    ANCHORS: "Concrete anchor facts exist for each golden report",
    SHALLOW: "A shallow baseline exists for each golden report",
    SANITISED: "Sanitised: no private source, endpoints, credentials, user names, unreleased names, "
    "uncleared raw data",
}
_UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


@dataclass(frozen=True)
class Check:
    """One thing that was looked at."""

    passed: bool
    text: str
    counts_for: str = ""

    @property
    def line(self) -> str:
        """The line of print; names of files and values of rows cannot steer the terminal."""
        return f"[{'PASS' if self.passed else 'FAIL'}] {_UNSEEN.sub('?', self.text)}"

    @property
    def as_json(self) -> dict[str, Any]:
        return {"passed": self.passed, "text": self.text}


def either(passed: bool, good: str, bad: str, counts_for: str = "") -> Check:
    """A check that says one thing if it passes and another if it fails."""
    return Check(passed, good if passed else bad, counts_for)


def words(text: str) -> set[str]:
    """The distinct words of a text, of any language; a single letter is none."""
    signs = re.findall(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]", text)  # of scripts that put no spaces
    return {*re.findall(r"[^\W\d_]{2,}", text.lower()), *signs}


def plural(n: int, noun: str, many: str = "") -> str:
    return f"{n:,} {noun if n == 1 else many or noun + 's'}"


@dataclass(frozen=True)
class Validation:
    """What a validation found, in the order of print."""

    folder: str
    phase: str
    checks: tuple[tuple[str, Check], ...]  # with the phase of each
    ready: tuple[Check, ...] = ()  # the checklist, of a whole package

    @property
    def passed(self) -> bool:
        return all(check.passed for check in (*(check for _, check in self.checks), *self.ready))

    def lines(self) -> Iterator[str]:
        """A line for each check, the summary, and the checklist last."""
        yield from (check.line for _, check in self.checks)
        right = sum(check.passed for _, check in self.checks)
        yield from ("", f"Summary: {right}/{len(self.checks)} checks passed")
        if self.ready:
            yield from ("", "Readiness checklist", *(check.line for check in self.ready))

    def as_json(self) -> dict[str, Any]:
        """The same for a program."""
        right = sum(check.passed for _, check in self.checks)
        return {
            "schema": "blade.validate/1",
            "benchmark_dir": self.folder,
            "phase": self.phase,
            "passed": self.passed,
            "counts": {"passed": right, "failed": len(self.checks) - right},
            "checks": [{"phase": phase} | each.as_json for phase, each in self.checks],
            "readiness": [{"about": each.counts_for} | each.as_json for each in self.ready],
        }


def validate_skill(folder: Path) -> Validation:
    """The first phase alone, which needs nothing but the standard library."""
    checks = [*_there(folder), *_skill(layout(folder))]
    return Validation(str(folder), "skill", tuple(("skill", check) for check in checks))


def validate(folder: Path, phase: str, min_facts: int, watcher: Watcher) -> Validation:
    """One phase of a package, or all of them with the checklist."""
    package = layout(folder)
    names = ("skill", "rollouts", "golden") if phase == ALL else (phase,)
    checks = [(names[0], check) for check in _there(folder)]
    if "skill" in names:
        checks += [("skill", check) for check in _skill(package)]
    if "rollouts" in names:
        from blade.package.rollout_checks import rollout_checks  # the skill alone needs no other package

        checks += [("rollouts", check) for check in rollout_checks(package, watcher)]
    if "golden" in names:
        from blade.package.golden_checks import golden_checks

        checks += [("golden", check) for check in golden_checks(package, min_facts, watcher)]
    if phase != ALL:
        return Validation(str(folder), phase, tuple(checks))
    from blade.package.sharing import sanitised_checks

    checks += [("sharing", check) for check in sanitised_checks(package)]
    ready = readiness(package, [check for _, check in checks])
    return Validation(str(folder), phase, tuple(checks), tuple(ready))


def _skill(package: Layout) -> list[Check]:
    """The checks of the skill, whose name may be what the sidecars of the reports call the benchmark."""
    from blade.package.skill_checks import skill_checks, terms

    sidecars = [json_or_nothing(parts.metrics) for parts in package.goldens]
    names = [data.get("benchmark") for data in sidecars if isinstance(data, dict)]
    return skill_checks(package, [name for name in names if isinstance(name, str)], terms(package.rollouts))


def _there(folder: Path) -> list[Check]:
    """A line for a folder that is none, before the lines for all that is therefore missing."""
    if folder.is_dir():
        return []
    return [Check(False, f"{folder}: {'is a file, not a folder' if folder.exists() else 'no such folder'}")]


def readiness(package: Layout, checks: Sequence[Check]) -> list[Check]:
    """The checklist; a line holds when something was looked at for it and nothing failed."""
    comparisons, needless = [parts for parts in package.goldens if parts.is_comparison], (METRICS, ANCHORS, SHALLOW)
    needed = {SHALLOW: max(1, len(package.goldens) - len(comparisons))}
    checklist = []
    for about, line in LINES.items():
        looked = [check.passed for check in checks if check.counts_for == about]
        failed, lacking = looked.count(False), needed.get(about, 1) - looked.count(True)
        # a line does not ask of comparison reports what they may go without
        is_excused = about in needless and any(not getattr(parts, about).is_file() for parts in comparisons)
        why = " (comparison reports need none)" if is_excused else ""
        if failed:
            why = f" ({plural(failed, 'check')} above failed)"
        elif lacking > 0:
            why = f" ({plural(lacking, 'baseline')} missing)" if about == SHALLOW else " (nothing to look at)"
        checklist.append(Check(not failed and lacking <= 0, line + why, about))
    drafts = sum(check.counts_for == DRAFT for check in checks)
    if drafts:
        line = f"draft: not reviewed ({plural(drafts, 'golden report')}; see above how to clear the mark)"
        checklist.append(Check(False, line, DRAFT))
    return checklist
