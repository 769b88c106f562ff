"""Read tables to their end: cells of lines, rows that SQL inserts, lists of lists, below names of secrets."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache

from blade.sanitize.echoes import lowered, sites
from blade.sanitize.lexicon import is_chosen, is_no_secret, mixes, secret_name, secret_value
from blade.sanitize.rule_table import compiled

Span = tuple[int, int]
Columns = Mapping[int, str]  # the place of a column -> its name
_COLUMN = re.compile(r"(?i)(?:[\w ]{0,16}[_ ])?(?:passwords?|passwd|pwd|passwort|passphrase)")
_SHORT = ("pass", "pw", "pin")
_USER = re.compile(r"(?i)(?:user|account|login|e-?mail|host|owner)(?:[_ ]?(?:name|id))?|url")
MARKS = ("pass", "pw", "secret", "_token", "api_key", "credential")  # in names of columns
_TITLE = compiled("table_title")
_COPY = compiled("copy")
DASHES = re.compile(r"[|+]?[ \t:|+\-]*-[ \t:|+\-]*")
_SENTENCE = re.compile(r":\s*$|[^\W\d_]+ [^\W\d_]+ [^\W\d_]+")
_PATIENCE = 20  # lines in a row that are none of a table, until it is over
_MARGIN = " \t\r\n`\"'*"
_INSERT = compiled("insert")
_LISTED = compiled("list_of_names")
_LIST_NAME, _FIELD = compiled("name_in_list"), compiled("name_in_object")
_ROWS_AHEAD = compiled("rows_ahead")
# Possessive: what a quote begins is read one way only, however many quotes follow.
_CELL = compiled("cell")
_NEXT_ROW = re.compile(r"\s{0,80},\s{0,80}[\[(]")


class Tables:
    """The tables of a text: `hits` are the cells that are private, `lead` is what a piece that follows goes on from."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.hits: list[Span] = []
        self.lead = ""
        small = lowered(text)
        self._lines(sorted(place for mark in MARKS for place in sites(small, mark)))
        done = 0
        for place in sorted(place for mark in ("insert", "replace") for place in sites(small, mark)):
            hit = _INSERT.match(text, place) if place >= done else None
            if hit is None:
                continue
            columns = columns_of(hit["columns"].split(","), is_sure=True)
            row = _NEXT_ROW.match("," + text[hit.end() : hit.end() + 80])
            if columns and row:
                done, last = self._tuples(hit.end() + row.end() - 2, columns, is_given)
                if last is not None:
                    self.lead = text[hit.start() : hit.end()] + text[last:]

    def _lines(self, places: Iterable[int]) -> None:
        """Tables whose rows are lines."""
        text, done = self.text, 0
        for place in places:
            if place < done:
                continue
            start = text.rfind("\n", done, place) + 1 or done
            end = text.find("\n", place)
            if end < 0:
                return  # nothing stands below
            done = end
            head = text[start:end].rstrip("\r")
            by, names = _head(head)
            if not by:
                continue
            columns = columns_of(names)
            above = text[max(0, start - 4000) : start].rstrip("\r\n").rpartition("\n")[2]
            # what stands below a row of as many cells is no head
            is_row = len(_cells(above, 0, by)) == len(_cells(head, 0, by)) > 1
            is_row = is_row and (by == "|" or not (above.startswith("#") or _SENTENCE.search(above)))
            if columns and not is_row:
                done, last = self._rows(end + 1, by, len(names), columns, ", " not in head)
                if last is not None:
                    self.lead = text[start : end + 1] + text[last:]

    def _rows(self, place: int, by: str, width: int, columns: Columns, is_tight: bool) -> tuple[int, int | None]:
        """Where a table ends, and where its last row begins if it may go on beyond the text."""
        text, done, last, idle = self.text, place, place, 0
        below = text.find("\n", place) + 1 or len(text)
        is_ruled = DASHES.fullmatch(text[place:below].strip()) is not None
        if by == "|" and not is_ruled and text[place : place + 1] == "|":
            return done, None  # names and values side by side
        place = done = below if is_ruled else place
        # what is written with blanks may be code or prose: the line below must be a row
        rows = text[place : place + 8000].split("\n", 3)[: 3 if is_tight else 1]
        if not any(len(_cells(row, 0, by)) == width for row in rows):
            return done, None
        while place < len(text):
            cells = _cells(text, place, by)
            last, place = place, cells[-1][1] + 1
            if idle >= (1 if is_ruled else _PATIENCE) or text[last : place - 1].rstrip("\r") == "\\.":
                return done, None
            is_whole = len(cells) == width
            if len(cells) == 1:
                idle += 1
                continue
            is_sure = is_ruled or (is_whole and not (is_tight and f"{by} " in text[last:place]))
            for n, name in columns.items():
                for cell in {cells[n], *cells[n - width :][:1]} if n < len(cells) else ():
                    self._take(cell, name, is_held if is_sure else is_drawn)
            if is_whole:
                done, idle = place, 0
        return done, last

    def _tuples(self, place: int, columns: Columns, is_private: Callable[[str, str], object]) -> tuple[int, int | None]:
        """Where rows in brackets end, and where the last begins if they may go on beyond the text."""
        text = self.text
        while True:
            last, n, place = place, 0, place + 1
            while True:
                end = _CELL.match(text, place).end()  # type: ignore[union-attr]
                if n in columns and text[place:end].strip()[:1] in ("'", '"', "\\"):
                    self._take((place, end), columns[n], is_private)
                if text[end : end + 1] != ",":
                    break
                n, place = n + 1, end + 1
            row = _NEXT_ROW.match(text, end + 1) if text[end : end + 1] in (")", "]") else None
            if row is None:
                return end, None if text[end + 1 : end + 2000].strip(" \r\n\t,") else last
            place = row.end() - 1

    def _take(self, cell: Span, name: str, is_private: Callable[[str, str], object]) -> None:
        content = self.text[slice(*cell)]
        value = content.strip(_MARGIN + "\\")
        start = cell[0] + content.find(value)
        if value and is_private(name, value):
            self.hits.append((start, start + len(value)))


def lists_in(text: str) -> list[Span]:
    """The private cells of lists of lists, with the names of their columns in a list before, in or behind them."""
    if not any(mark in lowered(text) for mark in MARKS):
        return []
    tables, nest, done = Tables(""), -1, 0
    tables.text = text
    for hit in _LISTED.finditer(text):
        if hit["names"] is None:
            nest = hit.end()
            continue
        if hit.start() < done:
            continue
        columns = columns_of((_FIELD if "{" in hit["names"] else _LIST_NAME).findall(hit["names"]))
        if not columns:
            continue
        ahead = _ROWS_AHEAD.match(text, hit.end())
        if ahead is None and nest < 0:
            continue
        start = ahead.end() if ahead else nest
        done = max(done, tables._tuples(start, columns, is_held)[0])
    return tables.hits


def columns_of(names: Sequence[str], *, is_sure: bool = False) -> dict[int, str]:
    """The columns whose names say that they are private; `pass` and the like may be a count, but not beside a user."""
    stripped = [name.strip(_MARGIN + "[]\\") for name in names]
    is_sure = is_sure or any(map(_USER.fullmatch, stripped))
    return {n: name for n, name in enumerate(stripped) if _is_column(name) or (is_sure and name.lower() in _SHORT)}


def is_held(name: str, value: str) -> bool:
    """Can a cell hold a secret of this name."""
    is_word = (is_chosen(value) or mixes(value, 8)) and not is_no_secret(value) and not any(map(str.isspace, value))
    if name.lower() in _SHORT:
        return is_word and any(map(str.isdigit, value))
    return is_word and bool(_COLUMN.fullmatch(name) or secret_value(name, value))


def is_drawn(name: str, value: str) -> bool:
    """The same, where the row may be of something else."""
    return any(map(str.isdigit, value)) and is_held(name, value)


def is_given(_name: str, value: str) -> bool:
    """Is it a value, rather than a word that stands for one."""
    return len(value) > 2 and not is_no_secret(value)


def _is_column(name: str) -> bool:
    return _COLUMN.fullmatch(name) is not None or secret_name(name)


def _head(line: str) -> tuple[str, list[str]]:
    """What divides the cells of a line that can be the head of a table, and its names."""
    if (copy := _COPY.fullmatch(line)) is not None:
        return "," if "csv" in copy["rest"].lower() else "\t", copy["heads"].split(",")
    heads = [line, *([line[line.rindex(": ", 0, 200) + 2 :]] if ": " in line[:200] and ", " not in line else [])]
    for by in "|\t;,":
        for head in heads if by in line else ():
            words = head[: head.find(by)].strip()
            if by != "|" and not _TITLE.fullmatch(words):
                continue
            names = [head[slice(*cell)] for cell in _cells(head, 0, by)]
            is_prose = by in ",;" and f"{by} " in head and any(" " in name.strip() for name in names)
            if len(names) > 1 and not is_prose and (by == "|" or all(_TITLE.fullmatch(name.strip()) for name in names)):
                return by, names
    return "", []


@cache
def _cell(by: str) -> re.Pattern[str]:
    if by == "|":
        return re.compile(r"(?:\\.|[^|\n\\]|\\(?=\n|$))*+")
    return re.compile(rf'(?: ?"(?:[^"]|"")*+"(?=[ \t]*(?:{by}|\r?\n|\r?$)))?[^{by}\n]*')


def _cells(text: str, place: int, by: str) -> list[Span]:
    """The cells of the row that begins at a place."""
    cells: list[Span] = []
    while True:
        end = _cell(by).match(text, place).end()  # type: ignore[union-attr]
        cells.append((place, end))
        if text[end : end + 1] != by:
            return cells
        place = end + 1
