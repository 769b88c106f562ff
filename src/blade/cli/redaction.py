"""Hold what a command is about to write against the leak test: warn, or redact it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from blade.model import Report
    from blade.pipeline import Loaded
    from blade.sanitize import Policy, Removed


def guarded(report: Report, loaded: Sequence[Loaded], redact: bool, is_written: bool) -> Report:
    """The report as it may be shown: redacted if asked; else a warning if what is written looks private."""
    from blade import sanitize

    if redact:
        new, _ = sanitize.redacted(report, sanitize.own_key(), _policy(loaded))
        return new
    if is_written:
        _warn(sanitize.leaks_of(report, _policy(loaded)))
    return report


def cleaner(one: Loaded) -> Callable[[str, Sequence[Mapping[str, Any]]], str]:
    """Text about rows with placeholders for what looks private, in it or anywhere in those rows."""
    import json

    from blade import sanitize

    key, policy = sanitize.own_key(), _policy([one])
    ids = frozenset(one.run.rollouts.task_keys)

    def clean(text: str, rows: Sequence[Mapping[str, Any]]) -> str:
        scout = sanitize.Cleaner(key, policy)
        scout.ids = ids
        scout.task_ids.update(ids)
        for row in rows:  # a name that the rows tell as one is known again where the text only mentions it
            scout.row(json.dumps(dict(row), ensure_ascii=False))
        scout.text(text)
        second = sanitize.Cleaner(key, policy)
        second.ids = ids
        return second.text(scout.echoing(None, at_end=True).text(text))

    return clean


def _policy(loaded: Sequence[Loaded]) -> Policy:
    """What the blade.toml files around the runs say, taken together."""
    from blade import sanitize

    return sanitize.policy_near([Path(source.path) for one in loaded for source in one.sources], here=False)


def _warn(found: Removed) -> None:
    from blade.hostile import line

    if not found.total:
        return
    kinds = ", ".join(f"{count} {kind}" for kind, count in found.kinds.items())
    fields = list(dict.fromkeys(place.field for place in found.places))
    where = ", ".join(line(field, 60) for field in fields[:3]) + (", …" if len(fields) > 3 else "")
    values = "value that looks" if found.total == 1 else "values that look"
    told = f"the report holds {found.total} {values} private ({kinds}) in {where}"
    print(f"warning: {told}; --redact replaces them", file=sys.stderr)
