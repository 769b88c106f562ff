"""The whole flow, in order: paths to indexed runs, indexed runs to a report. `stages` lists it."""

from __future__ import annotations

from blade.pipeline.load import Loaded
from blade.pipeline.report_pages import drafts, summarise, with_digests
from blade.pipeline.session import Session, session
from blade.pipeline.stages import diagnose, load

__all__ = ["Loaded", "Session", "diagnose", "drafts", "load", "session", "summarise", "with_digests"]
