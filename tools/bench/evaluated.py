"""The budgets of the wing that evaluates: the catalogue, and the profile of many light rows."""

from __future__ import annotations

import json
import statistics
from functools import partial
from pathlib import Path

from tools import planted
from tools.bench import measurements
from tools.bench.bench_files import Files
from tools.bench.measurements import Line, against, below

PROFILE = (
    "from pathlib import Path; from blade_eval import profile; "
    "profile.profiled(Path({!r}), Path({!r})).write()"
)


def catalogue(files: Files, runs: int) -> list[Line]:
    """The list of benchmarks, from a fresh process."""
    cache, command = files.cache(), ["-m", "blade", "list", "benchmarks"]
    measurements.fresh(command, cache)
    took = measurements.medians([lambda: measurements.fresh(command, cache)], runs)[0]
    return [below("blade list benchmarks", took * 1000, "ms", 300)]


def profile(files: Files, runs: int) -> list[Line]:
    """The profile of light rows from a fresh process, against one `apply` for each task in another."""
    inputs, rollouts, n_rows = _light(files)
    cache, words = files.cache(), ["--inputs", str(inputs), "--rollouts", str(rollouts)]
    ours = partial(measurements.fresh, ["-m", "blade", "eval", "profile", *words], cache)
    slow = files.folder / "per_group.jsonl"
    theirs = partial(measurements.fresh, ["-m", "tools.bench.per_group", str(inputs), str(rollouts), str(slow)], cache)
    before = [measurements.seconds(ours) for _ in range(runs // 2 + 1)]
    reference = measurements.seconds(theirs)  # takes as long as all of ours: once, between them
    took = statistics.median(before + [measurements.seconds(ours) for _ in range(runs // 2)])
    _same(slow, rollouts.with_name("few_reward_profiling.jsonl"))
    peak = measurements.peak_mb(["-c", PROFILE.format(str(inputs), str(rollouts))], cache)
    return [
        below(f"eval profile of {n_rows:,} light rows", took, "s", 5, f"{peak:,.0f} MB at most"),
        against("eval profile : one apply a task", took, reference, 0.1, "the reference was taken once"),
    ]


def _light(files: Files) -> tuple[Path, Path, int]:
    """A hundred light rows for each megabyte of the usual size, and the inputs they were made from."""
    rollouts, inputs = files.folder / "few.jsonl", files.folder / "few_materialized_inputs.jsonl"
    n_rows = max(8, files.size // 10_000)
    planted.write_light(rollouts, n_rows)
    with rollouts.open("rb") as rows, inputs.open("wb") as out:
        for line in rows:
            row = json.loads(line)
            asked = {name: value for name, value in row.items() if name not in ("response", "reward")}
            out.write(json.dumps(asked, separators=(",", ":")).encode() + b"\n")
    return inputs, rollouts, n_rows


def _same(one: Path, other: Path) -> None:
    """Both ways must find the same statistics, or the comparison says nothing."""
    with one.open("rb") as left, other.open("rb") as right:
        for slow, quick in zip(left, right, strict=True):
            expected, found = json.loads(slow), json.loads(quick)
            if any(found.get(name) != value for name, value in expected.items()):
                raise RuntimeError(f"task {expected['_ng_task_index']} has other statistics in the two ways")
