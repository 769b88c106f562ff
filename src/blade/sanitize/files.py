"""Turn files into ones that may leave, line by line, packed as they were; and whole folders of them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO

from blade.errors import NothingToRead, UsageError
from blade.sanitize.cleaner import Cleaner
from blade.sanitize.keys import Key
from blade.sanitize.policy import Policy, policy_near
from blade.sanitize.removed import Removed, Tally
from blade.sanitize.streams import blocks, is_text, lines, put, reading, writing
from blade.targets import refuse_link, refuse_taken

_ROWS = (".jsonl", ".ndjson")
_TEXTS = frozenset(
    ".md .markdown .txt .json .html .htm .toml .yaml .yml .csv .tsv .svg .xml .py .sh .log .cfg .ini "
    ".diff .patch .rst .tex .css .js .ts".split()
)
_BINARY = "is no text, and what it shows cannot be looked into"
_LINK = "is a link, and what it leads to was not given"
_NO_FILE = "is no file"
_DAMAGED = "should be a text by its name, and is none"
_SPOOLED = 1 << 20  # bytes of a clean file that are kept in memory while others are looked at
_COUNTING = Key(b"to count, nothing is kept")
Pairs = list[tuple[Path, Path]]


class Export:
    """Files that wait beside their targets; they are put in place when nothing private is left in them."""

    def __init__(self, key: Key, policy: Policy) -> None:
        self.tally = Tally()
        self.cleaner = Cleaner(key, policy, self.tally.seen)

    def clean(self, pairs: Pairs) -> list[tuple[str, Path]]:
        """Clean each file into its target, those with rows first; what one gives away is taken out of all.

        Told is every file that was written, with the name under which the report tells of it.
        """
        naming, tally = Cleaner(self.cleaner.key, self.cleaner.policy), self.tally
        written = []
        for source, target in sorted(pairs, key=lambda pair: (not _is_rows(pair[0]), pair)):
            tally.file = str(Path(naming.text(str(source.parent)), clean_name(source.name, naming)))
            tally.files[tally.file] += 0
            if not _is_rows(source):
                self.cleaner.ids = frozenset(self.cleaner.task_ids)
            if _is_left(source, tally):
                continue
            _changed(source, target, self.cleaner, tally)
            written.append((tally.file, target))
        self.test(written)
        if tally.leaks:
            self._clean_again(written)
            self.test(written)
        tally.renamed(self.cleaner.echoing(None).text)
        return written

    def _clean_again(self, written: list[tuple[str, Path]]) -> None:
        """Take out of the files that hold it what was found elsewhere, and what the first look uncovered."""
        left = {place.file for place in self.tally.leaked}
        for self.tally.file, target in written:
            if self.tally.file in left:
                _changed(target, target, self.cleaner.testing(self.tally.seen), self.tally)

    def test(self, files: Iterable[tuple[str, Path]]) -> None:
        """Look for what is left in what was written; the report tells of it under the names given."""
        left = Tally()
        tester = self.cleaner.testing(left.seen)
        for left.file, path in files:
            with reading(path) as file:
                for _ in _left(file, path, tester, left):
                    pass
        left.renamed(self.cleaner.echoing(None).text)
        told = left.told()
        self.tally.leaks, self.tally.leaked = told.total, told.places


def clean_files(
    pairs: Iterable[tuple[Path, Path]], root: Path, key: Key, policy: Policy | None = None, force: bool = False
) -> Removed:
    """Clean each file into its target below `root`; none is put in place if anything private would be left."""
    listed = list(pairs)
    for source, target in listed:
        refuse_link(target, root)
        refuse_taken(target, force, [source])
    export = Export(key, policy if policy is not None else policy_near([source for source, _ in listed]))
    waiting = {source: target.with_name(f".{os.getpid()}.{target.name}") for source, target in listed}
    new = {place for _, target in listed for place in target.parents if not place.exists()}
    try:
        written = {held for _, held in export.clean(list(waiting.items()))}
        for source, target in listed:
            if waiting[source] in written and not export.tally.leaks:
                os.replace(waiting[source], target)
    finally:
        for held in waiting.values():
            with suppress(NotADirectoryError):
                held.unlink(missing_ok=True)
        for place in sorted(new, key=lambda place: -len(place.parts)):
            with suppress(OSError):  # it holds a clean file
                place.rmdir()
    return export.tally.told()


def _changed(source: Path, target: Path, cleaner: Cleaner, tally: Tally) -> None:
    """Write `source` to `target` as the cleaner leaves it; it appears whole or not at all."""
    with writing(target, source) as out, reading(source) as file:
        for piece in _left(file, source, cleaner, tally):
            put(out, target, piece)


def _pieces(file: IO[bytes], path: Path, cleaner: Cleaner, tally: Tally) -> Iterator[bytes]:
    """Rows one by one, other texts whole; the tally is told the line that is looked at."""
    if _is_rows(path):
        cleaner.on_line = None
        for tally.line, piece in enumerate(lines(file, path), 1):
            yield piece
        return
    before = 0
    for piece in blocks(file):
        tally.line = before + 1
        cleaner.on_line = partial(tally.at, before)
        yield piece
        before += piece.count(b"\n")


def _cleaned(data: bytes, cleaner: Cleaner, suffix: str) -> bytes:
    """A line of rows, or a text."""
    text = data.decode("utf-8", "surrogateescape")
    body = text.rstrip("\r\n") if suffix in _ROWS else text
    cleaner.field = ""
    new = cleaner.row(body) if suffix in (*_ROWS, ".json") else cleaner.text(body)
    return data if new == body else (new + text[len(body) :]).encode("utf-8", "surrogateescape")


def folder(source: Path, target: Path, policy: Policy | None = None, key: Key | None = None) -> Removed:
    """Clean every file of a folder into `target`, under cleaned names."""
    from blade.sanitize.keys import own_key

    key = key or own_key()
    policy = policy if policy is not None else policy_near([source])
    return clean_files(folder_pairs(source, target, policy, key), target, key, policy)


def folder_pairs(source: Path, target: Path, policy: Policy, key: Key) -> Pairs:
    """Every file of a folder with where it goes, under a clean name; the name of `target` is the caller's."""
    if not source.is_dir():
        raise NothingToRead(f"{source} is no folder", "name the folder of a package", "no-such-path")
    naming = Cleaner(key, policy)
    return [
        (path, target.joinpath(*(clean_name(part, naming) for part in parts[1:])))
        for path, parts in inside(source, target)
    ]


def clean_name(name: str, naming: Cleaner) -> str:
    """The name of a file or a folder as it may leave; its ending tells what it is, and stays."""
    stem = name
    while (ending := os.path.splitext(stem)[1].lower()) in _TEXTS or ending in (*_ROWS, ".gz", ".zst"):
        stem = stem[: -len(ending)]
    return naming.text(stem) + name[len(stem) :]


def inside(source: Path, target: Path | None) -> list[tuple[Path, tuple[str, ...]]]:
    """The files and links of a folder, each with its place below its name; hidden ones stay at home."""
    top = source.resolve()
    if target is not None and (target.resolve() == top or top in target.resolve().parents):
        message = f"{target} lies inside {source}"
        raise UsageError(message, "name a folder outside it with -o", "output-not-empty")
    found = (path for path in sorted(source.rglob("*")) if not _is_hidden(path, source))
    paths = [path for path in found if path.is_symlink() or not path.is_dir()]
    return [(path, (top.name, *path.relative_to(source).parts)) for path in paths]


def looked(files: Iterable[Path], policy: Policy | None = None) -> Removed:
    """What would be taken out of these files, counted as it is when they are written; nothing is."""
    tally = Tally()
    cleaner = Cleaner(_COUNTING, policy, tally.seen)
    with ExitStack() as stack:
        left: list[tuple[Path, IO[bytes]]] = []
        for path in sorted(files, key=lambda path: (not _is_rows(path), path)):
            tally.file = str(path)
            tally.files[tally.file] += 0
            if not _is_rows(path):
                cleaner.ids = frozenset(cleaner.task_ids)
            if _is_left(path, tally):
                continue
            held = stack.enter_context(SpooledTemporaryFile(_SPOOLED))
            with reading(path) as file:
                held.writelines(_left(file, path, cleaner, tally))
            left.append((path, held))
        again = cleaner.testing(tally.seen)
        for path, spool in left if cleaner.known else ():
            # what one file gives away is taken out of all of them, after all else was
            tally.file = str(path)
            spool.seek(0)
            for _ in _left(spool, path, again, tally):
                pass
    return tally.told()


def _left(file: IO[bytes], path: Path, cleaner: Cleaner, tally: Tally) -> Iterator[bytes]:
    """What a cleaner leaves of a file, piece by piece."""
    suffix = _suffix(path)
    return (_cleaned(piece, cleaner, suffix) for piece in _pieces(file, path, cleaner, tally))


def _is_hidden(path: Path, top: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(top).parts)


def _is_rows(path: Path) -> bool:
    return _suffix(path) in _ROWS


def _is_told(path: Path) -> bool:
    """Does the name of a file say that it is a text."""
    return _is_rows(path) or _suffix(path) in _TEXTS


def _is_left(path: Path, tally: Tally) -> bool:
    """Must a file stay at home: no link is followed, and what is no text cannot be looked into."""
    is_told = _is_told(path)
    if path.is_symlink():
        tally.left(_LINK, is_told=True)
    elif not path.is_file():
        tally.left(_NO_FILE, is_told)
    elif not is_text(path, is_told):
        tally.left(_DAMAGED if is_told else _BINARY, is_told)
    else:
        return False
    return True


def _suffix(path: Path) -> str:
    name = path.name.lower()
    for pack in (".gz", ".zst"):
        name = name.removesuffix(pack)
    return os.path.splitext(name)[1]
