"""The example in the repository: a whole package of two scripted models that validates."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path

import msgspec
import pytest

from blade import pipeline
from blade.cli.demo import SCRIPTS, ordered
from blade.package import drafts
from blade.package.drafts import scaffold
from blade.tables.index import Silent
from blade_eval.profile import profiled
from blade_eval.runner.benchmark_run import carried_out
from blade_eval.runner.progress import Progress
from blade_eval.verifiers.workplace_assistant import __main__ as office
from blade_eval.verifiers.workplace_assistant.quests import quests, rows
from tests.conftest import ROOT, Blade

NAME = "workplace_assistant"
EXAMPLE = ROOT / "benchmarks" / NAME
TASKS = tuple(quests())[2::4]  # all of them would make the package four times as large
PARTS = ("skill", "rollouts")  # made by programs; the golden reports are a person's


def tree(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for part in PARTS
        for path in sorted((folder / part).rglob("*"))
        if path.is_file()
    }


def test_its_rollouts_and_skill_are_what_init_drafts_today(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drafts, "_anchors", lambda *_: {})  # they are not compared here, and take the longest
    today, loaded = tmp_path / NAME, pipeline.load([str(path) for path in write_runs(tmp_path / "runs")], Silent())
    scaffold(today, loaded, None, None, Silent())
    if os.environ.get("BLADE_GOLDEN") == "write":
        for part in PARTS:
            shutil.rmtree(EXAMPLE / part, ignore_errors=True)
            shutil.copytree(today / part, EXAMPLE / part)
    made, kept = tree(today), tree(EXAMPLE)
    assert set(made) == set(kept)
    changed = [name for name in kept if made[name] != kept[name]]
    assert not changed, f"{changed} changed: run `make golden` and read the diff"


def test_it_is_ready(blade: Blade) -> None:
    result = blade("package", "validate", "--benchmark-dir", EXAMPLE, "--phase", "all")
    assert result.code == 0, result.out
    assert "[FAIL]" not in result.out
    checklist = result.out.split("Readiness checklist\n")[1].splitlines()
    assert len(checklist) == 7
    baselines = "A shallow baseline exists for each golden report (comparison reports need none)"
    assert checklist[5] == f"[PASS] {baselines}"
    assert checklist[6].startswith("[PASS] Sanitised")


def write_runs(folder: Path) -> list[Path]:
    """Two runs of the same tasks, evaluated and profiled, each with its benchmark facts."""
    found = []
    for script in SCRIPTS:
        here = folder / script
        here.mkdir(parents=True)
        tasks = here / "tasks.jsonl"
        tasks.write_bytes(msgspec.json.Encoder().encode_lines(rows(TASKS)))
        (here / "blade.toml").write_bytes(office.datasets()["blade.toml"])
        order = ordered(tasks, here / "rollouts.jsonl", script)
        done = asyncio.run(carried_out(order, Progress(is_quiet=True), print))
        profiled(done.places.materialized, done.places.rollouts).write()
        found.append(done.places.rollouts)
    return found
