"""The same answers in Python: what `import blade` offers."""

from __future__ import annotations

from blade.api.changes import Comparison
from blade.api.checks import Checked
from blade.api.reports import Report
from blade.api.runs import Runs, load
from blade.api.tables import Table
from blade.errors import BladeError, NothingToRead, Unreadable, UsageError
from blade.model import Cause

__all__ = [
    "BladeError",
    "Cause",
    "Checked",
    "Comparison",
    "NothingToRead",
    "Report",
    "Runs",
    "Table",
    "Unreadable",
    "UsageError",
    "load",
]
