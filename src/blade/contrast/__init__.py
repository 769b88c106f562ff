"""Turn passing and failing rollouts of the same tasks into what sets them apart."""

from __future__ import annotations

from blade.contrast.borrowed import borrowed, borrowed_divergences
from blade.contrast.concluded import conclude
from blade.contrast.observed import Observed, observe

__all__ = ["Observed", "borrowed", "borrowed_divergences", "conclude", "observe"]
