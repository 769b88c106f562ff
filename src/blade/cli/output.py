"""Say where results go: checks on the output folder, and the last lines of a command."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING

from blade.errors import Unreadable, UsageError
from blade.targets import refuse_link, refuse_taken

if TYPE_CHECKING:
    from blade.pipeline import Loaded

OURS = frozenset(
    "report.md report.html report.json metrics.json compare.md compare.html compare.json gate.md "
    "figures".split()
)


def refuse_foreign(folder: Path, force: bool, is_comparison: bool = False) -> None:
    """Do not write among files that are not ours, nor over those that were changed, unless told to."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file", "name a folder with -o", "output-not-empty")
    try:
        names = {entry.name for entry in os.scandir(folder)} if folder.is_dir() else set()
    except OSError as error:
        raise cannot_write(folder, error) from error
    foreign = sorted(names - OURS)
    if foreign and not force:
        raise UsageError(
            f"{folder} holds other files, such as {foreign[0]}",
            "name an empty folder, or add --force",
            "output-not-empty",
        )
    from blade.report import named
    from blade.report.folder import refuse_changed

    refuse_link(folder / "figures")
    refuse_changed(folder, named(folder, is_comparison), force)
    refuse_unwritable(folder)


def refuse_unwritable(folder: Path) -> None:
    """Try whether a folder can be written to, before long work is done for it; it is left as it was."""
    new = [place for place in (folder, *folder.parents) if not place.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise cannot_write(folder, error) from error
    finally:
        for place in new:
            with suppress(OSError):
                place.rmdir()


def cannot_write(path: Path, error: OSError) -> Unreadable:
    """The operating system would not let us write."""
    return Unreadable(
        f"cannot write {path}: {error.strerror or error}", "choose another folder with -o", "cannot-write"
    )


def refuse_existing(path: Path, force: bool, kept: Iterable[Path] = ()) -> None:
    """Do not overwrite a file unless told to, and do not make folders."""
    refuse_taken(path, force, kept)
    if not path.absolute().parent.is_dir():
        raise Unreadable(
            f"cannot write {path}: its folder does not exist", "make the folder, or name another",
            "cannot-write",
        )  # fmt: skip


def refuse_sources(path: Path, loaded: Iterable[Loaded]) -> None:
    """Do not overwrite what was read, whatever the user told."""
    refuse_taken(path, True, (Path(source.path) for one in loaded for source in one.sources))


def write_text(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise cannot_write(path, error) from error


def put(write: Callable[[], list[Path]], folder: Path) -> list[Path]:
    """Write a folder, before anything is printed: a reader who closes the pipe early loses no file."""
    try:
        return write()
    except OSError as error:
        raise cannot_write(folder, error) from error


def wrote(paths: list[Path], quiet: bool) -> None:
    """The last lines of a command; to stderr where stdout is for a program."""
    folders = [path.parent for path in paths if path.parent.name == "figures"]
    told = [f"{folder}/ ({folders.count(folder)} figures)" for folder in dict.fromkeys(folders)]
    told += [str(path) for path in paths if path.parent.name != "figures"]
    for name in told:
        print(f"Wrote {name}", file=sys.stderr if quiet else sys.stdout)
