"""Check the golden reports of a package: substance, evidence, metrics, anchors, shallow baselines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from blade.package import files, metrics
from blade.package.drafts import MARK
from blade.package.layout import Golden, Layout, rollouts_of
from blade.package.validate import proof
from blade.package.validate.anchored import anchor_checks
from blade.package.validate.cited import cited
from blade.package.validate.phases import DRAFT, EVIDENCE, METRICS, SHALLOW, Check, plural, words

if TYPE_CHECKING:
    from blade.check.world import World
    from blade.model import Assertion
    from blade.store.index import Watcher

MIN_LINES = 40
MIN_WORDS = 100  # distinct ones
MIN_CITED = 3  # tasks that a report must name, if there are as many
MIN_TOLD = 3  # claims about tasks that the rollouts must bear out


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
        found += anchor_checks(one, min_facts, world, text)
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
    from blade.check import checked

    told = checked(text, world)
    found += proof.proof_checks(name, told, world)
    if world is not None:
        found += _evidence(name, text, told, world)
    return text, world, found


def _substance(name: str, text: str) -> Iterator[Check]:
    is_long = len(text.splitlines()) >= MIN_LINES and "##" in text
    yield Check(is_long, f"{name}: report has substantial markdown structure", EVIDENCE)
    known = len(words(text))
    says = "says something" if known >= MIN_WORDS else "says hardly anything"
    yield Check(known >= MIN_WORDS, f"{name}: {says}: {known} distinct words", EVIDENCE)
    if MARK in text:
        how = f"read it against the rollouts, then delete its line that begins with {MARK}"
        yield Check(False, f"{name}: draft: not reviewed; {how}", DRAFT)


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


def _evidence(name: str, text: str, told: Sequence[Assertion], world: World) -> Iterator[Check]:
    """Whether a report names tasks, not only aggregates, and says of them what the rollouts bear out."""
    keys = {key for run in world.rows.runs for key in world.rows.keys(run)}
    called = {key: key for key in keys}
    for task in world.report.tasks:
        called.setdefault(task.task_name, task.task)
    n = len({called[name] for name in cited(text, called)})
    passed = n >= min(MIN_CITED, len(keys))
    right = f"cites task-level evidence: {plural(n, 'task')} of {len(keys):,} named"
    wrong = f"only aggregates: names {plural(n, 'task')} of {len(keys):,}"
    yield Check(passed, f"{name}: {right if passed else wrong}", EVIDENCE)
    if passed:
        said = _said_of_tasks(text, told, world)
        few = (
            ""
            if said >= MIN_TOLD
            else f", at least {MIN_TOLD} are needed: an outcome, cause, step or quotation"
        )
        claims = f"{plural(said, 'statement')} about single tasks supported by the rollouts{few}"
        yield Check(not few, f"{name}: {claims}", EVIDENCE)


def _said_of_tasks(text: str, told: Sequence[Assertion], world: World) -> int:
    """Sentences, rows and quotations that say more of a task than its name, and that the rows bear out."""
    from blade.model import SUPPORTED
    from blade.package.judge.units import names, units

    return sum(
        unit.verdict == SUPPORTED
        and bool(unit.tasks)
        and (unit.kind == "quote" or any(one.kind != "id" for one in unit.assertions))
        for unit in units(text, told, names(world.report))
    )


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
