"""Clean files and folders: read lines or blocks, packed or not, write them alike, count what was replaced."""

from __future__ import annotations

import codecs
import io
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO, Any, BinaryIO, cast

import msgspec

from blade.errors import NothingToRead, Unreadable, UsageError
from blade.sanitize.cleaner import Cleaner
from blade.sanitize.policy import Key, Policy, key_file, known_key, own_key, policy_near
from blade.sanitize.tables import Tables
from blade.targets import link_in, open_direct, put_files, refuse_link, refuse_taken, settled, staging

# What no rule can tell from any other text, said wherever nothing was found or written.
NOT_SEEN = (
    "names of people in running text", "phone and card numbers", "postal addresses",
    "passwords that nothing beside them names", "passwords of letters alone where code could stand",
    "keys that look like a hash", "pictures and archives", "texts in hex, base32, base85 or packed base64",
)  # fmt: skip
_MAX_PLACES = 20_000  # listed one by one; the counts by kind and file are whole beyond it

_SHOWN = 10  # leaks told one by one


class Place(msgspec.Struct, frozen=True):
    """Where something was taken out, of which kind, and how often."""

    file: str
    line: int  # from 1
    field: str  # of the row, dotted; empty in a text
    kind: str
    count: int


class Removed(msgspec.Struct, frozen=True):
    """What a file or a folder lost on its way out."""

    places: tuple[Place, ...] = ()
    kinds: dict[str, int] = {}
    files: dict[str, int] = {}  # every file that was given -> how many values it lost
    left_out: dict[str, str] = {}  # files that were not written, and why
    unread: tuple[str, ...] = ()  # those of them whose names say that they are texts
    leaks: int = 0  # found in what was written; anything but 0 is a fault
    unlisted: int = 0  # values beyond those that `places` lists
    leaked: tuple[Place, ...] = ()  # where the leaks are, in what was about to be written

    @property
    def total(self) -> int:
        return sum(self.kinds.values())

    @property
    def read(self) -> int:
        """Files that were looked into."""
        return len(self.files) - len(self.left_out)


class Tally:
    """Counts while files are cleaned."""

    def __init__(self) -> None:
        self.file, self.line = "", 0
        self.places: Counter[tuple[str, int, str, str]] = Counter()
        self.kinds: Counter[str] = Counter()
        self.files: Counter[str] = Counter()
        self.left_out: dict[str, str] = {}
        self.unread: list[str] = []
        self.leaks = self.unlisted = 0
        self.leaked: tuple[Place, ...] = ()
        self._gone: dict[str, list[tuple[int, int]]] = {}  # by file: lines, and how many breaks went there
        self._before: list[tuple[int, int]] = []  # of those, what had gone when the text was read

    def seen(self, field: str, kind: str, value: str) -> None:
        place = (self.file, self.line, field, kind)
        if len(self.places) < _MAX_PLACES or place in self.places:
            self.places[place] += 1
        else:
            self.unlisted += 1
        self.kinds[kind] += 1
        self.files[self.file] += 1

    def at(self, before: int, line: int, gone: int) -> None:
        """What is seen next stands in this line of a text that is read again after lines of it went."""
        lost = self._gone.setdefault(self.file, [])
        if not line:
            self._before = sorted(lost)
            return
        line += before
        for place, breaks in self._before:
            line += breaks if place < line else 0
        self.line = line
        if gone:
            lost.append((line, gone))

    def left(self, why: str, is_told: bool) -> None:
        """The file cannot be looked into; `is_told`: its name says that it could be."""
        self.left_out[self.file] = why
        if is_told:
            self.unread.append(self.file)

    def renamed(self, change: Callable[[str], str]) -> None:
        """Tell fields otherwise: what is known by now to be private may stand in a key."""
        old, self.places = self.places, Counter()
        for (file, line, field, kind), count in old.items():
            self.places[file, line, change(field), kind] += count

    def told(self) -> Removed:
        places = tuple(Place(*place, count) for place, count in sorted(self.places.items()))
        kinds, files = (dict(sorted(counts.items())) for counts in (self.kinds, self.files))
        unread = tuple(self.unread)
        return Removed(places, kinds, files, self.left_out, unread, self.leaks, self.unlisted, self.leaked)


def renamed(removed: Removed, name: str) -> Removed:
    """What one file lost, told under another name."""
    return msgspec.structs.replace(
        removed,
        places=tuple(msgspec.structs.replace(place, file=name) for place in removed.places),
        leaked=tuple(msgspec.structs.replace(place, file=name) for place in removed.leaked),
        files={name: sum(removed.files.values())},
        left_out=dict.fromkeys([name] * bool(removed.left_out), "; ".join(removed.left_out.values())),
        unread=(name,) * bool(removed.unread),
    )


def leak_lines(removed: Removed) -> list[str]:
    """What is to be said of leaks: how many, and where, without the values."""
    if not removed.leaks:
        return []
    lines = [f"LEAK: {removed.leaks:,} values that look private are left; nothing was written"]
    for place in removed.leaked[:_SHOWN]:
        field = f", field {place.field}" if place.field else ""
        lines.append(f"  {place.file}, line {place.line}{field}: {place.count:,} {place.kind}")
    if len(removed.leaked) > _SHOWN:
        lines.append(f"  and {len(removed.leaked) - _SHOWN:,} further places")
    return lines


def as_json(removed: Removed) -> str:
    """The report for a program."""
    words = {"schema": "blade.removed/1", "total": removed.total, **msgspec.to_builtins(removed), "not_seen": NOT_SEEN}
    text = json.dumps(words, indent=2, ensure_ascii=False)
    # letters that no encoding has, such as those of a file's name, are told by their numbers
    return text.encode("utf-8", "backslashreplace").decode() + "\n"


# ---- Files ---------------------------------------------------------------------------------------

_ROWS = (".jsonl", ".ndjson")
_TEXTS = frozenset(
    ".md .markdown .txt .json .html .htm .toml .yaml .yml .csv .tsv .svg .xml .py .sh .log .cfg .ini "
    ".diff .patch .rst .tex .css .js .ts".split()
)
_BINARY = "is no text, and what it shows cannot be looked into"
_LINK = "is a link, and what it leads to was not given"
_NO_FILE = "is no file"
_KEY = "is a key of the placeholders, and stays at home"
_DAMAGED = "should be a text by its name, and is none"
_MOST_NAME = 255  # bytes of the name of a file: placeholders may be longer than what they stand for
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

        for source, target in _in_turn(pairs, self.cleaner, tally, lambda path: told_name(path, naming)):
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
        words = left.told()
        self.tally.leaks, self.tally.leaked = words.total, words.places


def clean_files(
    pairs: Iterable[tuple[Path, Path]], root: Path, key: Key, policy: Policy | None = None, force: bool = False
) -> Removed:
    """Clean each file into its target below `root`; none is put in place if anything private would be left."""
    listed, real = list(pairs), root.resolve()
    for source, target in listed:
        refuse_link(target, root)
        refuse_taken(target, force, [source])
    export = Export(key, policy if policy is not None else policy_near([source for source, _ in listed]))
    try:
        with staging(real) as place:
            waiting = [(source, place / f"{n}{_suffix(target)[:8]}") for n, (source, target) in enumerate(listed)]
            written = {path for _, path in export.clean(waiting)}
            ready = zip(waiting, listed, strict=True)
            moves = [(path, real / target.relative_to(root)) for (_, path), (_, target) in ready if path in written]
            put_files(moves if not export.tally.leaks else (), force)
    except OSError as error:
        raise _unwritable(root, error) from error
    return export.tally.told()


def _changed(source: Path, target: Path, cleaner: Cleaner, tally: Tally) -> None:
    """Write `source` to `target` as the cleaner leaves it; it appears whole or not at all."""
    with writing(target, source) as out, reading(source) as file:
        for piece in _left(file, source, cleaner, tally):
            try:
                out.write(piece)
            except OSError as error:  # a full disk is no fault of the file that is read
                raise _unwritable(target.parent, error) from error


def _cleaned(data: bytes, cleaner: Cleaner, suffix: str) -> bytes:
    text = data.decode("utf-8", "surrogateescape")
    body = text.rstrip("\r\n") if suffix in _ROWS else text
    cleaner.field = ""
    new = cleaner.row(body) if suffix in (*_ROWS, ".json") else cleaner.text(body)
    return data if new == body else (new + text[len(body) :]).encode("utf-8", "surrogateescape")


def folder(source: Path, target: Path, policy: Policy | None = None, key: Key | None = None) -> Removed:
    """Clean every file of a folder into `target`, under cleaned names."""
    key = key or own_key()
    policy = policy if policy is not None else policy_near([source])
    return clean_files(folder_pairs(source, target, policy, key), target, key, policy)


def folder_pairs(source: Path, target: Path, policy: Policy, key: Key) -> Pairs:
    """Every file of a folder with where it goes, under a clean name; the name of `target` is the caller's."""
    if not source.is_dir():
        raise NothingToRead(f"{source} is no folder", "name the folder of a package", "no-such-path")
    naming, paths = Cleaner(key, policy), inside(settled([source])[0], target)
    return [(path, target.joinpath(*(clean_name(part, naming) for part in parts[1:]))) for path, parts in paths]


def clean_name(name: str, naming: Cleaner) -> str:
    """The name of a file or a folder as it may leave; its ending tells what it is, and stays."""
    stem = name
    while (ending := os.path.splitext(stem)[1].lower()) in _TEXTS or ending in (*_ROWS, ".gz", ".zst"):
        stem = stem[: -len(ending)]
    new = naming.text(stem) + name[len(stem) :]
    return new if len(os.fsencode(new)) <= _MOST_NAME else naming.key.stub("NAME", stem) + name[len(stem) :]


def inside(source: Path, target: Path | None, hidden: bool = False) -> list[tuple[Path, tuple[str, ...]]]:
    """The files and links of a folder, each with its place below its name; hidden ones stay at home unless asked for."""
    top = source.resolve()
    if target is not None and (target.resolve() == top or top in target.resolve().parents):
        message = f"{target} lies inside {source}"
        raise UsageError(message, "name a folder outside it with -o", "output-not-empty")
    paths = [path for path in sorted(source.rglob("*")) if path.is_symlink() or not path.is_dir()]
    places = [(path, path.relative_to(source).parts) for path in paths]
    seen = [place for place in places if hidden or not any(part[0] == "." for part in place[1])]
    return [(path, (top.name, *parts)) for path, parts in seen]


def looked(
    files: Iterable[Path], policy: Policy | None = None, parts: Mapping[Path, Sequence[str]] = {},
    shown: Callable[[Path], Path] = Path, key: Key | None = None,
) -> Removed:  # fmt: skip
    """What would be taken out of these files, counted as it is when they are written; nothing is.

    The `parts` of their names count as well, or their names alone; they are told by their clean names.
    """
    tally = Tally()
    with suppress(UsageError):  # the text of a key that is none is no secret
        key = key or known_key()
    cleaner, naming, counting = (Cleaner(key or _COUNTING, policy, seen) for seen in (tally.seen, None, tally.seen))
    labels = {path: told_name(shown(path), naming) for path in files}
    names = {path: parts.get(path, (path.name,)) for path in labels}
    counting.field = "(name)"
    first = {words[: n + 1]: path for path, words in reversed(names.items()) for n in range(len(words))}
    for words, path in first.items():
        tally.file = labels[path]
        clean_name(words[-1], counting)
    with ExitStack() as stack:
        left: list[tuple[Path, IO[bytes]]] = []
        for path, _ in _in_turn(((path, path) for path in labels), cleaner, tally, labels.__getitem__):
            content = stack.enter_context(SpooledTemporaryFile(_SPOOLED))
            with reading(path) as file:
                content.writelines(_left(file, path, cleaner, tally))
            left.append((path, content))
        again = cleaner.testing(tally.seen)
        for path, spool in left if cleaner.known else ():
            # what one file gives away is taken out of all of them, after all else was
            tally.file = labels[path]
            spool.seek(0)
            for _ in _left(spool, path, again, tally):
                pass
    return tally.told()


def told_name(path: Path, naming: Cleaner) -> str:
    """The name of a file as it may be told."""
    return str(Path(naming.text(str(path.parent)), clean_name(path.name, naming)))


def _in_turn(
    pairs: Iterable[tuple[Path, Path]], cleaner: Cleaner, tally: Tally, name: Callable[[Path], str]
) -> Iterator[tuple[Path, Path]]:
    """The files that can be looked into, those with rows first: their ids stay in the texts about them."""
    for path, target in sorted(pairs, key=lambda pair: (not _is_rows(pair[0]), pair)):
        tally.file = name(path)
        tally.files[tally.file] += 0
        if not _is_rows(path):
            cleaner.ids = frozenset(cleaner.task_ids)
        if not _is_left(path, tally, cleaner.key):
            yield path, target


def _left(file: IO[bytes], path: Path, cleaner: Cleaner, tally: Tally) -> Iterator[bytes]:
    """Rows one by one, other texts whole or in pieces; the tally is told the line that is looked at."""
    suffix, before, done = _suffix(path), 0, b""
    cleaner.on_line = None
    if _is_rows(path):
        for tally.line, row in enumerate(lines(file, path), 1):
            yield _cleaned(row, cleaner, suffix)
        return
    for piece in blocks(file, MAX_WHOLE if suffix == ".json" else _PIECE):
        lead = _lead(done) if done and not (cleaner.blocks and cleaner.blocks.patience) else b""
        tally.line = before + 1
        cleaner.on_line = partial(tally.at, before - lead.count(b"\n"))
        done = _cleaned(lead + piece, cleaner, suffix)
        if not done.startswith(lead):
            lead, done = b"", _cleaned(piece, cleaner, suffix)
        yield done[len(lead) :]
        before += piece.count(b"\n")


def _lead(done: bytes) -> bytes:
    """What the next piece of a text is read with: the head of a table that goes on, or the lines just before."""
    lead = Tables(done.decode("utf-8", "surrogateescape")).lead.encode("utf-8", "surrogateescape")
    return lead or done[done.find(b"\n", len(done) - _REACH) + 1 :][-_REACH:]


def _is_rows(path: Path) -> bool:
    return _suffix(path) in _ROWS


def _is_left(path: Path, tally: Tally, key: Key) -> bool:
    """Must a file stay at home: no key leaves, no link is followed, and what is no text cannot be looked into."""
    is_told = _is_rows(path) or _suffix(path) in _TEXTS
    if link_in(path):
        tally.left(_LINK, is_told=True)
    elif not path.is_file():
        tally.left(_NO_FILE, is_told)
    elif any(file.is_file() and file.samefile(path) for file in (key.path, key_file()) if file):
        tally.left(_KEY, is_told=False)
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


# ---- Streams -------------------------------------------------------------------------------------

_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_MAX_LINE = 256 << 20  # a longer line is not read at once
MAX_WHOLE = 64 << 20  # a text up to this size is cleaned in one piece
_PIECE = 8 << 20  # the same of one that need not be read as a whole, such as JSON
_REACH = 16 << 10  # letters before a piece of a text that what it begins with may belong to
_HEAD = 8192  # bytes that tell how a text is written
# What no text holds in any encoding; bells, tabs, backspaces and colours of terminals aside.
_ODD = bytes((*range(7), *range(14, 27), *range(28, 32), 127))
_HOLES = re.compile(rb"\0{16,}")  # what a machine that went down leaves; no letters lie in it
_MOST_ODD = 0.03  # of the bytes of a text
# The longer marks first: the one of UTF-32 begins as the one of UTF-16 does.
_MARKS = {"utf-32": (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE), "utf-16": (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)}


@contextmanager
def reading(path: Path) -> Iterator[IO[bytes]]:
    """A file, inflated if it is packed, as UTF-8 if it is a text in a wider encoding."""
    try:
        with open(path, "rb", opener=open_direct) as raw, _unpacked(raw, path) as file:
            yield _narrowed(file)
    except EOFError as error:
        raise Unreadable(f"{path} is cut short", "copy it again", "unreadable-file") from error
    except UnicodeError as error:
        hint = "write it as UTF-8, or leave it out"
        raise Unreadable(f"{path} is damaged: {error}", hint, "unreadable-file") from error
    except OSError as error:
        message = f"cannot read {path}: {error.strerror or error}"
        raise Unreadable(message, "check the path and its rights", "unreadable-file") from error


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
    for encoding, marks in _MARKS.items():
        if head.startswith(marks):
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
    """Can a file be read as text, to its end; `is_told`: its name says that it is one, whatever its odd letters are."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    with reading(path) as file:
        least = 0
        while block := file.read(_HEAD):
            odd = len(text := _HOLES.sub(b"", block)) - len(text.translate(None, _ODD))
            if is_told and odd > _MOST_ODD * max(len(block), least):
                return False
            least = _HEAD  # of the last block, too
            if not is_told and (b"\0" in block or not _is_utf8(block, decoder)):
                return False
    return True


def _is_utf8(block: bytes, decoder: codecs.IncrementalDecoder) -> bool:
    try:
        decoder.decode(block)
    except UnicodeDecodeError:
        return False
    return True


@contextmanager
def _unpacked(raw: io.BufferedReader, path: Path) -> Iterator[IO[bytes]]:
    """The file itself, or what is packed in it."""
    head = raw.peek(4)[:4]
    if head[:2] != _GZIP and head != _ZSTD:
        yield raw
        return
    import zstandard
    from isal import igzip, isal_zlib

    opened: Any = igzip.IGzipFile
    try:
        if head == _ZSTD:
            reader = zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True)
            yield io.BufferedReader(cast("io.RawIOBase", reader), 1 << 20)
        else:
            with opened(fileobj=raw, mode="rb") as file:
                yield file
    except (zstandard.ZstdError, cast("type[Exception]", isal_zlib.error)) as error:
        raise Unreadable(f"{path} is damaged: {error}", "copy it again", "unreadable-file") from error


@contextmanager
def writing(target: Path, source: Path) -> Iterator[BinaryIO]:
    """A file that replaces `target` when it is whole, packed as `source` is."""
    waiting = target.with_name(f"{target.name}.part")
    with open(source, "rb", opener=open_direct) as file:
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
        raise _unwritable(target.parent, error) from error


def _unwritable(folder: Path, error: OSError) -> Unreadable:
    message = f"cannot write into {folder}: {error.strerror or error}"
    return Unreadable(message, "choose another folder with -o", "cannot-write")


def lines(file: IO[bytes], path: Path) -> Iterator[bytes]:
    while line := file.readline(_MAX_LINE):
        if len(line) == _MAX_LINE and not line.endswith(b"\n"):
            message = f"{path} has a line of more than {_MAX_LINE:,} bytes"
            raise Unreadable(message, "split the row", "unreadable-file")
        yield line


def blocks(file: IO[bytes], size: int) -> Iterator[bytes]:
    """A text whole, or in pieces that end where a line ends, or else a word."""
    data = b""
    while more := file.read(size):
        data += more
        if len(data) < size:
            continue
        cut = data.rfind(b"\n") + 1 or data.rfind(b" ") + 1 or len(data)
        yield data[:cut]
        data = data[cut:]
    if data:
        yield data
