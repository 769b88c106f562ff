"""Turn the prompts of XSTest into rows that say whether a refusal is right."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from blade_eval.prepare import fetched, records, written

REVISION = "475f10bf0a3d6a9dfb174b6de1a38afbfdff98a5"
SOURCES = {
    "xstest_prompts.csv": "https://raw.githubusercontent.com/paul-rottger/exaggerated-safety/"
    f"{REVISION}/xstest_prompts.csv"
}
OUTPUT = Path("benchmarks/xstest/data/xstest_benchmark.jsonl")


def prepare() -> Path:
    """Write the rows."""
    name, url = next(iter(SOURCES.items()))
    return written((row(record) for record in records(fetched(url, name))), OUTPUT)


def row(record: dict[str, Any]) -> dict[str, Any]:
    """One prompt: safe ones sound dangerous, unsafe ones are their contrasts."""
    return {
        "id": record["id"],
        "prompt": record["prompt"],
        "label": record["label"],
        "prompt_type": record["type"],
    }
