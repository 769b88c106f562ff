"""Diagnose runs that a test makes up row by row."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from pathlib import Path

import pytest

from tests.diagnose import diagnosed
from tests.diagnose.diagnosed import Diagnose, Diagnosed
from tests.diagnose.rows import Row


@pytest.fixture
def diagnose(cache: Path, tmp_path: Path) -> Diagnose:
    """Write rows, and the inputs beside them, into a folder of the test and diagnose them."""
    numbers = count()

    def run(rows: Iterable[Row], inputs: Iterable[Row] | None = None) -> Diagnosed:
        return diagnosed.diagnose(tmp_path / f"run{next(numbers)}", rows, inputs)

    return run
