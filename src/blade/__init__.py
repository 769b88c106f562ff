"""Diagnose evaluation runs from their rollouts."""

__version__ = "0.1.0"
