"""Keep what a server may read and make each session once, however many ask for it at a time."""

from __future__ import annotations

import math
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar, cast

from blade.agent.mcp import roots as under
from blade.errors import UsageError
from blade.hostile import line

if TYPE_CHECKING:
    from blade.agent.mcp.arguments import OfRun
    from blade.pipeline.load import Loaded
    from blade.pipeline.session import Session

Made = TypeVar("Made")
KEPT = 4  # comparisons and checks held in memory


class Aloud:
    """A watcher that tells on stderr what is being done: stdout belongs to the protocol."""

    def start(self, what: str, total: int, unit: str = "bytes") -> None:
        print(f"blade mcp: {line(what, 200)}", file=sys.stderr, flush=True)

    def advance(self, done: int) -> None: ...

    def notice(self, text: str) -> None:
        print(f"blade mcp: {line(text, 400)}", file=sys.stderr, flush=True)


class House:
    """What the tools of one server share."""

    def __init__(self, roots: under.Roots) -> None:
        self.roots = roots
        self.watcher = Aloud()
        self._locks: dict[tuple[str, ...], threading.Lock] = {}
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, ...], object] = OrderedDict()

    def session(self, asked: OfRun) -> tuple[Session, Loaded]:
        """The session of the run that is asked for, and that run in it."""
        found, only = self.sessions(asked.run, asked.pass_threshold)
        return found, found.run(only)

    def sessions(self, run: str | None, threshold: float | None) -> tuple[Session, str | None]:
        """The session of a file with all its agents, and the run that was named where it holds several."""
        from blade import pipeline

        refuse_threshold(threshold)
        place, only = under.chosen(self.roots, run)
        under.refuse_links(self.roots, place)
        with self._one(("session", str(threshold), *place.specs)):
            found = pipeline.session(place.specs, self.watcher, threshold)
        return found, only

    def loaded(self, runs: Sequence[str]) -> list[Loaded]:
        """Several runs, in the order they are asked for."""
        from blade import pipeline

        found: list[Loaded] = []
        for run in runs:
            place, only = under.chosen(self.roots, run)
            under.refuse_links(self.roots, place)
            told = pipeline.load(place.specs, self.watcher)
            found += [one for one in told if only in (None, one.name)]
        return found

    def specs(self, runs: Sequence[str]) -> list[str]:
        """What a command would be given for these runs."""
        found: list[str] = []
        for run in runs:
            place, _ = under.chosen(self.roots, run)
            under.refuse_links(self.roots, place)
            found += place.specs
        return list(dict.fromkeys(found))

    def once(self, key: tuple[str, ...], make: Callable[[], Made]) -> Made:
        """What `make` makes, made once for each key while it is remembered."""
        with self._one(key):
            if key in self._kept:
                self._kept.move_to_end(key)
                return cast(Made, self._kept[key])  # a key is asked for with one kind of answer
            made = make()
            self._kept[key] = made
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
            return made

    def _one(self, key: tuple[str, ...]) -> threading.Lock:
        with self._lock:
            return self._locks.setdefault(key, threading.Lock())


def key_of(session: Session, run: Loaded, task: str) -> str:
    """The key of a task by its key, its name, or either as it is printed."""
    rollouts = run.run.rollouts
    if task not in rollouts.task_keys and task not in rollouts.task_names:
        for known in (rollouts.task_keys, rollouts.task_names):
            alike = [
                key for key, name in zip(rollouts.task_keys, known, strict=True) if line(name) == line(task)
            ]
            if len(alike) == 1:
                return alike[0]
    return session.key(run, task)


def refuse_threshold(threshold: float | None) -> None:
    if threshold is not None and not math.isfinite(threshold):
        raise UsageError(f"{threshold} is no number to pass at", "give a finite number", "bad-threshold")
