"""Lay a report out as Markdown."""

from __future__ import annotations

from blade import hostile
from blade.model import Report
from blade.report.chapters import chapters, title
from blade.report.ledger import Anchors
from blade.report.sections import (
    Badge,
    Block,
    Bullets,
    Code,
    Commands,
    Figure,
    Heading,
    Line,
    Para,
    Quote,
    Section,
    Strong,
    Table,
    Tiles,
)

SUFFIX = ".md"


def render(report: Report, figures: tuple[Figure, ...] = ()) -> str:
    """The report as Markdown; figures are linked by their place in the folder `figures`."""
    return page(title(report), chapters(report, figures))


def page(title: str, sections: tuple[Section, ...], anchors: Anchors = ()) -> str:
    """Any title and sections as Markdown; comments that nobody sees name the claims of each block."""
    parts = [f"# {hostile.markdown_inline(title)}"]
    for at, section in enumerate(sections):
        parts.append(f"## {hostile.markdown_inline(section.title)}")
        for number, block in enumerate(section.blocks):
            parts.append(laid_out(block))
            if anchors and anchors[at][number]:
                parts.append(f"<!-- claims: {anchors[at][number]} -->")
    return "\n\n".join(parts) + "\n"


def laid_out(block: Block) -> str:
    match block:
        case Heading():
            return f"### {inline(block.line)}"
        case Para():
            return hostile.markdown_start(inline(block.line))
        case Bullets():
            return "\n".join(f"- {hostile.markdown_start(inline(item))}" for item in block.items)
        case Tiles():
            rows = [(tile.label, tile.value, tile.detail) for tile in block.tiles]
            return _table(
                ("Headline", "Value", "Rests on"), "lrl", [[(cell,) for cell in row] for row in rows]
            )
        case Table():
            return _table(block.header, block.align, [list(row) for row in block.rows])
        case Quote():
            return f"{hostile.markdown_start(inline(block.label))}:\n\n{hostile.markdown_fence(block.text)}"
        case Commands():
            wide = max(len(command) for command, _ in block.lines)
            return hostile.markdown_fence(
                "\n".join(f"{command:<{wide}}  # {shows}" for command, shows in block.lines), "sh"
            )
        case Figure():
            caption = hostile.markdown_inline(block.caption)
            return f"![{caption}](figures/{block.file})"


def inline(line: Line, in_table: bool = False) -> str:
    """One line of text with its code spans."""
    return "".join(_span(span, in_table) for span in line).strip()


def _span(span: str | Code | Strong | Badge, in_table: bool) -> str:
    match span:
        case Code():
            return hostile.markdown_code(span.text, in_table)
        case Strong():
            return _around(span.text, "**")
        case Badge():
            return _around(span.text, "" if in_table else "**")
        case str():
            return _around(span, "")


def _around(text: str, mark: str) -> str:
    """Escaped `text` between marks; a space at its edge stays outside them."""
    before = " " if text[:1].isspace() else ""
    after = " " if text[-1:].isspace() else ""
    inner = hostile.markdown_inline(text)
    return f"{before}{mark}{inner}{mark}{after}" if inner else before


def _table(header: tuple[str, ...], align: str, rows: list[list[Line]]) -> str:
    rule = ["---:" if side == "r" else "---" for side in align]
    body = [[inline(cell, in_table=True) for cell in row] for row in rows]
    drawn = [[hostile.markdown_inline(name) for name in header], rule, *body]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in drawn)
