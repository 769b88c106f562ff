"""Check quotations: found at the rollout and step they are said to be from, elsewhere, or nowhere."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby

import msgspec

from blade import hostile
from blade.check import row_ids as names
from blade.check.markdown_document import Document, Passage, Quotation, blanked, quotes_in
from blade.check.report_ground import Rows
from blade.check.row_ids import Address, addresses, leading, runs_named, steps_in, without_steps
from blade.check.vocabulary import compiled
from blade.events import step_texts
from blade.formats.rollout_steps import NOTHING, quotable, value_at
from blade.model import Trace
from blade.model.conclusions import CONTRADICTED, SUPPORTED, UNVERIFIABLE, Finding
from blade.model.measurements import PLACEHOLDER
from blade.query.citations import PLACE

SHORTEST = 16  # characters from which words in quotation marks are taken for a quotation
_WORDS = re.compile(r"\s\S.*\s\S|[{\[\"=(:]", re.DOTALL)
_ELSEWHERE = re.compile(r"\b(?:unlike|other than|except|apart from|besides|as opposed to|compared)\b", re.I)
_ADVICE = compiled("advice")
_QUOTES = re.compile(r"\b(?:quot\w*|verbatim|excerpts?|snippets?|utterances?)\b", re.I)
_BY = re.compile(r"\s*(?:[—–]|--|\()\s*(?P<by>[^—–()\n]{3,120}?)\)?\s*$")
_BOUND = re.compile(r"[.,]?\s*[(\[—–]\s*([^()\[\]“”\"]{2,120})")  # in brackets right behind a quotation
_ID_HEAD = re.compile(r"\s*(?:task|rollout|row|example)?s?[ _-]?(?:id|index|name|key)?\s*", re.I)
_BARE = compiled("bare")
_RELATIVE = re.compile(r"\b(?:after|before|since|until|following|beyond)\s+(?:the\s+)?\W*$", re.IGNORECASE)
_SHELLS = ("sh", "bash", "shell", "console")
_TEXTS = ("", "text", "txt", "json", "log")  # of a fence that may hold a quotation


class Excerpt(msgspec.Struct, frozen=True):
    """One quotation, and where the text around it says that it stands."""

    quote: str
    line: int
    lines: tuple[int, ...]
    text: str  # the sentence, table row or label it belongs to
    where: tuple[Address, ...]  # as the same sentence says
    near: tuple[Address, ...]  # as the sentences or headings above it say
    is_firm: bool  # said to stand in a rollout that is named, beyond doubt
    is_spoken: bool  # said to be from some rollout
    is_unsaid: bool  # said not to have been said, or not to be a quotation
    around: str  # what else may name the run
    kind: str = ""  # of a block: fence, indented, quote
    is_loose: bool = False  # perhaps a remark, unless some rollout holds it


def quotations(document: Document, passages: list[Passage], rows: Rows) -> tuple[list[Finding], set[int]]:
    """Every quotation looked up in the rows; and the lines of block quotes, which the report does not say."""
    excerpts = [block for source in document.quotations if (block := _block(source, document, rows))]
    covered = {line for excerpt in excerpts if excerpt.kind == "quote" and not excerpt.is_loose for line in excerpt.lines}
    for is_cell, group in groupby(passages, key=lambda passage: passage.kind == "cell" and passage.line):
        row = list(group)
        own = None if is_cell is False else _row_address(row, rows)
        for passage in row:
            if passage.line not in covered and len(passage.own) <= 6_000:
                excerpts += _in_passage(passage, own, rows)
    judged = _judged(excerpts, rows)
    blocks = {line for excerpt, finding in judged if finding and excerpt.kind == "quote" for line in excerpt.lines}
    return [finding for _, finding in judged if finding is not None], blocks


def _is_long(quote: str) -> bool:
    """Whether words in quotation marks are enough to be from somewhere: a few of them, or a piece of data."""
    return len(quote.strip()) >= SHORTEST and bool(_WORDS.search(quote.strip()))


def _unquoted(text: str) -> str:
    """A text without its quotations: what they name is not named by whoever quotes."""
    return blanked(text, [(start, end) for quote, start, end in quotes_in(text) if _is_long(quote)])


def _is_cited(places: tuple[Address, ...]) -> bool:
    return any(place.is_pinned for place in places)


def _in_passage(passage: Passage, row: tuple[Address, ...] | None, rows: Rows) -> Iterator[Excerpt]:
    """The quotations of a sentence, or of a cell in a row that is about some rollout."""
    text = passage.own
    for comment in reversed(passage.comments):  # “…”<!--blade: 12/0#4-->
        body = comment.text.removeprefix("blade:").strip()
        if comment.text.startswith("blade:") and PLACE.fullmatch(body):
            text = f"{text[: comment.offset]} ({body}){text[comment.offset :]}"
    hits = [(quote, _BOUND.match(text, quote[2])) for quote in quotes_in(text)]
    bound = {quote: addresses(hit[1], rows) if hit else () for quote, hit in hits}
    exact = {quote for quote, places in bound.items() if any(place.repeat is not None for place in places)}
    quotes = [quote for quote in bound if _is_long(quote[0]) or quote in exact]
    # words in code are quoted where their step stands right behind them
    for code in re.finditer(r"`([^`]*[^`\s]\s[^`]{6,})`", text):
        hit = _BOUND.match(text, code.end())
        if hit and _is_cited(places := addresses(hit[1], rows)):
            bound[code[1], code.start(), code.end()] = places
            quotes.append((code[1], *code.span()))
    is_whole = row is not None and _QUOTES.search(passage.header) is not None
    if not quotes and is_whole and _is_long(text):
        quotes = [(text.strip("`"), 0, len(text))]
    if not quotes:
        return
    outside = blanked(text, [(start, end) for _, start, end in quotes])
    own, above = addresses(outside, rows) if row is None else row, " ; ".join(passage.headings)
    near = () if own else addresses(passage.before, rows)[-1:] or addresses(above, rows)[-1:]
    if steps := steps_in(outside):
        near = tuple(msgspec.structs.replace(place, steps=steps) for place in near)
    is_evidence = is_whole or (row is not None and compiled("evidence").search(passage.header) is not None)
    for number, (quote, start, end) in enumerate(quotes):
        before, tied = outside[:start], bound.get((quote, start, end), ())
        where, is_spoken = tied or own, is_whole or (row is None and _is_said(before, outside[end:]))
        is_exact = any(place.repeat is not None for place in addresses(before, rows))
        is_exact = is_exact or any(place.steps or place.field for place in where)
        is_led = is_evidence if row is not None else is_exact or is_spoken or _has(compiled("reported"), before)
        if row is None and not _is_cited(tied) and not _has_own_step(outside, quotes, number):
            where = without_steps(where, even_pinned=True)
        is_firm = bool(tied) or (bool(where) and is_led)
        is_unmeant = _has(_UNSAID, before) or _ADVICE.search(above) is not None
        yield Excerpt(
            quote, passage.line, passage.lines, passage.text, where, near,
            is_firm and not _ELSEWHERE.search(outside), is_spoken,
            is_unmeant and not is_evidence and not _is_cited(tied), f"{above} {passage.text} {outside}",
        )  # fmt: skip


def _has_own_step(outside: str, quotes: Sequence[tuple[str, int, int]], number: int) -> bool:
    """Whether a step is named as the place of this quotation, not of another one or of what came before."""
    _, start, end = quotes[number]
    low = quotes[number - 1][2] if number else 0
    high = quotes[number + 1][1] if number + 1 < len(quotes) else len(outside)
    steps = [span for span in names.step_spans(outside) if low <= span[0] and span[1] <= high]
    steps = [span for span in steps if not _RELATIVE.search(outside[: span[0]])]
    behind = next((first for first, _ in steps if first >= end), None)
    if behind is not None and not _has(_ONWARD, gap := outside[end:behind]):
        is_bracketed = bool(re.match(r"[.,]?\s*[(\[]", gap)) and not re.search(r"[)\]]", gap)
        if is_bracketed or (number + 1 == len(quotes) and not _BARE.sub("", gap)):
            return True
    before = [span for span in steps if span[1] <= start]
    before = [span for span in before if not number or _BARE.sub("", outside[low : span[0]])]
    between = outside[before[-1][1] : start] if before else ""
    speakers = (between[: hit.start()] for hit in compiled("speaker").finditer(between))
    return bool(before) and not _has(_ONWARD, between) and not any(_BARE.sub("", part) for part in speakers)


def _block(block: Quotation, document: Document, rows: Rows) -> Excerpt | None:
    """A fenced block or a block quote that may be from a rollout."""
    parts, is_quote = list[str](), block.kind == "quote"
    first = bisect_left(document.sentences, block.line, key=lambda sentence: sentence.line)
    for sentence in (document.sentences[place] for place in range(first - 1, -1, -1)):
        parts.append(sentence.text)  # the paragraph, list item or heading above it
        if not sentence.before or len(parts) > 40:
            break
    above, text, info = " ".join(reversed(parts)), block.text, block.info.lower()
    outside, headings = _unquoted(above), " ; ".join(block.headings)
    by = _BY.search(text) if is_quote else None
    signed = addresses(by["by"], rows) if by else ()
    text = text[: by.start()] if by and signed else text
    lead, is_led = leading(outside, rows), above.rstrip("*_ ").endswith(":")
    where = signed or addresses(outside, rows)
    if lead is not None and not signed:  # the rollout that a line begins with, then the others that it names
        where = (lead, *without_steps(tuple(place for place in where if place.rollout != lead.rollout)))
    is_pinned = _is_cited(where) or bool(signed)
    leads = lead.steps if lead is not None else _has_own_step(outside, [("", len(outside), len(outside))], 0)
    where = where if is_pinned or leads else without_steps(where)
    is_spoken = is_quote and is_led and _is_said(outside.rstrip("*_: "))
    quote = text.strip().strip('“”"') if is_quote else text.strip()
    is_short = min(len(quote), 2 * len(squeezed(quote))) < SHORTEST
    if not quote or info in _SHELLS or (not where and (info not in _TEXTS or (is_quote and not is_spoken))):
        return None
    is_sure = is_led or bool(signed) or (is_quote and block.text.lstrip().startswith(("“", '"')))
    is_loose = not is_sure and (is_quote or lead is None or not lead.steps)
    if is_quote and ((is_short and not is_pinned) or (is_loose and compiled("remark").match(block.text))):
        return None
    is_exact = lead is not None and (lead.repeat is not None or bool(lead.steps))
    is_unmeant = _has(_UNSAID, outside.rstrip("*_: ")) or _ADVICE.search(headings) is not None
    return Excerpt(
        quote, block.line, tuple(range(block.line, block.last_line + 1)), above or block.text, where,
        () if where else addresses(headings, rows)[-1:], bool(where) and (is_pinned or is_led or is_exact),
        is_spoken, is_unmeant and not signed,
        f"{headings} {above}", block.kind, is_loose,
    )  # fmt: skip


def _row_address(row: Sequence[Passage], rows: Rows) -> tuple[Address, ...]:
    """The rollout that a row is about: its columns of tasks, repeats and steps, else what its cells name."""
    task, repeat, steps = None, None, tuple[int, ...]()
    for cell in row if any(len(passage.own) >= SHORTEST for passage in row) else ():
        word, head = cell.own.strip("` "), cell.header.strip().lower()
        if re.fullmatch(r"(?:repeat|rollout(?: index| number)?|attempt) [0-9]{1,8}", f"{head} {word}"):
            repeat = int(word)
        elif re.fullmatch(r"steps?(?: index| number)?", head):
            steps = steps_in(f"step {word}")
        elif task is None and head and _ID_HEAD.fullmatch(head):
            word = re.sub(r"^(?:task|rollout)\s+", "", word, flags=re.IGNORECASE)
            task = next(iter(addresses(word, rows)), None) or names.address_of(word, rows, True)
    if task is None:
        parts = (addresses(_unquoted(cell.own), rows) for cell in row)
        return tuple(dict.fromkeys(place for part in parts for place in part))
    repeat = repeat if task.repeat is None else task.repeat
    return (task if task.is_pinned else Address(task.task, repeat, steps),)


def _judged(excerpts: Sequence[Excerpt], rows: Rows) -> list[tuple[Excerpt, Finding | None]]:
    texts, results, left = RowTexts(rows), list[tuple[Excerpt, Finding | None]](), list[Excerpt]()
    for excerpt in excerpts:
        runs, stated = runs_named(excerpt.around, rows.runs), (*excerpt.where, *excerpt.near)
        place = next((there for where in stated if (there := texts.at(excerpt.quote, where, runs))), None)
        if place is None:
            left.append(excerpt)
        elif any(where.task in rows.ambiguous and not where.is_pinned for where in stated):
            why = "the task that is named can be two tasks: the index of one is the name of another"
            results.append((excerpt, _finding(excerpt, UNVERIFIABLE, why)))
        else:
            is_kept = not excerpt.is_unsaid or excerpt.kind == "fence"
            why = f"stands in {_shown(place, rows)}"
            results.append((excerpt, _finding(excerpt, SUPPORTED, why) if is_kept else None))
    places = texts.anywhere(dict.fromkeys(excerpt.quote for excerpt in left if not excerpt.is_unsaid))
    return results + [(excerpt, _elsewhere(excerpt, places, texts)) for excerpt in left]


def _elsewhere(excerpt: Excerpt, places: dict[str, Address | None], texts: RowTexts) -> Finding | None:
    """A quotation that does not stand where the text around it says, if it says anything."""
    if excerpt.is_unsaid:
        is_fence = excerpt.kind in ("fence", "indented")
        return _finding(excerpt, UNVERIFIABLE, "the text does not quote a rollout here") if is_fence else None
    if excerpt.quote not in places:
        return _finding(excerpt, UNVERIFIABLE, "there is too much to look for in all rows")
    place, stated = places[excerpt.quote], excerpt.where or excerpt.near
    meant = " or ".join(map(str, stated[:4]))
    if place is None:
        if squeezed(excerpt.quote) in squeezed(texts.rows.notes):
            return _finding(excerpt, SUPPORTED, "stands in the notes beside the run")
        if excerpt.is_loose and excerpt.kind == "quote" and not any(where.steps for where in excerpt.where):
            return None  # a remark
        if (excerpt.is_firm and not excerpt.is_loose) or excerpt.is_spoken:
            subject = f"neither {meant} nor any other" if stated else "no"
            return _finding(excerpt, CONTRADICTED, f"{subject} rollout holds this text")
        return _finding(excerpt, UNVERIFIABLE, "no rollout holds these words; nothing says that one does")
    if not excerpt.where or not excerpt.is_firm:
        return _finding(excerpt, SUPPORTED, f"stands in {_shown(place, texts.rows)}")
    # Where it stands in the rollout that is meant tells more than where it stands first.
    wider = [where.rollout for where in stated] + [Address(where.task) for where in stated]
    runs = runs_named(excerpt.around, texts.rows.runs)
    place = next((there for where in wider if (there := texts.at(excerpt.quote, where, runs))), place)
    expected = f"it stands in {_shown(place, texts.rows)}"
    return _finding(excerpt, CONTRADICTED, f"it does not stand in {meant}", expected)


def _shown(place: Address, rows: Rows) -> str:
    return f"{place} of run {place.run}" if len(rows.runs) > 1 and place.run else str(place)


def _finding(excerpt: Excerpt, verdict: str, why: str, expected: str = "") -> Finding:
    tasks = tuple(dict.fromkeys(str(where.rollout) for where in excerpt.where))
    reading = f"a quotation of {' or '.join(map(str, excerpt.where[:4]))}" if excerpt.where else "a quotation"
    place = (excerpt.line, excerpt.lines, excerpt.text, hostile.line(excerpt.quote, 300))
    return Finding(verdict, "quotation", *place, expected, reading, why, tasks=tasks)

_UNSAID = compiled("unsaid")
_ONWARD = compiled("onward")
_REACH = 120  # characters before a quotation that say what it is


def _has(pattern: re.Pattern[str], text: str) -> bool:
    return pattern.search(text[-_REACH:]) is not None


def _is_said(before: str, after: str = "") -> bool:
    return _has(compiled("said_before"), before) or _has(compiled("said_after"), after[:_REACH])


_CUT = re.compile(r"\s*(?:\[?(?:…|\.{3,})\]?(?:\s*\([\d,]+ characters more\))?)\s*")
_BREAK = re.compile(r"\\+[nrt]")
_SAME = str.maketrans(
    dict.fromkeys("“”„‟«»‘’‚‛\"'", "'") | dict.fromkeys("–—−‐‑", "-") | dict.fromkeys("\\*`", "")
)
_EDGES = ".,;:!?'"
_WORK = 3_000_000_000  # characters compared in a search of all rows, at most


def squeezed(text: str) -> str:
    """A text without what quoting changes: white space, escaped line breaks, marks, emphasis, case."""
    return "".join(_BREAK.sub(" ", text).translate(_SAME).casefold().split())


@lru_cache(maxsize=1_000)
def pieces(quote: str) -> tuple[list[str], list[str]]:
    """The parts of a quotation between its cuts, squeezed; then those where [words] are cuts as well."""
    text, forms = PLACEHOLDER.sub("…", quote), []  # it stands for something that was taken out
    for form in (text, re.sub(r"\[[^\[\]]{0,80}\]", "…", text)):  # a word of whoever quotes
        parts = [squeezed(part) for part in _CUT.split(form)]
        parts[0], parts[-1] = parts[0].lstrip(_EDGES), parts[-1].rstrip(_EDGES)
        forms.append([part for part in parts if part])
    return forms[0], forms[1]


def holds(text: str, quote: str) -> bool:
    """Whether a squeezed text has all pieces of a quotation in order."""
    for parts in pieces(quote):
        place = 0
        for part in parts:
            place = text.find(part, place) + len(part)
            if place < len(part):
                break
        else:
            return True
    return False


class RowTexts:
    """The texts of rows, squeezed, opened as they are asked for."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self._of = lru_cache(maxsize=200)(self._texts)

    def at(self, quote: str, where: Address, runs: Iterable[str]) -> Address | None:
        """Where a quotation stands in the rollouts of an address, at its steps or field if it names any."""
        for trace, text in (pair for run in runs for pair in self._of(run, where.task, where.repeat)):
            place = _in_trace(quote, trace, text, where)
            if place is not None:
                return place
        is_failure = bool(where.field) and quote.strip() in self.rows.failures(where.task, where.repeat)
        return where.rollout if is_failure else None

    def anywhere(self, quotes: Iterable[str]) -> dict[str, Address | None]:
        """The first rollout that holds each quotation, or None; what was not looked for is left out."""
        wanted = [quote for quote in quotes if pieces(quote)[1]]
        places: dict[str, Address | None] = {}
        work = 0
        for trace in (trace for run in self.rows.runs if wanted for trace in self.rows.each(run)):
            left = [quote for quote in wanted if quote not in places]
            text = squeezed(quotable(trace.row))
            work += len(text) * (len(left) + 20)
            if work > _WORK or not left:
                return places
            places |= {quote: _in_trace(quote, trace, text, None) for quote in left if holds(text, quote)}
        return dict.fromkeys(wanted) | places

    def _texts(self, run: str, task: str, repeat: int | None) -> list[tuple[Trace, str]]:
        return [(trace, squeezed(quotable(trace.row))) for trace in self.rows.at(run, task, repeat)]


def _in_trace(quote: str, trace: Trace, text: str, where: Address | None) -> Address | None:
    rollout = Address(trace.rollout.task, trace.rollout.repeat, run=trace.rollout.run)
    if where is not None and where.field is not None:
        value = value_at(trace.row, where.field)
        is_there = value is not NOTHING and holds(squeezed(quotable(value)), quote)
        return msgspec.structs.replace(rollout, field=where.field) if is_there else None
    is_step = where is not None and bool(where.steps)
    if not is_step and not holds(text, quote):
        return None
    calls = {step.call_id: step.index for step in trace.steps if step.kind == "call" and step.call_id}
    for step in trace.steps:  # a result may go by the step of its call, as in the table of calls
        own = (step.index, calls.get(step.call_id or "", -1) if step.kind == "result" else -1)
        is_meant = where is None or not is_step or not {*own}.isdisjoint(where.steps)
        if is_meant and any(holds(squeezed(part), quote) for part in step_texts(step)):
            return msgspec.structs.replace(rollout, steps=(step.index,))
    return None if is_step else rollout
