"""Turn definitions of benchmarks, environments, agents and models into one checked configuration."""

from __future__ import annotations

from blade.evaluate.config.nouns import Asked, Dataset, Problem, Resolved, Server
from blade.evaluate.config.places import found, installed, roots
from blade.evaluate.config.resolve import insist, resolved
from blade.evaluate.config.secret import hidden

__all__ = [
    "Asked",
    "Dataset",
    "Problem",
    "Resolved",
    "Server",
    "found",
    "hidden",
    "insist",
    "installed",
    "resolved",
    "roots",
]
