"""Fetch a public file into the raw cache: resumed where it broke off, held against its checksum."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from blade_eval.prepare import download

CONTEXT = "BLADE_PREPARE"  # the variable through which a prepare script's process learns its `Context`

_HUB = "https://huggingface.co/"


@dataclass(frozen=True)
class Context:
    """Where raw files come from and where they are kept, for one run of a prepare script."""

    cache: str
    given: str | None = None  # a file or folder that stands in for the download
    offline: bool = False
    again: bool = False  # fetch although it is in the cache
    pins: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # file name: its sha256 and size
    sole: bool = True  # the script reads one file, whatever the given one is called
    partial: bool = False  # a given file need not be the pinned one


@dataclass(frozen=True)
class Lacking:
    """A file that is nowhere to be had: what it is, and where it may be put."""

    name: str
    url: str
    why: str
    place: str
    sha256: str | None = None
    size: int | None = None


class Missing(Exception):
    """Files cannot be had; nobody's fault here, and a person can supply them."""

    def __init__(self, lacking: list[Lacking]) -> None:
        super().__init__("; ".join(f"{one.name}: {one.why}" for one in lacking))
        self.lacking = lacking


class Mismatch(Exception):
    """A file is not the one that was pinned."""

    def __init__(self, place: Path, url: str, what: str, expected: object, got: object) -> None:
        super().__init__(f"{place} has {what} {got}, but {what} {expected} is pinned for {url}")
        self.place, self.url, self.what = str(place), url, what
        self.expected, self.got = str(expected), str(got)


used: list[dict[str, Any]] = []  # what this process read, for the record beside the rows


def fetched(url: str, name: str, sha256: str | None = None) -> Path:
    """The file at `url`, kept as `name`: as given by hand, from the cache, or fetched now.

    The revision belongs into the URL, so that another revision is another file of the cache.
    """
    context = current()
    pin = context.pins.get(name, {})
    sha256 = sha256 or pin.get("sha256")
    size = pin.get("size")
    if Path(name).name != name or name.startswith("."):
        raise ValueError(f"{name!r} is no plain file name")
    by_hand = _by_hand(context, name)
    if by_hand is not None:
        return _given(by_hand, url, name, sha256, size, context.partial)
    place = place_of(context, url, name)
    place.parent.mkdir(parents=True, exist_ok=True)
    with _alone(place.parent):
        if place.exists() and not context.again and not _damaged(place):
            return _taken(place, url, name, sha256, size, "cache")
        lacking = Lacking(name, url, "", str(place), sha256, size)
        if context.offline:
            raise Missing([_because(lacking, "not in the cache, and --offline forbids to fetch it")])
        try:
            got = download.downloaded(_address(url), place.with_name(name + ".part"), _headers(url), _tell)
        except download.Unreachable as error:
            raise Missing([_because(lacking, str(error))]) from error
        return _kept(got, place, url, name, sha256, size)


def lacking(context: Context, sources: Mapping[str, str]) -> list[Lacking]:
    """Which of a script's declared sources are neither given nor in the cache."""
    missing = []
    for name, url in sources.items():
        place = place_of(context, url, name)
        if _by_hand(context, name) is None and not place.exists():
            pin = context.pins.get(name, {})
            missing.append(
                Lacking(name, url, "not in the cache", str(place), pin.get("sha256"), pin.get("size"))
            )
    return missing


def place_of(context: Context, url: str, name: str) -> Path:
    """Where the cache keeps `url`; a file put there by hand is taken."""
    host = (urlsplit(url).hostname or "").replace(":", "_")
    return Path(context.cache) / f"{host}-{hashlib.sha256(url.encode()).hexdigest()[:16]}" / name


def current() -> Context:
    """The context of this process."""
    told = os.environ.get(CONTEXT)
    if told is None:
        raise RuntimeError(
            "prepare scripts are run by `blade eval prepare`, which says where raw files are kept"
        )
    return Context(**json.loads(told))


def digest(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _by_hand(context: Context, name: str) -> Path | None:
    if context.given is None:
        return None
    given = Path(context.given)
    if given.is_dir():
        return given / name if (given / name).exists() else None
    return given if context.sole or given.name == name else None


def _taken(path: Path, url: str, name: str, sha256: str | None, size: int | None, how: str) -> Path:
    """A file that is there, held against its pin and entered into the record."""
    actual = path.stat().st_size
    if sha256 is None and size is not None and actual != size:
        raise Mismatch(path, url, "size", size, actual)
    found = digest(path)
    if sha256 is not None and found != sha256:
        raise Mismatch(path, url, "sha256", sha256, found)
    pinned = None if sha256 is None else True  # None: nobody said which sha256 it should have
    used.append({"name": name, "url": url, "sha256": found, "size": actual, "from": how, "pinned": pinned})
    return path


def _given(path: Path, url: str, name: str, sha256: str | None, size: int | None, partial: bool) -> Path:
    """A file by hand; a part of the pinned one only where the user said so, and then recorded as such."""
    try:
        return _taken(path, url, name, sha256, size, "given")
    except Mismatch as error:
        if not partial:
            raise
        _tell(f"{error}; taken all the same")
        _taken(path, url, name, None, None, "given")
        used[-1]["pinned"] = False
        return path


def _kept(part: Path, place: Path, url: str, name: str, sha256: str | None, size: int | None) -> Path:
    """Move a finished download to its place, if it is the right one."""
    try:
        _taken(part, url, name, sha256, size, "fetched")
    except Mismatch as error:
        part.unlink()
        raise Mismatch(place, url, error.what, error.expected, error.got) from error
    note = place.with_name(name + ".source.json")
    note.write_text(json.dumps({"url": url, "sha256": used[-1]["sha256"]}, indent=2) + "\n", encoding="utf-8")
    os.replace(part, place)
    return place


def _damaged(place: Path) -> bool:
    """Whether a file that we fetched is no longer what we fetched; of others nothing is known."""
    try:
        known = json.loads(place.with_name(place.name + ".source.json").read_text(encoding="utf-8"))["sha256"]
    except (OSError, ValueError, KeyError):
        return False
    if known == digest(place):
        return False
    _tell(f"{place} changed since it was fetched; fetching it again")
    return True


def _because(lacking: Lacking, why: str) -> Lacking:
    return Lacking(**{**asdict(lacking), "why": why})


def _address(url: str) -> str:
    """The hub's mirror where one is configured, as the hub's own library does it."""
    mirror = os.environ.get("HF_ENDPOINT")
    return mirror.rstrip("/") + "/" + url[len(_HUB) :] if mirror and url.startswith(_HUB) else url


def _headers(url: str) -> dict[str, str]:
    """The hub's token, for the hub alone."""
    token = os.environ.get("HF_TOKEN") or os.environ.get("HUGGING_FACE_HUB_TOKEN")
    return {"Authorization": f"Bearer {token}"} if token and url.startswith(_HUB) else {}


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Two runs that want the same file: the second waits, and then finds it."""
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
