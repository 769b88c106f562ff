"""Name skills and read their frontmatter, with the standard library alone."""

from __future__ import annotations

import json
import re

PAGE = "SKILL.md"
MAX_NAME = 64
NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_KEY = re.compile(r"^(?P<key>[A-Za-z_][\w-]*)\s*:(?:\s+(?P<value>.*))?$")
_BLOCK = re.compile(r"^[|>][+-]?\d*[+-]?$")


def slug(name: str, joint: str = "_") -> str:
    """A name in lower-case letters, digits and one joint."""
    return re.sub(r"[^a-z0-9]+", joint, name.lower()).strip(joint)


def skill_name(name: str) -> str:
    """The name of a benchmark as the name of a skill."""
    return slug(name, "-")[:MAX_NAME].strip("-") or "benchmark"


def split(text: str) -> tuple[str | None, str]:
    """The frontmatter and what follows it; None where the file does not begin with one."""
    lines = text.removeprefix("\ufeff").split("\n")
    if lines[0].rstrip() == "---":
        for number, line in enumerate(lines[1:], 1):
            if line.rstrip() == "---":
                return "\n".join(lines[1:number]), "\n".join(lines[number + 1 :])
    return None, text


def keys(block: str) -> dict[str, str]:
    """The top-level keys with their values as text; of a nested mapping or list, its lines as they stand."""
    values: dict[str, str] = {}
    lines = block.split("\n")
    while lines:
        matched = _KEY.match(lines.pop(0))
        below = []
        while matched and lines and (not lines[0].strip() or lines[0][0] in " \t-"):
            below.append(lines.pop(0).strip())
        if matched:
            values.setdefault(matched["key"], _value((matched["value"] or "").strip(), below))
    return values


def _value(first: str, below: list[str]) -> str:
    if _BLOCK.match(first) or not first:
        return ("\n" if first.startswith("|") or not first else " ").join(below).strip()
    value = " ".join([first, *filter(None, below)])
    if len(value) > 1 and value[0] == value[-1] == '"':
        try:
            return str(json.loads(value))
        except ValueError:
            return value[1:-1]
    if len(value) > 1 and value[0] == value[-1] == "'":
        return value[1:-1].replace("''", "'")
    return re.split(r"\s+#", value, maxsplit=1)[0].rstrip()
