"""What an index knows of its source, and whether the source is still the same."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path

import msgspec
import xxhash

from blade.tables.cache import made_by, write_whole, writing
from blade.tables.parts import PartEntry

NAME = "manifest.json"
_ENDS = 1 << 16  # bytes at the front and before the end that are compared


class Manifest(msgspec.Struct, frozen=True):
    made_by: str  # what wrote the parts
    size: int  # of the source when reading began; what a writer adds meanwhile is left for the next time
    mtime_ns: int
    ctime_ns: int  # an edit that sets the old time back still changes this one
    inode: int
    head: str
    tail: str
    blocks: str = ""  # the file of inflated lines, for a source that can only be read from the front
    parts: list[PartEntry] = []


class State(StrEnum):
    SAME = "same"
    GREW = "grew"
    CHANGED = "changed"


def load(folder: Path) -> Manifest | None:
    """The manifest in `folder`, or None if there is none that can be read."""
    try:
        return msgspec.json.decode((folder / NAME).read_bytes(), type=Manifest)
    except (OSError, ValueError, RecursionError):  # the errors of msgspec are ValueErrors
        return None


def save(manifest: Manifest, folder: Path) -> None:
    with writing():
        write_whole(folder / NAME, msgspec.json.encode(manifest))


def describe(path: Path) -> Manifest:
    """A manifest for `path` as it is now, before anything of it is read."""
    if not path.is_file():  # standard input or a pipe
        return Manifest(made_by(), 0, 0, 0, 0, "", "")
    stat = path.stat()
    times = (stat.st_mtime_ns, stat.st_ctime_ns)
    return Manifest(made_by(), stat.st_size, *times, stat.st_ino, *_ends_of(path, stat.st_size))


def state_of(manifest: Manifest, path: Path) -> State:
    """Whether the source is what it was when it was indexed, longer as far as its ends tell, or another."""
    stat = path.stat()
    if manifest.made_by != made_by() or stat.st_size < manifest.size:
        return State.CHANGED
    if _ends_of(path, manifest.size) != (manifest.head, manifest.tail):
        return State.CHANGED
    times = (stat.st_mtime_ns, stat.st_ctime_ns)
    if (stat.st_size, *times) == (manifest.size, manifest.mtime_ns, manifest.ctime_ns):
        return State.SAME
    grew = stat.st_size > manifest.size and stat.st_ino == manifest.inode and not manifest.blocks
    return State.GREW if grew else State.CHANGED


def ends_line(path: Path, end: int) -> bool:
    """Does a line of the source end right before `end`."""
    with path.open("rb", buffering=0) as file:
        return end == 0 or os.pread(file.fileno(), 1, end - 1) == b"\n"


def digest_of(path: Path, start: int, end: int) -> str:
    """A hash of some bytes of the source: that it grew is only known where what was there is still the same."""
    digest, buffer = xxhash.xxh3_128(), bytearray(_ENDS << 4)
    view = memoryview(buffer)
    with path.open("rb", buffering=0) as file:
        while start < end and (n := os.preadv(file.fileno(), [view[: end - start]], start)):
            digest.update(view[:n])
            start += n
    return digest.hexdigest()


def _ends_of(path: Path, end: int) -> tuple[str, str]:
    """Hashes of the first bytes of a file and of those before `end`."""
    with path.open("rb", buffering=0) as file:
        head = os.pread(file.fileno(), min(_ENDS, end), 0)
        tail = os.pread(file.fileno(), min(_ENDS, end), max(0, end - _ENDS))
    return xxhash.xxh3_128_hexdigest(head), xxhash.xxh3_128_hexdigest(tail)
