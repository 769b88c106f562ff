"""Turn a public dataset into the rows of a benchmark: what prepare scripts use, and what runs them."""

from __future__ import annotations

from blade_eval.prepare.fetch import fetched
from blade_eval.prepare.records import NotReadable, records, written

__all__ = ["NotReadable", "fetched", "records", "written"]
