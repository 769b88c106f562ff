"""Turn the questions of SimpleQA into rows with a short answer that a judge compares."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

from blade_eval.prepare import fetched, records, written

SOURCES = {
    "simple_qa_test_set.csv": "https://openaipublic.blob.core.windows.net/simple-evals/simple_qa_test_set.csv"
}
OUTPUT = Path("benchmarks/simpleqa/data/simpleqa_benchmark.jsonl")


def prepare() -> Path:
    """Write the rows."""
    name, url = next(iter(SOURCES.items()))
    found = records(fetched(url, name))
    return written((row(number, record) for number, record in enumerate(found)), OUTPUT)


def row(number: int, record: dict[str, Any]) -> dict[str, Any]:
    """One question; its metadata are a Python literal with the topic and the kind of answer."""
    metadata = ast.literal_eval(record["metadata"])
    return {
        "id": f"simpleqa-{number}",
        "question": record["problem"],
        "expected_answer": record["answer"],
        "topic": metadata.get("topic"),
        "answer_type": metadata.get("answer_type"),
    }
