"""Check the rollouts of a package: files that parse, real rewards, named tasks, comparable runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from blade.errors import BladeError
from blade.package.layout import Layout
from blade.package.validate.phases import RUNS, Check, either, plural
from blade.package.validate.scan import Scan, scan_file

if TYPE_CHECKING:
    from blade.tables.index import Watcher

MIN_SHARED = 0.5  # of the tasks of the larger run that another must share to be compared with it


def rollout_checks(package: Layout, watcher: Watcher) -> list[Check]:
    """The checks of D2."""
    scans = [scan_file(path) for path in package.rollouts]
    if package.source is None:
        result = "D2 rollouts missing: expected rollouts/*.jsonl or data/*rollout*.jsonl"
        return [Check(False, result, RUNS)]
    checks = [
        Check(bool(scans), f"D2 rollout files found: {len(scans)} JSONL files", RUNS),
        Check(bool(scans), f"D2 rollout source: {package.source}", RUNS),
    ]
    if not scans:
        return checks
    for scan in scans:
        checks += _of_file(scan)
    copies = _copies(scans)
    checks += [Check(False, f"{b.path.name} holds the same rows as {a.path.name}", RUNS) for a, b in copies]
    if not copies:
        checks.append(Check(True, f"{plural(len(scans), 'rollout file')} without a copy among them", RUNS))
    again = {b.path for _, b in copies}
    scored = [scan for scan in scans if scan.is_scored and scan.path not in again]
    checks.append(Check(len(scored) >= 2, f"At least two scored rollout files: {len(scored)}", RUNS))
    checks += _comparable(scored, watcher)
    return checks


def _of_file(scan: Scan) -> Iterator[Check]:
    name = scan.path.name
    if scan.broken:
        yield Check(False, f"{name}: {scan.broken}", RUNS)
        return
    yield Check(scan.records > 0, f"{name}: {scan.records} records", RUNS)
    place = f" (first in line {scan.first_unparsed})" if scan.unparsed else ""
    yield Check(not scan.unparsed, f"{name}: {scan.unparsed} JSON parse errors{place}", RUNS)
    if scan.no_object:
        lines, first = plural(scan.no_object, "line"), scan.first_no_object
        yield Check(False, f"{name}: {lines} of JSON that is no object (first in line {first})", RUNS)
    yield Check(scan.has_reward, f"{name}: reward or score field present", RUNS)
    yield from _rewards(scan)
    yield Check(scan.task_field is not None, f"{name}: task id field present", RUNS)
    if scan.task_field is not None:
        bad = f"{scan.unnamed:,} of {scan.records:,} rows have a null or empty task id"
        bad = f"{name}: {bad} (first in line {scan.first_unnamed})"
        yield either(not scan.unnamed, f"{name}: every row names its task", bad, RUNS)
    result = "rollout/repeat id present or one row per task"
    yield Check(scan.has_repeats_told_apart, f"{name}: {result}", RUNS)


def _rewards(scan: Scan) -> Iterator[Check]:
    """Whether the rewards are numbers; rows without any are told and allowed as long as others have one."""
    if not scan.has_reward:
        return
    if scan.odd_rewards:
        result = f"{scan.odd_rewards:,} of {scan.records:,} rewards are no number, such as {scan.odd_reward}"
        yield Check(False, f"{scan.path.name}: {result} in line {scan.first_odd_reward}", RUNS)
    elif not scan.rewards:
        yield Check(False, f"{scan.path.name}: no row has a reward that is a number", RUNS)
    else:
        without = f", {scan.no_reward:,} without one" if scan.no_reward else ""
        yield Check(True, f"{scan.path.name}: {plural(scan.rewards, 'numeric reward')}{without}", RUNS)


def _copies(scans: Sequence[Scan]) -> list[tuple[Scan, Scan]]:
    """Each file that repeats the rows of an earlier one, in whatever order."""
    first: dict[str, Scan] = {}
    checks = []
    for scan in scans:
        if scan.content and scan.content in first:
            checks.append((first[scan.content], scan))
        first.setdefault(scan.content, scan)
    return checks


def _comparable(scored: Sequence[Scan], watcher: Watcher) -> Iterable[Check]:
    """Every further run against the first: do they tell of the same tasks."""
    for scan in scored[1:]:
        common, of, why = _shared(scored[0], scan, watcher)
        names = f"{scored[0].path.name} and {scan.path.name}"
        passed = of > 0 and common >= MIN_SHARED * of
        result = f"share {common:,} of {plural(of, 'task')}"
        yield Check(passed, f"{names} {'are comparable: they' if passed else 'only'} {result}{why}", RUNS)


def _shared(first: Scan, second: Scan, watcher: Watcher) -> tuple[int, int, str]:
    """The tasks that two files share and those of the larger: by key and content, or by id if that fails."""
    from blade import pipeline
    from blade.compare.alignment import align
    from blade.pipeline.pages import scoring_of
    from blade.pipeline.sides import column_sides

    try:
        loaded = [pipeline.load([str(scan.path)], watcher)[0] for scan in (first, second)]
        sides = column_sides(loaded, [scoring_of(run, None) for run in loaded])
    except BladeError:
        common = len(first.tasks.keys() & second.tasks.keys())
        return common, max(len(first.tasks), len(second.tasks)), ""
    pairs = align(*sides)
    why = f"; {len(pairs.modified):,} have the same key and another content" if pairs.modified else ""
    return len(pairs.common), max(len(run.run.rollouts.task_keys) for run in loaded), why
