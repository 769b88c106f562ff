"""Check verdicts and tasks against traces: is the evaluation itself sound."""

from __future__ import annotations

from blade.measure.soundness.flags import flags
from blade.measure.soundness.items import items
from blade.measure.soundness.observe import observe
from blade.measure.soundness.sounding import REVIEW, SUSPECT, Sound, Sounding, Suspects, points
from blade.measure.soundness.suspects import Without, suspect_keys, without_suspects

__all__ = [
    "REVIEW",
    "SUSPECT",
    "Sound",
    "Sounding",
    "Suspects",
    "Without",
    "flags",
    "items",
    "observe",
    "points",
    "suspect_keys",
    "without_suspects",
]
