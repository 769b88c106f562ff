"""Index a source file into columns and offsets, or find the index that is there and extend what is proved of it."""

from __future__ import annotations

import contextlib
import gc
import hashlib
import os
import resource
import shutil
import time
from collections.abc import Callable, Iterator
from itertools import pairwise, takewhile
from operator import itemgetter
from pathlib import Path
from typing import Protocol

import msgspec

from blade.errors import Unreadable
from blade.formats.lines import digest, is_stream, line_start_after, unreadable
from blade.model import Part
from blade.tables import cache, index_files, workers
from blade.tables.cache import Stamp
from blade.tables.index_files import Index, Manifest, PartEntry

MANIFEST = "manifest.json"
_SHA256 = "sha256.json"
# Two changes of a large file within the clock tick of a file system may leave the same stamp; some count whole seconds.
TICK_NS, COARSE_TICK_NS = 10_000_000, 2_000_000_000
_CHUNK_BYTES = 512 << 20  # one task of a worker; bounds what is lost when one is killed
_PARALLEL_BYTES = 24 << 20  # below this a second process costs more than it brings
_KEEP_BYTES = 8 << 20  # several blocks of lines; else each is mapped, filled with zeros and unmapped again
_MANY_FILES = 1 << 16  # a run may have thousands of shards, each with a part that is held open

Range = tuple[int, int]
Keep = Callable[[bytes, int], None]


class Reader(Protocol):
    """How lines become parts; `formats` offers it."""

    def plain_parts(self, path: Path, start: int, end: int) -> Iterator[Part]: ...  # a range of an open file
    def stream_parts(self, path: Path, keep: Keep) -> Iterator[Part]: ...  # all rows; `keep` gets the lines


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
        current = _current(folder, path)
        if current is not None:
            return current
        try:
            note = f"waiting for another process that indexes {path.name}"
            with cache.locked(folder, lambda: watcher.notice(note)):
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
        hint = "free some disk space, or set BLADE_CACHE_DIR to a folder on a disk that has some"
        raise Unreadable(f"no room to index {path}: {error}", hint, "no-space") from error


# -- what is known of the source ------------------------------------------------------------------


def manifest_in(folder: Path) -> Manifest | None:
    """The manifest in `folder`, or None if there is none that can be read."""
    try:
        return msgspec.json.decode(cache.unsealed((folder / MANIFEST).read_bytes()), type=Manifest)
    except (OSError, ValueError, RecursionError):  # the errors of msgspec are ValueErrors
        return None


def _settled(path: Path) -> Stamp:
    """The stamp of a file whose clock has ticked since its last change, so that the next change gives another one."""
    for _ in range(5):
        stamp = cache.stamp_of(path)
        size, changed, touched, *_ = stamp
        tick = TICK_NS if changed % 10**9 or touched % 10**9 else COARSE_TICK_NS
        age = time.time_ns() - touched
        if size <= cache.WHOLE or not 0 <= age < tick:  # the whole content of a small file is in its stamp
            return stamp
        time.sleep((tick - age) / 1e9)
    return size, 0, 0, 0, ""  # somebody writes all the time: nothing that this file will have again


def _current(folder: Path, path: Path) -> Index | None:
    """The finished index in `folder` if it still describes `path`."""
    for _ in range(3):  # another process may replace the files between two reads
        known = manifest_in(folder)
        if known is None or known.made_by != cache.made_by() or known.stamp != cache.stamp_of(path):
            return None
        try:
            return Index(folder, path, known)
        except (OSError, ValueError):
            continue
    return None


def _proved(folder: Path, path: Path, known: Manifest | None, size: int) -> list[PartEntry]:
    """The parts of an older index up to the first whose lines are not in the source as they were read then."""
    if known is None or known.made_by != cache.made_by() or known.blocks:
        return []
    from concurrent.futures import ThreadPoolExecutor

    def is_proved(part: PartEntry) -> bool:  # by its content: the time or the name of a file proves nothing
        if part.end > size or part.open_ended or digest(path, part.start, part.end) != part.source:
            return False
        with contextlib.suppress(OSError, ValueError):
            index_files.OpenPart(folder / part.file, part)
            return True
        return False

    with ThreadPoolExecutor(n_cores()) as pool:  # reading and hashing need the interpreter only now and then
        answers = pool.map(is_proved, known.parts)
        proved = [part for part, _ in takewhile(itemgetter(1), zip(known.parts, answers, strict=True))]
        pool.shutdown(cancel_futures=True)
    return proved


# -- building -------------------------------------------------------------------------------------


def _in(folder: Path, path: Path, reader: Reader, watcher: Watcher) -> Index:
    """Build, extend or reuse; the caller holds the folder."""
    current = _current(folder, path)
    if current is not None:
        return current
    known = manifest_in(folder)
    _sweep(folder, known)
    try:
        fresh = _built(folder, path, known, reader, watcher)
        with cache.writing():
            cache.write_whole(folder / MANIFEST, cache.sealed(msgspec.json.encode(fresh)))
    except BaseException:
        with contextlib.suppress(cache.Unwritable):
            _sweep(folder, known)
        raise
    _sweep(folder, fresh)
    cache.trim()
    try:
        return Index(folder, path, fresh)
    except (OSError, ValueError) as error:
        raise cache.Unwritable("what was written cannot be read back") from error


def _built(folder: Path, path: Path, known: Manifest | None, reader: Reader, watcher: Watcher) -> Manifest:
    stamp = _settled(path) if path.is_file() else (0, 0, 0, 0, "")  # before anything is read; of a pipe there is none
    fresh = Manifest(cache.made_by(), stamp)
    if is_stream(path):
        name, entries = _from_stream(folder, path, reader, watcher)
        return msgspec.structs.replace(fresh, blocks=name, parts=_numbered(entries))
    proved = _proved(folder, path, known, fresh.size)
    start = proved[-1].end if proved else 0
    watcher.start(f"indexing {path.name}", fresh.size - start)
    entries = _from_ranges(folder, path, _cut(path, start, fresh.size), reader, watcher)
    return msgspec.structs.replace(fresh, parts=_numbered([*proved, *entries]))


def _numbered(entries: list[PartEntry]) -> list[PartEntry]:
    """Parts in the order of the source, each knowing its first line."""
    line, numbered = 0, []
    for part in sorted(entries, key=lambda part: part.start):
        numbered.append(msgspec.structs.replace(part, first_line=line))
        line += part.lines
    return numbered


def _from_stream(folder: Path, path: Path, reader: Reader, watcher: Watcher) -> tuple[str, list[PartEntry]]:
    watcher.start(f"inflating {path.name}", 0)
    with contextlib.closing(index_files.BlockWriter(folder)) as writer:

        def keep(data: bytes, offset: int) -> None:
            writer.add(data, offset)
            watcher.advance(len(data))

        entries = [index_files.write_part(part, folder) for part in reader.stream_parts(path, keep)]
    return writer.name, entries


def _from_ranges(
    folder: Path, path: Path, ranges: list[Range], reader: Reader, watcher: Watcher
) -> list[PartEntry]:
    def work(piece: Range) -> bytes:
        return msgspec.json.encode(_index_range(folder, path, *piece, reader))

    n_workers = min(len(ranges), n_cores())
    # a forked worker starts in milliseconds and holds our lock too: nobody sweeps its files if we are killed
    done = workers.streamed(work, ranges, n_workers) if n_workers > 1 else ((piece, None) for piece in ranges)
    entries: list[PartEntry] = []
    with contextlib.closing(done):  # on an error too the workers end before anyone sweeps
        for piece, result in done:
            if result is None:
                entries += _index_range(folder, path, *piece, reader)
            else:
                entries += msgspec.json.decode(result, type=list[PartEntry])
            watcher.advance(piece[1] - piece[0])
    return entries


def _index_range(folder: Path, path: Path, start: int, end: int, reader: Reader) -> list[PartEntry]:
    was_enabled = gc.isenabled()
    gc.disable()  # rows are trees, freed by counting; the collector only walks them again and again
    bytes(_KEEP_BYTES)  # freed at once: glibc takes its size as the sign to keep, not return, smaller blocks
    try:
        return [index_files.write_part(part, folder) for part in reader.plain_parts(path, start, end)]
    finally:
        if was_enabled:
            gc.enable()


def _cut(path: Path, start: int, end: int) -> list[Range]:
    """Ranges of whole lines, as many as keep all cores busy."""
    span, pieces = end - start, 1
    if span > _PARALLEL_BYTES:
        pieces = n_cores() * max(1, round(span / (_CHUNK_BYTES * n_cores())))
    cuts = {line_start_after(path, start + span * number // pieces, end) for number in range(1, pieces)}
    return list(pairwise(sorted({start, end, *cuts})))


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


def _sweep(folder: Path, known: Manifest | None) -> None:
    """Remove what no manifest names: leavings of a killed process, parts of an older index."""
    named = {"lock", MANIFEST, _SHA256}
    if known is not None:
        named |= {known.blocks, *(part.file for part in known.parts)}
    with cache.writing():
        for path in folder.iterdir():
            if path.name not in named:
                shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)


def sha256_of(path: Path) -> str:
    """The digest of a source as it lies on disk, computed once and kept with its stamp."""
    path_kept = cache.folder_for(path) / _SHA256
    try:
        stamp = _settled(path)
        with contextlib.suppress(OSError, ValueError):
            stored = cache.unsealed(path_kept.read_bytes())
            *when, sha256 = msgspec.json.decode(stored, type=tuple[int, int, int, int, str, str])
            if tuple(when) == stamp:
                return sha256
        with path.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise unreadable(path, error) from error
    with contextlib.suppress(OSError):  # a cache that cannot be written costs time, not truth
        path_kept.parent.mkdir(parents=True, exist_ok=True)
        cache.write_whole(path_kept, cache.sealed(msgspec.json.encode((*stamp, sha256))))
    return sha256
