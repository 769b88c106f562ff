"""Keep the summary of a diagnosis beside the index of its source while nothing changes."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path

from blade.store import cache

_FILE = "summary.json"


def key(paths: Iterable[Path], *others: str) -> str | None:
    """What a summary depends on: files as they lie on disk, our own code, and what else is told; None if a
    file cannot be looked at."""
    digest = blake2b(digest_size=16)
    ours = sorted(
        path for path in Path(__file__).parents[1].rglob("*") if path.suffix in (".py", ".toml", ".json")
    )
    try:
        for path in (*ours, *paths):
            stat = path.stat()
            digest.update(f"{path}\0{stat.st_size}\0{stat.st_mtime_ns}\0".encode("utf-8", "surrogateescape"))
    except OSError:
        return None
    for text in others:
        digest.update(text.encode("utf-8", "surrogatepass") + b"\0")
    return digest.hexdigest()


def kept(source: Path, wanted: str) -> str | None:
    """The summary that was kept for this source under this key."""
    try:
        held = json.loads((cache.folder_for(source) / _FILE).read_text(encoding="utf-8"))
        return str(held["text"]) if held["key"] == wanted else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def keep(source: Path, made: str, text: str) -> None:
    """Keep a summary; where the cache cannot be written, it is made again next time."""
    folder = cache.folder_for(source)
    with contextlib.suppress(OSError):
        if folder.is_dir() and os.access(folder, os.W_OK):
            cache.write_whole(folder / _FILE, json.dumps({"key": made, "text": text}).encode())
