"""Check the rollouts of a package: files that parse, real rewards, named tasks, comparable runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from blade.package.layout import Layout
from blade.package.validate.phases import RUNS, Check, plural
from blade.package.validate.scan import Scan

MIN_SHARED = 0.5  # of the tasks of the larger run that another must share to be compared with it

# The tasks that two files share, those of either, and a word on what is wrong with the rest.
Shared = Callable[[Scan, Scan], tuple[int, int, str]]


def rollout_checks(package: Layout, scans: Sequence[Scan], shared: Shared | None = None) -> list[Check]:
    """The checks of D2 over files that were scanned."""
    if package.source is None:
        told = "D2 rollouts missing: expected rollouts/*.jsonl or data/*rollout*.jsonl"
        return [Check(False, told, RUNS)]
    found = [
        Check(bool(scans), f"D2 rollout files found: {len(scans)} JSONL files", RUNS),
        Check(bool(scans), f"D2 rollout source: {package.source}", RUNS),
    ]
    if not scans:
        return found
    for one in scans:
        found += _of_file(one)
    copies = _copies(scans)
    found += [Check(False, f"{b.path.name} holds the same rows as {a.path.name}", RUNS) for a, b in copies]
    if not copies:
        found.append(Check(True, f"{plural(len(scans), 'rollout file')} without a copy among them", RUNS))
    again = {b.path for _, b in copies}
    scored = [one for one in scans if one.is_scored and one.path not in again]
    found.append(Check(len(scored) >= 2, f"At least two scored rollout files: {len(scored)}", RUNS))
    found += _comparable(scored, shared or by_name)
    return found


def _of_file(one: Scan) -> Iterator[Check]:
    name = one.path.name
    if one.broken:
        yield Check(False, f"{name}: {one.broken}", RUNS)
        return
    yield Check(one.records > 0, f"{name}: {one.records} records", RUNS)
    at = f" (first in line {one.first_unparsed})" if one.unparsed else ""
    yield Check(not one.unparsed, f"{name}: {one.unparsed} JSON parse errors{at}", RUNS)
    if one.no_object:
        told = (
            f"{plural(one.no_object, 'line')} of JSON that is no object (first in line {one.first_no_object})"
        )
        yield Check(False, f"{name}: {told}", RUNS)
    yield Check(one.has_reward, f"{name}: reward or score field present", RUNS)
    yield from _rewards(one)
    yield Check(one.task_field is not None, f"{name}: task id field present", RUNS)
    if one.task_field is not None:
        told = "every row names its task"
        if one.unnamed:
            told = (
                f"{one.unnamed:,} of {one.records:,} rows have a null or empty task id "
                f"(first in line {one.first_unnamed})"
            )
        yield Check(not one.unnamed, f"{name}: {told}", RUNS)
    told = "rollout/repeat id present or one row per task"
    yield Check(one.has_repeats_told_apart, f"{name}: {told}", RUNS)


def _rewards(one: Scan) -> Iterator[Check]:
    """Whether the rewards are numbers; rows without any are told and allowed as long as others have one."""
    if not one.has_reward:
        return
    if one.odd_rewards:
        told = (
            f"{one.odd_rewards:,} of {one.records:,} rewards are no number, such as {one.odd_reward} "
            f"in line {one.first_odd_reward}"
        )
        yield Check(False, f"{one.path.name}: {told}", RUNS)
    elif not one.rewards:
        yield Check(False, f"{one.path.name}: no row has a reward that is a number", RUNS)
    else:
        without = f", {one.no_reward:,} without one" if one.no_reward else ""
        yield Check(True, f"{one.path.name}: {plural(one.rewards, 'numeric reward')}{without}", RUNS)


def _copies(scans: Sequence[Scan]) -> list[tuple[Scan, Scan]]:
    """Each file that repeats the rows of an earlier one, in whatever order."""
    first: dict[str, Scan] = {}
    found = []
    for one in scans:
        if one.content and one.content in first:
            found.append((first[one.content], one))
        first.setdefault(one.content, one)
    return found


def _comparable(scored: Sequence[Scan], shared: Shared) -> Iterable[Check]:
    """Every further run against the first: do they tell of the same tasks."""
    for one in scored[1:]:
        common, of, why = shared(scored[0], one)
        names = f"{scored[0].path.name} and {one.path.name}"
        passed = of > 0 and common >= MIN_SHARED * of
        told = f"share {common:,} of {plural(of, 'task')}"
        yield Check(passed, f"{names} {'are comparable: they' if passed else 'only'} {told}{why}", RUNS)


def by_name(a: Scan, b: Scan) -> tuple[int, int, str]:
    """What two files share by the ids of their tasks alone."""
    common = len(a.tasks.keys() & b.tasks.keys())
    return common, max(len(a.tasks), len(b.tasks)), ""
