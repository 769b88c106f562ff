"""Taking the tasks of a run through a stage: in their order, whatever becomes of the processes."""

from __future__ import annotations

import gc
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from blade import diagnose, measure
from blade.diagnose import equal_results
from blade.model import TaskTraces
from blade.pipeline import trace_reading
from tests.builders import make_row, make_run
from tests.conftest import Listener, Silent, read
from tests.tables.watching import no_process_is_left
from tools.planted import write_run

PARENT = os.getpid()


@pytest.fixture(autouse=True)
def _two_cores(processes: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two cores and small pieces, whatever this machine has."""
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setattr(trace_reading, "_PIECE_ROWS", 8)


@pytest.fixture
def walker(tmp_path: Path, cache: Path) -> trace_reading.Walker:
    """Opens a simulated run of 20 tasks with 4 repeats."""
    return walker_of(write_run(tmp_path / "run", n_tasks=20, repeats=4, seed=2).path)


def walker_of(path: Path) -> trace_reading.Walker:
    (entry,) = read(path)
    scoring = measure.scoring.scoring(entry.run.rollouts, None)
    return trace_reading.Walker(entry.run, trace_reading.judged_of(entry, scoring), {})


def walked(walker: trace_reading.Walker, work: Callable[[TaskTraces], Any]) -> list[Any]:
    return list(walker.walk(walker.spans(), work, "reading", Silent()))


def n_open() -> int:
    return len(os.listdir("/proc/self/fd"))


def in_worker() -> bool:
    return os.getpid() != PARENT


def named(task: TaskTraces) -> tuple[str, list[int], bool]:
    return task.task, [episode.trace.rollout.repeat for episode in task.episodes], in_worker()


def test_results_come_in_the_order_of_the_tasks_and_the_watcher_hears_of_every_row(walker: trace_reading.Walker) -> None:
    def work(task: TaskTraces) -> tuple[str, list[int], bool]:
        time.sleep(0.2 if task.task in ("1", "2") else 0)  # slow pieces do not change the order
        return named(task)

    watcher = Listener()
    found = list(walker.walk(walker.spans(), work, "reading", watcher))
    # the first is done here, which warms up what all need
    assert found == [(str(task), [0, 1, 2, 3], task > 0) for task in range(20)]
    assert watcher.done == 80
    assert no_process_is_left()


def test_small_runs_stay_in_one_process_and_see_the_same(
    walker: trace_reading.Walker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def work(task: TaskTraces) -> tuple[list[diagnose.RowEvidence], list[equal_results.Ended]]:
        return diagnose.observe(task), equal_results.observe(task)

    apart = walked(walker, work)
    monkeypatch.setattr(trace_reading, "_PARALLEL_ROWS", 81)
    assert not any(away for _, _, away in walked(walker, named))
    together = walked(walker, work)
    assert [repr(one) for one in apart] == [repr(one) for one in together]
    assert sum(len(rows) for rows, _ in together) == 80


@pytest.mark.parametrize("end", ["exit", "kill"])
def test_the_work_of_a_process_that_dies_is_done_by_its_parent(walker: trace_reading.Walker, end: str) -> None:
    def work(task: TaskTraces) -> tuple[str, list[int], bool]:
        if task.task == "9" and in_worker():
            if end == "exit":
                os._exit(1)
            os.kill(os.getpid(), signal.SIGKILL)
        return named(task)

    found = walked(walker, work)
    assert [task for task, _, _ in found] == [str(task) for task in range(20)]
    away = {task for task, _, told in found if told}
    assert "9" not in away
    assert {"1", "2", "3", "4"} <= away  # what was finished is kept
    assert no_process_is_left()
    assert gc.isenabled()


def refused() -> int:
    raise BlockingIOError(11, "Resource temporarily unavailable")


@pytest.mark.parametrize(("name", "stub"), [("fork", refused), ("cpu_count", lambda: None)])
def test_where_nothing_can_be_forked_or_one_core_is_all_the_parent_does_it(
    walker: trace_reading.Walker, monkeypatch: pytest.MonkeyPatch, name: str, stub: Callable[[], Any]
) -> None:
    walked(walker, named)  # which opens the file
    before = n_open()
    monkeypatch.setattr(os, name, stub)
    assert walked(walker, named) == [(str(task), [0, 1, 2, 3], False) for task in range(20)]
    assert n_open() == before


def test_a_fault_is_met_in_the_parent_and_told_and_so_are_results_that_do_not_travel(walker: trace_reading.Walker) -> None:
    def work(task: TaskTraces) -> str:
        if task.task == "13":
            raise RuntimeError(f"met at task {task.task}")
        return task.task

    with pytest.raises(RuntimeError, match="met at task 13"):
        walked(walker, work)
    assert no_process_is_left()
    with pytest.raises((AttributeError, TypeError), match="pickle"):
        walked(walker, lambda task: lambda: task)
    assert no_process_is_left()


def test_who_stops_half_way_leaves_no_process(walker: trace_reading.Walker) -> None:
    def work(task: TaskTraces) -> str:
        if int(task.task) > 3:
            time.sleep(600)
        return task.task

    assert walked(walker, named)  # which opens the file
    before, begun = n_open(), time.monotonic()
    found = walker.walk(walker.spans(), work, "reading", Silent())
    assert [next(found) for _ in range(2)] == ["0", "1"]
    found.close()
    assert time.monotonic() - begun < 60
    assert no_process_is_left()
    assert n_open() == before


@pytest.mark.parametrize("is_masked", [False, True])
def test_tasks_of_unlike_size_stay_whole_and_rows_that_do_not_count_make_none(tmp_path: Path, cache: Path, is_masked: bool) -> None:
    rows = [make_row(task, repeat, float(repeat % 2), mask_sample=is_masked) for task in range(12) for repeat in range(1 + task * 2)]
    walker = walker_of(make_run(tmp_path, rows))
    sizes = [] if is_masked else [(str(task), 1 + task * 2) for task in range(12)]
    assert [(task, len(repeats)) for task, repeats, _ in walked(walker, named)] == sizes
    assert bool(walker.spans()) is not is_masked


def test_the_first_row_that_tells_what_the_task_expects_is_believed(tmp_path: Path, cache: Path) -> None:
    rows = [make_row(0, 0, 0.0), make_row(0, 1, 1.0, expected_answer="42"), make_row(1, 0, 1.0)]
    found = walked(walker_of(make_run(tmp_path, rows)), lambda task: task.gold.answer)
    assert found == ["42", None]
