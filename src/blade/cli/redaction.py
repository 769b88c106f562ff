"""Hold what a command is about to write against the leak test: warn, or redact it."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from blade.model import Report
    from blade.pipeline import Loaded, Session
    from blade.pipeline.asking import Clean
    from blade.sanitize import Policy, Removed


def guarded(report: Report, loaded: Sequence[Loaded], redact: bool, is_written: bool) -> Report:
    """The report as it may be shown: redacted if asked; else a warning if what is written looks private."""
    from blade import sanitize

    if redact:
        new, _ = sanitize.redacted(report, sanitize.own_key(), policy_of(loaded))
        return new
    if is_written:
        _warn(sanitize.leaks_of(report, policy_of(loaded)))
    return report


def cleaner(session: Session, one: Loaded) -> Clean:
    """What may be sent of a run: placeholders for what looks private, in a text or anywhere in its rows."""
    import json

    from blade import sanitize
    from blade.pipeline.asking import Clean

    key, policy = sanitize.own_key(), policy_of([one])
    ids = frozenset(one.run.rollouts.task_keys)

    def made() -> sanitize.Cleaner:
        new = sanitize.Cleaner(key, policy)
        new.ids = ids
        new.task_ids.update(ids)
        return new

    known = made()  # what rows told as private is known again where a text only mentions it

    def rows(told: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        lines = [json.dumps(dict(row), ensure_ascii=False) for row in told]
        for line in lines:
            known.row(line)
        found = []
        for line in lines:
            clean = made().row(known.echoing(None, at_end=True).row(line))
            try:
                found.append(json.loads(clean))
            except ValueError:  # cleaned as text, because it is no JSON that all parsers read: nothing leaves
                found.append({})
        return found

    def text(told: str) -> str:
        known.text(told)
        return made().text(known.echoing(None, at_end=True).text(told))

    return Clean(sanitize.redacted(session.report, key, policy)[0], rows, text)


def policy_of(loaded: Sequence[Loaded]) -> Policy:
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
