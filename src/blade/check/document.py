"""Parse Markdown into headings, sentences, tables, lists and quotations, each with its lines and comments."""

from __future__ import annotations

import html
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import accumulate

import msgspec


class Comment(msgspec.Struct, frozen=True):
    """An HTML comment: `27.8%<!--blade: rate-->` has the text `blade: rate` at offset 5 of `27.8%`."""

    text: str
    line: int
    offset: int = 0  # in the visible text of the sentence or cell that holds it


class Sentence(msgspec.Struct, frozen=True):
    text: str  # as a reader sees it, without emphasis, links and comments; code keeps its backticks
    line: int
    last_line: int
    headings: tuple[str, ...]  # the headings above it, outermost first, without the title
    comments: tuple[Comment, ...] = ()
    kind: str = "sentence"  # sentence, heading, item (of a list), quote (in a block quote)
    before: str = ""  # what precedes it in its paragraph, at most three sentences
    depth: int = 0  # of a heading


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
    lead: tuple[Sentence, ...] = ()  # the paragraph above it, if no other block or heading is in between
    note: tuple[Sentence, ...] = ()  # the paragraph below it, likewise
    ragged: bool = False  # some row has more cells than the header; missing ones are empty


class List(msgspec.Struct, frozen=True):
    items: tuple[tuple[Sentence, ...], ...]
    line: int
    headings: tuple[str, ...]
    lead: tuple[Sentence, ...] = ()  # the paragraph above it, or the item that it is nested in


class Quotation(msgspec.Struct, frozen=True):
    """A fenced or indented block or a block quote, and the paragraph above it."""

    text: str
    line: int
    last_line: int
    headings: tuple[str, ...]
    label: str
    kind: str  # fence, indented, quote
    info: str = ""  # what follows the opening fence: text, sh, json


class Document(msgspec.Struct, frozen=True):
    title: str
    sentences: tuple[Sentence, ...]  # all of them in order: headings, items and block quotes too
    tables: tuple[Table, ...]
    lists: tuple[List, ...]
    quotations: tuple[Quotation, ...]
    comments: tuple[Comment, ...]  # all of them; the offset is 0 here
    front_matter: str = ""


@lru_cache(maxsize=4)  # citations, quotations and arithmetic each ask for the same report
def parse(text: str) -> Document:
    """The whole of a Markdown text, in one pass over its lines."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    text = _PRIVATE.sub("\ufffd", text)
    lines, comments = _without_comments(text.split("\n"))
    front_matter = _front_matter(lines)
    reader = _Reader(lines, comments)
    reader.position = len(front_matter)
    reader.read()
    lists = (List(tuple(map(tuple, items)), *place) for place, items in reader.lists)
    return Document(
        reader.title, tuple(reader.sentences), tuple(reader.tables), tuple(lists), tuple(reader.quotations),
        tuple(comments), "\n".join(front_matter[1:-1]),
    )  # fmt: skip


_Place = tuple[int, tuple[str, ...], tuple[Sentence, ...]]  # line, headings and lead of a list
# A comment becomes two private characters that encode its number; code and escapes one each, for a while.
_PRIVATE = re.compile("[\ue000\ue100-\ue17f\U000f0000-\U000f1fff]")
_MARK = re.compile("([\U000f0000-\U000f0fff])([\U000f1000-\U000f1fff])")
_FENCE = re.compile(r"[ \t]{0,12}(?P<mark>`{3,}|~{3,})(?P<info>[^`]*)")
_HEADING = re.compile(r" {0,3}(?P<depth>#{1,6})(?:[ \t]+(?P<text>.*))?")
_ITEM = re.compile(r"(?P<indent>[ \t]*)(?P<mark>[-*+•]|\d{1,9}[.)])[ \t]+(?P<text>\S.*)")
_QUOTE = re.compile(r"(?: {0,3}>)+ ?")
_INDENT = re.compile(r" {4}|\t")
_BORDER = re.compile(r"(?<!\\)\|")
_RULE = re.compile(r"[ \t]*([-*_])[ \t]*(?:\1[ \t]*){2,}")
_DELIMITER = re.compile(r"(?=.*\|)(?=.*-)[|:\- \t]+")


def _without_comments(lines: Sequence[str]) -> tuple[list[str], list[Comment]]:
    """The lines with a mark for each comment. Comments in fences and code spans are text."""
    comments: list[Comment] = []
    kept, fence, parts = [], "", list[str]()  # parts: of a comment that goes on below
    last_end = max((number for number, line in enumerate(lines) if "-->" in line), default=-1)
    for number, line in enumerate(lines):
        visible, position = "", 0
        if parts:
            position = line.find("-->") + 3
            parts.append(line[: position - 3] if position > 2 else line)
            if position < 3:
                kept.append("")
                continue
            comments[-1], parts = Comment("\n".join(parts).strip(), comments[-1].line), []
        elif fence or _FENCE.fullmatch(line):
            fence = _next_fence(fence, line)
            kept.append(line)
            continue
        code = _code_spans(line) if "<!--" in line else []
        for start in (hit.start() for hit in re.finditer(r"(?<!\\)<!--", line)):
            if start < position or _is_inside(start, code):
                continue
            end = line.find("-->", start + 4)
            if end < 0 and number >= last_end:
                break  # never closed: text
            count = len(comments)
            visible += line[position:start] + chr(0xF0000 + count // 4096) + chr(0xF1000 + count % 4096)
            position = end + 3 if end >= 0 else len(line)
            comments.append(Comment(line[start + 4 : end].strip(), number + 1))
            parts = [line[start + 4 :]] if end < 0 else []
        kept.append(visible + line[position:])
    return kept, comments


def _next_fence(fence: str, line: str) -> str:
    opening, closing = _FENCE.fullmatch(line), line.strip()
    if not fence:
        return opening["mark"] if opening else ""
    return "" if len(closing) >= len(fence) and not closing.strip(fence[0]) else fence


def _code_spans(text: str) -> list[tuple[int, int]]:
    """Where code spans begin and end: a run of backticks up to the next run of the same length."""
    runs = [hit.span() for hit in re.finditer("`+", text)]
    by_length: dict[int, list[int]] = {}
    for start, end in runs:
        by_length.setdefault(end - start, []).append(start)
    spans, position = [], 0
    for start, end in runs:
        if start < position or text[start - 1 : start] == "\\":
            continue
        same = by_length[end - start]
        index = bisect_left(same, end)
        if index < len(same):
            position = same[index] + end - start
            spans.append((start, position))
    return spans


def _is_inside(place: int, spans: Sequence[tuple[int, int]]) -> bool:
    index = bisect_right(spans, (place, place)) - 1
    return index >= 0 and place < spans[index][1]


def _front_matter(lines: Sequence[str]) -> list[str]:
    if lines[0].rstrip() != "---" or not re.match(r"[\w-]+\s*:", "".join(lines[1:2])):
        return []
    ends = (number for number, line in enumerate(lines[:500]) if number and line.rstrip() in ("---", "..."))
    return list(lines[: next(ends, -1) + 1])


class _Reader:
    """Reads blocks line by line; the inside of a block quote is read by a reader of its own."""

    def __init__(self, lines: Sequence[str], comments: list[Comment], first: int = 1, kind: str = "sentence"):
        self.lines, self.comments, self.first, self.kind = lines, comments, first, kind
        self.position, self.title, self.path = 0, "", list[tuple[int, str]]()
        self.headings: tuple[str, ...] = ()
        self.sentences, self.tables, self.quotations = list[Sentence](), list[Table](), list[Quotation]()
        self.lists = list[tuple[_Place, list[list[Sentence]]]]()
        self.open = list[tuple[int, list[list[Sentence]]]]()  # the indents and items of lists that go on
        self.lead: tuple[Sentence, ...] = ()  # the paragraph just read
        self.table_above = False

    def read(self) -> None:
        while self.position < len(self.lines):
            line = self.lines[self.position]
            if not _MARK.sub("", line).strip() or _RULE.fullmatch(line):
                self.position += 1
                continue
            item = _ITEM.fullmatch(line)
            if not line[0].isspace() and not item:
                self.open = []
            if fence := _FENCE.fullmatch(line):
                self._block("fence", fence)
            elif heading := _HEADING.fullmatch(line):
                text = re.sub(r"(?:^|[ \t])#+$", "", (heading["text"] or "").rstrip())
                self._heading(len(heading["depth"]), text, self.position)
            elif _INDENT.match(line) and not self.open and not item:
                self._block("indented")
            elif self._starts_table():
                self._table()
            elif self.kind != "quote" and _QUOTE.match(line):
                self._block("quote")
            else:
                self._paragraph(item)

    def _heading(self, depth: int, raw: str, start: int) -> None:
        text, comments = self._visible(raw)
        self.path = [entry for entry in self.path if entry[0] < depth]
        above = tuple(heading for _, heading in self.path)
        lines = start + self.first, self.position + self.first
        self.sentences.append(Sentence(text, *lines, above, comments, "heading", depth=depth))
        is_title = depth == 1 and not self.title
        self.path += [] if is_title else [(depth, text)]
        self.headings = above if is_title else (*above, text)
        self.title = text if is_title else self.title
        self.position += 1
        self.open, self.lead, self.table_above = [], (), False

    def _block(self, kind: str, opening: re.Match[str] | None = None) -> None:
        start, below = self.position, range(self.position, len(self.lines))
        if opening:
            ends = (row for row in below[1:] if not _next_fence(opening["mark"], self.lines[row]))
            end = next(ends, len(self.lines))
            text = _MARK.sub("", "\n".join(self.lines[start + 1 : end]))
            self.position = min(end + 1, len(self.lines))
        else:
            margin = _QUOTE if kind == "quote" else _INDENT
            self.position = next((row for row in below if not margin.match(self.lines[row])), len(self.lines))
            inside = [margin.sub("", line, count=1) for line in self.lines[start : self.position]]
            text = self._quoted(inside, start + self.first) if kind == "quote" else "\n".join(inside)
        label = " ".join(sentence.text for sentence in self.lead[-4:])
        lines = start + self.first, self.position + self.first - 1
        info = opening["info"].strip() if opening else ""
        self.quotations.append(Quotation(text, *lines, self.headings, label, kind, info))
        self.lead, self.table_above = (), False

    def _quoted(self, lines: Sequence[str], first: int) -> str:
        reader = _Reader(lines, self.comments, first, "quote")
        reader.path, reader.headings, reader.title = list(self.path), self.headings, self.title or "quote"
        reader.read()
        self.sentences += reader.sentences
        self.tables += reader.tables
        self.lists += reader.lists
        self.quotations += reader.quotations
        return " ".join(sentence.text for sentence in reader.sentences)

    def _starts_table(self) -> bool:
        line, *following = self.lines[self.position : self.position + 2]
        if "|" not in line or not following:
            return False
        is_bare = line.lstrip()[0] == "|" == following[0].lstrip()[:1]  # without a line of dashes
        return is_bare or _DELIMITER.fullmatch(following[0]) is not None

    def _table(self) -> None:
        start, rows = self.position, []
        while self.position < len(self.lines) and "|" in self.lines[self.position]:
            if not _DELIMITER.fullmatch(self.lines[self.position]):
                rows.append(Row(self._cells(self.lines[self.position]), self.position + self.first))
            self.position += 1
        header = rows[0].cells if rows else ()
        ragged = any(len(row.cells) > len(header) for row in rows)
        rows = [Row(row.cells + (Cell(""),) * (len(header) - len(row.cells)), row.line) for row in rows]
        place = start + self.first, self.headings, self.lead
        self.tables.append(Table(header, tuple(rows[1:]), *place, ragged=ragged))
        self.lead, self.table_above = (), True

    def _cells(self, line: str) -> tuple[Cell, ...]:
        parts = _BORDER.split(line.strip())
        parts = parts[1:] if not parts[0].strip() else parts
        parts = parts[:-1] if parts and not parts[-1].strip() else parts
        return tuple(Cell(*self._visible(part.replace("\\|", "|"))) for part in parts)

    def _paragraph(self, item: re.Match[str] | None) -> None:
        """A paragraph or one item of a list: lines up to a blank one or the start of something else."""
        start, parts = self.position, [(item["text"] if item else self.lines[self.position]).strip()]
        self.position += 1
        while self.position < len(self.lines):
            line = self.lines[self.position]
            if not _MARK.sub("", line).strip() or self._interrupts(line, item is not None):
                break
            parts.append(line.strip())
            self.position += 1
        underline = "".join(self.lines[self.position : self.position + 1]).strip()
        if item is None and not self.open and set(underline) in ({"="}, {"-"}):
            self._heading(1 if "=" in underline else 2, " ".join(parts), start)
            return
        kind = self.kind if item is None and not self.open else "item"
        sentences = tuple(self._sentences(parts, start, kind))
        if item is not None:
            self._add_item(item, start, sentences)
        elif self.open:
            self.open[-1][1][-1].extend(sentences)
        elif self.table_above:
            self.tables[-1] = msgspec.structs.replace(self.tables[-1], note=sentences)
        self.sentences += sentences
        self.lead, self.table_above = sentences, False

    def _add_item(self, item: re.Match[str], start: int, sentences: tuple[Sentence, ...]) -> None:
        indent = len(item["indent"].expandtabs(4))
        while self.open and self.open[-1][0] > indent + 1:
            self.open.pop()
        if not self.open or indent > self.open[-1][0] + 1:
            lead = tuple(self.open[-1][1][-1]) if self.open else self.lead
            self.open.append((indent, []))
            self.lists.append(((start + self.first, self.headings, lead), self.open[-1][1]))
        self.open[-1][1].append(list(sentences))

    def _interrupts(self, line: str, in_item: bool) -> bool:
        starts = _RULE.fullmatch(line) or _HEADING.fullmatch(line) or _FENCE.fullmatch(line)
        if starts or set(line.strip()) in ({"="}, {"-"}) or self._starts_table():
            return True
        item = _ITEM.fullmatch(line)
        if item is None:
            return self.kind != "quote" and _QUOTE.match(line) is not None
        return in_item or bool(self.open) or item["mark"][:-1] in ("", "1")  # prose may begin with 12.

    def _sentences(self, parts: Sequence[str], start: int, kind: str) -> Iterator[Sentence]:
        raw = " ".join(parts)
        starts = [0, *accumulate(len(part) + 1 for part in parts)]
        before: list[str] = []
        for first, last in _sentence_spans(raw):
            text, comments = self._visible(raw[first:last])
            above = start + self.first - 1
            top, bottom = (above + bisect_right(starts, place) for place in (first, last - 1))
            if text:
                yield Sentence(text, top, bottom, self.headings, comments, kind, " ".join(before))
                before = [*before[-2:], text]

    def _visible(self, raw: str) -> tuple[str, tuple[Comment, ...]]:
        """Inline Markdown as a reader sees it, and the comments with their place in it."""
        text, *marked = _MARK.split(plain(raw))
        comments = []
        for high, low, piece in zip(marked[::3], marked[1::3], marked[2::3], strict=True):
            comment = self.comments[(ord(high) - 0xF0000) * 4096 + ord(low) - 0xF1000]
            comments.append(msgspec.structs.replace(comment, offset=len(text)))
            text += piece.removeprefix(" ") if not text or text[-1] == " " else piece
        return text.rstrip(), tuple(comments)


# A full stop ends a sentence before a space and what can begin another; that of an abbreviation does not.
_STOP = re.compile(
    '[.!?]["”’)\\]*_\U000f0000-\U000f1fff]*\\s+(?=["“‘(\\[*_]*[A-Z0-9`ÄÖÜÀ-ÝА-Я\U000f0000-\U000f1fff])|[。！？]'
)
_SHORT = re.compile(r"\b(?:e\.g|i\.e|vs?|cf|approx|resp|nos?|figs?|tabs?|eq|sec|ca|incl|dr|mr|ms)\.$", re.I)
_QUOTED = re.compile(
    r"“[^“”]{0,2000}”|(?<![\w\"])\"[^\"\n]{3,2000}\"(?![\w\"])|\[[^\[\]]{0,2000}\]\([^()\s]{0,2000}\)"
)


def _sentence_spans(raw: str) -> Iterator[tuple[int, int]]:
    spans, position = sorted([*_code_spans(raw), *(hit.span() for hit in _QUOTED.finditer(raw))]), 0
    for hit in _STOP.finditer(raw):
        is_short = _SHORT.search(raw[max(0, hit.start() - 12) : hit.start() + 1])
        if not is_short and not _is_inside(hit.start() + 1, spans):
            yield position, hit.end()
            position = hit.end()
    if raw[position:].strip():
        yield position, len(raw)


_MARKUP = re.compile(r"[`*_~\\\[<&]")
_LINK = re.compile(
    r"!?\[(?P<text>[^\[\]]{0,2000})\]\((?:<[^<>]{0,2000}>|[^()\s]{0,2000})(?:\s+\"[^\"]{0,500}\")?\)"
)
_TAG = re.compile(r"</?[A-Za-z][^<>]{0,300}>")
_EMPHASIS = re.compile(r"\*\*|~~|(?<!\w)__(?=\S)|(?<=\S)__(?!\w)|(?<![\w*])\*(?=\S)|(?<=\S)\*(?![\w*])")
_ITALIC = re.compile(r"(?<!\w)_(?=\S)([^_]{1,500})(?<=\S)_(?!\w)")
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
_UNESCAPED = {0xE100 + code: code for code in range(128)}


def plain(raw: str) -> str:
    """Inline Markdown as a reader sees it, on one line; code keeps its backticks."""
    if not _MARKUP.search(raw):
        return " ".join(raw.split())
    code, parts, position = [], [], 0  # code and escaped signs are put aside while the markup goes
    for start, end in _code_spans(raw):
        parts += [raw[position:start], "\ue000"]
        code.append(f"`{raw[start:end].strip('`').strip()}`")
        position = end
    text = _ESCAPE.sub(lambda hit: chr(0xE100 + ord(hit[1])), "".join([*parts, raw[position:]]))
    text = _TAG.sub(lambda hit: " " if hit[0][:3] == "<br" else "", _LINK.sub(lambda hit: hit["text"], text))
    text = html.unescape(_EMPHASIS.sub("", _ITALIC.sub(lambda hit: hit[1], text))).translate(_UNESCAPED)
    rest = iter(code)
    return " ".join("".join(part + next(rest, "") for part in text.split("\ue000")).split())
