"""Inflate compressed files (.gz, .zst) within bounds; of a cut or damaged one what came before, and where it breaks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

CHUNK_BYTES = 1 << 20
MAX_RATIO = 200  # text of rollouts deflates 3-20 x; past this a file is a bomb
GRACE_BYTES = 256 << 20  # below this much output the ratio does not matter
_READ_BYTES = 1 << 17
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_SKIPPABLE = range(0x184D2A50, 0x184D2A60)  # frames of zstd that hold no data

Chunks = Iterator[bytes | str]


def kind_of(head: bytes) -> str:
    """What the first bytes of a file say: gzip, zstd, or plain."""
    return "gzip" if head[:2] == _GZIP else "zstd" if head[:4] == _ZSTD else "plain"


def inflated(raw: BinaryIO, kind: str) -> Chunks:
    """Chunks of inflated bytes; a text instead of bytes says why it had to stop."""
    source = _Counted(raw)
    total = 0
    for chunk in {"gzip": _gzip, "zstd": _zstd, "plain": _plain}[kind](source):
        yield chunk
        if isinstance(chunk, str):
            return
        total += len(chunk)
        if total > GRACE_BYTES and total > MAX_RATIO * max(source.n_bytes, 1):
            yield f"{kind} stream inflates more than {MAX_RATIO} times; not read past {total} bytes"
            return


class _Counted:
    """A file that knows how much of it was read."""

    def __init__(self, raw: BinaryIO) -> None:
        self.raw = raw
        self.n_bytes = 0

    def read(self, size: int = -1) -> bytes:
        data = self.raw.read(size)
        self.n_bytes += len(data)
        return data


def _plain(source: _Counted) -> Chunks:
    try:
        while data := source.read(CHUNK_BYTES):
            yield data
    except OSError as error:
        yield f"cannot be read further: {error.strerror or error}"


def _gzip(source: _Counted) -> Chunks:
    """All members of a gzip file; what a damaged one held before the damage counts."""
    from isal import isal_zlib

    data = b""
    while True:
        data = data.lstrip(b"\0") or source.read(_READ_BYTES).lstrip(b"\0")  # members may be padded
        if not data:
            return
        if kind_of(data) != "gzip" and data != _GZIP[:1]:
            yield "gzip stream is followed by bytes that are not gzip"
            return
        member = isal_zlib.decompressobj(wbits=31)
        while not member.eof:
            try:
                chunk = member.decompress(data, CHUNK_BYTES)
            except (isal_zlib.error, OSError) as error:  # type: ignore[misc]
                yield f"gzip stream is damaged: {error}"
                return
            if chunk:
                yield chunk
            data = member.unconsumed_tail or (b"" if member.eof else source.read(_READ_BYTES))
            if not data and not chunk and not member.eof:
                yield "gzip stream is cut short"
                return
        data = member.unused_data


def _zstd(source: _Counted) -> Chunks:
    """All frames of a zstd file."""
    import zstandard

    reader = zstandard.ZstdDecompressor().stream_reader(source, read_across_frames=True)  # type: ignore[arg-type]
    try:
        while chunk := reader.read1(CHUNK_BYTES):  # not `read`, which loses what came before an error
            yield chunk
    except (zstandard.ZstdError, OSError) as error:
        yield f"zstd stream is damaged: {error}"
        return
    if source.raw.seekable() and not _is_whole(source.raw):  # the reader takes a cut for the end
        yield "zstd stream is cut short"


def _is_whole(raw: BinaryIO) -> bool:
    """Does a zstd file end where a frame ends."""
    import zstandard

    size = raw.seek(0, 2)
    position = 0
    while position < size:
        raw.seek(position)
        head = raw.read(18)  # a header has no more bytes
        if len(head) >= 8 and int.from_bytes(head[:4], "little") in _SKIPPABLE:
            position += 8 + int.from_bytes(head[4:8], "little")
            continue
        try:
            position += zstandard.frame_header_size(head)
            has_checksum = zstandard.get_frame_parameters(head).has_checksum
        except zstandard.ZstdError:
            return False
        is_last = False
        while not is_last:
            raw.seek(position)
            block = int.from_bytes(raw.read(3).ljust(3, b"\0"), "little")
            is_last, is_run = bool(block & 1), block >> 1 & 3 == 1
            position += 3 + (1 if is_run else block >> 3)
            if position > size:
                return False
        position += 4 * has_checksum
    return position == size
