"""Processes that work through a share of the pieces: results as they come, and the dead are told."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from pathlib import Path

import pytest

from blade.tables import workers
from tests.tables.watching import no_process_is_left

FORK = multiprocessing.get_context("fork")


def length_of(piece: str) -> bytes:
    return str(len(piece)).encode()


@pytest.mark.parametrize("n_workers", [1, 2, 5, 40])
def test_every_piece_comes_once_with_its_result(n_workers: int) -> None:
    pieces = ["x" * n for n in range(23)]
    found = list(workers.streamed(length_of, pieces, n_workers))
    assert sorted(found, key=lambda one: len(one[0])) == [(piece, length_of(piece)) for piece in pieces]
    assert no_process_is_left()


def test_the_pieces_of_one_process_come_in_order() -> None:
    pieces = [str(n) for n in range(20)]
    found = [piece for piece, _ in workers.streamed(lambda piece: b"", pieces, 3)]
    for number in range(3):
        mine = pieces[number::3]
        assert [piece for piece in found if piece in mine] == mine


def test_results_may_be_empty_or_larger_than_a_pipe() -> None:
    sizes = [0, 1, 7, 8, 9, 5_000_000, 0, 70_000]
    found = dict(workers.streamed(lambda size: b"\x00" * size, sizes[:6], 2))
    assert {size: len(told or b"?") if size else told for size, told in found.items()} == {
        0: b"",
        1: 1,
        7: 7,
        8: 8,
        9: 9,
        5_000_000: 5_000_000,
    }


def test_a_result_is_there_before_the_next_piece_is_begun(tmp_path: Path) -> None:
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


@pytest.mark.parametrize("end", ["exit", "kill", "raise"])
def test_what_a_process_did_not_live_to_finish_is_none(end: str) -> None:
    parent = os.getpid()

    def work(piece: int) -> bytes:
        if piece == 4 and os.getpid() != parent:
            if end == "exit":
                os._exit(3)
            if end == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            raise ValueError(piece)
        return bytes([piece])

    found = dict(workers.streamed(work, list(range(10)), 2))
    assert found == {piece: bytes([piece]) if piece % 2 or piece < 4 else None for piece in range(10)}
    assert no_process_is_left()


def test_where_nothing_can_be_forked_no_piece_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused() -> int:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", refused)
    n_open = len(os.listdir("/proc/self/fd"))
    assert sorted(workers.streamed(length_of, ["a", "bb", "ccc"], 2)) == [("a", None), ("bb", None), ("ccc", None)]
    assert len(os.listdir("/proc/self/fd")) == n_open


def test_where_ended_processes_are_forgotten() -> None:
    usual = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        assert dict(workers.streamed(length_of, ["a", "bb"], 2)) == {"a": b"1", "bb": b"2"}
    finally:
        signal.signal(signal.SIGCHLD, usual)


def test_who_stops_listening_ends_the_processes() -> None:
    def work(piece: int) -> bytes:
        if piece > 1:
            time.sleep(600)
        return b"x"

    n_open = len(os.listdir("/proc/self/fd"))
    found = workers.streamed(work, list(range(8)), 2)
    next(found)
    begun = time.monotonic()
    found.close()
    assert time.monotonic() - begun < 60
    assert no_process_is_left()
    assert len(os.listdir("/proc/self/fd")) == n_open
