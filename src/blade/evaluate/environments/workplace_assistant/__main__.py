"""Write the tasks of the office into the folder of its resources server: `python -m` and the folder."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from blade.evaluate.environments.workplace_assistant.tasks import EXAMPLES, rows


def lines(found: Iterable[dict[str, Any]]) -> bytes:
    return b"".join(msgspec.json.encode(row) + b"\n" for row in found)


def datasets() -> dict[str, bytes]:
    """The files of `data/`: all tasks, and a few to begin with."""
    return {"validation.jsonl": lines(rows()), "example.jsonl": lines(rows(EXAMPLES))}


if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "resources_servers/workplace_assistant/data")
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in datasets().items():
        (folder / name).write_bytes(content)
        print(f"{folder / name}: {len(content.splitlines())} tasks, {len(content)} bytes")
