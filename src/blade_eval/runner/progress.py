"""Tell on stderr how a run goes: done, pass rate, cost, errors, retries, time left."""

from __future__ import annotations

import sys
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import IO, Any, NamedTuple

from blade.hostile import line
from blade_eval.runner.run_files import LineHead

_PLAIN_S = 15.0  # between two lines where nobody watches a terminal
_DRAW_S = 0.2
_RECENT = 200  # rollouts by which the time left is told
_PASS = 1.0


class Prices(NamedTuple):
    """Dollars for a million tokens."""

    tokens_in: float
    tokens_out: float


@dataclass
class Totals:
    """What the rollouts that are there add up to."""

    scored: int = 0
    passed: int = 0
    reward: float = 0.0
    tokens_in: int = 0
    tokens_out: int = 0
    with_usage: int = 0

    def add(self, reward: Any, usage: Any) -> None:
        self.scored += 1
        if isinstance(reward, int | float):
            self.reward += reward
            self.passed += reward >= _PASS
        if isinstance(usage, dict):
            into = usage.get("input_tokens") or usage.get("prompt_tokens")
            out = usage.get("output_tokens") or usage.get("completion_tokens")
            into, out = (count if isinstance(count, int) else 0 for count in (into, out))
            self.tokens_in += into
            self.tokens_out += out
            self.with_usage += bool(into or out)

    def cost(self, prices: Prices | None) -> float | None:
        """Dollars; None where there are no prices, or no server that counts tokens."""
        if prices is None or not self.with_usage:
            return None
        return (self.tokens_in * prices.tokens_in + self.tokens_out * prices.tokens_out) / 1e6


@dataclass
class Progress:
    """Follows a run; draws a line that renews itself on a terminal, and sparse plain lines elsewhere."""

    expected: int = 0
    prices: Prices | None = None
    is_quiet: bool = False
    out: IO[str] = field(default_factory=lambda: sys.stderr)
    totals: Totals = field(default_factory=Totals)
    given_up: int = 0
    retries: int = 0  # of rollouts
    asked_again: Callable[[], int] = lambda: 0  # how often models were asked again within rollouts
    kinds: Counter[str] = field(default_factory=Counter)
    _recent: deque[float] = field(default_factory=lambda: deque(maxlen=_RECENT))
    _drawn: float = field(default_factory=time.monotonic)
    _live: Any = None

    def seen(self, head: LineHead) -> None:
        self.totals.add(head.reward, getattr(head.response, "usage", None))

    def scored(self, reward: Any, usage: Any) -> None:
        self.totals.add(reward, usage)
        self._recent.append(time.monotonic())
        self.waited()

    def failed(self, kind: str, is_final: bool) -> None:
        self.kinds[kind] += 1
        self.given_up += is_final
        self.retries += not is_final
        self.waited()

    def waited(self) -> None:
        """Time has passed, perhaps without an end: a server that is asked again and again is seen."""
        now = time.monotonic()
        if not self.is_quiet and now - self._drawn >= (_DRAW_S if self.out.isatty() else _PLAIN_S):
            self._drawn = now
            self.draw()

    def draw(self) -> None:
        if not self.out.isatty():
            print(self.text(), file=self.out, flush=True)
            return
        from rich.columns import Columns
        from rich.console import Console
        from rich.live import Live
        from rich.progress_bar import ProgressBar
        from rich.text import Text

        if self._live is None:
            self._live = Live(console=Console(file=self.out), auto_refresh=False, transient=True)
            self._live.start()
        bar = ProgressBar(self.expected or None, self.totals.scored + self.given_up, width=14)
        self._live.update(Columns([bar, Text(self.text())]), refresh=True)

    def close(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def text(self) -> str:
        totals, several = self.totals, self.kinds.total() > 1
        done = totals.scored + self.given_up
        share = f" ({100 * done / self.expected:.0f}%)" if self.expected else ""
        parts = [f"{done:,} of {self.expected:,} rollouts{share}"]
        if totals.scored:
            parts.append(f"pass rate {100 * totals.passed / totals.scored:.1f}%")
            if totals.reward != totals.passed:
                parts.append(f"mean reward {totals.reward / totals.scored:.3f}")
        if (cost := totals.cost(self.prices)) is not None:
            parts.append(f"${cost:,.2f}")
        if self.given_up:
            parts.append(f"{self.given_up:,} given up")
        for most, count in self.kinds.most_common(1):
            parts.append(f"{self.kinds.total():,} error{'s' * several}, most {line(most, 40)} ({count:,})")
        if self.retries:
            parts.append(f"{self.retries:,} retries")
        if again := self.asked_again():
            parts.append(f"{again:,} requests made again")
        if (left := self.left(done)) is not None:
            parts.append(f"{_duration(left)} left")
        return " · ".join(parts)

    def left(self, done: int) -> float | None:
        """Seconds until the end if it goes on as it went lately."""
        waiting = self.expected - done
        if len(self._recent) < 5 or waiting <= 0:
            return None
        return waiting * (time.monotonic() - self._recent[0]) / len(self._recent)


def _duration(seconds: float) -> str:
    if seconds < 5400:
        return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
