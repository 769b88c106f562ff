"""Lay blocks out on a terminal: labels on the left, texts wrapped to the width, tables aligned, colour where it has some."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from textwrap import wrap
from typing import NamedTuple

from blade import hostile
from blade.number_format import count
from blade.report.blocks import Bullets, Commands, Line, Table
from blade.report.phrases import short

WIDEST, NARROWEST = 110, 60  # columns
PIPED = 100  # columns where nothing says how wide the reader's window is
LABEL = 27  # columns of the labels on the left
LONGEST = 2000  # characters of one text


def columns() -> int:
    """How wide the page is: as the terminal, within reason; a file or a pipe has no width."""
    if not sys.stdout.isatty():
        return PIPED
    return max(NARROWEST, min(WIDEST, shutil.get_terminal_size().columns))


def cell_width(text: str) -> int:
    """Cells of a terminal that a text takes: wide characters take two."""
    from rich.cells import cell_len

    return cell_len(text)


def fitted(text: str, columns: int) -> str:
    """`text`, cleaned, in at most `columns` cells of a terminal."""
    from rich.cells import set_cell_size

    text = hostile.lines(text).replace("\n", " ").replace("\t", " ")
    return text if cell_width(text) <= columns else set_cell_size(text, columns - 1).rstrip() + "…"


def padded(text: str, columns: int, right: bool = False) -> str:
    text = fitted(text, columns)
    space = " " * (columns - cell_width(text))
    return space + text if right else text + space


def wrapped(text: str, columns: int, is_command: bool = False) -> list[str]:
    """`text` in lines of at most `columns` cells of a terminal; the words of a command stay whole."""
    wide = cell_width(text) > len(text)
    if wide:  # a character of two cells is counted as two
        text = "".join(sign + "\0" if cell_width(sign) == 2 else sign for sign in text)
    lines = wrap(text, columns - wide, break_long_words=not is_command, break_on_hyphens=False)
    return [line.replace("\0", "") for line in lines] or [""]


def text(line: Line) -> str:
    """A line of a page as text for a terminal."""
    return hostile.line(short(line, "`"), LONGEST)


def page(lines: Iterable[str]) -> str:
    """The lines as the whole output of a command."""
    return "\n".join(hostile.lines(line).rstrip() for line in lines) + "\n"


def hung(label: str, lines: Iterable[str], indent: int = LABEL) -> list[str]:
    """Lines that are wrapped already under a label on their left."""
    return [f"{'' if place else label:<{indent}}{line}" for place, line in enumerate(lines)]


def labelled(label: str, texts: Iterable[str], width: int, indent: int = LABEL) -> list[str]:
    """Texts under a label, each wrapped and beginning a line of its own."""
    return hung(label, [line for text in texts for line in wrapped(text, width - indent, text.startswith("blade "))], indent)


def laid_out(label: str, block: Bullets | Commands | Table, width: int, lead: Line, legend: str) -> list[str]:
    """A block under a label: `lead` answers the label before its first text, `legend` explains a table below it."""
    match block:
        case Bullets():
            texts = [text(item) for item in block.items]
            return labelled(label, [" ".join([text(lead), *texts[:1]]), *texts[1:]] if lead else texts, width)
        case Commands():
            return labelled(label, [f"{command}   ({shows})" for command, shows in block.lines], width)
        case Table():
            rows = [[text(cell) for cell in row] for row in block.rows]
            note = labelled("", [f"({legend})"], width) if legend else []
            return [*hung(label, aligned(rows, block.align, width - LABEL, 1)), *note]


def aligned(rows: Sequence[Sequence[str]], align: str, width: int, elastic: int, least: int = 20) -> list[str]:
    """Rows of cells in columns of equal width; the column `elastic` is wrapped where they do not fit."""
    widths = [max(cell_width(row[place]) for row in rows) for place in range(len(align))]
    room = width - sum(widths) + widths[elastic] - 2 * (len(widths) - 1)
    widths[elastic] = max(least, min(widths[elastic], room))
    before = sum(widths[:elastic]) + 2 * elastic
    lines = []
    for row in rows:
        first, *more = wrapped(row[elastic], widths[elastic])
        cells = [first if place == elastic else cell for place, cell in enumerate(row)]
        lines.append("  ".join(padded(cell, widths[place], right=align[place] == "r") for place, cell in enumerate(cells)))
        lines += [" " * before + line for line in more]
    return lines


# ---- A page of so many lines ---------------------------------------------------------------------


COUNTED = 99


class Row(NamedTuple):
    """A text under its label; without a text an empty line, if it has no label either."""

    label: str = ""
    text: str | Line | None = None
    most: int = 4  # lines
    rank: int = 0  # rows of the highest rank are left out first; 0: it stays; COUNTED: it is never shown
    noun: str = ""  # rows that are left out are counted as these
    indent: int | None = None

    def lines(self, width: int, indent: int) -> list[str]:
        if self.text is None:
            return [""]
        text = short(self.text) if isinstance(self.text, tuple) else self.text
        if not text:
            return []
        indent = indent if self.indent is None else self.indent
        hang, room = " " * (len(text) - len(text.lstrip())), width - indent
        lines = [hang + line for line in wrapped(text.lstrip(), room - len(hang))]
        if len(lines) > self.most:
            rest = " ".join([lines[self.most - 1], *(line.strip() for line in lines[self.most :])])
            lines = [*lines[: self.most - 1], fitted(rest, room)]
        return hung(self.label, lines, indent)


def listed(label: str, texts: Iterable[str | Line], most: int, rank: int, noun: str = "") -> list[Row]:
    """Texts of one kind, the label before the first."""
    return [Row("" if place else label, text, most, rank, noun) for place, text in enumerate(texts)]


def screen(rows: Sequence[Row], width: int, indent: int, most: int) -> list[str]:
    """The rows that there is room for, each in full; of the others it says how many there are."""
    texts = [row.lines(width, indent) for row in rows]
    order = sorted((place for place, row in enumerate(rows) if 0 < row.rank < COUNTED), key=lambda place: (-rows[place].rank, -place))
    left = {place for place, row in enumerate(rows) if row.rank == COUNTED}
    while True:
        lines: list[str] = []
        for place, row in enumerate(rows):
            alike = [other for other in left if rows[other].noun == row.noun]
            if place not in left:
                lines += texts[place]
            elif row.noun and place == min(alike):
                is_none_shown = bool(row.label)
                more = count(len(alike), row.noun if is_none_shown else f"more {row.noun}")
                lines += Row(row.label, f"{more} in the report", 1, indent=row.indent).lines(width, indent)
        if len(lines) <= most or not order:
            return lines
        left.add(order.pop(0))


_ANSWERS = {"No.": "31", "With care.": "33", "Yes,": "32"}  # red, yellow, green


def painted(page: str, labels: Sequence[str]) -> str:
    """The page with colour: labels bold, the answer to the first of them red, yellow or green. A pipe gets none of it."""
    if os.environ.get("NO_COLOR") is not None:
        return page
    lines = []
    for line in page.split("\n"):
        label, rest = line[:LABEL], line[LABEL:]
        if label.strip() in labels:
            for answer, colour in _ANSWERS.items():
                if label.startswith(labels[0]) and rest.startswith(answer):
                    rest = f"\x1b[1;{colour}m{answer}\x1b[0m{rest[len(answer) :]}"
            line = f"\x1b[1m{label}\x1b[0m{rest}"
        lines.append(line)
    return "\n".join(lines)
