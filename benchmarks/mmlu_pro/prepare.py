"""Turn the test split of MMLU-Pro into multiple-choice rows of up to ten options."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from blade_eval.prepare import fetched, records, written

REVISION = "b189ec765aa7ed75c8acfea42df31fdae71f97be"
SOURCES = {
    "mmlu_pro_test.parquet": "https://huggingface.co/datasets/TIGER-Lab/MMLU-Pro/resolve/"
    f"{REVISION}/data/test-00000-of-00001.parquet"
}
OUTPUT = Path("benchmarks/mmlu_pro/data/mmlu_pro_benchmark.jsonl")


def prepare() -> Path:
    """Write the rows."""
    name, url = next(iter(SOURCES.items()))
    return written((row(record) for record in records(fetched(url, name))), OUTPUT)


def row(record: dict[str, Any]) -> dict[str, Any]:
    """One question; its options keep their order, and its answer is a letter."""
    lettered = list(zip("ABCDEFGHIJ", record["options"], strict=False))
    return {
        "id": int(record["question_id"]),
        "question": record["question"],
        "options": [{letter: text} for letter, text in lettered],
        "options_text": "\n".join(f"{letter}) {text}" for letter, text in lettered),
        "expected_answer": record["answer"],
        "category": record["category"],
    }
