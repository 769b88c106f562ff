"""Turn an error text into its informative line, what that line is called, and its class."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from blade import events

LONGEST = 200  # characters of a line, as it is quoted and as it is compared
_END = 4000  # characters looked at, at either end of a text
_MAX_LINES = 60
_EXCEPTION = re.compile(
    r"\b\w+(?:Error|Exception|Timeout)\b[^\n]*:|^\W*[\w.]*[A-Z]\w*(?:Error|Exception)\W*$"
)
_ASSERTION = re.compile(r"^\W*(?:E\s+)?assert\b|assertion (?:failed|`)", re.IGNORECASE)
_TRACEBACK = "Traceback (most recent call last)"
_FRAME = re.compile(r'File "([^"\n]{1,300})", line \d+, in ([\w<>]+)')
_FOREIGN = re.compile(r"site-packages|dist-packages|[/\\]lib[/\\]python|^<")
# Where a JSON result keeps what went wrong, in the order of what says most.
_TOLD = ("error", "errors", "exception", "message", "error_message", "detail", "details", "stderr", "reason")

_TYPE = re.compile(r"\b([A-Z]\w*(?:Error|Exception|Timeout|Interrupt))\b")
_HTTP = re.compile(r"\b(?:HTTP|status|code)\b[\w ./:=('\"]{0,12}?\b([45]\d\d)\b", re.IGNORECASE)
_EXIT = re.compile(r"\bexit(?:ed)?(?: with)?(?: (?:code|status))?[:= ]{1,3}(\d{1,3})\b", re.IGNORECASE)
_CLASSES = tuple(
    (name, re.compile(pattern, re.IGNORECASE))
    for name, pattern in (
        ("timeout", r"\btim(?:ed?|eout)\b[ _-]?out|\btimeout|time limit|deadline exceeded"),
        (
            "connection",
            r"connection (?:reset|refused|closed|aborted|error)|ECONN|unreachable|name resolution",
        ),
        ("out of memory", r"out of memory|\bOOM|cannot allocate memory"),
        ("no space", r"no space left"),
        ("rate limit", r"rate.?limit|too many requests|quota"),
        ("permission denied", r"permission denied|access denied|not permitted|forbidden|unauthori[sz]ed"),
        ("command not found", r"command not found"),
        ("syntax error", r"syntax error|unexpected (?:token|EOF|end of)|parse error"),
        (
            "not found",
            r"not found|no such|does ?n[o']t exist|cannot find|could not find|unknown|not available",
        ),
        (
            "invalid input",
            r"\binvalid|malformed|missing (?:operand|argument|required)|unrecogni[sz]ed|illegal",
        ),
        ("assertion", r"\bassert"),
        ("refused", r"\bcan ?not\b|can't|not allowed|denied|\bmust\b|\bshould\b|unable to|not enough"),
    )
)


def told(text: str) -> str:
    """What a JSON result says went wrong; the text itself where it is no JSON."""
    if not text.startswith("{") or len(text) > 20_000:
        return text
    value: Any = events.parsed(text)
    for _ in range(2):
        if not isinstance(value, dict):
            break
        value = next((value[key] for key in _TOLD if value.get(key)), None)
        if isinstance(value, str):
            return value
    return text


def informative(text: str) -> str:
    """The line that says most: the last exception, an assertion, the first error, or the first line."""
    head, tail = text[:_END], text[-_END:] if len(text) > _END else ""
    if _TRACEBACK in text or "Error" in tail or "Exception" in tail or len(text) <= _END:
        shown = (tail or head).splitlines()[-_MAX_LINES:]
        last = next((line for line in reversed(shown) if _EXCEPTION.search(line[: 2 * LONGEST])), None)
        if last is not None:
            return _cut(last)
    lines = head.splitlines()[:_MAX_LINES]
    for reads in (_ASSERTION, events.ERROR):
        for line in lines:
            if reads.search(line[: 2 * LONGEST]):
                return _cut(line)
    return _cut(next((line for line in lines if line.strip()), ""))


def _cut(line: str) -> str:
    return line.strip()[:LONGEST].rstrip()


def frame(text: str) -> str:
    """The innermost frame of a traceback that is the project's own: file and function, no line number."""
    if _TRACEBACK not in text[: 4 * _END] and _TRACEBACK not in text[-_END:]:
        return ""
    own = [hit for hit in _FRAME.findall(text[-4 * _END :]) if not _FOREIGN.search(hit[0])]
    if not own:
        return ""
    file, function = own[-1]
    return f"{file.replace(chr(92), '/').rpartition('/')[2]}:{function}"


@lru_cache(maxsize=50_000)
def masked(line: str) -> str:
    """A line without what differs from case to case."""
    return events.masked(line, LONGEST)


@lru_cache(maxsize=50_000)
def kind(line: str) -> str:
    """The class of a line: an exception type, an HTTP status, an exit code, or what it is about."""
    for pattern, says in ((_TYPE, "{}"), (_HTTP, "HTTP {}"), (_EXIT, "exit {}")):
        hit = pattern.search(line)
        if hit is not None and hit[1] != "0":
            return says.format(hit[1])
    return next((name for name, pattern in _CLASSES if pattern.search(line)), "error")
