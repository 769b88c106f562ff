"""Turn files into ones that may leave, line by line, packed as they were; and whole folders of them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

from blade.errors import NothingToRead, Unreadable, UsageError
from blade.sanitize.cleaner import Cleaner
from blade.sanitize.keys import Key
from blade.sanitize.policy import Policy, policy_near
from blade.sanitize.removed import Removed, Tally

_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_MAX_LINE = 256 << 20  # a longer line is not read at once
_MAX_WHOLE = 64 << 20  # a text up to this size is cleaned in one piece
_ROWS = (".jsonl", ".ndjson")
_TEXTS = frozenset(
    ".md .markdown .txt .json .html .htm .toml .yaml .yml .csv .tsv .svg .xml .py .sh .log .cfg .ini "
    ".diff .patch "
    ".rst .tex .css .js .ts".split()
)
_BINARY = "is no text, and what it shows cannot be looked into"


def clean_file(source: Path, target: Path, cleaner: Cleaner, tally: Tally) -> None:
    """Write `source` to `target` without what is private; it appears whole or not at all."""
    tally.line = 0
    with _reading(source) as file, _writing(target, source) as out:
        if _suffix(source) in _ROWS:
            for line in _lines(file, source):
                tally.line += 1
                out.write(_cleaned_line(line, cleaner))
        else:
            data = file.read(_MAX_WHOLE + 1)
            if len(data) <= _MAX_WHOLE:
                out.write(_cleaned_text(data, cleaner, _suffix(source), tally))
            else:
                for block in _blocks(data, file):
                    out.write(_cleaned_text(block, cleaner, ".txt", tally))


def _cleaned_line(line: bytes, cleaner: Cleaner) -> bytes:
    text = line.decode("utf-8", "surrogateescape")
    body = text.rstrip("\r\n")
    new = cleaner.row(body)
    return line if new == body else (new + text[len(body) :]).encode("utf-8", "surrogateescape")


def _cleaned_text(data: bytes, cleaner: Cleaner, suffix: str, tally: Tally) -> bytes:
    text = data.decode("utf-8", "surrogateescape")
    tally.line += 1
    cleaner.field = ""
    new = cleaner.row(text) if suffix == ".json" else cleaner.text(text)
    return data if new == text else new.encode("utf-8", "surrogateescape")


def _echoed(path: Path, cleaner: Cleaner, tally: Tally) -> None:
    """Take out of a written file what was found elsewhere by what stood beside it."""
    known = [*(value.encode() for value in cleaner.known.whole), "…".encode()]
    with _reading(path) as file:
        if not any(raw in line for line in _lines(file, path) for raw in known):
            return
    with _reading(path) as file, _writing(path, path) as out:
        for number, line in enumerate(_lines(file, path), 1):
            tally.line = number
            if any(raw in line for raw in known):
                text = line.decode("utf-8", "surrogateescape")
                line = cleaner.echoes(text).encode("utf-8", "surrogateescape")
            out.write(line)


def clean_files(pairs: Iterable[tuple[Path, Path]], key: Key, policy: Policy | None = None) -> Removed:
    """Clean each file into its target; what one file gives away is taken out of all."""
    listed = list(pairs)
    for source, target in listed:
        if target.exists() and source.samefile(target):
            message = f"{target} would be written over itself"
            raise UsageError(message, "name another folder with -o", "output-not-empty")
    tally = Tally()
    cleaner = Cleaner(
        key, policy if policy is not None else policy_near([source for source, _ in listed]), tally.seen
    )
    written = []
    for source, target in listed:
        tally.file = str(source)
        tally.files[tally.file] += 0
        if not _is_text(source):
            tally.left_out[str(source)] = _BINARY
            continue
        clean_file(source, target, cleaner, tally)
        written.append((source, target))
    cleaner.known.seen = lambda kind, value: tally.seen("", kind, value)
    for source, target in written:
        tally.file = str(source)
        _echoed(target, cleaner, tally)
    tally.leaks = sum(leaks_in_file(target, cleaner.policy) for _, target in written)
    return tally.told()


def leaks_in_file(path: Path, policy: Policy | None = None) -> int:
    """How many things in a file look private: the test that everything written must pass."""
    tally = Tally()
    _look(path, Cleaner(Key(b"to count, nothing is kept"), policy, tally.seen), tally)
    return sum(tally.kinds.values())


def folder(source: Path, target: Path, policy: Policy | None = None, key: Key | None = None) -> Removed:
    """Clean every file of a folder into `target`, under cleaned names."""
    from blade.sanitize.keys import own_key

    if not source.is_dir():
        raise NothingToRead(f"{source} is no folder", "name the folder of a package", "no-such-path")
    key = key or own_key()
    policy = policy if policy is not None else policy_near([source])
    naming = Cleaner(key, policy)
    files = inside(source, target)
    # the folder's own name is the caller's choice: `target`
    pairs = [(path, target.joinpath(*map(naming.text, parts[1:]))) for path, parts in files]
    return clean_files(pairs, key, policy)


def inside(source: Path, target: Path | None) -> list[tuple[Path, tuple[str, ...]]]:
    """The files of a folder, each with its place below the folder's name; hidden ones stay at home."""
    top = source.resolve()
    if target is not None and (target.resolve() == top or top in target.resolve().parents):
        message = f"{target} lies inside {source}"
        raise UsageError(message, "name a folder outside it with -o", "output-not-empty")
    paths = [path for path in sorted(source.rglob("*")) if path.is_file() and not _is_hidden(path, source)]
    return [(path, (top.name, *path.relative_to(source).parts)) for path in paths]


def looked(files: Iterable[Path], policy: Policy | None = None) -> Removed:
    """What would be taken out of these files; nothing is written."""
    tally = Tally()
    for path in files:
        tally.file = str(path)
        tally.files[tally.file] += 0
        if _is_text(path):
            _look(path, Cleaner(Key(b"to count, nothing is kept"), policy, tally.seen), tally)
        else:
            tally.left_out[str(path)] = _BINARY
    return tally.told()


def _look(path: Path, cleaner: Cleaner, tally: Tally) -> None:
    tally.line = 0
    with _reading(path) as file:
        if _suffix(path) in _ROWS:
            for line in _lines(file, path):
                tally.line += 1
                cleaner.row(line.decode("utf-8", "surrogateescape").rstrip("\r\n"))
            return
        for block in _blocks(b"", file):
            _cleaned_text(block, cleaner, _suffix(path), tally)


def _is_hidden(path: Path, top: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(top).parts)


def _suffix(path: Path) -> str:
    name = path.name.lower()
    for pack in (".gz", ".zst"):
        name = name.removesuffix(pack)
    return os.path.splitext(name)[1]


def _is_text(path: Path) -> bool:
    if _suffix(path) in _ROWS or _suffix(path) in _TEXTS:
        return True
    with _reading(path) as file:
        head = file.read(8192)
    try:
        head.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start >= len(head) - 4 and b"\0" not in head
    return b"\0" not in head


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
    import io

    import zstandard

    reader = zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True)
    try:
        yield io.BufferedReader(cast("io.RawIOBase", reader), 1 << 20)
    except zstandard.ZstdError as error:
        raise Unreadable(f"{path} is damaged: {error}", "copy it again", "unreadable-file") from error


@contextmanager
def _reading(path: Path) -> Iterator[IO[bytes]]:
    """A file, inflated if it is packed."""
    try:
        with path.open("rb") as raw:
            head = raw.peek(4)[:4]
            if head[:2] == _GZIP:
                with _ungzipped(raw, path) as file:
                    yield file
            elif head == _ZSTD:
                with _unzstd(raw, path) as file:
                    yield file
            else:
                yield raw
    except EOFError as error:
        raise Unreadable(f"{path} is cut short", "copy it again", "unreadable-file") from error
    except OSError as error:
        raise Unreadable(
            f"cannot read {path}: {error.strerror or error}",
            "check the path and its rights",
            "unreadable-file",
        ) from error


@contextmanager
def _writing(target: Path, source: Path) -> Iterator[BinaryIO]:
    """A file that replaces `target` when it is whole, packed as `source` is."""
    target.parent.mkdir(parents=True, exist_ok=True)
    waiting = target.with_name(f".{target.name}.{os.getpid()}.part")
    with source.open("rb") as file:
        head = file.read(4)
    try:
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
    finally:
        waiting.unlink(missing_ok=True)


def _lines(file: IO[bytes], path: Path) -> Iterator[bytes]:
    while line := file.readline(_MAX_LINE):
        if len(line) == _MAX_LINE and not line.endswith(b"\n"):
            message = f"{path} has a line of more than {_MAX_LINE:,} bytes"
            raise Unreadable(message, "split the row", "unreadable-file")
        yield line


def _blocks(data: bytes, file: IO[bytes]) -> Iterator[bytes]:
    """A text in pieces that end where a line ends."""
    while True:
        more = file.read(_MAX_WHOLE)
        data += more
        if not more:
            if data:
                yield data
            return
        cut = data.rfind(b"\n") + 1 or len(data)
        yield data[:cut]
        data = data[cut:]
