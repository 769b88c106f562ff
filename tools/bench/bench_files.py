"""The files that are measured, written when first asked for and gone at the end."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tools import planted

LARGE = 4  # times the usual size
BATCH = 20  # an appended batch is this part of the usual size


class Files:
    """A temporary folder of simulated runs."""

    def __init__(self, folder: Path, size_mb: int) -> None:
        self.folder = folder
        self.size = size_mb * 1_000_000

    def kind(self, kind: str) -> Path:
        """A file of the usual size."""
        return self._written(f"{kind}.jsonl", kind, self.size)

    def large(self) -> Path:
        """A file four times as large."""
        return self._written("large.jsonl", "mix", LARGE * self.size)

    def light(self) -> Path:
        """A thousand light rows for each megabyte of the usual size."""
        path = self.folder / "light.jsonl"
        if not path.exists():
            planted.write_light(path, self.size // 1000)
        return path

    def light_pair(self) -> tuple[Path, Path]:
        """Two runs of the same tasks, a hundred tasks with eight light rows each for each megabyte."""
        paths = self.folder / "before.jsonl", self.folder / "after.jsonl"
        for seed, path in enumerate(paths):
            if not path.exists():
                planted.write_light(path, 8 * self.size // 10_000, seed=seed)
        return paths

    def growing(self, n_batches: int) -> tuple[Path, list[bytes]]:
        """A file of the usual size, and batches of rows that a run would append to it."""
        path, batch = self.folder / "growing.jsonl", self.size // BATCH
        planted.write_bench(path, "mix", self.size + n_batches * batch)
        with path.open("r+b") as file:
            file.seek(self.size)
            file.readline()
            first = file.tell()
            batches: list[bytes] = []
            while len(batches) < n_batches:
                batches.append(file.read(batch) + file.readline())
            file.truncate(first)
        return path, batches

    def cache(self) -> Path:
        """A new, empty cache folder."""
        return Path(tempfile.mkdtemp(dir=self.folder, prefix="cache-"))

    def _written(self, name: str, kind: str, size: int) -> Path:
        path = self.folder / name
        if not path.exists():
            planted.write_bench(path, kind, size)
        return path


@contextmanager
def files(size_mb: int) -> Iterator[Files]:
    """Files in a temporary folder; it is removed however the work ends."""
    with tempfile.TemporaryDirectory(prefix="blade-bench-", ignore_cleanup_errors=True) as folder:
        yield Files(Path(folder), size_mb)


def room_mb() -> tuple[Path, int]:
    """The folder the files will go to and what is free there."""
    folder = Path(tempfile.gettempdir())
    return folder, shutil.disk_usage(folder).free // 1_000_000


def needed_mb(size_mb: int) -> int:
    """Four kinds, one large file, light rows, one that grows, a pair, the indexes, and a margin."""
    return (len(planted.KINDS) + LARGE + 3) * size_mb + size_mb // 2


def use_cache(folder: Path) -> None:
    """Let this process keep its indexes in `folder`."""
    os.environ["BLADE_CACHE_DIR"] = str(folder)
