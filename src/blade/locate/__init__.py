"""Turn failing rollouts into the steps at which they went wrong, by the votes of several rules."""

from __future__ import annotations

from blade.locate.located import observe
from blade.locate.vote import WEIGHTS

__all__ = ["WEIGHTS", "observe"]
