"""Profile a run: statistics of its tasks, agents and repeats, from materialised inputs and rollouts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from blade.errors import Unreadable, UsageError
from blade_eval.profile import row_table, scores
from blade_eval.profile.row_table import REPEAT, SHOWN, TASK, Codes, Ints, Row, Table, beside, encoded
from blade_eval.profile.scores import Hook, Score
from blade_eval.profile.statistics import Agent, Rollouts
from blade_eval.runner.run_files import written

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
        return list(self.asked.loc[~self.asked["came"], PAIR].itertuples(index=False, name=None))

    def scores(self, threshold: float = 1.0) -> list[Score]:
        return scores.scores(self.rollouts, threshold)

    def write(self) -> tuple[Path, Path, Path]:
        tasks, agents, repeats = (beside(self.path, ending) for ending in (PROFILE, AGENTS, REPEATS))
        with written(tasks) as file:
            file.writelines(encoded(entry) + b"\n" for entry in self.task_entries())
        for path, entries in ((agents, self.agent_entries()), (repeats, self.repeat_entries())):
            with written(path) as file:
                file.write(encoded(entries))
        return tasks, agents, repeats

    def task_entries(self) -> Iterator[Row]:
        """One for each task (and agent, where a task has several) with a measured rollout; the sample is the first such input."""
        masked = self.rollouts.rows[self.rollouts.rows["masked"] != 0]
        keys, masked_keys = numbered([self.asked, masked], KEY)
        rows = self.asked[~np.isin(keys, masked_keys)]
        expected = rows.groupby(WHOSE).size().to_dict()
        first = rows[rows["came"]].reset_index().groupby(WHOSE)["index"].first().to_dict()
        all_keys = self.asked[WHOSE].drop_duplicates()
        shares_tasks = all_keys["task"].nunique() < len(all_keys)
        for task, agent, mine, values in self.rollouts.groups():
            sample = self.inputs.row(first[task, agent])
            for key in (TASK, REPEAT):
                sample.pop(key, None)
            named = self.rollouts.names[agent] if shares_tasks else None
            yield self.rollouts.task_entry(task, mine, values, sample, expected[task, agent], named)

    def agent_entries(self) -> list[Row]:
        return [
            {
                **agent.values, **self.custom.get(agent.name, {}), "agent_ref": {"name": agent.name},
                **agent.across, **agent.coverage,
            }
            for agent in self.agents
        ]  # fmt: skip

    def repeat_entries(self) -> list[Row]:
        return [{"agent_ref": {"name": agent.name}, **entry} for agent in self.agents for entry in agent.by_repeat]


def profiled(
    inputs: Path, rollouts: Path, allow_partial: bool = False, duplicates: Duplicates = "error",
    hook: Hook | None = None,
) -> Profiled:
    """Read both files and join them; a run that is not complete is refused unless `allow_partial`."""
    expected = Table()
    if unread := expected.read(inputs, row_table.key_of).bad:
        more = f" ({len(unread)} such lines)" if len(unread) > 1 else ""
        what = f"{inputs}, line {unread[0][0]}: {unread[0][1]}{more}"
        hint = "without it nobody knows what was expected: restore the file, or remove what is no row"
        raise Unreadable(what, hint, "unreadable-line")
    table = Table(expected.agents)
    unread = table.read(rollouts, row_table.result_of, keeps_lines=hook is not None).bad
    asked_rows, rows = expected.frame(), table.frame()
    own(asked_rows, rows, table.agents)
    whole = settled(expected, asked_rows, duplicates, "input")
    results = settled(table, rows, duplicates, "rollout")
    joined = whole.rows.assign(came=matched(whole.rows, results.rows, (inputs, rollouts)))
    notices = [*expected.notices(), *table.notices()]
    notices += [*whole.notices("inputs", duplicates), *results.notices("rollouts", duplicates)]
    missing = joined[~joined["came"]]
    if len(missing) and not allow_partial:
        numbers = ", ".join(f"line {number}" for number, _ in unread[:SHOWN])
        what = f"{len(missing):,} of {len(joined):,} rollouts are missing from {rollouts}: {listed(missing)}"
        what += f"; {len(unread)} lines could not be read: {numbers}" if unread else ""
        hint = "finish the run with `--resume`, or profile what is there with --allow-partial"
        raise UsageError(what, hint, "rollouts-missing")
    reported = Rollouts(table, results.rows)
    custom = hook.by_agent(reported) if hook else {}
    return Profiled(rollouts, expected, joined, reported, reported.by_agent(), custom, notices)


Duplicates = Literal["error", "first", "last"]
NAMELESS = "agent"  # who made a rollout where neither it nor its input says so
PAIR, WHOSE, KEY = ["task", "repeat"], ["task", "agent"], ["task", "repeat", "agent"]


class Settled(NamedTuple):
    rows: pd.DataFrame  # one of each key, by task, repeat and the agent's name
    n_copies: int  # further lines with the same key and the same content
    n_overruled: int  # and with other content, given up because the caller chose

    def notices(self, what: str, duplicates: Duplicates) -> list[str]:
        copies = f"{self.n_copies:,} {what} stand there again, word for word; kept once"
        others = f"{self.n_overruled:,} {what} contradict another of their key; the {duplicates} was kept"
        return [text for n, text in ((self.n_copies, copies), (self.n_overruled, others)) if n]


def numbered(frames: Sequence[pd.DataFrame], columns: list[str]) -> list[Ints]:
    """Small numbers for the rows of several frames, equal where all columns are equal."""
    import pandas as pd

    together = pd.concat([frame[columns] for frame in frames])
    ids = together.groupby(columns).ngroup().to_numpy() if len(together) else np.zeros(0, np.int64)
    return np.split(ids, np.cumsum([len(frame) for frame in frames])[:-1])


def own(inputs: pd.DataFrame, results: pd.DataFrame, agents: Codes) -> None:
    """Say of every row whose it is. A rollout that alone has its task and repeat says so for its input too.

    Where all rollouts of an agent's inputs name one other agent, inputs without a rollout are that one's.
    """
    input_pair, result_pair = numbered([inputs, results], PAIR)
    whose, by = inputs["agent"].to_numpy().copy(), results["agent"].to_numpy().copy()
    only, several = _named(whose, input_pair)
    by = _nobody_named(np.where(by < 0, only.reindex(result_pair, fill_value=-1), by), agents)
    maker = _named(by, result_pair)[0].reindex(input_pair, fill_value=-1).to_numpy()
    is_alone = ~several.reindex(input_pair, fill_value=False).to_numpy()
    named = is_alone & (maker >= 0)
    renamed = np.where(named, maker, whose)
    for code in np.unique(whose[(whose >= 0) & is_alone & ~named]):
        others = np.unique(maker[named & (whose == code)])
        if others.size == 1:
            renamed[(whose == code) & is_alone & ~named] = others[0]
    if (renamed < 0).any() and (makers := np.unique(by)).size == 1:
        renamed[renamed < 0] = makers[0]
    inputs["agent"], results["agent"] = _nobody_named(renamed, agents), by


def own_failures(inputs: pd.DataFrame, failures: pd.DataFrame, agents: Codes) -> None:
    """Whose each failure is: who alone was asked for its task and repeat, else who it names."""
    input_pair, pair = numbered([inputs, failures], PAIR)
    only = _named(inputs["agent"].to_numpy(), input_pair)[0].reindex(pair, fill_value=-1).to_numpy()
    failures["agent"] = _nobody_named(np.where(only >= 0, only, failures["agent"]), agents)


def _nobody_named(codes: Ints, agents: Codes) -> Ints:
    """The codes, with that of nobody in particular where there is none."""
    if (codes < 0).any():
        codes[codes < 0] = agents.setdefault(NAMELESS, len(agents) - 1)
    return codes


def _named(agent: Ints, pair: Ints) -> tuple[pd.Series[int], pd.Series[bool]]:
    """Of each pair that names an agent the only one (-1 where there are several), and are there several."""
    import pandas as pd

    by_pair = pd.Series(agent[agent >= 0]).groupby(pair[agent >= 0])
    least, most = by_pair.min(), by_pair.max()
    return most.where(least == most, -1), least != most


def settled(table: Table, frame: pd.DataFrame, duplicates: Duplicates, what: str) -> Settled:
    """One row of each key; copies are counted, rows that contradict each other refused or chosen from."""
    names = row_table.names_of(table.agents)
    rank = np.argsort(np.argsort(np.array([*names[:-1], ""], object), kind="stable"))
    ordered = frame.iloc[
        np.lexsort((frame.index, rank[frame["agent"].to_numpy()], frame["repeat"], frame["task"]))
    ]
    again = ordered.duplicated(KEY).to_numpy()
    if not again.any():
        return Settled(ordered, 0, 0)
    first = ordered.index.to_numpy()[np.maximum.accumulate(np.where(again, 0, np.arange(again.size)))]
    differs = ordered["content"].to_numpy() != frame["content"].to_numpy()[first]
    n_other = int(differs.sum())
    if n_other and duplicates == "error":

        def place(row: int) -> str:
            line = frame["line"][row]
            return f"line {line} of {table.paths[frame['source'][row]]}" if table.paths else f"row {line}"

        pairs = zip(first[differs][:SHOWN], ordered.index[differs][:SHOWN], strict=True)
        shown = [f"{key_text(frame, row)} in {place(row)} and in {place(other)}" for row, other in pairs]
        more = f", and {n_other - SHOWN} more" if n_other > SHOWN else ""
        what = f"the same {what} stands there twice with different content: {'; '.join(shown)}{more}"
        hint = "remove one of each pair, or choose with --duplicates first or --duplicates last"
        raise Unreadable(what, hint, "contradicting-duplicates")
    rows = ordered.drop_duplicates(KEY, keep="last" if duplicates == "last" else "first")
    return Settled(rows, int(again.sum()) - n_other, n_other)


def matched(inputs: pd.DataFrame, results: pd.DataFrame, paths: tuple[Path, Path]) -> NDArray[np.bool_]:
    """Which inputs have their rollout; a rollout that nobody asked for is an error."""
    input_keys, keys = numbered([inputs, results], KEY)
    extra = results[~np.isin(keys, input_keys)]
    if len(extra):
        n = f"{len(extra):,} rollout{'s' if len(extra) > 1 else ''}"
        what = f"{paths[1]} holds {n} of which {paths[0]} knows nothing: {listed(extra, with_lines=True)}"
        raise Unreadable(what, "give the materialized inputs of the same run", "rollouts-without-inputs")
    return np.isin(input_keys, keys)


def key_text(frame: pd.DataFrame, row: int) -> str:
    """The key of a row as people write it: task:repeat."""
    return f"{frame['task'][row]}:{frame['repeat'][row]}"


def listed(frame: pd.DataFrame, with_lines: bool = False) -> str:
    shown = (
        key_text(frame, row) + (f" (line {frame['line'][row]})" if with_lines else "") for row in frame.index[:SHOWN]
    )
    return ", ".join(shown) + (f" and {len(frame) - SHOWN:,} more" if len(frame) > SHOWN else "")
