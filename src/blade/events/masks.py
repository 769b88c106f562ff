"""Turn text into what stays of it once volatile values are masked."""

from __future__ import annotations

import re
from functools import lru_cache

_MASKS = (
    ("<url>", r"[a-z][a-z0-9+.-]{1,10}://[^\s'\"<>)\]]+"),
    ("<email>", r"[\w.+-]+@[\w-]+\.[\w.-]+"),
    ("<uuid>", r"\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b"),
    (
        "<time>",
        r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?\b"
        r"|\b\d\d:\d\d:\d\d(?:\.\d+)?\b",
    ),
    ("<hex>", r"\b0x[0-9a-fA-F]+\b|\b(?=[0-9a-fA-F]*\d)[0-9a-fA-F]{16,}\b"),
    ("<path>", r"(?<![\w<])(?:~|\.{1,2})?(?:/[\w.@+-]+){2,}/?|\b[A-Za-z]:\\[\w\\.-]+"),
    ("<text>", r"'[^'\n]{1,200}'|\"[^\"\n]{1,200}\"|`[^`\n]{1,200}`"),
    (
        "<n>",
        r"(?<![\w<])#?[A-Za-z]{0,4}-?\d[\d,]*(?:\.\d+)?(?:[eE][+-]?\d+)?"
        r"(?: ?(?:ms|s|sec|seconds?|minutes?|[kKMGT]i?B|bytes|%))?(?!\w)",
    ),
    ("<id>", r"\b\w*\d{3,}\w*\b"),
)  # fmt: skip
_MASK = re.compile("|".join(f"(?P<m{number}>{pattern})" for number, (_, pattern) in enumerate(_MASKS)))
_NAMES = {f"m{number}": name for number, (name, _) in enumerate(_MASKS)}
_VOLATILE = re.compile(r"[\d'\"`/\\@]")  # without any of these there is nothing to mask


@lru_cache(maxsize=50_000)
def masked(text: str, limit: int = 200) -> str:
    """Text with volatile values replaced by what they are, in one line."""
    spaced = " ".join(text[: 2 * limit].split())
    if _VOLATILE.search(spaced) is None:
        return spaced[:limit]
    return _MASK.sub(lambda hit: _NAMES[hit.lastgroup or "m0"], spaced)[:limit]


@lru_cache(maxsize=20_000)
def fingerprint(text: str) -> str:
    """What two results have in common if they say the same, whatever ids and times they hold."""
    return f"{len(text) // 64}:{masked(text, 2000)}" if len(text) > 64 else masked(text, 64)
