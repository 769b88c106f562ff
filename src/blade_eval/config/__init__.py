"""Resolve definitions of benchmarks, environments, agents and models to one checked configuration."""

from __future__ import annotations

from blade_eval.config.config_nouns import Asked, Dataset, Problem, Resolved, Server
from blade_eval.config.resolve import insist, resolved
from blade_eval.config.secret import hidden
from blade_eval.config.sources import found, installed, roots

__all__ = [
    "Asked", "Dataset", "Problem", "Resolved", "Server", "found", "hidden", "insist", "installed", "resolved", "roots",
]  # fmt: skip
