"""Check the golden reports of a package: substance, truth, evidence, metrics, anchors, shallow baselines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from blade.errors import BladeError, NothingToRead
from blade.package import files, metrics
from blade.package.drafts import threshold_in, why_draft
from blade.package.judge.sources import models_in
from blade.package.layout import Golden, Layout, rollouts_of, sides_of
from blade.package.validate.anchor_facts import anchor_checks
from blade.package.validate.phases import DRAFT, EVIDENCE, METRICS, SHALLOW, Check, either, plural, words
from blade.package.worlds import Worlds, worlds_of

if TYPE_CHECKING:
    from blade.model.checked import Finding
    from blade.tables.index import Watcher

MIN_LINES = 40
MIN_WORDS = 100  # distinct ones
MIN_CITED = 3  # tasks that a report must name, if there are as many
MIN_SHOWN = 3  # quotations and citations about single tasks that must hold
SHOWN = 8  # contradictions listed one by one


def golden_checks(package: Layout, min_facts: int, watcher: Watcher) -> list[Check]:
    """The checks of D3."""
    if not package.has_reports:
        return [Check(False, "D3 golden reports missing: expected golden_reports/", EVIDENCE)]
    n = len(package.goldens)
    checks = [Check(n > 0, f"D3 golden reports found: {n}", EVIDENCE)]
    for parts in package.goldens:
        checks += _of_golden(parts, package, min_facts, watcher)
    return checks


def _of_golden(parts: Golden, package: Layout, min_facts: int, watcher: Watcher) -> Iterator[Check]:
    sidecar, broken = _parsed(parts.metrics)
    name = parts.report.name
    text, worlds = "", None
    try:
        text = files.text(parts.report)
        yield from _substance(name, text)
        own = _rollouts(parts, package, sidecar)
        beside = [path for path in package.rollouts if path not in own]
        worlds = worlds_of(own, beside, watcher, threshold_in(text))
        draft = why_draft(text, package, parts, watcher)
        if draft:
            yield Check(False, f"{name}: draft: not reviewed; {draft}", DRAFT)
    except files.Broken as error:
        yield Check(False, f"{name}: {error}", EVIDENCE)
    except BladeError as error:
        yield Check(False, f"{name}: {error.message}", EVIDENCE)
    if text:
        yield from _proof(name, text, worlds)
    yield from _of_metrics(parts, sidecar, broken)
    if worlds is not None and isinstance(sidecar, dict) and not parts.is_comparison:
        yield from metrics.match_checks(parts.metrics.name, sidecar, metrics.expected(worlds, sidecar))
        yield from metrics.in_report(parts.metrics.name, sidecar, text)
    yield from anchor_checks(parts, min_facts, worlds, text)
    yield from _of_shallow(parts)


def _substance(name: str, text: str) -> Iterator[Check]:
    is_long = len(text.splitlines()) >= MIN_LINES and "##" in text
    yield Check(is_long, f"{name}: report has substantial markdown structure", EVIDENCE)
    known = len(words(text))
    says = "says something" if known >= MIN_WORDS else "says hardly anything"
    yield Check(known >= MIN_WORDS, f"{name}: {says}: {known} distinct words", EVIDENCE)


def _rollouts(parts: Golden, package: Layout, sidecar: Any) -> Sequence[Path]:
    """The files that a report is about."""
    if parts.is_comparison:
        return sides_of(parts, package.rollouts) or package.rollouts
    path = rollouts_of(parts, package.rollouts, models_in(sidecar))
    if path is None:
        expected = f"rollouts/{parts.prefix}_rollouts.jsonl"
        raise NothingToRead(f"no rollouts of it: expected {expected}", "copy them there", "no-such-path")
    return [path]


# -- truth and evidence -----------------------------------------------------------------------------


def _proof(name: str, text: str, worlds: Worlds | None) -> Iterator[Check]:
    """Whether `blade check` finds nothing wrong, and whether single tasks are shown."""
    from blade.check import checked
    from blade.model.checked import CONTRADICTED, SUPPORTED, UNCITED, UNVERIFIABLE

    findings = worlds.checked(text) if worlds is not None else checked(text, None)
    wrong = [each for each in findings if each.verdict == CONTRADICTED]
    holds = {(each.line, each.query) for each in findings if each.verdict == SUPPORTED}
    unproved = [each for each in findings if each.verdict == UNVERIFIABLE and each.kind == "citation"]
    wrong += [each for each in unproved if (each.line, each.query) not in holds]
    yield from _contradicted(name, wrong)
    right = [each for each in findings if each.verdict == SUPPORTED]
    if worlds is None:
        if not wrong:
            yield Check(True, f"{name}: does not contradict itself", EVIDENCE)
        return
    if not right:
        yield Check(False, f"{name}: holds no claim that its rollouts support", EVIDENCE)
    elif not wrong:
        uncited = plural(sum(each.verdict == UNCITED for each in findings), "number")
        result = f"{plural(len(right), 'claim')} supported, 0 contradicted, {uncited} uncited"
        yield Check(True, f"{name}: passes blade check: {result}", EVIDENCE)
    yield from _evidence(name, text, right, worlds)


def _contradicted(name: str, wrong: Sequence[Finding]) -> Iterator[Check]:
    for each in wrong[:SHOWN]:
        says = f", the rollouts say {each.expected[:80]}" if each.expected else ""
        why = f" ({each.why[:120]})" if each.why else ""
        printed = each.printed[:80] or (each.query or "")[:80]
        yield Check(False, f"{name}: line {each.line}: says {printed}{says}{why}", EVIDENCE)
    if len(wrong) > SHOWN:
        yield Check(False, f"{name}: {len(wrong) - SHOWN} further claims are contradicted", EVIDENCE)


def _evidence(name: str, text: str, right: Sequence[Finding], worlds: Worlds) -> Iterator[Check]:
    """Whether a report names tasks, not only aggregates, and shows what happened in them."""
    from blade.package.judge.score import is_shown
    from blade.package.judge.statements import passages, tasks_of

    known = tasks_of(worlds.home)
    keys = set(known.keys.values())
    n = len({task for passage in passages(text, known) for task in passage.tasks})
    passed = n >= min(MIN_CITED, len(keys))
    of_all = f"{plural(n, 'task')} of {len(keys):,}"
    good, bad = f"cites task-level evidence: {of_all} named", f"only aggregates: names {of_all}"
    yield either(passed, f"{name}: {good}", f"{name}: {bad}", EVIDENCE)
    if passed:
        shown = {each.query or each.printed for each in right if is_shown(each, worlds)}
        few = "" if len(shown) >= MIN_SHOWN else f", at least {MIN_SHOWN} are needed"
        pieces = plural(len(shown), "quotation or citation", "quotations and citations")
        result = f"{name}: {pieces} about single tasks supported by the rollouts{few}"
        yield Check(not few, result, EVIDENCE)


# -- sidecars ---------------------------------------------------------------------------------------


def _of_metrics(parts: Golden, sidecar: Any, broken: str) -> Iterator[Check]:
    if parts.metrics.is_file():
        if broken:
            yield Check(False, f"{parts.metrics.name}: metrics JSON failed to parse ({broken})", METRICS)
        else:
            yield from metrics.identity_checks(parts.metrics.name, sidecar)
    elif parts.is_comparison:
        yield Check(True, f"{parts.report.name}: comparison report metrics sidecar missing; optional")
    else:
        yield Check(False, f"{parts.report.name}: missing metrics sidecar {parts.metrics.name}", METRICS)


def _of_shallow(parts: Golden) -> Iterator[Check]:
    name = parts.report.name
    if not parts.shallow.is_file():
        yield Check(True, f"{name}: optional shallow baseline missing; recommended for calibration")
        return
    counts_for = "" if parts.is_comparison else SHALLOW
    yield Check(True, f"{name}: optional shallow baseline exists", counts_for)
    try:
        empty = not re.search(r"(?m)^\|.*\d", files.text(parts.shallow))
    except files.Broken as broken:
        yield Check(False, f"{parts.shallow.name}: {broken}", counts_for)
        return
    if empty:
        result = "holds no table with a number, so it controls nothing; make it anew with make-shallow"
        yield Check(False, f"{parts.shallow.name}: {result}", counts_for)


def _parsed(path: Path) -> tuple[Any, str]:
    """The value of a JSON file, or why there is none."""
    if not path.is_file():
        return None, "missing"
    try:
        return files.data(path), ""
    except files.Broken as broken:
        return None, str(broken)
