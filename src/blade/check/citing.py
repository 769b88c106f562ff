"""Find the quotations inside sentences, block quotes and tables, and the rollouts said to hold them."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet

import msgspec

from blade.check.held import Address, squeezed
from blade.check.speech import is_direct, is_said, is_told, is_unsaid, speakers
from blade.prose.document import Document, Quotation, Statement, Table

SHORTEST = 20  # characters from which words in quotation marks are taken for a quotation
_QUOTED = re.compile(
    r"“(?P<a>[^“”]{3,2000})”|(?<![\w\"])\"(?P<b>[^\"]{3,2000})\"(?![\w\"])|«(?P<c>[^«»]{3,2000})»"
    r"|„(?P<d>[^„“”]{3,2000})[“”]|「(?P<e>[^「」]{3,2000})」"
)
_WORDS = re.compile(r"\s\S.*\s\S|[{\[\"=(:]", re.DOTALL)
_CODE = re.compile(r"`[^`]{1,2000}`")
_TASK = re.compile(
    r"\b(?:(?:rollout|repeat)\s+(?P<nth>\d+)\s+(?:of|in|for)\s+)?(?P<noun>task|rollout)s?\s+"
    r"(?:`(?P<code>[^`]{1,200})`|(?P<bare>[\w.#@:+-]*\w(?:/\d+)?)(?![\w/]))"
    r"(?:[,\s]*\(?(?:repeat|rollout)\s+(?P<repeat>\d+))?",
    re.IGNORECASE,
)
_NAME = re.compile(r"`(?P<code>[^`\s]{1,200})`|(?<![\w./-])(?P<bare>[\w.#@:+-]*\w(?:/\d+)?)(?![\w/-])")
_STEPS = re.compile(r"\bsteps?\s+(?P<steps>\d+(?:\s*(?:-|–|to|and|or|,|/)\s*\d+)*)", re.IGNORECASE)
_FIELD = re.compile(r"\bfield\s+`(?P<field>[^`]{1,200})`", re.IGNORECASE)
_ELSEWHERE = re.compile(
    r"\b(?:unlike|other than|except|apart from|besides|as opposed to|compared)\b", re.IGNORECASE
)
_ADVICE = re.compile(
    r"recommend|what to do|next steps|action items|interventions?\b|suggested", re.IGNORECASE
)
_QUOTES = re.compile(r"\b(?:quot\w*|verbatim|excerpts?|snippets?|utterances?)\b", re.IGNORECASE)
_EVIDENCE = re.compile(
    r"\b(?:evidence|errors?|messages?|outputs?|says|said|example|answer|response|repl(?:y|ies)|text)\b",
    re.IGNORECASE,
)
_BY = re.compile(r"\s*(?:[—–]|--|\()\s*(?P<by>[^—–()\n]{3,120}?)\)?\s*$")


class Citing(msgspec.Struct, frozen=True):
    """One quotation, and where the text around it says that it stands."""

    quote: str
    line: int
    last_line: int
    text: str  # the statement, table row or block it stands in
    start: int
    where: tuple[Address, ...]  # as the same statement says
    near: tuple[Address, ...]  # as the statements or headings above it say
    is_firm: bool  # said to stand in a rollout that is named, beyond doubt
    is_spoken: bool  # said to be from some rollout
    is_unsaid: bool  # said not to have been said, or not to be a quotation
    around: str  # what else may name the run
    is_block: bool = False
    is_loose: bool = False  # perhaps a remark, unless some rollout holds it


class Known(msgspec.Struct, frozen=True):
    """The names that tasks go by."""

    names: AbstractSet[str]

    def address(self, word: str, is_marked: bool) -> Address | None:
        """A word as a rollout or task; an unknown one only if it could be nothing else."""
        word = word.strip("`.,;:")
        if word in self.names:
            return Address(word)
        task, slash, repeat = word.rpartition("/")
        if slash and repeat.isdecimal() and len(repeat) < 9 and (task in self.names or is_marked):
            return Address(task, int(repeat))
        return Address(word) if is_marked and re.search(r"\d", word) and not slash else None


def citings(document: Document, known: Known, settled: AbstractSet[tuple[int, str]]) -> list[Citing]:
    """Every quotation of a report that is no fenced block, but for those in statements that are settled."""
    found: list[Citing] = []
    blocks = []
    for aside in document.asides:
        one = _block(aside, known) or _under(aside, paragraph(document, aside.line), known)
        blocks += [one] if one is not None else []
    inside = {line for one in blocks if not one.is_loose for line in range(one.line, one.last_line + 1)}
    for statement in document.statements:
        is_open = statement.line not in inside and (statement.line, statement.text) not in settled
        if is_open and statement.kind == "sentence":
            found += _sentence(statement, known)
    for table in document.tables:
        found += _table(table, known, settled)
    return found + blocks


def is_long(quote: str) -> bool:
    """Whether words in quotation marks are enough to be from somewhere: a few of them, or a piece of data."""
    return len(quote.strip()) >= SHORTEST and bool(_WORDS.search(quote.strip()))


def _quotes(text: str) -> Iterator[tuple[str, int, int]]:
    """The long quotations of a text, outside code."""
    codes = [hit.span() for hit in _CODE.finditer(text)] if "`" in text else []
    for hit in _QUOTED.finditer(text):
        quote = hit[hit.lastgroup or 0]
        is_code = any(start < hit.start() and hit.end() <= end for start, end in codes)
        if not is_code and is_long(quote):
            yield quote, *hit.span()


def _sentence(one: Statement, known: Known) -> Iterator[Citing]:
    quotes = list(_quotes(one.text)) if len(one.text) <= 6_000 else []
    if not quotes:
        return
    outside = _without(one.text, quotes)
    own = addresses(outside, known)
    near = () if own else addresses(one.before, known)[-1:] or addresses(" ; ".join(one.headings), known)[-1:]
    if near and (steps := _steps(outside)):
        near = tuple(msgspec.structs.replace(address, steps=steps) for address in near)
    advice = bool(_ADVICE.search(" ".join(one.headings)))
    for at, (quote, start, end) in enumerate(quotes):
        before, after = outside[:start], outside[end:]
        bound = _bound(one.text, end, known)
        is_spoken = is_said(before, after)
        told = bound or own
        is_led = any(address.repeat is not None for address in addresses(before, known))
        exact = is_led or any(address.steps or address.field for address in told)
        is_firm = bool(bound) or (bool(told) and (exact or is_spoken or is_told(before)))
        if not _has_own_step(outside, quotes, at):
            told = tuple(msgspec.structs.replace(address, steps=()) for address in told)
        yield Citing(
            quote, one.line, one.last_line, one.text, start, told, near,
            is_firm and not _ELSEWHERE.search(outside), is_spoken,
            advice or is_unsaid(before), " ".join((*one.headings, outside)),
        )  # fmt: skip


_BARE = re.compile(
    r"`[^`]*`|[\w.#@:+/-]*\d[\w.#@:+/-]*|\W|\b(?:of|in|for|at|from|on|the|see|tasks?|rollouts?|repeat|run|its)\b",
    re.IGNORECASE,
)


def _has_own_step(outside: str, quotes: Sequence[tuple[str, int, int]], at: int) -> bool:
    """Whether a step is named as the place of this quotation, not of another one or of what came before."""
    _, start, end = quotes[at]
    low = quotes[at - 1][2] if at else 0
    high = quotes[at + 1][1] if at + 1 < len(quotes) else len(outside)
    behind = _STEPS.search(outside, end, high)
    if behind:
        gap = outside[end : behind.start()]
        is_bracketed = bool(re.match(r"[.,]?\s*[(\[]", gap)) and not re.search(r"[)\]]", gap)
        is_last = at + 1 == len(quotes)
        if is_direct(gap) if is_bracketed else is_last and not _BARE.sub("", gap):
            return True
    leading = [
        hit
        for hit in _STEPS.finditer(outside, low, start)
        if not at or _BARE.sub("", outside[low : hit.start()])
    ]
    if not leading:
        return False
    between = outside[leading[-1].end() : start]
    return is_direct(between) and not any(_BARE.sub("", part) for part in speakers(between))


def leads(label: str) -> bool:
    """Whether the step that a label names is the place of what stands below it."""
    return _has_own_step(label, [("", len(label), len(label))], 0)


def unquoted(text: str) -> str:
    """A text without its long quotations."""
    return _without(text, list(_quotes(text)))


def _without(text: str, quotes: Sequence[tuple[str, int, int]]) -> str:
    """A text with its quotations blanked out: what they name is not named by whoever quotes."""
    for _, start, end in quotes:
        text = text[:start] + " " * (end - start) + text[end:]
    return text


def named_in(text: str, known: Known) -> tuple[Address, ...]:
    """The rollout that a line begins with, then the others that it names, which may as well be quoted."""
    lead, named = leading(text, known), addresses(text, known)
    if lead is None:
        return named
    others = (one for one in named if (one.task, one.repeat) != (lead.task, lead.repeat))
    return (lead, *(msgspec.structs.replace(one, steps=()) for one in others))


def _bound(text: str, end: int, known: Known) -> tuple[Address, ...]:
    """The address in brackets right behind a quotation."""
    hit = re.match(r"[.,]?\s*[(\[—–]\s*([^()\[\]“”\"]{2,120})", text[end:])
    return addresses(hit[1], known) if hit else ()


def addresses(text: str, known: Known) -> tuple[Address, ...]:
    """The rollouts and tasks that a text names, with the steps and the field that it names."""
    found: dict[tuple[str, int | None], Address] = {}
    spans = []
    for hit in _TASK.finditer(text):
        is_marked = hit["code"] is not None or hit["noun"].lower() == "task" or "/" in (hit["bare"] or "")
        told = known.address(hit["code"] or hit["bare"], is_marked)
        if told is not None:
            repeat = hit["repeat"] or hit["nth"]
            if repeat and told.repeat is None and len(repeat) < 9:
                told = Address(told.task, int(repeat))
            found[told.task, told.repeat] = told
            spans.append(hit.span())
    for hit in _NAME.finditer(text):
        word = hit["code"] or hit["bare"]
        if word.isdigit() or (hit["code"] is None and not re.search(r"\d", word)):
            continue
        told = known.address(word, False)
        if told is not None and not any(start <= hit.start() < end for start, end in spans):
            found.setdefault((told.task, told.repeat), told)
    steps, field = _steps(text), _FIELD.search(text)
    made = [
        msgspec.structs.replace(one, steps=steps, field=field["field"] if field else None)
        for one in found.values()
    ]
    return tuple(made)


def _steps(text: str) -> tuple[int, ...]:
    found: list[int] = []
    for hit in _STEPS.finditer(text):
        numbers = [int(number) for number in re.findall(r"\d{1,8}", hit["steps"])]
        if re.search(r"-|–|to", hit["steps"]) and len(numbers) == 2 and numbers[1] - numbers[0] < 200:
            numbers = list(range(numbers[0], numbers[1] + 1))
        found += numbers
    return tuple(dict.fromkeys(found))


def _block(block: Quotation, known: Known) -> Citing | None:
    """A block quote that is said to be from a rollout; a remark set off in the same way is none."""
    text, label = block.text, block.label
    by = _BY.search(text)
    told = addresses(by["by"], known) if by else ()
    if by and told:
        text = text[: by.start()]
    is_led = label.rstrip("*_ ").endswith(":")
    outside = _without(label, list(_quotes(label)))
    own = told or (addresses(outside, known) if is_led or is_told(outside) else ())
    is_spoken = is_led and is_said(outside.rstrip("*_: "))
    if not own and not is_spoken:
        return None
    if not told and not leads(outside):
        own = tuple(msgspec.structs.replace(address, steps=()) for address in own)
    quote = text.strip().strip('“”"')
    if len(quote) < SHORTEST or len(squeezed(quote)) < SHORTEST // 2:
        return None
    near = () if own else addresses(" ; ".join(block.headings), known)[-1:]
    around = " ".join((*block.headings, label))
    unsaid = is_unsaid(outside.rstrip(": ")) or bool(_ADVICE.search(" ".join(block.headings)))
    return Citing(
        quote,
        block.line,
        block.last_line,
        block.text,
        0,
        own,
        near,
        bool(own),
        is_spoken,
        unsaid,
        around,
        True,
    )


_REMARK = re.compile(
    r"\W*(?:supported|contradicted|unverifiable|note|nb|n\.b|remark|warning|caveat|important|tip|todo|caution)\b",
    re.IGNORECASE,
)


def _under(block: Quotation, above: str, known: Known) -> Citing | None:
    """A block quote under a line that names a rollout in whatever words; it may still be a remark."""
    outside = unquoted(above)
    lead = leading(outside, known)
    own = named_in(outside, known)
    quote = block.text.strip().strip('“”"')
    if not own or _REMARK.match(block.text) or min(len(quote), 2 * len(squeezed(quote))) < SHORTEST:
        return None
    if lead is None:
        own = tuple(msgspec.structs.replace(address, steps=()) for address in own)
    is_unmeant = is_unsaid(outside.rstrip(": ")) or bool(_ADVICE.search(" ".join(block.headings)))
    return Citing(
        quote, block.line, block.last_line, block.text, 0, own, (), lead is not None, False, is_unmeant,
        " ".join((*block.headings, above)), True, not block.text.lstrip().startswith(("“", '"')),
    )  # fmt: skip


def paragraph(document: Document, line: int) -> str:
    """The paragraph, list item or heading that stands last before a line."""
    parts: list[str] = []
    for at in range(bisect_left(document.statements, line, key=_line) - 1, -1, -1):
        parts.append(document.statements[at].text)
        if not document.statements[at].before:
            break
    return " ".join(reversed(parts))


def _line(one: Statement) -> int:
    return one.line


_LEAD = re.compile(
    r"\W*(?:(?:in|see|from|task|rollout|failing|passing|example)\b\W*){0,3}`(?P<code>[^`\s]{1,200})`"
    r"(?:\W*\(?(?:at\s+)?(?P<steps>steps?\s+\d+(?:\s*(?:-|–|to|and|or|,|/)\s*\d+)*))?",
    re.IGNORECASE,
)


def leading(text: str, known: Known) -> Address | None:
    """The rollout that a line begins with, in backticks; with all steps of the line if one stands behind it.

    What such a line says of other steps may be what is quoted.
    """
    hit = _LEAD.match(text)
    if hit is None:
        return None
    told = known.address(hit["code"], bool(hit["steps"]) and "/" in hit["code"])
    if told is None:
        return None
    return msgspec.structs.replace(told, steps=_steps(text) if hit["steps"] else ())


def _table(table: Table, known: Known, settled: AbstractSet[tuple[int, str]]) -> Iterator[Citing]:
    whole = {at for at, head in enumerate(table.header) if _QUOTES.search(head)}
    told = {at for at, head in enumerate(table.header) if _EVIDENCE.search(head)} | whole
    headings = " ; ".join(table.headings)
    for row in table.rows:
        text = " | ".join(row.cells)
        if (row.line, text) in settled or not any(len(cell) >= SHORTEST for cell in row.cells):
            continue
        start = 0
        own: tuple[Address, ...] | None = None
        for at, cell in enumerate(row.cells):
            quotes = list(_quotes(cell))
            if not quotes and at in whole and is_long(cell):
                quotes = [(cell.strip("`"), 0, len(cell))]
            if quotes and own is None:
                own = _row_address(table, row.cells, known)
            for quote, low, end in quotes:
                near = () if own else addresses(headings, known)[-1:]
                unsaid = at not in told and (is_unsaid(cell[:low]) or bool(_ADVICE.search(headings)))
                bound = _bound(cell, end, known)
                yield Citing(
                    quote, row.line, row.line, text, start + low, bound or own or (), near,
                    bool(bound or own) and at in told, at in whole, unsaid, f"{headings} {text}",
                )  # fmt: skip
            start += len(cell) + 3


_ID_HEAD = re.compile(r"\s*(?:task|rollout|row|example)?s?[ _-]?(?:id|index|name|key)?\s*", re.IGNORECASE)


def _row_address(table: Table, cells: Sequence[str], known: Known) -> tuple[Address, ...]:
    """The rollout that a row is about: its columns of tasks, repeats and steps, else what its cells name."""
    task: Address | None = None
    repeat = steps = None
    for head, cell in zip(table.header, cells, strict=False):
        word = cell.strip("` ")
        number = int(word) if word.isdecimal() and len(word) < 9 else None
        name = head.strip().lower()
        if re.fullmatch(r"repeat|rollout(?: index| number)?|attempt", name) and number is not None:
            repeat = number
        elif re.fullmatch(r"steps?(?: index| number)?", name):
            steps = _steps(f"step {word}")
        elif task is None and name and _ID_HEAD.fullmatch(head):
            task = known.address(re.sub(r"^(?:task|rollout)\s+", "", word, flags=re.IGNORECASE), True)
    if task is None:
        return _joined(addresses(_without(cell, list(_quotes(cell))), known) for cell in cells)
    return (Address(task.task, repeat if task.repeat is None else task.repeat, steps or ()),)


def _joined(parts: Iterable[tuple[Address, ...]]) -> tuple[Address, ...]:
    return tuple(dict.fromkeys(one for part in parts for one in part))
