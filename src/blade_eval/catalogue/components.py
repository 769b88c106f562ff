"""Find the agents, models and resources servers under the roots, from their files alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from blade.errors import BladeError
from blade_eval.config.nouns import UNSET, Tree
from blade_eval.config.sources import loaded

FOLDERS = {
    "agents": "responses_api_agents",
    "models": "responses_api_models",
    "resources-servers": "resources_servers",
}


@dataclass(frozen=True)
class Component:
    """One implementation, or of models one flavour of it: what a flag such as --model-type takes."""

    name: str
    kind: str  # agents, models, resources-servers
    path: Path
    variants: tuple[str, ...] = ()
    settings: Tree | None = None  # its block in the configuration of the same name
    trouble: str | None = None

    @property
    def domain(self) -> str | None:
        """As its block says."""
        return self._said("domain")

    @property
    def description(self) -> str | None:
        """As its block says, with what it is good for."""
        said, value = self._said("description"), self._said("value")
        return f"{said or ''}\nValue: {value}".strip() if value else said

    @property
    def self_contained(self) -> bool:
        """It brings its own tasks and verdicts: it refers to no resources server."""
        return "resources_server" not in (self.settings or {})

    def _said(self, key: str) -> str | None:
        value = (self.settings or {}).get(key)
        return " ".join(value.split()) if isinstance(value, str) and value != UNSET else None

    def as_json(self) -> dict[str, Any]:
        """The incumbent's keys for this kind."""
        if self.kind == "models":
            return {"name": self.name, "model": self.name, "model_group": self.name.split("/")[0]}
        if self.kind == "agents":
            pattern = "B (self-contained)" if self.self_contained else "A (composable)"
            return {
                "name": self.name,
                "pattern": pattern,
                "self_contained": self.self_contained,
                "variants": list(self.variants),
                "description": self.description,
            }
        return {"name": self.name, "domain": self.domain, "description": self.description}


def components(kind: str, roots: Sequence[Path]) -> tuple[Component, ...]:
    """The components of a kind, by name; the first root that has a name wins."""
    found: dict[str, Component] = {}
    for root in roots:
        top = root / FOLDERS[kind]
        folders = sorted(path for path in top.iterdir() if path.is_dir()) if top.is_dir() else []
        for folder in folders:
            for one in _of_folder(kind, folder):
                found.setdefault(one.name, one)
    return tuple(sorted(found.values(), key=lambda one: one.name.lower()))


def _of_folder(kind: str, folder: Path) -> list[Component]:
    configs = sorted((folder / "configs").glob("*.yaml"))
    if not configs:
        return []
    stems = [path.stem for path in configs]
    if kind == "models":
        names = [folder.name if stem == folder.name else f"{folder.name}/{stem}" for stem in stems]
        blocks = [_block(kind, folder.name, path) for path in configs]
        return [
            Component(name, kind, path, (), *block)
            for name, path, block in zip(names, configs, blocks, strict=True)
        ]
    main = configs[stems.index(folder.name)] if folder.name in stems else configs[0]
    settings, trouble = _block(kind, folder.name, main)
    return [Component(folder.name, kind, main, tuple(stems), settings, trouble)]


def _block(kind: str, name: str, path: Path) -> tuple[Tree | None, str | None]:
    try:
        tree = loaded(path)
    except BladeError as error:
        return None, error.message
    for block in tree.values():
        inner = block.get(FOLDERS[kind]) if isinstance(block, dict) else None
        if isinstance(inner, dict) and isinstance(inner.get(name), dict):
            return inner[name], None
    return None, None
