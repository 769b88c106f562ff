"""Turn any person's prose and tables into assertions, held against what the runs say."""

from __future__ import annotations

from blade.check.reader.buckets import Parts
from blade.check.reader.direction import Directions
from blade.check.reader.ground import Ground
from blade.check.reader.json_values import read_json
from blade.check.reader.mentions import Reader
from blade.check.reader.ordering import Orders
from blade.check.reader.prose import Prose
from blade.check.reader.scope import Around
from blade.check.reader.tables import Tables
from blade.check.reader.verdicts import Place, cited
from blade.check.world import World
from blade.model import Assertion
from blade.prose.document import Document

__all__ = ["read", "read_json"]

LONGEST = 3_000  # characters of a sentence that is read


def read(document: Document, world: World) -> list[Assertion]:
    """Every claim that the prose and the tables of a report make, and whether the runs bear it out."""
    reader = Reader(Ground(world))
    found: list[Assertion] = []
    for one in document.statements:
        if len(one.text) > LONGEST:
            continue
        sentence = reader.sentence(one.text)
        if not sentence.mentions and len(reader.ground.runs) < 2:
            continue
        place = Place(one.text, one.line, one.last_line, cited(sentence))
        around = Around(one.headings, one.before, document.title)
        directions = Directions(reader, sentence, place, around)
        found += directions.read()
        found += Prose(reader, sentence, place, around, directions.used).read()
        found += Orders(reader, sentence, place, around).read()
        found += Parts(reader, sentence, place, around).read(one.kind == "heading")
    tables = Tables(reader)
    for table in document.tables:
        found += tables.read(table, document.title)
    return found
