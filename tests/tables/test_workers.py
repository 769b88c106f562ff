"""Processes that work through a share of the pieces: results as they come, and the dead are told."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from blade.tables import workers
from tests.tables.watching import no_process_is_left


def length_of(piece: str) -> bytes:
    return str(len(piece)).encode()


def n_open() -> int:
    return len(os.listdir("/proc/self/fd"))


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


def test_results_may_be_empty_or_larger_than_a_pipe() -> None:
    sizes = [0, 1, 7, 8, 9, 5_000_000]
    found = dict(workers.streamed(lambda size: b"\x00" * size, sizes, 2))
    assert {size: result and len(result) for size, result in found.items()} == {size: size or b"" for size in sizes}


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
            if end == "raise":
                raise ValueError(piece)
            os._exit(3) if end == "exit" else os.kill(os.getpid(), signal.SIGKILL)
        return bytes([piece])

    found = dict(workers.streamed(work, list(range(10)), 2))
    assert found == {piece: bytes([piece]) if piece % 2 or piece < 4 else None for piece in range(10)}
    assert no_process_is_left()


def test_where_nothing_can_be_forked_no_piece_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused() -> int:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", refused)
    before = n_open()
    assert sorted(workers.streamed(length_of, ["a", "bb", "ccc"], 2)) == [("a", None), ("bb", None), ("ccc", None)]
    assert n_open() == before


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

    before = n_open()
    found = workers.streamed(work, list(range(8)), 2)
    next(found)
    begun = time.monotonic()
    found.close()
    assert time.monotonic() - begun < 60
    assert no_process_is_left()
    assert n_open() == before
