"""Keep the states of rollouts between requests: by a random token, so many at most, and not for ever."""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from blade_eval.environment import Unmeasured

MOST = 20_000
IDLE_S = 3600.0


class Sessions:
    """States by token, the longest unused first."""

    def __init__(
        self, most: int = MOST, idle: float = IDLE_S, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._most, self._idle, self._clock = most, idle, clock
        self._held: OrderedDict[str, tuple[float, Any]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._held)

    def opened(self, state: Any) -> str:
        """A token for a state. Where all places are taken by states in use, none of them is thrown out."""
        self._expire()
        if len(self._held) >= self._most:
            raise Unmeasured("session_limit", f"{self._most:,} sessions are open; try again later")
        token = secrets.token_urlsafe(24)
        self._held[token] = (self._clock(), state)
        return token

    def state(self, token: str) -> Any:
        """The state of a token; using it keeps it."""
        self._expire()
        if token not in self._held:
            raise Unmeasured(
                "session_expired", "the session is unknown: it ended, or the server was restarted"
            )
        _, state = self._held[token]
        self._held[token] = (self._clock(), state)
        self._held.move_to_end(token)
        return state

    def closed(self, token: str) -> None:
        """The rollout is over."""
        self._held.pop(token, None)

    def _expire(self) -> None:
        until = self._clock() - self._idle
        while self._held:
            token, (used, _) = next(iter(self._held.items()))
            if used > until:
                return
            del self._held[token]
