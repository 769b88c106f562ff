"""Tell the user on stderr how far long work is, once it takes longer than a second."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any

PATIENCE_S = 1.0


class Progress:
    """Quiet for a second, then a bar on a terminal or a line elsewhere; ends with the `with` block."""

    def __init__(self) -> None:
        self._what = ""
        self._total = self._done = 0
        self._unit = "bytes"
        self._since = time.monotonic()
        self._bar: Any = None
        self._task: Any = None
        self._told = False

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self._close()

    def start(self, what: str, total: int, unit: str = "bytes") -> None:
        """A new piece of work of `total` bytes, rows or the like; 0 if nobody knows."""
        self._close()
        from blade.hostile import line

        self._what, self._total, self._done, self._unit = line(what, 60), total, 0, unit
        self._since, self._told = time.monotonic(), False
        if unit == "bytes" and total > 2 << 30:  # a first word at once when it will surely take long
            self._draw()

    def advance(self, done: int) -> None:
        """`done` more of them are finished."""
        self._done += done
        if self._bar is not None or time.monotonic() - self._since > PATIENCE_S:
            self._draw()

    def notice(self, text: str) -> None:
        """Something the user should know."""
        from blade.hostile import lines

        self._close()
        print(f"note: {lines(text)}", file=sys.stderr)

    def _draw(self) -> None:
        if not sys.stderr.isatty():
            if not self._told:
                size = f" ({self._size()})" if self._total else ""
                print(f"{self._what}{size} ...", file=sys.stderr)
            self._told = True
            return
        if self._bar is None:
            from rich.console import Console
            from rich.progress import (
                BarColumn,
                DownloadColumn,
                MofNCompleteColumn,
                Progress,
                TextColumn,
                TimeRemainingColumn,
            )

            # no refresh thread: workers may be forked from here
            self._bar = Progress(
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                *((DownloadColumn(),) if self._unit == "bytes" else (MofNCompleteColumn(), TextColumn(self._unit))),
                TimeRemainingColumn(),
                console=Console(stderr=True),
                auto_refresh=False,
                transient=True,
            )
            self._bar.start()
            self._task = self._bar.add_task(self._what, total=self._total or None)
        self._bar.update(self._task, completed=self._done, refresh=True)

    def _size(self) -> str:
        return f"{self._total / 1e6:,.0f} MB" if self._unit == "bytes" else f"{self._total:,} {self._unit}"

    def _close(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
