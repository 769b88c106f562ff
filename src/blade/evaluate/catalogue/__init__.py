"""What there is to evaluate with: benchmarks, environments, agents, models and resources servers."""

from __future__ import annotations

from blade.evaluate.catalogue.components import Component, components
from blade.evaluate.catalogue.entries import entries
from blade.evaluate.catalogue.entry import CATEGORIES, CRITERIA, Entry
from blade.evaluate.catalogue.search import Ranked, ranked

__all__ = ["CATEGORIES", "CRITERIA", "Component", "Entry", "Ranked", "components", "entries", "ranked"]
