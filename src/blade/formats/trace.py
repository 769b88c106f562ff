"""Turn one rollout row into steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from blade.formats.items import steps_of
from blade.model import Step


def steps(row: Mapping[str, Any]) -> tuple[list[Step], str]:
    """The steps of a row and the field they were read from."""
    told, source = steps_of(row)
    return [Step(**one) for one in told], source
