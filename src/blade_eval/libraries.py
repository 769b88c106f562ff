"""Check that a verifier's library is installed, or say which extra brings it."""

from __future__ import annotations

from importlib.util import find_spec

from blade.errors import UsageError


def required(module: str, package: str, environment: str) -> None:
    """Make sure, before any rollout is paid for, that the library is there; it is not yet loaded."""
    if find_spec(module.partition(".")[0]) is None:
        raise UsageError(
            f"the environment {environment} needs the package {package!r}, which is not installed",
            "pip install 'blade-diagnostics[eval]'", "eval-not-installed",
        )
