"""Escape foreign text for each exit: terminal, Markdown, HTML, JSON, shell. HTML pages are escaped in report/html.py."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable

# CSI, then the string sequences (OSC, DCS, SOS, PM, APC) with their payload, then short escapes; each also
# in its one-byte C1 form. The payload is bounded so that a run of openers cannot cost quadratic time.
_SEQUENCE = re.compile(
    "(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]"
    "|(?:\x1b[\\]PX^_]|[\x90\x98\x9d\x9e\x9f])[^\x07\x1b\x9c]{0,1000}(?:\x07|\x1b\\\\|\x9c)"
    "|\x1b[ -/]*[0-~]"
)
# Controls, bidi overrides and isolates, zero-width and tag characters, and what XML forbids.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\ufffe\uffff\U000e0000-\U000e007f]"
)
_SURROGATE = re.compile("[\ud800-\udfff]")
_BREAK = re.compile("\r\n|[\r\n\x85\u2028\u2029]")


def lines(text: str) -> str:
    """`text` without control sequences, controls and bidi overrides; its line breaks and tabs stay."""
    if text.isprintable():  # most texts are, and hold nothing of it
        return text
    text = _BREAK.sub("\n", _SEQUENCE.sub("", text))
    return _SURROGATE.sub("\ufffd", _INVISIBLE.sub("", text))


def line(text: str, limit: int | None = None) -> str:
    """`text` cleaned as by `lines` and on one line, of at most `limit` characters."""
    if limit is not None and len(text) > 20 * limit:
        text = text[: 20 * limit] + "…"
    text = " ".join(lines(text).split())
    return text if limit is None or len(text) <= limit else text[: limit - 1].rstrip() + "…"


# JSON allows these raw, but they deceive whoever prints the file: C1 controls, bidi marks and overrides, line
# separators, tag characters; lone surrogates cannot be encoded at all. Escaped, they parse to the same text.
_DECEIVING = re.compile(
    "[\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ufffe\uffff\ud800-\udfff"
    "\U000e0000-\U000e007f]"
)


def json_text(document: str) -> str:
    """JSON text in which nothing deceives whoever prints it."""
    return _DECEIVING.sub(lambda hit: json.dumps(hit[0])[1:-1], document)


def under(mark: str, text: str) -> str:
    """`text` cleaned as by `lines` behind a mark of ours; its further lines are set in below it.

    So no line break inside a name can begin a line that passes for one of ours.
    """
    return mark + lines(text).replace("\n", "\n" + " " * len(mark))


# What Markdown could read as markup. Intervals such as [32.7%, 51.8%] stay readable: they hold nothing but
# numbers, and without a following ( [ or : they are no link.
_MARKUP = re.compile(
    r"(?P<keep>\[[-−+<>\d.,%]+, [-−+<>\d.,%]+(?: points)?\](?![(\[:])"
    r"|(?<=[^\W_])_(?=[^\W_])|[<>](?=\d)|(?<=\bpass)@(?=[\dk])|(?<=\bmajority)@(?=[\dk])|(?<=\bbest)@(?=[\dk]))"
    r"|(?P<escape>[\\`*_<>\[\]|#!~&$@]|:(?=//)|(?<=www)\.)",
    re.IGNORECASE,
)
_LEAD = re.compile(r"^(?:[-+>=]|\d+(?=[.)](?:\s|$)))")


def markdown_inline(text: str) -> str:
    """`text` so that Markdown prints it as it is, on one line."""
    return _MARKUP.sub(lambda hit: hit["keep"] or "\\" + hit["escape"], line(text))


def markdown_start(text: str) -> str:
    """`text`, escaped already, so that it begins no list, quote or heading."""
    return _LEAD.sub(lambda hit: hit[0] + "\\" if hit[0][0].isdigit() else "\\" + hit[0], text)


def markdown_code(text: str, in_table: bool = False) -> str:
    """`text` as a code span: nothing inside links, nests or ends it."""
    text = line(text)
    if not text:
        return "(empty)"
    if in_table and "\\|" in text:  # how a code span escapes this pipe is read differently by every parser
        return markdown_inline(text)
    ticks = "`" * (_longest_run(text) + 1)
    pad = " " if text[0] == "`" or text[-1] == "`" else ""
    if in_table:
        text = text.replace("|", "\\|")
    return f"{ticks}{pad}{text}{pad}{ticks}"


def markdown_fence(text: str, language: str = "text") -> str:
    """`text` in a fence longer than any it holds."""
    text = lines(text).strip("\n")
    ticks = "`" * max(3, _longest_run(text) + 1)
    return f"{ticks}{language}\n{text}\n{ticks}"


def _longest_run(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)


def quoted(text: str, limit: int = 1200) -> str:
    """A quotation of at most `limit` characters that says what it leaves out."""
    text = text if len(text) <= limit else f"{text[:limit]}\n… ({len(text) - limit:,} characters more)"
    return lines(text)


def argument(text: str) -> str | None:
    """`text` as one word of a shell command, or None when it cannot be typed as it is."""
    return shlex.quote(text) if text and line(text) == text and not text.startswith("-") else None


def command_line(command: str, runs: Iterable[str], **options: object) -> str:
    """What was typed, as reports record it: `blade COMMAND RUN... --OPTION VALUE`; options that are None or False are left out."""
    words = ["blade", command, *runs]
    for name, value in options.items():
        if value is not None and value is not False:
            words.append(f"--{name.replace('_', '-')}")
            words += [] if value is True else [str(value)]
    return shlex.join(words)
