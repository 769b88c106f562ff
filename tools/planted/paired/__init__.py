"""Draw two runs of the same tasks that differ in one known thing: the CAUSES table."""

from __future__ import annotations

from tools.planted.paired.causes import CAUSES, Cause, Plan
from tools.planted.paired.design import Change, Conditions, Design, Drawn, change, passing
from tools.planted.paired.play import Played, play

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
