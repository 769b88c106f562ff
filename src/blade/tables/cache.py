"""Keep indexes and conclusions in the cache folder: locked, written whole, trimmed, and bound to their source."""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import json
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

from blade import __version__

LAYOUT = "6"  # of the files of an index; another number means: build anew
_FOLDER = "indexes"
_FOLDERS = re.compile(r"[0-9a-f]{24}")  # all we ever write or delete are folders of such names in that folder
_DIGEST = 32  # characters of a digest
MAX_MB = 20_000  # of all indexes and tables, unless BLADE_CACHE_MAX_MB says otherwise

# Size, times of the last change of content and of the file itself, inode, digest of the content: an edit that sets the
# old time back, one through a mapping that moves no time, and another file under the same name change one of them.
Stamp = tuple[int, int, int, int, str]
WHOLE = 32 << 20  # bytes up to which a file is hashed whole, in some milliseconds; of a larger one its ends and samples
_END, _SAMPLE, _SAMPLES, _PIECE = 1 << 16, 1 << 12, 128, 1 << 20
_IN_USE: set[Path] = set()  # folders that this process has asked for


class Unwritable(Exception):
    """A folder cannot hold an index: full, read-only, denied, gone."""


@contextlib.contextmanager
def writing() -> Iterator[None]:
    """What fails in here is the cache, not the source."""
    try:
        yield
    except OSError as error:
        raise Unwritable(error.strerror or str(error)) from error


@lru_cache(maxsize=1)
def made_by() -> str:
    """What wrote an index: layout, version, and the code that makes columns, which changes between versions too."""
    code = b"".join(path.read_bytes() for path in sorted(Path(__file__).parents[1].joinpath("formats").glob("*.py")))
    return f"{LAYOUT}/{__version__}/{blake2b(code, digest_size=8).hexdigest()}"


def root() -> Path:
    """The cache folder: `BLADE_CACHE_DIR`, else the user's cache."""
    folder = os.environ.get("BLADE_CACHE_DIR")
    try:
        if folder:
            return Path(folder).expanduser()
        base = os.environ.get("XDG_CACHE_HOME")
        return (Path(base) if base else Path("~/.cache").expanduser()) / "blade"
    except RuntimeError:  # a user without a home, as containers have them
        shared = Path(tempfile.gettempdir()) / f"blade-cache-{os.getuid()}"
        with contextlib.suppress(OSError):
            shared.mkdir(mode=0o700, exist_ok=True)
            if shared.lstat().st_uid == os.getuid():  # anybody may put a folder of this name there
                return shared
        return Path(scratch())


def stamp_of(path: Path) -> Stamp:
    """How a file lies on disk now."""
    status = path.stat()
    content = _content(path, status.st_size) if stat.S_ISREG(status.st_mode) else ""
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, content


def _content(path: Path, size: int) -> str:
    """A digest of the content of a file: the whole of a small one."""
    import xxhash

    digest = xxhash.xxh3_128()
    ranges = [(start, _PIECE) for start in range(0, size, _PIECE)]
    if size > WHOLE:
        samples = ((size * number // _SAMPLES, _SAMPLE) for number in range(_SAMPLES))
        ranges = [(0, _END), *samples, (size - _END, _END)]
    with path.open("rb", buffering=0) as file:
        for start, length in ranges:
            digest.update(os.pread(file.fileno(), length, start))
    return digest.hexdigest()


def folder_for(source: Path) -> Path:
    """The folder of the index of `source`, which need not exist; this process will not trim it."""
    key = blake2b(os.fsencode(source.absolute()), digest_size=12).hexdigest()
    folder = root() / _FOLDER / key
    _IN_USE.add(folder)
    return folder


@lru_cache(maxsize=1)
def scratch() -> str:
    """A folder for what cannot be found again; it goes with the process."""
    folder = tempfile.mkdtemp(prefix="blade-tables-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@contextlib.contextmanager
def temporary() -> Iterator[Path]:
    """A folder for when the cache cannot be written; an index that is open outlives it."""
    with writing():
        folder = Path(tempfile.mkdtemp(prefix="blade-index-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def locked(folder: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold the folder alone; the lock goes with the process and its workers, however they end."""
    with writing():
        handle = _lock(folder, waiting)
    try:
        yield
    finally:
        os.close(handle)


def _lock(folder: Path, waiting: Callable[[], None]) -> int:
    path = folder / "lock"
    for _ in range(10):
        folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        folder.mkdir(exist_ok=True, mode=0o700)  # rollouts are private text
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        except FileNotFoundError:
            continue
        if not _acquired(handle):
            waiting()
            fcntl.flock(handle, fcntl.LOCK_EX)
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(handle), os.stat(path)):
                return handle
        os.close(handle)  # someone emptied the cache while we waited
    raise Unwritable("another process removes the folder again and again")


def _acquired(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass  # a file system without locks: files are still replaced whole
    return True


def _folders() -> list[Path]:
    """The folders of indexes."""
    try:
        with os.scandir(root() / _FOLDER) as entries:
            return [Path(e.path) for e in entries if _FOLDERS.fullmatch(e.name) and e.is_dir(follow_symlinks=False)]
    except OSError:
        return []


def size() -> tuple[int, int]:
    """Bytes and indexes in the cache."""
    folders = _folders()
    return sum(map(_size, folders)), len(folders)


def clean() -> tuple[int, int]:
    """Empty the cache but for what another process is just writing; what was freed."""
    before = size()
    for folder in _folders():
        _removed(folder)
    with contextlib.suppress(OSError):
        (root() / _FOLDER).rmdir()
    after = size()
    return before[0] - after[0], before[1] - after[1]


def limit() -> int:
    """How many bytes the cache may hold."""
    try:
        return int(float(os.environ.get("BLADE_CACHE_MAX_MB", MAX_MB)) * 1_000_000)
    except ValueError:
        return MAX_MB * 1_000_000


def trim() -> int:
    """Remove the folders of others that were longest unused until the cache is within its limit; bytes freed."""
    sizes = {folder: _size(folder) for folder in _folders()}

    def last_use(folder: Path) -> float:
        return max((stat.st_mtime for stat in _stats((folder, *folder.iterdir()))), default=0.0)

    surplus, freed = sum(sizes.values()) - limit(), 0
    for folder in sorted(sizes, key=last_use) if surplus > 0 else ():
        if freed < surplus and folder not in _IN_USE and _removed(folder):
            freed += sizes[folder]
    return freed


def _size(folder: Path) -> int:
    return sum(stat.st_size for stat in _stats(folder.rglob("*")))


def _stats(paths: Iterable[Path]) -> Iterator[os.stat_result]:
    """How files lie on disk; those that are gone meanwhile are left out."""
    for path in paths:
        with contextlib.suppress(OSError):
            yield path.lstat()


def _removed(folder: Path) -> bool:
    """Remove a folder unless another process is writing it."""
    with contextlib.suppress(OSError):
        handle = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            if _acquired(handle):
                shutil.rmtree(folder, ignore_errors=True)
                return True
        finally:
            os.close(handle)
    return False


def write_new(folder: Path, prefix: str, pieces: Iterable[Any]) -> str:
    """Write a file under a new name, whole or not at all; its path."""
    handle, name = tempfile.mkstemp(dir=folder, prefix=prefix)
    try:
        with os.fdopen(handle, "wb") as file:
            file.writelines(pieces)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
    return name


def write_whole(path: Path, data: bytes) -> None:
    """Write a file so that a reader sees the old one or the new one, never a part."""
    os.replace(write_new(path.parent, ".tmp-", [data]), path)


# -- conclusions ----------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _code() -> bytes:
    """Our own code as it lies on disk: other code, other conclusions."""
    paths = [path for path in Path(__file__).parents[1].rglob("*") if path.suffix in (".py", ".toml", ".json")]
    stamps = ((status.st_size, status.st_mtime_ns, status.st_ctime_ns) for status in map(Path.stat, sorted(paths)))
    return blake2b(b"".join(map(_spelled, sorted(paths), stamps)), digest_size=16).digest()


def _spelled(path: Path | str, stamp: tuple[int | str, ...]) -> bytes:
    return "\0".join(map(str, (path, *stamp, ""))).encode("utf-8", "surrogateescape")


def key(stamps: Mapping[str, Stamp], *others: str) -> str:
    """What a conclusion depends on: files as they lay on disk before they were read, our code, and what else is told."""
    files = b"".join(_spelled(path, stamps[path]) for path in sorted(stamps))
    texts = b"".join(text.encode("utf-8", "surrogatepass") + b"\0" for text in others)
    return _checksum(_code() + files + texts)


def stamps_of(paths: Iterable[str]) -> dict[str, Stamp]:
    """How files lie on disk now; one that is gone has no stamp."""
    stamps = {}
    for path in paths:
        with contextlib.suppress(OSError):
            stamps[path] = stamp_of(Path(path))
    return stamps


def _checksum(content: bytes) -> str:
    return blake2b(content, digest_size=_DIGEST // 2).hexdigest()


def sealed(content: bytes) -> bytes:
    """Content behind its checksum."""
    return _checksum(content).encode() + content


def unsealed(data: bytes) -> bytes:
    """The content behind a checksum; ValueError if it is not as it was written."""
    content = data[_DIGEST:]
    if data[:_DIGEST] != _checksum(content).encode():
        raise ValueError("damaged")
    return content


def kept(source: Path, name: str, wanted: str) -> bytes | None:
    """What was kept for this source under this name and key."""
    try:
        content = unsealed((folder_for(source) / f"{name}.kept").read_bytes())
    except (OSError, ValueError):
        return None
    return content[_DIGEST:] if content[:_DIGEST] == wanted.encode() else None


def keep(source: Path, name: str, made_for: str, content: bytes) -> None:
    """Keep a conclusion; where the cache cannot be written, it is made again next time."""
    folder = folder_for(source)
    with contextlib.suppress(OSError):
        if folder.is_dir() and os.access(folder, os.W_OK):
            write_whole(folder / f"{name}.kept", sealed(made_for.encode() + content))


def keep_rows(source: str, stamps: Mapping[str, Stamp], rows: Mapping[str, tuple[str, str, int | None]]) -> None:
    """Keep what each failing rollout was found to be, by its address: label, name, step; with what was read for it."""
    facts = str(Path(source).parent / "blade.toml")
    depends = {facts: None, **stamps}  # where there is none yet, one that comes changes what is concluded
    keep(Path(source), "rows", _checksum(_code()), json.dumps((depends, rows)).encode())


def kept_row(source: Path, address: str) -> tuple[str, str, int | None] | None:
    """What a rollout was found to be when its files, as they lie there now, were diagnosed last; None if they were not."""
    try:
        depends, rows = json.loads(kept(source, "rows", _checksum(_code())) or b"[{}, {}]")
        if any(stamps_of([path]).get(path, ()) != tuple(stamp or ()) for path, stamp in depends.items()):
            return None
        label, name, step = rows[address]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return label, name, step
