"""The whole flow, in order: paths to indexed runs, indexed runs to a report."""

from __future__ import annotations

from blade.pipeline.load import Loaded, load
from blade.pipeline.pages import diagnose, drafts, summarise, with_digests

__all__ = ["Loaded", "diagnose", "drafts", "load", "summarise", "with_digests"]
