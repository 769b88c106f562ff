"""Turn materialised inputs and rollouts into the profile files of a run: tasks, agents, repeats."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from blade.errors import UsageError
from blade_eval.profile import entries, files, joining, passes
from blade_eval.profile.hook import Hook
from blade_eval.profile.joining import Duplicates, Joined
from blade_eval.profile.reading import SHOWN
from blade_eval.profile.spelling import encoded
from blade_eval.profile.table import Table

PROFILE, AGENTS, REPEATS = "_reward_profiling.jsonl", "_agent_metrics.json", "_repeat_level_metrics.json"


@dataclass
class Profiled:
    """A run that was read and joined; `write` puts its files beside the rollouts."""

    rollouts: Path
    told: entries.Rows
    inputs: files.Inputs
    joined: Joined
    agents: list[entries.Agent]
    custom: Mapping[str, Mapping[str, Any]]  # of each agent, what a hook adds
    notices: list[str] = field(default_factory=list)

    @property
    def n_expected(self) -> int:
        return self.joined.inputs.rows.size

    @property
    def n_came(self) -> int:
        return self.joined.results.rows.size

    @property
    def n_masked(self) -> int:
        return self.n_came - self.told.measured().size

    def tasks(self) -> tuple[int, int, int, int]:
        """How many input rows there are in all; complete, partial, and without any rollout."""
        expected = np.unique(self.inputs.keys.task[self.joined.inputs.rows], return_counts=True)
        came, counts = np.unique(self.told.table.keys.task[self.joined.results.rows], return_counts=True)
        n_came = np.zeros(expected[0].size, np.int64)
        n_came[np.searchsorted(expected[0], came)] = counts
        complete, none = int((n_came >= expected[1]).sum()), int((n_came == 0).sum())
        return expected[0].size, complete, expected[0].size - complete - none, none

    def missing(self) -> list[tuple[int, int]]:
        """The keys of inputs without a rollout."""
        rows, keys = self.joined.missing, self.inputs.keys
        return list(zip(keys.task[rows].tolist(), keys.repeat[rows].tolist(), strict=True))

    def scores(self, threshold: float = 1.0) -> list[passes.Score]:
        """pass@k and variance of each agent."""
        return passes.scores(self.told, threshold)

    def paths(self) -> tuple[Path, Path, Path]:
        """Where the three files go."""
        found = tuple(files.beside(self.rollouts, ending) for ending in (PROFILE, AGENTS, REPEATS))
        return found[0], found[1], found[2]

    def write(self) -> tuple[Path, Path, Path]:
        """Write the three files, each whole or not at all."""
        tasks, agents, repeats = self.paths()
        with files.written(tasks) as file:
            file.writelines(encoded(entry) + b"\n" for entry in self.task_entries())
        with files.written(agents) as file:
            file.write(encoded(self.agent_entries()))
        with files.written(repeats) as file:
            file.write(encoded(self.repeat_entries()))
        return tasks, agents, repeats

    def task_entries(self) -> Iterator[entries.Entry]:
        """One for every task with a measured rollout; for every task and agent where a task has several."""
        expected, first, shares_tasks = self._expected()
        for group in entries.groups(self.told):
            key = (group.task, group.agent)
            sample = msgspec.Raw(self.inputs.sample(group.task, first[key]))
            entry = entries.task_entry(group, sample, self.told, expected[key])
            named = {"agent_ref": {"name": self.told.names[group.agent]}} if shares_tasks else {}
            yield entry | named

    def _expected(self) -> tuple[dict[tuple[int, int], int], dict[tuple[int, int], int], bool]:
        """Of each task and agent what could be measured and its first input; and do agents share tasks."""
        rows = self.joined.inputs.rows
        task, agent = self.inputs.keys.task[rows], self.joined.input_agent[rows]
        group = joining.ids(task, agent)
        lead, first = np.full(int(group.max(initial=-1)) + 1, 1 << 62), np.unique(group, return_index=True)[1]
        np.minimum.at(lead, group, rows)
        names = list(zip(task[first].tolist(), agent[first].tolist(), strict=True))
        counts = dict(zip(names, np.bincount(group).tolist(), strict=True))
        masked = self.told.masked()
        for key in zip(
            self.told.table.keys.task[masked].tolist(), self.told.agent[masked].tolist(), strict=True
        ):
            counts[key] -= 1
        return (
            counts,
            dict(zip(names, lead.tolist(), strict=True)),
            len({name[0] for name in names}) < len(names),
        )

    def agent_entries(self) -> list[entries.Entry]:
        """The content of the agents' file."""
        return [
            {
                **one.values,
                **self.custom.get(one.name, {}),
                "agent_ref": {"name": one.name},
                **one.across,
                **one.coverage,
            }
            for one in self.agents
        ]

    def repeat_entries(self) -> list[entries.Entry]:
        """The content of the repeats' file."""
        return [{"agent_ref": {"name": one.name}, **entry} for one in self.agents for entry in one.by_repeat]


def profiled(
    inputs: Path,
    rollouts: Path,
    allow_partial: bool = False,
    duplicates: Duplicates = "error",
    hook: Hook | None = None,
) -> Profiled:
    """Read both files and join them; a run that is not complete is refused unless `allow_partial`."""
    table = Table()
    expected, about_inputs = files.read_inputs(inputs, table.keys.agents)
    about_results = files.read_results(rollouts, table)
    joined = joining.joined(expected.keys, table.keys, (inputs, rollouts), duplicates)
    notices = [*about_inputs.notices(), *about_results.notices()]
    for what, settled in (("inputs", joined.inputs), ("rollouts", joined.results)):
        if settled.n_copies:
            notices.append(f"{settled.n_copies:,} {what} stand there again, word for word; kept once")
        if settled.n_overruled:
            notices.append(
                f"{settled.n_overruled:,} {what} contradict another of their key; the {duplicates} was kept"
            )
    if joined.missing.size and not allow_partial:
        unread = [f"line {number}" for number, _ in about_results.bad[:SHOWN]]
        raise UsageError(
            f"{joined.missing.size:,} of {joined.inputs.rows.size:,} rollouts are missing from {rollouts}: "
            + joining.listed(expected.keys, joined.missing)
            + (f"; {len(about_results.bad)} lines could not be read: {', '.join(unread)}" if unread else ""),
            "finish the run with `--resume`, or profile what is there with --allow-partial",
            "rollouts-missing",
        )
    names = table.keys.agents.texts
    told = entries.Rows(table, joined.results.rows, joined.result_agent, names)
    agents = list(entries.agents(told, _by_repeat(expected, joined, told)))
    custom = hook.by_agent(told, [rollouts]) if hook else {}
    return Profiled(rollouts, told, expected, joined, agents, custom, notices)


def _by_repeat(expected: files.Inputs, joined: Joined, told: entries.Rows) -> dict[int, dict[int, int]]:
    """How many inputs each agent has of each repeat, those left out whose rollout is masked."""
    counts: dict[int, dict[int, int]] = {}
    for rows, keys, agent, step in (
        (joined.inputs.rows, expected.keys, joined.input_agent, 1),
        (told.masked(), told.table.keys, told.agent, -1),
    ):
        repeat, whose = keys.repeat[rows], agent[rows]
        pair = joining.ids(whose, repeat)
        n_pairs = np.bincount(pair)
        first = np.zeros(n_pairs.size, np.int64)
        first[pair] = np.arange(pair.size)  # any row of the pair tells its agent and repeat
        for at, n in zip(first.tolist(), n_pairs.tolist(), strict=True):
            of_agent = counts.setdefault(int(whose[at]), {})
            of_agent[int(repeat[at])] = of_agent.get(int(repeat[at]), 0) + step * n
    return counts
