"""Answer the queries of a package: about the run of a report, and about others where it names them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from blade import pipeline
from blade.check import World, checked, world_of
from blade.errors import BladeError
from blade.formats.find import stem
from blade.model.conclusions import CONTRADICTED, SUPPORTED, UNVERIFIABLE, Finding
from blade.package.layout import compiled, prefix_of, words_of
from blade.query.measures import Measure, measure_of
from blade.query.number_readings import agrees, last_figure
from blade.query.query_ground import Table, value
from blade.query.query_process import Answers
from blade.tables.index import Watcher

MAX_ROWS = 400  # rollouts that a report could list one by one


class Worlds:
    """The runs of a package as a report sees them.

    A query that names no run is about the report's own; one that names another is asked of all of them.
    Queries come with reports and anchors of strangers, so each is run in a process of its own, once.
    """

    def __init__(
        self, home: World, everything: World | None = None, called: Mapping[str, str] | None = None
    ) -> None:
        self.home, self._everything, self._called = home, everything, called or {}
        own = set(home.rows.runs)
        others = everything.rows.runs if everything is not None else ()
        self.others = tuple(run for run in others if run not in own)
        self._answers: dict[str, Answers] = {}
        for world in filter(None, (home, everything)):  # many texts are checked against the same rows
            world.select = cache(world.select)  # type: ignore[method-assign]
        self._slices = cache(lambda: self.own("select lower(\"column\") from fields where role = 'task-level'"))
        self.checked = lru_cache(maxsize=8)(self._checked)

    def is_of_others(self, query: str) -> bool:
        """Whether a query needs the rows of other runs."""
        is_named = any(f"'{run}'" in query for run in self.others)
        return is_named or (bool(self.others) and re.search(r"\bby\s+run\b", query, re.I) is not None)

    def is_aggregate(self, query: str) -> bool:
        """Whether a query gives a total of all rollouts or of a slice of tasks: any table of results does."""
        if compiled("of_tasks").search(query):
            return False
        try:
            measure = measure_of(query)
        except BladeError:
            return True
        if measure is None or not measure.where or measure.name in ("mean", "sum"):
            return True
        return columns_in(measure.where) <= {name for (name,) in self._slices()}

    def own(self, query: str) -> list[tuple[Any, ...]]:
        """The rows that a SELECT of ours gives; no stranger wrote it, so it needs no process of its own."""
        answer = self.home.ground.ask(query)
        return list(answer.rows) if isinstance(answer, Table) else []

    def prefetch(self, queries: Iterable[str], counted: Iterable[str] = ()) -> None:
        """Answer several queries at once, and list the rollouts that others count: a process costs more than a query."""
        wanted = list(queries)
        for query in counted:
            with suppress(BladeError):
                wanted += _rollouts_query(measure_of(query)) if not self.is_of_others(query) else ()
        new = [query for query in dict.fromkeys(wanted) if query not in self._answers]
        for world in (self.home, self._everything):
            texts = [query for query in new if self.is_of_others(query) is (world is not self.home)]
            if world is not None and texts:
                self._answers |= dict.fromkeys(texts, Answers(world.ground, texts))

    def value(self, query: str) -> Any:
        """The one value that a query gives; UsageError where it cannot be answered."""
        self.prefetch([query])
        return value(query, self._answers[query])

    def rollouts(self, measure: Measure | None) -> frozenset[str] | None:
        """The rollouts of a measure's condition; None if there is none, or they are too many to list."""
        for query in _rollouts_query(measure):
            self.prefetch([query])
            with suppress(BladeError):
                table = self._answers[query].ask(query)
                if isinstance(table, Table) and len(table.rows) <= MAX_ROWS:
                    return frozenset(f"{task}/{repeat}" for task, repeat in table.rows)
        return None

    def _checked(self, text: str) -> tuple[Finding, ...]:
        """What `blade check` finds; citations that name other runs are verified on all of them."""
        for file, run in self._called.items():  # outside of the package a run is called as its file
            text = re.sub(rf"(?<![\w/.-]){re.escape(file)}(?![\w-]|\.\w)", run, text)
        findings = checked(text, self.home)
        self.prefetch(each.query or "" for each in findings if self._is_pending(each))
        return tuple(self._verified(each) if self._is_pending(each) else each for each in findings)

    def _is_pending(self, finding: Finding) -> bool:
        is_open = finding.kind == "citation" and finding.verdict != SUPPORTED
        return is_open and self.is_of_others(finding.query or "")

    def _verified(self, finding: Finding) -> Finding:
        figure = last_figure(finding.printed)
        try:
            answer = self.value(finding.query or "")
        except BladeError as error:
            return replace(finding, verdict=UNVERIFIABLE, why=error.message)
        holds = figure is not None and agrees(figure, answer)
        why = "" if holds else "the query gives another value"
        return replace(finding, verdict=SUPPORTED if holds else CONTRADICTED, expected=str(answer), why=why)


def _rollouts_query(measure: Measure | None) -> list[str]:
    if measure is None or not measure.where or measure.by:
        return []
    return [f"select task, repeat from rollouts where ({measure.where})"]


def worlds_of(
    own: Sequence[Path], beside: Sequence[Path], watcher: Watcher, threshold: float | None = None
) -> Worlds:
    """The runs that a report is about, and those that lie beside them in the package."""
    home = pipeline.load([f"{prefix_of(path)}={path}" for path in own], watcher)
    rest = pipeline.load([f"{prefix_of(path)}={path}" for path in beside], watcher) if beside else []
    everything = world_of([*home, *rest], threshold, watcher) if rest else None
    called = {stem(path): prefix_of(path) for path in (*own, *beside) if stem(path) != prefix_of(path)}
    return Worlds(world_of(home, threshold, watcher), everything, called)


# -- what a query names ------------------------------------------------------------------------------

_FUNCTION = compiled("function")
_LITERAL = re.compile(r"'((?:[^']|'')*)'")
_TOOL = compiled("tools_in_query")
_TABLE = re.compile(r"\b(?:from|join)\s+\w+(?:\s+(?:as\s+)?[a-z]\b)?", re.IGNORECASE)
_RESERVED = words_of("reserved")


def columns_in(condition: str) -> frozenset[str]:
    """The fields that a condition is about, in lower case, without the outcome and the identity of rows."""
    rest = _TABLE.sub(" ", _LITERAL.sub(" ", _FUNCTION.sub(" ", condition)))
    names = ((hit["quoted"] or hit["plain"]).lower() for hit in compiled("column").finditer(rest))
    return frozenset(name for name in names if name not in _RESERVED)


def names_in(query: str) -> frozenset[str]:
    """The tools and values that a query names; the fields of one that names no value."""
    bare = compiled("own_columns").sub(" ", query)
    tools = [name for hit in _TOOL.finditer(bare) for name in _LITERAL.findall(hit["names"])]
    patterns = [hit["text"] for hit in _FUNCTION.finditer(bare)]
    values = [part for text in patterns for part in ([text] if "(" in text else text.split("|"))]
    values += _LITERAL.findall(_FUNCTION.sub(" ", bare))
    names = _plain(tools, 1) | _plain(values, 3)  # a tool may be called `ls`
    return names or _plain((name.rpartition(".")[2] for name in columns_in(bare)), 3)


def _plain(texts: Iterable[str], least: int) -> frozenset[str]:
    """Texts without the signs of patterns; those with fewer letters in a row than `least` are left out."""
    bare = (re.sub(r"\\[a-z]|[\\%^$\[\](){}|*+?\"]+", " ", text).replace("''", "'") for text in texts)
    plain = (" ".join(text.lower().split()) for text in bare)
    letters = re.compile(rf"[^\W\d_]{{{least}}}")
    return frozenset(text for text in plain if letters.search(text) and text not in _RESERVED)
