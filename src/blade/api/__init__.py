"""The same answers in Python: what `import blade` offers."""

from __future__ import annotations

from blade.api.answer_tables import Table
from blade.api.loaded_runs import Runs, load
from blade.api.written_reports import Checked, Comparison, Report
from blade.errors import BladeError, NothingToRead, Unreadable, UsageError
from blade.model import Cause

__all__ = [
    "BladeError", "Cause", "Checked", "Comparison", "NothingToRead", "Report", "Runs", "Table", "Unreadable",
    "UsageError", "load",
]  # fmt: skip
