"""Find the tasks that a report names, among those that its rollouts have."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from blade.prose.document import document

_TOKEN = re.compile(r"[^\s`'\"|,;()\[\]{}<>]+")
_NUMBERED = re.compile(r"`?#?\d+(?:/\d+)?`?")
_LIST = re.compile(
    r"\b(?:tasks?|rollouts?|instances?|problems?|questions?)\b\s*(?:ids?|index|key)?[\s:=#]*"
    rf"((?:{_NUMBERED.pattern}(?:\s*,\s*(?:and\s+)?|\s+and\s+|\s+or\s+)?)+)",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"`(\d+)/\d+`")
_PART = re.compile(r"[^\s`\[\]]+")  # of a cell that holds the key of a task and its name
_COLUMN = re.compile(r"^(task|rollout|instance|problem)([ _-]?(id|key|index|name))?$", re.IGNORECASE)


def cited(text: str, tasks: Collection[str]) -> set[str]:
    """The tasks of the rollouts that the text names; a bare number counts only where it is said to be one."""
    known = set(tasks)
    return {task for task in _candidates(text) if task in known}


def _candidates(text: str) -> Iterator[str]:
    for token in _TOKEN.findall(text):
        bare = token.strip(".:*_")
        for name in {token, bare, re.sub(r"/\d+$", "", bare)}:
            if len(name) > 2 and not name.isdigit():
                yield name
    for listed in _LIST.findall(text):
        yield from re.findall(r"\d+(?=/\d+)|(?<!/)\b\d+", listed)
    yield from _ADDRESS.findall(text)
    for table in document(text).tables:
        columns = [at for at, cell in enumerate(table.header) if _COLUMN.match(cell.strip("`* "))]
        for row in table.rows:
            for at in columns:
                if at < len(row.cells):
                    told = row.cells[at].replace("\\", "").strip("`* ")
                    yield re.sub(r"/\d+$", "", told)
                    yield from (re.sub(r"/\d+$", "", part) for part in _PART.findall(told)[:4])
