"""Check any report: citations, quotations, ids and arithmetic, and what it states without a source."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from blade.check.arithmetic import contradictions
from blade.check.document import Document, parse
from blade.check.passages import Passage, passages
from blade.check.world import World, world_for, world_of
from blade.model.checked import CONTRADICTED, SUPPORTED, UNCITED, Finding

__all__ = ["Finding", "World", "checked", "world_for", "world_of"]


def checked(text: str, world: World | None) -> tuple[Finding, ...]:
    """Every statement that was read; without a world arithmetic and opinions alone."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    if text.lstrip()[:1] in ("{", "["):
        from blade.check.json_reports import json_findings

        found = json_findings(text, world, _markdown)
        if found is not None:
            return found
    return _markdown(text, world)


def _markdown(text: str, world: World | None) -> tuple[Finding, ...]:
    document = parse(text)
    found = list(_sourced(document, list(passages(document)), text, world))
    found += _arithmetic(document, found)
    return tuple(sorted(found, key=lambda finding: (finding.line, finding.kind)))


def _arithmetic(document: Document, found: list[Finding]) -> Iterator[Finding]:
    """What the report says against itself; numbers that hold by their citations are not blamed."""
    holds = {(item.line, item.printed.strip()) for item in found if item.verdict == SUPPORTED}
    uncited = {line for item in found if item.verdict == UNCITED for line in item.lines}
    for item in contradictions(document):
        if (item.line, item.stated.strip()) not in holds or uncited & set(item.lines):
            place = (item.line, item.lines, item.text, item.stated, item.expected)
            yield Finding(CONTRADICTED, "arithmetic", *place, item.kind, item.why)


def _sourced(document: Document, listed: list[Passage], text: str, world: World | None) -> Iterator[Finding]:
    """What rests on the rows, and what names no source."""
    from blade.check.cited_numbers import Answers, cited, verified
    from blade.check.ids import Ids, named
    from blade.check.mismatches import mismatches
    from blade.check.quotations import quotations
    from blade.check.uncited_numbers import opinions, uncited
    from blade.query.citations import PLACE

    if world is None:
        yield from opinions(listed)
        return
    items = cited(document, listed, text)
    numbers = [item for item in items if item.citation.is_open or not PLACE.fullmatch(item.citation.query)]
    answers = Answers(world.ground, (item.citation.query for item in numbers if not item.citation.is_open))
    found, covered = quotations(document, listed, world.rows)
    own = [passage for passage in listed if passage.line not in covered]
    found += [*(verified(item, answers) for item in numbers), *mismatches(numbers, world)]
    found += [finding for passage in own for finding in Ids(passage, world).findings()]
    engine = {(passage.text, passage.own) for passage in passages(parse(world.page()))}
    own = [passage for passage in own if (passage.text, passage.own) not in engine]
    for finding in (*found, *uncited(own, items, answers, world), *opinions(own)):
        tasks = dict.fromkeys((*finding.tasks, *named(finding.text, world.rows)))
        yield replace(finding, tasks=tuple(tasks))
