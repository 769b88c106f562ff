"""Turn runs into what a report of them is held against: what they say, page by page, and their rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from blade.check.aligned import Reference
from blade.check.redacted import blinded
from blade.check.tabled import Tables
from blade.facts import facts
from blade.ingest import opened
from blade.model import Fact, Report, Trace
from blade.pipeline.load import Loaded
from blade.prose.document import Document, document


class Rows:
    """The rows of loaded runs, opened as they are asked for and kept while they are few."""

    MOST = 2_000

    def __init__(self, loaded: Sequence[Loaded]) -> None:
        self._runs = {one.name: one.run for one in loaded}
        self._traces: dict[tuple[str, int], Trace] = {}

    @property
    def runs(self) -> tuple[str, ...]:
        return tuple(self._runs)

    def keys(self, run: str) -> tuple[str, ...]:
        """The keys of the tasks of a run."""
        return tuple(self._runs[run].rollouts.task_keys)

    def names(self) -> frozenset[str]:
        """All that tasks go by: their keys and their names."""
        told = [one.rollouts for one in self._runs.values()]
        return frozenset(name for one in told for name in (*one.task_keys, *one.task_names) if name)

    def each(self, run: str) -> Iterator[Trace]:
        """Every rollout of a run, one after the other; none is kept."""
        for place in range(len(self._runs[run].rollouts.row_id)):
            yield opened.traced(self._runs[run], place)

    def at(self, run: str, task: str, repeat: int | None = None) -> list[Trace]:
        """The rollouts of a task, or of one of its repeats; a task goes by its key or its name."""
        return [self._trace(run, place) for place in opened.positions(self._runs[run], task, repeat)]

    def _trace(self, run: str, place: int) -> Trace:
        if len(self._traces) > self.MOST:
            self._traces.clear()
        if (run, place) not in self._traces:
            self._traces[run, place] = opened.traced(self._runs[run], place)
        return self._traces[run, place]


class World(msgspec.Struct, frozen=True, eq=False):
    """What the runs say: the report of them, its facts, its pages as documents, and their rows.

    A world is equal to itself alone, so that what was read of it can be kept by it.
    """

    report: Report
    facts: tuple[Fact, ...]
    pages: tuple[Document, ...]
    rows: Rows
    reference: Reference  # the sentences of the pages
    tables: Tables  # the tables of the pages
    is_comparison: bool = False
    is_blind: bool = False  # the codes of placeholders are unknown: their kinds alone count


def world(
    report: Report, loaded: Sequence[Loaded], is_comparison: bool = False, is_blind: bool = False
) -> World:
    """The world of runs that were diagnosed or compared."""
    from blade.report import comparison_pages, pages

    texts = [] if is_comparison else [pages(report)]
    texts += [comparison_pages(report)] if report.comparisons else []
    told = tuple(document(blinded(text) if is_blind else text) for text in texts)
    said, tables = Reference(told), Tables(told)
    return World(report, facts(report), told, Rows(loaded), said, tables, is_comparison, is_blind)
