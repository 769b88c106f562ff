"""What there is to evaluate with: benchmarks, environments, agents, models and resources servers."""

from __future__ import annotations

from blade_eval.catalogue.components import Component, components
from blade_eval.catalogue.entries import entries
from blade_eval.catalogue.entry import CATEGORIES, CRITERIA, Entry
from blade_eval.catalogue.search import Ranked, ranked

__all__ = ["CATEGORIES", "CRITERIA", "Component", "Entry", "Ranked", "components", "entries", "ranked"]
