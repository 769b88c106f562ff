"""Stop a run when asked: first no new rollouts, then at once."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager


class Stop:
    """Whether a run shall stop; the first request lets what is under way finish, the second does not."""

    def __init__(self) -> None:
        self.is_set = False
        self.workers: Sequence[asyncio.Task[None]] = ()
        self._event: asyncio.Event | None = None

    def ask(self) -> None:
        """No new rollouts; asked again, none at all."""
        if self.is_set:
            self.now()
        self._set()

    def now(self) -> None:
        """Let go of what is under way: it leaves no trace and runs again."""
        self._set()
        here = asyncio.current_task()
        for worker in self.workers:
            if worker is not here:
                worker.cancel()

    def _set(self) -> None:
        self.is_set = True
        if self._event is not None:
            self._event.set()

    async def within(self, seconds: float) -> bool:
        """Wait so long; True as soon as the run shall stop."""
        if self.is_set:
            return True
        if self._event is None:
            self._event = asyncio.Event()
        try:
            await asyncio.wait_for(self._event.wait(), seconds)
        except TimeoutError:
            return False
        return True


@contextmanager
def listening(stop: Stop) -> Iterator[None]:
    """Ctrl-C and a polite kill ask `stop`; elsewhere than in the main thread signals are not ours."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    signals = (signal.SIGINT, signal.SIGTERM)
    for number in signals:
        loop.add_signal_handler(number, stop.ask)
    try:
        yield
    finally:
        for number in signals:
            loop.remove_signal_handler(number)
