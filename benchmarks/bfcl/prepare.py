"""Turn the single-turn Python parts of BFCL v4 into rows with tools and the calls that are accepted."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from blade_eval.prepare import fetched, records, written

REVISION = "6ea57973c7a6097fd7c5915698c54c17c5b1b6c8"
PARTS = ("simple_python", "multiple", "parallel", "parallel_multiple")
BASE = (
    "https://raw.githubusercontent.com/ShishirPatil/gorilla/"
    f"{REVISION}/berkeley-function-call-leaderboard/bfcl_eval/data"
)
SOURCES = {
    **{f"BFCL_v4_{part}.json": f"{BASE}/BFCL_v4_{part}.json" for part in PARTS},
    **{f"answer_BFCL_v4_{part}.json": f"{BASE}/possible_answer/BFCL_v4_{part}.json" for part in PARTS},
}
OUTPUT = Path("benchmarks/bfcl/data/bfcl_benchmark.jsonl")
TYPES = {"dict": "object", "float": "number", "tuple": "array", "any": "string"}


def prepare() -> Path:
    """Write the rows, part after part."""
    return written(rows(), OUTPUT)


def rows() -> Iterator[dict[str, Any]]:
    """Every question with its accepted calls, which stand in a file of their own under the same id."""
    for part in PARTS:
        asked, answered = f"BFCL_v4_{part}.json", f"answer_BFCL_v4_{part}.json"
        truth = {one["id"]: one["ground_truth"] for one in records(fetched(SOURCES[answered], answered))}
        for record in records(fetched(SOURCES[asked], asked)):
            yield row(record, truth[record["id"]], part)


def row(record: dict[str, Any], truth: list[dict[str, Any]], part: str) -> dict[str, Any]:
    """One question; an argument's list holds the values that are accepted, "" that it may be left out."""
    calls = [
        {"name": clean(name), "arguments": accepted} for call in truth for name, accepted in call.items()
    ]
    return {
        "responses_create_params": {
            "input": record["question"][0],
            "tools": [tool(one) for one in record["function"]],
            "parallel_tool_calls": True,
        },
        "id": record["id"],
        "category": part,
        "accepted_calls": calls,
    }


def tool(given: dict[str, Any]) -> dict[str, Any]:
    """A function as the Responses API declares it."""
    return {
        "type": "function",
        "name": clean(given["name"]),
        "description": given["description"],
        "parameters": schema(given["parameters"]),
        "strict": False,
    }


def schema(given: Any) -> Any:
    """A parameter's description as JSON Schema; the dataset has types of Python in it."""
    if isinstance(given, list):
        return [schema(one) for one in given]
    if not isinstance(given, dict):
        return given
    made = {key: schema(value) for key, value in given.items()}
    if isinstance(made.get("type"), str):
        made["type"] = TYPES.get(made["type"], made["type"])
    return made


def clean(name: str) -> str:
    """A name that model servers accept: theirs have dots, which stand as underscores on both sides."""
    return re.sub(r"[^a-zA-Z0-9_-]", "_", name)
