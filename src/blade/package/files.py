"""Read a file of a package as far as it can be read, or say in words why it cannot."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


class Broken(Exception):
    """A file that cannot be read, with the reason in words."""


def text(path: Path) -> str:
    """A text file without its byte-order mark; line endings are one newline."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise Broken(f"cannot be read: {error.strerror or error}") from error
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        raise Broken(f"is not UTF-8 (byte {error.start:,})") from error


def text_or_nothing(path: Path) -> str:
    """A text file that may be missing or broken."""
    try:
        return text(path) if path.is_file() else ""
    except Broken:
        return ""


def data(path: Path) -> Any:
    """The value of a JSON file."""
    try:
        return json.loads(text(path))
    except (ValueError, RecursionError) as error:
        raise Broken(str(error) or "is nested too deeply") from error


def data_or_nothing(path: Path) -> Any:
    """The value of a JSON file that may be missing or broken; then an empty object."""
    try:
        return data(path) if path.is_file() else {}
    except Broken:
        return {}


def write(path: Path, content: str) -> None:
    """Write a text file; its folder is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode("utf-8"))


def compact(value: object, limit: int = 60) -> str:
    """A JSON value in one short line, for a message; nothing in it can steer a terminal."""
    short = json.dumps(value, ensure_ascii=True, default=str)
    return short if len(short) <= limit else f"{short[: limit - 1]}…"
