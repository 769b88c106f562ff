"""Match the rollouts of a run to the inputs they were made from, and find the keys that stand there twice."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from blade.errors import Unreadable
from blade_eval.profile.row_table import SHOWN, Codes, Ints

if TYPE_CHECKING:
    import pandas as pd

Duplicates = Literal["error", "first", "last"]
NAMELESS = "agent"  # who made a rollout where neither it nor its input says so
PAIR, KEY = ["task", "repeat"], ["task", "repeat", "agent"]


class Settled(NamedTuple):
    rows: pd.DataFrame  # one of each key, by task, repeat and the agent's name
    n_copies: int  # further lines with the same key and the same content
    n_overruled: int  # and with other content, given up because the caller chose

    def notices(self, what: str, duplicates: Duplicates) -> list[str]:
        """What was left out."""
        notices = []
        if self.n_copies:
            notices.append(f"{self.n_copies:,} {what} stand there again, word for word; kept once")
        if self.n_overruled:
            notices.append(
                f"{self.n_overruled:,} {what} contradict another of their key; the {duplicates} was kept"
            )
        return notices


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
    asked_pair, made_pair = numbered([inputs, results], PAIR)
    asked, made = inputs["agent"].to_numpy().copy(), results["agent"].to_numpy().copy()
    only, several = _named(asked, asked_pair)
    made = np.where(made < 0, only.reindex(made_pair, fill_value=-1), made)
    made[made < 0] = agents.setdefault(NAMELESS, len(agents) - 1) if (made < 0).any() else 0
    maker = _named(made, made_pair)[0].reindex(asked_pair, fill_value=-1).to_numpy()
    is_alone = ~several.reindex(asked_pair, fill_value=False).to_numpy()
    named = is_alone & (maker >= 0)
    renamed = np.where(named, maker, asked)
    for code in np.unique(asked[(asked >= 0) & is_alone & ~named]):
        others = np.unique(maker[named & (asked == code)])
        if others.size == 1:
            renamed[(asked == code) & is_alone & ~named] = others[0]
    if (renamed < 0).any():
        makers = np.unique(made)
        renamed[renamed < 0] = makers[0] if makers.size == 1 else agents.setdefault(NAMELESS, len(agents) - 1)
    inputs["agent"], results["agent"] = renamed, made


def own_failures(inputs: pd.DataFrame, failures: pd.DataFrame, agents: Codes) -> None:
    """Whose each failure is: who alone was asked for its task and repeat, else who it names."""
    asked_pair, pair = numbered([inputs, failures], PAIR)
    only = _named(inputs["agent"].to_numpy(), asked_pair)[0].reindex(pair, fill_value=-1).to_numpy()
    broke = np.where(only >= 0, only, failures["agent"])
    broke[broke < 0] = agents.setdefault(NAMELESS, len(agents) - 1) if (broke < 0).any() else 0
    failures["agent"] = broke


def _named(agent: Ints, pair: Ints) -> tuple[pd.Series[int], pd.Series[bool]]:
    """Of each pair that names an agent the only one (-1 where there are several), and are there several."""
    import pandas as pd

    by_pair = pd.Series(agent[agent >= 0]).groupby(pair[agent >= 0])
    least, most = by_pair.min(), by_pair.max()
    return most.where(least == most, -1), least != most


def settled(
    frame: pd.DataFrame, names: Sequence[str], paths: Sequence[Path], duplicates: Duplicates, what: str
) -> Settled:
    """One row of each key; copies are counted, rows that contradict each other refused or chosen from."""
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
        pairs = zip(first[differs][:SHOWN], ordered.index[differs][:SHOWN], strict=True)
        shown = [
            f"{name(frame, one)} in {_place(frame, one, paths)} and in {_place(frame, other, paths)}"
            for one, other in pairs
        ]
        more = f", and {n_other - SHOWN} more" if n_other > SHOWN else ""
        raise Unreadable(
            f"the same {what} stands there twice with different content: {'; '.join(shown)}{more}",
            "remove one of each pair, or choose with --duplicates first or --duplicates last",
            "contradicting-duplicates",
        )
    rows = ordered.drop_duplicates(KEY, keep="last" if duplicates == "last" else "first")
    return Settled(rows, int(again.sum()) - n_other, n_other)


def matched(inputs: pd.DataFrame, results: pd.DataFrame, paths: tuple[Path, Path]) -> pd.Series[bool]:
    """Which inputs have their rollout; a rollout that nobody asked for is an error."""
    asked, came = numbered([inputs, results], KEY)
    extra = results[~np.isin(came, asked)]
    if len(extra):
        n = f"{len(extra):,} rollout{'s' if len(extra) > 1 else ''}"
        raise Unreadable(
            f"{paths[1]} holds {n} of which {paths[0]} knows nothing: {listed(extra, with_lines=True)}",
            "give the materialized inputs of the same run",
            "rollouts-without-inputs",
        )
    return np.isin(asked, came)


def name(frame: pd.DataFrame, row: int) -> str:
    """The key of a row as people write it: task:repeat."""
    return f"{frame['task'][row]}:{frame['repeat'][row]}"


def _place(frame: pd.DataFrame, row: int, paths: Sequence[Path]) -> str:
    source, line = frame["source"][row], frame["line"][row]
    return f"line {line} of {paths[source]}" if source < len(paths) else f"row {line}"


def listed(frame: pd.DataFrame, with_lines: bool = False) -> str:
    """The first few keys."""
    shown = [
        f"{name(frame, row)} (line {frame['line'][row]})" if with_lines else name(frame, row)
        for row in frame.index[:SHOWN]
    ]
    return ", ".join(shown) + (f" and {len(frame) - SHOWN:,} more" if len(frame) > SHOWN else "")
