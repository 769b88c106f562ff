"""Write the sidecars of a simulated run: materialised inputs, aggregate, profile, failures."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

import msgspec
import numpy as np

from tools.planted.planted_faults import Draft, key
from tools.planted.planted_rows import Item, encode

# Gym appends its own keys after the verifier's, in this order.
LAST = ("_ng_failure_class", "_ng_failure_judge_error", "_ng_task_index", "_ng_rollout_index", "agent_ref",
        "_ng_attempt_index")  # fmt: skip


def lines(rows: Iterable[Item]) -> bytes:
    return b"".join(encode(ordered(row)) + b"\n" for row in rows)


def ordered(row: Item) -> Item:
    return {name: row[name] for name in [*(n for n in row if n not in LAST), *(n for n in LAST if n in row)]}


def sidecars(draft: Draft) -> dict[str, bytes]:
    """File endings and contents; a killed run has no metrics, and neither has one without rows."""
    drafts = (draft, *draft.others)
    files = {
        "_materialized_inputs.jsonl": b"".join(encode(row) + b"\n" for each in drafts for row in each.inputs),
        "_failures.jsonl": lines(row for each in drafts for row in each.failures),
    }
    measured = [each for each in drafts if each.rows]
    if measured and draft.torn is None:
        metrics = encode([aggregate(each) for each in measured])
        files["_aggregate_metrics.json"] = msgspec.json.format(metrics, indent=2)
        profiles = [entry for each in measured for entry in profile(each, named=len(measured) > 1)]
        profiles.sort(key=lambda entry: entry["_ng_task_index"])
        files["_reward_profiling.jsonl"] = b"".join(encode(entry) + b"\n" for entry in profiles)
    return files


def aggregate(draft: Draft) -> Item:
    rows = measured_rows(draft)
    metrics = statistics(rows)
    agent = {"name": draft.agent}
    groups = []
    for index, group in by_task(rows).items():
        sample = {"agent_ref": {"name": "agent"}}
        groups.append(
            {"_ng_task_index": index, **statistics(group), "sample": sample, **completion(group, len(group))}
        )
    means = {name: value for name, value in metrics.items() if name.startswith("mean/")}
    return {"agent_ref": agent, "agent_metrics": metrics, "key_metrics": means, "group_level_metrics": groups}


def profile(draft: Draft, *, named: bool) -> Iterator[Item]:
    """One entry per task with a row; `named` where several agents share the file."""
    expected = by_task(draft.inputs)
    for index, group in by_task(measured_rows(draft)).items():
        sample = {name: value for name, value in expected[index][0].items() if not name.startswith("_ng_")}
        entry = {"_ng_task_index": index, **statistics(group), "sample": sample}
        agent = {"agent_ref": {"name": draft.agent}} if named else {}
        yield {**entry, **completion(group, len(expected[index])), **agent}


def measured_rows(draft: Draft) -> list[Item]:
    return sorted((row for row in draft.rows if not row.get("mask_sample")), key=key)


def by_task(rows: Iterable[Item]) -> dict[int, list[Item]]:
    groups: dict[int, list[Item]] = {}
    for row in rows:
        groups.setdefault(row["_ng_task_index"], []).append(row)
    return groups


def completion(group: Sequence[Item], expected: int) -> Item:
    n = len(group)
    return {
        "num_rollouts": n,
        "expected_num_rollouts": expected,
        "missing_num_rollouts": max(0, expected - n),
        "reward_profile_completion_pct": 100.0 * n / expected,
        "rollout_infos": [rollout_info(row) for row in group],
    }


def rollout_info(row: Item) -> Item:
    index, repeat = key(row)
    found = {name: int(value) if isinstance(value, bool) else value for name, value in numbers(row).items()}
    info = {"rollout_id": f"{index}:{repeat}", "_ng_task_index": index, "_ng_rollout_index": repeat}
    return {**info, "reward": row["reward"], **found}


def numbers(row: Item) -> Item:
    """The numeric columns of a row: its own top-level numbers, then those of its usage."""
    used = row["response"]["usage"] or {}
    own = {name: value for name, value in row.items() if name[0] != "_" and name != "mask_sample"}
    return {name: value for name, value in {**own, **used}.items() if isinstance(value, bool | int | float)}


def statistics(rows: Sequence[Item]) -> dict[str, float]:
    """The five statistics of each column, grouped by statistic; what is undefined is left out."""
    found = [numbers(row) for row in rows]
    columns = {name: None for row in found for name in row}
    tables: dict[str, dict[str, float]] = {name: {} for name in ("mean", "max", "min", "median", "std")}
    for column in columns:
        here = np.array([row[column] for row in found if column in row], dtype=np.float64)
        # Gym sums in pairs with 0 for what is absent; the bytes depend on it.
        filled = np.array([row.get(column, 0.0) for row in found], dtype=np.float64)
        mean = float(filled.sum() / len(here))
        tables["mean"][column] = mean
        tables["max"][column] = float(here.max())
        tables["min"][column] = float(here.min())
        tables["median"][column] = float(np.median(here))
        if len(here) > 1:
            squares = np.array([(mean - row[column]) ** 2 if column in row else 0.0 for row in found])
            tables["std"][column] = math.sqrt(float(squares.sum()) / (len(here) - 1))
        elif len(rows) == 1:
            tables["std"][column] = 0.0
    return {f"{name}/{column}": value for name, table in tables.items() for column, value in table.items()}
