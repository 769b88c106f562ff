"""The queue: value is what a label may cost, and the order is value for a token of reading."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accuracy import queued
from blade.model import Attribution, Cause, Health, Level, Waiting
from blade.planted import write_demo
from blade.queue import DEFECTS, FLOOR, Worth, per_token, queue, worth
from tests.conftest import Blade


def attribution(
    cause: Cause, confidence: float, lost: float, task: str = "0", **changed: object
) -> Attribution:
    told = {
        "mode": "a mode",
        "mechanism": "",
        "repeat": 0,
        "step": None,
        "steps": (),
        "grounds": (),
        "against": (),
    }
    return Attribution(
        f"cause:{task}", "run", task, cause, confidence, **{**told, **changed}, evidence=(), lost=lost
    )


FLAG = Health(
    "run", "unanimous_wrong_answer", Level.WARNING, "0", "all repeats agree against the gold", None, 1, ()
)


@pytest.mark.parametrize(
    ("told", "doubts", "value", "reason"),
    [
        (attribution(Cause.BEHAVIOUR, 0.8, 0.02), (), 0.004, "the label may be wrong"),
        (attribution(Cause.UNDETERMINED, 0.4, 0.02), (), 0.02, "undetermined"),
        (attribution(Cause.TASK_OR_VERIFIER, 0.85, 0.02), (), 0.02, "the task itself is suspected (a mode)"),
        (attribution(Cause.BEHAVIOUR, 0.8, 0.02), (FLAG,), 0.02, "the task itself is suspected (unanimous wrong answer)"),
        (attribution(Cause.UNRELIABLE_KNOWLEDGE, 0.5, 0.02, mode="varies between repeats"), (), 0.01, "nothing sets the two apart"),
        (attribution(Cause.BEHAVIOUR, 0.9, 0.02, judged_by="ann"), (FLAG,), 0.002, "judged"),
    ],
)  # fmt: skip
def test_the_value_is_what_hangs_on_the_label(
    told: Attribution, doubts: tuple[Health, ...], value: float, reason: str
) -> None:
    found = worth(told, doubts)
    assert found.value == pytest.approx(value)
    assert reason in found.reason


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.floats(0, 0.1), st.integers(50, 4000)), max_size=30),
    st.one_of(st.none(), st.integers(1, 12)),
)
def test_the_first_are_the_first_of_all(tasks: list[tuple[float, int]], most: int | None) -> None:
    """Dossiers that cannot come in are not written; the order is the same as if all were."""
    worths = [
        Worth(attribution(Cause.BEHAVIOUR, 0.0, value, str(at)), 0.0, value, "")
        for at, (value, _) in enumerate(tasks)
    ]
    written: list[str] = []

    def tokens(task: str) -> int:
        written.append(task)
        return tasks[int(task)][1]

    found = queue(worths, {}, tokens, most)
    every = queue(worths, {}, lambda task: tasks[int(task)][1], None)
    assert found == every[:most]
    assert sorted(every, key=per_token, reverse=True) == list(every)
    assert len(every) == sum(value > 0 for value, _ in tasks)
    assert len(written) == len(set(written))


def test_dossiers_that_cannot_come_in_are_not_written() -> None:
    worths = [
        Worth(attribution(Cause.BEHAVIOUR, 0.0, value, str(at)), 0.0, value, "")
        for at, value in enumerate([1.0] + [1e-6] * 50)
    ]
    written: list[str] = []

    def tokens(task: str) -> int:
        written.append(task)
        return 4000

    assert [one.task for one in queue(worths, {}, tokens, 1)] == ["0"]
    assert written == ["0"]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_demo(tmp_path_factory.mktemp("demo")).path


def test_the_printed_value_can_be_computed_again(demo: Path, blade: Blade) -> None:
    report = json.loads(blade("diagnose", demo, "--json").out)
    causes = {one["task"]: one for one in report["attributions"]}
    doubted = {one["task"] for one in report["health"] if one["task"] is not None and one["level"] != "info"}
    told = json.loads(blade("queue", demo, "--most", "0", "--json").out)
    assert told["n_failed"] == len(causes) == len(told["waiting"])
    for one in told["waiting"]:
        engine = causes[one["task"]]
        unsure = engine["cause"] in ("undetermined", *DEFECTS) or one["task"] in doubted
        confidence = 0.0 if unsure else engine["confidence"]
        assert one["value"] == engine["lost"] * (1 - confidence)
        dossier = json.loads(blade("show", demo, one["task"], "--dossier", "--json").out)
        assert one["tokens"] == dossier["tokens"]
        assert one["value_per_1000_tokens"] == pytest.approx(1000 * one["value"] / max(one["tokens"], FLOOR))
    order = [one["value_per_1000_tokens"] for one in told["waiting"]]
    assert order == sorted(order, reverse=True)
    assert told["value"] == pytest.approx(sum(one["value"] for one in told["waiting"]))


def test_the_table_tells_the_same(demo: Path, blade: Blade) -> None:
    told = json.loads(blade("queue", demo, "--most", "3", "--json").out)["waiting"]
    lines = blade("queue", demo, "--most", "3").out.splitlines()
    rows = [line.split() for line in lines[4:7]]
    assert [row[0] for row in rows] == [one["task"] for one in told]
    assert [row[5] for row in rows] == [f"{100 * one['value']:.2f}" for one in told]
    assert lines[-1].endswith(f"{told[0]['task']} --dossier")


def test_nothing_waits_where_nothing_fails(tmp_path: Path, blade: Blade) -> None:
    from tests.builders import make_row, make_run

    path = make_run(tmp_path, [make_row(0, 0), make_row(1, 0)])
    assert "Nothing waits" in blade("queue", path).out
    assert blade("queue", path, "--most", "-1").code == 2


def test_the_first_ten_hold_twice_what_ten_at_random_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loss under wrong or missing labels, over planted runs of every design."""
    monkeypatch.setenv("BLADE_CACHE_DIR", str(tmp_path))
    lifts = [queued.lift(0, *design) for design in queued.DESIGNS.values()]
    first, random = queued.pooled(lifts)
    assert random > 0
    assert first >= 2 * random, f"{first:.4f} against {random:.4f}"


def test_a_waiting_task_is_what_it_says() -> None:
    one = Waiting("run", "0", "0", "never", Cause.BEHAVIOUR, 0.8, 0.02, 0.004, 100, "")
    assert per_token(one) == 0.004 / FLOOR  # a dossier shorter than any is counted as the shortest
