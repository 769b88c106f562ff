"""Write a miniature checkout in the shapes of NeMo Gym's: resources server, flavours, nested benchmarks, manifests."""

from __future__ import annotations

from pathlib import Path

from tests.case_tables import tables

FILES: dict[str, str] = tables(__file__, "gym_tree.yaml")


def write(root: Path, **more: str) -> Path:
    """Write the checkout below `root`."""
    for name, text in {**FILES, **more}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return root
