"""Turn any person's prose and tables into assertions, held against what the runs say."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache, partial

from msgspec.structs import replace

from blade.check.reader.bounds import Bounds
from blade.check.reader.buckets import Parts
from blade.check.reader.direction import Directions
from blade.check.reader.efforts import Efforts
from blade.check.reader.ground import Ground
from blade.check.reader.grounded import Grounded
from blade.check.reader.json_values import read_json
from blade.check.reader.lines import Line
from blade.check.reader.mentions import Reader
from blade.check.reader.modes import Modes
from blade.check.reader.moved import Moved
from blade.check.reader.narrowed import narrowed
from blade.check.reader.ordering import Orders
from blade.check.reader.pairs import Pairs
from blade.check.reader.portions import Portions
from blade.check.reader.prose import Prose
from blade.check.reader.rows import Rows
from blade.check.reader.scope import Around
from blade.check.reader.scoped import Scoped
from blade.check.reader.setup import Setup
from blade.check.reader.slices import Slices
from blade.check.reader.steps import Steps
from blade.check.reader.tables import Tables
from blade.check.reader.tangled import placed_here, untangled, weakest
from blade.check.reader.tries import Tries
from blade.check.reader.verdicts import Place, cited
from blade.check.reader.versus import Versus
from blade.check.world import World
from blade.model import SUPPORTED, UNVERIFIABLE, Assertion
from blade.prose.document import Document, Statement

__all__ = ["read", "read_json"]

LONGEST = 3_000  # characters of a sentence that is read
_SHORT = re.compile(
    r"(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|resp|no|nos|fig|eq|sec|ca|incl|\w))\.$", re.IGNORECASE
)


def read(document: Document, world: World) -> list[Assertion]:
    """Every claim that the prose and the tables of a report make, and whether the runs bear it out."""
    told = _readers(world)
    found: list[Assertion] = []
    for one in document.statements:
        if len(one.text) <= LONGEST:
            anywhere = replace(one, line=0, last_line=0)
            for offset, piece in _pieces(one.text):
                found += _shifted(told.read(anywhere, piece, document.title), one, offset)
    tables, rows = told.tables, told.rows
    for table in document.tables:
        cells = list(tables.read(table, document.title))
        sure = {(each.line, each.start) for each in cells if each.verdict != UNVERIFIABLE}
        found += cells
        found += [each for each in rows.read(table) if (each.line, each.start) not in sure]
    return found


class _Readers:
    """The readers of one world, with what they read last: reports say much again, in the same words."""

    MOST = 4_000  # sentences

    def __init__(self, world: World) -> None:
        reader, scoped = Reader(Ground(world)), Scoped(world.facts)
        self.tables, self.rows = Tables(reader), Rows(reader)
        self.read = lru_cache(maxsize=self.MOST)(partial(_read, reader, scoped))


@lru_cache(maxsize=1)
def _readers(world: World) -> _Readers:
    return _Readers(world)


def _read(reader: Reader, scoped: Scoped, one: Statement, text: str, title: str) -> list[Assertion]:
    sentence = reader.sentence(text)
    place = Place(text, one.line, one.last_line, cited(sentence))
    line = Line(reader, sentence, place, Around(one.headings, one.before, title))
    told = list(placed_here((each for kind in (Setup, Bounds, Efforts) for each in kind(line).read()), line))
    told += placed_here(Steps(line).read(), line)
    is_read = bool(sentence.mentions) or len(reader.ground.runs) > 1
    whole: list[Assertion] = []
    if is_read:
        whole = [each for kind in (Pairs, Tries) for each in kind(line).read()]
        parts = (each for kind in (Portions, Slices, Modes, Versus) for each in kind(line).read())
        told += placed_here([*whole, *parts], line)
    settled = {each.start for each in told if each.verdict != UNVERIFIABLE}
    if is_read:
        is_told = any(each.kind in ("bucket", "count") for each in whole)
        told += untangled(
            _in_words(line, one.kind == "heading", {each.start for each in told}, is_told), line
        )
    runs = line.runs().runs
    more = scoped.read(text, place, runs[0] if len(runs) == 1 else None)
    told += untangled((each for each in more if each.start not in settled), line)
    return list(narrowed(weakest([*told, *_second(line, told)]), line))


def _second(line: Line, told: list[Assertion]) -> Iterator[Assertion]:
    """What a look at each clause by itself settles of the amounts that the phrases leave open."""
    settled = {each.start for each in told if each.verdict != UNVERIFIABLE}
    left = {each.start: each.why for each in told if each.verdict == UNVERIFIABLE}
    moved = list(placed_here(Moved(line, settled).read(), line))
    yield from moved
    settled |= {each.start for each in moved}
    found = list(Grounded(line, settled, set(left)).read())
    sizes = [each for each in found if (each.subject or "").startswith("n_")]
    rest = [each for each in found if each not in sizes]
    # what was read before tells which parts are named, and has been through this already
    known = [each for each in told if each.verdict == SUPPORTED]
    for one in [*placed_here(sizes, line), *list(untangled([*known, *rest], line))[len(known) :]]:
        if one.start not in left or one.verdict == SUPPORTED or _NARROWS.match(left[one.start]):
            yield one


# Doubts of a phrase that a look at the clause may lift: it knows more words.
_NARROWS = re.compile(r"the sentence may narrow it|two runs could be meant|it may be a part of them")


def _in_words(line: Line, is_heading: bool, used: set[int], is_told: bool) -> Iterator[Assertion]:
    """What is told in the words of measures, counts, ranks and buckets; `used` are amounts that are read."""
    reader, sentence, place, around = line.reader, line.sentence, line.place, line.around
    directions = Directions(reader, sentence, place, around)
    yield from directions.read()
    yield from Prose(reader, sentence, place, around, directions.used | used).read()
    yield from Orders(reader, sentence, place, around).read()
    yield from Parts(reader, sentence, place, around).read(is_heading, is_told)


def _pieces(text: str) -> Iterator[tuple[int, str]]:
    """Sentences that begin in lower case, as they do where a name does, and what stands before them."""
    start = 0
    for hit in re.finditer(r"(?<=[\w)%`])\.\s+(?=[a-z`])", text):
        if not _SHORT.search(text[max(0, hit.start() - 8) : hit.start() + 1]):
            yield start, text[start : hit.start() + 1]
            start = hit.end()
    yield start, text[start:]


def _shifted(found: Iterable[Assertion], told: Statement, offset: int) -> Iterator[Assertion]:
    """What a piece of a statement claims, where the statement stands."""
    for one in found:
        start = one.start + offset if one.start >= 0 else -1
        yield replace(one, line=told.line, last_line=told.last_line, text=told.text, start=start)
