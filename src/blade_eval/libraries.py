"""Load a verifier's library, or say which extra brings it."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from blade.errors import UsageError


def required(module: str, package: str, environment: str) -> None:
    """Make sure, before any rollout is paid for, that the library is there; it is not yet loaded."""
    if find_spec(module.partition(".")[0]) is None:
        raise UsageError(
            f"the environment {environment} needs the package {package!r}, which is not installed",
            "pip install 'blade-diagnostics[eval]'", "eval-not-installed",
        )


def loaded(module: str, package: str, environment: str) -> Any:
    """The library's module."""
    required(module, package, environment)
    return import_module(module)


def available(module: str) -> Any | None:
    """A library's module where it is installed: for what only few tasks need."""
    return import_module(module) if find_spec(module) is not None else None
