"""Turn the test split of MBPP (tasks 11 to 510) into rows with a description and its assertions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from blade_eval.prepare import fetched, records, written

REVISION = "4700efb9afa54286b0e04473ba80a13e8461e25f"
SOURCES = {
    "mbpp.jsonl": f"https://raw.githubusercontent.com/google-research/google-research/{REVISION}/mbpp/mbpp.jsonl"
}
OUTPUT = Path("benchmarks/mbpp/data/mbpp_benchmark.jsonl")
TEST_SPLIT = range(11, 511)


def prepare() -> Path:
    """Write the rows."""
    name, url = next(iter(SOURCES.items()))
    return written(rows(records(fetched(url, name))), OUTPUT)


def rows(found: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The tasks that the authors evaluate on; a model is shown the assertions, as in their prompt."""
    for record in found:
        if int(record["task_id"]) in TEST_SPLIT:
            yield {
                "id": f"MBPP/{record['task_id']}",
                "question": record["text"],
                "tests": "\n".join(record["test_list"]),
                "verifier_metadata": {
                    "test_list": record["test_list"],
                    "test_setup_code": record.get("test_setup_code") or "",
                },
            }
