"""Write the tasks of the office; they are generated, so nothing is fetched."""

from __future__ import annotations

from pathlib import Path

from blade_eval.prepare import written
from blade_eval.verifiers.workplace_assistant.quests import rows

OUTPUT = Path("benchmarks/workplace_assistant/data/workplace_assistant_benchmark.jsonl")


def prepare() -> Path:
    """Write the rows, without the agent: a benchmark names its own."""
    return written(({key: row[key] for key in row if key != "agent_ref"} for row in rows()), OUTPUT)
