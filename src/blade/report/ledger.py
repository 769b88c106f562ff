"""Turn the sections of a page into its ledger: every claim they make, and which block makes which."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from blade.facts.known import Known
from blade.model import Claim
from blade.prose.slots import slots
from blade.report.claims.context import Context
from blade.report.claims.mentions import Entity, Spoken
from blade.report.claims.stated import Stated
from blade.report.sections import (
    Block,
    Bullets,
    Code,
    Commands,
    Figure,
    Heading,
    Line,
    Para,
    Quote,
    Section,
    Table,
    Tiles,
)

Anchors = tuple[tuple[str, ...], ...]  # by section and block: `c12-c15`, or nothing
FILES = frozenset(("Rollouts file", "Artifact", "Made by", "File"))  # first columns of tables about files
MAX_SHOWN = 120  # characters of a statement in its claim

_RANK = re.compile(r"\s*[A-Z]?\d{1,4}\.")  # what numbers a paragraph is no sentence
_STOP = re.compile(r"(?<=[.!?])\s+(?=[\"“(\[`A-Z0-9])")


def ledger(sections: tuple[Section, ...], known: Known) -> tuple[tuple[Claim, ...], Anchors]:
    """The claims of a page in the order of print, and the ids of those that each block makes."""
    stated, spoken = Stated(known), Spoken(known)
    claims: dict[str, list[Claim]] = {"c": [], "s": []}
    anchors: list[tuple[str, ...]] = []
    for section in sections:
        desks = {"c": Desk(section.title, spoken, known), "s": Desk(f"{section.title}: files", spoken, known)}
        of_blocks: list[str] = []
        for block in section.blocks:
            series = "s" if _is_of_files(block) else "c"
            found = claims[series]
            first = len(found) + 1
            for context in desks[series].contexts(block):
                made = enumerate(stated.claims(context), len(found) + 1)
                found += [Claim(f"{series}{at}", *one) for at, one in made]
            of_blocks.append(_anchor(series, first, len(found)))
        anchors.append(tuple(of_blocks))
    return (*claims["c"], *claims["s"]), tuple(anchors)


def _is_of_files(block: Block) -> bool:
    """Whether a block tells where files lay and what was typed: its claims have a series of their own.

    So the same rows make the same claims under the same ids, however many files they came in.
    """
    return isinstance(block, Table) and block.header[0] in FILES


def _anchor(series: str, first: int, last: int) -> str:
    if last < first:
        return ""
    return f"{series}{first}" if first == last else f"{series}{first}-{series}{last}"


class Desk:
    """The statements of a section, one block after the other, each with what stands around it."""

    def __init__(self, section: str, spoken: Spoken, known: Known) -> None:
        self._section, self._spoken = section, spoken
        self._all = known.runs
        self._heading = ""  # the last heading
        self._before = ""  # the last paragraph under it
        self._run: str | None = None  # that a heading names
        self._candidates = {one.candidate for one in known.report.comparisons}
        self._candidate: frozenset[Entity] = frozenset()  # that a heading or the section names
        self._follow(section)
        self._at = 0

    def contexts(self, block: Block) -> Iterator[Context]:
        """What a block states, sentence by sentence and cell by cell."""
        match block:
            case Heading():
                self._heading, self._before = plain(block.line), ""
                named = self._runs(self._spoken.of(self._heading))
                self._run = named[0] if named else self._run
                self._follow(self._heading)
                yield from self._sentences(self._heading)
            case Para():
                text = plain(block.line)
                yield from self._sentences(text)
                self._before = text
            case Bullets():
                for item in block.items:
                    yield from self._sentences(plain(item))
            case Tiles():
                rows = [(tile.label, tile.value, tile.detail) for tile in block.tiles]
                yield from self._cells(("Headline", "Value", "Rests on"), rows)
            case Table():
                yield from self._cells(block.header, [tuple(map(plain, row)) for row in block.rows])
            case Quote():
                label = plain(block.label)
                yield self._context(label, label, label_of=block.text)
                yield self._context(label, label, quote=block.text)
            case Commands():
                for command, shows in block.lines:
                    # What is typed names tasks as plain words; as code each is an id.
                    typed = [word for word in command.split()[2:] if self._spoken.is_place(word)]
                    words = " ".join(f"`{word}`" for word in typed if "`" not in word)
                    yield self._context(f"task {words}: {shows}", f"task {words}: {shows}")
            case Figure():
                yield from self._sentences(block.caption)

    def _sentences(self, text: str) -> Iterator[Context]:
        for start, end in sentences(text):
            sentence = text[start:end].strip()
            if sentence:
                yield self._context(sentence, sentence, text)

    def _cells(self, header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Iterator[Context]:
        for row in rows:
            lead = row[0] if row else ""
            whole = self._spoken.of(" | ".join(row)) | self._spoken.card(self._before, lead)
            first = self._spoken.cell(lead, header[0] if header else "")
            if any(
                kind == "task" for kind, _ in first
            ):  # it is about this task, whatever its other cells hold
                whole = frozenset(entity for entity in whole if entity[0] != "task")
            whole |= first
            for at, (name, cell) in enumerate(zip(header, row, strict=True)):
                others = " | ".join(other for column, other in enumerate(row) if column != at)
                shown = f"{lead} | {name}: {cell}" if at else f"{name}: {cell}"
                near = whole | self._spoken.of(name)
                yield self._context(cell, shown, near=near, lead=lead, row=others, column=name)

    def _context(
        self,
        text: str,
        shown: str,
        around: str = "",
        near: frozenset[Entity] | None = None,
        lead: str = "",
        row: str = "",
        column: str = "",
        quote: str = "",
        label_of: str = "",
    ) -> Context:
        self._at += 1
        near = self._spoken.of(text) if near is None else near
        far = (
            self._candidate
            | self._spoken.of(around)
            | self._spoken.of(self._heading)
            | self._spoken.of(self._before)
        )
        named = self._runs(near)
        if (
            self._run and self._run not in named
        ):  # under the heading of a run, that one is meant beside those named
            named = (self._run, *named)
        named = named or self._runs(far)
        shown = shown if len(shown) <= MAX_SHOWN else f"{shown[: MAX_SHOWN - 1]}…"
        return Context(
            self._section, self._at, text, text.lower(), shown, near, far, named or self._all,
            lead.lower().replace("`", ""), row.lower(), column.lower(),
            f"{self._section} {self._heading} {self._before} {around}".lower(), quote, label_of,
        )  # fmt: skip

    def _follow(self, heading: str) -> None:
        """Which candidate the comparisons below a heading are about."""
        found = {name for name in self._candidates if name in heading}
        if found:
            self._candidate = frozenset({("candidate", max(found, key=len))})

    def _runs(self, named: frozenset[Entity]) -> tuple[str, ...]:
        return tuple(run for run in self._all if ("run", run) in named)


def plain(line: Line) -> str:
    """A line as a reader sees it; what is taken from elsewhere stands between backticks."""
    return "".join(
        span
        if isinstance(span, str)
        else f"`{span.text.replace('`', '')}`"
        if isinstance(span, Code)
        else span.text
        for span in line
    )


def sentences(text: str) -> Iterator[tuple[int, int]]:
    """Where the sentences of a paragraph start and end; names and quotations are never cut."""
    closed = [(slot.start, slot.end) for slot in slots(text)]
    start = 0
    for hit in _STOP.finditer(text):
        if any(first < hit.start() < last for first, last in closed) or _RANK.fullmatch(
            text[start : hit.start()]
        ):
            continue
        yield start, hit.start()
        start = hit.end()
    yield start, len(text)
