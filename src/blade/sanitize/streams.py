"""Turn a file, packed or in a wider encoding, into lines and blocks of UTF-8, and write one alike."""

from __future__ import annotations

import codecs
import io
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

from blade.errors import Unreadable

_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_MAX_LINE = 256 << 20  # a longer line is not read at once
MAX_WHOLE = 64 << 20  # a text up to this size is cleaned in one piece
_HEAD = 8192  # bytes that tell how a text is written
# What no text holds in any encoding; bells, tabs, backspaces and colours of terminals aside.
_ODD = bytes((*range(7), *range(14, 27), *range(28, 32), 127))
_MOST_ODD = 0.03  # of the bytes of a text
# The longer marks first: the one of UTF-32 begins as the one of UTF-16 does.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"),
)  # fmt: skip


@contextmanager
def reading(path: Path) -> Iterator[IO[bytes]]:
    """A file, inflated if it is packed, as UTF-8 if it is a text in a wider encoding."""
    try:
        with open(path, "rb", opener=_opened) as raw:
            head = raw.peek(4)[:4]
            if head[:2] == _GZIP:
                with _ungzipped(raw, path) as file:
                    yield _narrowed(file)
            elif head == _ZSTD:
                with _unzstd(raw, path) as file:
                    yield _narrowed(file)
            else:
                yield _narrowed(raw)
    except EOFError as error:
        raise Unreadable(f"{path} is cut short", "copy it again", "unreadable-file") from error
    except UnicodeError as error:
        hint = "write it as UTF-8, or leave it out"
        raise Unreadable(f"{path} is damaged: {error}", hint, "unreadable-file") from error
    except OSError as error:
        raise Unreadable(
            f"cannot read {path}: {error.strerror or error}",
            "check the path and its rights",
            "unreadable-file",
        ) from error


def _opened(path: str, flags: int) -> int:
    """Open a file that may be shared: one that has become a link since it was looked at is not followed."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0))


class _Utf8(io.RawIOBase):
    """A text in a wider encoding, read as UTF-8."""

    def __init__(self, file: IO[bytes], encoding: str) -> None:
        self._text = io.TextIOWrapper(cast("BinaryIO", file), encoding, "surrogatepass", newline="\n")
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._rest:
            self._rest = self._text.read(1 << 16).encode("utf-8", "surrogatepass")
        size = min(len(buffer), len(self._rest))
        buffer[:size], self._rest = self._rest[:size], self._rest[size:]
        return size

    def close(self) -> None:
        # the file below is closed by who opened it
        if not self.closed:
            self._text.detach()
        super().close()


def _narrowed(file: IO[bytes]) -> IO[bytes]:
    buffered = file if hasattr(file, "peek") else io.BufferedReader(cast("io.RawIOBase", file), 1 << 20)
    encoding = _wide(cast("io.BufferedReader", buffered).peek(_HEAD)[:_HEAD])
    if encoding is None:
        return buffered
    return io.BufferedReader(_Utf8(buffered, encoding), 1 << 20)


def _wide(head: bytes) -> str | None:
    """The encoding of a text in two or four bytes a letter; None if it is UTF-8 or no text."""
    for mark, encoding in _MARKS:
        if head.startswith(mark):
            return encoding
    if len(head) < 4 or b"\0" not in head:
        return None
    # without a mark, text of a western language has a zero in every second byte and nowhere else
    even, odd = head[0::2].count(0), head[1::2].count(0)
    half = len(head) // 2
    if even == 0 and odd > 0.6 * half:
        return "utf-16-le"
    return "utf-16-be" if odd == 0 and even > 0.6 * half else None


def is_text(path: Path, is_told: bool) -> bool:
    """Can a file be read as text; `is_told`: its name says that it is one, whatever its odd letters are."""
    with reading(path) as file:
        head = file.read(_HEAD)
    odd = len(head) - len(head.translate(None, _ODD))
    return odd <= _MOST_ODD * len(head) if is_told else b"\0" not in head and _is_utf8(head)


def _is_utf8(head: bytes) -> bool:
    try:
        head.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start >= len(head) - 4
    return True


@contextmanager
def _ungzipped(raw: IO[bytes], path: Path) -> Iterator[IO[bytes]]:
    from isal import igzip, isal_zlib

    opened: Any = igzip.IGzipFile
    try:
        with opened(fileobj=raw, mode="rb") as file:
            yield cast("IO[bytes]", file)
    except cast("type[Exception]", isal_zlib.error) as error:
        raise Unreadable(f"{path} is damaged: {error}", "copy it again", "unreadable-file") from error


@contextmanager
def _unzstd(raw: IO[bytes], path: Path) -> Iterator[IO[bytes]]:
    import zstandard

    reader = zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True)
    try:
        yield io.BufferedReader(cast("io.RawIOBase", reader), 1 << 20)
    except zstandard.ZstdError as error:
        raise Unreadable(f"{path} is damaged: {error}", "copy it again", "unreadable-file") from error


@contextmanager
def writing(target: Path, source: Path) -> Iterator[BinaryIO]:
    """A file that replaces `target` when it is whole, packed as `source` is."""
    waiting = target.with_name(f".{target.name}.{os.getpid()}.part")
    with source.open("rb") as file:
        head = file.read(4)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with waiting.open("wb") as raw:
            if head[:2] == _GZIP:
                import gzip

                # no name and no time inside: both would tell of the source
                with gzip.GzipFile("", "wb", 6, raw, mtime=0) as packed:
                    yield cast("BinaryIO", packed)
            elif head == _ZSTD:
                import zstandard

                with zstandard.ZstdCompressor(level=3).stream_writer(raw, closefd=False) as stream:
                    yield cast("BinaryIO", stream)
            else:
                yield raw
        os.replace(waiting, target)
    except OSError as error:
        raise _unwritable(target, error) from error
    finally:
        with suppress(NotADirectoryError):
            waiting.unlink(missing_ok=True)


def put(out: BinaryIO, target: Path, data: bytes) -> None:
    """Write to a file that replaces `target`; a full disk is no fault of the file that is read."""
    try:
        out.write(data)
    except OSError as error:
        raise _unwritable(target, error) from error


def _unwritable(target: Path, error: OSError) -> Unreadable:
    message = f"cannot write into {target.parent}: {error.strerror or error}"
    return Unreadable(message, "choose another folder with -o", "cannot-write")


def lines(file: IO[bytes], path: Path) -> Iterator[bytes]:
    while line := file.readline(_MAX_LINE):
        if len(line) == _MAX_LINE and not line.endswith(b"\n"):
            message = f"{path} has a line of more than {_MAX_LINE:,} bytes"
            raise Unreadable(message, "split the row", "unreadable-file")
        yield line


def blocks(file: IO[bytes]) -> Iterator[bytes]:
    """A text whole, or in pieces that end where a line ends."""
    data = b""
    while more := file.read(MAX_WHOLE):
        data += more
        if len(data) < MAX_WHOLE:
            continue
        cut = data.rfind(b"\n") + 1 or len(data)
        yield data[:cut]
        data = data[cut:]
    if data:
        yield data
