"""Find what is called the largest or the smallest where a table of the same report says otherwise."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from blade.check.within.numbers import DIGITS, UNIT, Printed, lead, of_parts
from blade.check.within.passage import blanked
from blade.check.within.repeated import bucket_counts
from blade.check.within.totals import is_total, label
from blade.model import CONTRADICTED, SUPPORTED, Assertion
from blade.prose.document import Document, Row, Statement, Table

_THING = (
    r"(?:models?|runs?|agents?|difficulty|failure modes?|failure|modes?|causes?|loss|category|categories"
    r"|slices?|groups?|stages?|buckets?"
    r"|shares?|counts?"
    r"|scores?|pass rates?|rates?|classes|class|errors?|drop|gain|value|term|contributor|contribution"
    r"|source of (?:loss|failure))"
)
_MOST = r"largest|biggest|highest|greatest|dominant|most common|most frequent|leading|top|main"
_BEST, _WORST = r"best|strongest|best-performing", r"worst|weakest|worst-performing"
_LEAST = r"smallest|lowest|least common|least frequent|rarest"
_DEGREE = rf"(?P<most>{_MOST})|(?P<least>{_LEAST})|(?P<best>{_BEST})|(?P<worst>{_WORST})"
_SAID = re.compile(
    rf"\bthe (?:single )?(?:{_DEGREE}) {_THING} (?:is|was|comes from"
    rf"|belongs to|has) "
    rf"(?:the )?(?P<name>(?:[^:;.]|\.(?=\d)){{1,80}}?)(?::\s|,\s(?:with |at )?|\s\(|\swith\s|\sat\s)"
    rf"(?P<sign>[-+−]?)(?P<digits>{DIGITS})(?P<unit>{UNIT})?(?![\w.]\d)",
    re.IGNORECASE,
)
_LEADS = re.compile(
    rf"(?P<name>[A-Z`][^:;.,]{{1,60}}?) (?:has|is|shows) the (?:single )?(?:(?P<most>{_MOST})"
    rf"|(?P<least>{_LEAST})) {_THING}"
    rf"(?:\s\(|,\s(?:with |at )?|:\s)(?P<sign>[-+−]?)(?P<digits>{DIGITS})(?P<unit>{UNIT})?(?![\w.]\d)"
)
_NOT = re.compile(
    r"\b(?:not|no longer|never|second|third|next|nor|besides|after|among|within|other than|excluding)\b"
    r"|n['’]t\b",
    re.I,
)
_REST = re.compile(
    r"\b(?:other|others|rest|remaining|unknown|misc|all|total|unexplained|undetermined|unattributed"
    r"|unclassified|none|no mode|smaller|mean|average|median)\b",
    re.I,
)


def superlatives(document: Document) -> Iterator[Assertion]:
    """Sentences that name the most or the least of something, against the one table that has its number."""
    said = [one for one in document.statements if "the " in one.text.lower()]
    matches = [
        (one, hit) for one in said for hit in (_SAID.search(one.text) or _LEADS.search(one.text),) if hit
    ]
    if not matches:
        return
    rows = _rows(document)
    for one, hit in matches[:500]:
        clause = re.split(r"[.;]\s", one.text[: hit.start()])[-1]
        if not _NOT.search(clause) and not _NOT.search(hit[0]):
            yield from _held(one, hit, rows)


def _plain(name: str) -> str:
    return " ".join(re.sub(r"\([^()]*\)|`", " ", name).lower().split())


def _rows(document: Document) -> dict[str, list[tuple[Table, Row]]]:
    """Rows by each of the names they go by."""
    found: dict[str, list[tuple[Table, Row]]] = defaultdict(list)
    for table in document.tables:
        if table.ragged:
            continue
        for row in table.rows:
            for cell in row.cells[:3]:
                if cell and len(cell) < 100 and lead(cell) is None:
                    found[_plain(cell)].append((table, row))
    return found


def _held(
    one: Statement, hit: re.Match[str], rows: dict[str, list[tuple[Table, Row]]]
) -> Iterator[Assertion]:
    number = of_parts(hit["sign"], hit["digits"], hit["unit"])
    said = hit.groupdict()  # not every form of the sentence has a best and a worst
    best, worst = said.get("best"), said.get("worst")
    verdicts: list[tuple[bool, str, str]] = []
    for table, row in rows.get(_plain(hit["name"]), ()):
        columns = [at for at, cell in enumerate(row.cells) if (seen := lead(cell)) and _same(seen, number)]
        if len(columns) == 1:
            # What is best depends on what is measured: for a score it is the highest.
            if (best or worst) and not _GOOD.search(table.header[columns[0]]):
                continue
            verdicts += _compared(table, row, columns[0], bool(hit["most"] or best))
    if not verdicts or len({holds for holds, _, _ in verdicts}) > 1:
        return
    holds, name, why = verdicts[0]
    yield Assertion(
        SUPPORTED if holds else CONTRADICTED, "ordering", one.line, one.last_line, one.text, hit["name"],
        None if holds else name, why, value=hit["name"], start=hit.start("name"),
    )  # fmt: skip


_GOOD = re.compile(r"pass|score|accura|solved|success|correct|reward|f1", re.I)


def _same(seen: Printed, number: Printed) -> bool:
    """One quantity printed twice, perhaps with fewer digits."""
    slack = max(seen.half if seen.digits < number.digits else 0, number.half) + 1e-9
    signed = [one.text[:1] in tuple("+-−") for one in (seen, number)]
    return seen.unit == number.unit and signed[0] == signed[1] and abs(seen.value - number.value) <= slack


def _compared(table: Table, row: Row, at: int, most: bool) -> Iterator[tuple[bool, str, str]]:
    others = [
        (value, other)
        for other in table.rows
        if not is_total(other)
        and not _REST.search(" ".join(other.cells[:3]))
        and (value := lead(other.cells[at])) is not None
    ]
    mine = lead(row.cells[at])
    if mine is None or len(others) < 2 or any(value.unit != mine.unit or value.bound for value, _ in others):
        return
    best, holder = max(others, key=lambda pair: pair[0].value if most else -pair[0].value)
    gap = best.value - mine.value if most else mine.value - best.value
    # The row's own name: what tells it from its neighbours, not the class both share.
    name = next(
        (cell for cell, own in zip(holder.cells, row.cells, strict=False) if cell != own), label(holder)
    )
    more = "more" if most else "less"
    if gap > 1e-9:
        yield False, name, f"{name} has {more}: {best.text} in {table.header[at]}, line {holder.line}"
    else:
        yield True, name, f"no row of the table from line {table.line} has {more} in {table.header[at]}"


_BIMODAL = re.compile(r"\bbimodal(?:ity|ly)?\b", re.I)
_ABOUT = re.compile(r"\b(?:tasks?|outcomes?|results?|distribution|pass rates?|scores?|performance)\b", re.I)
_PART = re.compile(r"\b(?:slice|category|if|would|scores?)\b|`", re.I)


def bimodal(document: Document) -> Iterator[Assertion]:
    """`bimodal` against the tasks that always, sometimes and never pass."""
    said = [one for one in document.statements if _BIMODAL.search(one.text) and _ABOUT.search(one.text)]
    counts = bucket_counts(document) if said else None
    for one in said if counts else ():
        hit = _BIMODAL.search(blanked(one.text))
        if not hit or not counts or _NOT.search(one.text) or _PART.search(one.text):
            continue
        always, sometimes, never = counts
        told = f"{always:.0f} always, {sometimes:.0f} sometimes, {never:.0f} never"
        holds = min(always, never) > sometimes
        if not holds and sometimes <= always + never and min(always, never):
            continue
        yield Assertion(
            SUPPORTED if holds else CONTRADICTED, "word", one.line, one.last_line, one.text, hit[0],
            None if holds else told, f"of the tasks, {told} pass", value=hit[0], start=hit.start(),
        )  # fmt: skip
