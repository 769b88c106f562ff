"""Compute the statistics of tasks, agents and repeats with pandas, in the order in which the incumbent sums."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import methodcaller
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import orjson

from blade.stats.intervals import special
from blade_eval.profile.row_table import TASK, Cells, Floats, Ints, Row, Table, names_of

if TYPE_CHECKING:
    import pandas as pd

Kept = TypeVar("Kept")  # a row, or what is kept of it
STATISTICS = ("mean", "max", "min", "median", "std")
OF_REPEAT = "mean median std sem min max p25 p75 ci_low_95 ci_high_95".split()
ACROSS = "mean median std min max sem ci_low_95 ci_high_95".split()
_MOST = 1 << 20  # cells of a data frame

# A metric that starts or ends so is a statistic of something, not itself a result of a repeat.
_PREFIXES = tuple(
    f"{name}/" for name in "max min median std sem se p25 p75 ci_low_95 ci_high_95 histogram".split()
)
_SUFFIXES = tuple(
    "/max /min /median /p5 /p25 /p75 /p95 /ci_low_95 /ci_high_95 /ci_lower /ci_upper _ci_lower _ci_upper "
    "_ci95_lower _ci95_upper /_ng_attempt_index /std_dev_across_runs /std_err_across_runs /avg_sample_std_dev".split()
)
_NAMES = frozenset(
    "_ng_task_index _ng_rollout_index _ng_attempt_index sample_count missing_count num_repeats num_rollouts "
    "expected_num_rollouts missing_num_rollouts reward_profile_completion_pct token_usage_version".split()
)


def is_primary(name: str) -> bool:
    """Is it a result of a repeat, of which statistics across repeats are taken."""
    bare = name.removeprefix("mean/")
    is_summary = name.startswith(_PREFIXES) or name.endswith(_SUFFIXES) or "_across_repeats/" in name
    return not is_summary and bare not in _NAMES


@dataclass
class Agent:
    """What is said of all rows of one agent."""

    name: str
    values: dict[str, float]
    by_repeat: list[Row]  # empty unless it has several repeats
    coverage: dict[str, int]  # empty unless something was masked
    across: dict[str, float] = field(default_factory=dict)


@dataclass
class Rollouts:
    """The result rows that are reported, masked ones among them, and whose they are."""

    table: Table
    rows: pd.DataFrame  # one of each key, by task, repeat and the agent's name

    @cached_property
    def names(self) -> list[str]:
        return names_of(self.table.agents)

    @cached_property
    def measured(self) -> pd.DataFrame:
        return self.rows[self.rows["masked"] == 0]

    @cached_property
    def agents(self) -> list[int]:
        return sorted(self.rows["agent"].unique().tolist(), key=self.names.__getitem__)

    @cached_property
    def columns(self) -> dict[int, str]:
        """The numeric columns by code, in the order in which the measured rows name them first."""
        import pandas as pd

        texts = list(self.table.columns)
        codes = pd.unique(self.table.cells(self.measured.index.to_numpy()).column)
        return {code: texts[code] for code in codes.tolist()}

    def cells(self, rows: pd.DataFrame) -> Cells:
        """The numbers of some measured rows, with the ranks of their columns."""
        cells = self.table.cells(rows.index.to_numpy())
        rank = np.zeros(len(self.table.columns), np.int64)
        rank[list(self.columns)] = np.arange(len(self.columns))
        return cells._replace(column=rank[cells.column])

    def groups(self) -> Iterator[tuple[int, int, Ints, dict[str, float]]]:
        """Task, agent, rows and statistics of each task, and of each agent of a task, that was measured."""
        rank = np.zeros(len(self.names), np.int64)
        rank[self.agents] = np.arange(len(self.agents))
        rows = self.measured
        task, agent = rows["task"].to_numpy(), rank[rows["agent"].to_numpy()]
        order = np.lexsort((rows["repeat"], agent, task))
        rows, task, agent = rows.iloc[order], task[order], agent[order]
        is_new = np.r_[True, (task[1:] != task[:-1]) | (agent[1:] != agent[:-1])][: task.size]
        starts = np.flatnonzero(is_new)
        values = by_group(self.cells(rows), np.diff(np.r_[starts, task.size]), list(self.columns.values()))
        parts = np.split(rows.index.to_numpy(), starts[1:]) if task.size else []
        codes = np.array(self.agents)[agent[starts]] if task.size else []
        yield from zip(task[starts].tolist(), list(codes), parts, values, strict=True)

    def task_entry(
        self, task: int, rows: Ints, values: Mapping[str, float], sample: Any, n_expected: int, agent: str | None = None
    ) -> Row:
        """One line of the profile, or one entry of `group_level_metrics`."""
        return {
            TASK: task, **values, **({} if agent is None else {"agent_ref": {"name": agent}}),
            "sample": sample, "num_rollouts": rows.size, "expected_num_rollouts": n_expected,
            "missing_num_rollouts": max(0, n_expected - rows.size),
            "reward_profile_completion_pct": 100.0 * rows.size / n_expected,
            "rollout_infos": [orjson.Fragment(self.table.info(row)) for row in rows.tolist()],
        }

    def by_agent(self) -> list[Agent]:
        """Agents by name, those without a measured row at the end."""
        agents, names = [], list(self.columns.values())
        for code in self.agents:
            rows = self.measured[self.measured["agent"] == code]
            cells = self.cells(rows)
            values = next(by_group(cells, np.array([len(rows)]), names)) if len(rows) else {}
            repeats = by_repeat(cells, rows["task"].to_numpy(), rows["repeat"].to_numpy(), names)
            agents.append(Agent(self.names[code], values, repeats, self._coverage(code)))
        metrics = dict.fromkeys(name for agent in agents for entry in agent.by_repeat for name in entry)
        primary = list(filter(is_primary, metrics))
        for agent in agents:
            agent.across = across(agent.by_repeat, primary)
        return sorted(agents, key=lambda agent: not agent.values)

    def _coverage(self, code: int) -> dict[str, int]:
        """How much of an agent's rows is a measurement; nothing is said where all of it is."""
        rows = self.rows[self.rows["agent"] == code]
        masked = rows["masked"] != 0
        if not masked.any():
            return {}
        n_measured = rows["task"][~masked].nunique()
        return {
            "coverage/measured_rollouts": int((~masked).sum()),
            "coverage/masked_rollouts": int(masked.sum()),
            "coverage/measured_tasks": n_measured,
            "coverage/fully_masked_tasks": rows["task"].nunique() - n_measured,
        }

    def tasks(self, keep: Callable[[int], Kept]) -> dict[str, list[list[Kept]]]:
        """What is kept of each measured row, by agent, task and repeat."""
        grouped: dict[str, dict[int, list[Kept]]] = {self.names[code]: {} for code in self.agents}
        rows = self.measured
        for row, task, agent in zip(*(column.tolist() for column in (rows.index, rows["task"], rows["agent"])), strict=True):
            grouped[self.names[agent]].setdefault(task, []).append(keep(row))
        return {name: list(tasks.values()) for name, tasks in grouped.items() if tasks}


def by_group(cells: Cells, counts: Ints, names: Sequence[str]) -> Iterator[dict[str, float]]:
    """The five statistics of each group; the groups' rows follow one another, `counts` each.

    The names are grouped by statistic. What is undefined is left out; only in a group in which no column
    has a standard deviation, that of the columns which all its rows have is 0.
    """
    begins = np.cumsum(counts) - counts
    group = np.repeat(np.arange(counts.size), counts)[cells.row]
    pairs, pair, present = np.unique(group * len(names) + cells.column, return_inverse=True, return_counts=True)
    group_of, column_of = np.divmod(pairs, max(1, len(names)))
    out = np.empty((len(STATISTICS), pairs.size))
    for chosen, frame in _frames(pair, cells.row - begins[group], cells.value, counts[group_of]):
        out[:, chosen] = [getattr(frame, name)() for name in STATISTICS]
    bounds = np.searchsorted(group_of, np.arange(counts.size + 1))
    for begin, end, count in zip(bounds[:-1], bounds[1:], counts, strict=True):
        std = out[-1, begin:end]
        if np.isnan(std).all():
            std[present[begin:end] == count] = 0.0
        keys = [f"{name}/{names[column]}" for name in STATISTICS for column in column_of[begin:end]]
        values = out[:, begin:end].ravel().tolist()
        yield {key: value for key, value in zip(keys, values, strict=True) if value == value}


def _frames(pair: Ints, place: Ints, value: Floats, sizes: Ints) -> Iterator[tuple[Ints, pd.DataFrame]]:
    """Data frames whose columns are the pairs of one size, each value in its place and gaps elsewhere.

    Their rows lie one after another in memory, so pandas sums them as it sums the frame of one group.
    """
    import pandas as pd

    by_size = np.argsort(sizes, kind="stable")
    rank = np.empty_like(by_size)
    rank[by_size] = np.arange(by_size.size)
    order = np.argsort(rank[pair], kind="stable")
    pair, place, value = rank[pair][order], place[order], value[order]
    begin = 0
    with np.errstate(all="ignore"):
        while begin < sizes.size:
            size = sizes[by_size[begin]]
            end = min(int(np.searchsorted(sizes[by_size], size, "right")), begin + max(1, _MOST // size))
            low, high = np.searchsorted(pair, (begin, end))
            block = np.full((end - begin, size), np.nan)
            block[pair[low:high] - begin, place[low:high]] = value[low:high]
            yield by_size[begin:end], pd.DataFrame(block.T)
            begin = end


def spread(pair: Ints, value: Floats) -> dict[str, Floats]:
    """The statistics of each pair's values, which stand together; of one value nothing spreads."""
    counts = np.bincount(pair)
    place = np.arange(pair.size) - np.repeat(np.cumsum(counts) - counts, counts)
    out = {name: np.full(counts.size, np.nan) for name in OF_REPEAT}
    how = {name: methodcaller(name) for name in ("mean", "median", "std", "min", "max")}
    how |= {"p25": methodcaller("quantile", 0.25), "p75": methodcaller("quantile", 0.75)}
    for chosen, frame in _frames(pair, place, value, counts):
        n = len(frame)
        for name, take in how.items():
            out[name][chosen] = take(frame)
        if n == 1:
            out["std"][chosen] = 0.0
        sem = out["sem"][chosen] = out["std"][chosen] / float(n) ** 0.5
        if n > 1:
            half = np.where(sem == 0, 0.0, float(special().stdtrit(n - 1, 0.975)) * sem)
            out["ci_low_95"][chosen] = out["mean"][chosen] - half
            out["ci_high_95"][chosen] = out["mean"][chosen] + half
    return out


def by_repeat(cells: Cells, tasks: Ints, repeats: Ints, names: Sequence[str]) -> list[dict[str, Any]]:
    """The entries of one agent's rows, by rising repeat; none unless it has several repeats."""
    indices, repeat = np.unique(repeats, return_inverse=True)
    if indices.size < 2:
        return []
    entries: list[dict[str, Any]] = []
    n_tasks, counts = np.unique(tasks).size, np.bincount(repeat)
    for index, count in zip(indices.tolist(), counts.tolist(), strict=True):
        entries.append({"_ng_rollout_index": index, "sample_count": count, "missing_count": n_tasks - count})
    alphabetical = np.argsort(np.argsort(np.array(names, object))) if names else np.zeros(0, np.int64)
    key = repeat[cells.row] * max(1, len(names)) + alphabetical[cells.column]
    order = np.argsort(key, kind="stable")
    _, first, pair = np.unique(key[order], return_index=True, return_inverse=True)
    table = spread(pair, cells.value[order])
    columns = [table[name].tolist() for name in OF_REPEAT]
    for place, *values in zip(order[first].tolist(), *columns, strict=True):
        name = names[cells.column[place]]
        entry = entries[repeat[cells.row[place]]]
        pairs = zip(OF_REPEAT, values, strict=True)
        entry.update((f"{statistic}/{name}", value) for statistic, value in pairs if value == value)
    return entries


def across(entries: Sequence[Mapping[str, Any]], order: Sequence[str]) -> dict[str, float]:
    """Each repeat's value of a primary metric as one observation, the metrics in a given order."""
    metrics = [name for name in order if any(name in entry for entry in entries)]
    values = [[float(entry[name]) for entry in entries if name in entry] for name in metrics]
    if not metrics:
        return {}
    table = spread(np.repeat(np.arange(len(metrics)), list(map(len, values))), np.concatenate(values))
    return {
        f"{'se' if statistic == 'sem' else statistic}_across_repeats/{metric}": value
        for number, metric in enumerate(metrics)
        for statistic in ACROSS
        if (value := float(table[statistic][number])) == value
    }
