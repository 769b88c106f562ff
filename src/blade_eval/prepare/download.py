"""Download one file over HTTP, going on where an earlier attempt broke off."""

from __future__ import annotations

import http.client
import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
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
    mark = _mark(part, url)
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
            _taken(answer, url, part, have, tell)
    except urllib.error.HTTPError as error:
        raise _refused(error, part) from error
    except urllib.error.URLError as error:
        raise _Broken(str(error.reason)) from error
    except (http.client.HTTPException, TimeoutError, ConnectionError) as error:
        raise _Broken(str(error) or type(error).__name__) from error


def _taken(answer: Any, url: str, part: Path, have: int, tell: Callable[[str], None]) -> None:
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
    told = time.monotonic()
    with part.open("ab" if have else "wb") as stream:
        while piece := answer.read(_PIECE):
            stream.write(piece)
            have += len(piece)
            if time.monotonic() - told > 5:
                told = time.monotonic()
                tell(f"{have / 1e6:.1f}{f' of {total / 1e6:.1f}' if total else ''} MB of {part.stem}")
        stream.flush()
        os.fsync(stream.fileno())
    if total is not None and have != total:
        raise _Broken(f"broke off after {have:,} of {total:,} bytes")


def _refused(error: urllib.error.HTTPError, part: Path) -> Exception:
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
        return _Broken(
            f"the server answers {error.code}", min(float(wait) if wait.isdigit() else 0, _WAIT_MOST_S)
        )
    return Unreachable(f"the server answers {error.code} {error.reason}")


def _mark(part: Path, url: str) -> str | None:
    """What tells whether the file is still the one that `part` is the beginning of."""
    try:
        known = json.loads(_beside(part).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return known.get("mark") if known.get("url") == url else None


def _beside(part: Path) -> Path:
    return part.with_name(part.name + ".json")


def _size(part: Path) -> int:
    return part.stat().st_size if part.exists() else 0
