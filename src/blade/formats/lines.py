"""Read a file, compressed or not, as blocks of whole lines within fixed memory."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from blade.errors import Unreadable
from blade.formats import compressed

if TYPE_CHECKING:
    import xxhash

BLOCK_BYTES = 1 << 20  # larger blocks fall out of the processor cache and are 2-3 x slower
MAX_LINE_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Block:
    """Some whole lines; none for a line that was too long to keep."""

    data: bytes  # may hold the beginning of a line too much: cutting it off would copy a megabyte
    size: int  # of the whole lines in `data`
    offset: int  # of `data` in the (inflated) file
    too_long: int = 0  # bytes of the skipped line
    broken: str | None = None  # why the file cannot be read beyond this point


def is_compressed(path: Path) -> bool:
    """Is it gzip or zstd, by its first bytes."""
    try:
        with path.open("rb") as file:
            return compressed.kind_of(file.read(4)) != "plain"
    except OSError as error:
        raise unreadable(path, error) from error


def is_stream(path: Path) -> bool:
    """Can it only be read from the front: compressed, or not a regular file."""
    return str(path) == "-" or not path.is_file() or is_compressed(path)


def unreadable(path: Path, error: OSError) -> Unreadable:
    """The operating system would not let us read `path`."""
    hint = "check that the file exists and that you may read it"
    return Unreadable(f"cannot read {path}: {error.strerror or error}", hint, "unreadable-file")


def plain_blocks(path: Path, start: int, end: int) -> Iterator[Block]:
    """Blocks of the bytes from `start` to `end` of an uncompressed file; both lie at line starts."""
    # pread instead of mmap: a file that is truncated while we read must not kill us with SIGBUS
    with path.open("rb", buffering=0) as file:
        handle = file.fileno()
        position, want = start, BLOCK_BYTES
        while position < end:
            data = _read(handle, position, min(want, end - position))
            if not data:
                return
            at_end = position + len(data) >= end or len(data) < min(want, end - position)
            cut = len(data) if at_end else data.rfind(b"\n") + 1
            if cut:
                yield Block(data, cut, position)
                position, want = position + cut, BLOCK_BYTES
            elif len(data) > MAX_LINE_BYTES:
                newline = _next_newline(handle, position + len(data), end)
                yield Block(b"", 0, position, too_long=newline - position)
                position, want = newline, BLOCK_BYTES
            else:
                want = min(want * 4, MAX_LINE_BYTES + BLOCK_BYTES)


def blocks(path: Path) -> Iterator[Block]:
    """Blocks of a whole file, compressed or not."""
    return stream_blocks(path) if is_stream(path) else plain_blocks(path, 0, path.stat().st_size)


def digest(path: Path, start: int, end: int) -> str:
    """A hash of the lines of a range, however they are read; nothing where it ends in the middle of a line."""
    import xxhash

    state = xxhash.xxh3_128()
    with path.open("rb", buffering=0) as file:
        if os.pread(file.fileno(), 1, end - 1) != b"\n":
            return ""
    for block in plain_blocks(path, start, end):
        hash_block(state, block)
    return state.hexdigest()


def hash_block(state: xxhash.xxh3_128, block: Block) -> None:
    """Add a block to a hash; of a line too long to keep its length."""
    state.update(memoryview(block.data)[: block.size] if not block.too_long else str(block.too_long).encode())


def _read(handle: int, position: int, size: int) -> bytes:
    """So many bytes, fewer only at the end of the file; a network file system may hand them out in pieces."""
    data = os.pread(handle, size, position)
    while 0 < len(data) < size:
        more = os.pread(handle, size - len(data), position + len(data))
        if not more:
            break
        data += more
    return data


def _next_newline(handle: int, position: int, end: int) -> int:
    """Where the next line starts, reading forward without keeping anything."""
    while position < end:
        data = os.pread(handle, min(BLOCK_BYTES, end - position), position)
        if not data:
            return position
        newline = data.find(b"\n")
        if newline >= 0:
            return position + newline + 1
        position += len(data)
    return end


def line_start_after(path: Path, position: int, end: int) -> int:
    """The first line start at or after `position`."""
    with path.open("rb", buffering=0) as file:
        if position <= 0 or os.pread(file.fileno(), 1, position - 1) == b"\n":
            return position
        return _next_newline(file.fileno(), position, end)


def stream_blocks(path: Path) -> Iterator[Block]:
    """Blocks of a compressed file or of standard input, read from the front."""
    carry = bytearray()
    offset = 0  # of `carry` in the inflated stream
    dropped = 0  # bytes already thrown away of a line that is too long
    broken: str | None = None
    for chunk in _inflated(path):
        if isinstance(chunk, str):
            broken = chunk
            break
        if dropped:
            cut_at = chunk.find(b"\n") + 1
            dropped += cut_at or len(chunk)
            if not cut_at:
                continue
            yield Block(b"", 0, offset, too_long=dropped)
            offset, dropped, chunk = offset + dropped, 0, chunk[cut_at:]
        carry += chunk
        cut = carry.rfind(b"\n") + 1
        if cut:
            yield Block(bytes(carry[:cut]), cut, offset)
            del carry[:cut]
            offset += cut
        elif len(carry) > MAX_LINE_BYTES:
            dropped = len(carry)
            carry.clear()
    if dropped:
        yield Block(b"", 0, offset, too_long=dropped)
    elif carry:
        yield Block(bytes(carry), len(carry), offset)
    if broken is not None:
        yield Block(b"", 0, offset + dropped + len(carry), broken=broken)


def _inflated(path: Path) -> Iterator[bytes | str]:
    """Chunks of inflated bytes; a text instead of bytes says why it had to stop."""
    try:
        file = sys.stdin.buffer if str(path) == "-" else path.open("rb")
    except OSError as error:
        raise unreadable(path, error) from error
    with contextlib.nullcontext(file) if str(path) == "-" else file:
        head = file.peek(4)[:4] if isinstance(file, io.BufferedReader) else b""  # read again later
        yield from compressed.inflated(file, compressed.kind_of(head))
