"""Ground for queries from rows in memory."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from blade.pipeline.run_tables import ground_of
from blade.pipeline.stages import load
from blade.query.query_ground import Ground
from blade.tables.index import Silent
from tests.builders import Line, make_run


def ground(folder: Path, *runs: Iterable[Line], threshold: float | None = None, **sidecars: Any) -> Ground:
    """One run for each list of rows, called run0, run1 and so on."""
    specs = [f"run{number}={make_run(folder / f'run{number}', rows, **sidecars)}" for number, rows in enumerate(runs)]
    return ground_of(load(specs, Silent()), threshold)
