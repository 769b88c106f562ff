"""Turn the 500 held-out problems of MATH into rows with a question and its answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from blade_eval.prepare import fetched, records, written

REVISION = "6e4ed1a2a79af7d8630a6b768ec859cb5af4d3be"
SOURCES = {
    "math_500_test.jsonl": f"https://huggingface.co/datasets/HuggingFaceH4/MATH-500/resolve/{REVISION}/test.jsonl"
}
OUTPUT = Path("benchmarks/math-500/data/math-500_benchmark.jsonl")


def prepare() -> Path:
    """Write the rows."""
    name, url = next(iter(SOURCES.items()))
    return written((row(record) for record in records(fetched(url, name))), OUTPUT)


def row(record: dict[str, Any]) -> dict[str, Any]:
    """One problem; the answer is LaTeX."""
    return {
        "id": record["unique_id"],
        "question": record["problem"],
        "expected_answer": record["answer"],
        "subject": record["subject"],
        "level": int(record["level"]),
    }
