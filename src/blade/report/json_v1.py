"""Keep the old name of the wire format for rooms that are being rewritten; goes with their old imports."""

from __future__ import annotations

from blade.report.wire import document, escaped, render

__all__ = ["document", "escaped", "render"]
