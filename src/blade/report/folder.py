"""Keep the folder of a report: a mark in its page tells which files in it are ours and as we left them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path

from blade.errors import UsageError
from blade.targets import put_all, refuse_link

PAGES = ("report.md", "compare.md")  # whose last line names every file that was written with it
_MARK = re.compile(rb"\n<!-- written by blade: (?P<files>[^<>\n]+) -->\n\Z")


def put(folder: Path, texts: Mapping[str, str], stale: Iterable[str], force: bool) -> list[Path]:
    """Write the files of a report, all or none, and take away those of ours that it no longer has."""
    refuse_changed(folder, (*texts, *stale), force)
    contents = {name: text.encode("utf-8") for name, text in texts.items()}
    names = " ".join(f"{name}={_digest(content)}" for name, content in contents.items())
    for page in contents.keys() & set(PAGES):
        contents[page] += f"\n<!-- written by blade: {names} -->\n".encode()
    put_all({folder / name: content for name, content in contents.items()})
    for name in stale:
        (folder / name).unlink()
    return [folder / name for name in contents]


def refuse_changed(folder: Path, names: Iterable[str], force: bool) -> None:
    """Refuse to write over a file that is not ours, or that somebody changed, unless told to; a link always."""
    ours = _ours(folder)
    for name in names:
        path = folder / name
        refuse_link(path, folder)
        if path.is_dir():
            raise UsageError(f"{path} is a folder", "name another folder with -o", "output-not-empty")
        if path.exists() and name not in ours and not force:
            raise UsageError(
                f"{path} was not written by blade, or was changed since",
                "name another folder, or add --force to write over it",
                "output-not-empty",
            )


def _ours(folder: Path) -> set[str]:
    """The files that are as a page of ours says they were written."""
    found: set[str] = set()
    for page in PAGES:
        mark = _MARK.search(_content(folder / page))
        for told in mark["files"].decode("utf-8", "replace").split() if mark else ():
            name, _, digest = told.rpartition("=")
            content = _content(folder / name)
            if digest == _digest(content[: mark.start()] if mark and name == page else content):
                found.add(name)
    return found


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes() if path.is_file() else b""
    except OSError:
        return b""  # cannot be told to be ours


def _digest(content: bytes) -> str:
    return sha256(content).hexdigest()[:12]
