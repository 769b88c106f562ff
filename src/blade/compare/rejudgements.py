"""Find the same result of the same task that one run's verifier passes and the other's fails."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from blade.compare.bridge import MODEL, UNDETERMINED, booked
from blade.compare.run_settings import config_diff
from blade.compare.task_pairs import Paired, row_places
from blade.model import Bools, Ints, Side

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
    for grain, results in seen.items():
        if results.decides and (grain in SURE or _form_is_alike(pair, seen)):
            a, b = _rebooked(a, results.rows_a[results.fails_a]), _rebooked(b, results.rows_b[results.fails_b])
    return a, b


class _Results(NamedTuple):
    """The results of common tasks in one grain: the rows that have one, and how each result was judged."""

    rows_a: Ints
    rows_b: Ints
    fails_a: Bools  # by these rows: it fails where the other run passes the same result, and never fails it
    fails_b: Bools
    decides: bool  # repeats of a run that have the same result have the same verdict
    n_shared: int  # results that both runs have, each judged in one way
    n_other: int  # of these, judged otherwise


def _results(pair: Paired, grain: str) -> _Results:
    rows, tasks, content, passed = [], [], [], []
    for side, codes, _ in pair.runs:
        place = row_places(side, codes)
        rows.append(np.flatnonzero((place >= 0) & (side.content[grain] != 0)))  # that ended with something
        tasks.append(place[rows[-1]])
        content.append(side.content[grain][rows[-1]])
        passed.append(side.judged.passed[rows[-1]])
    # one number for each task and result, over the rows of both runs
    _, code = np.unique(np.concatenate(content), return_inverse=True)
    numbers, group = np.unique(np.concatenate(tasks) * (code.max(initial=0) + 1) + code, return_inverse=True)
    groups = group[: rows[0].size], group[rows[0].size :]
    n_pass, n_fail = (
        [np.bincount(of_run[verdict == is_pass], minlength=numbers.size) for of_run, verdict in zip(groups, passed, strict=True)]
        for is_pass in (True, False)
    )
    always = [(passes > 0) & (fails == 0) for passes, fails in zip(n_pass, n_fail, strict=True)]
    never = [(passes == 0) & (fails > 0) for passes, fails in zip(n_pass, n_fail, strict=True)]
    fails_b, fails_a = always[0] & never[1], always[1] & never[0]
    n_other = int((fails_a | fails_b).sum())
    n_alike = int(((always[0] & always[1]) | (never[0] & never[1])).sum())
    decides = max(map(_unsure, n_pass, n_fail)) <= UNSURE
    return _Results(rows[0], rows[1], fails_a[groups[0]], fails_b[groups[1]], decides, n_alike + n_other, n_other)


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


def _rebooked(side: Side, rows: Ints) -> Side:
    """The run with those of the rows that the model lost booked on the verifier."""
    own = np.array([*(name in (MODEL, UNDETERMINED) for name, _ in side.modes), False], bool)  # the last is for -1
    return booked(side, rows[own[side.mode[rows]]], MODE)
