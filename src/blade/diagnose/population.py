"""Hold the evidence of all rows of a run as arrays: outcomes, tasks, fields, and rows that a condition holds for."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable
from functools import cached_property
from itertools import compress
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from blade.diagnose.evidence import RowEvidence, most_met
from blade.diagnose.fields import template

Key = TypeVar("Key")
Mask = NDArray[np.bool_]
Ints = NDArray[np.int64]
RARE = 0.05  # share of the rows from which a key is a field
FILLED = 0.9  # share of the failures that hold a field which says why a row failed
CAPPED, LEAST_CAP = 10, 100  # rows with a result of the largest length, and characters of it, from which results are cut there
MAX_KINDS = 30  # values of a field that tells kinds of task apart
ALIGNED = 0.9  # share of the rows with acts that hold a list with one flag for each act
LEAST_ERRORS = 10  # results that read as an error, by which such a list is tested
REFUSED = 0.85  # share of them that it calls false; not all, since a text about errors may come from a call that worked
WORKED = 0.5  # share of the other results that it must call true more often than; flags of what is solved are far below
_ENDING = re.compile(r"[\W_]+\d+\W*$")


class Population:
    """The rows of one run, all arrays in the same order."""

    def __init__(
        self, run: str, rows: list[RowEvidence], passed: Mask, lost: NDArray[np.float64], task: Ints, repeat: Ints, keys: list[str]
    ) -> None:
        self.run, self.rows, self.passed, self.lost = run, rows, passed, lost
        self.task, self.repeat, self.keys = task, repeat, keys
        self.indexed = task  # as the file numbers the tasks, whatever `task` becomes
        self.failed: Mask = ~passed
        self.n = len(rows)
        self.is_unscored = False  # no row has a reward
        self._codes: dict[str, tuple[Ints, list[Any]]] = {}  # by path, as they are asked for
        self.graded: dict[str, str] | None = None  # tools that the grade depends on, once that is known

    def regroup(self, task: Ints) -> None:
        """Take other tasks for the rows, where the rows are proved to be grouped wrongly."""
        self.task = task
        for name in ("size", "has_repeats", "is_mixed", "task_level", "kind"):
            self.__dict__.pop(name, None)

    @property
    def none(self) -> Mask:
        return np.zeros(self.n, bool)

    def mask(self, places: Iterable[int]) -> Mask:
        """The rows at some places."""
        rows = self.none
        rows[list(places)] = True
        return rows

    def places(self, keys: Callable[[RowEvidence], Iterable[Key]]) -> dict[Key, list[int]]:
        """The places of the rows that have each of some keys."""
        result: defaultdict[Key, list[int]] = defaultdict(list)
        for i, row in enumerate(self.rows):
            for key in keys(row):
                result[key].append(i)
        return result

    def of(self, rows: Mask) -> list[RowEvidence]:
        """What some rows hold."""
        return [self.rows[i] for i in np.flatnonzero(rows)]

    def where(self, holds: Callable[[RowEvidence], Any]) -> Mask:
        """The rows that a condition holds for."""
        return np.fromiter((bool(holds(row)) for row in self.rows), bool, self.n)

    def rate(self, rows: Mask) -> float:
        n = int(rows.sum())
        return float(self.passed[rows].sum()) / n if n else float("nan")

    def rates(self, rows: Mask) -> NDArray[np.float64]:
        """The pass rates of the tasks of some rows, as far as these go."""
        passes, n = np.bincount(self.task[rows], weights=self.passed[rows]), np.bincount(self.task[rows])
        return passes[n > 0] / n[n > 0]

    @property
    def is_regrouped(self) -> bool:
        """Whether the file's own task index was found not to identify tasks."""
        return not np.array_equal(self.task, self.indexed)

    def by_outcome(self) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
        """The tasks that always, sometimes and never pass."""
        tasks = list(zip(map(self.name_of, np.unique(self.task).tolist()), self.rates(~self.none), strict=True))
        always, never = (tuple(name for name, rate in tasks if rate == outcome) for outcome in (1, 0))
        return always, tuple(name for name, rate in tasks if 0 < rate < 1), never

    def name_of(self, task: int) -> str:
        """How the file names a task: by its key; a task that was found by content by the address of its first row."""
        first = int(np.flatnonzero(self.task == task)[0])
        key = self.keys[int(self.indexed[first])]
        return f"{key}/{int(self.repeat[first])}" if self.is_regrouped else key

    def n_tasks(self, rows: Mask) -> int:
        return len(np.unique(self.task[rows]))

    @cached_property
    def size(self) -> Ints:
        """How many rows the task of each row has."""
        return np.bincount(self.task)[self.task]

    @cached_property
    def has_repeats(self) -> bool:
        return bool((self.size >= 2).mean() > 0.5) if self.n else False

    @cached_property
    def is_mixed(self) -> Mask:
        """Rows of tasks that both pass and fail."""
        passes = np.bincount(self.task, weights=self.passed)[self.task]
        return (passes > 0) & (passes < self.size)

    @cached_property
    def paths(self) -> list[str]:
        """Every scalar field that some row holds, the commonest first."""
        seen = Counter(path for row in self.rows for path in row.fields)
        return [path for path, _ in seen.most_common()]

    @cached_property
    def columns(self) -> dict[str, list[Any]]:
        return {path: [row.fields.get(path) for row in self.rows] for path in self.paths}

    def codes(self, path: str) -> tuple[Ints, list[Any]]:
        """Equal values of a field under one number, -1 where a row has none."""
        if path not in self._codes:
            known: dict[Any, int] = {}
            result = [-1 if value is None else known.setdefault(value, len(known)) for value in self.columns[path]]
            self._codes[path] = np.array(result, np.int64), list(known)
        return self._codes[path]

    @cached_property
    def task_level(self) -> dict[str, tuple[Ints, list[Any]]]:
        """Fields that are the same in all repeats of a task and differ between tasks: they describe tasks.

        With one try per task nothing shows that; then it is every field of few values that does not go with the
        reward in all of its values.
        """
        result = {}
        for path in self.paths:
            codes, values = self.codes(path)
            if len(values) < 2 or self.is_graded(codes) or self._is_judged(codes, values) or self.is_for_failures(codes):
                continue
            if (codes >= 0).mean() < RARE or path.startswith("response."):
                continue  # a key that only a few rows have is data, and what the reply records is no field of the task
            is_given = path.partition(".")[0] not in self.graders and not tells_the_end(path)
            if self.is_constant_within(codes) if self.has_repeats else is_given:
                result[path] = codes, values
        return result

    def kinds_of_task(self, most: int) -> list[tuple[str, Any, Mask]]:
        """The rows of each kind of task that a field of few values tells apart: field, value, rows."""
        fields = ((path, *column) for path, column in self.task_level.items() if len(column[1]) <= most)
        return [(path, value, codes == code) for path, codes, values in fields for code, value in enumerate(values)]

    @cached_property
    def graders(self) -> set[str]:
        """Objects of a row that hold the reward again: with one try nothing else tells what grading wrote from what it was given."""
        return {path.partition(".")[0] for path in self.paths if "." in path and self.is_reward(path)}

    @cached_property
    def kind(self) -> Ints:
        """The kind of task of each row: by the field about tasks, or the beginning of their ids, that explains most of who passes."""
        partitions = [codes + 1 for codes, values in self.task_level.values() if 2 <= len(values) <= MAX_KINDS]
        partitions.append(self.family)
        best, most = np.zeros(self.n, np.int64), 0.0
        for codes in partitions:
            size = np.bincount(codes)
            if (size[size > 0] >= 3).mean() < 0.8 or self.n <= size.size + 1:
                continue
            rates = np.bincount(codes, weights=self.passed) / np.maximum(size, 1)
            within = float(((self.passed - rates[codes]) ** 2).sum()) / (self.n - (size > 0).sum())
            share = 1 - within / max(float(np.var(self.passed, ddof=1)), 1e-12)
            if share > most:
                best, most = codes, share
        return best

    @cached_property
    def family(self) -> Ints:
        """Tasks whose ids begin alike up to their last number, under one number; all alike where that says nothing."""
        known: dict[str, int] = {}
        names = [id_of(row) or "" for row in self.rows]
        codes = np.array([known.setdefault(_ENDING.sub("", name), len(known)) for name in names], np.int64)
        return codes if 2 <= len(known) <= MAX_KINDS else np.zeros(self.n, np.int64)

    def _is_judged(self, codes: Ints, values: list[Any]) -> bool:
        """Whether it may be a verdict: with one try per task, a 0/1 field one value of which never passes."""
        of_values = (codes == code for code in range(len(values)))
        return not self.has_repeats and set(values) <= {0, 1} and any(rows.sum() >= 3 and not self.passed[rows].any() for rows in of_values)

    @cached_property
    def is_capped(self) -> Mask:
        """Rows with a tool result of exactly the largest length in the run, where many different texts have it: results are cut there."""
        lengths = np.array([row.longest[0] for row in self.rows])
        top = int(lengths.max(initial=0))
        rows = lengths == top
        n, texts = int(rows.sum()), {row.longest[1] for row in self.rows if row.longest[0] == top}
        others = Counter(lengths[~rows & (lengths > 0)].tolist())
        is_spike = n >= max(CAPPED, 2 * max(others.values(), default=0), 0.1 * self.n) and len(texts) >= CAPPED // 2
        return rows if top >= LEAST_CAP and is_spike else self.none

    def is_constant_within(self, codes: Ints) -> bool:
        """Whether the repeats of nearly every task agree."""
        width = int(codes.max(initial=0)) + 2
        tasks = np.unique(self.task * width + codes + 1) // width  # once for each value of a task, -1 among them
        return bool((np.unique(tasks, return_counts=True)[1] == 1).mean() >= 0.95)

    def is_graded(self, codes: Ints) -> bool:
        """Whether a field is set by grading: its frequent values are all-pass or all-fail, both occur."""
        if not self.passed.any() or self.passed.all():
            return False
        present = codes >= 0
        n = np.bincount(codes[present])
        passes = np.bincount(codes[present], weights=self.passed[present])
        frequent = n >= 2
        if frequent.sum() < 2 or n[frequent].sum() < 0.5 * present.sum():
            return False
        rates = passes[frequent] / n[frequent]
        pure = (rates == 0) | (rates == 1)
        has_both = (rates == 0).any() and (rates == 1).any()
        return bool(has_both and (n[frequent] * pure).sum() >= 0.95 * n[frequent].sum())

    def is_for_failures(self, codes: Ints) -> bool:
        """Whether a field is filled for nearly every failure and for no pass: it says why the row failed."""
        present = codes >= 0
        return bool(self.failed.any() and self.passed.any() and present[self.failed].mean() >= FILLED and not present[self.passed].any())

    def is_reward(self, path: str, least: float = 0.5) -> bool:
        """Whether a field that some share of the rows has states the reward again: one of its two values equals the passes."""
        codes, values = self.codes(path)
        present = codes >= 0
        is_pair = len(values) == 2 and present.sum() >= least * self.n
        return bool(is_pair and any(np.array_equal((codes == code)[present], self.passed[present]) for code in (0, 1)))

    def example(self, rows: Mask) -> int:
        """A row that shows a group: of the task with most such rows, the first."""
        places = np.flatnonzero(rows)
        counts = Counter(self.task[places].tolist())
        best = max(counts, key=lambda task: (counts[task], -task))
        return int(next(place for place in places if self.task[place] == best))


def adopt_flags(people: Population) -> None:
    """Take calls for failed that a list of the row says did not work, where results show that this is what the list states."""
    rows = [row for row in people.rows if row.acts]
    present = Counter(path for row in rows for path in row.flags)
    stated = []
    for path in sorted(path for path, n in present.items() if n >= ALIGNED * len(rows)):
        # nearly all results that read as an error are false in it, and most others true
        pairs = (pair for row in rows for pair in zip(row.acts, row.flags.get(path, ()), strict=False))
        seen = Counter((act.failed, flag) for act, flag in pairs if act.is_answered)
        n_errors, n_others = seen[True, True] + seen[True, False], seen[False, True] + seen[False, False]
        if n_errors >= LEAST_ERRORS and seen[True, False] >= REFUSED * n_errors and seen[False, True] > WORKED * n_others:
            stated.append(path)
    for row in rows:
        if phrase := [row.flags[path] for path in stated if path in row.flags]:
            _mark(row, [all(flags) for flags in zip(*phrase, strict=True)])


def _mark(row: RowEvidence, worked: list[bool]) -> None:
    """Mark the acts that did not work as failed; what reads as an error stays one, whatever is said of it."""
    row.made = tuple(compress(row.made, [ok for act, ok in zip(row.acts, worked, strict=True) if not act.failed]))
    row.acts = tuple(
        act if ok or act.failed
        else act._replace(failed=True, error=line, template=template(line), listed=0, total=0, is_empty=False)
        for act, ok, line in zip(row.acts, worked, row.told, strict=True)
    )  # fmt: skip
    row.n_failed = sum(act.failed for act in row.acts)
    row.most_met = most_met(row.acts)


_END = re.compile(r"stop|finish|terminat|status|exit")


def tells_the_end(path: str) -> bool:
    """Whether a field is named like one that says how a rollout ended."""
    return path.startswith("response.") or _END.search(path.rpartition(".")[2].lower()) is not None


def id_of(row: RowEvidence) -> str | None:
    """What a row calls its task, where that is a text."""
    named = (row.fields.get(name) for name in ("task_id", "id", "instance_id", "info.id"))
    return next((name for name in named if isinstance(name, str) and name), None)


def most_common(values: Iterable[Hashable]) -> tuple[Any, int]:
    """The commonest of some values, the first of equals, and how often it occurs; an empty text without any."""
    return next(iter(Counter(values).most_common(1)), ("", 0))


def as_float(value: Any) -> float:
    """A number as far as a double holds it; not a number where it holds none."""
    try:
        return float(value) if value is not None else float("nan")
    except (OverflowError, TypeError, ValueError):
        return float("nan")
