"""Turn the rows of tasks into what environments add: pass@k, majority@k, spread across runs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from blade_eval.environment import Environment
from blade_eval.profile import hook
from blade_eval.profile.entries import Rows

Row = dict[str, Any]
Tasks = Sequence[Sequence[Row]]
Scores = Callable[[Row], Mapping[str, float]]
Answer = Callable[[Row], str | None]


class Told(NamedTuple):
    """All that is kept of a row."""

    scores: dict[str, float]
    answer: str | None


def told(row: Row, environment: Environment) -> Told:
    """What an environment says of a result row."""
    return _told(row, environment.scores or of_reward, environment.answer)


def of_agent(rows: Rows, kept: Mapping[int, Told], environment: Environment | None) -> dict[str, Any]:
    """What an environment with scores adds for the measured rows of one agent."""
    if environment is None or environment.scores is None:
        return {}
    mine = hook.grouped(rows, {int(row): kept[int(row)] for row in rows.measured()})
    return _metrics([task for tasks in mine.values() for task in tasks], environment.answer is not None)


def of_reward(row: Row) -> Mapping[str, float]:
    """The score where an environment names none."""
    reward = row.get("reward")
    return {} if reward is None else {"accuracy": reward}


def pass_majority(tasks: Tasks, scores: Scores = of_reward, answer: Answer | None = None) -> dict[str, Any]:
    """All metrics for k = 1 up to the most rollouts a task has; in percent, as the incumbent gives them."""
    return _metrics([[_told(row, scores, answer) for row in rows] for rows in tasks], answer is not None)


def _metrics(tasks: Sequence[Sequence[Told]], has_answers: bool) -> dict[str, Any]:
    told = [[one.scores for one in rows] for rows in tasks]
    answers = [[one.answer for one in rows] for rows in tasks]
    names = sorted({name for rows in told for one in rows for name in one})
    most = max((len(rows) for rows in tasks), default=0)
    found: dict[str, Any] = {}
    for k in range(1, most + 1):
        for name in names:
            values = [[one[name] for one in rows if name in one] for rows in told]
            _put(found, f"pass@{k}/{name}", [_pass(of_task, k) for of_task in values if len(of_task) >= k])
            firsts = [of_task[:k] for of_task in values if of_task]
            _put(found, f"pass@1[avg-of-{k}]/{name}", [sum(first) / len(first) for first in firsts])
            if has_answers and name != "no_answer":
                votes = [_votes(rows[:k], said[:k], name) for rows, said in zip(told, answers, strict=True)]
                _put(found, f"majority@{k}/{name}", [_majority(cast) for cast in votes])
    by_position = {name: _by_position(told, name, most) for name in names}
    if by_position:
        found["per_sample_aggregate"] = by_position
    for name, means in by_position.items():
        for k in range(2, len(means) + 1):
            spread = _std(means[:k])
            found[f"pass@1[avg-of-{k}]/{name}/std_dev_across_runs"] = spread
            found[f"pass@1[avg-of-{k}]/{name}/std_err_across_runs"] = spread / math.sqrt(k)
    return found


def _told(row: Row, scores: Scores, answer: Answer | None) -> Told:
    found = {name: float(value) for name, value in scores(row).items() if value is not None}
    if answer is None:
        return Told(found, None)
    said = answer(row)
    return Told(found | {"no_answer": float(said is None)}, said)


def _put(found: dict[str, Any], name: str, values: Sequence[float]) -> None:
    if values:
        found[name] = 100.0 * (sum(values) / len(values))


def _pass(values: Sequence[float], k: int) -> float:
    """Unbiased where all values are 0 or 1; otherwise the best of the first k, as the incumbent has it."""
    if any(value not in (0.0, 1.0) for value in values):
        return max(values[:k])
    n, wrong = len(values), sum(value == 0 for value in values)
    return 1.0 if wrong < k else 1.0 - math.comb(wrong, k) / math.comb(n, k)


def _votes(
    rows: Sequence[Mapping[str, float]], answers: Sequence[str | None], name: str
) -> Counter[tuple[str, float]]:
    pairs = zip(rows, answers, strict=True)
    return Counter((said, row[name]) for row, said in pairs if said is not None and name in row)


def _majority(votes: Counter[tuple[str, float]]) -> float:
    """The score of the most frequent answer with one score; the mean of those that tie."""
    if not votes:
        return 0.0
    most = max(votes.values())
    tied = [score for (_, score), n in votes.items() if n == most]
    return sum(tied) / len(tied)


def _by_position(told: Sequence[Sequence[Mapping[str, float]]], name: str, most: int) -> list[float]:
    found = []
    for position in range(most):
        values = [rows[position][name] for rows in told if position < len(rows) and name in rows[position]]
        if values:
            found.append(100.0 * (sum(values) / len(values)))
    return found


def _std(values: Sequence[float]) -> float:
    mean = sum(values) / len(values)
    return math.sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1))
