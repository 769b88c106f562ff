"""Validate a package phase by phase, and draw up the checklist that says whether it is ready."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from blade.package import files
from blade.package.layout import Layout, layout
from blade.package.validate.phases import PHASES, Check
from blade.package.validate.readiness import readiness
from blade.package.validate.skill import skill_checks
from blade.package.validate.terms import terms

if TYPE_CHECKING:
    from blade.tables.index import Watcher

ALL = "all"


@dataclass(frozen=True)
class Validation:
    """What a validation found, in the order of print."""

    folder: str
    phase: str
    checks: tuple[tuple[str, Check], ...]  # with the phase of each
    ready: tuple[Check, ...] = ()  # the checklist, of a whole package

    @property
    def passed(self) -> bool:
        return all(check.passed for _, check in self.checks) and all(check.passed for check in self.ready)

    def lines(self) -> Iterator[str]:
        """A line for each check, the summary, and the checklist last."""
        yield from (check.line for _, check in self.checks)
        right = sum(check.passed for _, check in self.checks)
        yield ""
        yield f"Summary: {right}/{len(self.checks)} checks passed"
        if self.ready:
            yield ""
            yield "Readiness checklist"
            yield from (check.line for check in self.ready)

    def as_json(self) -> dict[str, Any]:
        """The same for a program."""
        return {
            "schema": "blade.validate/1",
            "benchmark_dir": self.folder,
            "phase": self.phase,
            "passed": self.passed,
            "counts": {
                "passed": sum(check.passed for _, check in self.checks),
                "failed": sum(not check.passed for _, check in self.checks),
            },
            "checks": [
                {"phase": phase, "passed": check.passed, "text": check.text} for phase, check in self.checks
            ],
            "readiness": [
                {"about": check.counts_for, "passed": check.passed, "text": check.text}
                for check in self.ready
            ],
        }


def validate_skill(folder: Path) -> Validation:
    """The first phase alone, which needs nothing but the standard library."""
    package = layout(folder)
    checks = [*_there(folder), *skill_checks(package, _benchmarks(package), terms(package.rollouts))]
    return Validation(str(folder), "skill", tuple(("skill", check) for check in checks))


def validate(folder: Path, phase: str, min_facts: int, watcher: Watcher) -> Validation:
    """One phase of a package, or all of them with the checklist."""
    if phase == "skill":
        return validate_skill(folder)
    package = layout(folder)
    checks = [(PHASES[0] if phase == ALL else phase, check) for check in _there(folder)]
    for name in PHASES if phase == ALL else (phase,):
        checks += [(name, check) for check in _phase(name, package, min_facts, watcher)]
    if phase != ALL:
        return Validation(str(folder), phase, tuple(checks))
    from blade.package.sharing import sanitised_checks

    checks += [("sharing", check) for check in sanitised_checks(package)]
    ready = readiness(package, [check for _, check in checks])
    return Validation(str(folder), phase, tuple(checks), tuple(ready))


def _phase(name: str, package: Layout, min_facts: int, watcher: Watcher) -> Sequence[Check]:
    if name == "skill":
        return skill_checks(package, _benchmarks(package), terms(package.rollouts))
    if name == "rollouts":
        from blade.package.validate.runs import rollout_checks

        return rollout_checks(package, watcher)
    from blade.package.validate.golden import golden_checks

    return golden_checks(package, min_facts, watcher)


def _there(folder: Path) -> list[Check]:
    """A line for a folder that is none, before the lines for all that is therefore missing."""
    if folder.is_dir():
        return []
    return [Check(False, f"{folder}: {'is a file, not a folder' if folder.exists() else 'no such folder'}")]


def _benchmarks(package: Layout) -> list[str]:
    """What the sidecars of the reports call the benchmark."""
    sidecars = [files.data_or_nothing(parts.metrics) for parts in package.goldens]
    names = [data.get("benchmark") for data in sidecars if isinstance(data, dict)]
    return list(dict.fromkeys(name for name in names if isinstance(name, str)))
