"""Turn the sentences inside a JSON report into a document: each on its line, under the keys above it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec.structs import replace

from blade.check.json_lines import Lines
from blade.model import Assertion
from blade.prose.document import Document, Quotation, Statement, Table, document

WORDS = 5  # from which a string is prose, not a value
_DEEPEST = 60


def prose(data: Any, text: str) -> tuple[Document, dict[tuple[int, str], str]]:
    """The document of all strings that are prose, and the path of each statement of it."""
    lines = Lines(text)
    statements: list[Statement] = []
    tables: list[Table] = []
    quotations: list[Quotation] = []
    asides: list[Quotation] = []
    paths: dict[tuple[int, str], str] = {}
    for path, keys, value in _strings(data, "", ()):
        told, line = document(value), lines.of(path)
        for one in told.statements:
            statements.append(replace(one, line=line, last_line=line, headings=(*keys, *one.headings)))
            paths.setdefault((line, one.text), path)
        for table in told.tables:
            rows = tuple(replace(row, line=line) for row in table.rows)
            tables.append(replace(table, rows=rows, line=line, headings=(*keys, *table.headings)))
            paths |= {(line, " | ".join(row.cells)): path for row in rows}
        for found, kept in ((told.quotations, quotations), (told.asides, asides)):
            kept += [
                replace(one, line=line, last_line=line, headings=(*keys, *one.headings)) for one in found
            ]
    return Document("", tuple(statements), tuple(tables), tuple(quotations), tuple(asides)), paths


def _strings(value: Any, path: str, keys: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...], str]]:
    if isinstance(value, str):
        if len(value.split(maxsplit=WORDS)) >= WORDS:
            yield path, keys, value
    elif len(keys) < _DEEPEST and isinstance(value, dict):
        for key, one in value.items():
            yield from _strings(one, f"{path}.{key}" if path else key, (*keys, key))
    elif len(keys) < _DEEPEST and isinstance(value, list):
        for at, one in enumerate(value):
            yield from _strings(one, f"{path}[{at}]", keys)


def at_paths(found: Iterable[Assertion], paths: dict[tuple[int, str], str]) -> list[Assertion]:
    """Assertions whose text begins with where in the file it stands."""
    told = []
    for one in found:
        path = paths.get((one.line, one.text))
        start = one.start + len(path) + 2 if path is not None and one.start >= 0 else one.start
        told.append(one if path is None else replace(one, text=f"{path}: {one.text}", start=start))
    return told
