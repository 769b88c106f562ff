"""Turn the 30 problems of AIME 2024 into rows with a question and its integer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from blade_eval.prepare import fetched, records, written

REVISION = "2fe88a2f1091d5048c0f36abc874fb997b3dd99a"
SOURCES = {
    "aime_2024.parquet": "https://huggingface.co/datasets/HuggingFaceH4/aime_2024/resolve/"
    f"{REVISION}/data/train-00000-of-00001.parquet"
}
OUTPUT = Path("benchmarks/aime24/data/aime24_benchmark.jsonl")


def prepare() -> Path:
    """Write the rows."""
    name, url = next(iter(SOURCES.items()))
    return written((row(record) for record in records(fetched(url, name))), OUTPUT)


def row(record: dict[str, Any]) -> dict[str, Any]:
    """One problem; its answer is an integer from 0 to 999, written with leading zeros or without."""
    return {
        "id": str(record["id"]),
        "question": record["problem"],
        "expected_answer": str(int(record["answer"])),
        "url": record["url"],
    }
