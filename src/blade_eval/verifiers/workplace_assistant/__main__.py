"""Write the tasks of the office into the folder of its resources server: `python -m` and the folder."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import msgspec

from blade_eval.verifiers.workplace_assistant.quests import EXAMPLES, TEXTS, quests, rows
from blade_eval.verifiers.workplace_assistant.world import by_address


def facts() -> str:
    """What BLADE should know of runs of the office. The addresses are invented, so they may be shared."""
    requests = " ".join(quest.request for quest in quests().values())
    addresses = sorted({*by_address(), *re.findall(r"[\w.-]+@[\w.-]+", requests)})
    lines = (f'  "{address}",' for address in addresses)
    return "\n".join((f"{TEXTS['facts']}allow = [", *lines, "]", ""))


def datasets() -> dict[str, bytes]:
    """The files of `data/`: all tasks, a few to begin with, and what BLADE should know of them."""
    encode = msgspec.json.Encoder().encode_lines
    return {
        "validation.jsonl": encode(rows()), "example.jsonl": encode(rows(EXAMPLES)), "blade.toml": facts().encode(),
    }


if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "resources_servers/workplace_assistant/data")
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in datasets().items():
        (folder / name).write_bytes(content)
        print(f"{folder / name}: {len(content.splitlines())} lines, {len(content)} bytes")
