"""Fetch a public file into the raw cache: resumed where it broke off, compared with its checksum."""

from __future__ import annotations

import fcntl
import hashlib
import http.client
import json
import os
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from blade import __version__

PAUSES = (0.5, 1.0, 2.0)  # seconds before another attempt after one that brought nothing
_MOST_ATTEMPTS = 200  # however many bytes each of them brings
_SILENCE_S = 60.0  # a server that says nothing for so long is gone
_PIECE = 1 << 20
_PASSING = (408, 425, 429, 500, 502, 503, 504)
_WAIT_MOST_S = 60.0


class Unreachable(Exception):
    """The file cannot be had from there now; the message says why."""


class _Broken(Exception):
    """An attempt broke off; another one may succeed."""

    def __init__(self, why: str, wait: float = 0.0) -> None:
        super().__init__(why)
        self.wait = wait


def downloaded(url: str, part: Path, headers: Mapping[str, str], tell: Callable[[str], None]) -> Path:
    """Fetch `url` into `part`; what an earlier attempt left there is used if the file is still the same."""
    if urlsplit(url).scheme not in ("http", "https"):
        raise Unreachable(f"{url} is neither http nor https")
    fruitless = 0
    for _ in range(_MOST_ATTEMPTS):
        before = _size(part)
        try:
            _attempt(url, part, headers, tell)
            _beside(part).unlink(missing_ok=True)
            return part
        except _Broken as error:
            fruitless = 0 if _size(part) > before else fruitless + 1
            if fruitless > len(PAUSES):
                raise Unreachable(f"{error} ({fruitless} attempts in a row)") from error
            tell(f"{url}: {error}; trying again")
            time.sleep(max(error.wait, PAUSES[fruitless - 1] if fruitless else 0.0))
    raise Unreachable(f"{url} broke off {_MOST_ATTEMPTS} times")


def _attempt(url: str, part: Path, headers: Mapping[str, str], tell: Callable[[str], None]) -> None:
    known = noted(_beside(part))
    # what tells whether the file is still the one that `part` is the beginning of
    mark = known.get("mark") if known.get("url") == url else None
    have = _size(part) if mark else 0
    request = urllib.request.Request(url, headers={"User-Agent": f"blade/{__version__}"})
    for name, value in headers.items():
        # not sent on to where a redirect leads: the token is the hub's business, not that of its storage
        request.add_unredirected_header(name, value)
    if have and mark:
        request.add_header("Range", f"bytes={have}-")
        request.add_header("If-Range", mark)
    try:
        with urllib.request.urlopen(request, timeout=_SILENCE_S) as answer:
            _received(answer, url, part, have, tell)
    except urllib.error.HTTPError as error:
        raise _refused(error, part) from error
    except urllib.error.URLError as error:
        raise _Broken(str(error.reason)) from error
    except (http.client.HTTPException, TimeoutError, ConnectionError) as error:
        raise _Broken(str(error) or type(error).__name__) from error


def _received(answer: Any, url: str, part: Path, have: int, tell: Callable[[str], None]) -> None:
    """Write the body, and see that all of it came: a connection that drops looks like an end."""
    if answer.status == 206 and not (answer.headers.get("Content-Range") or "").startswith(f"bytes {have}-"):
        part.unlink(missing_ok=True)
        raise _Broken("the server sent another part than the one asked for")
    if answer.status != 206:
        have = 0
    length = answer.headers.get("Content-Length")
    total = have + int(length) if length and length.isdigit() else None
    etag = answer.headers.get("ETag") or ""
    mark = etag if etag and not etag.startswith("W/") else answer.headers.get("Last-Modified")
    _beside(part).write_text(json.dumps({"url": url, "mark": mark}), encoding="utf-8")
    size = f" ({total / 1e6:.1f} MB)" if total else ""
    tell(f"fetching {url}{size}" + (f" from byte {have:,}" if have else ""))
    last = time.monotonic()
    with part.open("ab" if have else "wb") as stream:
        while piece := answer.read(_PIECE):
            stream.write(piece)
            have += len(piece)
            if time.monotonic() - last > 5:
                last = time.monotonic()
                tell(f"{have / 1e6:.1f}{f' of {total / 1e6:.1f}' if total else ''} MB of {part.stem}")
        stream.flush()
        os.fsync(stream.fileno())
    if total is not None and have != total:
        raise _Broken(f"broke off after {have:,} of {total:,} bytes")


def _refused(error: urllib.error.HTTPError, part: Path) -> Exception:
    what = f"the server answers {error.code}"
    if error.code in (401, 403):
        host = urlsplit(error.url).hostname or "the server"
        return Unreachable(
            f"{host} answers {error.code}: it wants a login. On a dataset hub, accept the dataset's terms on "
            "its page, then set HF_TOKEN to a token of yours"
        )
    if error.code == 416:  # what we have is not the beginning of what is there now
        part.unlink(missing_ok=True)
        return _Broken("the file is another one than before")
    if error.code in _PASSING:
        wait = error.headers.get("Retry-After") or ""
        return _Broken(what, min(float(wait) if wait.isdigit() else 0, _WAIT_MOST_S))
    return Unreachable(f"{what} {error.reason}")


def noted(path: Path) -> dict[str, Any]:
    """What a JSON file beside another says of it, empty where there is none that can be read."""
    with suppress(OSError, ValueError):
        known = json.loads(path.read_text(encoding="utf-8"))
        return known if isinstance(known, dict) else {}
    return {}


def _beside(part: Path) -> Path:
    return part.with_name(part.name + ".json")


def _size(part: Path) -> int:
    return part.stat().st_size if part.exists() else 0


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
        super().__init__("; ".join(f"{file.name}: {file.why}" for file in lacking))
        self.lacking = lacking


class Mismatch(Exception):
    """A file is not the one that was pinned."""


used: list[dict[str, Any]] = []  # what this process read, for the record beside the rows


def fetched(url: str, name: str, sha256: str | None = None) -> Path:
    """The file at `url`, kept as `name`: as given by hand, from the cache, or fetched. Another revision is another URL, so another file."""
    context = current()
    if Path(name).name != name or name.startswith("."):
        raise ValueError(f"{name!r} is no plain file name")
    file = _lacking(context, name, url, "")
    file = replace(file, sha256=sha256 or file.sha256)
    by_hand = _by_hand(context, name)
    if by_hand is not None:
        return _given(by_hand, file, context.partial)
    place = Path(file.place)
    place.parent.mkdir(parents=True, exist_ok=True)
    with (place.parent / ".lock").open("w") as lock:  # two that want the same file: the second waits and finds it
        fcntl.flock(lock, fcntl.LOCK_EX)
        source = place.with_name(name + ".source.json")
        if place.exists() and not context.again:
            if noted(source).get("sha256") in (None, digest(place)):  # of one that we did not fetch nothing is known
                return _taken(place, place, file, "cache")
            _tell(f"{place} changed since it was fetched; fetching it again")
        if context.offline:
            raise Missing([replace(file, why="not in the cache, and --offline forbids to fetch it")])
        try:
            mirror = os.environ.get("HF_ENDPOINT")  # as the hub's own library does it
            address = url.replace(_HUB, mirror.rstrip("/") + "/") if mirror and url.startswith(_HUB) else url
            token = os.environ.get("HF_TOKEN") or os.environ.get("HUGGING_FACE_HUB_TOKEN")  # for the hub alone
            headers = {"Authorization": f"Bearer {token}"} if token and url.startswith(_HUB) else {}
            part = downloaded(address, place.with_name(name + ".part"), headers, _tell)
        except Unreachable as error:
            raise Missing([replace(file, why=str(error))]) from error
        try:
            _taken(part, place, file, "fetched")
        except Mismatch:
            part.unlink()
            raise
        note = json.dumps({"url": url, "sha256": used[-1]["sha256"]}, indent=2) + "\n"
        source.write_text(note, encoding="utf-8")
        os.replace(part, place)
        return place


def lacking(context: Context, sources: Mapping[str, str]) -> list[Lacking]:
    """Which of a script's declared sources are neither given nor in the cache."""
    files = [_lacking(context, name, url, "not in the cache") for name, url in sources.items()]
    return [file for file in files if _by_hand(context, file.name) is None and not Path(file.place).exists()]


def _lacking(context: Context, name: str, url: str, why: str) -> Lacking:
    """A file with its pins, and where the cache keeps it; one put there by hand is taken."""
    pin, host = context.pins.get(name, {}), (urlsplit(url).hostname or "").replace(":", "_")
    place = Path(context.cache) / f"{host}-{hashlib.sha256(url.encode()).hexdigest()[:16]}" / name
    return Lacking(name, url, why, str(place), pin.get("sha256"), pin.get("size"))


def current() -> Context:
    text = os.environ.get(CONTEXT)
    if text is None:
        raise RuntimeError("prepare scripts are run by `blade eval prepare`, which says where raw files are kept")
    return Context(**json.loads(text))


def digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _by_hand(context: Context, name: str) -> Path | None:
    if context.given is None:
        return None
    path = Path(context.given)
    if path.is_dir():
        return path / name if (path / name).exists() else None
    return path if context.sole or path.name == name else None


def _taken(path: Path, place: Path, file: Lacking, how: str) -> Path:
    """A file that is there, checked against its pin and entered into the record; errors call it `place`."""
    size, sha256 = path.stat().st_size, digest(path)
    what, want, got = ("sha256", file.sha256, sha256) if file.sha256 else ("size", file.size, size)
    if want is not None and got != want:
        raise Mismatch(f"{place} has {what} {got}, but {what} {want} is pinned for {file.url}")
    is_pinned = True if file.sha256 else None  # None: nobody said which sha256 it should have
    entry = {"name": file.name, "url": file.url, "sha256": sha256, "size": size}
    used.append({**entry, "from": how, "pinned": is_pinned})
    return path


def _given(path: Path, file: Lacking, partial: bool) -> Path:
    """A file by hand; a part of the pinned one only where the user said so, and then recorded as such."""
    try:
        return _taken(path, path, file, "given")
    except Mismatch as error:
        if not partial:
            raise
        _tell(f"{error}; taken all the same")
        _taken(path, path, replace(file, sha256=None, size=None), "given")
        used[-1]["pinned"] = False
        return path


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
