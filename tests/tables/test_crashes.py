"""Two processes at once, and processes that are killed, leave an index that tells the truth."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from blade.tables import cache, index, workers
from tests.builders import make_row, make_run
from tests.conftest import Listener, environment
from tests.tables.watching import GYM, Spy, in_pieces, no_process_is_left, opened, strays, told
from tools.planted import write_bench, write_run

FORK = multiprocessing.get_context("fork")


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small pieces and three workers, whatever this machine has."""
    in_pieces(monkeypatch, 1, 4 << 20, 3)


def test_processes_that_start_together_agree(tmp_path: Path, cache: Path) -> None:
    path = write_run(tmp_path, n_tasks=30).path
    command = [sys.executable, "-m", "blade", "diagnose", "--json", str(path)]
    running = [subprocess.Popen(command, env=environment(cache), stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(3)]
    said = [process.communicate(timeout=120) for process in running]
    assert [process.returncode for process in running] == [0, 0, 0], said
    assert len({out for out, _ in said}) == 1
    assert json.loads(said[0][0])["runs"][0]["n_rollouts"] == 120
    assert not strays(path)


def test_the_second_process_waits_and_reads_nothing(tmp_path: Path, cache: Path) -> None:
    path = make_run(tmp_path, [make_row(n) for n in range(5)])
    begun, finish = FORK.Event(), FORK.Event()
    slow = Spy(lambda: (begun.set(), finish.wait(60)))
    first = FORK.Process(target=index.open_index, args=(path, slow, Listener()))
    first.start()
    assert begun.wait(60)

    class Impatient(Listener):
        def notice(self, text: str) -> None:
            super().notice(text)
            finish.set()

    spy, watcher = Spy(), Impatient()
    assert index.open_index(path, spy, watcher).n_rows == 5
    first.join(60)
    assert watcher.notes == ["waiting for another process that indexes rollouts.jsonl"]
    assert not spy.was_asked


@pytest.mark.slow
@pytest.mark.usefixtures("cache", "eager")
def test_a_run_after_a_kill_gives_the_right_answer(tmp_path: Path) -> None:
    path = tmp_path / "mix.jsonl"
    n_rows = write_bench(path, "mix", 30_000_000)
    begun = time.monotonic()
    expected = told(opened(path))
    whole = time.monotonic() - begun
    assert expected["n"] == (n_rows, 0)
    for number in range(0, 15, 2):
        cache.clean()
        process = FORK.Process(target=index.open_index, args=(path, GYM, Listener()))
        process.start()
        time.sleep(whole * number / 12)
        process.kill()
        process.join()
        found = index.open_index(path, GYM, Listener())  # may have to wait for a worker to finish its piece
        assert found.numbers("task_index").tolist() == expected["task_index"], f"killed after {number}/12"
        assert found.numbers("offset").tolist() == expected["offset"]
        assert not strays(path)


@pytest.mark.usefixtures("cache", "eager")
def test_workers_do_not_outlive_a_killed_parent(tmp_path: Path) -> None:
    path = tmp_path / "mix.jsonl"
    write_bench(path, "mix", 20_000_000)
    pids = FORK.SimpleQueue()
    telling = Spy(lambda: (pids.put(os.getpid()), time.sleep(0.2)))
    process = FORK.Process(target=index.open_index, args=(path, telling, Listener()))
    process.start()
    workers = [pids.get(), pids.get(), pids.get()]
    process.kill()
    process.join()
    assert process.pid not in workers
    until = time.monotonic() + 60
    while any(is_running(pid) for pid in workers):
        assert time.monotonic() < until, "a worker waits for a parent that is gone"
        time.sleep(0.02)
    assert opened(path).n_rows == path.read_bytes().count(b"\n")  # and nobody holds the lock
    assert not strays(path)


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.usefixtures("cache", "eager")
def test_the_piece_of_a_killed_worker_is_done_by_its_parent(tmp_path: Path) -> None:
    path = tmp_path / "mix.jsonl"
    n_rows = write_bench(path, "mix", 20_000_000)
    parent = os.getpid()
    spy = Spy(lambda: os.getpid() == parent or os.kill(os.getpid(), signal.SIGKILL))
    found = index.open_index(path, spy, Listener())
    assert found.n_rows == n_rows
    assert len(spy.ranges) == len(found.manifest.parts) > 3
    assert not strays(path)


def test_ctrl_c_ends_everything_quietly(tmp_path: Path, cache: Path) -> None:
    path = tmp_path / "mix.jsonl"
    write_bench(path, "mix", 40_000_000)
    program = (
        # a shell that runs the tests in the background has its children ignore Ctrl-C
        "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from blade.tables import index\nindex.n_cores = lambda: 2\nindex._CHUNK_BYTES = 1 << 20\n"
        f"from blade.cli.main import main\nmain(['diagnose', {str(path)!r}])"
    )
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, env=environment(cache), stderr=subprocess.PIPE, start_new_session=True) as process:
        until = time.monotonic() + 60
        while not list(cache.rglob("part-*")):
            assert time.monotonic() < until
            time.sleep(0.005)
        os.killpg(process.pid, signal.SIGINT)
        assert process.stderr is not None
        said = process.stderr.read()
        assert process.wait(60) == 130
    assert said.split()[-1] == b"interrupted"
    assert b"Traceback" not in said
    assert [entry.name for entry in cache.rglob("*") if entry.is_file()] == ["lock"]


class Interrupted(Listener):
    def advance(self, done: int) -> None:
        raise KeyboardInterrupt


@pytest.mark.usefixtures("eager")
def test_an_interrupt_ends_the_workers_and_leaves_nothing(tmp_path: Path, cache: Path) -> None:
    path = tmp_path / "mix.jsonl"
    write_bench(path, "mix", 20_000_000)
    with pytest.raises(KeyboardInterrupt):
        index.open_index(path, GYM, Interrupted())
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)
    (folder,) = (cache / "indexes").iterdir()
    assert [entry.name for entry in folder.iterdir()] == ["lock"]


def test_a_failed_extension_keeps_the_older_index(tmp_path: Path, cache: Path) -> None:
    path = make_run(tmp_path, [make_row(n) for n in range(4)])
    opened(path)
    with path.open("ab") as file:
        file.write(b"{}\n")
    with pytest.raises(KeyboardInterrupt):
        index.open_index(path, GYM, Interrupted())
    assert not strays(path)
    spy = Spy()
    opened(path, spy)
    assert spy.ranges[0][0] > 0  # only what is new


# -- processes that work through a share of the pieces ---------------------------------------------

def length_of(piece: str) -> bytes:
    return str(len(piece)).encode()


@pytest.mark.parametrize("n_workers", [1, 2, 40])
def test_every_piece_comes_once_with_its_result_and_in_order(n_workers: int) -> None:
    pieces = ["x" * n for n in range(23)]
    found = list(workers.streamed(length_of, pieces, n_workers))
    assert sorted(found, key=lambda pair: len(pair[0])) == [(piece, length_of(piece)) for piece in pieces]
    for number in range(n_workers):
        mine = pieces[number::n_workers]
        assert [piece for piece, _ in found if piece in mine] == mine
    assert list(workers.streamed(length_of, [], n_workers)) == []
    assert no_process_is_left()


def test_results_of_any_size_are_there_before_the_next_piece_is_begun_where_ended_processes_are_forgotten(tmp_path: Path) -> None:
    sizes = [0, 1, 7, 8, 9, 5_000_000]
    found = dict(workers.streamed(lambda size: b"\x00" * size, sizes, 2))
    assert {size: result and len(result) for size, result in found.items()} == {size: size or b"" for size in sizes}
    usual = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        assert dict(workers.streamed(length_of, ["a", "bb"], 2)) == {"a": b"1", "bb": b"2"}
    finally:
        signal.signal(signal.SIGCHLD, usual)
    gate = tmp_path / "gate"

    def work(piece: int) -> bytes:
        until = time.monotonic() + 60
        while piece and not gate.exists() and time.monotonic() < until:
            time.sleep(0.005)
        return b"waited" if time.monotonic() < until else b"gave up"

    found = workers.streamed(work, [0, 1], 1)
    assert next(found) == (0, b"waited")
    gate.touch()
    assert list(found) == [(1, b"waited")]
