"""Turn runs into the draft of a package: skill, rollouts, and a golden report of each with its sidecars."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from blade.errors import UsageError
from blade.package import files
from blade.package.copied import copied, shared_files
from blade.package.layout import slug
from blade.package.metrics import facts_of, sidecar
from blade.package.portable import portable
from blade.package.shallow import shallow
from blade.package.skill_draft import skill

if TYPE_CHECKING:
    from blade.model import Report
    from blade.pipeline.load import Loaded
    from blade.store.index import Watcher

DRAFT = "<!-- draft: written from {path} by `blade package init`; review it, then delete this line -->"
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

    if any(source.path == "-" for one in loaded for source in one.sources):
        raise UsageError("standard input cannot be packaged", "name a rollouts file", "usage")
    benchmark = name or next((one.benchmark.name for one in loaded if one.benchmark.name), None)
    benchmark = benchmark or folder.absolute().name
    written = _facts(folder, loaded, watcher)
    shared = shared_files(loaded)
    paths: dict[str, Path] = {}
    for one, prefix in zip(loaded, prefixes(loaded), strict=True):
        paths[prefix] = folder / "rollouts" / f"{prefix}_rollouts.jsonl"
        written += copied(one, one.name in shared, paths[prefix])
    again = [pipeline.load([f"{prefix}={path}"], watcher)[0] for prefix, path in paths.items()]
    reports = []
    for one, (prefix, path) in zip(again, paths.items(), strict=True):
        report = pipeline.diagnose([one], _command(path, threshold), threshold, watcher)
        reports.append(portable(pipeline.with_digests(report), folder))
        written += _golden(folder / "golden_reports", prefix, benchmark, reports[-1], one, path)
    told = {prefix: str(path.relative_to(folder)) for prefix, path in paths.items()}
    draft = skill(benchmark, again, reports, told)
    return [_put(folder / "skill" / "SKILL.md", draft), *written]


def prefixes(loaded: Sequence[Loaded]) -> list[str]:
    """A short name for each run that no other has: its model, then its agent, then its own name."""
    found = [slug(one.run.model or one.name) or slug(one.name) or "run" for one in loaded]
    for others in ([one.run.agent or "" for one in loaded], [one.name for one in loaded]):
        again = {name for name in found if found.count(name) > 1}
        found = [
            slug(f"{name} {other}") if name in again else name
            for name, other in zip(found, others, strict=True)
        ]
    return [
        f"{name}_{found[: at + 1].count(name)}" if found.count(name) > 1 else name
        for at, name in enumerate(found)
    ]


def _facts(folder: Path, loaded: Sequence[Loaded], watcher: Watcher) -> list[Path]:
    """The benchmark's own facts, which decide what passes and what a stage is: those of the first run."""
    found = list(dict.fromkeys(one.benchmark.path for one in loaded if one.benchmark.path))
    if not found:
        return []
    if len({Path(path).read_bytes() for path in found}) > 1:
        watcher.notice(f"the runs have different blade.toml; the package takes {found[0]}")
    to = folder / "rollouts" / "blade.toml"
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(found[0], to)
    return [to]


def _golden(
    folder: Path, prefix: str, benchmark: str, report: Report, one: Loaded, rollouts: Path
) -> list[Path]:
    """The draft of a golden report, with its metrics, anchors and shallow baseline."""
    from blade.report import markdown

    text = markdown.render(report)
    title, _, body = text.partition("\n")
    text = f"{title}\n\n{DRAFT.format(path=f'rollouts/{rollouts.name}')}\n{body}"
    model = report.runs[0].model or prefix
    told = sidecar(facts_of(report), model, benchmark)
    base = folder / f"{prefix}_golden_report.md"
    return [
        _put(base, text),
        _put(folder / f"{prefix}_golden_report_metrics.json", _json(told)),
        _put(folder / f"{prefix}_anchor_facts.json", _json(_anchors(text, report, one, benchmark, model))),
        _put(folder / f"{prefix}_shallow.md", shallow(text, base.stem)),
    ]


def _anchors(text: str, report: Report, one: Loaded, benchmark: str, model: str) -> dict[str, Any]:
    """Facts of the rollouts that the draft states, each with its predicate."""
    from blade.check import checked
    from blade.check.world import world
    from blade.package.anchors import as_file, drafted
    from blade.package.units import names, units

    known = names(report)
    told = world(report, [one])
    return as_file(drafted(told, units(text, checked(text, told), known)), benchmark, model)


def _command(path: Path, threshold: float | None) -> str:
    given = f" --pass-threshold {threshold!r}" if threshold is not None else ""
    return f"blade diagnose {path}{given}"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def _put(path: Path, content: str) -> Path:
    files.write(path, content)
    return path
