"""Profile a run: statistics of its tasks, agents and repeats, from materialised inputs and rollouts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from blade.errors import Unreadable, UsageError
from blade_eval.profile import join, row_table, scores
from blade_eval.profile.join import Duplicates
from blade_eval.profile.row_table import REPEAT, SHOWN, TASK, Row, Table, beside, encoded, written
from blade_eval.profile.scores import Hook, Score
from blade_eval.profile.statistics import Agent, Rollouts

if TYPE_CHECKING:
    import pandas as pd

PROFILE, AGENTS, REPEATS = "_reward_profiling.jsonl", "_agent_metrics.json", "_repeat_level_metrics.json"


@dataclass
class Profiled:
    """A run that was read and joined; `write` puts its files beside the rollouts."""

    path: Path  # of the rollouts
    inputs: Table
    asked: pd.DataFrame  # the inputs, one of each key, and which of them have their rollout
    rollouts: Rollouts
    agents: list[Agent]
    custom: Mapping[str, Mapping[str, Any]]  # of each agent, what a hook adds
    notices: list[str]

    @property
    def n_expected(self) -> int:
        return len(self.asked)

    @property
    def n_came(self) -> int:
        return len(self.rollouts.rows)

    @property
    def n_masked(self) -> int:
        return self.n_came - len(self.rollouts.measured)

    def tasks(self) -> tuple[int, int, int, int]:
        """How many input rows there are in all; complete, partial, and without any rollout."""
        expected = self.asked.groupby("task").size()
        came = self.rollouts.rows.groupby("task").size().reindex(expected.index, fill_value=0)
        complete, none = int((came >= expected).sum()), int((came == 0).sum())
        return expected.size, complete, expected.size - complete - none, none

    def missing(self) -> list[tuple[int, int]]:
        """The keys of inputs without a rollout."""
        rows = self.asked[~self.asked["came"]]
        return list(zip(rows["task"].tolist(), rows["repeat"].tolist(), strict=True))

    def scores(self, threshold: float = 1.0) -> list[Score]:
        """pass@k and variance of each agent."""
        return scores.scores(self.rollouts, threshold)

    def write(self) -> tuple[Path, Path, Path]:
        """Write the three files, each whole or not at all."""
        tasks, agents, repeats = (beside(self.path, ending) for ending in (PROFILE, AGENTS, REPEATS))
        with written(tasks) as file:
            file.writelines(encoded(entry) + b"\n" for entry in self.task_entries())
        with written(agents) as file:
            file.write(encoded(self.agent_entries()))
        with written(repeats) as file:
            file.write(encoded(self.repeat_entries()))
        return tasks, agents, repeats

    def task_entries(self) -> Iterator[Row]:
        """One for every task with a measured rollout; for every task and agent where a task has several.

        The sample is the first input whose rollout was measured.
        """
        masked = self.rollouts.rows[self.rollouts.rows["masked"] != 0]
        asked, out = join.numbered([self.asked, masked], join.KEY)
        rows = self.asked[~np.isin(asked, out)]
        whose = list(zip(rows["task"].tolist(), rows["agent"].tolist(), strict=True))
        expected: dict[tuple[int, int], int] = {}
        first: dict[tuple[int, int], int] = {}
        for key, row, has_come in zip(whose, rows.index.tolist(), rows["came"].tolist(), strict=True):
            expected[key] = expected.get(key, 0) + 1
            if has_come:
                first.setdefault(key, row)
        all_keys = self.asked[["task", "agent"]].drop_duplicates()
        shares_tasks = all_keys["task"].nunique() < len(all_keys)
        for task, agent, mine, values in self.rollouts.groups():
            sample = self._sample(first[task, agent])
            named = self.rollouts.names[agent] if shares_tasks else None
            yield self.rollouts.task_entry(task, mine, values, sample, expected[task, agent], named)

    def _sample(self, row: int) -> Row:
        values = (
            row_table.plain(row_table.Line(0, 0, self.inputs.line(row), True), row_table.Seen(self.path))
            or {}
        )
        return {key: value for key, value in values.items() if key not in (TASK, REPEAT)}

    def agent_entries(self) -> list[Row]:
        """The content of the agents' file."""
        return [
            {
                **agent.values,
                **self.custom.get(agent.name, {}),
                "agent_ref": {"name": agent.name},
                **agent.across,
                **agent.coverage,
            }
            for agent in self.agents
        ]

    def repeat_entries(self) -> list[Row]:
        """The content of the repeats' file."""
        return [
            {"agent_ref": {"name": agent.name}, **entry} for agent in self.agents for entry in agent.by_repeat
        ]


def profiled(
    inputs: Path,
    rollouts: Path,
    allow_partial: bool = False,
    duplicates: Duplicates = "error",
    hook: Hook | None = None,
) -> Profiled:
    """Read both files and join them; a run that is not complete is refused unless `allow_partial`."""
    expected = Table()
    about_inputs = expected.read(inputs, row_table.key_of)
    if about_inputs.bad:
        number, reason = about_inputs.bad[0]
        more = f" ({len(about_inputs.bad)} such lines)" if len(about_inputs.bad) > 1 else ""
        raise Unreadable(
            f"{inputs}, line {number}: {reason}{more}",
            "without it nobody knows what was expected: restore the file, or remove what is no row",
            "unreadable-line",
        )
    table = Table(expected.agents)
    about_results = table.read(rollouts, row_table.result_of, keeps_lines=hook is not None)
    asked, came = expected.frame(), table.frame()
    join.own(asked, came, table.agents)
    names = row_table.names_of(table.agents)
    whole = join.settled(asked, names, [inputs], duplicates, "input")
    results = join.settled(came, names, [rollouts], duplicates, "rollout")
    kept = whole.rows.assign(came=join.matched(whole.rows, results.rows, (inputs, rollouts)))
    notices = [*expected.notices(), *table.notices()]
    notices += [*whole.notices("inputs", duplicates), *results.notices("rollouts", duplicates)]
    missing = kept[~kept["came"]]
    if len(missing) and not allow_partial:
        unread = [f"line {number}" for number, _ in about_results.bad[:SHOWN]]
        raise UsageError(
            f"{len(missing):,} of {len(kept):,} rollouts are missing from {rollouts}: "
            + join.listed(missing)
            + (f"; {len(about_results.bad)} lines could not be read: {', '.join(unread)}" if unread else ""),
            "finish the run with `--resume`, or profile what is there with --allow-partial",
            "rollouts-missing",
        )
    reported = Rollouts(table, results.rows, names)
    custom = hook.by_agent(reported) if hook else {}
    return Profiled(rollouts, expected, kept, reported, reported.by_agent(), custom, notices)
