"""Tell on stderr how far reading is, for those who ask `load` for it."""

from __future__ import annotations

import sys

from blade import hostile


class Lines:
    """A line when a piece of work begins, at each quarter of it, and for what a reader should know."""

    def __init__(self) -> None:
        self._what = ""
        self._total = self._done = self._told = 0

    def start(self, what: str, total: int, unit: str = "bytes") -> None:
        self._what, self._total, self._done, self._told = hostile.line(what, 60), total, 0, 0
        size = f" ({total / 1e6:,.0f} MB)" if total else ""
        print(f"{self._what}{size} ...", file=sys.stderr)

    def advance(self, done: int) -> None:
        self._done += done
        quarters = 4 * self._done // self._total if self._total else 0
        if self._told < quarters < 4:
            self._told = quarters
            print(f"{self._what} {25 * quarters}% ...", file=sys.stderr)

    def notice(self, text: str) -> None:
        print(f"note: {hostile.lines(text)}", file=sys.stderr)
