"""Turn the name of anything into one that files and skills can have."""

from __future__ import annotations

import re

MAX_NAME = 64


def slug(name: str, joint: str = "_") -> str:
    """A name in lower-case letters, digits and one joint."""
    return re.sub(r"[^a-z0-9]+", joint, name.lower()).strip(joint)


def skill_name(name: str) -> str:
    """The name of a benchmark as the name of a skill."""
    return slug(name, "-")[:MAX_NAME].strip("-") or "benchmark"
