"""Turn loaded runs into what they were when a report was made: without judgements given since."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from blade.check.made import Made
from blade.model import Judgement
from blade.prose.document import document

if TYPE_CHECKING:
    from blade.pipeline.load import Loaded
    from blade.store.index import Watcher

_COLUMNS = ("Task", "By", "On")
MOST = 40  # rows of the table of judgements; of more the report does not tell all


def then(text: str, told: Made, loaded: list[Loaded], watcher: Watcher) -> list[Loaded]:
    """The runs with the judgements that the report knows; of reports that are not ours, with all."""
    if not told.command:
        return loaded
    found, since = [], 0
    known = _of_json(told) if told.data is not None else _of_page(text)
    for one in loaded:
        kept = tuple(each for each in one.judgements if known is None or _names(each) & known)
        since += len(one.judgements) - len(kept)
        artifacts = tuple(each for each in one.artifacts if kept or each.kind != "judgements")
        found.append(replace(one, judgements=kept, artifacts=artifacts))
    if since:
        watcher.notice(f"{since} judgement(s) were given since the report was made; they are left out here")
    return found


def _names(one: Judgement) -> set[tuple[str, ...]]:
    """What a report may know a judgement by: its id, or its place, author and day."""
    return {(one.id,), (f"{one.task}/{one.repeat}", one.by, one.at[:10])}


def _of_json(told: Made) -> set[tuple[str, ...]] | None:
    listed = told.data.get("judgements") if isinstance(told.data, dict) else None
    if not isinstance(listed, list):
        return set()
    return {(str(one.get("id")),) for one in listed if isinstance(one, dict)}


def _of_page(text: str) -> set[tuple[str, ...]] | None:
    """From the table of judgements; None where it may not list all of them."""
    found: set[tuple[str, ...]] = set()
    for table in document(text).tables:
        if not set(_COLUMNS) <= set(table.header):
            continue
        places = [table.header.index(name) for name in _COLUMNS]
        rows = [tuple(row.cells[at].strip("`") for at in places) for row in table.rows]
        if len(rows) >= MOST:
            return None
        found.update(rows)
    return found
