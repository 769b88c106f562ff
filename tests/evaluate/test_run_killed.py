"""A run that is killed and resumed has the rows of one that was not; faults of a server change no reward."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tools.bench import faulty, killed_runs


def test_kills_and_torn_lines_leave_no_trace_in_the_rows(tmp_path: Path) -> None:
    outcome = killed_runs.trial(3, 1, tmp_path)
    assert outcome.is_whole, outcome
    at_work = [kill for kill in outcome.kills if kill.before < kill.left < outcome.expected]
    assert len(at_work) >= 2  # it was not only killed before it began or after its end
    assert any(kill.torn for kill in outcome.kills)
    manifest = json.loads((tmp_path / "killed_manifest.json").read_text())
    counts = {"expected": outcome.expected, "scored": outcome.expected, "failed": 0, "unfinished": 0}
    assert manifest["counts"] == counts
    *before, last = [sitting["status"] for sitting in manifest["sittings"]]
    assert (last, len(before) <= 3, set(before) <= {"running", "finished"}) == ("finished", True, True)


def row(task: int, reward: float) -> dict[str, Any]:
    return {"_ng_task_index": task, "_ng_rollout_index": 0, "reward": reward}


@pytest.mark.parametrize(
    ("others", "which"),
    [
        ([row(1, 0), row(0, 1)], None),  # in another order
        ([row(0, 1), row(1, 1)], "different"),
        ([row(0, 1)], "lost"),
        ([row(0, 1), row(1, 0), row(1, 0)], "twice"),
        ([row(0, 1), row(1, 0), row(2, 0)], "foreign"),
    ],
)
def test_the_comparison_sees_what_it_is_there_for(tmp_path: Path, others: list[Any], which: str | None) -> None:
    for name, rows in {"a": [row(0, 1), row(1, 0)], "b": others}.items():
        (tmp_path / name).write_text("".join(json.dumps(entry) + "\n" for entry in rows))
    outcome = killed_runs.compared(tmp_path / "a", tmp_path / "b", ())
    assert outcome.is_whole == (which is None)
    assert which is None or getattr(outcome, which) == 1


def test_a_fifth_of_faults_costs_retries_and_no_reward(tmp_path: Path) -> None:
    done = faulty.trial(0.2, 12, 3, tmp_path)
    assert done.rows.is_whole, done
    assert done.calls == 48 + done.faults.total()
    assert len(done.faults) >= 5
