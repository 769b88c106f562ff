"""Turn the prompts of IFEval into rows with the instructions that a program checks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from blade_eval.prepare import fetched, records, written

REVISION = "966cd89545d6b6acfd7638bc708b98261ca58e84"
SOURCES = {
    "ifeval_input_data.jsonl": "https://huggingface.co/datasets/google/IFEval/resolve/"
    f"{REVISION}/ifeval_input_data.jsonl"
}
OUTPUT = Path("benchmarks/ifeval/data/ifeval_benchmark.jsonl")


def prepare() -> Path:
    """Write the rows."""
    name, url = next(iter(SOURCES.items()))
    return written((row(record) for record in records(fetched(url, name))), OUTPUT)


def row(record: dict[str, Any]) -> dict[str, Any]:
    """One prompt; the hub's copy fills arguments that are not given with null."""
    kwargs = [{key: value for key, value in one.items() if value is not None} for one in record["kwargs"]]
    return {
        "id": int(record["key"]),
        "prompt": record["prompt"],
        "instruction_id_list": record["instruction_id_list"],
        "kwargs": kwargs,
    }
