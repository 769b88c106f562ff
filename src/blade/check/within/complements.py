"""Find what passed and what failed that do not add up to all, in one sentence or in two."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from blade.check.within.passage import Finding, Passage, asserted, blanked
from blade.check.within.ratios import COUNT
from blade.model import Assertion
from blade.prose.document import Document, Statement

_UNIT = (
    r"(?P<unit>tasks?|problems?|questions?|samples?|cases?|examples?|rows?|rollouts?|runs?|trials?|attempts?"
    r"|episodes?|conversations?)"
)
_PASSED = r"(?:pass(?:es|ed)?|succeed(?:s|ed)?|(?:was|were|are|is) (?:solved|passed|correct|right)|solved)"
_FAILED = (
    r"(?:fail(?:s|ed)?|(?:was|were|are|is) (?:not solved|unsolved|wrong|incorrect)"
    r"|(?:did|do|does)(?: not|n['’]t) (?:pass|succeed))"
)
_STATE = rf"(?:(?P<passed>{_PASSED})|(?P<failed>{_FAILED}))"
_LEAD = r"[\s*_(]*(?:(?:overall|in total|in all|and|but|while|so|then|the (?:other|remaining)|another),?\s+)?"
_TAIL = r"(?:\s*[(,]\s*[\d.]+\s?%\)?)?\W*"
_WHOLE = re.compile(
    rf"{_LEAD}(?P<n>{COUNT}) (?:out )?of (?:the |all )?(?P<of>{COUNT})(?: {_UNIT})? {_STATE}{_TAIL}", re.I
)
_REST = re.compile(rf"{_LEAD}(?P<n>{COUNT})(?: (?:of them|others?|{_UNIT}))? {_STATE}{_TAIL}", re.I)
# `All 50 tasks ran; 40 of them passed`
_SIZE = re.compile(rf"[^\d]{{0,60}}?(?P<of>{COUNT}) {_UNIT}\b[^\d]{{0,60}}", re.I)
_PART = re.compile(rf"{_LEAD}(?P<n>{COUNT}) of them {_STATE}{_TAIL}", re.I)
_CLAUSE = re.compile(
    r";|,(?=\s(?:and|but|while)\b)|(?<=\w|\)|%)\s(?=(?:and|but|while)\s+(?:the \w+ )?\d)|,(?=\s\d+ \w+)"
)
# A third lot, or one that is in both: then nothing need add up.
_MORE = re.compile(
    r"\b(?:err\w*|missing|skip\w*|time[ds]?[- ]?out\w*|unscored|incomplete|partial\w*|crash\w*|exclu\w*"
    r"|invalid|unknown|undecided|abort\w*|at least|once|some\w*|always|every|ever|repeat\w*|each|both|rest"
    r"|first|before|after|of (?:these|those|which)|among|only|flak\w*|no (?:score|result|answer))\b",
    re.IGNORECASE,
)
_REACH = 2  # clauses after the one that names the whole


class _Clause(msgspec.Struct, frozen=True):
    text: str
    start: int
    of: Statement


def complements(document: Document) -> Iterator[Assertion]:
    """`40 of 50 passed. 12 failed.`: two parts of one whole, with nothing said of a third."""
    for paragraph in _paragraphs(document.statements):
        told = " ".join(one.text for one in paragraph)
        if len(told) > 4_000 or " of " not in told or _MORE.search(told):
            continue
        clauses = [clause for one in paragraph for clause in _clauses(one)]
        for at, clause in enumerate(clauses):
            if whole := _whole(clause, clauses[at - 1] if at else None):
                for other in clauses[at + 1 : at + 1 + _REACH]:
                    if rest := _REST.fullmatch(other.text):
                        yield from _added(whole, rest, other)
                        break


def _whole(clause: _Clause, before: _Clause | None) -> dict[str, str | None] | None:
    """A part of a whole and its state, the whole in the same clause or, for `of them`, in the one before."""
    if hit := _WHOLE.fullmatch(clause.text):
        return hit.groupdict()
    size = _SIZE.fullmatch(before.text) if before else None
    part = _PART.fullmatch(clause.text) if size else None
    return {**part.groupdict(), **size.groupdict()} if size and part else None


def _paragraphs(statements: Sequence[Statement]) -> Iterator[list[Statement]]:
    found: list[Statement] = []
    for one in statements:
        if found and not (one.before and one.headings == found[-1].headings):
            yield found
            found = []
        if one.kind == "sentence":
            found.append(one)
    if found:
        yield found


def _clauses(one: Statement) -> Iterator[_Clause]:
    text, start = blanked(one.text), 0
    for hit in _CLAUSE.finditer(text):
        yield _Clause(text[start : hit.start()], start, one)
        start = hit.end()
    yield _Clause(text[start:], start, one)


def _added(whole: dict[str, str | None], rest: re.Match[str], clause: _Clause) -> Iterator[Assertion]:
    """Passing and failing of the same kind of thing; two counts of one state are two statements of it."""
    units = {unit.lower().rstrip("s") for unit in (whole["unit"], rest["unit"]) if unit}
    if bool(whole["passed"]) == bool(rest["passed"]) or len(units) > 1:
        return
    n, of, more = (float((text or "").replace(",", "")) for text in (whole["n"], whole["of"], rest["n"]))
    holds = n + more == of
    said = f"{n:,.0f} and {more:,.0f} make {n + more:,.0f}, not {of:,.0f}"
    why = "the parts add up" if holds else said
    found = Finding(
        holds,
        "partition",
        rest["n"],
        clause.start + rest.start("n"),
        None if holds else f"{of - n:,.0f}",
        why,
        more,
    )
    one = clause.of
    yield asserted(found, Passage(one.text, one.line, one.last_line, one.text, 0, one.headings))
