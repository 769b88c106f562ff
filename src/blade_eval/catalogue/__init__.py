"""List what there is to evaluate with: benchmarks, environments, agents, models and resources servers."""

from __future__ import annotations

from blade_eval.catalogue.entries import CATEGORIES, CRITERIA, Component, Entry, components, entries
from blade_eval.catalogue.search import Ranked, ranked

__all__ = ["CATEGORIES", "CRITERIA", "Component", "Entry", "Ranked", "components", "entries", "ranked"]
