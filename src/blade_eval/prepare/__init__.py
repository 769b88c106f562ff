"""Prepare the rows of a benchmark from its public dataset: what scripts use, and what runs them."""

from __future__ import annotations

from blade_eval.prepare.fetch import fetched
from blade_eval.prepare.raw_records import NotReadable, records, written

__all__ = ["NotReadable", "fetched", "records", "written"]
