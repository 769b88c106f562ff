"""Turn a package into checks, phase by phase, and the checklist that says whether it is ready."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from blade.package.layout import Layout, layout
from blade.package.validate.phases import PHASES, Check
from blade.package.validate.readiness import readiness
from blade.package.validate.skill import skill_checks
from blade.package.validate.terms import terms

if TYPE_CHECKING:
    from blade.package.validate.runs import Shared
    from blade.package.validate.scan import Scan
    from blade.store.index import Watcher

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
    found = [*_there(folder), *skill_checks(package, _benchmarks(package), terms(package.rollouts))]
    return Validation(str(folder), "skill", tuple(("skill", check) for check in found))


def validate(folder: Path, phase: str, min_facts: int, watcher: Watcher) -> Validation:
    """One phase of a package, or all of them with the checklist."""
    if phase == "skill":
        return validate_skill(folder)
    package = layout(folder)
    found = [(PHASES[0] if phase == ALL else phase, check) for check in _there(folder)]
    scans = _scans(package) if phase in (ALL, "rollouts") else []
    for name in PHASES if phase == ALL else (phase,):
        found += [(name, check) for check in _phase(name, package, scans, min_facts, watcher)]
    if phase != ALL:
        return Validation(str(folder), phase, tuple(found))
    from blade.package.sharing import sanitised_checks

    found += [("sharing", check) for check in sanitised_checks(package)]
    ready = readiness(package, [check for _, check in found])
    return Validation(str(folder), phase, tuple(found), tuple(ready))


def _phase(
    name: str, package: Layout, scans: Sequence[Scan], min_facts: int, watcher: Watcher
) -> Sequence[Check]:
    if name == "skill":
        return skill_checks(package, _benchmarks(package), terms(package.rollouts))
    if name == "rollouts":
        from blade.package.validate.runs import rollout_checks

        return rollout_checks(package, scans, _shared(watcher))
    from blade.package.validate.golden import golden_checks

    return golden_checks(package, min_facts, watcher)


def _there(folder: Path) -> list[Check]:
    """A line for a folder that is none, before the lines for all that is therefore missing."""
    if folder.is_dir():
        return []
    return [Check(False, f"{folder}: {'is a file, not a folder' if folder.exists() else 'no such folder'}")]


def _scans(package: Layout) -> list[Scan]:
    from blade.package.validate.scan import scan

    return [scan(path) for path in package.rollouts]


def _benchmarks(package: Layout) -> list[str]:
    """What the sidecars of the reports call the benchmark."""
    from blade.package import files

    found = []
    for one in package.goldens:
        try:
            told = files.data(one.metrics) if one.metrics.is_file() else None
        except files.Broken:
            continue
        if isinstance(told, dict) and isinstance(told.get("benchmark"), str):
            found.append(told["benchmark"])
    return list(dict.fromkeys(found))


def _shared(watcher: Watcher) -> Shared:
    """The tasks that two files share: by key and content where they can be read as runs, else by id."""
    from blade.errors import BladeError
    from blade.package.validate.runs import by_name

    def shared(a: Scan, b: Scan) -> tuple[int, int, str]:
        from blade import pipeline
        from blade.compare.aligned import align
        from blade.pipeline.pages import scoring_of
        from blade.pipeline.sides import column_sides

        try:
            loaded = [pipeline.load([str(one.path)], watcher)[0] for one in (a, b)]
            first, second = column_sides(loaded, [scoring_of(one, None) for one in loaded])
        except BladeError:
            return by_name(a, b)
        told = align(first, second)
        of = max(len(one.run.rollouts.task_keys) for one in loaded)
        why = f"; {len(told.modified):,} have the same key and another content" if told.modified else ""
        return len(told.common), of, why

    return shared
