"""Turn a report into a page in which faults can be planted: its lines, its tasks, its runs, its rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any

import msgspec

from blade.check.world import World
from blade.ingest import opened
from blade.pipeline.load import Loaded
from mutation.lines import HEADER, PROSE, ROW, Line, lines, masked, sentences

MARKDOWN, JSON = "md", "json"
NUMBER = re.compile(
    r"(?<![\w.@^#/\\-])(?P<sign>[+−-]?)(?P<digits>\d{1,3}(?:,\d{3})+|\d+)(?P<decimals>\.\d+)?"
    r"(?![\w@^/]|[.-]\d|,\d{3})"
)
# What the columns of these names hold is said by rule, whatever the rows say.
EXPLAINING = {"What it is", "Method", "What it means", "Interval by", "Why", "Path", "File", "What"}


class Fault(msgspec.Struct, frozen=True):
    """One false statement, and where it stands."""

    kind: str
    place: str  # table, id, quote, prose, json
    section: str
    edits: tuple[tuple[int, str], ...]  # lines, from 1, and what stands there instead; may be several lines
    lines: tuple[int, ...]  # a contradiction on one of these, in the changed text, is a catch
    before: str
    after: str


class Page:
    """A report, stripped, with what faults need to know of its runs."""

    def __init__(
        self, dataset: str, name: str, form: str, text: str, world: World, loaded: Sequence[Loaded]
    ) -> None:
        self.dataset, self.name, self.form, self.text, self.world = dataset, name, form, text, world
        self.loaded = loaded
        self._said: dict[tuple[str, int], str] = {}
        self.fixed: Callable[[str, int], bool] = lambda sentence, at: False

    @cached_property
    def lines(self) -> list[Line]:
        return lines(self.text) if self.form == MARKDOWN else []

    @cached_property
    def tables(self) -> list[list[Line]]:
        """The rows of each table."""
        found: dict[int, list[Line]] = {}
        for line in self.lines:
            if line.role == ROW:
                found.setdefault(line.table, []).append(line)
        return list(found.values())

    @cached_property
    def runs(self) -> tuple[str, ...]:
        return tuple(run.name for run in self.world.report.runs)

    @cached_property
    def tasks(self) -> dict[str, str | None]:
        """Task keys of all runs, with their names."""
        return {one.task: one.task_name for one in self.world.report.tasks}

    @cached_property
    def outcomes(self) -> dict[tuple[str, int], set[str]]:
        """What each rollout came to, over all runs."""
        found: dict[tuple[str, int], set[str]] = {}
        for one in self.world.report.tasks:
            for repeat in one.repeats:
                found.setdefault((one.task, repeat.repeat), set()).add(str(repeat.outcome))
        return found

    @cached_property
    def buckets(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for one in self.world.report.tasks:
            found.setdefault(one.task, set()).add(str(one.bucket))
        return found

    def said(self, task: str, repeat: int) -> str:
        """All text of the rows of a rollout, of all runs, without spaces and escapes."""
        if (task, repeat) not in self._said:
            found: list[str] = []
            for one in self.loaded:
                for place in opened.positions(one.run, task, repeat):
                    _texts(opened.row(one.run, place), found)
            self._said[task, repeat] = flat("\n".join(found))
        return self._said[task, repeat]

    def changed(self, faults: Iterable[Fault]) -> str:
        """The text with faults in it."""
        kept = self.text.split("\n")
        for fault in faults:
            for number, text in fault.edits:
                kept[number - 1] = text
        return "\n".join(kept)


def flat(text: str) -> str:
    """Text such that spaces and escapes make no difference."""
    return "".join(text.replace("\\", "").split())


def _texts(value: Any, found: list[str]) -> None:
    if isinstance(value, str | int | float):
        found.append(str(value))
    elif isinstance(value, dict):
        for key, inner in value.items():
            found.append(str(key))
            _texts(inner, found)
    elif isinstance(value, list):
        for inner in value:
            _texts(inner, found)


def skeleton(sentence: str) -> str:
    """A sentence without what may vary: numbers, code, quotations, names of runs behind them."""
    return re.sub(r"\x00+", "$", NUMBER.sub("#", masked(sentence)))


def fixed_numbers(pages: Iterable[Page]) -> Callable[[str, int], bool]:
    """Which numbers of which sentences are the same in every report, so that they state nothing of a run.

    A sentence counts as fixed text only where three data sets show it; a number that all of them give alike
    belongs to the explanation (`the 95% interval`), any other is a claim.
    """
    seen: dict[str, dict[str, set[tuple[str, ...]]]] = {}
    for page in pages:
        for line in page.lines:
            if line.role not in (PROSE, HEADER):
                continue
            for start, end in sentences(line.text):
                sentence = line.text[start:end]
                values = tuple(hit[0] for hit in NUMBER.finditer(masked(sentence)))
                seen.setdefault(skeleton(sentence), {}).setdefault(page.dataset, set()).add(values)
    alike: dict[str, list[bool]] = {}
    for form, by_dataset in seen.items():
        if len(by_dataset) >= 3:
            told = set().union(*by_dataset.values())
            alike[form] = [len(set(column)) == 1 for column in zip(*told, strict=True)]

    def fixed(sentence: str, at: int) -> bool:
        known = alike.get(skeleton(sentence))
        return known is not None and known[at]

    return fixed
