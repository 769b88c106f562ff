"""Find columns of shares, differences and partitions that the columns beside them do not bear out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from blade.check.within.numbers import NONE, Printed, lead, meets, share, written
from blade.check.within.passage import Finding, of_row
from blade.check.within.totals import is_total, label
from blade.model import CONTRADICTED, Assertion
from blade.prose.document import Row, Table

_SHARE = re.compile(r"\b(?:share|percent(?:age)?|fraction|proportion|rate|%)(?:\b|$)|%", re.I)
_STATED = re.compile(r"\b(?:share|percent(?:age)?|fraction|%) of (?:the |all )?(?P<of>\d[\d,]*)\b", re.I)
_CHANGE = re.compile(r"\b(?:change|difference|diff|delta|gain)\b|Δ", re.I)
_SAMPLE = 300
_WIDE = 40  # in a table with more columns than this nobody reads one against another

Pair = tuple[Row, Printed, Printed, Printed]


def share_columns(table: Table) -> Iterator[Assertion]:
    """Shares against the counts left of them and a denominator: stated, in a column, or their sum."""
    if table.ragged or len(table.header) > _WIDE:
        return
    for at, header in enumerate(table.header):
        if not _SHARE.search(header):
            continue
        stated = _STATED.search(header)
        found = _of_stated(table, at, stated["of"]) if stated else None
        if found is None:
            found = _of_columns(table, at)
        if found is None and not stated:
            found = _of_sum(table, at)
        yield from found or ()


def _numbers(table: Table, at: int) -> dict[int, Printed]:
    """The numbers of a column by row, without totals; nothing if it holds anything else."""
    found = {}
    for index, row in enumerate(table.rows):
        number = lead(row.cells[at])
        if number is None and row.cells[at].strip() not in NONE:
            return {}
        if number is not None and not is_total(row):
            found[index] = number
    return found


def _fits(part: Printed, whole: Printed, stated: Printed) -> bool:
    low, high = share(part, whole)
    scale = 1 / stated.fraction
    return meets(stated, low * scale, high * scale)


def _judge(table: Table, at: int, triples: Sequence[Pair], least: int) -> list[Assertion] | None:
    """What becomes of every row, if most of them show that the relation is meant."""
    held = sum(_fits(part, whole, stated) for _, part, whole, stated in triples)
    if held < least or held * 3 < len(triples) * 2:
        return None
    found = []
    for row, part, whole, stated in triples:
        holds = _fits(part, whole, stated)
        exact = part.value / whole.value / stated.fraction if whole.value else 0.0
        why = f"{part.text.strip()} of {whole.text.strip()} is {written(exact, stated)}"
        expected = None if holds else written(exact, stated)
        finding = Finding(
            holds, "percentage", row.cells[at], 0, expected, why, stated.value * stated.fraction
        )
        found.append(of_row(table, row, at, finding))
    return found


def _of_stated(table: Table, at: int, of: str) -> list[Assertion] | None:
    shares = _numbers(table, at)
    whole = Printed(of, float(of.replace(",", "")))
    for left in range(at - 1, 0, -1):
        counts = _numbers(table, left)
        if not counts or not all(one.is_whole for one in counts.values()):
            continue
        rows = [index for index in shares if index in counts]
        triples = [(table.rows[index], counts[index], whole, shares[index]) for index in rows]
        found = _judge(table, at, triples, 1)
        total = Printed("", sum(one.value for one in counts.values()))
        if found is not None:
            return found + _partition(table, left, counts, whole)
        again = [(row, part, total, stated) for row, part, _, stated in triples]
        if total.value and len(again) > 2 and all(_fits(part, of_all, one) for _, part, of_all, one in again):
            why = f"the shares below are of {total.value:,.0f}, the sum of the column {table.header[left]}"
            return [
                Assertion(
                    CONTRADICTED, "percentage", table.line, table.line, " | ".join(table.header),
                    table.header[at], f"{total.value:,.0f}", why, value=whole.value,
                )
            ]  # fmt: skip
        return None
    return None


_PARTITIONS = (frozenset(("always", "sometimes", "never")), frozenset(("passed", "failed", "missing")))


def _partition(table: Table, at: int, counts: dict[int, Printed], whole: Printed) -> list[Assertion]:
    """Rows that are all there can be add up to the whole that the shares are of."""
    labels = {label(row).lower() for row in table.rows}
    if not any(names <= labels for names in _PARTITIONS) or any(is_total(row) for row in table.rows):
        return []
    total = sum(one.value for one in counts.values())
    holds = total == whole.value
    row = table.rows[-1]
    why = f"the column {table.header[at]} adds up to {total:,.0f}, its shares are of {whole.value:,.0f}"
    expected = None if holds else f"{whole.value:,.0f}"
    return [of_row(table, row, at, Finding(holds, "partition", f"{total:,.0f}", 0, expected, why, total))]


def _of_columns(table: Table, at: int) -> list[Assertion] | None:
    """share = part / whole, where two columns of counts stand left of it and most rows show it."""
    shares = _numbers(table, at)
    columns = {
        left: counts
        for left in range(max(0, at - 6), at)
        if (counts := _numbers(table, left)) and all(one.is_whole for one in counts.values())
    }
    best: tuple[int, list[Pair]] = (1, [])
    for whole_at in columns:
        for part_at in columns:
            if part_at == whole_at:
                continue
            part, whole = columns[part_at], columns[whole_at]
            rows = [index for index in shares if index in part and index in whole and whole[index].value]
            triples = [(table.rows[index], part[index], whole[index], shares[index]) for index in rows]
            # A part as large as its whole fits either way round, so it shows nothing.
            told = [one for one in triples[:_SAMPLE] if one[1].value < one[2].value]
            held = sum(_fits(*one[1:]) for one in told)
            if held > best[0] and held * 3 >= len(triples[:_SAMPLE]) * 1:
                best = held, triples
    return _judge(table, at, best[1], 2) if best[1] else None


def _of_sum(table: Table, at: int) -> list[Assertion] | None:
    """share = part / total, the total printed in the last row or the sum of the column."""
    shares = _numbers(table, at)
    if len(shares) < 3 or not re.search(r"\bshare|percent|proportion|%", table.header[at], re.I):
        return None
    for left in range(at - 1, 0, -1):
        parts = _numbers(table, left)
        if not parts or set(parts) != set(shares):
            continue
        value = sum(one.value for one in parts.values())
        digits = max(one.digits for one in parts.values())
        exact = all(one.is_whole for one in parts.values())
        # The sum of rounded parts is itself off by up to half a digit each.
        whole = Printed(f"{value:,.{digits}f}", value, 0 if exact else digits)
        stated = lead(table.rows[-1].cells[left]) if is_total(table.rows[-1]) else None
        whole = stated or whole
        triples = [(table.rows[index], parts[index], whole, shares[index]) for index in shares]
        if not exact and stated is None:
            continue
        found = _judge(table, at, triples, 3)
        if found is not None:
            return found
    return None


def change_columns(table: Table) -> Iterator[Assertion]:
    """A column of changes against the two columns before it, where most rows show their difference."""
    if table.ragged or len(table.header) > _WIDE:
        return
    for at, header in enumerate(table.header):
        if at < 3 or not _CHANGE.search(header):
            continue
        first, second = at - 2, at - 1
        rows = [
            (row, a, b, c)
            for row in table.rows
            if (a := _rate(row.cells[first]))
            and (b := _rate(row.cells[second]))
            and (c := lead(row.cells[at]))
        ]
        for way in (_minus, _plus):
            held = sum(way(a, b, c) for _, a, b, c in rows)
            told = sum(way(a, b, c) and abs(c.value) > 2 * c.half for _, a, b, c in rows)
            if told >= 2 and held * 3 >= len(rows) * 2:
                yield from _differences(table, at, rows, way)
                break


_FRACTION = re.compile(r"(\d+)/(\d+)")


def _rate(cell: str) -> Printed | None:
    hit = _FRACTION.fullmatch(cell)
    if hit and int(hit[2]):
        return Printed(cell, 100 * int(hit[1]) / int(hit[2]), 9, "%")
    return lead(cell)


def _minus(a: Printed, b: Printed, c: Printed) -> bool:
    return _apart(a, b, c, 1)


def _plus(a: Printed, b: Printed, c: Printed) -> bool:
    return _apart(a, b, c, -1)


def _apart(a: Printed, b: Printed, c: Printed, sign: int) -> bool:
    # Whole numbers too: means of large quantities are printed without decimals.
    low, high = b.low - a.high, b.high - a.low
    low, high = (low, high) if sign > 0 else (-high, -low)
    scale = 100.0 if c.unit and not a.unit else 1.0
    return meets(c, low * scale, high * scale)


def _differences(
    table: Table, at: int, rows: Sequence[Pair], way: Callable[[Printed, Printed, Printed], bool]
) -> Iterator[Assertion]:
    for row, a, b, c in rows:
        if a.bound or b.bound or c.bound or bool(a.unit) != bool(b.unit):
            continue
        holds = way(a, b, c)
        value = (b.value - a.value) * (1 if way is _minus else -1) * (100 if c.unit and not a.unit else 1)
        why = f"from {a.text.strip()} to {b.text.strip()}"
        expected = None if holds else written(value, c)
        yield of_row(table, row, at, Finding(holds, "difference", c.text.strip(), 0, expected, why, c.value))
