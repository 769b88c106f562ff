"""Diagnose a run: the ladder of questions that proves its answers or stays silent."""

from __future__ import annotations

from blade.diagnose.evidence import RowEvidence, nothing_of, observe
from blade.diagnose.groups import Group, Trust
from blade.diagnose.ladder import Diagnosis, climb, nothing_to_explain
from blade.diagnose.population import Population

__all__ = ["Diagnosis", "Group", "Population", "RowEvidence", "Trust", "climb", "nothing_of", "nothing_to_explain", "observe"]
