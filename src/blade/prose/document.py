"""Turn Markdown into statements under their headings, tables and quotations, each with its lines."""

from __future__ import annotations

import html
import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import lru_cache

import msgspec


class Statement(msgspec.Struct, frozen=True):
    """A sentence, or a whole list item or heading if it is one."""

    text: str  # without emphasis, links and escapes; code keeps its backticks
    line: int
    last_line: int
    headings: tuple[str, ...]  # the headings above it, outermost first
    before: str = ""  # what stands before it in its paragraph or list item
    lead: str = ""  # the name it is said of, where it or a sentence before it begins with `name`:
    kind: str = "sentence"  # sentence, heading, caption


class Row(msgspec.Struct, frozen=True):
    line: int
    cells: tuple[str, ...]


class Table(msgspec.Struct, frozen=True):
    header: tuple[str, ...]
    rows: tuple[Row, ...]
    line: int
    headings: tuple[str, ...]
    before: str = ""  # the statement above it
    ragged: int = 0  # rows with more or fewer cells than the header


class Quotation(msgspec.Struct, frozen=True):
    """A fenced or indented block, and the statement that introduces it."""

    text: str
    line: int
    last_line: int
    headings: tuple[str, ...]
    label: str
    info: str = ""  # what stands behind the fence: text, sh, json


class Document(msgspec.Struct, frozen=True):
    title: str
    statements: tuple[Statement, ...]
    tables: tuple[Table, ...]
    quotations: tuple[Quotation, ...]
    asides: tuple[Quotation, ...] = ()  # block quotes, whose sentences are statements as well


_FENCE = re.compile(r"^ {0,3}(?P<mark>`{3,}|~{3,})(?P<info>[^`]*)$")
_HEADING = re.compile(r"^ {0,3}(?P<depth>#{1,6})\s+(?P<text>.*?)(?:\s+#+)?\s*$")
_UNDERLINE = re.compile(r"^ {0,3}(?:=+|-{2,})\s*$")
_ITEM = re.compile(r"^(?P<indent>\s*)(?:[-*+•]|\d{1,9}[.)])\s+(?P<text>\S.*)$")
_ASIDE = re.compile(r"^ {0,3}>")
_RULE = re.compile(r"^\s*(?:[-*_]\s*){3,}$")
_DELIMITER = re.compile(r"^\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$")
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_LEAD = re.compile(r"\s*(?:\*\*)?`(?P<name>[^`]{1,200})`(?:\*\*)?:\s")
_BORDER = re.compile(r"(?<!\\)\|")


@lru_cache(maxsize=4)  # a report that is checked and judged is asked for by each who reads it
def document(text: str) -> Document:
    """The whole of a Markdown text, in one pass over its lines."""
    return _Reader(text).read()


class _Reader:
    def __init__(self, text: str) -> None:
        text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
        # A comment is no statement; its line breaks stay, so that lines keep their numbers.
        self.lines = _COMMENT.sub(lambda hit: "\n" * hit[0].count("\n"), text).split("\n")
        self.at = 0
        self.depths: list[tuple[int, str]] = []
        self.statements: list[Statement] = []
        self.tables: list[Table] = []
        self.quotations: list[Quotation] = []
        self.asides: list[Quotation] = []
        self.title = ""

    def read(self) -> Document:
        while self.at < len(self.lines):
            line = self.lines[self.at]
            if not line.strip() or _RULE.match(line):
                self.at += 1
            elif fence := _FENCE.match(line):
                self._fence(fence)
            elif heading := _HEADING.match(line):
                self._heading(len(heading["depth"]), heading["text"])
                self.at += 1
            elif self._starts_table():
                self._table()
            else:
                self._paragraph()
        return Document(
            self.title, tuple(self.statements), tuple(self.tables), tuple(self.quotations), tuple(self.asides)
        )

    @property
    def headings(self) -> tuple[str, ...]:
        return tuple(text for _, text in self.depths)

    def _heading(self, depth: int, text: str) -> None:
        text = plain(text)
        self.depths = [kept for kept in self.depths if kept[0] < depth]
        line = self.at + 1
        self.statements.append(Statement(text, line, line, self.headings, kind="heading"))
        if depth == 1:
            self.title = self.title or text
        else:
            self.depths.append((depth, text))

    def _fence(self, fence: re.Match[str]) -> None:
        mark, start = fence["mark"], self.at
        self.at += 1
        closing = re.compile(rf"^ {{0,3}}{re.escape(mark[0])}{{{len(mark)},}}\s*$")
        inside = []
        while self.at < len(self.lines) and not closing.match(self.lines[self.at]):
            inside.append(self.lines[self.at])
            self.at += 1
        self.at += 1
        end = min(self.at, len(self.lines))
        self.quotations.append(
            Quotation("\n".join(inside), start + 1, end, self.headings, self._last(), fence["info"].strip())
        )

    def _last(self) -> str:
        """The paragraph that stands last so far."""
        if not self.statements or self.statements[-1].kind == "heading":
            return ""
        last = self.statements[-1]
        return f"{last.before} {last.text}".strip()

    def _starts_table(self) -> bool:
        line = self.lines[self.at]
        if "|" not in line:
            return False
        following = self.lines[self.at + 1] if self.at + 1 < len(self.lines) else ""
        return ("|" in following and bool(_DELIMITER.match(following))) or line.lstrip().startswith("|")

    def _table(self) -> None:
        start, before = self.at, self._last()
        header = _cells(self.lines[self.at])
        self.at += 1
        rows, ragged = [], 0
        while self.at < len(self.lines) and "|" in self.lines[self.at]:
            line = self.lines[self.at]
            if not _DELIMITER.match(line):
                cells = _cells(line)
                ragged += len(cells) != len(header)
                rows.append(Row(self.at + 1, cells))
            self.at += 1
        self.tables.append(Table(header, tuple(rows), start + 1, self.headings, before, ragged))

    def _paragraph(self) -> None:
        """A paragraph or one list item: lines up to a blank one or the start of something else."""
        parts: list[str] = []
        places: list[tuple[int, int]] = []
        length, label, start = 0, self._last(), self.at
        is_aside = _ASIDE.match(self.lines[self.at]) is not None
        while self.at < len(self.lines):
            line = self.lines[self.at]
            begins_aside = not is_aside and _ASIDE.match(line)
            if parts and (not line.strip() or begins_aside or self._ends_paragraph(line)):
                if _UNDERLINE.match(line) and line.strip():
                    self._heading(1 if "=" in line else 2, " ".join(parts))
                    self.at += 1
                    return
                break
            item = _ITEM.match(line)
            piece = (item["text"] if item else re.sub(r"^\s*(?:>\s?)*", "", line)).strip()
            places.append((length, self.at + 1))
            parts.append(piece)
            length += len(piece) + 1
            self.at += 1
        raw = " ".join(parts)
        if is_aside:
            self.asides.append(Quotation(plain(raw), start + 1, self.at, self.headings, label))
        self._sentences(raw, places)

    def _ends_paragraph(self, line: str) -> bool:
        starts = _FENCE.match(line) or _HEADING.match(line) or _ITEM.match(line) or _UNDERLINE.match(line)
        return bool(starts) or self._starts_table()

    def _sentences(self, raw: str, places: list[tuple[int, int]]) -> None:
        starts = [start for start, _ in places]
        before: list[str] = []
        lead = ""
        for start, end in _sentence_spans(raw):
            if named := _LEAD.match(raw, start, end):
                lead = named["name"]
            text = plain(raw[start:end])
            if not text:
                continue
            first, last = (places[bisect_right(starts, at) - 1][1] for at in (start, end - 1))
            kind = "caption" if raw[start:end].lstrip().startswith("![") else "sentence"
            said = Statement(text, first, last, self.headings, " ".join(before), lead, kind)
            self.statements.append(said)
            before = [*before, text][-3:]


def _cells(line: str) -> tuple[str, ...]:
    parts = _BORDER.split(line.strip())
    parts = parts[1:] if parts and not parts[0].strip() else parts
    parts = parts[:-1] if parts and not parts[-1].strip() else parts
    return tuple(plain(part.replace("\\|", "|")) for part in parts)


# A full stop ends a sentence before a space and something that can begin one; those of abbreviations do not.
_STOP = re.compile(r"[.!?][\"”’)\]*_]*\s+(?=[\"“‘(\[*_]*[A-Z0-9`ÄÖÜÀ-ÝА-Я])|[。！？]")
_SHORT = re.compile(
    r"\b(?:e\.g|i\.e|etc|vs|cf|approx|resp|nos?|figs?|eq|sec|ca|incl|dr|mr|ms|st)\.$", re.IGNORECASE
)
_SPANS = re.compile(
    r"(?<!`)(`{1,9})(?!`)[^`].{0,2000}?(?<!`)\1(?!`)|“[^“”]{0,2000}”|(?<![\w\"])\"[^\"\n]{3,2000}\"(?![\w\"])"
    r"|\[[^\[\]]{0,2000}\]\([^()\s]{0,2000}\)"
)


def _sentence_spans(raw: str) -> Iterator[tuple[int, int]]:
    closed = [hit.span() for hit in _SPANS.finditer(raw)]
    opens = [start for start, _ in closed]
    start = 0
    for hit in _STOP.finditer(raw):
        at = hit.start()
        inside = bisect_right(opens, at) - 1
        if inside >= 0 and at < closed[inside][1] - 1:
            continue
        if hit[0][0] == "." and _SHORT.search(raw[max(0, at - 12) : at + 1]):
            continue
        yield start, hit.end()
        start = hit.end()
    if raw[start:].strip():
        yield start, len(raw)


_MARKED = re.compile(r"[`*_~\\\[<&]")
_CODE = re.compile(r"(?<!`)(?P<tick>`{1,9})(?!`)(?P<inside>.{1,2000}?)(?<!`)(?P=tick)(?!`)")
_LINK = re.compile(
    r"!?\[(?P<text>[^\[\]]{0,2000})\]\((?:<[^<>]{0,2000}>|[^()\s]{0,2000})(?:\s+\"[^\"]{0,500}\")?\)"
)
_TAG = re.compile(r"</?[A-Za-z][^<>]{0,300}>")
_EMPHASIS = re.compile(r"\*\*|__(?=\S)|(?<=\S)__|~~|(?<![\w*\\])\*(?=\S)|(?<=\S)\*(?![\w*])")
_ESCAPED = re.compile(r"\\([\\`*_{}\[\]()#+\-.!|<>~&$@:\"'^=])")


def plain(text: str) -> str:
    """Inline Markdown as the reader sees it; code keeps its backticks, so that it stays apart from prose."""
    if not _MARKED.search(text):
        return " ".join(text.split())
    found, at = [], 0
    for hit in _CODE.finditer(text):
        if at <= hit.start() and text[hit.start() - 1 : hit.start()] != "\\":
            found += [_unmarked(text[at : hit.start()]), f"`{hit['inside'].strip()}`"]
            at = hit.end()
    found.append(_unmarked(text[at:]))
    return " ".join("".join(found).split())


def _unmarked(text: str) -> str:
    # Escaped signs are put aside while the unescaped ones go.
    kept: list[str] = []

    def aside(hit: re.Match[str]) -> str:
        kept.append(hit[1])
        return "\0"

    text = _LINK.sub(lambda hit: hit["text"], _ESCAPED.sub(aside, text.replace("\0", "")))
    text = html.unescape(_EMPHASIS.sub("", _TAG.sub("", text)))
    parts = text.split("\0")
    return "".join(part + (kept[at] if at < len(kept) else "") for at, part in enumerate(parts))
