"""Draw two runs of the same tasks that differ in one known thing: the CAUSES table."""

from __future__ import annotations

from tools.planted.paired.paired_runs import (
    CAUSES,
    Cause,
    Change,
    Conditions,
    Design,
    Drawn,
    Plan,
    Played,
    change,
    passing,
    play,
)

__all__ = [
    "CAUSES",
    "Cause",
    "Change",
    "Conditions",
    "Design",
    "Drawn",
    "Plan",
    "Played",
    "change",
    "passing",
    "play",
]
