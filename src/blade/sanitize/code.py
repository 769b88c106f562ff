"""Find source code in a text: fenced blocks, diffs, and texts that are code from end to end."""

from __future__ import annotations

import re
from collections.abc import Callable

from blade.sanitize.keys import PLACEHOLDER

_FENCED = re.compile(
    r"(?m)^(?P<open>[ \t]{0,3}(?:```+|~~~+)[^\n`]{0,80}\n)(?P<body>.*?)(?P<close>^[ \t]{0,3}(?:```+"
    r"|~~~+)[ \t]*$)",
    re.DOTALL,
)
_DIFF = re.compile(r"(?m)^(?:diff --git |--- (?:a/|/dev/null)|Index: )")
_LINE = re.compile(
    r"^\s*(?:def |class |import |from \S+ import |return\b|if .*:$|for .*:$|while .*:$|elif |else:|try:"
    r"|except|"
    r"with .*:$|@\w|#include|#define|public |private |static |const |let |var |function |fn |impl |struct |"
    r"package |using |namespace |module |SELECT |INSERT |always |assign |end\b|\}|\{|//|/\*|#!)"
    r"|[;{}]\s*$|^\s*\w+(?:\.\w+)*\s*[+\-*/]?=\s*\S"
)
_LEAST_LINES, _LEAST_CHARS, _SHARE = 5, 120, 0.5
_FIELDS = frozenset(
    "patch model_patch gold_patch test_patch diff source source_code code solution_code file_content".split()
)


def without(text: str, name: str, stub: Callable[[str, str], str]) -> str:
    """`text` with its source code replaced by what `stub` leaves of it."""
    if (len(text) < 40 and name not in _FIELDS) or PLACEHOLDER.fullmatch(text):
        return text
    if (name in _FIELDS and text.strip()) or is_code(text):
        return stub("CODE", text)
    if "```" in text or "~~~" in text:
        text = _FENCED.sub(lambda hit: f"{hit['open']}{stub('CODE', hit['body'])}\n{hit['close']}", text)
    start = _DIFF.search(text)
    return text[: start.start()] + stub("CODE", text[start.start() :]) if start else text


def is_code(text: str) -> bool:
    """Is a text of several lines code for the most part."""
    if len(text) < _LEAST_CHARS or "\n" not in text:
        return False
    lines = [line for line in text[:20_000].splitlines() if line.strip()]
    return len(lines) >= _LEAST_LINES and sum(bool(_LINE.search(line)) for line in lines) >= _SHARE * len(
        lines
    )
