"""The package of the repository: two scripted models on every fourth task of the office."""

from __future__ import annotations

import asyncio
from pathlib import Path

from blade import pipeline
from blade.cli.demo import SCRIPTS, ordered
from blade.package.drafts import scaffold
from blade.tables.index import Silent
from blade_eval.profile import profiled
from blade_eval.runner.benchmark_run import carried_out
from blade_eval.runner.progress import Progress
from blade_eval.verifiers.workplace_assistant import __main__ as office
from blade_eval.verifiers.workplace_assistant.quests import quests, rows

NAME = "workplace_assistant"
TASKS = tuple(quests())[2::4]  # all of them would make the package four times as large


def write_runs(folder: Path) -> list[Path]:
    """Two runs of the same tasks, evaluated and profiled, each with its benchmark facts."""
    found = []
    for script in SCRIPTS:
        here = folder / script
        here.mkdir(parents=True)
        tasks = here / "tasks.jsonl"
        tasks.write_bytes(office.lines(rows(TASKS)))
        (here / "blade.toml").write_bytes(office.datasets()["blade.toml"])
        order = ordered(tasks, here / "rollouts.jsonl", script)
        done = asyncio.run(carried_out(order, Progress(is_quiet=True), print))
        profiled(done.places.materialized, done.places.rollouts).write()
        found.append(done.places.rollouts)
    return found


def drafted(folder: Path) -> Path:
    """The package as `blade package init` drafts it from these runs."""
    loaded = pipeline.load([str(path) for path in write_runs(folder / "runs")], Silent())
    scaffold(folder / NAME, loaded, None, None, Silent())
    return folder / NAME
