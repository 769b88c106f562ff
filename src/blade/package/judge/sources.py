"""Find what a report is judged by: golden report, anchors, baseline, and the rollouts of its model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from blade.errors import Unreadable
from blade.package import MIN_ANCHORS, files
from blade.package.judge.anchors import Anchor, of_file
from blade.package.judge.anchors import drafted as anchors_of
from blade.package.judge.score import Bench, bench, claims
from blade.package.judge.units import names
from blade.package.layout import Golden, Layout, golden, layout, prefix_of, rollouts_of
from blade.package.validate.proof import NotProved, world_of
from blade.skills.names import slug

if TYPE_CHECKING:
    from blade.check.world import World
    from blade.store.index import Watcher


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
    rollouts: tuple[Path, ...]  # of the model, or models, that the golden report is about
    beside: tuple[Path, ...]  # the other rollouts of the package
    ours: tuple[str, ...]  # what the model and its run are called
    others: tuple[str, ...]  # what the other models of the package are called


def case(
    report: Path,
    anchors: Path | None,
    shallow: Path | None = None,
    rollouts: Sequence[Path] = (),
    model: str = "",
) -> Case:
    """Gather what a golden report is judged with; rollouts that are given go before those of the package."""
    told = golden(report)
    folder = report.parent.parent if report.parent.name == "golden_reports" else report.parent
    data = _data(anchors) if anchors is not None else {}
    there = layout(folder).rollouts
    sidecar = _sidecar(told.metrics)
    models = [name for name in (model, *_models(sidecar), *_models(data)) if name]
    mine = tuple(rollouts) or _mine(told, _unclaimed(told, layout(folder)), models)
    if not mine:
        raise CannotJudge(
            f"no rollouts of {models[0] if models else told.prefix} were found, so no claim can be checked",
            f"put {told.prefix}_rollouts.jsonl into {folder}/rollouts, or name a file with --rollouts",
        )
    beside = tuple(path for path in there if path.resolve() not in {one.resolve() for one in mine})
    if shallow is None:
        shallow = told.shallow if told.shallow.is_file() else None
    ours = dict.fromkeys((*models, told.prefix, *map(prefix_of, mine)))
    others = dict.fromkeys(name for path in beside for name in _names(path, folder))
    return Case(
        report_text(report), tuple(of_file(data)),
        report_text(shallow) if shallow is not None else "", mine, beside,
        tuple(ours), tuple(name for name in others if name not in ours),
    )  # fmt: skip


def seated(case: Case, watcher: Watcher, least: int = MIN_ANCHORS) -> Bench:
    """The bench of a case: its rollouts read, its anchors made ready; or why it cannot judge."""
    world = world_for(case, case.rollouts, watcher)
    made = bench(
        world, case.golden, case.anchors, case.shallow, (*case.ours, *_run_names(world)), case.others
    )
    telling = [one for one in made.usable if one.weighs]
    if len(telling) < least:
        rest = [one for one in made.anchors if one not in telling]
        reasons = dict.fromkeys(one.problem or "a table of totals has it" for one in rest)
        why = f"; {len(rest)} cannot: {'; '.join(reasons)}" if rest else ""
        raise CannotJudge(
            f"{len(telling)} anchor facts can be used, {least} are needed{why}",
            "let each fact name a task and its cause, step or a quotation, as extract-anchor-facts does",
        )
    return made


def world_for(case: Case, rollouts: Sequence[Path], watcher: Watcher) -> World:
    """What rollouts say, read as the golden report says that it was made."""
    try:
        return world_of(case.golden, rollouts, watcher)
    except NotProved as error:
        raise CannotJudge(
            f"the rollouts cannot be read: {error}", "see `blade diagnose` on the same file"
        ) from error


def _run_names(world: World) -> list[str]:
    return [name for run in world.report.runs for name in (run.name, run.model) if name]


def _unclaimed(told: Golden, package: Layout) -> list[Path]:
    """The rollouts of a package without those that go by the name of another golden report."""
    others = {slug(one.prefix) for one in package.goldens if not one.is_comparison} - {slug(told.prefix)}
    return [path for path in package.rollouts if told.is_comparison or slug(prefix_of(path)) not in others]


def _mine(told: Golden, there: Sequence[Path], models: Sequence[str]) -> tuple[Path, ...]:
    if not told.is_comparison:
        path = rollouts_of(told, there, models)
        return () if path is None else (path,)
    names = re.split(r"[-_]vs[-_]", told.prefix, flags=re.IGNORECASE)
    sides = [rollouts_of(_side(told, name), there) for name in names]
    found = tuple(path for path in sides if path is not None)
    return found if len(found) == len(names) else tuple(there)


def _side(told: Golden, prefix: str) -> Golden:
    """One side of a comparison report."""
    return Golden(told.report, prefix, told.metrics, told.anchors, told.shallow, True)


def _names(path: Path, folder: Path) -> list[str]:
    """What the model of a rollouts file is called: by the file, and by the sidecar of its golden report."""
    prefix = prefix_of(path)
    reports = [one for one in layout(folder).goldens if rollouts_of(one, (path,)) and one.prefix == prefix]
    return [*(name for one in reports for name in _models(_sidecar(one.metrics))), prefix]


def _models(data: Any) -> list[str]:
    told = data if isinstance(data, dict) else {}
    return [told[key] for key in ("model_name", "model") if isinstance(told.get(key), str) and told[key]]


def _sidecar(path: Path) -> Any:
    try:
        return files.data(path) if path.is_file() else {}
    except files.Broken:
        return {}


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


def drafted(report: Path, rollouts: Sequence[Path], model: str, most: int, watcher: Watcher) -> list[Anchor]:
    """Anchors that a golden report states and its rollouts bear out."""
    found = case(report, None, None, rollouts, model)
    world = world_for(found, found.rollouts, watcher)
    known = names(world.report, (*found.ours, *_run_names(world)), found.others)
    return anchors_of(world, claims(found.golden, world, known), most)
