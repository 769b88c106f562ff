"""Where the files of a run stand: their names derive from the path given to --output."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Places:
    """The files of a run, named as NeMo Gym names them; the manifest is ours."""

    rollouts: Path
    materialized: Path
    failures: Path
    aggregate: Path
    manifest: Path


def beside(output: Path) -> Places:
    """The files of the run whose rollouts go to `output`."""

    def named(ending: str) -> Path:
        return output.with_name(output.stem + ending)

    return Places(
        output,
        named("_materialized_inputs.jsonl"),
        named("_failures.jsonl"),
        named("_aggregate_metrics.json"),
        named("_manifest.json"),
    )
