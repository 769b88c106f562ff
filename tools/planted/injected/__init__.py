"""Inject one known fault into rollouts that pass, at a known step: the INJECTIONS table."""

from __future__ import annotations

from tools.planted.injected.table import INJECTIONS
from tools.planted.injected.truth import Injected, Injection, Truth
from tools.planted.injected.write import write_injected

__all__ = ["INJECTIONS", "Injected", "Injection", "Truth", "write_injected"]
