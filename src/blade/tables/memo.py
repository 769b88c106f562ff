"""Keep conclusions on a source beside its index while nothing that they depend on changes."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path

from blade.tables import cache

_KEY = 32  # characters of a key, which stands before what is kept


@lru_cache(maxsize=1)
def _ours() -> bytes:
    """Our own code as it lies on disk: other code, other conclusions."""
    digest = blake2b(digest_size=16)
    for path in sorted(Path(__file__).parents[1].rglob("*")):
        if path.suffix in (".py", ".toml", ".json"):
            digest.update(_looks(path))
    return digest.digest()


def _looks(path: Path) -> bytes:
    stat = path.stat()
    told = f"{path}\0{stat.st_size}\0{stat.st_mtime_ns}\0"
    return told.encode("utf-8", "surrogateescape")


def key(paths: Iterable[Path], *others: str) -> str | None:
    """What a conclusion depends on: files as they lie on disk, our own code, and what else is told; None if
    a file cannot be looked at."""
    digest = blake2b(digest_size=_KEY // 2)
    try:
        digest.update(_ours())
        for path in paths:
            digest.update(_looks(path))
    except OSError:
        return None
    for text in others:
        digest.update(text.encode("utf-8", "surrogatepass") + b"\0")
    return digest.hexdigest()


def kept_bytes(source: Path, name: str, wanted: str) -> bytes | None:
    """What was kept for this source under this name and key."""
    try:
        held = (cache.folder_for(source) / f"{name}.kept").read_bytes()
    except OSError:
        return None
    return held[_KEY:] if held[:_KEY] == wanted.encode() else None


def keep_bytes(source: Path, name: str, made: str, content: bytes) -> None:
    """Keep a conclusion; where the cache cannot be written, it is made again next time."""
    folder = cache.folder_for(source)
    with contextlib.suppress(OSError):
        if folder.is_dir() and os.access(folder, os.W_OK):
            cache.write_whole(folder / f"{name}.kept", made.encode() + content)


def keep_rows(source: Path, rows: dict[str, tuple[str, str, int | None]]) -> None:
    """Keep what each failing rollout was found to be, by its address: label, name, and the step to blame."""
    with contextlib.suppress(OSError):
        made = blake2b(_looks(source), digest_size=_KEY // 2).hexdigest()
        keep_bytes(source, "rows", made, json.dumps(rows).encode())


def kept_row(source: Path, address: str) -> tuple[str, str, int | None] | None:
    """What a rollout was found to be when its file, as it lies there now, was diagnosed last; None if it was not."""
    try:
        wanted = blake2b(_looks(source), digest_size=_KEY // 2).hexdigest()
        held = kept_bytes(source, "rows", wanted)
        if held is None:
            return None
        label, name, step = json.loads(held)[address]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return label, name, step


def kept(source: Path, wanted: str) -> str | None:
    """The summary that was kept for this source under this key."""
    held = kept_bytes(source, "summary", wanted)
    return held.decode("utf-8", "replace") if held is not None else None


def keep(source: Path, made: str, text: str) -> None:
    """Keep a summary."""
    keep_bytes(source, "summary", made, text.encode("utf-8", "replace"))
