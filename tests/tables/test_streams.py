"""Compressed files, pipes and standard input: read once, and every row opens alone."""

from __future__ import annotations

import io
import json
import os
import sys
import threading
from pathlib import Path

import pytest

from blade.tables import cache
from tests.builders import joined, make_row, make_run, packed
from tests.tables.watching import Spy, opened, strays, told

pytestmark = pytest.mark.usefixtures("cache")
ROWS = [make_row(task, repeat, note="é" * (50 * task)) for task in range(30) for repeat in range(2)]


@pytest.mark.parametrize("compress", ["gz", "zst"])
def test_a_compressed_file_tells_what_the_plain_one_does(tmp_path: Path, compress: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("blade.formats.lines.BLOCK_BYTES", 4000)  # many blocks
    plain = make_run(tmp_path / "plain", [*ROWS, "{torn", ROWS[0]])
    path = make_run(tmp_path, [*ROWS, "{torn", ROWS[0]], compress=compress)
    found = opened(path)
    assert told(found) == told(opened(plain))
    for row in (59, 0, 31, 30, 59):
        assert json.loads(found.row_bytes(row)) == ROWS[row]
    spy = Spy()
    assert opened(path, spy).row_bytes(17) == joined(ROWS).splitlines()[17]
    assert not spy.was_asked
    with path.open("ab") as file:
        file.write(packed(joined([make_row(99)]), compress))  # a second member, a second frame
    assert opened(path, spy).n_rows == 62
    assert spy.streams == 1
    assert not strays(path)


def test_a_file_that_was_compressed_in_place(tmp_path: Path) -> None:
    path = make_run(tmp_path, ROWS)
    first = told(opened(path))
    path.write_bytes(packed(path.read_bytes(), "gz"))
    assert told(opened(path)) == first
    path.write_bytes(joined(ROWS))
    assert told(opened(path)) == first
    assert not strays(path)


def test_a_damaged_stream_keeps_what_came_before(tmp_path: Path) -> None:
    path = make_run(tmp_path, ROWS, compress="gz")
    os.truncate(path, path.stat().st_size - 10)
    found = opened(path)
    assert found.n_skipped >= 1
    assert found.n_rows >= 50
    assert json.loads(found.row_bytes(3)) == ROWS[3]


def test_standard_input_is_read_once_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make_run(tmp_path, ROWS)
    expected = told(opened(path))
    cache.clean()

    class Input:
        buffer = io.BytesIO(path.read_bytes())

    monkeypatch.setattr(sys, "stdin", Input())
    found = opened(Path("-"))
    assert told(found) == expected
    assert cache.size() == (0, 0)
    assert (found.path, found.manifest.size) == (Path("-"), 0)


def test_a_pipe_is_read_once_and_leaves_nothing(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    spy = Spy()

    def write() -> None:
        for _ in range(2):  # the reader may look at the first bytes before it reads
            try:
                pipe.write_bytes(joined(ROWS))
            except BrokenPipeError:
                continue

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    found = opened(pipe, spy)
    assert spy.streams == 1
    assert found.n_rows
    assert cache.size() == (0, 0)
