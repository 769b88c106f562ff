"""Turn the test split of GSM8K into rows with a question and its number."""

from __future__ import annotations

from pathlib import Path

from blade_eval.prepare import fetched, records, written

REVISION = "3101c7d5072418e28b9008a6636bde82a006892c"
SOURCES = {
    "gsm8k_test.jsonl": "https://raw.githubusercontent.com/openai/grade-school-math/"
    f"{REVISION}/grade_school_math/data/test.jsonl"
}
OUTPUT = Path("benchmarks/gsm8k/data/gsm8k_benchmark.jsonl")


def prepare() -> Path:
    """Write the rows; the final number of a worked answer stands behind its last `####`."""
    name, url = next(iter(SOURCES.items()))
    return written((row(record) for record in records(fetched(url, name))), OUTPUT)


def row(record: dict[str, str]) -> dict[str, str]:
    """One problem."""
    number = record["answer"].rsplit("####", 1)[1].strip().replace(",", "")
    return {"question": record["question"], "expected_answer": number}
