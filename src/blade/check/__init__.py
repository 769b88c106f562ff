"""Check any report: citations, quotations, ids and arithmetic, and what it states without a source."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from blade.check.arithmetic import contradictions
from blade.check.cited_numbers import cited, mismatches, verified
from blade.check.json_reports import json_findings
from blade.check.markdown_document import Document, Passage, parse, passages
from blade.check.quotations import quotations
from blade.check.report_ground import World, world_for, world_of
from blade.check.row_ids import Ids, named
from blade.check.uncited_numbers import opinions, uncited
from blade.model.conclusions import SUPPORTED, UNCITED, Finding
from blade.query.citations import PLACE
from blade.query.query_process import Answers

__all__ = ["Finding", "World", "checked", "world_for", "world_of"]


def checked(text: str, world: World | None) -> tuple[Finding, ...]:
    """Every statement that was read; without a world arithmetic and opinions alone."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    if text.lstrip()[:1] in ("{", "["):
        findings = json_findings(text, world, _markdown)
        if findings is not None:
            return findings
    return _markdown(text, world)


def _markdown(text: str, world: World | None) -> tuple[Finding, ...]:
    document = parse(text)
    listed = passages(document)
    findings = list(_sourced(document, listed, text, world) if world is not None else opinions(listed))
    # numbers that hold by their citations are not blamed for what the report says against itself
    holds = {(item.line, item.printed.strip()) for item in findings if item.verdict == SUPPORTED}
    open_lines = {line for item in findings if item.verdict == UNCITED for line in item.lines}
    wrong = contradictions(document)
    findings += [f for f in wrong if (f.line, f.printed.strip()) not in holds or open_lines & set(f.lines)]
    return tuple(sorted(findings, key=lambda finding: (finding.line, finding.kind)))


def _sourced(document: Document, listed: list[Passage], text: str, world: World) -> Iterator[Finding]:
    """What the report says of the rows: cited, quoted, named, or without a source."""
    items = cited(document, listed, text)
    numbers = [item for item in items if item.citation.is_open or not PLACE.fullmatch(item.citation.query)]
    answers = Answers(world.ground, (item.citation.query for item in numbers if not item.citation.is_open))
    listed_findings, covered = quotations(document, listed, world.rows)
    own = [passage for passage in listed if passage.line not in covered]
    listed_findings += [*(verified(item, answers) for item in numbers), *mismatches(numbers, world)]
    listed_findings += [finding for passage in own for finding in Ids(passage, world).findings()]
    engine = {(passage.text, passage.own) for passage in passages(parse(world.page()))}
    own = [passage for passage in own if (passage.text, passage.own) not in engine]
    for finding in (*listed_findings, *uncited(own, items, answers, world), *opinions(own)):
        tasks = dict.fromkeys((*finding.tasks, *named(finding.text, world.rows)))
        yield replace(finding, tasks=tuple(tasks))
