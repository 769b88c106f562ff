"""Turn the error texts of rollouts into signatures: what says the same, how far it spreads."""

from __future__ import annotations

from blade.signatures.lines import Line, observe
from blade.signatures.spread import across, conclude

__all__ = ["Line", "across", "conclude", "observe"]
