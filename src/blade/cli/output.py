"""Write what a command makes: what may be overwritten, how far the work is, and the last lines."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, TypeVar

import click

from blade.errors import EXIT_FAILED_GATE, Unreadable, UsageError
from blade.hostile import line, lines
from blade.targets import refuse_link, refuse_taken

if TYPE_CHECKING:
    from blade.pipeline import Loaded
    from blade.pipeline.stages import Clock

Result = TypeVar("Result")
OURS = frozenset(
    "report.md report.html report.json metrics.json compare.md compare.html compare.json gate.md figures".split()
)
PATIENCE_S = 1.0  # before the user is told of long work


def refuse_foreign(folder: Path, force: bool, is_comparison: bool = False) -> None:
    """Do not write among files that are not ours, nor over those that were changed, unless told to."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file", "name a folder with -o", "output-not-empty")
    names = put(lambda: {entry.name for entry in os.scandir(folder)}, folder) if folder.is_dir() else set()
    if (foreign := sorted(names - OURS)) and not force:
        hint = "name an empty folder, or add --force"
        raise UsageError(f"{folder} holds other files, such as {foreign[0]}", hint, "output-not-empty")
    from blade.report import refuse_others

    refuse_link(folder / "figures")
    refuse_others(folder, is_comparison, force)
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
    return Unreadable(f"cannot write {path}: {error.strerror or error}", "choose another folder with -o", "cannot-write")


def refuse_existing(path: Path, force: bool, remaining: Iterable[Path] = ()) -> None:
    """Do not overwrite a file unless told to, and do not make folders."""
    refuse_taken(path, force, remaining)
    if not path.absolute().parent.is_dir():
        hint = "make the folder, or name another"
        raise Unreadable(f"cannot write {path}: its folder does not exist", hint, "cannot-write")


def refuse_sources(path: Path, loaded: Iterable[Loaded]) -> None:
    """Do not overwrite what was read, whatever the user told."""
    refuse_taken(path, True, (Path(source.path) for item in loaded for source in item.sources))


def files_of(runs: Iterable[str]) -> Iterable[Path]:
    """The files that RUN arguments name, by themselves or in a folder: none of them may be overwritten."""
    for run in runs:
        for path in {Path(run), Path(run.partition("=")[2] or run)}:
            yield from path.glob("**/*.jsonl*") if path.is_dir() else [path]


def write_text(path: Path, text: str) -> None:
    put(lambda: path.parent.mkdir(parents=True, exist_ok=True), path)
    put(lambda: path.write_text(text, encoding="utf-8"), path)


def put(write: Callable[[], Result], place: Path) -> Result:
    """Write, before anything is printed: a reader who closes the pipe early loses no file."""
    try:
        return write()
    except OSError as error:
        raise cannot_write(place, error) from error


def exit_failed(is_failed: object) -> None:
    """End with the exit code of a gate, where what was looked at does not hold."""
    if is_failed:
        raise click.exceptions.Exit(EXIT_FAILED_GATE)


def wrote(paths: list[Path], quiet: bool) -> None:
    """The last lines of a command; to stderr where stdout is for a program."""
    folders = [path.parent for path in paths if path.parent.name == "figures"]
    words = [f"{folder}/ ({folders.count(folder)} figures)" for folder in dict.fromkeys(folders)]
    words += [str(path) for path in paths if path.parent.name != "figures"]
    for name in words:
        click.echo(f"Wrote {name}", err=quiet)


def print_times(clock: Clock) -> None:
    """Print how long each stage took, the longest first."""
    for stage, seconds in sorted(clock.seconds.items(), key=lambda entry: -entry[1]):
        click.echo(f"{seconds:9.2f} s  {stage}", err=True)


def notice(text: str, mark: str = "note", most: int | None = None) -> None:
    """Something the user should know, on stderr, in one line."""
    print(f"{mark}: {line(text, most)}", file=sys.stderr)


class Progress:
    """Quiet for a second, then a bar on a terminal or a line elsewhere; ends with the `with` block."""

    def __init__(self) -> None:
        self._bar: Any = None
        self.start("", 0)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def start(self, what: str, total: int, unit: str = "bytes") -> None:
        """A new piece of work of `total` bytes, rows or the like; 0 if nobody knows."""
        self._close()
        self._what, self._total, self._done, self._unit = line(what, 60), total, 0, unit
        self._since, self._is_announced = time.monotonic(), False
        if unit == "bytes" and total > 2 << 30:  # a first word at once when it will surely take long
            self._draw()

    def advance(self, done: int) -> None:
        """`done` more of them are finished."""
        self._done += done
        if self._bar is not None or time.monotonic() - self._since > PATIENCE_S:
            self._draw()

    def notice(self, text: str) -> None:
        """Something the user should know."""
        self._close()
        print(f"note: {lines(text)}", file=sys.stderr)

    def _draw(self) -> None:
        if sys.stderr.isatty():
            self._bar = self._bar or self._new_bar()
            self._bar.update(self._bar.task_ids[0], completed=self._done, refresh=True)
        elif not self._is_announced:
            size = f"{self._total / 1e6:,.0f} MB" if self._unit == "bytes" else f"{self._total:,} {self._unit}"
            print(f"{self._what}{f' ({size})' if self._total else ''} ...", file=sys.stderr)
            self._is_announced = True

    def _new_bar(self) -> Any:
        from rich import progress
        from rich.console import Console

        counts = [progress.DownloadColumn()] if self._unit == "bytes" else [
            progress.MofNCompleteColumn(), progress.TextColumn(self._unit),
        ]  # fmt: skip
        # no refresh thread: workers may be forked from here
        bar = progress.Progress(
            progress.TextColumn("{task.description}", markup=False), progress.BarColumn(), *counts,
            progress.TimeRemainingColumn(), console=Console(stderr=True), auto_refresh=False, transient=True,
        )  # fmt: skip
        bar.start()
        bar.add_task(self._what, total=self._total or None)
        return bar

    def _close(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
