"""Turn rollouts into mechanisms: conditions nobody wrote a rule for that go with failing."""

from __future__ import annotations

from blade.discover.applied import applied, showing
from blade.discover.conclude import conclude
from blade.discover.gather import Gathered
from blade.discover.observe import observe

__all__ = ["Gathered", "applied", "conclude", "observe", "showing"]
