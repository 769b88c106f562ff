"""The commands of NeMo Gym's pages, word for word, under `alias gym=blade` in a fresh clone."""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from blade_eval.models.scripted_model import answered
from tests.case_tables import tables
from tests.evaluate import serving
from tests.evaluate.rows import key, rows_of
from tools.model_server import Faults, Policy, Server, echo
from tools.model_server import serving as model_server

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
HEAD = 11000  # the command that starts the servers names no port
KEY = "sk-very-secret-0123456789"

COMMANDS: dict[str, str] = tables(__file__, "verbatim.yaml")


def office(rows: list[dict[str, Any]], script: str) -> Policy:
    """A model that plays the office; which task it is, it knows from the user's words."""
    tasks = {echo(row["responses_create_params"]): row for row in rows}

    return lambda body: answered(body, tasks[echo(body)], {"script": script, "seed": 3})["output"]


class Clone:
    """A fresh clone, and a shell in which `gym` is `blade`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "clone"
        clone = ["git", "clone", "-q", "--depth", "1", ROOT.as_uri(), str(self.folder)]
        subprocess.run(clone, check=True, timeout=120)
        path = folder / "bin"
        path.mkdir()
        gym = path / "gym"
        gym.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m blade "$@"\n', encoding="utf-8")
        gym.chmod(0o755)
        self.environ = {"PATH": f"{path}:{os.environ['PATH']}", "PYTHONPATH": str(self.folder / "src")}
        self.environ |= {"BLADE_CACHE_DIR": str(folder / "cache"), "NO_COLOR": "1"}

    def typed(self, command: str) -> str:
        """What a command prints; it must end well."""
        how: dict[str, Any] = {"cwd": self.folder, "env": {**os.environ, **self.environ}, "timeout": 300}
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, **how)
        assert done.returncode == 0, f"$ {command}\n{done.stdout}\n{done.stderr}"
        assert KEY not in done.stdout + done.stderr
        return done.stdout

    def lines(self, name: str) -> list[dict[str, Any]]:
        return rows_of(self.folder / name)


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Clone:
    if not (ROOT / ".git").exists():
        pytest.skip("not a checkout, so there is nothing to clone")
    return Clone(tmp_path_factory.mktemp("verbatim"))


@pytest.fixture(scope="module")
def model(clone: Clone) -> Iterator[Server]:
    rows = clone.lines("resources_servers/workplace_assistant/data/example.jsonl")
    faults = Faults(share=0.2, seed=1, kinds=("429", "500", "garbage", "reset"), most=3)
    with model_server(office(rows, "hasty"), faults, keeps=False) as server:
        settings = f"policy_base_url: {server.url}\npolicy_api_key: {KEY}\npolicy_model_name: office-model\n"
        (clone.folder / "env.yaml").write_text(settings, encoding="utf-8")
        yield server


def is_taken() -> bool:
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        return held.connect_ex(("127.0.0.1", HEAD)) == 0


def test_from_the_servers_to_the_aggregate(clone: Clone, model: Server) -> None:
    if is_taken():
        pytest.skip(f"somebody else listens at port {HEAD}, which the command names")
    with serving.running(["sh", "-c", f"exec {COMMANDS['start']}"], HEAD, clone.folder, **clone.environ) as started:
        assert "workplace_assistant_simple_agent" in clone.typed("gym env status")
        told = clone.typed(COMMANDS["run"])
        code = started.stopped(signal.SIGINT)
    assert code == 0, "\n".join(started.lines)
    assert KEY not in "\n".join(started.lines)
    assert "results/workplace_assistant_rollouts.jsonl" in told
    tasks = clone.lines("resources_servers/workplace_assistant/data/example.jsonl")
    rows = clone.lines("results/workplace_assistant_rollouts.jsonl")
    assert sorted(map(key, rows)) == [(task, repeat) for task in range(len(tasks)) for repeat in range(4)]
    assert {row["reward"] for row in rows} == {0.0, 1.0}
    assert (clone.folder / "results/workplace_assistant_rollouts_failures.jsonl").read_bytes() == b""
    assert model.faulted > 0  # a fifth of the calls failed, and cost no reward
    for path in (clone.folder / "results").iterdir():
        assert KEY not in path.read_text(encoding="utf-8")

    # the same rows without servers: what goes over HTTP changes nothing
    clone.typed(COMMANDS["run without servers"])
    here = {key(row): row for row in clone.lines("results/here.jsonl")}
    for row in rows:
        mine = here[key(row)]
        assert mine["reward"] == row["reward"]
        assert mine["response"]["output"] == row["response"]["output"]
        assert mine.keys() == row.keys()

    clone.typed(COMMANDS["profile"])
    profile = clone.lines("results/workplace_assistant_rollouts_reward_profiling.jsonl")
    assert len(profile) == len(tasks)
    assert all(line["num_rollouts"] == 4 for line in profile)
    clone.typed(COMMANDS["aggregate"])
    assert len(clone.lines("results/merged.jsonl")) == len(rows)
    (merged,) = json.loads((clone.folder / "results/merged_aggregate_metrics.json").read_bytes())
    (ran,) = json.loads((clone.folder / "results/workplace_assistant_rollouts_aggregate_metrics.json").read_bytes())
    mean = sum(row["reward"] for row in rows) / len(rows)
    assert merged["agent_metrics"]["mean/reward"] == ran["agent_metrics"]["mean/reward"] == pytest.approx(mean)

    # and beyond: the stored rollouts judged again say the same
    again = json.loads(clone.typed(COMMANDS["reverify"]))
    assert again["verdicts"]["ways"]["same"] == len(rows)
    assert again["failed"] == 0


def test_the_catalogue(clone: Clone) -> None:
    names = {entry["name"] for entry in json.loads(clone.typed("gym list benchmarks --json"))}
    listed = clone.typed("gym list benchmarks")
    assert names
    assert all(name in listed for name in names)
    for word in ("math", "coding", "safety"):
        told = clone.typed(f"gym search {word}")
        assert any(name in told for name in names), word
