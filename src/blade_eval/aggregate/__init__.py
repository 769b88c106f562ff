"""Aggregate the result rows of a run, agent by agent: statistics, pass@k, majority@k; no server is asked."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import orjson

from blade_eval import profile
from blade_eval.environment import Environment
from blade_eval.profile import row_table, scores
from blade_eval.profile.row_table import Row, Table, encoded
from blade_eval.profile.statistics import Rollouts

# The rows of one entry, to the metrics that its environment or a hook adds.
Custom = Callable[[Rollouts], Mapping[str, Any]]
EnvironmentOf = Callable[[str], Environment | None]  # of an agent's name
_SAMPLE = {"agent_ref": {"name": "agent"}}  # the file has no place for the task itself


def aggregate_metrics(rows: Iterable[Mapping[str, Any]], environment: Environment | None = None) -> list[Row]:
    """The entries of the aggregate file for rows in memory, as plain values.

    Only an environment that names scores adds metrics of its own, as only some servers of the incumbent do.
    A row with the same key as another and other content is refused.
    """
    table, results = Table(), list(rows)
    for number, row in enumerate(results):
        table.add(row_table.of_row(row, number), number, hash(msgspec.json.encode(row)))
    rollouts = _rollouts(table)
    custom = of_environments(rollouts, lambda _: environment, results.__getitem__)
    plain: list[Row] = orjson.loads(encoded(list(entries(rollouts, [custom]))))
    return plain


def of_file(path: Path, environment_of: EnvironmentOf) -> list[Row]:
    """The entries for the rows of a file; none where it holds none."""
    table = Table()
    table.read(path, row_table.result_of)
    rollouts = _rollouts(table)
    return list(entries(rollouts, [of_environments(rollouts, environment_of, table.row)]))


def _rollouts(table: Table) -> Rollouts:
    frame = table.frame()
    profile.own(frame.iloc[:0].copy(), frame, table.agents)
    return Rollouts(table, profile.settled(table, frame, "error", "rollout").rows)


def entries(rollouts: Rollouts, customs: Sequence[Custom] = ()) -> Iterator[Row]:
    """One for each agent and server, as they first appear among the ordered rows."""
    rows = rollouts.rows
    (whose,) = profile.numbered([rows], ["agent", "server"])
    servers = row_table.names_of(rollouts.table.servers)
    for group in dict.fromkeys(whose.tolist()):
        mine = Rollouts(rollouts.table, rows[whose == group])
        (agent,) = mine.by_agent()
        added: Row = {}
        for custom in customs if agent.values else ():
            added |= custom(mine)
        of_task = added.pop("per_task_metrics", {})
        metrics: Row = {**agent.values, **agent.across, **agent.coverage, **added}
        if agent.values:
            metrics["num_repeats"] = mine.rows["repeat"].nunique()
        server = servers[mine.rows["server"].iloc[0]]
        yield {
            "agent_ref": {"name": agent.name},
            **({"_ng_environment_server": server} if server is not None else {}),
            "agent_metrics": metrics,
            "key_metrics": {k: v for k, v in metrics.items() if k.startswith("mean/")} | agent.coverage,
            "group_level_metrics": [
                mine.task_entry(task, of, values, _SAMPLE, of.size) | dict(of_task.get(task, {}))
                for task, _, of, values in mine.groups()
            ],
            "repeat_level_metrics": agent.by_repeat,
        }


def content(entries: Sequence[Mapping[str, Any]]) -> bytes:
    """The bytes of the file: indented by two, without a newline at the end."""
    return orjson.dumps(orjson.loads(encoded(entries)), option=orjson.OPT_INDENT_2)


class Verdict(NamedTuple):
    """All that is kept of a row."""

    scores: Mapping[str, float]
    answer: str | None = None


def of_environments(
    rollouts: Rollouts, environment_of: EnvironmentOf, read: Callable[[int], Mapping[str, Any]]
) -> Custom:
    """What environments that name scores add for the measured rows of one agent; `read` gives a row."""
    environments = {code: environment_of(rollouts.names[code]) for code in rollouts.agents}

    def custom(mine: Rollouts) -> Mapping[str, Any]:
        environment = environments[mine.agents[0]]
        if environment is None or environment.scores is None:
            return {}
        score, answer = environment.scores, environment.answer

        def verdict(number: int) -> Verdict:
            row = scores.stripped(read(number))
            values = {name: float(value) for name, value in score(row).items() if value is not None}
            if answer is None:
                return Verdict(values)
            text = answer(row)
            return Verdict(values | {"no_answer": float(text is None)}, text)

        tasks = [task for of_agent in mine.tasks(verdict).values() for task in of_agent]
        return pass_majority(tasks, answer is not None)

    return custom


def pass_majority(tasks: Sequence[Sequence[Verdict]], has_answers: bool = False) -> Row:
    """All metrics for k = 1 up to the most rollouts a task has; in percent, as the incumbent gives them."""
    names = sorted({name for rows in tasks for row in rows for name in row.scores})
    most = max((len(rows) for rows in tasks), default=0)
    metrics: Row = {}

    def put(name: str, values: list[float]) -> None:
        if values:
            metrics[name] = 100.0 * math.fsum(values) / len(values)

    for k in range(1, most + 1):
        for name in names:
            of_tasks = [[row.scores[name] for row in rows if name in row.scores] for rows in tasks]
            put(f"pass@{k}/{name}", [_pass(values, k) for values in of_tasks if len(values) >= k])
            firsts = [[row.scores[name] for row in rows[:k] if name in row.scores] for rows in tasks]
            put(f"pass@1[avg-of-{k}]/{name}", [math.fsum(first) / len(first) for first in firsts if first])
            if has_answers:
                put(f"majority@{k}/{name}", [_majority(rows[:k], name) for rows in tasks])
    positions = {}
    for name in names:  # the mean of each repeat in percent, over the tasks that have it
        places = ([rows[k].scores[name] for rows in tasks if k < len(rows) and name in rows[k].scores] for k in range(most))
        positions[name] = [100.0 * math.fsum(values) / len(values) for values in places if values]
    if tasks:
        metrics["per_sample_aggregate"] = positions
    for k in range(2, most + 1):
        for name, means in positions.items():
            if (n := len(means[:k])) > 1:
                mean = math.fsum(means[:k]) / n
                spread = math.sqrt(math.fsum((value - mean) ** 2 for value in means[:k]) / (n - 1))
                metrics[f"pass@1[avg-of-{k}]/{name}/std_dev_across_runs"] = spread
                metrics[f"pass@1[avg-of-{k}]/{name}/std_err_across_runs"] = spread / math.sqrt(n)
    return metrics


def _pass(values: Sequence[float], k: int) -> float:
    """Unbiased where all values are 0 or 1; otherwise the best of the first k, as the incumbent has it."""
    if any(value not in (0.0, 1.0) for value in values):
        return max(values[:k])
    n, wrong = len(values), sum(value == 0 for value in values)
    return 1.0 if wrong < k else 1.0 - math.comb(wrong, k) / math.comb(n, k)


def _majority(rows: Sequence[Verdict], name: str) -> float:
    """The score of the most frequent answer with one score; the mean of those that tie."""
    votes = Counter(
        (row.answer, row.scores[name]) for row in rows if row.answer is not None and name in row.scores
    )
    tied = [score for (_, score), n in votes.items() if n == max(votes.values())]
    return math.fsum(tied) / len(tied) if tied else 0.0
