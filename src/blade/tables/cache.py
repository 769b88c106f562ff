"""Where indexes are kept, how large they are, and how they are emptied."""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path

from blade import __version__

LAYOUT = "4"  # of the files of an index; another number means: build anew
_FOLDER = "indexes"
_KEY = re.compile(r"[0-9a-f]{24}")  # all we ever write or delete are folders of such names in that folder


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
    """What wrote an index: layout, version, and the code that turns rows into columns.

    The last part spares us from stale columns when that code changes between two versions.
    """
    digest = blake2b(digest_size=8)
    for path in sorted(Path(__file__).parents[1].joinpath("formats").glob("*.py")):
        digest.update(path.read_bytes())
    return f"{LAYOUT}/{__version__}/{digest.hexdigest()}"


def root() -> Path:
    """The cache folder: `BLADE_CACHE_DIR`, else the user's cache."""
    given = os.environ.get("BLADE_CACHE_DIR")
    try:
        if given:
            return Path(given).expanduser()
        base = os.environ.get("XDG_CACHE_HOME")
        return (Path(base) if base else Path("~/.cache").expanduser()) / "blade"
    except RuntimeError:  # a user without a home, as containers have them
        return Path(tempfile.gettempdir()) / f"blade-cache-{os.getuid()}"


def folder_for(source: Path) -> Path:
    """The folder of the index of `source`, which need not exist."""
    key = blake2b(os.fsencode(source.absolute()), digest_size=12).hexdigest()
    return root() / _FOLDER / key


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
        with os.scandir(root() / _FOLDER) as found:
            return [Path(e.path) for e in found if _KEY.fullmatch(e.name) and e.is_dir(follow_symlinks=False)]
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


MAX_MB = 20_000  # of all indexes and tables, unless BLADE_CACHE_MAX_MB says otherwise


def limit() -> int:
    """How many bytes the cache may hold."""
    try:
        return int(float(os.environ.get("BLADE_CACHE_MAX_MB", MAX_MB)) * 1_000_000)
    except ValueError:
        return MAX_MB * 1_000_000


def trim(keep: Path) -> int:
    """Remove the folders that were longest unused until the cache is within its limit; bytes freed."""
    folders = {folder: _size(folder) for folder in _folders()}
    total, freed, most = sum(folders.values()), 0, limit()
    if total <= most:
        return 0
    for folder in sorted(folders, key=_used):
        if total - freed <= most:
            break
        if folder != keep and _removed(folder):
            freed += folders[folder]
    return freed


def _size(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        with contextlib.suppress(OSError):
            total += path.lstat().st_size
    return total


def _used(folder: Path) -> float:
    """When a folder was last used, by its own mark or by its newest file."""
    times = [0.0]
    for path in (folder, *folder.iterdir()):
        with contextlib.suppress(OSError):
            times.append(path.stat().st_mtime)
    return max(times)


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


def write_whole(path: Path, data: bytes) -> None:
    """Write a file so that a reader sees the old one or the new one, never a part."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".tmp-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
