"""Turn the headers of an answer into the seconds its server asks to wait."""

from __future__ import annotations

import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime


def asked_wait(headers: Mapping[str, str]) -> float | None:
    """The seconds of Retry-After, given as a number or as a date; None if it says nothing."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        told = headers.get(name)
        if told is None:
            continue
        try:
            found = float(told) / unit
        except ValueError:
            try:
                found = parsedate_to_datetime(told).timestamp() - time.time()
            except (ValueError, TypeError):
                continue
        if found == found and found < float("inf"):
            return max(0.0, found)
    return None
