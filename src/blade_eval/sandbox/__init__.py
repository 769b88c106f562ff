"""Contained execution of untrusted Python on Linux: in a box that holds, or not at all."""

from __future__ import annotations

from blade_eval.sandbox.box import Limits, Outcome, run
from blade_eval.sandbox.selftest import Check, holds, needed

__all__ = ["Check", "Limits", "Outcome", "holds", "needed", "run"]
