"""Profile a run with data frames, all rows in memory and one `apply` a group: what ours is compared with."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import orjson
import pandas as pd

TASK, REPEAT, AGENT = "_ng_task_index", "_ng_rollout_index", "agent_ref"
STATISTICS = ("mean", "max", "min", "median", "std")


def profiled(inputs: Path, rollouts: Path, output: Path) -> int:
    """Write a line for each task and the statistics of each agent; how many tasks there were."""
    results = {_key(row): row for row in map(orjson.loads, rollouts.read_bytes().splitlines())}
    rows = [orjson.loads(line) for line in inputs.read_bytes().splitlines()]
    if set(results) != {_key(row) for row in rows}:
        raise RuntimeError("the run is not complete")
    samples: dict[int, Any] = {}
    for row in rows:
        task = row.pop(TASK)
        row.pop(REPEAT)
        samples.setdefault(task, row)
    ordered = [results[key] for key in sorted(results)]
    infos: dict[int, list[Any]] = {}
    for row in ordered:
        infos.setdefault(row[TASK], []).append(_info(row))
    frame = pd.DataFrame([{TASK: row[TASK], AGENT: row[AGENT]["name"], **_numbers(row)} for row in ordered])
    by_task = frame.drop(columns=AGENT).groupby(TASK).apply(_described, include_groups=False)
    by_agent = frame.drop(columns=TASK).groupby(AGENT).apply(_described, include_groups=False)
    with output.open("wb") as file:
        for task, statistics in by_task.items():
            counts = {"num_rollouts": len(infos[task]), "rollout_infos": infos[task]}
            file.write(orjson.dumps({TASK: task, **statistics, "sample": samples[task], **counts}) + b"\n")
    output.with_suffix(".agents").write_bytes(orjson.dumps(by_agent.to_dict()))
    return len(by_task)


def _key(row: dict[str, Any]) -> tuple[int, int]:
    return row[TASK], row[REPEAT]


def _numbers(row: dict[str, Any]) -> dict[str, Any]:
    values = {**row, **(row["response"].get("usage") or {})}
    return {
        name: value for name, value in values.items() if isinstance(value, int | float) and name[0] != "_"
    }


def _info(row: dict[str, Any]) -> dict[str, Any]:
    task, repeat = _key(row)
    return {"rollout_id": f"{task}:{repeat}", TASK: task, REPEAT: repeat, **_numbers(row)}


def _described(group: pd.DataFrame) -> dict[str, float]:
    """The statistics of each column as a frame, what is undefined left out, grouped by statistic."""
    results = pd.DataFrame({name: getattr(group, name)() for name in STATISTICS})
    if results["std"].isna().all():
        results["std"] = results["std"].where(group.isna().any(), 0.0)
    return {
        f"{name}/{column}": float(value)
        for name in STATISTICS
        for column, value in results[name].dropna().items()
    }


if __name__ == "__main__":
    print(profiled(*(Path(name) for name in sys.argv[1:4])))
