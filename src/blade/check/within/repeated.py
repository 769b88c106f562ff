"""Find quantities that a report states twice with different values."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import lru_cache

import msgspec

from blade.check.within.numbers import BEFORE, DIGITS, UNIT, Printed, lead, of_parts
from blade.check.within.passage import blanked, shown
from blade.check.within.ratios import COUNT
from blade.model import CONTRADICTED, SUPPORTED, Assertion
from blade.prose.document import Document, Statement, Table
from blade.prose.slots import CODE, NUMBER, QUOTED, RATIO, Slot, rounded, skeleton, slots

MOST_VALUES = 50  # different values from which a name stands for more than one quantity


class Told(msgspec.Struct, frozen=True):
    """A quantity, where it is told."""

    key: str
    number: Printed
    line: int
    last_line: int
    text: str
    found: str
    n: str = ""  # what it is over, where that is told beside it
    is_tabled: bool = False


# Sections about one task, one run or one part of the data speak of other quantities by the same names.
_APART = re.compile(
    r"`|\d|\b(?:task|run|model|baseline|candidate|before|after|slice|category|subset|step|example"
    r"|appendix|by|per|for|vs"
    r"|versus|compar\w+|deep dive|judge|how right)\b",
    re.I,
)
_SEVERAL = re.compile(
    r"\b(?:baseline|candidate|runs|models|versus|vs|compar\w+|before|after|splits?|checkpoints?"
    r"|versions?|seeds?|agents)\b|→",
    re.I,
)


def repeated(document: Document) -> Iterator[Assertion]:
    """Measures, buckets and restated sentences against where they were told first."""
    yield from _sentences(document)
    if not _is_of_several(document):
        yield from _agree(_quantities(document))


def _is_of_several(document: Document) -> bool:
    """Whether a report is about more than one run, so that one name stands for several quantities."""
    # A section on other runs that has no table has none of their numbers.
    full = {name for table in document.tables for name in table.headings}
    places = [document.title, *full]
    headers = [name for table in document.tables for name in table.header]
    if any(_SEVERAL.search(text) for text in places) or any(_SEVERAL.search(name) for name in headers):
        return True
    firsts = {table.header[0].strip().lower() for table in document.tables if table.header}
    return bool(firsts & {"run", "model", "agent", "checkpoint", "system"})


_LONG = 2_000


@lru_cache(maxsize=2_000)
def _is_apart(headings: tuple[str, ...]) -> bool:
    return any(_APART.search(name) for name in headings)


_MEASURE = r"(?P<measure>(?:clean )?(?:pass[@^]\d+|avg@\d+|best@\d+|majority@\d+|maj@\d+)|coverage)"
_FIRST = re.compile(
    rf"{BEFORE}(?P<digits>{DIGITS})(?P<unit>{UNIT})(?:\s\[[^\[\]]{{3,40}}\])? (?:on "
    rf"|in )?{_MEASURE}(?![\w@^])",
    re.I,
)
_AFTER = re.compile(
    rf"(?<![\w@^-]){_MEASURE}(?:\s(?:is|was|of|=)|:"
    rf"|\s=)?\s(?P<digits>{DIGITS})(?P<unit>{UNIT})(?!\s?(?:points|to|of)\b)",
    re.I,
)
_LIMITED = re.compile(
    r"\b(?:without|over rows|over tasks|would|if|instead|counted|slice|category|subset|with|among|when"
    r"|only|excluding|including"
    r"|against|from|than|if|goal|target|expected|previous|earlier|other|reported|published|leaderboard"
    r"|threshold|for|on the)\b|\bin ¤|[<>≥≤~≈]",
    re.I,
)


def _quantities(document: Document) -> Iterator[Told]:
    for said in document.statements:
        if len(said.text) < _LONG and said.kind == "sentence" and not _is_apart(said.headings):
            yield from _measures_said(said)
            yield from _buckets_said(said)
    for table in document.tables:
        if not _is_apart(table.headings):
            yield from _tabled(table)


def _measures_said(said: Statement) -> Iterator[Told]:
    text = blanked(said.text)
    hits = [hit for pattern in (_FIRST, _AFTER) for hit in pattern.finditer(text)]
    if len(hits) != 1 or _LIMITED.search(re.sub(r"\([^()]*\)", "", text[: hits[0].end()])):
        return
    hit = hits[0]
    behind = re.search(r"n = (?P<n>[\d,]+ \w+)", text)
    number = of_parts("", hit["digits"], hit["unit"])
    told = Told(
        _key(hit["measure"]),
        number,
        said.line,
        said.last_line,
        said.text,
        hit[0],
        behind["n"] if behind else "",
    )
    yield told
    yield from _ends(told, text[hit.start() : hit.end() + 40])


_ENDS = re.compile(rf"\[(?P<low>{DIGITS})%, (?P<high>{DIGITS})%\]")


def _ends(told: Told, text: str) -> Iterator[Told]:
    """The ends of the interval beside a quantity."""
    hit = _ENDS.search(text)
    for end in ("low", "high") if hit else ():
        number = of_parts("", hit[end], "%") if hit else told.number
        yield msgspec.structs.replace(
            told, key=f"the {end} end of {told.key}", number=number, found=number.text
        )


def _key(name: str) -> str:
    return " ".join(name.lower().replace("score:", "").split())


_WHOLE = re.compile(
    rf"of (?:the |all )?(?P<n>{COUNT}) tasks,? (?P<always>{COUNT}) (?:tasks )?(?:pass(?:ed)? )?(?:always"
    rf"|in every|in all)[^,;\d]*"
    rf"(?:,|;| and) (?P<sometimes>{COUNT}) (?:pass(?:ed)? )?(?:sometimes|in some)[^,;\d]*(?:,|;| and"
    rf"|, and) (?P<never>{COUNT}) (?:pass(?:ed)? )?"
    r"(?:never|in none)",
    re.I,
)
_SLASHED = re.compile(rf"(?P<always>{COUNT}) ?/ ?(?P<sometimes>{COUNT}) ?/ ?(?P<never>{COUNT})")


def _buckets_said(said: Statement) -> Iterator[Told]:
    hit = _WHOLE.search(said.text)
    for name in ("always", "sometimes", "never") if hit else ():
        if hit:
            number, n = of_parts("", hit[name], ""), f"{hit['n']} tasks"
            yield Told(f"{name} bucket", number, said.line, said.last_line, said.text, hit[name], n)


_VALUE = re.compile(r"value|score|result|rate", re.I)


def _tabled(table: Table) -> Iterator[Told]:
    if table.ragged or len(table.header) < 2:
        return
    name = table.header[0].strip().lower()
    for row in table.rows[:2_000]:
        label = row.cells[0]
        number = lead(row.cells[1])
        if re.fullmatch(r"always ?/ ?sometimes ?/ ?never", label, re.I):
            hit = _SLASHED.fullmatch(row.cells[1])
            for bucket in ("always", "sometimes", "never") if hit else ():
                found = of_parts("", hit[bucket], "") if hit else number
                if found:
                    yield Told(f"{bucket} bucket", found, row.line, row.line, shown(row), row.cells[1])
        elif (
            name == "bucket"
            and number
            and number.is_whole
            and label.lower() in ("always", "sometimes", "never")
        ):
            yield Told(f"{label.lower()} bucket", number, row.line, row.line, shown(row), row.cells[1])
        elif name in ("measure", "headline", "metric") and _VALUE.match(table.header[1]) and number:
            hit = re.fullmatch(_MEASURE, _key(label), re.I)
            n = re.search(r"(?:n = )?(?P<n>\d[\d,]* \w+)$", row.cells[2]) if len(row.cells) > 2 else None
            if hit and number.unit:
                over = n["n"] if n else ""
                told = Told(_key(label), number, row.line, row.line, shown(row), row.cells[1], over, True)
                yield told
                yield from _ends(told, " ".join(row.cells[1:3]))


def _agree(told: Iterator[Told]) -> Iterator[Assertion]:
    groups: dict[str, list[Told]] = defaultdict(list)
    for one in told:
        groups[one.key].append(one)
    for key, places in groups.items():
        ns = {one.n for one in places if one.n and not re.search(r"rows|rollouts", one.n)}
        if len(places) < 2 or len(ns) > 1:
            continue
        # What most places agree on; where another value has as many, neither is known to be right.
        first: dict[Printed, Told] = {}
        for one in places:
            first.setdefault(one.number, one)
        if len(first) > MOST_VALUES:
            continue
        seen = Counter(one.number for one in places)
        votes = {
            number: sum(n for other, n in seen.items() if _alike(one, first[other]))
            for number, one in first.items()
        }
        best = first[max(votes, key=lambda number: votes[number])]
        as_many = (one for number, one in first.items() if votes[number] == votes[best.number])
        tied = next((one for one in as_many if not _alike(one, best)), None)
        for one in places:
            # Two sentences without a word on what they are over may be about two things.
            is_told = one.is_tabled or best.is_tabled or one.n or best.n
            if one is not best and (is_told or _alike(one, best)):
                yield _compared(one, best, key)
        if tied is not None and (tied.is_tabled or best.is_tabled or tied.n or best.n):
            yield _compared(best, tied, key)


def _compared(one: Told, other: Told, key: str) -> Assertion:
    holds = _alike(one, other)
    why = f"{key} is {one.found.strip()} here and {other.found.strip()} on line {other.line}"
    return Assertion(
        SUPPORTED if holds else CONTRADICTED,
        "repeated", one.line, one.last_line, one.text, one.found, None if holds else other.found,
        f"as on line {other.line}" if holds else why, value=one.number.value, start=one.text.find(one.found),
    )  # fmt: skip


def _alike(one: Told, other: Told) -> bool:
    a, b = one.number, other.number
    if bool(a.unit) != bool(b.unit):
        return True
    slack = 0.0 if a.is_whole and b.is_whole else a.half + b.half
    return abs(a.value - b.value) <= slack + 1e-9


def bucket_counts(document: Document) -> tuple[float, float, float] | None:
    """Tasks that always, sometimes and never pass, if the report tells them once and for all."""
    if _is_of_several(document):
        return None
    seen: dict[str, set[float]] = defaultdict(set)
    for one in _quantities(document):
        if one.key.endswith(" bucket"):
            seen[one.key].add(one.number.value)
    values = [seen.get(f"{name} bucket", set()) for name in ("always", "sometimes", "never")]
    if any(len(value) != 1 for value in values):
        return None
    always, sometimes, never = (value.pop() for value in values)
    return always, sometimes, never


_SUMMARY = re.compile(
    r"\b(?:summary|overview|abstract|tl;?dr|key (?:findings|results)|conclusions?|highlights|headlines?)\b",
    re.I,
)


def _sentences(document: Document) -> Iterator[Assertion]:
    """A sentence of the summary that stands in the body again, with the same words and names."""
    groups: dict[tuple[str, tuple[str, ...]], list[Statement]] = defaultdict(list)
    for said in document.statements:
        if len(said.text) < _LONG and said.kind == "sentence" and not _is_apart(said.headings):
            parts = slots(said.text)
            names = tuple(slot.text for slot in parts if slot.kind in (CODE, QUOTED))
            words = skeleton(said.text)
            if names and len(words.split()) >= 7 and any(slot.kind in (NUMBER, RATIO) for slot in parts):
                groups[words, names].append(said)
    for places in groups.values():
        summary = [said for said in places if any(_SUMMARY.search(name) for name in said.headings)]
        body = [said for said in places if said not in summary]
        if len(summary) == 1 and len(body) == 1:
            yield from _restated(summary[0], body[0])


def _restated(first: Statement, again: Statement) -> Iterator[Assertion]:
    pairs = list(zip(_numbers(first.text), _numbers(again.text), strict=False))
    wrong = [(a, b) for a, b in pairs if not _equal(a, b)]
    if not wrong:
        why = f"as on line {first.line}"
        yield Assertion(
            SUPPORTED, "repeated", again.line, again.last_line, again.text, again.text, None, why, start=0
        )
    for a, b in wrong[:3]:
        why = f"the same sentence says {a.text} on line {first.line} and {b.text} on line {again.line}"
        for said, mine, other in ((first, a, b), (again, b, a)):
            yield Assertion(
                CONTRADICTED, "repeated", said.line, said.last_line, said.text, mine.text, other.text, why,
                value=mine.value, start=mine.start,
            )  # fmt: skip


def _numbers(text: str) -> list[Slot]:
    return [slot for slot in slots(text) if slot.kind in (NUMBER, RATIO)]


def _equal(a: Slot, b: Slot) -> bool:
    if a.value is None or b.value is None or a.unit != b.unit or a.bound != b.bound:
        return True
    if a.kind == RATIO or b.kind == RATIO:
        return (a.value, a.of) == (b.value, b.of) or a.kind != b.kind
    slack = 0.0 if a.digits == b.digits else rounded(a) + rounded(b)
    return abs(a.value - b.value) <= slack + 1e-12
