"""Check the golden reports of a package: substance, evidence, metrics, anchors, shallow baselines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from blade.package import files, metrics, proof
from blade.package.anchored import anchor_checks
from blade.package.cited import cited
from blade.package.drafts import MARK
from blade.package.layout import Golden, Layout, rollouts_of
from blade.package.phases import EVIDENCE, METRICS, SHALLOW, Check, plural, words

if TYPE_CHECKING:
    from blade.check.world import World
    from blade.store.index import Watcher

MIN_LINES = 40
MIN_WORDS = 100  # distinct ones
MIN_CITED = 3  # tasks that a report must name, if there are as many


def golden_checks(package: Layout, min_facts: int, watcher: Watcher) -> list[Check]:
    """The checks of D3."""
    if not package.has_reports:
        return [Check(False, "D3 golden reports missing: expected golden_reports/", EVIDENCE)]
    n = len(package.goldens)
    found = [Check(n > 0, f"D3 golden reports found: {n}", EVIDENCE)]
    for one in package.goldens:
        told, broken = _parsed(one.metrics)
        text, world, checks = _of_report(one, package, told, watcher)
        found += checks
        found += _of_metrics(one, told, broken)
        if world is not None and isinstance(told, dict) and not one.is_comparison:
            expected = metrics.expected(metrics.facts_of(world.report))
            found += metrics.match_checks(one.metrics.name, told, expected)
            found += metrics.in_report(one.metrics.name, told, text)
        found += anchor_checks(one, min_facts, world)
        found += _of_shallow(one)
    return found


def _of_report(
    one: Golden, package: Layout, sidecar: Any, watcher: Watcher
) -> tuple[str, World | None, list[Check]]:
    """The text of a report, what it was held against, and what that showed."""
    name = one.report.name
    try:
        text = files.text(one.report)
    except files.Broken as broken:
        return "", None, [Check(False, f"{name}: {broken}", EVIDENCE)]
    found = list(_substance(name, text))
    world = None
    try:
        world = proof.world_of(text, _rollouts(one, package, sidecar), watcher)
    except proof.NotProved as error:
        found.append(Check(False, f"{name}: {error}", EVIDENCE))
    found += proof.proof_checks(name, text, world)
    if world is not None:
        found += _evidence(name, text, world)
    return text, world, found


def _substance(name: str, text: str) -> Iterator[Check]:
    is_long = len(text.splitlines()) >= MIN_LINES and "##" in text
    yield Check(is_long, f"{name}: report has substantial markdown structure", EVIDENCE)
    known = len(words(text))
    says = "says something" if known >= MIN_WORDS else "says hardly anything"
    yield Check(known >= MIN_WORDS, f"{name}: {says}: {known} distinct words", EVIDENCE)
    if MARK in text:
        yield Check(True, f"{name}: still marked as a draft; a person has yet to review it")


def _rollouts(one: Golden, package: Layout, sidecar: Any) -> Sequence[Path]:
    """The files that a report is about."""
    if one.is_comparison:
        names = re.split(r"[-_]vs[-_]", one.prefix, flags=re.IGNORECASE)
        sides = [rollouts_of(_as_if(one, name), package.rollouts) for name in names]
        return [path for path in sides if path is not None] if None not in sides else package.rollouts
    told = sidecar if isinstance(sidecar, dict) else {}
    models = [told[key] for key in ("model_name", "model") if isinstance(told.get(key), str)]
    path = rollouts_of(one, package.rollouts, models)
    if path is None:
        raise proof.NotProved(f"no rollouts of it: expected rollouts/{one.prefix}_rollouts.jsonl")
    return [path]


def _as_if(one: Golden, prefix: str) -> Golden:
    """One side of a comparison report."""
    return Golden(one.report, prefix, one.metrics, one.anchors, one.shallow, True)


def _evidence(name: str, text: str, world: World) -> Iterator[Check]:
    """Whether a report names tasks, not only aggregates."""
    keys = {key for run in world.rows.runs for key in world.rows.keys(run)}
    called = {key: key for key in keys}
    for task in world.report.tasks:
        called.setdefault(task.task_name, task.task)
    n = len({called[name] for name in cited(text, called)})
    passed = n >= min(MIN_CITED, len(keys))
    told = f"cites task-level evidence: {plural(n, 'task')} of {len(keys):,} named"
    wrong = f"only aggregates: names {plural(n, 'task')} of {len(keys):,}"
    yield Check(passed, f"{name}: {told if passed else wrong}", EVIDENCE)


def _of_metrics(one: Golden, told: Any, broken: str) -> Iterator[Check]:
    if one.metrics.is_file():
        if broken:
            yield Check(False, f"{one.metrics.name}: metrics JSON failed to parse ({broken})", METRICS)
        else:
            yield from metrics.identity_checks(one.metrics.name, told)
    elif one.is_comparison:
        yield Check(True, f"{one.report.name}: comparison report metrics sidecar missing; optional")
    else:
        yield Check(False, f"{one.report.name}: missing metrics sidecar {one.metrics.name}", METRICS)


def _of_shallow(one: Golden) -> Iterator[Check]:
    name = one.report.name
    if not one.shallow.is_file():
        told = f"{name}: optional shallow baseline missing; recommended for calibration"
        yield Check(True, told)
        return
    counts_for = "" if one.is_comparison else SHALLOW
    yield Check(True, f"{name}: optional shallow baseline exists", counts_for)
    try:
        empty = not re.search(r"(?m)^\|.*\d", files.text(one.shallow))
    except files.Broken as broken:
        yield Check(False, f"{one.shallow.name}: {broken}", counts_for)
        return
    if empty:
        told = "holds no table with a number, so it controls nothing; make it anew with make-shallow"
        yield Check(False, f"{one.shallow.name}: {told}", counts_for)


def _parsed(path: Path) -> tuple[Any, str]:
    """The value of a JSON file, or why there is none."""
    if not path.is_file():
        return None, "missing"
    try:
        return files.data(path), ""
    except files.Broken as broken:
        return None, str(broken)
