"""Parse Markdown into headings, sentences, tables, lists and quotations, each with its lines and comments."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from functools import cache, lru_cache
from itertools import takewhile
from typing import Any

import msgspec
from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.token import Token
from msgspec.structs import replace


class Comment(msgspec.Struct, frozen=True):
    """An HTML comment: `27.8%<!--blade: rate-->` has the text `blade: rate` at offset 5 of `27.8%`."""

    text: str
    line: int
    offset: int = 0  # in the visible text of the sentence or cell that holds it


class Passage(msgspec.Struct, frozen=True):
    """A sentence, a heading or one cell of a table."""

    own: str  # as a reader sees it, without emphasis, links and comments; code keeps its backticks
    line: int
    last_line: int
    headings: tuple[str, ...]  # the headings above it, outermost first, without the title
    comments: tuple[Comment, ...] = ()
    kind: str = "sentence"  # sentence, heading, item (of a list), quote (in a block quote), cell
    before: str = ""  # what precedes it in its paragraph, at most three sentences
    depth: int = 0  # of a heading
    row: str = ""  # of a cell: its whole row with the header
    label: str = ""  # of a cell: the first cell of its row and the header of its column
    around: str = ""  # of a cell: the paragraph above the table
    header: str = ""
    column: int = 0

    @property
    def text(self) -> str:
        return self.row or self.own

    @property
    def lines(self) -> tuple[int, ...]:
        return tuple(range(self.line, self.last_line + 1))


class Cell(msgspec.Struct, frozen=True):
    text: str
    comments: tuple[Comment, ...] = ()


class Row(msgspec.Struct, frozen=True):
    cells: tuple[Cell, ...]
    line: int


class Table(msgspec.Struct, frozen=True):
    header: tuple[Cell, ...]
    rows: tuple[Row, ...]
    line: int
    headings: tuple[str, ...]
    lead: tuple[Passage, ...] = ()  # the paragraph above it, if no other block or heading is in between
    note: tuple[Passage, ...] = ()  # the paragraph below it, likewise
    ragged: bool = False  # some row has more cells than the header; missing ones are empty


class List(msgspec.Struct, frozen=True):
    items: tuple[tuple[Passage, ...], ...]
    line: int
    headings: tuple[str, ...]
    lead: tuple[Passage, ...] = ()  # the paragraph above it, or the item that it is nested in


class Quotation(msgspec.Struct, frozen=True):
    """A fenced or indented block, or a block quote."""

    text: str
    line: int
    last_line: int
    headings: tuple[str, ...]
    kind: str  # fence, indented, quote
    info: str = ""  # what follows the opening fence: text, sh, json


class Document(msgspec.Struct, frozen=True):
    title: str
    sentences: tuple[Passage, ...]  # all of them in order: headings, items and block quotes too
    tables: tuple[Table, ...]
    lists: tuple[List, ...]
    quotations: tuple[Quotation, ...]
    comments: tuple[Comment, ...]  # all of them; the offset is 0 here


@lru_cache(maxsize=4)  # citations, quotations and arithmetic each ask for the same report
def parse(text: str) -> Document:
    """A Markdown text as a reader of the rendered page sees it."""
    text = re.sub(f"[{_SIGN}{_TIMES}]", "\ufffd", text.removeprefix("\ufeff"))
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    reader = _Reader(_FRONT_MATTER.sub(lambda hit: "\n" * hit[0].count("\n"), text))
    lists = sorted(reader.lists, key=lambda listed: listed.line)
    return Document(
        reader.title, tuple(reader.sentences), tuple(reader.tables), tuple(lists), tuple(reader.quotations),
        tuple(reader.comments),
    )  # fmt: skip


_SIGN, _TIMES = "\ue000", "\ue001"  # private: no text has them
_MARK = re.compile(rf"<!--{_SIGN}(\d*)-->")  # a comment by its number; its further lines have none
_MARKUP = re.compile(r"[`*_~\\\[<&]")
_GAP = re.compile(rf"{_MARK.pattern}|\f")
_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(?=[\w-]+\s*:)(?:.*\n){0,500}?(?:---|\.\.\.)[ \t]*(?=\n|\Z)")
_OPENING = re.compile(  # of a comment, or what may hold it as text: a fence, a code span, an escape
    r"^[ \t>]*+(?P<fence>`{3,}+|~{3,}+)[^`\n]*+$.*?(?:^[ \t>]*+(?P=fence)[`~]*+[ \t]*+$|\Z)"
    r"|(?<!`)(?P<ticks>`++)[^\n]{1,2000}?(?<!`)(?P=ticks)(?!`)|\\[<`]|<!--",
    re.DOTALL | re.MULTILINE,
)


@cache
def _markdown() -> MarkdownIt:
    markdown = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    markdown.block.ruler.at("html_block", _comment_line, {"alt": ["paragraph", "reference", "blockquote"]})
    return markdown.disable(["inline", "text_join"])  # `_visible` reads what is inside a block


def _comment_line(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """A line of comments alone is no text, and ends the paragraph or table above it."""
    line = state.src[state.bMarks[start] + state.tShift[start] : state.eMarks[start]]
    if silent and state.parentType == "table" and "|" not in line:
        return True  # prose right below the last row, which pages show as a row
    if _SIGN not in line or _MARK.sub("", line).strip():
        return False
    state.line = state.line if silent else start + 1
    return True


class _Reader:
    """Walks over the blocks of a text."""

    def __init__(self, text: str) -> None:
        self.title, self.path = "", list[tuple[int, str]]()
        self.sentences, self.tables = list[Passage](), list[Table]()
        self.lists, self.quotations = list[List](), list[Quotation]()
        self.lead: tuple[Passage, ...] = ()  # the paragraph just read
        self.comments, self.originals = list[Comment](), list[str]()
        marked = self._marked(text)
        self.lines, self.links = marked.split("\n"), dict[str, Any]()
        self._blocks(iter(_markdown().parse(marked, self.links)), "sentence")

    @property
    def headings(self) -> tuple[str, ...]:
        return tuple(text for _, text in self.path)

    def _marked(self, text: str) -> str:
        """The text with a short mark for each comment, which may hold any sign."""
        starts, parts, position = [0, *(hit.end() for hit in re.finditer("\n", text))], list[str](), 0
        while hit := _OPENING.search(text, position):
            end = text.find("-->", hit.end()) + 3 if hit[0] == "<!--" else hit.end()
            if end < 3:
                break  # never closed: text
            raw = text[hit.start() : end]
            parts.append(text[position : hit.start()])
            if hit[0] == "<!--":
                self.comments.append(Comment(raw[4:-3].strip(), bisect_right(starts, hit.start())))
                self.originals.append(raw)
                raw = f"<!--{_SIGN}{len(self.comments) - 1}-->" + f"\n<!--{_SIGN}-->" * raw.count("\n")
            parts.append(raw)
            position = end
        return "".join((*parts, text[position:]))

    def _code(self, text: str) -> str:
        """Code as it was: what looks like a comment in it is text."""
        text = re.sub(rf"\s*<!--{_SIGN}-->", "", text)
        return _MARK.sub(lambda hit: self.originals[int(hit[1])], text)

    def _blocks(self, tokens: Iterator[Token], kind: str) -> list[Passage]:
        """Read the blocks up to the end of the one they are in, and return its own paragraphs."""
        paragraphs, above = list[Passage](), ""
        for token in takewhile(lambda token: token.nesting >= 0, tokens):
            line, last_line = (token.map or [0])[0] + 1, (token.map or [0])[-1]
            if token.type == "paragraph_open":
                content, _ = next(tokens).content, next(tokens)
                self.lead = tuple(self._sentences(content, line, kind))
                self.sentences += self.lead
                paragraphs += self.lead
                if above == "table_open":
                    self.tables[-1] = replace(self.tables[-1], note=self.lead)
            elif token.type in ("bullet_list_open", "ordered_list_open"):
                lead = tuple(paragraphs) if kind == "item" else self.lead
                starts = takewhile(lambda token: token.nesting > 0, tokens)
                items = tuple(tuple(self._blocks(tokens, "item")) for _ in starts)
                self.lists.append(List(items, line, self.headings, lead))
            else:
                self._block(token, tokens, kind, line, last_line)
                self.lead = ()
            above = token.type
        return paragraphs

    def _block(self, token: Token, tokens: Iterator[Token], kind: str, line: int, last_line: int) -> None:
        if token.type == "heading_open":
            content, _ = next(tokens).content, next(tokens)
            self._heading(content, int(token.tag[1:]), line, last_line, kind == "sentence")
        elif token.type == "table_open":
            self._table(takewhile(lambda token: token.type != "table_close", tokens), line)
        elif token.type == "blockquote_open":
            path, start = self.path, len(self.sentences)
            self._blocks(tokens, "quote")
            self.path, text = path, " ".join(sentence.text for sentence in self.sentences[start:])
            if kind != "quote":
                self.quotations.append(Quotation(text, line, last_line, self.headings, "quote"))
        elif token.type in ("fence", "code_block"):
            name = "fence" if token.type == "fence" else "indented"
            place = (self._code(token.content).removesuffix("\n"), line, last_line, self.headings)
            self.quotations.append(Quotation(*place, name, token.info.strip()))

    def _heading(self, content: str, depth: int, line: int, last_line: int, may_be_title: bool) -> None:
        text, comments, _ = self._visible(content)
        self.path = [entry for entry in self.path if entry[0] < depth]
        place = (line, last_line, self.headings)
        self.sentences.append(Passage(text, *place, tuple(comments), "heading", depth=depth))
        if depth == 1 and may_be_title and not self.title:
            self.title = text
        else:
            self.path.append((depth, text))

    def _table(self, tokens: Iterator[Token], line: int) -> None:
        rows: list[tuple[int, list[Cell]]] = []
        for token in tokens:
            if token.type == "tr_open":
                rows.append(((token.map or [0])[0], []))
            elif token.type == "inline":
                text, comments, _ = self._visible(token.content)
                rows[-1][1].append(Cell(text, tuple(comments)))
        header, body = tuple(rows[0][1]), tuple(Row(tuple(cells), n + 1) for n, cells in rows[1:])
        lines = (self.lines[n].lstrip(" \t>").strip(" \t|") for n, _ in rows[1:])
        is_ragged = any(len(re.split(r"(?<!\\)\|", line)) > len(header) for line in lines)
        self.tables.append(Table(header, body, line, self.headings, self.lead, ragged=is_ragged))

    def _sentences(self, content: str, line: int, kind: str) -> Iterator[Passage]:
        text, comments, breaks = self._visible(content)
        offsets, before = [comment.offset for comment in comments], list[str]()
        for start, end in _sentence_spans(text):
            own = text[start:end].rstrip()
            top, bottom = (line + bisect_right(breaks, place) for place in (start, start + len(own) - 1))
            inside = comments[bisect_left(offsets, start) : bisect_left(offsets, end)]
            inside = [replace(item, offset=min(item.offset - start, len(own))) for item in inside]
            yield Passage(own, top, bottom, self.headings, tuple(inside), kind, " ".join(before))
            before = [*before[-2:], own]

    def _visible(self, content: str) -> tuple[str, list[Comment], list[int]]:
        """What a reader sees, on one line; the comments with their place in it, and where its lines begin."""
        tokens, text, comments, breaks = list[Token](), "", list[Comment](), list[int]()
        content = re.sub(r"\\?\n", "\f", content.replace("\f", " "))  # a line break that code spans keep
        content = re.sub(r"(?<=\w)\*(?=\w)", _TIMES, content)  # 3*4 + 2*5 has no emphasis
        if _MARKUP.search(content):
            _markdown().inline.parse(content, _markdown(), self.links, tokens)
            content = "".join(map(self._raw, tokens))
        for number, part in enumerate(_GAP.split(content)):
            if number % 2 == 0:
                piece = re.sub(r"\s+", " ", part).replace(_TIMES, "*")
                text += piece.lstrip() if text[-1:] in ("", " ") else piece
            elif part is None:
                text += "" if text[-1:] in ("", " ") else " "
                breaks.append(len(text))
            elif part:
                comments.append(replace(self.comments[int(part)], offset=len(text)))
        return text.rstrip(), comments, breaks

    def _raw(self, token: Token) -> str:
        if token.type == "code_inline":
            return f"`{self._code(token.content).strip()}`"
        if token.type != "html_inline" or _SIGN in token.content:
            return token.content
        return " " if token.content[:3].lower() == "<br" else "\f" * token.content.count("\f")


# A full stop ends a sentence before a space and what can begin another; that of an abbreviation does not.
_STOP = re.compile(r"[.!?][\"”’)\]]*\s+(?=[\"“‘(\[]*[A-Z0-9ÄÖÜÀ-ÝА-Я])|[。！？]")
_SHORT = re.compile(r"\b(?:e\.g|i\.e|vs?|cf|approx|resp|nos?|figs?|tabs?|eq|sec|ca|incl|dr|mr|ms)\.$", re.I)
_WHOLE = re.compile(r"`[^`]{1,2000}`|“[^“”]{0,2000}”|(?<![\w\"])\"[^\"]{3,2000}\"(?![\w\"])")


def _sentence_spans(text: str) -> Iterator[tuple[int, int]]:
    """Where sentences begin and end; code and quotations are not taken apart."""
    masked, start = _WHOLE.sub(lambda hit: "X" * len(hit[0]), text), 0
    for hit in _STOP.finditer(masked):
        if not _SHORT.search(masked, max(0, hit.start() - 12), hit.start() + 1):
            yield start, hit.end()
            start = hit.end()
    if start < len(text):
        yield start, len(text) + 1


_QUOTED = re.compile(
    r"“(?P<a>[^“”]{3,2000})”|(?<![\w\"])\"(?P<b>[^\"]{3,2000})\"(?![\w\"])|«(?P<c>[^«»]{3,2000})»"
    r"|„(?P<d>[^„“”]{3,2000})[“”]|「(?P<e>[^「」]{3,2000})」"
)
_CODE = re.compile(r"`[^`]{1,2000}`")


def passages(document: Document) -> list[Passage]:
    """The sentences of a document, then the cells of its tables."""
    rows = ((table, row) for table in document.tables for row in table.rows)
    return [*document.sentences, *(cell for table, row in rows for cell in cells(table, row))]


def cells(table: Table, row: Row) -> Iterator[Passage]:
    """The cells of a row; its text is one line: `Category: crm | Tasks: 4`."""
    heads = [cell.text for cell in table.header] + [""] * len(row.cells)
    pairs = list(zip(heads, row.cells, strict=False))
    text = " | ".join(f"{head}: {cell.text}" if head else cell.text for head, cell in pairs)
    lead = " ".join(sentence.text for sentence in table.lead)
    for column, (head, cell) in enumerate(pairs):
        label = f"{row.cells[0].text} {head}" if column else head
        place = (row.line, row.line, table.headings, cell.comments, "cell", "", 0)
        yield Passage(cell.text, *place, text, label, lead, head, column)


def blanked(text: str, spans: list[tuple[int, int]]) -> str:
    """A text with blanks in place of some parts of it."""
    letters = list(text)
    for start, end in spans:
        letters[start:end] = " " * (end - start)
    return "".join(letters)


def quotes_in(text: str) -> Iterator[tuple[str, int, int]]:
    """What stands in quotation marks, outside code."""
    codes = [hit.span() for hit in _CODE.finditer(text)] if "`" in text else []
    for hit in _QUOTED.finditer(text):
        if not any(start < hit.start() and hit.end() <= end for start, end in codes):
            yield hit[hit.lastgroup or 0], *hit.span()
