"""Turn a source file into an index of columns and offsets, or find the one that is there."""

from __future__ import annotations

import contextlib
import gc
import hashlib
import os
import resource
import shutil
from collections.abc import Callable, Iterator
from itertools import takewhile
from pathlib import Path
from typing import Protocol

import msgspec

from blade.errors import Unreadable
from blade.model import Part
from blade.tables import blocks, cache, manifest, workers
from blade.tables.columns import Index, unreadable
from blade.tables.parts import OpenPart, PartEntry, write_part

_CHUNK_BYTES = 512 << 20  # one task of a worker; bounds what is lost when one is killed
_PARALLEL_BYTES = 24 << 20  # below this a second process costs more than it brings
_KEEP_BYTES = 8 << 20  # several blocks of lines; else each is mapped, filled with zeros and unmapped again
_MANY_FILES = 1 << 16  # a run may have thousands of shards, each with a part that is held open
_DIGEST = "sha256.json"

Range = tuple[int, int]
Keep = Callable[[bytes, int], None]
PartsOf = Callable[[Path, int, int], Iterator[Part]]


class Reader(Protocol):
    """How bytes become parts; `formats` offers it."""

    def is_stream(self, path: Path) -> bool: ...  # can it only be read from the front
    def plain_parts(self, path: Path, start: int, end: int) -> Iterator[Part]: ...  # a range of an open file
    def stream_parts(self, path: Path, keep: Keep) -> Iterator[Part]: ...  # all rows; `keep` gets the lines
    def line_start_after(self, path: Path, position: int, end: int) -> int: ...  # where a range may be cut


class Watcher(Protocol):
    """Who is told how far the work is."""

    def start(self, what: str, total: int, unit: str = "bytes") -> None: ...
    def advance(self, done: int) -> None: ...
    def notice(self, text: str) -> None: ...


class Silent:
    """A watcher that nobody watches."""

    def start(self, what: str, total: int, unit: str = "bytes") -> None: ...
    def advance(self, done: int) -> None: ...
    def notice(self, text: str) -> None: ...


def open_index(path: Path, reader: Reader, watcher: Watcher) -> Index:
    """The index of `path`: the one in the cache if the source is the same, else extended or built."""
    _allow_many_files()
    try:
        if not path.is_file():  # standard input or a pipe: nothing that could be found again
            return _in_temporary(path, reader, watcher)
        folder = cache.folder_for(path)
        found = _current(folder, path)
        if found is not None:
            return found
        try:
            told = f"waiting for another process that indexes {path.name}"
            with cache.locked(folder, lambda: watcher.notice(told)):
                return _in(folder, path, reader, watcher)
        except cache.Unwritable as error:
            watcher.notice(f"the cache {cache.root()} cannot be written ({error}); using a temporary index")
        return _in_temporary(path, reader, watcher)
    except OSError as error:
        raise unreadable(path, error) from error


def _in_temporary(path: Path, reader: Reader, watcher: Watcher) -> Index:
    try:
        with cache.temporary() as folder:
            return _in(folder, path, reader, watcher)
    except cache.Unwritable as error:
        raise Unreadable(
            f"no room to index {path}: {error}",
            "free some disk space, or set BLADE_CACHE_DIR to a folder on a disk that has some",
            "no-space",
        ) from error


def _current(folder: Path, path: Path) -> Index | None:
    """The finished index in `folder` if it still describes `path`."""
    for _ in range(3):  # another process may replace the files between two reads
        known = manifest.load(folder)
        if known is None or manifest.state_of(known, path) is not manifest.State.SAME:
            return None
        try:
            return Index(folder, path, known)
        except (OSError, ValueError):
            continue
    return None


def _in(folder: Path, path: Path, reader: Reader, watcher: Watcher) -> Index:
    """Build, extend or reuse; the caller holds the folder."""
    found = _current(folder, path)
    if found is not None:
        return found
    known = manifest.load(folder)
    _sweep(folder, known)
    try:
        fresh = _built(folder, path, known, reader, watcher)
        manifest.save(fresh, folder)
    except BaseException:
        with contextlib.suppress(cache.Unwritable):
            _sweep(folder, known)
        raise
    _sweep(folder, fresh)
    cache.trim(keep=folder)
    try:
        return Index(folder, path, fresh)
    except (OSError, ValueError) as error:
        raise cache.Unwritable("what was written cannot be read back") from error


def _built(
    folder: Path, path: Path, known: manifest.Manifest | None, reader: Reader, watcher: Watcher
) -> manifest.Manifest:
    fresh = manifest.describe(path)
    if reader.is_stream(path):
        name, parts = _from_stream(folder, path, reader, watcher)
        return msgspec.structs.replace(fresh, blocks=name, parts=_numbered(parts))
    kept = _kept(folder, path, known)
    start = kept[-1].end if kept else 0
    watcher.start(f"indexing {path.name}", fresh.size - start)
    ranges = _cut(path, start, fresh.size, reader)
    parts = _from_ranges(folder, path, ranges, reader.plain_parts, watcher)
    return msgspec.structs.replace(fresh, parts=_numbered([*kept, *parts]))


def _kept(folder: Path, path: Path, known: manifest.Manifest | None) -> list[PartEntry]:
    """The parts of an older index up to the first whose bytes have changed; a line that was not finished is read again."""
    if known is None or manifest.state_of(known, path) is not manifest.State.GREW:
        return []
    parts = list(takewhile(lambda part: manifest.digest_of(path, part.start, part.end) == part.source, known.parts))
    while parts and (parts[-1].open_ended or not manifest.ends_line(path, parts[-1].end)):
        parts = parts[:-1]
    try:
        for part in parts:
            OpenPart(folder / part.file, part)
    except (OSError, ValueError):
        return []
    return parts


def _numbered(parts: list[PartEntry]) -> list[PartEntry]:
    """Parts in the order of the source, each knowing its first line."""
    line, found = 0, []
    for part in sorted(parts, key=lambda part: part.start):
        found.append(msgspec.structs.replace(part, first_line=line))
        line += part.lines
    return found


def _from_stream(folder: Path, path: Path, reader: Reader, watcher: Watcher) -> tuple[str, list[PartEntry]]:
    writer = blocks.BlockWriter(folder)
    watcher.start(f"inflating {path.name}", 0)

    def keep(data: bytes, offset: int) -> None:
        writer.add(data, offset)
        watcher.advance(len(data))

    try:
        parts = [write_part(part, folder) for part in reader.stream_parts(path, keep)]
    finally:
        writer.close()
    return writer.name, parts


def _from_ranges(
    folder: Path, path: Path, ranges: list[Range], parts_of: PartsOf, watcher: Watcher
) -> list[PartEntry]:
    def work(piece: Range) -> bytes:
        return msgspec.json.encode(_index_range(folder, path, *piece, parts_of))

    n_workers = min(len(ranges), n_cores())
    # a forked worker starts in milliseconds and holds our lock too: nobody sweeps its files if we are killed
    done = workers.forked(work, ranges, n_workers) if n_workers > 1 else ((piece, None) for piece in ranges)
    found: list[PartEntry] = []
    with contextlib.closing(done):  # on an error too the workers end before anyone sweeps
        for piece, told in done:
            if told is None:
                found += _index_range(folder, path, *piece, parts_of)
            else:
                found += msgspec.json.decode(told, type=list[PartEntry])
            watcher.advance(piece[1] - piece[0])
    return found


def _index_range(folder: Path, path: Path, start: int, end: int, parts_of: PartsOf) -> list[PartEntry]:
    """Index the lines from `start` to `end`."""
    was_enabled = gc.isenabled()
    gc.disable()  # rows are trees, freed by counting; the collector only walks them again and again
    bytes(_KEEP_BYTES)  # freed at once: glibc takes its size as the sign to keep, not return, smaller blocks
    try:
        return [write_part(part, folder, manifest.digest_of(path, part.start, part.end)) for part in parts_of(path, start, end)]
    finally:
        if was_enabled:
            gc.enable()


def _cut(path: Path, start: int, end: int, reader: Reader) -> list[Range]:
    """Ranges of whole lines, as many as keep all cores busy."""
    span = end - start
    pieces = 1
    if span > _PARALLEL_BYTES:
        cores = n_cores()
        pieces = cores * max(1, round(span / (_CHUNK_BYTES * cores)))
    marks = [start]
    for number in range(1, pieces):
        mark = reader.line_start_after(path, start + span * number // pieces, end)
        if mark > marks[-1]:
            marks.append(mark)
    return [pair for pair in zip(marks, [*marks[1:], end], strict=True) if pair[0] < pair[1]]


def n_cores() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1


def _allow_many_files() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MANY_FILES if hard == resource.RLIM_INFINITY else min(hard, _MANY_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _sweep(folder: Path, known: manifest.Manifest | None) -> None:
    """Remove what no manifest names: leavings of a killed process, parts of an older index."""
    named = {"lock", manifest.NAME, _DIGEST}
    if known is not None:
        named |= {known.blocks, *(part.file for part in known.parts)}
    with cache.writing():
        for path in folder.iterdir():
            if path.name not in named:
                shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)


def sha256_of(path: Path) -> str:
    """The digest of a source as it lies on disk, computed once and kept by size and time."""
    try:
        return _sha256_of(path)
    except OSError as error:
        raise unreadable(path, error) from error


def _sha256_of(path: Path) -> str:
    stat = path.stat()
    kept = cache.folder_for(path) / _DIGEST
    try:
        *when, digest = msgspec.json.decode(kept.read_bytes(), type=tuple[int, int, int, str])
        if when == [stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns]:
            return digest
    except (OSError, ValueError):
        pass
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        known = (stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, digest)
        cache.write_whole(kept, msgspec.json.encode(known))
    except OSError:
        pass  # a cache that cannot be written costs time, not truth
    return digest
