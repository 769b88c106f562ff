"""Write simulated runs with a known fault of known size (demo, bench, tests)."""

from __future__ import annotations

from tools.planted.bench_rows import KINDS, write_bench, write_light
from tools.planted.planted_faults import FAULTS
from tools.planted.planted_runs import Planted, write_demo, write_run

__all__ = ["FAULTS", "KINDS", "Planted", "write_bench", "write_demo", "write_light", "write_run"]
