"""The incumbent's four files from its documented rules, slowly: a data frame, a loop over groups, no columns of ours."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import orjson
import pandas as pd
from scipy import stats

Row = dict[str, Any]
TASK, REPEAT = "_ng_task_index", "_ng_rollout_index"


def files(inputs: Sequence[Row], results: Sequence[Row]) -> dict[str, bytes]:
    """Endings and contents; the run is complete and no key stands there twice."""
    rows = sorted(results, key=lambda row: (row[TASK], row[REPEAT], agent_of(row)))
    measured = [row for row in rows if row.get("mask_sample") is not True]
    encode = orjson.dumps
    repeats = {name: by_repeat(measured, name) for name in agents(measured)}
    metrics = [agent_metrics(rows, measured, name, repeats) for name in agents(rows)]
    return {
        "_reward_profiling.jsonl": b"".join(encode(line) + b"\n" for line in profile(inputs, rows, measured)),
        "_agent_metrics.json": encode(sorted(metrics, key=lambda entry: next(iter(entry)) == "agent_ref")),
        "_repeat_level_metrics.json": encode([entry for entries in repeats.values() for entry in entries]),
    }


def aggregate(results: Sequence[Row]) -> bytes:
    rows = sorted(results, key=lambda row: (row[TASK], row[REPEAT], agent_of(row)))
    found = []
    for name in dict.fromkeys(agent_of(row) for row in rows):
        mine = [row for row in rows if agent_of(row) == name]
        measured = [row for row in mine if row.get("mask_sample") is not True]
        whole = frame(measured)
        metrics = statistics(whole) if measured else {}
        repeats = [{k: v for k, v in entry.items() if k != "agent_ref"} for entry in by_repeat(measured, name)]
        order = dict.fromkeys(k for entry in repeats for k in entry)
        metrics = {**metrics, **across(repeats, list(order)), **coverage(mine)}
        if measured:
            metrics["num_repeats"] = len({row[REPEAT] for row in mine})
        key = {**{k: v for k, v in metrics.items() if k.startswith("mean/")}, **coverage(mine)}
        groups = []
        for task in sorted({row[TASK] for row in measured}):
            of_task = [row for row in measured if row[TASK] == task]
            sample = {"agent_ref": {"name": "agent"}}
            values = statistics(whole.loc[[row[TASK] == task for row in measured]])
            groups.append({TASK: task, **values, "sample": sample, **completion(of_task, len(of_task))})
        found.append({"agent_ref": {"name": name}, "agent_metrics": metrics, "key_metrics": key,
                      "group_level_metrics": groups, "repeat_level_metrics": repeats})  # fmt: skip
    return orjson.dumps(found, option=orjson.OPT_INDENT_2)


def agent_of(row: Row) -> str:
    return str(row["agent_ref"]["name"])


def agents(rows: Sequence[Row]) -> list[str]:
    return sorted({agent_of(row) for row in rows})


def numbers(row: Row) -> Row:
    own = {k: v for k, v in row.items() if not k.startswith("_") and k != "mask_sample"}
    used = (row.get("response") or {}).get("usage") or {}
    kept = {k: v for k, v in {**own, **used}.items() if isinstance(v, bool | int | float)}
    return {k: int(v) if isinstance(v, bool) else v for k, v in kept.items()}


def frame(rows: Sequence[Row]) -> pd.DataFrame:
    return pd.DataFrame([numbers(row) for row in rows], index=range(len(rows)))


def statistics(group: pd.DataFrame) -> dict[str, float]:
    tables = {name: getattr(group, name)() for name in ("mean", "max", "min", "median", "std")}
    if tables["std"].isna().all():
        tables["std"] = tables["std"].where(group.isna().any(), 0.0)
    values = {f"{name}/{column}": float(value) for name, table in tables.items() for column, value in table.items()}
    return {name: value for name, value in values.items() if not math.isnan(value)}


def completion(rows: Sequence[Row], expected: int) -> Row:
    infos = []
    for row in rows:
        told = (row.get("response") or {}).get("usage") or {}
        usage = {k: v for k, v in told.items() if isinstance(v, int | float)}
        info = {"rollout_id": f"{row[TASK]}:{row[REPEAT]}", TASK: row[TASK], REPEAT: row[REPEAT]}
        if "reward" in row:
            info["reward"] = row["reward"]
        infos.append({**info, **usage, **{k: v for k, v in numbers(row).items() if k not in (*usage, "reward")}})
    n = len(rows)
    return {"num_rollouts": n, "expected_num_rollouts": expected, "missing_num_rollouts": expected - n,
            "reward_profile_completion_pct": 100.0 * n / expected, "rollout_infos": infos}  # fmt: skip


def profile(inputs: Sequence[Row], rows: Sequence[Row], measured: Sequence[Row]) -> list[Row]:
    whole = frame(measured)
    shared = any(len({agent_of(r) for r in rows if r[TASK] == task}) > 1 for task in {r[TASK] for r in rows})
    lines = []
    for task, name in sorted({(row[TASK], agent_of(row)) for row in measured}):
        here = [row[TASK] == task and agent_of(row) == name for row in measured]
        group = [row for row, is_here in zip(measured, here, strict=True) if is_here]
        first = next(row for row in inputs if row[TASK] == task and agent_of(row) == name)
        sample = {k: v for k, v in first.items() if k not in (TASK, REPEAT)}
        named = {"agent_ref": {"name": name}} if shared else {}
        values = statistics(whole.loc[here])
        lines.append({TASK: task, **values, **named, "sample": sample, **completion(group, len(group))})
    return lines


def agent_metrics(rows: Sequence[Row], measured: Sequence[Row], name: str, repeats: dict[str, list[Row]]) -> Row:
    mine = [agent_of(row) == name for row in measured]
    values = statistics(frame(measured).loc[mine]) if any(mine) else {}
    order = dict.fromkeys(k for entries in repeats.values() for entry in entries for k in entry)
    spread = across(repeats.get(name, []), list(order))
    return {**values, "agent_ref": {"name": name}, **spread, **coverage([r for r in rows if agent_of(r) == name])}


def by_repeat(measured: Sequence[Row], name: str) -> list[Row]:
    mine = [row for row in measured if agent_of(row) == name]
    entries = []
    for repeat in sorted({row[REPEAT] for row in mine}):
        rows = [row for row in mine if row[REPEAT] == repeat]
        group = frame(rows)
        gone = len({row[TASK] for row in mine}) - len(rows)
        entry = {"agent_ref": {"name": name}, REPEAT: repeat, "sample_count": len(rows), "missing_count": gone}
        for column in sorted(group.columns):
            entry |= {f"{k}/{column}": float(v) for k, v in spread_of(group[column]).items() if not math.isnan(v)}
        entries.append(entry)
    return entries if len(entries) > 1 else []


def spread_of(values: pd.Series[Any]) -> dict[str, float]:
    values = values.dropna()
    n, mean, std = len(values), values.mean(), values.std() if len(values) > 1 else 0.0
    sem = std / max(n, 1) ** 0.5
    found = {"mean": mean, "median": values.median(), "std": std, "sem": sem, "min": values.min(),
             "max": values.max(), "p25": values.quantile(0.25), "p75": values.quantile(0.75)}  # fmt: skip
    if n > 1:
        half = stats.t.ppf(0.975, n - 1) * sem if sem else 0.0
        found |= {"ci_low_95": mean - half, "ci_high_95": mean + half}
    return found


def across(entries: Sequence[Row], order: Sequence[str]) -> dict[str, float]:
    found: dict[str, float] = {}
    for metric in (k for k in order if k.startswith("mean/") and any(k in entry for entry in entries)):
        told = spread_of(pd.Series([entry[metric] for entry in entries if metric in entry], dtype=float))
        told["se"] = told.pop("sem")
        for name in ("mean", "median", "std", "min", "max", "se", "ci_low_95", "ci_high_95"):
            if name in told and not math.isnan(told[name]):
                found[f"{name}_across_repeats/{metric}"] = float(told[name])
    return found


def coverage(rows: Sequence[Row]) -> dict[str, int]:
    masked = [row for row in rows if row.get("mask_sample") is True]
    if not masked:
        return {}
    measured = {row[TASK] for row in rows if row not in masked}
    return {
        "coverage/measured_rollouts": len(rows) - len(masked), "coverage/masked_rollouts": len(masked),
        "coverage/measured_tasks": len(measured), "coverage/fully_masked_tasks": len({row[TASK] for row in masked} - measured),
    }
