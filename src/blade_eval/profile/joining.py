"""Join the rollouts of a run to the inputs they were made from, and say which do not fit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from blade.errors import Unreadable
from blade_eval.profile.reading import SHOWN
from blade_eval.profile.table import Ints, Keys

Bools = NDArray[np.bool_]
Duplicates = Literal["error", "first", "last"]
NAMELESS = "agent"  # who made a rollout where neither it nor its input says so


class Settled(NamedTuple):
    rows: Ints  # ordered by task, repeat, agent; one of each key
    n_copies: int  # further lines with the same key and the same content
    n_overruled: int  # and with other content, given up because the caller chose


class Joined(NamedTuple):
    inputs: Settled
    results: Settled
    input_agent: Ints  # of every input and every result, those that were left out too
    result_agent: Ints
    missing: Ints  # inputs without a rollout


def joined(inputs: Keys, results: Keys, places: tuple[Path, Path], duplicates: Duplicates) -> Joined:
    """Match by task, repeat and, where several agents share these, agent."""
    input_agent, result_agent = owners(inputs, results)
    kept = settled(inputs, input_agent, [places[0]], duplicates, "input")
    came = settled(results, result_agent, [places[1]], duplicates, "rollout")
    n = len(inputs)
    task, repeat = np.r_[inputs.task, results.task], np.r_[inputs.repeat, results.repeat]
    key = ids(task, repeat, np.r_[input_agent, result_agent])
    expected, found = key[:n][kept.rows], key[n:][came.rows]
    extra = came.rows[~np.isin(found, expected)]
    if extra.size:
        raise Unreadable(
            f"{places[1]} holds {_some(extra.size, 'rollout')} of which {places[0]} knows nothing: "
            f"{listed(results, extra, with_lines=True)}",
            "give the materialized inputs of the same run",
            "rollouts-without-inputs",
        )
    return Joined(kept, came, input_agent, result_agent, kept.rows[~np.isin(expected, found)])


def owners(inputs: Keys, results: Keys) -> tuple[Ints, Ints]:
    """Who each row belongs to. A rollout that alone has its task and repeat says so for its input too.

    Where all rollouts of an agent's inputs name one other agent, inputs without a rollout are that one's.
    """
    n = len(inputs)
    pair = ids(np.r_[inputs.task, results.task], np.r_[inputs.repeat, results.repeat])
    asked, made = inputs.agent.copy(), results.agent.copy()
    n_pairs = int(pair.max()) + 1 if pair.size else 0
    made = np.where(made < 0, _only(asked, pair[:n], n_pairs)[pair[n:]], made)
    made[made < 0] = inputs.agents.code(NAMELESS) if (made < 0).any() else 0
    told = _only(made, pair[n:], n_pairs)[pair[:n]]
    is_alone = ~_several(asked, pair[:n], n_pairs)[pair[:n]]
    asked = np.where(is_alone & (told >= 0), told, _renamed(asked, is_alone, told))
    if (asked < 0).any():
        known = np.unique(made)
        asked[asked < 0] = known[0] if known.size == 1 else inputs.agents.code(NAMELESS)
    return asked, made


def _renamed(asked: Ints, is_alone: Bools, told: Ints) -> Ints:
    """Each input's agent, or the one other that all rollouts of the agent's inputs name."""
    renamed = asked.copy()
    for code in np.unique(asked[asked >= 0]).tolist():
        others = np.unique(told[(asked == code) & is_alone & (told >= 0)])
        if others.size == 1:
            renamed[(asked == code) & is_alone] = others[0]
    return renamed


def failed(inputs: Keys, asked: Ints, failures: Keys) -> Ints:
    """Whose each failure is: who alone was asked for its task and repeat, else who it names."""
    n = len(inputs)
    pair = ids(np.r_[inputs.task, failures.task], np.r_[inputs.repeat, failures.repeat])
    only = _only(asked, pair[:n], int(pair.max(initial=-1)) + 1)[pair[n:]]
    broke = np.where(only >= 0, only, failures.agent)
    broke[broke < 0] = inputs.agents.code(NAMELESS) if (broke < 0).any() else 0
    return broke


def _only(agent: Ints, pair: Ints, n_pairs: int) -> Ints:
    """The one agent of each pair; -1 where there is none or several."""
    least, most = _extremes(agent, pair, n_pairs)
    return np.where(least == most, most, -1)


def _several(agent: Ints, pair: Ints, n_pairs: int) -> Bools:
    least, most = _extremes(agent, pair, n_pairs)
    several: Bools = least < most
    return several


def _extremes(agent: Ints, pair: Ints, n_pairs: int) -> tuple[Ints, Ints]:
    named = agent >= 0
    least, most = np.full(n_pairs, 1 << 40, np.int64), np.full(n_pairs, -1, np.int64)
    np.minimum.at(least, pair[named], agent[named])
    np.maximum.at(most, pair[named], agent[named])
    return least, most


def settled(keys: Keys, agent: Ints, places: Sequence[Path], duplicates: Duplicates, what: str) -> Settled:
    """One row of each key; copies are counted, rows that contradict each other refused or chosen from."""
    order = np.lexsort((np.arange(len(keys)), agent, keys.repeat, keys.task))
    key = ids(keys.task, keys.repeat, agent)[order]
    again = np.r_[False, key[1:] == key[:-1]] if order.size else np.zeros(0, bool)
    if not again.any():
        return Settled(order, 0, 0)
    content = keys.content
    starts = np.flatnonzero(~again)
    first = order[starts]
    sizes = np.diff(np.r_[starts, order.size])
    differs = content[order] != np.repeat(content[first], sizes)
    n_other = int(differs.sum())
    if n_other and duplicates == "error":
        raise _contradiction(keys, order, differs, np.repeat(first, sizes), places, what)
    rows = order[starts + sizes - 1] if duplicates == "last" else first
    return Settled(rows, int(again.sum()) - n_other, n_other)


def _contradiction(
    keys: Keys, order: Ints, differs: Ints, first: Ints, places: Sequence[Path], what: str
) -> Unreadable:
    told = []
    for at in np.flatnonzero(differs)[:SHOWN]:
        one, other = int(first[at]), int(order[at])
        told.append(f"{name(keys, one)} in {_place(keys, one, places)} and in {_place(keys, other, places)}")
    n = int(differs.sum())
    more = f", and {n - SHOWN} more" if n > SHOWN else ""
    return Unreadable(
        f"the same {what} stands there twice with different content: {'; '.join(told)}{more}",
        "remove one of each pair, or choose with --duplicates first or --duplicates last",
        "contradicting-duplicates",
    )


def _place(keys: Keys, row: int, places: Sequence[Path]) -> str:
    source, line = keys.place(row)
    return f"line {line} of {places[source]}" if source < len(places) else f"row {line}"


def ids(*columns: Ints) -> Ints:
    """Small numbers, equal where all columns are equal, rising with the first of them."""
    order = np.lexsort(columns[::-1])
    found = np.zeros(order.size, np.int64)
    if order.size:
        new = np.zeros(order.size, bool)
        for column in columns:
            ordered = column[order]
            new[1:] |= ordered[1:] != ordered[:-1]
        found[order] = np.cumsum(new)
    return found


def name(keys: Keys, row: int) -> str:
    """The key of a row as people write it: task:repeat."""
    return f"{keys.task[row]}:{keys.repeat[row]}"


def listed(keys: Keys, rows: Ints, with_lines: bool = False) -> str:
    """The first few keys."""
    told = [
        f"{name(keys, int(row))} (line {keys.place(int(row))[1]})" if with_lines else name(keys, int(row))
        for row in rows[:SHOWN]
    ]
    more = f" and {rows.size - SHOWN:,} more" if rows.size > SHOWN else ""
    return ", ".join(told) + more


def _some(n: int, what: str) -> str:
    return f"{n:,} {what}" if n == 1 else f"{n:,} {what}s"
