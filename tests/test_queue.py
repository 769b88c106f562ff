"""The queue: value is what a label may cost, and the order is value for a token of reading."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from blade.agent import queue
from blade.agent.queue import FLOOR, per_token
from blade.model import Attribution, Cause, Confidence
from tests.builders import make_row, make_run
from tests.case_tables import cases
from tests.conftest import Blade
from tools.planted import write_demo

LIKELY = Confidence.LIKELY


def attribution(cause: Cause, confidence: Confidence, lost: float, task: str = "0", **changed: Any) -> Attribution:
    fields = {
        "id": f"cause:{task}", "run": "run", "task": task, "group": "g1", "cause": cause, "confidence": confidence,
        "mode": "a group", "mechanism": "", "repeat": 0, "step": None, "steps": (), "grounds": (), "against": (),
        "evidence": (), "lost": lost,
    }  # fmt: skip
    return Attribution(**{**fields, **changed})


@pytest.mark.parametrize(("cause", "confidence", "more", "value", "reason"), cases(__file__, "queue_values"))
def test_the_value_is_what_such_labels_lose_by_being_wrong(
    cause: str, confidence: str, more: dict[str, Any], value: float, reason: str
) -> None:
    judged = attribution(Cause[cause.upper()], Confidence(confidence), 0.02, **more)
    assert queue.worth(judged) == pytest.approx(value)
    assert (queue.reason(judged), queue.is_settled(judged)) == (reason, reason == "judged")


@settings(deadline=None)
@given(st.lists(st.tuples(st.floats(0, 0.1), st.integers(50, 4000)), max_size=30), st.one_of(st.none(), st.integers(1, 12)))
@example(tasks=[(0.001, 300), (0.1, 300)], most=1)
def test_the_first_are_the_first_of_all(tasks: list[tuple[float, int]], most: int | None) -> None:
    """Dossiers that cannot come in are not written; the order is the same as if all were."""
    entries = [attribution(Cause.UNDETERMINED, LIKELY, value, str(at)) for at, (value, _) in enumerate(tasks)]
    written: list[str] = []

    def tokens(task: str) -> int:
        written.append(task)
        return tasks[int(task)][1]

    found = queue.queue(entries, {}, tokens, most)
    every = queue.queue(entries, {}, lambda task: tasks[int(task)][1], None)
    assert found == every[:most]
    assert sorted(every, key=per_token, reverse=True) == list(every)
    assert len(every) == sum(value > 0 for value, _ in tasks)
    assert len(written) == len(set(written))
    if most == 1 and len(every) > 1 and every[0].value > 20 * every[1].value:
        assert len(written) == 1  # no other can come in


def test_what_is_worth_the_same_keeps_its_order_whatever_its_key() -> None:
    keys = ["9", "10", "9" * 5000, "a"]  # as a report has them; the third is no number that Python would read
    entries = [attribution(Cause.UNDETERMINED, LIKELY, 0.1, task) for task in keys]
    assert [waiting.task for waiting in queue.queue(entries, {}, lambda task: 300, None)] == keys


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_demo(tmp_path_factory.mktemp("demo")).path


def test_the_printed_order_can_be_computed_again(demo: Path, blade: Blade) -> None:
    printed = json.loads(blade("queue", demo, "--most", "0", "--json").out)
    waiting = printed["waiting"]
    assert printed["n_failed"] == len(waiting)
    assert printed["value"] == pytest.approx(sum(one["value"] for one in waiting))
    assert waiting == sorted(waiting, key=lambda one: -one["value_per_1000_tokens"])
    for one in waiting:
        assert one["value_per_1000_tokens"] == pytest.approx(1000 * one["value"] / max(one["tokens"], FLOOR))
    dossier = json.loads(blade("show", demo, waiting[0]["task"], "--dossier", "--json").out)
    assert waiting[0]["tokens"] == dossier["tokens"]
    lines = blade("queue", demo, "--most", "3").out.splitlines()
    header = next(at for at, line in enumerate(lines) if line.startswith("task "))
    for row, one in zip(lines[header + 1 : header + 4], waiting, strict=False):
        cells = row.split()
        assert (cells[0], cells[4:6]) == (one["task"], [one["confidence"], f"{100 * one['value']:.2f}"])
    assert lines[-1].endswith(f"{waiting[0]['task']} --dossier")
    assert "proved 10%, likely 30%, unsure 70%, undetermined 100%" in lines[1]


def test_nothing_waits_where_nothing_fails(tmp_path: Path, blade: Blade) -> None:
    path = make_run(tmp_path, [make_row(0, 0), make_row(1, 0)])
    assert "Nothing to read" in blade("queue", path).out
    assert blade("queue", path, "--most", "-1").code == 2
