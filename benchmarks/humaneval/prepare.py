"""Turn the 164 problems of HumanEval into rows with a signature and the tests of its function."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from blade_eval.prepare import fetched, records, written

REVISION = "6d43fb980f9fee3c892a914eda09951f772ad10d"
SOURCES = {
    "HumanEval.jsonl.gz": f"https://raw.githubusercontent.com/openai/human-eval/{REVISION}/data/HumanEval.jsonl.gz"
}
OUTPUT = Path("benchmarks/humaneval/data/humaneval_benchmark.jsonl")


def prepare() -> Path:
    """Write the rows."""
    name, url = next(iter(SOURCES.items()))
    return written((row(record) for record in records(fetched(url, name))), OUTPUT)


def row(record: dict[str, Any]) -> dict[str, Any]:
    """One problem; `test` defines check(candidate), and the signature's imports go before the solution."""
    return {
        "id": record["task_id"],
        "signature": record["prompt"],
        "verifier_metadata": {
            "test": record["test"],
            "entry_point": record["entry_point"],
            "prompt": record["prompt"],
        },
    }
