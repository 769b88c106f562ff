"""Decide what may be written where: through no link, over no input, over nothing foreign unless told to."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import signal
import stat
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp

from blade.errors import UsageError

STAGING = ".blade-staging-"  # begins the names of folders for files that are not ready


def refuse_link(path: Path, root: Path | None = None) -> None:
    """Refuse a file that is a link, or that a link below `root` takes elsewhere; `root` itself was named."""
    below = path.relative_to(root).parents if root is not None else ()
    for place in (path, *(root / item for item in below if root is not None and item.parts)):
        if os.path.islink(place):  # such functions answer for names that no disk takes, too
            hint = "remove the link, or name another place"
            raise UsageError(f"{place} is a link, and would be written through", hint, "output-not-empty")


def refuse_taken(path: Path, force: bool, remaining: Iterable[Path] = ()) -> None:
    """Refuse a file that is there, unless told to; a link, a folder and what is `kept` always."""
    refuse_link(path)
    if os.path.isdir(path):
        raise UsageError(f"{path} is a folder", "name a file", "output-not-empty")
    if any(_is_same(path, item) for item in remaining):
        hint = "name another file"
        raise UsageError(f"{path} is read or written by the same command", hint, "output-not-empty")
    if os.path.exists(path) and not force:
        raise UsageError(f"{path} is there already", "name another file, or add --force", "output-not-empty")


# ---- Paths that no link may change ---------------------------------------------------------------

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_NO_HARD_LINKS = (errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP, errno.EMLINK, errno.EXDEV)


def settled(paths: Sequence[Path]) -> list[Path]:
    """Paths whose links have been read, once: those that lead to the folder that all of them share.

    No link is read in or below the working folder, where a shell finds what nobody chose.
    """
    here, places = Path.cwd(), [Path(os.path.abspath(path)) for path in paths]
    parents = [place.parent for place in places if not place.is_relative_to(here)]
    shared = Path(os.path.commonpath(parents)) if parents else here
    if (real := shared.resolve()) == shared:
        return list(paths)
    pairs = zip(paths, places, strict=True)
    return [path if place.is_relative_to(here) else real / place.relative_to(shared) for path, place in pairs]


def link_in(path: Path) -> Path | None:
    """The link on the way to a file, or the file that is one."""
    return next((place for place in (*reversed(path.parents), path) if os.path.islink(place)), None)


@contextmanager
def folder_handle(folder: Path, make: bool = False) -> Iterator[int]:
    """A folder opened part by part, through no link: nobody can lead elsewhere what is opened relative to it."""
    handle = os.open(folder.anchor or ".", _FOLDER)
    try:
        for part in folder.parts[bool(folder.anchor) :]:
            with suppress(FileExistsError):
                if make:
                    os.mkdir(part, dir_fd=handle)
            below = os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=handle)
            os.close(handle)
            handle = below
        yield handle
    finally:
        os.close(handle)


def open_direct(path: str | Path, flags: int) -> int:
    """Open a file through no link; an opener for `open`."""
    with folder_handle(Path(path).parent) as folder:
        return os.open(Path(path).name, flags | os.O_NOFOLLOW, dir_fd=folder)


def put_files(pairs: Iterable[tuple[Path, Path]], force: bool) -> None:
    """Move whole files to their places: through no link, and over nothing that came there meanwhile unless told to."""
    listed, done = list(pairs), list[Path]()
    for _, target in listed:
        refuse_link(target, Path(target.anchor))
        refuse_taken(target, force)
    try:
        for source, target in listed:
            with folder_handle(target.parent, make=True) as folder:
                (_replace if force else _link)(source, target, folder)
            done.append(target)
    except (OSError, UsageError):
        for path in done if not force else ():  # those are new, and ours
            with suppress(OSError), folder_handle(path.parent) as folder:
                os.unlink(path.name, dir_fd=folder)
        refuse_link(target, Path(target.anchor))
        refuse_taken(target, force)
        raise


def _link(source: Path, target: Path, folder: int) -> None:
    try:
        os.link(source, target.name, dst_dir_fd=folder, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        os.close(os.open(target.name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, dir_fd=folder))
        os.replace(source, target.name, dst_dir_fd=folder)


def _replace(source: Path, target: Path, folder: int) -> None:
    with suppress(FileNotFoundError):
        if not stat.S_ISREG(os.stat(target.name, dir_fd=folder, follow_symlinks=False).st_mode):
            raise UsageError(f"{target} is no plain file", "remove it, or name another place", "output-not-empty")
    os.replace(source, target.name, dst_dir_fd=folder)


def put_text(path: Path, text: str, force: bool) -> None:
    """Write a file whole, over nothing that came there meanwhile unless told to."""
    place = path.parent.resolve() / path.name
    with staging(place.parent) as waiting:
        (waiting / "text").write_text(text, encoding="utf-8")
        put_files([(waiting / "text", place)], force)


def _is_same(path: Path, other: Path) -> bool:
    with suppress(OSError):
        if path.samefile(other):
            return True
    return path.resolve() == other.resolve()


def put_all(contents: Mapping[Path, bytes]) -> None:
    """Write every file, or none: all wait beside their places until the last of them is whole."""
    waiting = {path: path.with_name(f".{path.name}.{os.getpid()}.part") for path in contents}
    old = {path: part.with_suffix(".old") for path, part in waiting.items()}
    new = {place for path in contents for place in path.parents if not place.exists()}
    done: list[Path] = []
    try:
        for path, part in waiting.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            part.unlink(missing_ok=True)
            with part.open("xb") as file:  # a new file: nothing that was put there is written through
                file.write(contents[path])
        for path, part in waiting.items():
            with suppress(OSError):  # what was there comes back if a later file cannot be put in place
                os.link(path, old[path])
            os.replace(part, path)
            done.append(path)
    except OSError:
        for path in done:
            with suppress(OSError):
                os.replace(old[path], path) if old[path].exists() else path.unlink()
        raise
    finally:
        for left in (*waiting.values(), *old.values()):
            with suppress(OSError):
                left.unlink(missing_ok=True)
        for place in sorted(new, key=lambda place: -len(place.parts)):
            with suppress(OSError):  # it holds a file
                place.rmdir()


@contextmanager
def staging(parent: Path) -> Iterator[Path]:
    """A folder in `parent` that goes in the end, also on SIGTERM; those that killed runs left there go first."""
    new = [folder for folder in (parent, *parent.parents) if not os.path.lexists(folder)]
    place: Path | None = None
    is_main = threading.current_thread() is threading.main_thread()
    usual = signal.signal(signal.SIGTERM, signal.default_int_handler) if is_main else None
    try:
        parent.mkdir(parents=True, exist_ok=True)
        for left in parent.glob(f"{STAGING}*"):
            with suppress(OSError), _locked(left):  # no run is at work there
                shutil.rmtree(left)
        place = Path(mkdtemp(prefix=STAGING, dir=parent))
        with _locked(place):
            yield place
    finally:
        if place is not None:
            shutil.rmtree(place, ignore_errors=True)
        for folder in new:
            with suppress(OSError):  # it holds a file
                folder.rmdir()
        if is_main:
            signal.signal(signal.SIGTERM, usual)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)


_PATIENCE = 30.0  # seconds that a writer waits for another
_NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP)  # file systems without them


@contextmanager
def opened(path: Path, flags: int, mode: int = 0o666) -> Iterator[int]:
    """Open a regular file and nothing else; a pipe is not waited for."""
    file = os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK, mode)
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file")
        yield file
    finally:
        os.close(file)  # and with it the lock


@contextmanager
def locked(path: Path, mode: int = 0o666) -> Iterator[int]:
    """Open a file to append to, alone; never through a link."""
    end = time.monotonic() + _PATIENCE
    with opened(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, mode) as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError as error:
                if error.errno in _NO_LOCKS:
                    break  # a line is written in one go all the same
                if error.errno not in (errno.EAGAIN, errno.EACCES) or time.monotonic() > end:
                    raise OSError(error.errno, "somebody else holds it") from error
            time.sleep(0.02)
        yield file


def append_whole(file: int, lines: bytes) -> None:
    """Add lines to an open file, all or none; a line that was torn when a machine went down does not swallow them."""
    size = os.fstat(file).st_size
    is_torn = size > 0 and os.pread(file, 1, size - 1) != b"\n"
    try:
        left = memoryview((b"\n" if is_torn else b"") + lines)
        while left:
            left = left[os.write(file, left) :]
        os.fsync(file)
    except BaseException:
        os.ftruncate(file, size)
        raise
