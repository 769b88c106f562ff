"""Aggregate the result rows of a run, agent by agent: statistics, pass@k, majority@k; no server is asked."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import orjson

from blade.errors import Unreadable
from blade_eval import profile
from blade_eval.environment import Environment
from blade_eval.profile import scores
from blade_eval.profile.row_table import NoKey, Row, Table, encoded, names_of, of_row
from blade_eval.profile.statistics import Rollouts

# The rows of one entry, to the metrics that its environment or a hook adds.
Custom = Callable[[Rollouts], Mapping[str, Any]]
Scores = Callable[[Row], Mapping[str, float]]
Answer = Callable[[Row], str | None]
_SAMPLE = {"agent_ref": {"name": "agent"}}  # the file has no place for the task itself


def aggregate_metrics(rows: Iterable[Mapping[str, Any]], environment: Environment | None = None) -> list[Row]:
    """The entries of the aggregate file for rows in memory, as plain values.

    Only an environment that names scores adds metrics of its own, as only some servers of the incumbent do.
    A row with the same key as another and other content is refused.
    """
    table = Table()
    verdicts: dict[int, Verdict] = {}  # not the rows, which may be many
    for number, row in enumerate(rows):
        try:
            result = of_row(row)
        except NoKey as error:
            raise Unreadable(
                f"row {number}: {error}",
                "rows need _ng_task_index and _ng_rollout_index",
                "rows-without-indices",
            ) from None
        table.add(result, number, hash(msgspec.json.encode(row)))
        if has_scores(environment) and not result.masked:
            verdicts[number] = verdict(scores.stripped(row), environment)
    frame = table.frame()
    profile.own(frame.iloc[:0].copy(), frame, table.agents)
    names = names_of(table.agents)
    rollouts = Rollouts(table, profile.settled(frame, names, [], "error", "rollout").rows, names)

    def custom(mine: Rollouts) -> Mapping[str, Any]:
        return of_agent(mine, verdicts, environment)

    plain: list[Row] = orjson.loads(encoded(list(entries(rollouts, [custom]))))
    return plain


def entries(rollouts: Rollouts, customs: Sequence[Custom] = ()) -> Iterator[Row]:
    """One for each agent and server, as they first appear among the ordered rows."""
    rows = rollouts.rows
    (whose,) = profile.numbered([rows], ["agent", "server"])
    servers = names_of(rollouts.table.servers)
    for group in dict.fromkeys(whose.tolist()):
        mine = Rollouts(rollouts.table, rows[whose == group], rollouts.names)
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


def content(found: Sequence[Mapping[str, Any]]) -> bytes:
    """The bytes of the file: indented by two, without a newline at the end."""
    return orjson.dumps(orjson.loads(encoded(found)), option=orjson.OPT_INDENT_2)


# -- what environments add ------------------------------------------------------------------------


class Verdict(NamedTuple):
    """All that is kept of a row."""

    scores: dict[str, float]
    answer: str | None


def has_scores(environment: Environment | None) -> bool:
    """Does an environment add metrics."""
    return environment is not None and environment.scores is not None


def verdict(row: Row, environment: Environment | None) -> Verdict:
    """What an environment says of a result row."""
    assert environment is not None
    return _verdict(row, environment.scores or of_reward, environment.answer)


def of_agent(rows: Rollouts, verdicts: Mapping[int, Verdict], environment: Environment | None) -> Row:
    """What an environment with scores adds for the measured rows of one agent."""
    if environment is None or environment.scores is None:
        return {}
    tasks = [task for mine in rows.tasks(verdicts.__getitem__).values() for task in mine]
    return _metrics(tasks, environment.answer is not None)


def of_reward(row: Row) -> Mapping[str, float]:
    """The score where an environment names none."""
    reward = row.get("reward")
    return {} if reward is None else {"accuracy": reward}


def pass_majority(
    tasks: Sequence[Sequence[Row]], scores: Scores = of_reward, answer: Answer | None = None
) -> Row:
    """All metrics for k = 1 up to the most rollouts a task has; in percent, as the incumbent gives them."""
    return _metrics([[_verdict(row, scores, answer) for row in rows] for rows in tasks], answer is not None)


def _verdict(row: Row, scores: Scores, answer: Answer | None) -> Verdict:
    named = {name: float(value) for name, value in scores(row).items() if value is not None}
    if answer is None:
        return Verdict(named, None)
    text = answer(row)
    return Verdict(named | {"no_answer": float(text is None)}, text)


def _metrics(tasks: Sequence[Sequence[Verdict]], has_answers: bool) -> Row:
    names = sorted({name for rows in tasks for row in rows for name in row.scores})
    most = max((len(rows) for rows in tasks), default=0)
    metrics: Row = {}

    def put(name: str, values: list[float]) -> None:
        if values:
            metrics[name] = _percent(values)

    for k in range(1, most + 1):
        for name in names:
            of_tasks = [[row.scores[name] for row in rows if name in row.scores] for rows in tasks]
            put(f"pass@{k}/{name}", [_pass(values, k) for values in of_tasks if len(values) >= k])
            firsts = [[row.scores[name] for row in rows[:k] if name in row.scores] for rows in tasks]
            put(f"pass@1[avg-of-{k}]/{name}", [math.fsum(first) / len(first) for first in firsts if first])
            if has_answers:
                put(f"majority@{k}/{name}", [_majority(rows[:k], name) for rows in tasks])
    positions = {name: _by_position(tasks, name, most) for name in names}
    if tasks:
        metrics["per_sample_aggregate"] = positions
    for k in range(2, most + 1):
        for name, means in positions.items():
            if len(means[:k]) > 1:
                spread = _deviation(means[:k])
                metrics[f"pass@1[avg-of-{k}]/{name}/std_dev_across_runs"] = spread
                metrics[f"pass@1[avg-of-{k}]/{name}/std_err_across_runs"] = spread / math.sqrt(len(means[:k]))
    return metrics


def _percent(values: Sequence[float]) -> float:
    return 100.0 * math.fsum(values) / len(values)


def _deviation(values: Sequence[float]) -> float:
    mean = math.fsum(values) / len(values)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))


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


def _by_position(tasks: Sequence[Sequence[Verdict]], name: str, most: int) -> list[float]:
    """The mean of each repeat, over the tasks that have it."""
    columns = (
        [rows[place].scores[name] for rows in tasks if place < len(rows) and name in rows[place].scores]
        for place in range(most)
    )
    return [_percent(values) for values in columns if values]
