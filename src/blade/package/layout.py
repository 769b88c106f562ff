"""Find the parts of a package: its skill, its rollouts, and each golden report with its sidecars."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from blade.agent.skills.names import slug

ROLLOUTS = "rollouts/*.jsonl"
DATA = "data/*rollout*.jsonl"
_NO_ROLLOUTS = ("materialized_inputs", "reward_profiling", "aggregate")
_REPORT = re.compile(r"^(?P<prefix>.+?)[-_]golden[-_]report\.md$", re.IGNORECASE)
_VERSUS = re.compile(r"[-_]vs[-_]", re.IGNORECASE)
_ENDING = re.compile(r"[-_.]?rollouts?$", re.IGNORECASE)


@dataclass(frozen=True)
class Golden:
    """A golden report and the files that belong to it; those that are missing by their expected place."""

    report: Path
    prefix: str  # what its name says before `_golden_report`: the model
    metrics: Path
    anchors: Path
    shallow: Path
    is_comparison: bool  # a report on several runs, whose sidecars are optional


@dataclass(frozen=True)
class Layout:
    """The parts of a package that are there."""

    folder: Path
    skill: Path | None
    rollouts: tuple[Path, ...]
    source: str | None  # by which rule rollouts were looked for; None: neither folder is there
    has_reports: bool  # whether there is a folder for golden reports
    goldens: tuple[Golden, ...]


def layout(folder: Path) -> Layout:
    """What lies where; nothing is opened."""
    skills = [path for path in (folder / "skill" / "SKILL.md", folder / "SKILL.md") if path.is_file()]
    source, rollouts = _rollouts(folder)
    reports = folder / "golden_reports"
    goldens = [golden(path) for path in _files(reports, "*.md") if _REPORT.match(path.name)]
    skill = skills[0] if skills else None
    return Layout(folder, skill, tuple(rollouts), source, reports.is_dir(), tuple(goldens))


_FOLDERS = ("skill", "rollouts", "golden_reports")
_ROOT = re.compile(
    r"(?:readme|licen[cs]e|notice|citation|changelog|authors|contributing)(?:[._-].*)?", re.IGNORECASE
)
_OF_SKILL = ("references", "scripts", "assets")  # what may lie beside a skill
TRIALS = "calibration-runs"  # where `calibrate` writes unless told otherwise


def is_part(package: Layout, path: Path) -> bool:
    """Whether a file, by its place below the folder, belongs to a package: the rest is somebody's own."""
    top = path.parts[0]
    if TRIALS in path.parts:
        return False
    if len(path.parts) == 1:
        return top in ("SKILL.md", "blade.toml") or bool(_ROOT.fullmatch(top))
    if top in _FOLDERS or (top == "data" and package.source == DATA):
        return True
    return top in _OF_SKILL and package.skill == package.folder / "SKILL.md"


def golden(report: Path) -> Golden:
    """A golden report with its sidecars, by the first of their names that is there."""
    matched = _REPORT.match(report.name)
    prefix = matched["prefix"] if matched else report.stem
    plain = prefix.replace("-", "_")
    metrics = [f"{prefix}_golden_report_metrics.json", f"{plain}_golden_report_metrics.json"]
    metrics += [f"{report.stem}{ending}" for ending in ("_metrics.json", "-metrics.json", ".metrics.json")]
    metrics.append(f"{report.name}.metrics.json")
    return Golden(
        report,
        prefix,
        _first(report.parent, metrics),
        _first(report.parent, _named(prefix, plain, "anchor_facts", "json")),
        _first(report.parent, _named(prefix, plain, "shallow", "md")),
        bool(_VERSUS.search(prefix)),
    )


GRADES = ("1_excellent", "2_good", "3_shallow", "4_wrong_causes", "5_fabricated")  # the best first


def graded(golden: Golden) -> dict[str, Path]:
    """The reports of graded quality beside a golden report that are there, the best first."""
    folder = golden.report.parent / "graded"
    paths = {grade: folder / f"{golden.prefix}_{grade}.md" for grade in GRADES}
    return {grade: path for grade, path in paths.items() if path.is_file()}


def prefix_of(rollouts: Path) -> str:
    """What a rollouts file is called beside its reports: its name without `_rollouts`."""
    stem = rollouts.name.partition(".jsonl")[0]
    return _ENDING.sub("", stem) or stem


def rollouts_of(golden: Golden, rollouts: Sequence[Path], models: Sequence[str] = ()) -> Path | None:
    """The rollouts file that a golden report is about: by its own name, or by a name of its model."""
    for name in (golden.prefix, *models):
        wanted = slug(name)
        exact = [path for path in rollouts if wanted in (slug(prefix_of(path)), slug(path.stem))]
        near = [path for path in rollouts if slug(path.stem).startswith(f"{wanted}_")]
        if wanted and len(exact or near) == 1:
            return (exact or near)[0]
    return rollouts[0] if len(rollouts) == 1 and not golden.is_comparison else None


def sides_of(golden: Golden, rollouts: Sequence[Path]) -> tuple[Path, ...]:
    """The rollouts files of both sides of a comparison report, in its order; none if one is missing."""
    names = _VERSUS.split(golden.prefix)
    paths = [rollouts_of(replace(golden, prefix=name, is_comparison=True), rollouts) for name in names]
    return tuple(path for path in paths if path is not None) if None not in paths else ()


def _rollouts(folder: Path) -> tuple[str | None, list[Path]]:
    if (folder / "rollouts").is_dir():
        return ROLLOUTS, [path for path in _files(folder / "rollouts", "*.jsonl") if not _is_sidecar(path)]
    if (folder / "data").is_dir():
        return DATA, [path for path in _files(folder / "data", "*rollout*.jsonl") if not _is_sidecar(path)]
    return None, []


def _is_sidecar(path: Path) -> bool:
    return any(part in path.name for part in _NO_ROLLOUTS) or path.stem.endswith("_failures")


def _files(folder: Path, pattern: str) -> list[Path]:
    return sorted(path for path in folder.glob(pattern) if path.is_file()) if folder.is_dir() else []


def _named(prefix: str, plain: str, what: str, suffix: str) -> list[str]:
    other = what.replace("_", "-")
    return [f"{prefix}_{what}.{suffix}", f"{prefix}-{other}.{suffix}", f"{plain}_{what}.{suffix}"]


def _first(folder: Path, names: list[str]) -> Path:
    """The first file that is there, else where it should be."""
    return next((folder / name for name in names if (folder / name).is_file()), folder / names[0])
