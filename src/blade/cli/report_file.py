"""Read a report that `check` and `cite` are given: Markdown or JSON, from a file or standard input."""

from __future__ import annotations

import sys
from pathlib import Path

from blade.errors import NothingToRead, Unreadable


def read_report(report: str) -> str:
    """The text of a report file, or of standard input."""
    path = Path(report)
    if path.is_dir():
        raise NothingToRead(
            f"{report} is a folder", "name the report in it, such as report.md", "nothing-to-read"
        )
    try:
        raw = sys.stdin.buffer.read() if report == "-" else path.read_bytes()
    except FileNotFoundError as error:
        raise NothingToRead(f"{report} does not exist", "check the path", "no-such-path") from error
    except OSError as error:
        raise _unreadable(f"cannot read {report}: {error.strerror}", "check its permissions") from error
    if not raw.strip():
        raise NothingToRead(f"{report} is empty", "give a report in Markdown or JSON", "nothing-to-read")
    try:
        text = raw.decode("utf-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise _unreadable(f"{report} is not text", "give a report in Markdown or JSON, in UTF-8") from error
    start = text.lstrip()[:15].lower()
    if start.startswith(("<!doctype html", "<html")):
        raise _unreadable(
            f"{report} is HTML, which is not read", "check report.md or report.json beside it"
        )
    if path.suffix == ".json":
        import json

        try:
            json.loads(text)
        except (ValueError, RecursionError) as error:
            raise _unreadable(f"{report} is not complete JSON", "it may be cut; write it again") from error
    from blade.check.beside import with_claims

    return with_claims(text, path)


def _unreadable(message: str, hint: str) -> Unreadable:
    return Unreadable(message, hint, "unreadable-file")
