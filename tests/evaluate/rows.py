"""Write rows as a file, read them again, and tell them apart by task and repeat."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.builders import Line, joined

Row = dict[str, Any]


def put(path: Path, rows: Iterable[Line]) -> None:
    path.write_bytes(joined(rows))


def rows_of(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def key(row: Row) -> tuple[int, int]:
    return row["_ng_task_index"], row["_ng_rollout_index"]
