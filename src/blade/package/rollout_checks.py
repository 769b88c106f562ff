"""Check the rollouts of a package: files that parse, real rewards, named tasks, comparable runs."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from blade import pipeline
from blade.compare.alignment import align
from blade.errors import BladeError
from blade.package.layout import Layout, compact, is_finite
from blade.package.validation import RUNS, Check, either, plural
from blade.pipeline.comparison_sides import column_sides
from blade.pipeline.report_pages import scoring_of
from blade.tables.index import Watcher

MIN_SHARED = 0.5  # of the tasks of the larger run that another must share to be compared with it
MAX_LINE = 64 << 20  # bytes; a longer line is no row
# In the order in which they are preferred; the first that a file has is the one it is read by.
TASK_FIELDS = ("_ng_task_index", "_task_index", "task_id", "task_name", "task_index")
REPEAT_FIELDS = ("_ng_rollout_index", "_rollout_index", "rollout_index", "rollout_id")
REWARD_FIELDS = ("reward", "score")
# What a line may turn out to be.
UNPARSED, NO_OBJECT, REWARD, NO_REWARD, ODD_REWARD, UNNAMED = range(6)


def rollout_checks(package: Layout, watcher: Watcher) -> list[Check]:
    """The checks of D2."""
    if package.source is None:
        result = "D2 rollouts missing: expected rollouts/*.jsonl or data/*rollout*.jsonl"
        return [Check(False, result, RUNS)]
    scans = [scan_file(path) for path in package.rollouts]
    checks = [
        Check(bool(scans), f"D2 rollout files found: {len(scans)} JSONL files", RUNS),
        Check(bool(scans), f"D2 rollout source: {package.source}", RUNS),
        *(check for scan in scans for check in _of_file(scan)),
    ]
    if not scans:
        return checks
    first = {scan.content: scan for scan in reversed(scans)}
    copies = [scan for scan in scans if scan.content and first[scan.content] is not scan]
    same = [f"{scan.path.name} holds the same rows as {first[scan.content].path.name}" for scan in copies]
    checks += [Check(False, text, RUNS) for text in same]
    if not copies:
        checks.append(Check(True, f"{plural(len(scans), 'rollout file')} without a copy among them", RUNS))
    scored = [scan for scan in scans if scan.counts[REWARD] and scan not in copies]
    checks.append(Check(len(scored) >= 2, f"At least two scored rollout files: {len(scored)}", RUNS))
    return checks + [_comparable(scored[0], scan, watcher) for scan in scored[1:]]


def _of_file(scan: Scan) -> Iterator[Check]:
    name, n, first = scan.path.name, scan.counts, scan.first
    if scan.broken:
        yield Check(False, f"{name}: {scan.broken}", RUNS)
        return
    yield Check(scan.records > 0, f"{name}: {scan.records} records", RUNS)
    place = f" (first in line {first[UNPARSED]})" if n[UNPARSED] else ""
    yield Check(not n[UNPARSED], f"{name}: {n[UNPARSED]} JSON parse errors{place}", RUNS)
    if n[NO_OBJECT]:
        bad = f"{plural(n[NO_OBJECT], 'line')} of JSON that is no object (first in line {first[NO_OBJECT]})"
        yield Check(False, f"{name}: {bad}", RUNS)
    yield Check(scan.has(REWARD_FIELDS), f"{name}: reward or score field present", RUNS)
    if scan.has(REWARD_FIELDS):
        yield _rewards(scan)
    yield Check(scan.has(TASK_FIELDS), f"{name}: task id field present", RUNS)
    if scan.has(TASK_FIELDS):
        bad = f"{n[UNNAMED]:,} of {scan.records:,} rows have a null or empty task id (first in line {first.get(UNNAMED)})"
        yield either(not n[UNNAMED], f"{name}: every row names its task", f"{name}: {bad}", RUNS)
    unnamed = n[UNNAMED] if scan.has(TASK_FIELDS) else 0
    is_told_apart = scan.records > 0 and max((*scan.tasks.values(), unnamed)) <= 1
    result = "rollout/repeat id present or one row per task"
    yield Check(scan.has(REPEAT_FIELDS) or is_told_apart, f"{name}: {result}", RUNS)


def _rewards(scan: Scan) -> Check:
    """Whether the rewards are numbers; rows without any are told and allowed as long as others have one."""
    name, n = scan.path.name, scan.counts
    if n[ODD_REWARD]:
        odd = f"{n[ODD_REWARD]:,} of {scan.records:,} rewards are no number, such as {scan.odd_reward}"
        return Check(False, f"{name}: {odd} in line {scan.first[ODD_REWARD]}", RUNS)
    if not n[REWARD]:
        return Check(False, f"{name}: no row has a reward that is a number", RUNS)
    without = f", {n[NO_REWARD]:,} without one" if n[NO_REWARD] else ""
    return Check(True, f"{name}: {plural(n[REWARD], 'numeric reward')}{without}", RUNS)


def _comparable(first: Scan, second: Scan, watcher: Watcher) -> Check:
    """Do two runs tell of the same tasks: by key and content, or by id where they cannot be read."""
    why = ""
    try:
        loaded = [pipeline.load([str(scan.path)], watcher)[0] for scan in (first, second)]
        pairs = align(*column_sides(loaded, [scoring_of(run, None) for run in loaded]))
        n, of = len(pairs.common), max(len(run.run.rollouts.task_keys) for run in loaded)
        why = f"; {len(pairs.modified):,} have the same key and another content" if pairs.modified else ""
    except BladeError:
        n, of = len(first.tasks.keys() & second.tasks.keys()), max(len(first.tasks), len(second.tasks))
    passed = of > 0 and n >= MIN_SHARED * of
    verb = "are comparable: they" if passed else "only"
    names = f"{first.path.name} and {second.path.name}"
    return Check(passed, f"{names} {verb} share {n:,} of {plural(of, 'task')}{why}", RUNS)


# -- the lines of a file ----------------------------------------------------------------------------


@dataclass(eq=False)
class Scan:
    """What the lines of one rollouts file hold."""

    path: Path
    records: int = 0
    counts: Counter[int] = field(default_factory=Counter)  # lines of each kind
    first: dict[int, int] = field(default_factory=dict)  # the first line of each kind
    fields: Counter[str] = field(default_factory=Counter)
    tasks: Counter[str] = field(default_factory=Counter)
    odd_reward: str = ""  # the first that is no number
    content: str = ""  # a hash of the lines, whatever their order
    broken: str = ""  # why the file could not be read at all

    def has(self, names: Sequence[str]) -> bool:
        return any(self.fields[name] for name in names)

    def add(self, kind: int, number: int) -> None:
        self.counts[kind] += 1
        self.first.setdefault(kind, number)


def scan_file(path: Path) -> Scan:
    """Read a rollouts file once; the memory it takes is bounded by its longest line and its tasks."""
    scan, total = Scan(path), 0
    try:
        with path.open("rb") as file:
            for number, line in enumerate(_lines(file), 1):
                body = line.removeprefix(b"\xef\xbb\xbf").strip() if number == 1 else line.strip()
                if body:
                    total = (total + int.from_bytes(hashlib.sha256(body).digest(), "big")) % (1 << 256)
                    _line(scan, body, number)
    except OSError as error:
        scan.broken = f"cannot be read: {error.strerror or error}"
    scan.content = f"{total:064x}" if scan.records or scan.counts else ""
    return scan


def _lines(file: BinaryIO) -> Iterator[bytes]:
    while line := file.readline(MAX_LINE + 2):
        rest = line
        while len(rest) > MAX_LINE and not rest.endswith(b"\n"):
            rest = file.readline(MAX_LINE + 2)
        yield line


def _line(scan: Scan, body: bytes, number: int) -> None:
    try:
        row = json.loads(body.decode("utf-8")) if len(body) <= MAX_LINE else json.loads("")
    except (ValueError, RecursionError):
        scan.add(UNPARSED, number)
        return
    if not isinstance(row, dict):
        scan.add(NO_OBJECT, number)
        return
    scan.records += 1
    scan.fields.update(row.keys())
    reward = next((row[name] for name in REWARD_FIELDS if name in row), None)
    scan.add(REWARD if is_finite(reward) else NO_REWARD if reward is None else ODD_REWARD, number)
    if scan.first.get(ODD_REWARD) == number:
        scan.odd_reward = compact(reward, 40)
    name = next((row[name] for name in TASK_FIELDS if name in row), None)
    is_number = isinstance(name, int | float) and not isinstance(name, bool)
    if is_number or (isinstance(name, str) and name.strip()):
        scan.tasks[str(name)] += 1
    else:
        scan.add(UNNAMED, number)
