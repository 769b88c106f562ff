"""Plant false numbers and wrong denominators, each beyond what rounding could excuse."""

from __future__ import annotations

import re
from collections.abc import Iterator
from random import Random

from mutation.lines import HEADER, PROSE, ROW, Line, cells, code_spans, masked, replaced, sentences
from mutation.page import EXPLAINING, NUMBER, Fault, Page

_LEAST = re.compile(r"(?:[≥>]|at least|more than|above|from|or more)\s*$")
_MOST = re.compile(r"(?:[≤<]|at most|up to|below|less than)\s*$")
_DENOMINATORS = (
    re.compile(r"(?<![\w.,/])\d[\d,]* of (?:the |these |its )?(?P<n>\d[\d,]*)(?![\w%/]|\.\d)"),
    re.compile(r"(?<![\w./-])\d[\d,]*/(?P<n>\d[\d,]*)(?![\w/]|\.\d)"),
    re.compile(r"\bn = (?P<n>\d[\d,]*)(?![\w%/]|\.\d)"),
    re.compile(
        r"\b(?:[Oo]f|over) (?:the )?(?P<n>\d[\d,]*) (?:tasks|rows|rollouts|completed|expected|failing)"
    ),
    re.compile(r"\b(?:[Ss]hare of|% of) (?P<n>\d[\d,]*)(?![\w%/]|\.\d)"),
)
_COUNTED = {"n", "Of rollouts"}
_COUNTS = {"Counted", "Tasks"}  # tables whose n is no whole of anything
# Another step or repeat might do the same: only one that is not there is sure to be false.
_PLACED = re.compile(r"\b(?:steps?|repeats?) $")
_OUTCOMES = re.compile(r"^[01etxm-](?: [01etxm-])*$")


def number(page: Page, rng: Random) -> Iterator[Fault]:
    """A number is another one: in prose, in cells, among the outcomes of repeats, in settings."""
    for line in page.lines:
        for start, end in _numbers(page, line):
            new = another(line.text[start:end], line.text[:start], rng)
            if new is not None:
                text = replaced(line.text, start - len(new[0]), end, new[1])
                yield fault("number", line, text)
        if line.role == ROW:
            yield from _coded(line, rng)


def denominator(page: Page, rng: Random) -> Iterator[Fault]:
    """A count is said to be of another whole."""
    for line in page.lines:
        if line.role in (ROW, HEADER):
            spans = {span for at, cell in enumerate(cells(line.text)) for span in _in_cell(line, at, cell)}
        elif line.role == PROSE:
            spans = {hit.span("n") for one in _DENOMINATORS for hit in one.finditer(masked(line.text))}
            spans = {span for span in spans if not _is_fixed(page, line.text, *span)}
        else:
            continue
        for start, end in sorted(spans):
            value = int(line.text[start:end].replace(",", ""))
            new = value + rng.choice((1, 2, 3, 4, 7, -1, -2, -3))
            if new != value and new > 0:
                yield fault("denominator", line, replaced(line.text, start, end, f"{new:,}"))


def _in_cell(line: Line, column: int, cell: str) -> Iterator[tuple[int, int]]:
    if column < len(line.header) and line.header[column] in EXPLAINING and line.role == ROW:
        return
    start = cell_start(line.text, column)
    for one in _DENOMINATORS:
        for hit in one.finditer(masked(cell)):
            yield start + hit.start("n"), start + hit.end("n")
    counted = re.fullmatch(r"(\d[\d,]*)(?: (?:tasks|rows|rollouts))?", cell)
    is_whole = line.header[column : column + 1] and line.header[column] in _COUNTED
    if line.role == ROW and is_whole and line.header[0] not in _COUNTS and counted:
        yield start, start + len(counted[1])


def cell_start(raw: str, column: int) -> int:
    """Where a cell of a table row begins."""
    at = [hit.end() for hit in re.finditer(r"(?<!\\)\|", raw)][column]
    return at + len(raw[at:]) - len(raw[at:].lstrip())


def fault(kind: str, line: Line, text: str, place: str | None = None) -> Fault:
    """A fault that changes one line and no other."""
    told = "table" if line.role in (ROW, HEADER) else "prose"
    return Fault(kind, place or told, line.section, ((line.number, text),), (line.number,), line.text, text)


def _numbers(page: Page, line: Line) -> Iterator[tuple[int, int]]:
    """Where the numbers of a line stand that say something of a run."""
    if line.role == PROSE:
        for hit in NUMBER.finditer(masked(line.text)):
            if not _is_fixed(page, line.text, *hit.span()):
                yield hit.span()
    elif line.role == ROW:
        for column, cell in enumerate(cells(line.text)):
            names_row = column == 0 and line.header[0] not in ("Rank",)
            if names_row or column >= len(line.header) or line.header[column] in EXPLAINING:
                continue
            start = cell_start(line.text, column)
            for hit in NUMBER.finditer(masked(cell)):
                yield start + hit.start(), start + hit.end()


def _is_fixed(page: Page, text: str, start: int, end: int) -> bool:
    for first, last in sentences(text):
        if first <= start < last:
            spans = [hit.span() for hit in NUMBER.finditer(masked(text[first:last]))]
            for at, (low, high) in enumerate(spans):
                if first + low <= start < first + high:
                    return page.fixed(text[first:last], at)
    return False


def _coded(line: Line, rng: Random) -> Iterator[Fault]:
    """The outcomes of a task's repeats, and the values of settings, which stand as code."""
    for start, end in code_spans(line.text):
        inside = line.text[start:end]
        if _OUTCOMES.match(inside) and "Repeats" in line.header:
            at = rng.randrange(0, len(inside), 2)
            new = replaced(inside, at, at + 1, rng.choice([one for one in "01e" if one != inside[at]]))
            yield fault("number", line, replaced(line.text, start, end, new))
        elif line.header[:1] == ("Setting",) and re.fullmatch(r"\d+(\.\d+)?", inside):
            other = another(inside, "", rng)
            if other is not None:
                yield fault("number", line, replaced(line.text, start, end, other[1]))


def another(printed: str, before: str, rng: Random) -> tuple[str, str] | None:
    """What stands before a number and goes with it, and another number that cannot be meant by it.

    Integers move by 1 or more, from a hundred on and with decimals by 2 units of the last digit or more: as
    far as no rounding goes. What is a bound moves only to where it no longer holds.
    """
    hit = NUMBER.match(printed)
    if hit is None:
        return None
    if _PLACED.search(before):
        return "", str(
            int(printed.replace(",", "")) + rng.randrange(200, 900)
        ) if printed.isdigit() else printed
    if before.endswith(("<", ">")):
        return before[-1], rng.choice(("0.02", "0.14", "0.31") if before[-1] == "<" else ("0.93", "0.64"))
    digits, decimals = hit["digits"].replace(",", ""), (hit["decimals"] or "")[1:]
    units = int(digits + decimals)
    least = 2 if decimals or units >= 100 else 1
    rises, falls = not _MOST.search(before), not _LEAST.search(before)
    for _ in range(40):
        new = _moved(units, rng)
        if (
            hit["sign"] in ("+", "−", "-")
            and hit["sign"]
            and units
            and rng.random() < 0.2
            and rises
            and falls
        ):
            flipped = "−" if hit["sign"] == "+" else "+"
            return "", flipped + printed[1:]
        if abs(new - units) < least or new < 0 or (new > units and not rises) or (new < units and not falls):
            continue
        return "", hit["sign"] + _printed(new, len(decimals), "," in hit["digits"])
    return None


def _moved(units: int, rng: Random) -> int:
    """A slip of the last digit, two digits exchanged, another leading digit, or a neighbour."""
    text = str(units)
    how = rng.randrange(4)
    if how == 0 or len(text) == 1:
        return units + rng.choice((-5, -4, -3, -2, -1, 1, 2, 3, 4, 5))
    if how == 1:
        at = rng.randrange(len(text) - 1)
        return int(text[:at] + text[at + 1] + text[at] + text[at + 2 :])
    if how == 2:
        return int(rng.choice("123456789") + text[1:])
    return units + rng.choice((-1, 1)) * max(2, round(units * rng.uniform(0.02, 0.3)))


def _printed(units: int, places: int, grouped: bool) -> str:
    whole, part = divmod(units, 10**places)
    return (f"{whole:,}" if grouped else str(whole)) + (f".{part:0{places}d}" if places else "")
