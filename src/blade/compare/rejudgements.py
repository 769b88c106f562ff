"""Find the same result of the same task that one run's verifier passes and the other's fails."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from blade.compare.bridge import MODEL, UNDETERMINED
from blade.compare.run_settings import config_diff
from blade.compare.task_pairs import Paired
from blade.model import Side

if TYPE_CHECKING:
    from collections.abc import Mapping

    from blade.model import Bools, Hashes, Ints

MODE = ("task or verifier", "same result, other verdict")
UNSURE = 0.1  # of results seen twice in one run and judged both ways, from which a result does not decide
CHANCE = 0.01  # below this it is no chance that of results equal to the word none is judged otherwise
WORDS, READ, COARSE = "words", "read", "result"  # the grains of `Side.content`
SURE = (WORDS, READ)
# Settings that change in which form a result is written.
_FORM = frozenset({"model", "harness", "skills", "prompt", "tools", "sampling"})


def rejudged(pair: Paired) -> tuple[Side, Side]:
    """Both runs with such rows booked on the verifier; as they were where results do not decide verdicts.

    Results that are equal to the word, or as the verifier wrote them down, count in any case. Those that are
    equal but for their form count where the form cannot be the reason: nothing that changes it differs
    between the runs, repeats of either run agree, and results equal to the word do not say otherwise.
    """
    a, b = pair.a, pair.b
    if not (a.judged.judged and b.judged.judged):
        return a, b
    grains = [grain for grain in (*SURE, COARSE) if grain in a.content and grain in b.content]
    seen = {grain: _results(pair, grain) for grain in grains}
    deciding = [
        results for grain, results in seen.items() if results.decides and (grain in SURE or _form_is_alike(pair, seen))
    ]
    for results in deciding:
        a, b = _booked(a, results.rows_a[results.fails_a]), _booked(b, results.rows_b[results.fails_b])
    return a, b


@dataclass(frozen=True)
class _Results:
    """The results of common tasks in one grain: the rows that have one, and how each result was judged."""

    rows_a: Ints
    rows_b: Ints
    fails_a: Bools  # by these rows: it fails where the other run passes the same result, and never fails it
    fails_b: Bools
    decides: bool  # repeats of a run that have the same result have the same verdict
    n_shared: int  # results that both runs have, each judged in one way
    n_other: int  # of these, judged otherwise


def _results(pair: Paired, grain: str) -> _Results:
    rows_a, task_a = _rows(pair.a, pair.code_a, grain)
    rows_b, task_b = _rows(pair.b, pair.code_b, grain)
    content = np.concatenate([pair.a.content[grain][rows_a], pair.b.content[grain][rows_b]])
    group = _groups(np.concatenate([task_a, task_b]), content)
    passed_a, passed_b = pair.a.judged.passed[rows_a], pair.b.judged.passed[rows_b]
    of_a, of_b = group[: rows_a.size], group[rows_a.size :]
    n = int(group.max(initial=-1)) + 1
    pass_a, fail_a, pass_b, fail_b = (
        np.bincount(which[verdict], minlength=n)
        for which, passed in ((of_a, passed_a), (of_b, passed_b))
        for verdict in (passed, ~passed)
    )
    only_b_fails = (pass_a > 0) & (fail_a == 0) & (fail_b > 0) & (pass_b == 0)
    only_a_fails = (pass_b > 0) & (fail_b == 0) & (fail_a > 0) & (pass_a == 0)
    both_pass = (pass_a > 0) & (fail_a == 0) & (pass_b > 0) & (fail_b == 0)
    both_fail = (fail_a > 0) & (pass_a == 0) & (fail_b > 0) & (pass_b == 0)
    n_other = int((only_a_fails | only_b_fails).sum())
    return _Results(
        rows_a, rows_b, only_a_fails[of_a], only_b_fails[of_b],
        max(_unsure(pass_a, fail_a), _unsure(pass_b, fail_b)) <= UNSURE,
        int((both_pass | both_fail).sum()) + n_other, n_other,
    )


def _rows(side: Side, codes: Ints, grain: str) -> tuple[Ints, Ints]:
    """The rows of common tasks that ended with something, and the place of their task among these."""
    place = np.full(len(side.judged.task_keys), -1, np.int64)
    place[codes] = np.arange(codes.size)
    of_row = place[side.judged.task]
    rows = np.flatnonzero((of_row >= 0) & (side.content[grain] != 0))
    return rows, of_row[rows]


def _groups(task: Ints, content: Hashes) -> Ints:
    """One number for each task and result, over the rows of both runs."""
    order = np.lexsort((content, task))
    task, content = task[order], content[order]
    new = np.ones(task.size, bool)
    new[1:] = (task[1:] != task[:-1]) | (content[1:] != content[:-1])
    group = np.empty(task.size, np.int64)
    group[order] = np.cumsum(new) - 1
    return group


def _unsure(passes: Ints, fails: Ints) -> float:
    """Of the results that one run has several times, the share that it judged both ways."""
    several = passes + fails > 1
    both: Bools = several & (passes > 0) & (fails > 0)
    return float(both.sum() / several.sum()) if several.any() else 0.0


def _form_is_alike(pair: Paired, seen: Mapping[str, _Results]) -> bool:
    """Whether both runs write a result in the same form, as far as they state it and as results show.

    If results that are equal to the word are many, and none of them is judged otherwise while those that are
    equal but for their form are, then it is the form that changed.
    """
    coarse, words = seen[COARSE], seen.get(WORDS)
    if not coarse.n_other or pair.a.model != pair.b.model:
        return False
    alike = 1 - coarse.n_other / coarse.n_shared
    if words is not None and not words.n_other and alike**words.n_shared < CHANCE:
        return False
    diff = config_diff(pair.a, pair.b, pair.alignment)
    return not any(setting.kind in _FORM and setting.known and setting.counts for setting in diff)


def _booked(side: Side, rows: Ints) -> Side:
    table = side.modes if MODE in side.modes else (*side.modes, MODE)
    mode = side.mode.copy()
    inside = [name in (MODEL, UNDETERMINED) for name, _ in side.modes]
    own = np.array([*inside, False], bool)  # the last is for -1
    mine = rows[own[mode[rows]]]
    mode[mine] = table.index(MODE)
    return replace(side, mode=mode, modes=table)
