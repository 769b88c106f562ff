"""Read a report as passages: the numbers each prints, and the tasks and rollouts it names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

import msgspec

from blade.check.markdown_document import Document, Row, Sentence, Table, parse
from blade.query.figures import Figure

if TYPE_CHECKING:
    from blade.check.report_ground import World


class Tasks(msgspec.Struct, frozen=True):
    """What the tasks of a run are called, and which repeats each has; nothing known: any id will do."""

    keys: dict[str, str] = {}  # what a task goes by -> its key
    repeats: dict[str, frozenset[int]] = {}  # by key

    def key(self, name: str) -> str | None:
        return name if not self.keys else self.keys.get(name)

    def rollout(self, name: str, repeat: int) -> str | None:
        key = self.key(name)
        if not self.keys:
            return f"{name}/{repeat}" if repeat < 16 else None  # 29/72 is a share
        return f"{key}/{repeat}" if key is not None and repeat in self.repeats.get(key, ()) else None


def tasks_of(world: World | None) -> Tasks:
    """The tasks of the runs that a report is about."""
    if world is None:
        return Tasks()
    keys = {}
    for name in world.rows.names:
        found = world.rows.keys(name)
        if len(found) == 1 or name in found:  # the key of one task may be the name of another: the key counts
            keys[name] = name if name in found else found[0]
    repeats = {key: frozenset(world.rows.repeats(key, world.rows.runs)) for key in set(keys.values())}
    return Tasks(keys, repeats)


class Statement(msgspec.Struct, frozen=True):
    """A sentence, a heading or a table row."""

    text: str
    line: int
    last_line: int
    kind: str  # sentence, item, heading, quote, row
    figures: tuple[Figure, ...]
    tasks: frozenset[str]
    rollouts: frozenset[str]


class Passage(msgspec.Struct, frozen=True):
    """A paragraph, a list item, a table row or a heading, with the heading above it."""

    statements: tuple[Statement, ...]
    heading: Statement | None = None
    section: tuple[str, ...] = ()

    @property
    def all(self) -> tuple[Statement, ...]:
        return (*((self.heading,) if self.heading else ()), *self.statements)

    @property
    def tasks(self) -> frozenset[str]:
        return frozenset(task for statement in self.all for task in statement.tasks)

    @property
    def rollouts(self) -> frozenset[str]:
        return frozenset(rollout for statement in self.statements for rollout in statement.rollouts)

    @property
    def text(self) -> str:
        return " ".join(statement.text for statement in self.all)

    @property
    def lines(self) -> frozenset[int]:
        return frozenset(line for each in self.statements for line in range(each.line, each.last_line + 1))


_STRUCK = re.compile(r"~~.+?~~", re.DOTALL)
_HIDDEN = re.compile(
    r"<(?P<tag>\w+)\b[^<>]*\bhidden\b[^<>]*>.*?(?:</(?P=tag)>|\Z)", re.DOTALL | re.IGNORECASE
)


def visible(text: str) -> str:
    """A report without what is struck through or hidden; its lines keep their numbers."""
    for pattern in (_HIDDEN, _STRUCK):
        text = pattern.sub(lambda hit: "\n" * hit[0].count("\n"), text)
    return text


def passages(text: str, known: Tasks) -> list[Passage]:
    """All passages of a report, tables after prose."""
    document = parse(text)
    return [*_prose(document, known), *_rows(document, known)]


def _prose(document: Document, known: Tasks) -> Iterator[Passage]:
    heading: Statement | None = None
    held: list[Statement] = []
    section: tuple[str, ...] = ()
    for sentence in document.sentences:
        starts = not sentence.before or sentence.kind == "heading"
        if starts and held:
            yield Passage(tuple(held), heading, section)
            held = []
        statement = _sentence(sentence, known)
        section = sentence.headings
        if sentence.kind == "heading":
            heading = statement if sentence.depth > 1 else None
            yield Passage((statement,), None, (*section, sentence.text))
        else:
            held.append(statement)
    if held:
        yield Passage(tuple(held), heading, section)


def _sentence(sentence: Sentence, known: Tasks) -> Statement:
    return _statement(sentence.text, (sentence.line, sentence.last_line), sentence.kind, known)


def _statement(
    text: str, lines: tuple[int, int], kind: str, known: Tasks, more: Iterable[str] = (), said: str = ""
) -> Statement:
    """A statement; `more` are tasks that its table names, `said` the cells that hold its numbers."""
    names = [*(name for _, _, name in mentions(text, known)), *more]
    rollouts = frozenset(name for name in names if _is_rollout(name, known))
    tasks = frozenset(name.rpartition("/")[0] if name in rollouts else name for name in names)
    return Statement(text, *lines, kind, tuple(figures(said or text, known)), tasks, rollouts)


def _is_rollout(name: str, known: Tasks) -> bool:
    head, slash, tail = name.rpartition("/")
    return bool(slash) and tail.isdigit() and (not known.keys or known.rollout(head, int(tail)) == name)


# -- table rows -------------------------------------------------------------------------------------

_ID_COLUMN = re.compile(
    r"^(?:tasks?|rollouts?|transcripts?|instances?|problems?|tickets?|questions?|cases?|which|examples?"
    r"|for instance|evidence|tr(?:y|ies)|attempts?|repeats?)\b",
    re.IGNORECASE,
)
_LISTED = re.compile(r"\d\s*[,;/]\s*\d|\d and \d")


def _rows(document: Document, known: Tasks) -> Iterator[Passage]:
    headings = {each.text: each for each in document.sentences if each.kind == "heading"}
    for table in document.tables:
        above = headings.get(table.headings[-1]) if table.headings else None
        heading = _sentence(above, known) if above is not None else None
        columns = _id_columns(table)
        for row in table.rows:
            yield Passage((_row(table, row, columns, known),), heading, table.headings)


def _id_columns(table: Table) -> set[int]:
    """The columns that hold ids: a column called `Tasks` may count them."""
    columns = set()
    for column, head in enumerate(table.header):
        cells = [row.cells[column] for row in table.rows if column < len(row.cells)]
        is_cited = any(cell.comments for cell in cells)
        is_list = any(_LISTED.search(cell.text) for cell in cells) and not is_cited
        is_single = re.match(r"(?:task|rollout|transcript|instance|problem|ticket)\b(?!s)", head.text, re.I)
        if _ID_COLUMN.match(head.text.strip("`* ")) and (is_list or is_single):
            columns.add(column)
    return columns


def _row(table: Table, row: Row, columns: set[int], known: Tasks) -> Statement:
    ids: list[str] = []
    said = []
    for column, cell in enumerate(row.cells):
        if column not in columns:
            said.append(cell.text)
            continue
        for token in re.findall(r"[^\s,;`()]+", cell.text):
            name = _rollout(token.partition("#")[0], known) or known.key(token)
            ids += [name] if name is not None and re.search(r"\d", name) else []
    return _statement(row_text(table, row), (row.line, row.line), "row", known, ids, " | ".join(said) or " ")


def row_text(table: Table, row: Row) -> str:
    """A row as one line: `Category: crm | Tasks: 4`."""
    heads = [cell.text for cell in table.header] + [""] * len(row.cells)
    pairs = zip(heads, row.cells, strict=False)
    return " | ".join(f"{head}: {cell.text}" if head else cell.text for head, cell in pairs)


# -- ids --------------------------------------------------------------------------------------------

_TOKEN = re.compile(r"[^\s`'\"“”|,;:()\[\]{}<>]+")
_NOUN = r"(?:tasks?|problems?|instances?|questions?|tickets?|puzzles?|samples?)"
_ONE = r"[`*#]*\d+[`*]*(?:\s*\([^()]{0,80}\))?"
_LIST = re.compile(
    rf"\b{_NOUN}\s+{_ONE}(?:(?:\s*[,;]\s*(?:and\s+|or\s+)?|\s+(?:and|or|to)\s+){_ONE}(?!\s?%))*", re.I
)
_SERIES = re.compile(r"(?<![\w.,])\d+(?:, \d+)+(?:,? (?:and|or) \d+)?(?![\w%]|\.\d)")


def mentions(text: str, known: Tasks) -> list[tuple[int, int, str]]:
    """Where a text names tasks and rollouts, and which: a bare number only where it is said to be one."""
    places: list[tuple[int, int, str]] = []
    for hit in _TOKEN.finditer(text):
        token = hit[0].rstrip(".!?*_").lstrip("*_").partition("#")[0]
        is_word = known.keys and not token.isdigit()
        if (name := _rollout(token, known) or (known.key(token) if is_word else None)) is not None:
            places.append((hit.start(), hit.end(), name))
    lists = list(_LIST.finditer(text))
    inside = {place for hit in lists for place in range(*hit.span())}
    series = [
        hit for hit in _SERIES.finditer(text) if hit.start() not in inside and _is_series(text, hit, known)
    ]
    for hit in (*lists, *series):
        bare = re.sub(r"\([^()]*\)", lambda inner: " " * len(inner[0]), hit[0])
        for number in re.finditer(r"(?<![\w/])\d+(?![\w/])", bare):
            if (key := known.key(number[0])) is not None:
                places.append((hit.start() + number.start(), hit.start() + number.end(), key))
    return places


def _rollout(token: str, known: Tasks) -> str | None:
    head, slash, tail = token.rpartition("/")
    if not slash or not tail.isdigit() or not (head.isdigit() or known.keys):
        return None
    return known.rollout(head, int(tail))


def _is_series(text: str, hit: re.Match[str], known: Tasks) -> bool:
    """Whether a bare list of numbers is one of tasks: all known, in rising order, three or in brackets."""
    numbers = [int(number) for number in re.findall(r"\d+", hit[0])]
    rises = all(low < high for low, high in pairwise(numbers))
    in_brackets = text[: hit.start()].endswith("(") and text[hit.end() : hit.end() + 1] == ")"
    is_known = bool(known.keys) and all(str(number) in known.keys for number in numbers)
    return rises and is_known and (len(numbers) > 2 or in_brackets)


# -- numbers ----------------------------------------------------------------------------------------

_UNITS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen \
seventeen eighteen nineteen".split()
)
_TENS = dict(
    zip("twenty thirty forty fifty sixty seventy eighty ninety".split(), range(20, 100, 10), strict=True)
)
_WORD = rf"(?:{'|'.join(_TENS)})(?:-(?:{'|'.join(_UNITS[1:10])}))?|{'|'.join(_UNITS[::-1])}|both|half"
_DIGITS = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?"
_FIGURE = re.compile(
    rf"(?<![\w.#/^@-])(?P<number>{_DIGITS}|\b(?:{_WORD})\b)"
    rf"(?:(?P<unit>\s?%|\s?percent\b|[ -]points?\b|\s?pp\b)"
    rf"|\s+(?:out\s+)?of\s+(?:(?:the|its|all|these|those)\s+)?(?P<whole>\d+|\b(?:{_WORD})\b)(?![\w%.]\d))?"
    r"(?![\w@^]|[.,/:]\d|-\d)",
    re.IGNORECASE,
)
# What has digits and counts nothing: code, quotations, levels of confidence, dates.
_ASIDE = re.compile(
    r"`[^`]*`|“[^”]*”|\b(?:90|95|99)\s?%(?=[ -](?:CI|conf|interval))|\b\d{4}-\d\d-\d\d\b"
    r"|\b\d{1,2} (?:Jan|Feb|Mar|Apr|May|June?|July?|Aug|Sep|Oct|Nov|Dec)[a-z]*\b"
    r"|\b(?:steps?|page|line|version|section)\s+\d+(?:\s*(?:,|and|to|–|-)\s*\d+)*",
    re.IGNORECASE,
)


_ONE_OF = re.compile(
    r"\s+(?:\w+\s+)?(?:rollout|repeat|try|attempt|task|call|pass(?:es|ed)|fails?|failed)\b", re.IGNORECASE
)


def figures(text: str, known: Tasks) -> Iterator[Figure]:
    """The numbers that a text prints, in digits or words, without those that name tasks."""
    masked = list(text)
    spans = [(start, end) for start, end, _ in mentions(text, known)]
    for start, end in (*spans, *(hit.span() for hit in _ASIDE.finditer(text))):
        masked[start:end] = " " * (end - start)
    for hit in _FIGURE.finditer("".join(masked)):
        word = hit["number"].lower()
        if word == "one" and not hit["whole"] and not _ONE_OF.match(text, hit.end()):
            continue  # mostly a pronoun
        number, step = _read(word)
        unit = (hit["unit"] or "").strip(" -").lower()
        whole = _read(hit["whole"].lower())[0] if hit["whole"] else None
        yield Figure(
            hit[0], number, step, is_percent=unit in ("%", "percent"),
            is_points=unit[:1] == "p" and unit != "percent", whole=whole, start=hit.start(),
        )  # fmt: skip


def _read(word: str) -> tuple[float, float]:
    """A number in digits or words, and the worth of its last digit."""
    if word[0].isdigit():
        plain = word.replace(",", "")
        return float(plain), 10.0 ** -len(plain.partition(".")[2])
    if word in ("both", "half"):
        return (2.0, 1.0) if word == "both" else (0.5, 0.1)
    tens, _, unit = word.partition("-")
    return float(_TENS.get(tens, 0) + (_UNITS.index(unit or tens) if (unit or tens) in _UNITS else 0)), 1.0
