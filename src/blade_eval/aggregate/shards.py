"""Find the shards of a run and read them by line: keys in memory, rows where they lie."""

from __future__ import annotations

import glob
import os
from array import array
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from blade.errors import NothingToRead
from blade.formats import lines
from blade_eval.profile import files, reading
from blade_eval.profile.reading import Line, Seen
from blade_eval.profile.spool import Spool

_PACKS = ("", ".gz", ".zst")
INPUTS, FAILURES = "_materialized_inputs.jsonl", "_failures.jsonl"
_SIDECARS = tuple(
    f"{ending}{pack}"
    for ending in (INPUTS, FAILURES, "_reward_profiling.jsonl", "_judgements.jsonl", "rollout_verdicts.jsonl")
    for pack in _PACKS
)
_MOST_OPEN = 200


def found(patterns: Sequence[str]) -> tuple[list[Path], list[Path]]:
    """The shards that comma-separated globs name, each once; and sidecars among them, which are none."""
    shards: dict[Path, Path] = {}
    skipped: dict[Path, None] = {}
    for pattern in [part.strip() for given in patterns for part in given.split(",") if part.strip()]:
        for name in sorted(glob.glob(pattern, recursive=True)):
            path = Path(name)
            if path.name.endswith(_SIDECARS):
                skipped[path] = None
            elif path.is_file():
                shards.setdefault(path.resolve(), path)
    if not shards:
        told = ",".join(patterns)
        raise NothingToRead(
            f"No shards matched input_glob='{told}'",
            "quote the glob, so that the shell leaves it alone; sidecar files are no shards",
            "no-rollouts",
        )
    return list(shards.values()), list(skipped)


def beside(shard: Path, ending: str) -> Path | None:
    """A sidecar of a shard, packed or not, if there is one."""
    for pack in _PACKS:
        path = files.beside(shard, f"{ending}{pack}")
        if path.is_file():
            return path
    return None


class Lines:
    """Lines of several files that can be read again one by one; packed files are unpacked to disk."""

    def __init__(self) -> None:
        self.paths: list[Path] = []
        self.seen: list[Seen] = []
        self._spools: dict[int, Spool] = {}
        self._open: dict[int, int] = {}
        self._source, self._offset, self._size = array("i"), array("q"), array("q")

    def __len__(self) -> int:
        return len(self._source)

    def read(self, path: Path, take: Callable[[int, Line, Seen], bool]) -> None:
        """Offer every line of a file; what is taken can be had again by the order in which it was."""
        source, seen = len(self.paths), Seen(path)
        self.paths.append(path)
        self.seen.append(seen)
        if lines.is_compressed(path):
            self._spools[source] = Spool()
        for line in reading.read(path, seen):
            if take(source, line, seen):
                spool = self._spools.get(source)
                self._source.append(source)
                self._offset.append(line.offset if spool is None else spool.add(line.data))
                self._size.append(len(line.data))

    def __getitem__(self, row: int) -> bytes:
        source, offset = self._source[row], self._offset[row]
        if source in self._spools:
            return self._spools[source][offset]
        if source not in self._open:
            if len(self._open) >= _MOST_OPEN:
                os.close(self._open.pop(next(iter(self._open))))
            self._open[source] = os.open(self.paths[source], os.O_RDONLY)
        return os.pread(self._open[source], self._size[row], offset)

    def written(self, rows: Sequence[int]) -> Iterator[bytes]:
        """These rows as lines."""
        for row in rows:
            yield self[row].strip().removeprefix(reading.BOM).strip() + b"\n"

    def close(self) -> None:
        for handle in self._open.values():
            os.close(handle)
        for spool in self._spools.values():
            spool.close()
        self._open.clear()

    def notices(self) -> list[str]:
        return [notice for seen in self.seen for notice in seen.notices()]
