"""Find whether a person has changed or reviewed a file that a command drafted, so that it is kept."""

from __future__ import annotations

import json
import re
from hashlib import sha256
from pathlib import Path
from typing import Any

from blade.package import files

SEAL = "draft"  # the key of a JSON draft under which its own digest stands
_SEALED = re.compile(r"\n<!-- drafted: (?P<digest>[0-9a-f]{12}) -->\s*\Z")


def sealed(text: str) -> str:
    """A page with a last line by which it is known again as a draft that nobody has touched."""
    return f"{text}\n<!-- drafted: {_digest(text)} -->\n"


def sealed_data(data: dict[str, Any]) -> dict[str, Any]:
    """A JSON object with its own digest."""
    return data | {SEAL: _digest(_plain(data))}


def why_kept(path: Path, made: str) -> str:
    """Why a file is not to be replaced by what was made just now; empty: it may be."""
    if not path.is_file():
        return ""
    try:
        text = files.text(path)
    except files.Broken:
        return "is no draft of ours"
    if text == made:
        return ""
    data = _object(text)
    if data is None:
        hit = _SEALED.search(text)
        is_draft = hit is not None and hit["digest"] == _digest(text[: hit.start()])
        return "" if is_draft else "differs from what would be written"
    if data.get("review_required") is False:
        return "was reviewed"
    is_draft = data.get(SEAL) == _digest(_plain(data))
    return "" if is_draft else "differs from what would be written"


def _object(text: str) -> dict[str, Any] | None:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None


def _plain(data: dict[str, Any]) -> str:
    return json.dumps({key: value for key, value in data.items() if key != SEAL}, sort_keys=True)


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]
