"""What the catalogue says of one component, and how it says it to a program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CATEGORIES = (
    "math & science",
    "coding",
    "knowledge & reasoning",
    "agentic & tool use",
    "instruction following & safety",
    "other",
)
# The domains are the incumbent's closed list; its largest one is "other", so a manifest may say better.
_OF_DOMAIN = {
    "math": 0,
    "science": 0,
    "coding": 1,
    "knowledge": 2,
    "long_context": 2,
    "agent": 3,
    "e2e": 3,
    "games": 3,
    "instruction_following": 4,
    "safety": 4,
    "rlhf": 4,
}
# What to ask before trusting a benchmark, in the order it is asked.
CRITERIA = {
    "task_fit": "Task fit",
    "verifier_fidelity": "Verifier fidelity",
    "model_compatibility": "Model compatibility",
    "harness_fit": "Harness fit",
    "variance": "Variance",
    "reproducibility": "Reproducibility",
}


@dataclass(frozen=True)
class Entry:
    """A benchmark or an environment that can be run."""

    name: str
    kind: str  # benchmark, environment
    path: Path
    status: str | None = "no-manifest"
    domain: str | None = None
    description: str | None = None
    category: str = CATEGORIES[-1]
    agent: str | None = None  # the implementation
    verifier: str | None = None
    num_repeats: int | None = None
    license: str | None = None
    datasets: tuple[str, ...] = ()
    manifest: Mapping[str, Any] = field(default_factory=dict)
    trouble: str | None = None  # why parts of it are not known

    def as_json(self) -> dict[str, Any]:
        """The incumbent's keys in its order, then ours."""
        said = self.manifest
        return {
            "name": self.name,
            "kind": self.kind,
            "status": self.status,
            "domain": self.domain,
            "description": self.description,
            "version": _text(said.get("version")),
            "integration_profile": _text(said.get("integration_profile")),
            "modality": _text(said.get("modality")),
            "licensing": _text(said.get("licensing")),
            "lifecycle": _text(said.get("lifecycle")),
            "category": self.category,
            "agent": self.agent,
            "verifier": self.verifier,
            "num_repeats": self.num_repeats,
            "license": self.license,
            "choose": self.choose,
        }

    @property
    def choose(self) -> dict[str, str]:
        """How to choose: what is known of the six criteria."""
        said = self.manifest.get("choose")
        if not isinstance(said, dict):
            return {}
        return {key: str(said[key]) for key in CRITERIA if said.get(key) not in (None, "")}

    @property
    def published(self) -> list[dict[str, str]]:
        """The published results to reproduce before trusting it."""
        said = self.manifest.get("published")
        rows = said if isinstance(said, list) else [said]
        return [{str(key): str(value) for key, value in row.items()} for row in rows if isinstance(row, dict)]


def category_of(domain: str | None, said: Any) -> str:
    """One of the six categories: as a manifest says, else by the domain."""
    if isinstance(said, str):
        wanted = _words(said)
        for category in CATEGORIES:
            if wanted and wanted == _words(category):
                return category
    return CATEGORIES[_OF_DOMAIN.get(domain or "", len(CATEGORIES) - 1)]


def _words(text: str) -> frozenset[str]:
    """The words of a category, however it is written: agentic/tool use, agentic_tool_use."""
    plain = "".join(mark if mark.isalnum() else " " for mark in text.lower())
    return frozenset(plain.split()) - {"and"}


def _text(value: Any) -> str | None:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return None if value is None else str(value)
