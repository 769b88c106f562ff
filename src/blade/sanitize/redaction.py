"""Turn a report into one that may leave: every text in it, wherever it stands, cleaned the same way."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from blade.model import Evidence, Report
from blade.sanitize.cleaner import Cleaner
from blade.sanitize.files import Removed, Tally
from blade.sanitize.policy import Key, Policy

_THINGS = ("tool", "field", "model", "actionable")  # what they name is no person
_SHORTEST = 4  # letters of a text that is looked at
_LISTS = (tuple, list)
_PLAIN = (str, int, float, type(None))  # what holds nothing, told apart before the slow test for a mapping


def redacted(report: Report, key: Key, policy: Policy | None = None) -> tuple[Report, Removed]:
    """A report in which placeholders stand for what is private, and what they stand for, by kind.

    The report says so itself, where it says how it was made.
    """
    tally = Tally()
    tally.file = "report"
    cleaner = Cleaner(key, policy, tally.seen)
    cleaner.ids = frozenset(_told(report, ("task",)))
    # a value that one text tells whole, or by what stands beside it, another may cut short or tell alone
    scout = Cleaner(key, policy)
    scout.ids = cleaner.ids
    scout.task_ids.update(cleaner.ids)
    scout.kept.update(told.lower() for told in _told(report, _THINGS))
    for told in dict.fromkeys(_texts(report)):
        scout.text(told)
    echoing = scout.echoing(tally.seen, at_end=True)
    clean: set[str] = set()  # a report says much again: what is clean once is clean wherever it stands

    def change(text: str, field: str) -> str:
        if text in clean:
            return text
        cleaner.field = echoing.field = field
        new = cleaner.text(echoing.text(text))
        if new == text:
            clean.add(text)
        return new

    new = _mapped(report, change)
    tally.renamed(scout.echoing(None).text)
    removed = tally.told()
    said = {**new.made_by, "redacted": _said(new, removed)}
    return msgspec.structs.replace(new, made_by=said), removed


def leaks_of(report: Report, policy: Policy | None = None) -> Removed:
    """What of a report looks private, by kind and place; nothing is changed."""
    return redacted(report, Key(b"to count, nothing is kept"), policy)[1]


def _said(report: Report, removed: Removed) -> str:
    if not removed.total:
        return "nothing: no text of this report looks private"
    kinds = ", ".join(f"{count} {kind}" for kind, count in removed.kinds.items())
    return (
        f"{removed.total} values ({kinds}): a placeholder such as [KIND:code] stands for each, the same "
        f"code for the "
        f"same value; {_count(report)} quotations are marked as redacted and equal the rows outside "
        f"their placeholders"
    )


def _count(value: Any) -> int:
    """Quotations of evidence that hold a placeholder."""
    if isinstance(value, Evidence):
        return value.is_redacted
    if isinstance(value, _PLAIN):
        return 0
    if isinstance(value, msgspec.Struct):
        return sum(_count(getattr(value, name)) for name in value.__struct_fields__)
    if isinstance(value, _LISTS):
        return sum(map(_count, value))
    return sum(map(_count, value.values())) if isinstance(value, Mapping) else 0


def _told(value: Any, fields: tuple[str, ...]) -> Iterator[str]:
    """What a noun tells in these fields, at any depth: what stays as it is in the rows."""
    if isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            one = getattr(value, name)
            yield from [one] if name in fields and isinstance(one, str) else _told(one, fields)
    elif isinstance(value, _LISTS):
        for one in value:
            yield from _told(one, fields)
    elif not isinstance(value, _PLAIN) and isinstance(value, Mapping):
        for one in value.values():
            yield from _told(one, fields)


def _texts(value: Any) -> Iterator[str]:
    """Every text of a noun that is long enough to hold anything private."""
    if isinstance(value, str):
        if not (isinstance(value, enum.Enum) or len(value) < _SHORTEST):
            yield value
    elif isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            yield from _texts(getattr(value, name))
    elif isinstance(value, _LISTS):
        for one in value:
            yield from _texts(one)
    elif not isinstance(value, _PLAIN) and isinstance(value, Mapping):
        for one in (*value, *value.values()):
            yield from _texts(one)


def _mapped(value: Any, change: Callable[[str, str], str], field: str = "") -> Any:
    """A noun with every text in it changed, by the field it stands in; what stays is the same object."""
    if isinstance(value, str):
        return value if isinstance(value, enum.Enum) or len(value) < _SHORTEST else change(value, field)
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, msgspec.Struct):
        changed = {}
        for name in value.__struct_fields__:
            old = getattr(value, name)
            new = _mapped(old, change, f"{field}.{name}" if field else name)
            if new is not old:
                changed[name] = new
        return msgspec.structs.replace(value, **changed) if changed else value
    if isinstance(value, _LISTS):
        items = [_mapped(item, change, field) for item in value]
        same = all(new is old for new, old in zip(items, value, strict=True))
        return value if same else type(value)(items)
    if isinstance(value, Mapping):
        # a key may be private itself, and is told by what stands for it
        named = [(_mapped(key, change, field), item) for key, item in value.items()]
        pairs = {key: _mapped(item, change, f"{field}.{key}") for key, item in named}
        return value if pairs == value else pairs
    return value
