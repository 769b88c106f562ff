"""Inject one known fault into rollouts that pass, at a known step: the INJECTIONS table."""

from __future__ import annotations

from tools.planted.injected.injection_table import INJECTIONS, write_injected
from tools.planted.injected.quiz_scene import Injected, Injection, Truth

__all__ = ["INJECTIONS", "Injected", "Injection", "Truth", "write_injected"]
