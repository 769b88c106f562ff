"""Write the queries behind the numbers of a page: measures and SQL over the tables, engine entries."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any

from blade.model import Judgement, Report

# Columns of `rollouts` that a field of the same name may not take: such a field is called field.NAME there.
RESERVED = frozenset(
    "run task repeat row task_name reward passed score masked outcome answer gold equals_gold last_tool "
    "last_kind turns calls steps input_tokens output_tokens reasoning_tokens total_tokens seconds cost_usd "
    "stop_reason truncated errored timed_out model agent file line".split()
)

LONGEST = 300  # characters of the keys by which an entry is named; beyond, its place is

# List of a report -> the attributes that tell its entries apart.
KEYS: dict[str, tuple[str, ...]] = {
    "runs": ("name",),
    "measures": ("run", "name", "k", "slice"),
    "tasks": ("run", "task"),
    "health": ("run", "flag", "task"),
    "funnels": ("run",),
    "slices": ("run", "field", "value"),
    "compared": ("run", "file", "name"),
    "losses": ("run", "cause", "mode"),
    "trust": ("run", "level", "text"),
    "groups": ("run", "id"),
    "unexplained": ("run",),
    "attributions": ("run", "task"),
    "run_causes": ("run", "cause", "mode"),
    "recommendations": ("run", "rank"),
    "agreements": ("run", "first", "second"),
}


def quoted(text: str) -> str:
    """A text as SQL writes it."""
    return "'" + text.replace("'", "''") + "'"


def column(path: str) -> str:
    """A field of the rows as a column of `rollouts`."""
    name = f"field.{path}" if path.lower() in RESERVED else path
    return '"' + name.replace('"', '""') + '"'


def where(run: str, *also: str) -> str:
    """`where run = 'a' and outcome = 'failed'`."""
    return "where " + " and ".join((f"run = {quoted(run)}", *also))


def measure(name: str, run: str, *also: str, k: int | None = None, part: str = "") -> str:
    """`pass_at_k(4).low where run = 'a'`."""
    return f"{name}{f'({k})' if k is not None else ''}{f'.{part}' if part else ''} {where(run, *also)}"


def select(what: str, table: str, run: str, *also: str) -> str:
    """`select count(*) from tasks where run = 'a'`."""
    return f"select {what} from {table} {where(run, *also)}"


def entry(name: str, /, **keys: Any) -> str:
    """`engine.losses(run='a', cause='KG')`."""
    said = ", ".join(f"{key}={plain(value)!r}" for key, value in keys.items())
    return f"engine.{name}({said})" if said else f"engine.{name}"


def chosen(query: str, entries: Sequence[Any], entry: Any, *keys: str) -> str:
    """The query that selects one entry of the list that `query` gives: by as few keys as tell it apart.

    By its place only among entries that have the same keys, or where a name is too long to be read.
    """
    alike, stated = list(entries), dict[str, Any]()
    for key in keys:
        stated[key] = plain(getattr(entry, key))
        alike = [other for other in alike if plain(getattr(other, key)) == stated[key]]
        if len(alike) == 1:
            break
    said = ", ".join(f"{key}={value!r}" for key, value in stated.items())
    if len(said) > LONGEST:
        alike, said = list(entries), ""
    selected = f"{query}({said})" if said else query
    if said and len(alike) == 1:
        return selected
    return f"{selected}[{next(place for place, other in enumerate(alike) if other is entry)}]"


def plain(value: Any) -> Any:
    """A value as a query states it: the value of an enum."""
    return value.value if isinstance(value, Enum) else value


class Entries:
    """Names the entries of a report's lists: by their keys, and by place where several share them."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._indexed: dict[str, dict[tuple[Any, ...], list[Any]]] = {}

    def query(self, name: str, noun: Any) -> str:
        """The query that selects this entry and no other."""
        keys = {key: plain(getattr(noun, key)) for key in KEYS[name]}
        stated = {key: value for key, value in keys.items() if value is not None}
        alike = self._alike(name, noun, stated)
        if len(alike) > 1 and len(stated) < len(keys):
            stated, alike = keys, self._alike(name, noun, keys)
        if len(alike) < 2:
            return entry(name, **stated)
        place = next((place for place, other in enumerate(alike) if other is noun or other == noun), 0)
        return f"{entry(name, **stated)}[{place}]"

    def judgement(self, run: str, noun: Judgement) -> str:
        """The query that selects a judgement: they stand by run, in the order in which they were given."""
        given = self._report.judgements.get(run, ())
        place = next((place for place, other in enumerate(given) if other is noun), 0)
        return f"engine.judgements[{run!r}][{place}]"

    def _alike(self, name: str, noun: Any, stated: dict[str, Any]) -> list[Any]:
        group = self._groups(name).get(self._group(name, noun), [])
        return [
            other
            for other in group
            if all(plain(getattr(other, key)) == value for key, value in stated.items())
        ]

    def _groups(self, name: str) -> dict[tuple[Any, ...], list[Any]]:
        if name not in self._indexed:
            groups: dict[tuple[Any, ...], list[Any]] = {}
            for noun in getattr(self._report, name):
                groups.setdefault(self._group(name, noun), []).append(noun)
            self._indexed[name] = groups
        return self._indexed[name]

    def _group(self, name: str, noun: Any) -> tuple[Any, ...]:
        """What an entry is looked up by first: no list is searched from end to end for each number."""
        return tuple(plain(getattr(noun, key)) for key in KEYS[name][:2])
