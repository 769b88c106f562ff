"""Write the files of a test, rows or a miniature checkout of NeMo Gym; read rows again, and tell them apart by task and repeat."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.builders import Line, joined
from tests.case_tables import tables

Row = dict[str, Any]


def put(path: Path, rows: Iterable[Line]) -> None:
    path.write_bytes(joined(rows))


def rows_of(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def key(row: Row) -> tuple[int, int]:
    return row["_ng_task_index"], row["_ng_rollout_index"]


def gym_tree(root: Path, **more: str) -> Path:
    """A checkout in the shapes of NeMo Gym's: resources server, flavours, nested benchmarks, manifests."""
    for name, text in {**tables(__file__, "gym_tree.yaml"), **more}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return root
