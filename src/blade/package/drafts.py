"""Turn the rollouts of a package into drafts of its golden reports, each with its sidecars."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from blade.package import files
from blade.package.kept import sealed
from blade.package.layout import Golden, Layout, prefix_of, rollouts_of
from blade.package.metrics import facts_of, sidecar
from blade.package.portable import portable
from blade.package.shallow import shallow
from blade.report.json_v1 import escaped

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
    path = Path(one.sources[0].path)
    report, page = _page(folder, [one], threshold, watcher)
    text = _marked(page, f"rollouts/{path.name}")
    model = report.runs[0].model or one.name
    base = folder / "golden_reports" / f"{one.name}_golden_report.md"
    told = {
        base: text,
        base.with_name(f"{base.stem}_metrics.json"): _json(sidecar(facts_of(report), model, benchmark)),
        base.with_name(f"{one.name}_anchor_facts.json"): _json(_anchors(text, report, one, benchmark, model)),
        base.with_name(f"{one.name}_shallow.md"): sealed(shallow(text, base.stem)),
    }
    for place, content in told.items():
        files.write(place, content)
    return report, list(told)


def compared(folder: Path, pair: Sequence[Loaded], threshold: float | None, watcher: Watcher) -> Path:
    """The draft of a report on two runs; it has no sidecars of its own."""
    _, text = _page(folder, pair, threshold, watcher)
    path = folder / "golden_reports" / f"{'_vs_'.join(one.name for one in pair)}_golden_report.md"
    files.write(path, _marked(text, "rollouts/"))
    return path


def _page(
    folder: Path, runs: Sequence[Loaded], threshold: float | None, watcher: Watcher
) -> tuple[Report, str]:
    """What the rollouts say today, of one run or of two: the report, and its page."""
    from blade import pipeline
    from blade.pipeline import comparing
    from blade.report import markdown
    from blade.report.change import pages

    names = " ".join(one.sources[0].path for one in runs)
    if len(runs) == 1:
        report = pipeline.diagnose(runs, f"blade diagnose {names}{_threshold(threshold)}", threshold, watcher)
        report = portable(pipeline.with_digests(report), folder)
        return report, markdown.render(report)
    command = f"blade compare {names}{_threshold(threshold)}"
    report = comparing.compare(runs, command, threshold=threshold, watcher=watcher)
    report = portable(pipeline.with_digests(report), folder)
    return report, markdown.page(pages.title(report), pages.chapters(report))


def page_of(package: Layout, one: Golden, watcher: Watcher) -> str | None:
    """The page that the rollouts behind a report give today; None if they are not all there."""
    try:
        runs, threshold = _behind(package, one, files.text(one.report), watcher)
    except files.Broken:
        return None
    return _page(package.folder, runs, threshold, watcher)[1] if runs else None


def _behind(package: Layout, one: Golden, text: str, watcher: Watcher) -> tuple[list[Loaded], float | None]:
    """The runs that a report is on, none if one is missing, and the threshold that it was made with."""
    from blade import pipeline
    from blade.check.made import made, options

    given = options(made(text).command).get("--pass-threshold")
    sides = [one.prefix] if not one.is_comparison else one.prefix.split("_vs_")
    paths = [rollouts_of(_side(one, name), package.rollouts) for name in sides]
    if None in paths:
        return [], None
    loaded = [pipeline.load([f"{prefix_of(path)}={path}"], watcher)[0] for path in paths if path is not None]
    return loaded, float(given) if given else None


def redraft(package: Layout, one: Golden, watcher: Watcher) -> bool:
    """Write a report anew if it is still a draft of ours; whether it was."""
    try:
        text = files.text(one.report)
        told = files.data(one.metrics) if one.metrics.is_file() else {}
    except files.Broken:
        return False
    if MARK not in text:
        return False
    loaded, threshold = _behind(package, one, text, watcher)
    if not loaded:
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
    from blade.package.judge.anchors import as_file, drafted
    from blade.package.judge.units import names, units

    known = names(report)
    told = world(report, [one])
    return as_file(drafted(told, units(text, checked(text, told), known)), benchmark, model)


def _threshold(threshold: float | None) -> str:
    return f" --pass-threshold {threshold!r}" if threshold is not None else ""


def _json(value: Any) -> str:
    return escaped(json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False)) + "\n"
