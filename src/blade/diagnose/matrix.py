"""Set several runs on the same tasks side by side: who passes what, which golds differ, which golds to review."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from blade.answers import value_of
from blade.diagnose.ladder import Diagnosis
from blade.diagnose.population import most_common
from blade.model import TaskMatrix

AGREE = 0.75  # share of the models that must give the same answer against the gold
LEAST = 2  # models that must agree
MISFIT = 0.5  # share of its tasks with another content than in all other runs, from which a run does not belong


@dataclass
class Row:
    """What one run shows of one task."""

    rate: float
    content: tuple[int, int]  # prompt and gold
    answer: Any = None  # what most of its repeats answer; None where they do not agree
    is_right: bool | None = None  # whether that is the gold


def matrix(runs: Sequence[Diagnosis], models: Sequence[str | None], tasks: Sequence[Sequence[int]]) -> TaskMatrix | None:
    """The tasks that at least two runs have; `tasks` are the task codes of the rows as the files number them."""
    known = [_by_task(run, np.asarray(codes)) for run, codes in zip(runs, tasks, strict=True)]
    counts = Counter(key for rows in known for key in rows)
    shared = sorted((key for key, n in counts.items() if n >= 2), key=_order)
    if len(runs) < 2 or not shared:
        return None
    names = [run.people.run for run in runs]
    misfits = _misfits(known, shared)
    fitting = [i for i in range(len(runs)) if i not in misfits]
    rates = {key: [rows[key].rate if key in rows else None for rows in known] for key in shared}
    return TaskMatrix(
        tasks=tuple(shared), runs=tuple(names),
        passes=tuple(map(tuple, rates.values())),
        never_passed=tuple(key for key in shared if not any(rates[key])),
        passed_by_one=tuple(key for key in shared if sum(map(bool, rates[key])) == 1),
        gold_differs=tuple(key for key in shared if _differs([known[i][key] for i in fitting if key in known[i]])),
        gold_to_review=tuple(key for key in shared if _is_doubtful(key, known, models, fitting)),
        misfit_runs=tuple(names[i] for i in misfits),
    )


def _by_task(run: Diagnosis, codes: np.ndarray) -> dict[str, Row]:
    people, reference = run.people, run.reference
    places: defaultdict[int, list[int]] = defaultdict(list)
    for i, code in enumerate(codes.tolist()):
        places[code].append(i)
    result = {}
    for code, rows in places.items():
        first = people.rows[rows[0]]
        result[people.keys[code]] = row = Row(float(people.passed[rows].mean()), (first.prompt, first.gold))
        values = {i: value_of(reference.answer[i]) for i in rows if reference.answer[i]} if reference is not None else {}
        best, n = most_common(values.values())
        if reference is not None and n > 0.5 * len(rows):
            row.answer, row.is_right = best, any(reference.same[i] for i, value in values.items() if value == best)
    return result


def _order(key: str) -> tuple[bool, int, str]:
    return (False, int(key), "") if key.isascii() and key.isdigit() and len(key) < 18 else (True, 0, key)


def _misfits(known: Sequence[Mapping[str, Row]], shared: Sequence[str]) -> list[int]:
    """Runs whose tasks have another content than the same tasks of all other runs, which agree among themselves."""
    result = []
    for i, rows in enumerate(known) if len(known) >= 3 else ():
        others = [other for place, other in enumerate(known) if place != i]
        odd = []  # of each task that the others agree on
        for key in shared:
            contents = {other[key].content for other in others if key in other}
            if key in rows and len(contents) == 1 and all(next(iter(contents))):
                odd.append(rows[key].content not in contents)
        if odd and sum(odd) >= MISFIT * len(odd):
            result.append(i)
    return result


def _differs(rows: Sequence[Row]) -> bool:
    """Whether runs with the same prompt expect different things."""
    contents = {row.content for row in rows if all(row.content)}
    return len({prompt for prompt, _ in contents}) < len(contents)


def _is_doubtful(key: str, known: Sequence[Mapping[str, Row]], models: Sequence[str | None], fitting: Sequence[int]) -> bool:
    """Whether nearly all models give one and the same answer, and it is not the gold."""
    by_model: dict[str, Row] = {}
    for i in fitting:
        if key in known[i]:
            by_model.setdefault(models[i] or f"run {i}", known[i][key])
    rows = list(by_model.values())
    if len(rows) < LEAST or any(row.rate > 0.5 or row.is_right for row in rows):
        return False
    value, n = most_common(row.answer for row in rows if row.answer is not None and row.is_right is False)
    # two models alone agree by chance where there are only a few letters to choose from
    is_open = n > 0 and value[0] != "letter" and value[1] not in ("yes", "no", "True", "False")
    return n >= max(LEAST if is_open else LEAST + 1, AGREE * len(rows))
