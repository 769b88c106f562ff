"""Diagnose evaluation runs from their rollouts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from blade.api import (
        BladeError,
        Cause,
        Checked,
        Comparison,
        NothingToRead,
        Report,
        Runs,
        Table,
        Unreadable,
        UsageError,
        load,
    )

__all__ = [
    "BladeError", "Cause", "Checked", "Comparison", "NothingToRead", "Report", "Runs", "Table", "Unreadable",
    "UsageError", "__version__", "load",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """What the package offers is loaded when it is first asked for: `import blade` alone loads nothing."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from blade import api

    value = globals()[name] = getattr(api, name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
