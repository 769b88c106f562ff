"""Turn the rollouts of a package into drafts of its golden reports, each with its sidecars."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from blade.package import files
from blade.package.layout import Golden, Layout, prefix_of, rollouts_of
from blade.package.metrics import facts_of, sidecar
from blade.package.portable import portable
from blade.package.shallow import shallow

if TYPE_CHECKING:
    from blade.model import Report
    from blade.pipeline.load import Loaded
    from blade.store.index import Watcher

MARK = "<!-- draft:"
_DRAFT = MARK + " written from {path} by `blade package init`; review it, then delete this line -->"


def golden(
    folder: Path, one: Loaded, benchmark: str, threshold: float | None, watcher: Watcher
) -> tuple[Report, list[Path]]:
    """The draft of a golden report, with its metrics, anchors and shallow baseline."""
    from blade import pipeline
    from blade.report import markdown

    path = Path(one.sources[0].path)
    command = f"blade diagnose {path}{_threshold(threshold)}"
    report = pipeline.diagnose([one], command, threshold, watcher)
    report = portable(pipeline.with_digests(report), folder)
    text = _marked(markdown.render(report), f"rollouts/{path.name}")
    model = report.runs[0].model or one.name
    base = folder / "golden_reports" / f"{one.name}_golden_report.md"
    told = {
        base: text,
        base.with_name(f"{base.stem}_metrics.json"): _json(sidecar(facts_of(report), model, benchmark)),
        base.with_name(f"{one.name}_anchor_facts.json"): _json(_anchors(text, report, one, benchmark, model)),
        base.with_name(f"{one.name}_shallow.md"): shallow(text, base.stem),
    }
    for place, content in told.items():
        files.write(place, content)
    return report, list(told)


def compared(folder: Path, pair: Sequence[Loaded], threshold: float | None, watcher: Watcher) -> Path:
    """The draft of a report on two runs; it has no sidecars of its own."""
    from blade import pipeline
    from blade.pipeline import comparing
    from blade.report import markdown
    from blade.report.change import pages

    names = " ".join(one.sources[0].path for one in pair)
    command = f"blade compare {names}{_threshold(threshold)}"
    report = comparing.compare(pair, command, threshold=threshold, watcher=watcher)
    report = portable(pipeline.with_digests(report), folder)
    text = markdown.page(pages.title(report), pages.chapters(report))
    path = folder / "golden_reports" / f"{'_vs_'.join(one.name for one in pair)}_golden_report.md"
    files.write(path, _marked(text, "rollouts/"))
    return path


def redraft(package: Layout, one: Golden, watcher: Watcher) -> bool:
    """Write a report anew if it is still a draft of ours; whether it was."""
    from blade import pipeline
    from blade.check.made import made, options

    try:
        text = files.text(one.report)
        told = files.data(one.metrics) if one.metrics.is_file() else {}
    except files.Broken:
        return False
    if MARK not in text:
        return False
    given = options(made(text).command).get("--pass-threshold")
    threshold = float(given) if given else None
    sides = [one.prefix] if not one.is_comparison else one.prefix.split("_vs_")
    paths = [rollouts_of(_side(one, name), package.rollouts) for name in sides]
    loaded = [pipeline.load([f"{prefix_of(path)}={path}"], watcher)[0] for path in paths if path is not None]
    if len(loaded) < len(sides):
        return False
    if one.is_comparison:
        compared(package.folder, loaded, threshold, watcher)
    else:
        benchmark = told.get("benchmark") if isinstance(told, dict) else None
        golden(package.folder, loaded[0], str(benchmark or package.folder.name), threshold, watcher)
    return True


def _side(one: Golden, prefix: str) -> Golden:
    return Golden(one.report, prefix, one.metrics, one.anchors, one.shallow, True)


def _marked(text: str, source: str) -> str:
    """A report that is marked as a draft where nobody takes the mark for a claim."""
    title, _, body = text.partition("\n")
    return f"{title}\n\n{_DRAFT.format(path=source)}\n{body}"


def _anchors(text: str, report: Report, one: Loaded, benchmark: str, model: str) -> dict[str, Any]:
    """Facts of the rollouts that the draft states, each with its predicate."""
    from blade.check import checked
    from blade.check.world import world
    from blade.package.anchors import as_file, drafted
    from blade.package.units import names, units

    known = names(report)
    told = world(report, [one])
    return as_file(drafted(told, units(text, checked(text, told), known)), benchmark, model)


def _threshold(threshold: float | None) -> str:
    return f" --pass-threshold {threshold!r}" if threshold is not None else ""


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False) + "\n"
