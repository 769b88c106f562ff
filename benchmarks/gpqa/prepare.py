"""Turn GPQA Diamond into multiple-choice rows whose options stand in a fixed, shuffled order."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from blade_eval.prepare import fetched, records, written

REVISION = "633f5ee89ab8ad4522a9f850766b73f62147ffdd"
SOURCES = {
    "gpqa_diamond.csv": f"https://huggingface.co/datasets/Idavidrein/gpqa/resolve/{REVISION}/gpqa_diamond.csv"
}
OUTPUT = Path("benchmarks/gpqa/data/gpqa_benchmark.jsonl")
ANSWERS = ("Correct Answer", "Incorrect Answer 1", "Incorrect Answer 2", "Incorrect Answer 3")


def prepare() -> Path:
    """Write the rows; the dataset is gated, so HF_TOKEN must be set or the file be given by hand."""
    name, url = next(iter(SOURCES.items()))
    return written((row(record) for record in records(fetched(url, name))), OUTPUT)


def row(record: dict[str, Any]) -> dict[str, Any]:
    """One question; the order of its options depends on nothing but its record's name."""
    texts = [record[column].strip() for column in ANSWERS]
    order = [0, 1, 2, 3]
    random.Random(f"gpqa {record['Record ID']}").shuffle(order)
    letters = dict(zip("ABCD", order, strict=True))
    options = [{letter: texts[place]} for letter, place in letters.items()]
    return {
        "id": record["Record ID"],
        "question": record["Question"].strip(),
        "options": options,
        "options_text": "\n".join(f"{letter}) {texts[place]}" for letter, place in letters.items()),
        "expected_answer": next(letter for letter, place in letters.items() if place == 0),
        "domain": record["High-level domain"],
        "subdomain": record["Subdomain"],
    }
