"""Turn a report into one that may leave: every text in it, wherever it stands, cleaned the same way."""

from __future__ import annotations

import enum
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
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
    tally, nodes = Tally(), list(_nodes(report))
    tally.file = "report"
    cleaner = Cleaner(key, policy, tally.seen)
    cleaner.ids = frozenset(value for field, value in nodes if field == "task" and isinstance(value, str))
    # a value that one text tells whole, or by what stands beside it, another may cut short or tell alone
    scout = Cleaner(key, policy)
    scout.ids = cleaner.ids
    scout.task_ids.update(cleaner.ids)
    scout.kept.update(value.lower() for field, value in nodes if field in _THINGS and isinstance(value, str))
    for text in dict.fromkeys(value for _, value in nodes if _is_text(value)):
        scout.text(text)
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

    new = mapped(report, change)
    tally.renamed(scout.echoing(None).text)
    removed = tally.told()
    page = {**new.made_by, "redacted": _said(new, removed)}
    return msgspec.structs.replace(new, made_by=page), removed


class Redactor:
    """Take out of rows and of texts about them what looks private; what one gives away goes out of all that follow."""

    def __init__(self, key: Key, policy: Policy, ids: frozenset[str]) -> None:
        self.key, self.policy, self.ids = key, policy, ids
        self._known = self._fresh()

    def _fresh(self) -> Cleaner:
        new = Cleaner(self.key, self.policy)
        new.ids = self.ids
        new.task_ids.update(self.ids)
        return new

    def text(self, text: str) -> str:
        self._known.text(text)
        return self._fresh().text(self._known.echoing(None, at_end=True).text(text))

    def rows(self, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        lines = [json.dumps(dict(row), ensure_ascii=False, default=str) for row in rows]
        for line in lines:
            self._known.row(line)
        return list(map(self._row, lines))

    def _row(self, line: str) -> dict[str, Any]:
        row: dict[str, Any] = {}
        with suppress(ValueError):  # cleaned as text, because it is no JSON that all parsers read: nothing leaves
            row = json.loads(self._fresh().row(self._known.echoing(None, at_end=True).row(line)))
        return row

    def table(
        self, columns: Sequence[str], rows: Sequence[Sequence[Any]]
    ) -> tuple[tuple[str, ...], tuple[tuple[Any, ...], ...]]:
        """A table whose names and cells, nested ones as well, are clean; what is clean stays as it is."""
        names = [name if name not in columns[:n] else f"{name}_{n}" for n, name in enumerate(columns)]
        lines = [dict(zip(names, row, strict=True)) for row in rows]
        clean = [list(new.values()) or [None] * len(names) for new in self.rows(lines)]
        whole = [json.loads(json.dumps(list(row), default=str)) for row in rows]
        triples = (zip(*row, strict=True) for row in zip(rows, whole, clean, strict=True))
        cells = [tuple(value if same == new else new for value, same, new in row) for row in triples]
        return tuple(map(self.text, columns)), tuple(cells)


def _said(report: Report, removed: Removed) -> str:
    if not removed.total:
        return "nothing: no text of this report looks private"
    quotations = sum(value.is_redacted for _, value in _nodes(report) if isinstance(value, Evidence))
    kinds = ", ".join(f"{count} {kind}" for kind, count in removed.kinds.items())
    codes = "a placeholder such as [KIND:code] stands for each, the same code for the same value"
    marked = f"{quotations} quotations are marked as redacted and equal the rows outside their placeholders"
    return f"{removed.total} values ({kinds}): {codes}; {marked}"


def _nodes(value: Any, field: str = "") -> Iterator[tuple[str, Any]]:
    """A noun and everything in it, each with the field that it is."""
    yield field, value
    if isinstance(value, _PLAIN):
        return
    if isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            yield from _nodes(getattr(value, name), name)
    elif isinstance(value, _LISTS):
        for item in value:
            yield from _nodes(item)
    elif isinstance(value, Mapping):
        for item in (*value, *value.values()):
            yield from _nodes(item)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and not isinstance(value, enum.Enum) and len(value) >= _SHORTEST


def mapped(value: Any, change: Callable[[str, str], str], field: str = "") -> Any:
    """A noun with every text in it changed, by the field it stands in; what stays is the same object."""
    if isinstance(value, str):
        return change(value, field) if _is_text(value) else value
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, msgspec.Struct):
        old = {name: getattr(value, name) for name in value.__struct_fields__}
        new = {name: mapped(part, change, f"{field}.{name}" if field else name) for name, part in old.items()}
        changed = {name: part for name, part in new.items() if part is not old[name]}
        return msgspec.structs.replace(value, **changed) if changed else value
    if isinstance(value, _LISTS):
        items = [mapped(item, change, field) for item in value]
        same = all(new is old for new, old in zip(items, value, strict=True))
        return value if same else type(value)(items)
    if isinstance(value, Mapping):
        # a key may be private itself, and is told by what stands for it
        named = [(mapped(key, change, field), item) for key, item in value.items()]
        pairs = {key: mapped(item, change, f"{field}.{key}") for key, item in named}
        return value if pairs == value else pairs
    return value
