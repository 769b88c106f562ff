"""Turn the frontmatter of a SKILL.md into its keys, with the standard library alone."""

from __future__ import annotations

import json
import re

_KEY = re.compile(r"^(?P<key>[A-Za-z_][\w-]*)\s*:(?:\s+(?P<value>.*))?$")
_BLOCK = re.compile(r"^[|>][+-]?\d*[+-]?$")


def split(text: str) -> tuple[str | None, str]:
    """The frontmatter and what follows it; None where the file does not begin with one."""
    lines = text.removeprefix("\ufeff").split("\n")
    if lines[0].rstrip() != "---":
        return None, text
    for at, line in enumerate(lines[1:], 1):
        if line.rstrip() == "---":
            return "\n".join(lines[1:at]), "\n".join(lines[at + 1 :])
    return None, text


def keys(block: str) -> dict[str, str]:
    """The top-level keys with their values as text; of a nested mapping or list, its lines as they stand."""
    found: dict[str, str] = {}
    lines = block.split("\n")
    at = 0
    while at < len(lines):
        matched = _KEY.match(lines[at])
        at += 1
        if not matched:
            continue
        below = []
        while at < len(lines) and (not lines[at].strip() or lines[at][0] in " \t-"):
            below.append(lines[at].strip())
            at += 1
        found.setdefault(matched["key"], _value((matched["value"] or "").strip(), below))
    return found


def _value(first: str, below: list[str]) -> str:
    if _BLOCK.match(first) or not first:
        return ("\n" if first.startswith("|") or not first else " ").join(below).strip()
    told = " ".join([first, *filter(None, below)])
    if told[0] == '"' and told[-1] == '"' and len(told) > 1:
        try:
            return str(json.loads(told))
        except ValueError:
            return told[1:-1]
    if told[0] == "'" and told[-1] == "'" and len(told) > 1:
        return told[1:-1].replace("''", "'")
    return re.split(r"\s+#", told, maxsplit=1)[0].rstrip()
