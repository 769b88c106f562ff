"""Turn values into JSON with every number spelled as the incumbent's writer spells it."""

from __future__ import annotations

import re
from typing import Any

import msgspec

_encode = msgspec.json.Encoder().encode
# From 1e16 on our encoder writes 1e16 and the incumbent's 1e+16; below, both write the same.
_large = re.compile(rb"e(?<=[0-9]e)[0-9]").search
_large_or_text = re.compile(rb'"(?:[^"\\]+|\\.)*+"|(?<=[0-9])e(?=[0-9])')


def encoded(value: Any) -> bytes:
    """Compact JSON."""
    return spelled(_encode(value))


def spelled(data: bytes) -> bytes:
    """The same JSON with a sign in every exponent; what stands within texts is left alone."""
    if _large(data) is None:  # almost always, and much sooner found than texts are stepped over
        return data
    return _large_or_text.sub(lambda found: b"e+" if found[0] == b"e" else found[0], data)
