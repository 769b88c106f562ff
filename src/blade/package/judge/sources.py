"""Find what a report is judged by: golden report, anchors, shallow baseline, and the rollouts of its run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from blade.agent.skills.names import slug
from blade.errors import BladeError, Unreadable
from blade.package import MIN_ANCHORS, files
from blade.package.drafts import threshold_in
from blade.package.judge.anchors import Anchor, of_file
from blade.package.judge.score import Bench, bench
from blade.package.layout import Golden, Layout, golden, layout, prefix_of, rollouts_of, sides_of
from blade.package.worlds import Worlds, worlds_of

if TYPE_CHECKING:
    from blade.tables.index import Watcher


class CannotJudge(Exception):
    """Why nothing can be said about a report, and what would help."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class Case(msgspec.Struct, frozen=True):
    """The files that belong to a golden report, and what they hold."""

    golden: str
    anchors: tuple[Anchor, ...]
    shallow: str
    rollouts: tuple[Path, ...]  # of the model, or models, that the golden report is about; none: not there
    beside: tuple[Path, ...]  # the other rollouts of the package
    ours: tuple[str, ...]  # what the model and its run are called
    others: tuple[str, ...]  # what the other models of the package are called
    other_goldens: tuple[str, ...] = ()  # the golden reports of single other models


def case(
    report: Path,
    anchors: Path | None,
    shallow: Path | None = None,
    rollouts: Sequence[Path] = (),
    model: str = "",
) -> Case:
    """Gather what a golden report is judged with; rollouts that are given go before those of the package."""
    parts = golden(report)
    place = report.resolve().parent
    folder = place.parent if place.name == "golden_reports" else place
    package = layout(folder)
    data = _data(anchors) if anchors is not None else {}
    models = [model, *models_in(files.data_or_nothing(parts.metrics)), *models_in(data)]
    models = [name for name in models if name]
    own = tuple(rollouts) or _own(parts, _unclaimed(parts, package), models)
    here = {path.resolve() for path in own}
    beside = tuple(path for path in package.rollouts if path.resolve() not in here) if own else ()
    if shallow is None and parts.shallow.is_file():
        shallow = parts.shallow
    ours = dict.fromkeys((*models, parts.prefix, *map(prefix_of, own)))
    others = dict.fromkeys(name for path in beside for name in _names(path, package))
    return Case(
        report_text(report), tuple(of_file(data)), report_text(shallow) if shallow is not None else "",
        own, beside, tuple(ours), tuple(name for name in others if name not in ours),
        _goldens(parts, package),
    )  # fmt: skip


def _goldens(parts: Golden, package: Layout) -> tuple[str, ...]:
    """The golden reports of the other models, as far as they can be read."""
    others = (each.report for each in package.goldens if not each.is_comparison)
    texts = (files.text_or_nothing(path) for path in others if path.resolve() != parts.report.resolve())
    return tuple(filter(None, texts))


def worlds_for(case: Case, watcher: Watcher, rollouts: Sequence[Path] = ()) -> Worlds | None:
    """The runs of a case; None where there are no rollouts, so that words are all there is."""
    own = tuple(rollouts) or case.rollouts
    if not own:
        return None
    try:
        return worlds_of(own, case.beside, watcher, threshold_in(case.golden))
    except BladeError as error:
        raise CannotJudge(f"the rollouts cannot be read: {error.message}", error.hint) from error


def bench_for(case: Case, watcher: Watcher, least: int = MIN_ANCHORS, rollouts: Sequence[Path] = ()) -> Bench:
    """What reports on a case are judged by, or why it cannot judge."""
    worlds = worlds_for(case, watcher, rollouts)
    made = bench(worlds, case.golden, case.anchors, case.shallow, case.ours, case.others)
    if len(made.telling) < least:
        rest = [anchor for anchor in made.anchors if anchor not in made.telling]
        reasons = dict.fromkeys(anchor.problem or "the shallow report has it too" for anchor in rest)
        why = f"; {len(rest)} cannot: {'; '.join(reasons)}" if rest else ""
        raise CannotJudge(
            f"{len(made.telling)} anchor facts can be used, {least} are needed{why}",
            "give each fact a query, its value and the tasks it is about, as extract-anchor-facts does",
        )
    return made


def _unclaimed(parts: Golden, package: Layout) -> list[Path]:
    """The rollouts of a package without those that go by the name of another golden report."""
    others = {slug(each.prefix) for each in package.goldens if not each.is_comparison} - {slug(parts.prefix)}
    return [path for path in package.rollouts if parts.is_comparison or slug(prefix_of(path)) not in others]


def _own(parts: Golden, paths: Sequence[Path], models: Sequence[str]) -> tuple[Path, ...]:
    if parts.is_comparison:
        return sides_of(parts, paths) or tuple(paths)
    path = rollouts_of(parts, paths, models)
    return () if path is None else (path,)


def _names(path: Path, package: Layout) -> list[str]:
    """What the model of a rollouts file is called: by the file, and by the sidecar of its golden report."""
    prefix = prefix_of(path)
    reports = [each for each in package.goldens if each.prefix == prefix]
    return [*(name for each in reports for name in models_in(files.data_or_nothing(each.metrics))), prefix]


def models_in(data: Any) -> list[str]:
    """The names of the model in a sidecar or a file of anchors."""
    given = data if isinstance(data, dict) else {}
    return [given[key] for key in ("model_name", "model") if isinstance(given.get(key), str) and given[key]]


def _data(path: Path) -> Any:
    try:
        return files.data(path)
    except files.Broken as error:
        message = f"{path} is no JSON that can be read: {error}"
        raise Unreadable(message, "anchor facts are a JSON object or list", "unreadable-file") from error


def report_text(path: Path) -> str:
    """The text of a report; an error that says so where it cannot be read."""
    try:
        return files.text(path)
    except files.Broken as error:
        raise Unreadable(
            f"{path} {error}", "a report is a Markdown file in UTF-8", "unreadable-file"
        ) from error
