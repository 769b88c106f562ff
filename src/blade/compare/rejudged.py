"""Find the same result of the same task that one run's verifier passes and the other's fails."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from blade.compare.pairing import Paired
from blade.model import Side

if TYPE_CHECKING:
    from blade.model import Bools, Ints

MODE = ("task or verifier", "same result, other verdict")
UNSURE = 0.1  # of results seen twice in one run and judged both ways, from which a result does not decide


def rejudged(pair: Paired) -> tuple[Side, Side]:
    """Both runs with such rows booked on the verifier; as they were where results do not decide verdicts."""
    a, b = pair.a, pair.b
    if a.content is None or b.content is None or not (a.judged.judged and b.judged.judged):
        return a, b
    rows_a, rows_b = _rows(a, pair.code_a), _rows(b, pair.code_b)
    group = _groups(a, b, rows_a, rows_b)
    passed_a, passed_b = a.judged.passed[rows_a[0]], b.judged.passed[rows_b[0]]
    of_a, of_b = group[: rows_a[0].size], group[rows_a[0].size :]
    n = int(group.max()) + 1 if group.size else 0
    counts = [
        np.bincount(which[told], minlength=n)
        for which, passed in ((of_a, passed_a), (of_b, passed_b))
        for told in (passed, ~passed)
    ]
    pass_a, fail_a, pass_b, fail_b = counts
    if max(_unsure(pass_a, fail_a), _unsure(pass_b, fail_b)) > UNSURE:
        return a, b
    only_b_fails = (pass_a > 0) & (fail_a == 0) & (pass_b == 0)
    only_a_fails = (pass_b > 0) & (fail_b == 0) & (pass_a == 0)
    return (
        _booked(a, rows_a[0][only_a_fails[of_a] & ~passed_a]),
        _booked(b, rows_b[0][only_b_fails[of_b] & ~passed_b]),
    )


def _rows(side: Side, codes: Ints) -> tuple[Ints, Ints]:
    """The rows of common tasks that ended with something, and the place of their task among these."""
    place = np.full(len(side.judged.task_keys), -1, np.int64)
    place[codes] = np.arange(codes.size)
    of_row = place[side.judged.task]
    content = side.content if side.content is not None else np.zeros(of_row.size, np.uint64)
    rows = np.flatnonzero((of_row >= 0) & (content != 0))
    return rows, of_row[rows]


def _groups(a: Side, b: Side, rows_a: tuple[Ints, Ints], rows_b: tuple[Ints, Ints]) -> Ints:
    """One number for each task and result, over the rows of both runs."""
    assert a.content is not None
    assert b.content is not None
    task = np.concatenate([rows_a[1], rows_b[1]])
    content = np.concatenate([a.content[rows_a[0]], b.content[rows_b[0]]])
    order = np.lexsort((content, task))
    task, content = task[order], content[order]
    new = np.ones(task.size, bool)
    new[1:] = (task[1:] != task[:-1]) | (content[1:] != content[:-1])
    found = np.empty(task.size, np.int64)
    found[order] = np.cumsum(new) - 1
    return found


def _unsure(passes: Ints, fails: Ints) -> float:
    """Of the results that one run has several times, the share that it judged both ways."""
    several = passes + fails > 1
    both: Bools = several & (passes > 0) & (fails > 0)
    return float(both.sum() / several.sum()) if several.any() else 0.0


def _booked(side: Side, rows: Ints) -> Side:
    table = side.modes if MODE in side.modes else (*side.modes, MODE)
    mode = side.mode.copy()
    model = np.array([name == "model" for name, _ in side.modes] + [False], bool)  # the last is for -1
    mine = rows[model[mode[rows]]]
    mode[mine] = table.index(MODE)
    return replace(side, mode=mode, modes=table)
