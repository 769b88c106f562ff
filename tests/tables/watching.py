"""Spies on an index: who was asked to read what, what was said, and all that an index tells."""

from __future__ import annotations

import contextlib
import math
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from blade import formats
from blade.model import Part
from blade.tables import cache, index
from blade.tables.index import Reader, manifest_in, open_index
from blade.tables.index_files import Index
from blade_eval import limited
from tests.conftest import Listener

GYM: Reader = formats.FORMATS["nemo_gym"]
NUMBERS = (
    "offset length task_index repeat attempt n_items n_calls n_turns reward input_tokens output_tokens "
    "reasoning_tokens total_tokens cost_usd temperature top_p max_output_tokens prompt_hash row_hash "
    "reward_kind masked truncated response_error last_kind"
).split()
TEXTS = "task_text agent model skills_hash failure_class".split()


class Spy:
    """A reader that remembers which bytes it was asked for; `before` is called before it reads a range."""

    def __init__(self, before: Callable[[], object] = lambda: None) -> None:
        self.before = before
        self.ranges: list[tuple[int, int]] = []
        self.streams = 0

    def plain_parts(self, path: Path, start: int, end: int) -> Iterator[Part]:
        self.before()
        self.ranges.append((start, end))
        return GYM.plain_parts(path, start, end)

    def stream_parts(self, path: Path, keep: Callable[[bytes, int], None]) -> Iterator[Part]:
        self.streams += 1
        return GYM.stream_parts(path, keep)

    @property
    def was_asked(self) -> bool:
        return bool(self.ranges or self.streams)


def opened(path: Path, reader: Any = GYM) -> Index:
    """The index of a file, nothing being said about it."""
    watcher = Listener()
    found = open_index(path, reader, watcher)
    assert not watcher.notes
    return found


def told(known: Index) -> dict[str, Any]:
    """All that an index tells, row by row, whatever parts it is made of."""
    found: dict[str, Any] = {name: _plain(known.numbers(name).tolist()) for name in NUMBERS}
    found["line"] = known.lines.tolist()
    for name in TEXTS:
        codes, texts = known.texts(name)
        found[f"text {name}"] = [texts[code] if code >= 0 else None for code in codes.tolist()]
    for name in known.fields():
        column = known.field(name)
        said = [column.texts[code] if code >= 0 else None for code in column.code.tolist()]
        numbers = _plain(column.number.tolist())
        found[f"field {name}"] = list(zip(column.kind.tolist(), numbers, said, column.hash.tolist(), strict=True))
    found["rows"] = [known.row_bytes(row) for row in range(known.n_rows)]
    found["skipped"] = [(entry.line, entry.reason) for entry in known.skipped()]
    found["n"] = (known.n_rows, known.n_skipped)
    return found


def _plain(values: list[Any]) -> list[Any]:
    """Numbers that are equal when they say the same: one NaN is like another."""
    return [None if isinstance(value, float) and math.isnan(value) else value for value in values]


def told_anew(path: Path, folder: Path, monkeypatch: Any) -> dict[str, Any]:
    """What an index built from nothing tells of the same file."""
    with monkeypatch.context() as patch:
        patch.setenv("BLADE_CACHE_DIR", str(folder))
        return told(opened(path))


def in_pieces(monkeypatch: Any, least: int, size: int, n_cores: int) -> None:
    """Cut files from so many bytes on into pieces of such a size, for so many workers."""
    monkeypatch.setattr(index, "_PARALLEL_BYTES", least)
    monkeypatch.setattr(index, "_CHUNK_BYTES", size)
    monkeypatch.setattr(index, "n_cores", lambda: n_cores)


def files_of(path: Path) -> set[str]:
    """The files in the folder of an index, by what they are."""
    return {entry.name.partition("-")[0] for entry in cache.folder_for(path).iterdir()}


def strays(path: Path) -> set[str]:
    """Files in the folder of an index that its manifest does not name."""
    folder = cache.folder_for(path)
    known = manifest_in(folder)
    assert known is not None
    named = {"lock", "manifest.json", "sha256.json", "rows.kept", known.blocks, *(part.file for part in known.parts)}
    return {entry.name for entry in folder.iterdir()} - named


@contextlib.contextmanager
def mounted(folder: Path, options: str) -> Iterator[Path]:
    """A small disk of its own at `folder`; the test is skipped where we may not mount one."""
    import pytest

    folder.mkdir(parents=True, exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    if os.getuid() or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("needs to mount a disk of its own")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def no_process_is_left() -> bool:
    """Whether this process has ended and collected all that it started, but for those that verifiers keep."""
    children = set()
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended since
            _, parent, *_ = path.read_text().rpartition(")")[2].split()
            if int(parent) == os.getpid():
                children.add(int(path.parent.name))
    return not children - {worker.pid for worker in limited._alive}
