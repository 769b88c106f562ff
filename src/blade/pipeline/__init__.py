"""The whole flow, in order: paths to indexed runs, indexed runs to a report."""

from __future__ import annotations

from blade.pipeline.load import Loaded, load
from blade.pipeline.pages import diagnose, drafts, summarise, with_digests
from blade.pipeline.session import Session, session

__all__ = ["Loaded", "Session", "diagnose", "drafts", "load", "session", "summarise", "with_digests"]
