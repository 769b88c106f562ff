"""Find totals of a table, in rows, in columns or below it, that their addends do not add up to."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from blade.check.within.numbers import NONE, Printed, lead, thousands_in_doubt, written
from blade.check.within.passage import Finding, of_row
from blade.model import CONTRADICTED, SUPPORTED, Assertion
from blade.prose.document import Document, Row, Statement, Table

_SUM = re.compile(r"(?:grand |column |row )?(?:sum|total|totals)(?: \([^()]*\))?:?", re.I)
_ALL = re.compile(
    r"(?:overall|all|together|combined|all (?:tasks|rows|rollouts|runs))(?: \([^()]*\))?:?", re.I
)
_OTHER_KIND = re.compile(
    r"\b(?:mean|average|avg|median|max(?:imum)?|min(?:imum)?|best|std|sd|sub-?totals?)\b", re.I
)
_CUT = re.compile(r"(?:…|\.\.\.|⋮|\betc\b|\bmore\b|\bnot shown\b|\bomitted\b)", re.I)
# A total of these is no sum.
_RATE = re.compile(
    r"\b(?:rate|score|accuracy|pass|mean|average|avg|median|p|ratio|per|max|min|precision|recall|f1"
    r"|probability|"
    r"confidence|interval|ci|rank|id|index|year|step|k|odds|std|sd|latency|pass@\d+)\b|p\(",
    re.I,
)
_ADDITIVE = re.compile(
    r"\b(?:share|lost|loss|points|contribution|portion|part|weight|cost|change|effect)\b|% of|Δ", re.I
)
_SELECTED = re.compile(
    r"\b(?:top|first|largest|selected|sample of|examples?|excerpt|only the|among others|overlap\w*"
    r"|several|multiple"
    r"|more than one|not exclusive|distinct|unique|at least one|may (?:be|lie|fall|count|appear))\b",
    re.I,
)


def label(row: Row) -> str:
    """The first words of a row."""
    if row.cells and row.cells[0]:
        return row.cells[0]
    return next((cell for cell in row.cells if cell.strip()), "")


def is_total(row: Row) -> bool:
    """Whether a row sums up others, or averages them: it is none of the things the table lists."""
    return _sums_up(label(row))


@lru_cache(maxsize=20_000)
def _sums_up(name: str) -> bool:
    if len(name) > 60:
        return False
    return bool(_SUM.fullmatch(name) or _ALL.fullmatch(name) or _OTHER_KIND.match(name))


def total_rows(table: Table) -> Iterator[Assertion]:
    """The last row of a table, if it is a total, against the rows above it."""
    rows = list(table.rows)
    while rows and _OTHER_KIND.match(label(rows[-1])):
        rows.pop()
    if len(rows) < 3 or table.ragged:
        return
    last, addends = rows[-1], rows[:-1]
    named = label(last)
    strong = bool(_SUM.fullmatch(named))
    if not strong and not _ALL.fullmatch(named):
        return
    if any(is_total(row) or _OTHER_KIND.search(label(row)) for row in addends):
        return
    if any(_CUT.search(label(row)) for row in addends) or _CUT.search(named):
        return
    found = [(at, _column(table, addends, last, at, strong)) for at in range(len(table.header))]
    judged = [(at, finding) for at, finding in found if finding]
    sound = any(finding.holds for _, finding in judged)
    told = f"{table.before} {' '.join(table.headings[-1:])}"
    for at, finding in judged:
        # "Overall" may be a mean, and a table may be cut or overlap: then a sum is not what is claimed.
        if finding.holds or (sound if not strong or _SELECTED.search(told) else True):
            yield of_row(table, last, at, finding)


def _column(table: Table, addends: Sequence[Row], last: Row, at: int, strong: bool) -> Finding | None:
    total = lead(last.cells[at])
    if total is None or total.bound:
        return None
    numbers: list[Printed] = []
    for row in addends:
        cell = row.cells[at].strip()
        number = lead(cell)
        if number is None and cell not in NONE:
            return None
        if number is not None:
            numbers.append(number)
    header = table.header[at]
    counts = all(one.is_whole for one in (*numbers, total))
    if len(numbers) < 2 or len({bool(one.unit) for one in (*numbers, total)}) > 1:
        return None
    if thousands_in_doubt([*numbers, total]):
        return None
    if _RATE.search(header) and not (_ADDITIVE.search(header) and not counts):
        return None
    if not counts and not _ADDITIVE.search(header) and (total.unit == "%" or not strong):
        return None
    finding = summed(numbers, total, last.cells[at])
    # Shares that make up everything may print 100% whatever their rounding adds up to.
    if not finding.holds and total.unit == "%" and total.value == 100 and len(numbers) > 2:
        return finding if abs(sum(one.value for one in numbers) - 100) > 0.6 * len(numbers) else None
    if not finding.holds and _is_mean(numbers, total):
        return None
    return finding


def _is_mean(numbers: Sequence[Printed], total: Printed) -> bool:
    values = [one.value for one in numbers]
    return min(values) <= total.value <= max(values) and not all(one.is_whole for one in (*numbers, total))


def summed(numbers: Sequence[Printed], total: Printed, found: str) -> Finding:
    """A total against its addends; each may be off by half a unit of its last printed digit."""
    exact = all(one.is_whole for one in (*numbers, total))
    value = sum(one.value for one in numbers if not one.bound)
    digits = max(one.digits for one in numbers)
    low = high = value
    for one in numbers:
        if one.bound:
            low, high = low + min(one.low, 0), high + max(one.high, 0)
        elif not exact:
            half = 0.5 * 10.0**-digits if not one.value else one.half
            low, high = low - half, high + half
    slack = (0 if exact else total.half) + 1e-9 * max(1.0, abs(value))
    holds = low - slack <= total.value <= high + slack
    shown = written(value, Printed("", value, max(digits, total.digits), total.unit))
    why = f"the {len(numbers)} numbers above add up to {shown}" + ("" if exact else ", rounding allowed for")
    return Finding(holds, "total", found, 0, None if holds else shown, why, total.value)


_TOTAL_HEADER = re.compile(r"(?:grand |row )?(?:total|totals|sum|all)", re.I)


def total_columns(table: Table) -> Iterator[Assertion]:
    """A column of totals against the columns of counts, where most rows show that it is their sum."""
    columns = [at for at, name in enumerate(table.header) if _TOTAL_HEADER.fullmatch(name.strip())]
    if len(columns) != 1 or table.ragged or len(table.rows) < 3:
        return
    total = columns[0]
    addends = [at for at in range(1, len(table.header)) if at != total and _counts(table, at)]
    if len(addends) < 2 or not _counts(table, total):
        return
    for chosen in dict.fromkeys((tuple(addends), tuple(at for at in addends if at < total))):
        if len(chosen) < 2:
            continue
        judged = []
        for row in table.rows:
            numbers = [number for at in chosen if (number := lead(row.cells[at]))]
            whole = lead(row.cells[total])
            if whole:
                finding = summed(numbers, whole, row.cells[total]) if numbers else None
                judged.append((row, finding))
        held = sum(bool(finding and finding.holds) for _, finding in judged)
        if held >= 2 and held * 3 >= len(judged) * 2:
            for row, finding in judged:
                if finding:
                    why = finding.why.replace("above", "in the row")
                    yield of_row(table, row, total, _why(finding, why))
            return


def _why(finding: Finding, why: str) -> Finding:
    return Finding(finding.holds, finding.kind, finding.found, 0, finding.expected, why, finding.value)


def _counts(table: Table, at: int) -> bool:
    for row in table.rows:
        number = lead(row.cells[at])
        if number is None and row.cells[at].strip() in NONE:
            continue
        if number is None or not number.is_whole:
            return False
    return True


_BELOW = re.compile(
    r"\bSum(?: of (?P<terms>[\d,]+) terms?)?:\s(?P<exact>[-+−]?[\d.,]*\d)\b"
    r"(?:,? that is (?P<total>[-+−]?[\d.,]*\d(?:%| points?)))?"
)


def sums_below(document: Document) -> Iterator[Assertion]:
    """`Sum of 5 terms: +0.043, that is +4.3 points` against the table above it."""
    tables = {table.rows[-1].line: table for table in document.tables if table.rows}
    for said in document.statements:
        hit = _BELOW.match(said.text) if "Sum" in said.text else None
        table = tables.get(said.line - 2) or tables.get(said.line - 1)
        if not hit or table is None or table.ragged:
            continue
        total = lead((hit["total"] or "").strip())
        yield from _exactly(table, total, hit, said)
        for at, header in enumerate(table.header):
            if (
                total
                and _ADDITIVE.search(header)
                and re.search(r"change|effect|lost|contribution", header, re.I)
            ):
                yield from _below(table, at, total, hit, said)
                break


def _exactly(table: Table, total: Printed | None, hit: re.Match[str], said: Statement) -> Iterator[Assertion]:
    """The exact sum, a share of 1, against the points beside it or in the last row of the table."""
    exact = lead(hit["exact"])
    if total is None and table.rows and is_total(table.rows[-1]):
        points = [one for cell in table.rows[-1].cells if (one := lead(cell)) and one.unit == "points"]
        total = points[0] if len(points) == 1 else None
    if exact is None or total is None or not total.unit or exact.unit or exact.digits < 4:
        return
    holds = abs(abs(exact.value) * 100 - abs(total.value)) <= total.half + 100 * exact.half + 1e-9
    expected = written(exact.value * 100, total)
    yield Assertion(
        SUPPORTED if holds else CONTRADICTED,
        "sum", said.line, said.last_line, said.text, hit["exact"], None if holds else total.text,
        f"{hit['exact']} is {expected}", value=exact.value, start=hit.start("exact"),
    )  # fmt: skip


def _below(table: Table, at: int, total: Printed, hit: re.Match[str], said: Statement) -> Iterator[Assertion]:
    numbers = [lead(row.cells[at]) for row in table.rows]
    known = [one for one in numbers if one]
    if len(known) == len(numbers) and known and not is_total(table.rows[-1]):
        finding = summed(known, total, hit["total"])
        verdict = SUPPORTED if finding.holds else CONTRADICTED
        yield Assertion(
            verdict, "total", said.line, said.last_line, said.text, hit["total"], finding.expected,
            f"{finding.why} (the table from line {table.line})", value=total.value, start=hit.start("total"),
        )  # fmt: skip
    if hit["terms"]:
        several = (re.match(r"(\d+) smaller terms?", label(row)) for row in table.rows)
        terms = sum(int(one[1]) if one else 1 for one in several)
        holds = terms == int(hit["terms"].replace(",", ""))
        yield Assertion(
            SUPPORTED if holds else CONTRADICTED, "count", said.line, said.last_line, said.text,
            f"Sum of {hit['terms']} terms", None if holds else str(terms),
            f"the table from line {table.line} lists {terms}", value=float(hit["terms"].replace(",", "")),
        )  # fmt: skip
