"""Turn a report into what the rows alone make of it: without files, places and what was typed."""

from __future__ import annotations

from typing import Any


def of_rows(document: dict[str, Any]) -> dict[str, Any]:
    """The parts that must be the same whatever the order, the shards or the compression of the rows."""
    found = {key: value for key, value in document.items() if key != "made_by"}
    found["skipped"] = sorted(entry["reason"].partition(":")[0] for entry in found["skipped"])
    found["runs"] = [
        {key: value for key, value in run.items() if key not in ("sources", "artifacts")} for run in found["runs"]
    ]
    found["claims"] = [
        (claim["value"], claim["text"], claim["query"])
        for claim in found["claims"]
        if not any(word in claim["query"] for word in (".sources", ".skipped"))
    ]
    return found
