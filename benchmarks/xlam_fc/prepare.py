"""Turn a thousand records of xLAM's function-calling data into rows with tools and the calls they ask for."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

from blade_eval.prepare import fetched, records, written

REVISION = "26d14ebfe18b1f7b524bd39b404b50af5dc97866"
SOURCES = {
    "xlam_function_calling_60k.json": "https://huggingface.co/datasets/Salesforce/xlam-function-calling-60k/"
    f"resolve/{REVISION}/xlam_function_calling_60k.json"
}
OUTPUT = Path("benchmarks/xlam_fc/data/xlam_fc_benchmark.jsonl")
TYPES = {
    "str": "string",
    "int": "integer",
    "float": "number",
    "bool": "boolean",
    "list": "array",
    "tuple": "array",
    "set": "array",
    "dict": "object",
}


def prepare(count: int = 1000) -> Path:
    """Write `count` rows, chosen by a hash of their ids; the dataset is gated, so HF_TOKEN must be set."""
    name, url = next(iter(SOURCES.items()))
    found = sorted(records(fetched(url, name)), key=lambda record: drawn(record["id"]))[:count]
    found.sort(key=lambda record: int(record["id"]))
    return written((row(record) for record in found), OUTPUT)


def drawn(identity: Any) -> str:
    """Where a record stands in a shuffle that no version of anything changes."""
    return hashlib.sha256(f"xlam_fc {identity}".encode()).hexdigest()


def row(record: dict[str, Any]) -> dict[str, Any]:
    """One query; tools and answers are JSON inside strings."""
    tools = [tool(one) for one in json.loads(record["tools"])]
    calls = [
        {"name": clean(call["name"]), "arguments": call["arguments"]}
        for call in json.loads(record["answers"])
    ]
    return {
        "responses_create_params": {
            "input": [{"role": "user", "content": record["query"]}],
            "tools": tools,
            "parallel_tool_calls": True,
        },
        "id": record["id"],
        "expected_answers": calls,
    }


def tool(given: dict[str, Any]) -> dict[str, Any]:
    """A tool as the Responses API declares it; `str, optional` is a string that may be left out."""
    properties, required = {}, []
    for name, about in given["parameters"].items():
        kind = str(about.get("type", "str"))
        word = re.match(r"\w+", kind)
        one: dict[str, Any] = {"type": TYPES.get(word[0].lower() if word else "", "string")}
        if about.get("description"):
            one["description"] = about["description"]
        if "default" in about:
            one["default"] = about["default"]
        properties[name] = one
        if "optional" not in kind and "default" not in about:
            required.append(name)
    parameters = {"type": "object", "properties": properties, "required": required}
    return {
        "type": "function",
        "name": clean(given["name"]),
        "description": given["description"],
        "parameters": parameters,
        "strict": False,
    }


def clean(name: str) -> str:
    """A name that model servers accept."""
    return re.sub(r"[^a-zA-Z0-9_-]", "_", name)
