"""Turn any report into assertions: supported, contradicted or unverifiable by what the rows say."""

from __future__ import annotations

from collections.abc import Iterable

from blade.check.joined import joined
from blade.check.made import SCHEMA, parsed
from blade.check.redacted import blinded
from blade.check.world import World
from blade.model import CONTRADICTED, SUPPORTED, Assertion
from blade.prose.document import Document, document


def checked(text: str, world: World | None) -> tuple[Assertion, ...]:
    """Every claim of a Markdown or JSON report; without a world only what it says against itself."""
    if world is not None and world.is_blind:
        text = blinded(text)
    data = parsed(text)
    found = _of_json(text, data, world) if data is not None else _of_document(document(text), world)
    if world is None:
        return found
    from blade.check.filed import filed

    return tuple(filed(found, text, world))


def _of_document(told: Document, world: World | None) -> tuple[Assertion, ...]:
    from blade.check.within import within

    inside = within(told)
    if world is None:
        return joined([], [], inside)
    # What agrees with itself may still be false of the rows.
    inside = [one for one in inside if one.verdict == CONTRADICTED]
    from blade.check.aligned import aligned, given_again
    from blade.check.inline import inline
    from blade.check.quoted import address_at, quoted
    from blade.check.reader import read
    from blade.check.tabled import tabled

    quotes = quoted(told, world)
    # A label is right if its quotation stands where it says, whatever rollout our own page would quote there.
    right = {one.text: address_at(one.text) for one in quotes if one.verdict == SUPPORTED and one.cites}
    again = aligned(told, world.reference)
    beside = [
        one for one in again if one.verdict == SUPPORTED or one.start < right.get(one.text, one.start + 1)
    ]
    settled = given_again(told, world.reference)
    beside += tabled(told, world.tables)
    true = settled | _true(beside)
    cited, blocks = inline(told, world, true)
    # A quotation that stands where it is said to is right, whatever our own sentence quotes.
    standing = {(one.line, one.text, one.start) for one in cited if one.verdict == SUPPORTED and one.cites}
    beside = [one for one in beside if (one.line, one.text, one.start) not in standing]
    said = [one for one in read(told, world) if one.line not in blocks]
    inside = [one for one in inside if one.line not in blocks]
    return joined([*beside, *quotes], [*said, *cited], inside, settled)


def _true(found: Iterable[Assertion]) -> set[tuple[int, str]]:
    """The sentences and table rows all of which the rows give again."""
    wrong = {(one.line, one.text) for one in found if one.verdict == CONTRADICTED}
    return {(one.line, one.text) for one in found} - wrong


def _of_json(text: str, data: object, world: World | None) -> tuple[Assertion, ...]:
    if isinstance(data, dict) and data.get("schema") == SCHEMA:
        from blade.check.wired import wired

        return joined(wired(text, data, world), [], []) if world is not None else ()
    from blade.check.json_prose import at_paths, prose
    from blade.check.reader import read_json

    told, paths = prose(data, text)
    said = at_paths(_of_document(told, world), paths)
    return joined([], [*(read_json(data, world, text) if world is not None else ()), *said], [])
