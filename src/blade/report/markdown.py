"""Lay blocks out as Markdown; foreign text is escaped by `hostile` on its way."""

from __future__ import annotations

from blade import hostile
from blade.report import blocks
from blade.report.blocks import Block, Claims, Line, Num, Said, Section, Span, Table, claims_of

ONE_LINE = 300  # characters of a quotation that needs no block of its own


def page(title: str, sections: tuple[Section, ...], cited: bool = True) -> str:
    """A page; if `cited`, an unseen comment names the claim behind each number, whose query is in the JSON beside it."""
    numbered = claims_of(sections) if cited else None
    parts = [f"# {hostile.markdown_inline(title)}"]
    for section in sections:
        parts.append(f"## {hostile.markdown_inline(section.title)}")
        parts += [laid_out(block, numbered) for block in section.blocks]
    return "\n\n".join(parts) + "\n"


def laid_out(block: Block, numbered: Claims | None = None) -> str:
    """One block; `numbered` holds the claims of the page it stands on."""
    match block:
        case blocks.Heading():
            return f"### {inline(block.line, numbered=numbered)}"
        case blocks.Para():
            return hostile.markdown_start(inline(block.line, numbered=numbered))
        case blocks.Bullets():
            lines = (hostile.markdown_start(inline(item, numbered=numbered)) for item in block.items)
            return "\n".join(f"- {line}" for line in lines)
        case blocks.Table():
            return _table(block, numbered)
        case blocks.Quote():
            label = hostile.markdown_start(inline(block.label, numbered=numbered))
            if "\n" not in block.text and len(block.text) <= ONE_LINE:
                return f"{label}:\n\n> {hostile.markdown_inline(block.text)}"
            return f"{label}:\n\n{hostile.markdown_fence(block.text)}"
        case blocks.Commands():
            wide = max(len(command) for command, _ in block.lines)
            return hostile.markdown_fence("\n".join(f"{command:<{wide}}  # {shows}" for command, shows in block.lines), "sh")
        case blocks.Figure():
            # The caption stands below: a picture's own text cannot hold comments.
            caption = hostile.markdown_start(inline(block.caption, numbered=numbered))
            return f"![{hostile.markdown_inline(block.name)}](figures/{block.file}) {caption}"


def inline(line: Line, in_table: bool = False, numbered: Claims | None = None) -> str:
    """One line of text with its code spans, and behind each number its claim."""
    parts: list[str] = []
    for before, span, after in zip(("", *line), line, (*line[1:], ""), strict=False):
        is_link = isinstance(after, str) and after.startswith(("(", "[", ":"))
        # an interval of ours, not a link: it reads better without a backslash
        opens, closes = span in ("[", " [") and isinstance(after, Num), span == "]" and isinstance(before, Num) and not is_link
        parts.append(str(span) if opens or closes else _span(span, in_table, numbered))
    return "".join(parts).strip()


def _span(span: Span, in_table: bool, numbered: Claims | None) -> str:
    match span:
        case blocks.Code():
            return hostile.markdown_code(span.text, in_table)
        case blocks.Strong():
            return _around(span.text, "**")
        case blocks.Badge():
            return _around(span.text, "" if in_table else "**")
        case blocks.Num():
            mark = "**" if span.is_strong else ""
            return f"{mark}{hostile.markdown_inline(span.text)}{_anchor(span, numbered)}{mark}"
        case blocks.Said():
            return inline(span.line, in_table) + _anchor(span, numbered)
        case str():
            return _around(span, "")


def _anchor(span: Num | Said, numbered: Claims | None) -> str:
    return f"<!--{numbered.id_of(span)}-->" if numbered is not None else ""


def _around(text: str, mark: str) -> str:
    """Escaped `text` between marks; a space at its edge stays outside them."""
    before = " " if text[:1].isspace() else ""
    after = " " if text[-1:].isspace() else ""
    inner = hostile.markdown_inline(text)
    return f"{before}{mark}{inner}{mark}{after}" if inner else before


def _table(table: Table, numbered: Claims | None) -> str:
    rule = ["---:" if side == "r" else "---" for side in table.align]
    body = [[inline(cell, True, numbered) for cell in row] for row in table.rows]
    rows = [[hostile.markdown_inline(name) for name in table.header], rule, *body]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in rows)
