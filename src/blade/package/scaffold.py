"""Draft a package from runs: skill, rollouts, and a golden report of each run."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from blade.agent.skills.draft import skill
from blade.agent.skills.names import slug
from blade.errors import UsageError
from blade.package import drafts, files
from blade.package.rollout_files import copied, shared_files

if TYPE_CHECKING:
    from blade.pipeline.load import Loaded
    from blade.tables.index import Watcher

_OURS = ("skill", "rollouts", "golden_reports")


def refuse_filled(folder: Path, force: bool) -> None:
    """Do not write over a package, nor among files that are not ours, unless told to."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file", "name a folder", "output-not-empty")
    filled = [name for name in _OURS if (folder / name).is_dir() and any((folder / name).iterdir())]
    if filled and not force:
        raise UsageError(
            f"{folder}/{filled[0]} holds files already",
            "name another folder, or add --force to write over them",
            "output-not-empty",
        )


def scaffold(
    folder: Path, loaded: Sequence[Loaded], name: str | None, threshold: float | None, watcher: Watcher
) -> list[Path]:
    """Write the package and return the files written; every number in it comes from the copied rollouts."""
    from blade import pipeline

    if any(source.path == "-" for entry in loaded for source in entry.sources):
        raise UsageError("standard input cannot be packaged", "name a rollouts file", "usage")
    benchmark = name or next((entry.benchmark.name for entry in loaded if entry.benchmark.name), None)
    benchmark = benchmark or folder.absolute().name
    written = _facts(folder, loaded, watcher)
    shared = shared_files(loaded)
    paths: dict[str, Path] = {}
    for entry, prefix in zip(loaded, prefixes(loaded), strict=True):
        paths[prefix] = folder / "rollouts" / f"{prefix}_rollouts.jsonl"
        written += copied(entry, entry.name in shared, paths[prefix])
    again = [pipeline.load([f"{prefix}={path}"], watcher)[0] for prefix, path in paths.items()]
    reports = []
    for entry in again:
        report, files_of_it = drafts.golden(folder, entry, benchmark, threshold, watcher)
        reports.append(report)
        written += files_of_it
    written += [drafts.compared(folder, [again[0], entry], threshold, watcher) for entry in again[1:]]
    places = {prefix: str(path.relative_to(folder)) for prefix, path in paths.items()}
    path = folder / "skill" / "SKILL.md"
    files.write(path, skill(benchmark, again, reports, places))
    return [path, *written]


def prefixes(loaded: Sequence[Loaded]) -> list[str]:
    """A short name for each run that no other has: its model, then its agent, then its own name."""
    names = [slug(entry.run.model or entry.name) or slug(entry.name) or "run" for entry in loaded]
    for others in ([entry.run.agent or "" for entry in loaded], [entry.name for entry in loaded]):
        again = {name for name in names if names.count(name) > 1}
        names = [
            slug(f"{name} {other}") if name in again else name
            for name, other in zip(names, others, strict=True)
        ]
    return [
        f"{name}_{names[: number + 1].count(name)}" if names.count(name) > 1 else name
        for number, name in enumerate(names)
    ]


def _facts(folder: Path, loaded: Sequence[Loaded], watcher: Watcher) -> list[Path]:
    """The benchmark's own facts, which decide what passes and what a stage is: those of the first run."""
    paths = list(dict.fromkeys(entry.benchmark.path for entry in loaded if entry.benchmark.path))
    if not paths:
        return []
    if len({Path(path).read_bytes() for path in paths}) > 1:
        watcher.notice(f"the runs have different blade.toml; the package takes {paths[0]}")
    to = folder / "rollouts" / "blade.toml"
    to.parent.mkdir(parents=True, exist_ok=True)
    if not (to.exists() and to.samefile(paths[0])):
        shutil.copyfile(paths[0], to)
    return [to]
