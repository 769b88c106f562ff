"""Serve environments, agents and models over HTTP as NeMo Gym does, and run rollouts on such servers."""

from __future__ import annotations

from blade_eval.servers.start import start

__all__ = ["start"]
