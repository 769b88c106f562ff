"""Match the passages of a report to anchor facts: by the same query, or by a number beside its names."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

from blade.check import World
from blade.check.markdown_document import Document, Passage, Row, Table, blanked, cells, parse
from blade.model.conclusions import SUPPORTED, Finding
from blade.package.layout import compiled
from blade.query.measures import measure_of
from blade.query.number_readings import Figure, agrees

if TYPE_CHECKING:
    from blade.package.anchors import Anchor, Meaning
    from blade.package.package_queries import Worlds

MOST_NAMED = 3  # tasks up to which a sentence must name all; of more, two thirds
MOST_OTHERS = 2  # tasks beside them that it may name, or half as many
ROLLOUTS = r"(?:rollouts?|repeats?|tr(?:y|ies)|attempts?|runs?|transcripts?|samples?)"


class Tasks(msgspec.Struct, frozen=True):
    """What the tasks of a run are called, and which repeats each has; nothing known: any id will do."""

    keys: dict[str, str] = {}  # what a task goes by -> its key
    repeats: dict[str, frozenset[int]] = {}  # by key

    def key(self, name: str) -> str | None:
        return name if not self.keys else self.keys.get(name)

    def rollout(self, token: str) -> str | None:
        """The rollout that a token such as `12/0` names; where nothing is known 29/72 is a share."""
        head, slash, tail = token.rpartition("/")
        if not slash or not tail.isdigit() or not (head.isdigit() or self.keys):
            return None
        repeat, key = int(tail), self.key(head)
        is_known = repeat in self.repeats.get(key or "", ()) if self.keys else repeat < 16
        return f"{key}/{repeat}" if is_known else None


def tasks_of(world: World | None) -> Tasks:
    """The tasks of the runs that a report is about."""
    if world is None:
        return Tasks()
    keys = {}
    for name in world.rows.names:
        known = world.rows.keys(name)
        if len(known) == 1 or name in known:  # the key of one task may be the name of another: the key counts
            keys[name] = name if name in known else known[0]
    repeats = {key: frozenset(world.rows.repeats(key, world.rows.runs)) for key in set(keys.values())}
    return Tasks(keys, repeats)


# -- the passages of a report -----------------------------------------------------------------------


class Statement(msgspec.Struct, frozen=True):
    """A sentence, a heading or a table row."""

    text: str
    line: int
    last_line: int
    kind: str  # sentence, item, heading, quote, row
    figures: tuple[Figure, ...]
    tasks: frozenset[str]
    rollouts: frozenset[str]


class Paragraph(msgspec.Struct, frozen=True):
    """A paragraph, a list item, a table row or a heading, with the heading above it."""

    statements: tuple[Statement, ...]
    heading: Statement | None = None
    section: tuple[str, ...] = ()

    @property
    def all(self) -> tuple[Statement, ...]:
        return (*((self.heading,) if self.heading else ()), *self.statements)

    @property
    def tasks(self) -> frozenset[str]:
        return named(self.all)

    @property
    def rollouts(self) -> frozenset[str]:
        return frozenset(rollout for statement in self.statements for rollout in statement.rollouts)

    @property
    def text(self) -> str:
        return " ".join(statement.text for statement in self.all)

    @property
    def lines(self) -> frozenset[int]:
        return frozenset(line for part in self.statements for line in range(part.line, part.last_line + 1))


def named(statements: Iterable[Statement]) -> frozenset[str]:
    """The tasks that statements name."""
    return frozenset(task for statement in statements for task in statement.tasks)


_UNSEEN = [  # what is hidden, then what is struck through
    re.compile(pattern, re.DOTALL | re.IGNORECASE)
    for pattern in (r"<(?P<tag>\w+)\b[^<>]*\bhidden\b[^<>]*>.*?(?:</(?P=tag)>|\Z)", r"~~.+?~~")
]


def visible(text: str) -> str:
    """A report without what is struck through or hidden; its lines keep their numbers."""
    for pattern in _UNSEEN:
        text = pattern.sub(lambda hit: "\n" * hit[0].count("\n"), text)
    return text


def passages(text: str, known: Tasks) -> list[Paragraph]:
    """All passages of a report, tables after prose."""
    document = parse(text)
    return [*_prose(document, known), *_rows(document, known)]


def _prose(document: Document, known: Tasks) -> Iterator[Paragraph]:
    paragraphs: list[list[Passage]] = []
    for sentence in document.sentences:
        if sentence.before and sentence.kind != "heading":
            paragraphs[-1].append(sentence)
        else:
            paragraphs.append([sentence])
    heading: Statement | None = None
    for paragraph in paragraphs:
        first, statements = paragraph[0], tuple(_statement(sentence, known) for sentence in paragraph)
        if first.kind == "heading":
            heading = statements[0] if first.depth > 1 else None
            yield Paragraph(statements, None, (*first.headings, first.text))
        else:
            yield Paragraph(statements, heading, first.headings)


def _statement(part: Passage, known: Tasks, ids: Iterable[str] = (), counts: str = "") -> Statement:
    """A statement; `ids` are tasks that its table names, `counts` the cells that hold its numbers."""
    names = [*(name for _, _, name in mentions(part.text, known)), *ids]
    numbered = [name for name in names if re.search(r"/\d+\Z", name)]
    rollouts = frozenset(name for name in numbered if not known.keys or known.rollout(name) == name)
    tasks = frozenset(name.rpartition("/")[0] if name in rollouts else name for name in names)
    numbers = tuple(figures(counts or part.text, known))
    return Statement(part.text, part.line, part.last_line, part.kind, numbers, tasks, rollouts)


_ID_HEAD = re.compile(r"(?:task|rollout|transcript|instance|problem|ticket)\b(?!s)", re.IGNORECASE)


def _rows(document: Document, known: Tasks) -> Iterator[Paragraph]:
    headings = {sentence.text: sentence for sentence in document.sentences if sentence.kind == "heading"}
    for table in document.tables:
        above = headings.get(table.headings[-1]) if table.headings else None
        heading, columns = _statement(above, known) if above is not None else None, set[int]()
        for column, head in enumerate(table.header):
            parts = [row.cells[column] for row in table.rows if column < len(row.cells)]
            is_list = any(re.search(r"\d\s*[,;/]\s*\d|\d and \d", cell.text) for cell in parts)
            is_list = is_list and not any(cell.comments for cell in parts)
            if compiled("id_column").match(head.text.strip("`* ")) and (is_list or _ID_HEAD.match(head.text)):
                columns.add(column)
        for row in table.rows:
            yield Paragraph((_row(table, row, columns, known),), heading, table.headings)


def _row(table: Table, row: Row, columns: set[int], known: Tasks) -> Statement:
    counts = [cell.text for column, cell in enumerate(row.cells) if column not in columns]
    listed = [row.cells[column].text for column in sorted(columns) if column < len(row.cells)]
    tokens = [token for cell in listed for token in re.findall(r"[^\s,;`()]+", cell)]
    names = [known.rollout(token.partition("#")[0]) or known.key(token) for token in tokens]
    ids = [name for name in names if name is not None and re.search(r"\d", name)]
    sentence = Passage(next(cells(table, row)).text, row.line, row.line, table.headings, kind="row")
    return _statement(sentence, known, ids, " | ".join(counts) or " ")


_SERIES = re.compile(r"(?<![\w.,])\d+(?:, \d+)+(?:,? (?:and|or) \d+)?(?![\w%]|\.\d)")


def mentions(text: str, known: Tasks) -> list[tuple[int, int, str]]:
    """Where a text names tasks and rollouts, and which: a bare number only where it is said to be one."""
    places: list[tuple[int, int, str]] = []
    for hit in re.finditer(r"[^\s`'\"“”|,;:()\[\]{}<>]+", text):
        token = hit[0].rstrip(".!?*_").lstrip("*_").partition("#")[0]
        is_word = known.keys and not token.isdigit()
        if (name := known.rollout(token) or (known.key(token) if is_word else None)) is not None:
            places.append((*hit.span(), name))
    lists = list(compiled("task_list").finditer(text))
    inside = {place for hit in lists for place in range(*hit.span())}
    for hit in _SERIES.finditer(text):  # all known, in rising order, three or in brackets
        numbers = [int(number) for number in re.findall(r"\d+", hit[0])]
        in_brackets = text[: hit.start()].endswith("(") and text[hit.end() :].startswith(")")
        is_known = bool(known.keys) and all(str(number) in known.keys for number in numbers)
        is_series = is_known and numbers == sorted(set(numbers)) and (len(numbers) > 2 or in_brackets)
        lists += [hit] if is_series and hit.start() not in inside else []
    for hit in lists:
        bare = re.sub(r"\([^()]*\)", lambda inner: " " * len(inner[0]), hit[0])
        for number in re.finditer(r"(?<![\w/])\d+(?![\w/])", bare):
            if (key := known.key(number[0])) is not None:
                places.append((hit.start() + number.start(), hit.start() + number.end(), key))
    return places


_UNITS = "zero one two three four five six seven eight nine ten eleven twelve".split()
_UNITS += "thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_WORDS = {word: float(number) for number, word in enumerate(_UNITS)} | {"both": 2.0, "half": 0.5}
_WORDS |= {word: 10.0 * number for number, word in enumerate(_TENS, 2)}
_WORD = rf"(?:{'|'.join(_TENS)})(?:-(?:{'|'.join(_UNITS[1:10])}))?|{'|'.join(_UNITS[::-1])}|both|half"
_DIGITS = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?"
_FIGURE = re.compile(
    rf"(?<![\w.#/^@-])(?P<number>{_DIGITS}|\b(?:{_WORD})\b)"
    rf"(?:(?P<unit>\s?%|\s?percent\b|[ -]points?\b|\s?pp\b)"
    rf"|\s+(?:out\s+)?of\s+(?:(?:the|its|all|these|those)\s+)?(?P<whole>\d+|\b(?:{_WORD})\b)(?![\w%.]\d))?"
    r"(?![\w@^]|[.,/:]\d|-\d)",
    re.IGNORECASE,
)
_ONE_OF = re.compile(
    r"\s+(?:\w+\s+)?(?:rollout|repeat|try|attempt|task|call|pass(?:es|ed)|fails?|failed)\b", re.IGNORECASE
)


def figures(text: str, known: Tasks) -> Iterator[Figure]:
    """The numbers that a text prints, in digits or words, without those that name tasks."""
    spans = [(start, end) for start, end, _ in mentions(text, known)]
    spans += [hit.span() for hit in compiled("aside").finditer(text)]
    for hit in _FIGURE.finditer(blanked(text, spans)):
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
    if word[0].isdigit():
        plain = word.replace(",", "")
        return float(plain), 10.0 ** -len(plain.partition(".")[2])
    return sum(_WORDS[part] for part in word.split("-")), 0.1 if word == "half" else 1.0


# -- how an anchor fares ----------------------------------------------------------------------------


class Hit(msgspec.Struct, frozen=True):
    """How an anchor fared: met by what, or denied."""

    anchor: Anchor
    met: bool
    how: str = ""  # citation, number, rollouts, words, wording
    text: str = ""
    line: int = 0
    denied: bool = False


def hit_of(
    anchor: Anchor, meant: Meaning | None, read: Sequence[Paragraph], findings: Sequence[Finding],
    worlds: Worlds | None, known: Tasks,
) -> Hit:  # fmt: skip
    """The best that a report says of an anchor; what it also denies it has not found."""
    hits: list[Hit] = []
    for finding in findings:
        query = finding.query if finding.kind == "citation" and finding.verdict == SUPPORTED else ""
        if query and meant and worlds and is_same_query(anchor.query or "", query, meant, worlds):
            start = finding.text.find(finding.printed)
            hits.append(_hit(anchor, "citation", finding.text, finding.line, start))
    for passage in read:
        hits += _said(anchor, meant, passage) if meant is not None else _worded(anchor, passage, known)
    return next((hit for hit in hits if hit.denied), hits[0] if hits else Hit(anchor, False))


def _hit(anchor: Anchor, how: str, text: str, line: int, start: int) -> Hit:
    denied = is_denied(text, start, anchor)
    return Hit(anchor, not denied, how, text, line, denied)


def is_same_query(first_query: str, second_query: str, meant: Meaning, worlds: Worlds) -> bool:
    """Whether two queries ask the same: letter by letter, or the same measure of the same rollouts."""
    if _plain(first_query) == _plain(second_query):
        return True
    first, second = measure_of(first_query), measure_of(second_query)
    if first is None or second is None or not meant.rollouts or worlds.is_of_others(second_query):
        return False
    is_alike = (first.name, first.argument, first.part) == (second.name, second.argument, second.part)
    return is_alike and worlds.rollouts(second) == meant.rollouts


@lru_cache(maxsize=4096)
def _plain(query: str) -> str:
    bare = re.sub(r"\s*\|\s*(?:percent|points|number|count|list|table)(?:\s+\d)?\s*$", "", query.strip())
    return re.sub(r"\s+", " ", bare).lower().replace("( ", "(").replace(" )", ")")


# -- by a number and names --------------------------------------------------------------------------


def _said(anchor: Anchor, meant: Meaning, passage: Paragraph) -> Iterator[Hit]:
    for number, statement in enumerate(passage.all):
        start, how = _stated(anchor, meant, statement, passage)
        if how and is_about(anchor, meant, number, passage):
            yield _hit(anchor, how, statement.text, statement.line, start)


def is_about(anchor: Anchor, meant: Meaning, number: int, passage: Paragraph) -> bool:
    """Whether it, a neighbour or the passage names the tasks, or the passage a tool, value or field of the query."""
    wanted, every = frozenset(anchor.tasks), passage.all
    spans = ((number, number + 1), (max(0, number - 1), number + 1), (number, number + 2), (0, len(every)))
    least = len(wanted) if len(wanted) <= MOST_NAMED else math.ceil(len(wanted) * 2 / 3)
    for tasks in (named(every[start:end]) for start, end in spans if wanted):  # all or most of them, and few others
        if len(tasks & wanted) >= least and len(tasks - wanted) <= max(MOST_OTHERS, len(wanted) / 2):
            return True
    text = _spelled(passage.text)
    if _has_any(text, meant.names):
        return True
    measure = _MEASURES.get(meant.measure)
    return not wanted and not meant.names and measure is not None and measure.search(text) is not None


_PASSING = re.compile(r"pass(?:es|ed|ing)?\b|pass 1|score|success|accura|solve[sd]?\b")
_SOME = re.compile(r"at least one|some|pass \d|any|all")
_MEASURES = {  # how a text speaks of a measure
    "pass_at_1": _PASSING, "rate": _PASSING, "pass_at_k": _SOME, "pass_hat_k": _SOME,
    "count": re.compile(r"rollouts?|attempts?|rows?|tries"), "tasks": re.compile(r"tasks?|problems?"),
}  # fmt: skip


@lru_cache(maxsize=4096)
def _spelled(text: str) -> str:
    return re.sub(r"[^\w.'-]+", " ", text.lower().replace("_", " "))


def _has_any(text: str, names: Iterable[str]) -> bool:
    """Whether a text, spelled as above, has one of some names as words of its own."""
    plain = (_spelled(name).strip() for name in names)
    return any(name and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) for name in plain)


_ALL = re.compile(r"\b(?:all|every|each|always|both)\b", re.IGNORECASE)
_ONLY = re.compile(r"\bthe (?:only|one|single)\b|\bonly one\b|\bno other\b", re.IGNORECASE)
_NONE = re.compile(r"\b(?:none|no|never|neither|not a single|not one)\b", re.IGNORECASE)
_PASS = re.compile(r"\b(?:pass(?:es|ed|ing)?|solved?|succeeds?|succeeded)\b", re.IGNORECASE)
_FAIL = re.compile(r"\b(?:fail(?:s|ed|ing|ures?)?|lost|loses?)\b", re.IGNORECASE)


def _stated(anchor: Anchor, meant: Meaning, statement: Statement, passage: Paragraph) -> tuple[int, str]:
    """Where a statement says what the anchor says, and how; nowhere: -1 and nothing."""
    for figure in statement.figures:
        if is_number(figure, meant, anchor.tolerance):
            return figure.start, "number"
    if meant.kind == "count" and _lists(anchor, meant, statement, passage):
        return 0, "rollouts"
    only = _ONLY.search(statement.text) if meant.kind == "count" and meant.value == 1 else None
    if only and len(anchor.tasks) == 1 and statement.tasks == set(anchor.tasks):
        return only.start(), "words"
    words = _in_words(meant, statement.text)
    if words is not None and (not meant.names or _has_any(_spelled(statement.text), meant.names)):
        return words.start(), "words"
    return -1, ""


def is_number(figure: Figure, meant: Meaning, tolerance: float = 0.0) -> bool:
    """Whether a printed number can be the anchor's: a share as a percentage, a count as a count."""
    is_share = figure.is_percent or figure.is_points
    if meant.kind == "rate":
        if figure.whole is not None:
            return figure.whole > 0 and abs(figure.number / figure.whole - meant.value) < 1e-9
        is_near = abs(figure.number / (100 if is_share else 1) - meant.value) <= tolerance
        return (is_share or figure.step < 1) and (agrees(figure, meant.value) or is_near)
    is_near = abs(figure.number - meant.value) <= tolerance
    if is_share or meant.kind == "count":
        return not is_share and figure.step == 1 and is_near
    return agrees(figure, meant.value) or is_near


def _lists(anchor: Anchor, meant: Meaning, statement: Statement, passage: Paragraph) -> bool:
    """Whether the rollouts that an anchor counts are listed one by one."""
    for listed in (statement.rollouts, passage.rollouts):
        if len(listed) == meant.value and len(listed) > 1:
            tasks = {name.rpartition("/")[0] for name in listed}
            is_by_task = meant.rollouts is None and anchor.tasks and tasks == set(anchor.tasks)
            if listed == meant.rollouts or is_by_task:
                return True
    is_single = meant.rollouts is not None and len(meant.rollouts) == 1 == meant.value
    is_named = is_single and statement.rollouts == meant.rollouts
    return is_named and _has_any(_spelled(passage.text), meant.names)


def _in_words(meant: Meaning, text: str) -> re.Match[str] | None:
    """Where words say a whole share: all of them pass, none passes, all fail, every repeat does it."""
    every, none = _ALL.search(text), _NONE.search(text)
    passes, fails = _PASS.search(text) is not None, _FAIL.search(text) is not None
    if meant.kind == "rate" and meant.value == 1.0:
        return every if passes and not fails else None
    if meant.kind == "rate" and meant.value == 0.0:
        if none and _PASS.search(text, none.end()):
            return none
        return every if fails and not passes else None
    is_every = meant.kind == "count" and meant.value and meant.value == meant.n_rollouts
    return compiled("every_rollout").search(text) if is_every else None


def _worded(anchor: Anchor, passage: Paragraph, known: Tasks) -> Iterator[Hit]:
    """An anchor without a query: its numbers, ids and names beside each other."""
    wanted = [figure for figure in figures(anchor.fact, known) if figure.number or figure.is_percent]
    tasks = {name.rpartition("/")[0] or name for _, _, name in mentions(anchor.fact, known)}
    tasks |= set(anchor.tasks)
    names = {code or word for code, word in re.findall(r"`([^`]+)`|\b(\w+_\w+)\b", anchor.fact)}
    text = _spelled(passage.text)
    has_names = all(_has_any(text, (name,)) for name in names)
    if not (tasks or names) or not tasks <= passage.tasks or not has_names:
        return
    here = {(figure.number, figure.is_percent) for part in passage.all for figure in part.figures}
    fact, own = (set(re.findall(r"[a-z]{4,}", each.lower())) for each in (anchor.fact, passage.text))
    is_alike = bool(wanted) or len(fact & own) / max(1, len(fact)) >= 0.5
    if is_alike and all((figure.number, figure.is_percent) in here for figure in wanted):
        denied = any(is_denied(part.text, len(part.text), anchor) for part in passage.all)
        yield Hit(anchor, not denied, "wording", passage.text, passage.statements[0].line, denied)


# -- negation ---------------------------------------------------------------------------------------

DENIAL = compiled("denial")
_NEGATIVE = compiled("negative")


def is_denied(text: str, start: int, anchor: Anchor) -> bool:
    """Whether a sentence turns the number at `start` round: denied, or negated where the fact is not."""
    if DENIAL.search(text) and not DENIAL.search(anchor.fact):
        return True
    if _NEGATIVE.search(anchor.fact) or _NEGATIVE.search(anchor.query or ""):
        return False  # the negation is the fact
    return compiled("just_before").search(text[: max(start, 0)]) is not None
