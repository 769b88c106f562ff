"""Verify cited numbers, lists and tables: ask each query again and compare at the printed precision."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any

import msgspec

from blade.check.markdown_document import Comment, Document, Passage, parse
from blade.check.quotations import squeezed
from blade.check.report_ground import World
from blade.errors import BladeError, UsageError
from blade.model.conclusions import CONTRADICTED, SUPPORTED, UNVERIFIABLE, Finding
from blade.model.measurements import PLACEHOLDER
from blade.query import citations
from blade.query.citations import PLACE, Citation, in_words
from blade.query.measures import RATES, Answer, measure_of
from blade.query.number_readings import Figure, agrees, interval, last_figure, readings
from blade.query.query_ground import Ground, Table
from blade.query.query_process import STRING, is_ours

_RUN = re.compile(r"\brun\s*(?:=|==|\bin\b)\s*\(?\s*((?:'(?:[^']|'')*'[\s,]*)+)", re.IGNORECASE)
# Units that stand elsewhere: behind the comment, behind the end of a range, in the header, in the sentence.
_UNIT = re.compile(r"(?:\s?(?:[-–—]|to)\s?[\d.]+)?\s?(?P<unit>%|per ?cent\b|(?:percentage )?points?\b)")
_PERCENT, _IN_PERCENT = re.compile(r"(?P<unit>%)"), re.compile(r"\bin (?P<unit>%|per ?cent\b)", re.IGNORECASE)
_CLAIM = re.compile(r"c\d+")
_UNASKED = re.compile(r"stopped|memory|names none|cannot be (?:asked|made) here")  # the query may be right
_FALLS = re.compile(
    r"\b(?:drop|fall|fell|declin\w+|decreas\w+|loss|los[et]s?|lower|down|less|fewer|below|behind)\b", re.I
)
Verdict = tuple[bool | None, str, str]  # whether it holds, if that can be said; what is printed; what is expected


class Cited(msgspec.Struct, frozen=True):
    """A citation and what it stands behind."""

    citation: Citation
    before: str  # since the citation before it
    line: int
    lines: tuple[int, ...]
    text: str
    passage: Passage | None = None
    start: int = 0  # of what is cited in the passage
    end: int = 0
    after: int = 0  # where the citation before it ends
    unit: str = ""  # that stands elsewhere


def cited(document: Document, passages: Sequence[Passage], text: str) -> list[Cited]:
    """Every citation of a report, filled in or still open."""
    names = citations.definitions(text) if "<!--blade claims" in text else {}
    items = [item for passage in passages for item in _in_passage(passage, names)]
    placed = {(comment.line, comment.text) for passage in passages for comment in passage.comments}
    alone = [comment for comment in document.comments if (comment.line, comment.text) not in placed]
    return items + list(_alone(alone, text.split("\n"), names))


def _citation(text: str, names: dict[str, str], listed: str) -> Citation | None:
    """The citation in a comment; a claim that a list of claims lacks is one too, and wrong."""
    citation = citations.citation_in(text, names, 0, 0, listed)
    is_lost = citation is None and names and _CLAIM.fullmatch(text)
    return Citation(text, "", None, 0, 0, False) if is_lost else citation


def _in_passage(passage: Passage, names: dict[str, str]) -> Iterator[Cited]:
    opened, last, own = None, 0, passage.own
    for comment in passage.comments:
        listed = own[opened:comment.offset] if opened is not None else ""
        citation = _citation(comment.text, names, listed)
        opened = comment.offset if comment.text == "blade" else opened
        if citation is None:
            continue
        before = own[last : comment.offset].rstrip() or own[: comment.offset] or passage.before
        if last and re.search(r"[\d%]$", own[:last]):
            before = re.sub(r"^\s?[-–—]\s?(?=[\d.])", "", before)  # 32.4%–52.3% has no minus
        unit = _UNIT.match(own, comment.offset) or _PERCENT.search(passage.header) or _IN_PERCENT.search(own)
        figure = last_figure(before) if PLACE.fullmatch(citation.query) is None else None
        start = comment.offset - (len(before[-200:]) - figure.start if figure is not None else 0)
        span = (max(last, start) if opened is None else opened, comment.offset, last)
        place = (comment.line, (comment.line,), passage.text, passage, *span)
        yield Cited(citation, before, *place, unit["unit"] if unit else "")
        opened, last = None, comment.offset
    for hit in citations.OPEN.finditer(re.sub(r"`[^`]*`", lambda code: " " * len(code[0]), own)):
        citation = Citation(hit["query"], "", None, 0, 0, True)
        yield Cited(citation, hit[0], passage.line, passage.lines, passage.text, passage, *hit.span())


def _alone(comments: Sequence[Comment], lines: list[str], names: dict[str, str]) -> Iterator[Cited]:
    """Citations on lines of their own: below a table, or below the line that ends with the number."""
    opened: int | None = None
    for comment in comments:
        first = comment.line - 1 if opened is None else opened
        block = "\n".join(lines[first : comment.line - 1])
        citation = _citation(comment.text, names, "" if opened is None else block)
        opened = comment.line if comment.text == "blade" else opened
        if citation is not None:
            before = "\n".join(lines[max(0, comment.line - 4) : comment.line - 1])
            place = (comment.line, tuple(range(max(1, first), comment.line + 1)))
            yield Cited(citation, before, *place, (block or before).strip()[-300:])
            opened = None


def verified(item: Cited, ground: Ground) -> Finding:
    """Whether what is printed is what the query gives now."""
    citation, reading, figure = item.citation, in_words(item.citation.query), last_figure(item.before)
    printed = figure.text.strip() if figure is not None else item.before[-80:].strip()
    runs = [name for part in _RUN.findall(citation.query) for name in STRING.findall(part)]
    missing = [run for run in runs if run[1:-1].replace("''", "'") not in ground.runs]
    if citation.is_open or missing:
        why = f"the run {missing[0]} was not given" if missing else "not filled in yet: run `blade cite`"
        return _finding(item, UNVERIFIABLE, printed, "", reading, why)
    if _CLAIM.fullmatch(citation.query):
        return _finding(item, CONTRADICTED, printed, "", reading, "this claim is not in the list of claims")
    try:
        answer = ground.ask(citation.query)
    except BladeError as error:
        is_wrong = not is_ours(citation.query) and not _UNASKED.search(error.message)
        return _finding(item, CONTRADICTED if is_wrong else UNVERIFIABLE, printed, "", reading, error.message)
    try:
        holds, stated, expected = _verdict(item, answer, ground)
    except BladeError as error:
        return _finding(item, UNVERIFIABLE, printed, "", reading, error.message)
    if holds is None:
        return _finding(item, UNVERIFIABLE, printed, expected, reading, "no number stands before the citation")
    if not holds and PLACEHOLDER.search(f"{stated} {citation.query}"):
        return _finding(item, UNVERIFIABLE, stated, "", reading, "a redacted text is not compared")
    reading += f" = {expected}" if "\n" not in citation.cited else ""
    if isinstance(answer, list) and len(answer) == 1 and answer[0].n not in (None, answer[0].value):
        reading += f", n = {answer[0].n:,} {answer[0].unit}"
    name, why = (SUPPORTED, "") if holds else (CONTRADICTED, "the query gives another value")
    return _finding(item, name, stated, expected, reading, why)


def _verdict(item: Cited, answer: list[Answer] | Table, ground: Ground) -> Verdict:
    citation, before = item.citation, item.before
    if is_sentence(item, ground):
        value, printed = str(_value(answer)), before.strip()
        if item.passage is not None and not item.after:  # it may be several sentences
            printed = f"{item.passage.before} {printed}".strip()
        return _states(printed, value), printed[-200:], value[:200]
    n = len(answer.rows) * len(answer.columns) if isinstance(answer, Table) else len(answer)
    expected = citations.shown_as(answer, citation)
    if "\n" in citation.cited:
        return _same_table(citation.cited, answer), "the table", expected[:200]
    cited = citation.cited or (before[-len(expected) :] if citation.form == "list" else "")
    if cited:
        return _normal(cited) == _normal(expected), cited.strip()[:200], expected[:200]
    if n != 1 and citation.form != "list":
        raise UsageError(f"the query gives {n} values, not one", "", "bad-query")
    verdict = _number(before, answer, citation.query, expected)
    if not verdict[0] and item.unit and re.search(r"\d[\]) ]*$", before):
        other = _number(f"{before.rstrip(') ]')} {item.unit}", answer, citation.query, expected)
        return other if other[0] else verdict
    return verdict


def _number(before: str, answer: list[Answer] | Table, query: str, expected: str) -> Verdict:
    """Whether the number that a text ends with is the value, at the printed precision."""
    figure, value = _read(before, _value(answer), query)
    if isinstance(value, str) or value is None:
        printed = before[-len(expected) - 8 :].strip()
        return _normal(before).endswith(_normal(expected)), printed, expected
    if figure is None:
        return None, "", expected
    measure = measure_of(query)
    is_share = measure is not None and measure.name in RATES and measure.part != "n"
    is_whole = figure.is_bare and figure.step == 1 and figure.whole is None and not figure.bound
    is_coarse = is_share and is_whole and abs(figure.number - value) > 0.005  # 0 for 42%
    holds = agrees(figure, value) and not is_coarse
    ends, limits = interval(before), [answer[0].low, answer[0].high] if isinstance(answer, list) else [None]
    if holds and ends and None not in limits and not all(map(agrees, ends, limits)):
        printed = f"[{ends[0].text}, {ends[1].text}]"
        return False, printed, f"[{', '.join(map(_beside, ends, limits, ('', '')))}]"
    return holds, figure.text.strip(), _beside(figure, value, expected)


def _read(before: str, value: Any, query: str) -> tuple[Figure | None, Any]:
    """The number before a citation, and the value as it may be told: in percent already, or as a drop."""
    read = list(readings(before))
    if isinstance(value, int | float) and not isinstance(value, bool):
        values = [(value, False), *([(value / 100, True)] if measure_of(query) is None else [])]
        values += [(-number, is_share) for number, is_share in values if number < 0 and _FALLS.search(before)]
        for number, is_share in values:
            for figure in read:
                if agrees(figure, number) and not (is_share and figure.is_bare):
                    return figure, number
    return read[0] if read else None, value


def _beside(figure: Figure, value: Any, expected: str) -> str:
    """The value in the unit in which the text prints it, with the digits that tell it from what is printed."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return expected
    if figure.is_percent or figure.is_points:
        return f"{value * 100:.4g}{'%' if figure.is_percent else ' points'}"
    return f"{value:,.6g}" if isinstance(value, float) and not value.is_integer() else f"{int(value):,}"


def _normal(text: str) -> str:
    return re.sub(r"[\s*_`\\]+", " ", text).strip().strip(".,;:").lower()


def is_sentence(item: Cited, ground: Ground) -> bool:
    """Whether a citation of ours is about the whole sentence that the engine writes."""
    try:
        is_engine = item.citation.query.startswith("engine.") and not item.citation.is_open
        return is_engine and isinstance(_value(ground.ask(item.citation.query)), str)
    except BladeError:
        return False


def _value(answer: list[Answer] | Table) -> Any:
    if isinstance(answer, Table):
        return answer.rows[0][0] if answer.shape == (1, 1) else None
    return answer[0].value if len(answer) == 1 else None


def _states(printed: str, value: str) -> bool:
    """Whether a text ends with a sentence of the engine as it writes it now, or with its beginning."""
    tail, written = squeezed(printed), squeezed(value)
    cuts = range(min(len(written), 2_000), 4, -1)
    ends = any(tail.rstrip(".…").endswith(written[:length]) for length in cuts)
    parts = [part.strip(".…;:") for part in tail.split("astoldabove")]  # a page does not repeat itself
    return written in tail or ends or (len(parts[-1]) > 7 and all(part in written for part in parts))


def _same_table(printed: str, answer: list[Answer] | Table) -> bool:
    """Whether every cell of a printed table is what the query gives, at its precision."""
    rows = answer.rows if isinstance(answer, Table) else [(entry.group, entry.value, entry.n) for entry in answer]
    tables = parse(printed).tables
    if len(tables) != 1 or len(tables[0].rows) != len(rows[: citations.MAX_TABLE]):
        return False
    for row, values in zip(tables[0].rows, rows, strict=False):
        for cell, value in zip_longest(row.cells, values[: len(row.cells)]):
            figure = last_figure(cell.text) if isinstance(value, int | float) and not isinstance(value, bool) else None
            is_same = squeezed(cell.text) == squeezed(citations.plain(value)) if figure is None else agrees(figure, value)
            if not is_same:
                return False
    return True


def _finding(item: Cited, verdict: str, printed: str, expected: str, reading: str, why: str) -> Finding:
    place = (item.line, item.lines, item.text, printed, expected)
    return Finding(verdict, "citation", *place, reading, why, item.citation.query)


_EQUALS = re.compile(
    r"(?P<no>\bnot\s+)?(?:\b\w+\.)?(?P<column>\"[^\"]+\"|\b[a-z_]\w*)\s*==?\s*(?:'(?P<text>(?:[^']|'')*)'|(?P<n>\d+)\b)",
    re.IGNORECASE,
)
_CALLS = re.compile(r"\bcalls\(\s*'(?P<tool>(?:[^']|'')*)'\s*\)", re.IGNORECASE)
_PASSED = re.compile(r"(?P<no>\bnot\s+)?\bpassed\b(?!')(?P<un>\s*(?:=|is)\s*(?:false|0)\b)?", re.IGNORECASE)
_OUTCOMES = {  # the words for the two outcomes that every run has
    "passed": re.compile(r"\bpass(?:e[sd]|ing)?\b(?!\s*rate)", re.IGNORECASE),
    "failed": re.compile(r"\bfail(?:s|ed|ing|ures?)?\b(?!\s*rate)", re.IGNORECASE),
}
_ORDINALS = "first second third fourth fifth sixth seventh eighth".split()
About = tuple[str, str]  # a column, or `measured` or `k`; and the value that a citation is about


def mismatches(items: Sequence[Cited], world: World) -> Iterator[Finding]:
    """One finding for each citation whose clause names something else of the same column, and not its own."""
    subjects = {id(item): list(about(item.citation.query)) for item in items if not item.citation.is_open}
    every: dict[int, set[About]] = {}
    for item in items:
        every.setdefault(id(item.passage), set()).update(subjects.get(id(item), ()))
    for item in items:
        for subject in subjects.get(id(item), ()):
            other = _other(subject, item, every[id(item.passage)], world)
            if other is not None:
                words = " ".join(subject) if subject[1].isdecimal() else subject[1]
                place = (item.line, item.lines, item.text, item.before[-80:].strip(), "", f"about {words}")
                why = f"the sentence says {other}, the citation is about {words}"
                yield Finding(UNVERIFIABLE, "citation", *place, why, item.citation.query)
                break


def about(query: str) -> Iterator[About]:
    """The values, tools and outcomes that a query selects by."""
    try:
        measure = measure_of(query)
    except BladeError:
        return
    condition = query if measure is None else measure.where or ""
    if measure is not None and measure.name in ("mean", "sum"):
        yield "measured", (measure.argument or "").strip('"')
    if measure is not None and measure.name in ("pass_at_k", "pass_hat_k"):
        yield "k", str(measure.k)
    if query.startswith("engine.") or re.search(r"\bor\b|\bcase\b", condition, re.IGNORECASE):
        return
    for hit in _EQUALS.finditer(condition):
        value = (hit["text"] or hit["n"] or "").replace("''", "'")
        if value and not hit["no"]:
            yield hit["column"].strip('"'), value
    yield from (("tool", hit["tool"].replace("''", "'")) for hit in _CALLS.finditer(condition))
    fails = [bool(hit["no"] or hit["un"]) for hit in _PASSED.finditer(condition)]
    yield from (("outcome", "failed" if fail else "passed") for fail in fails)


def _other(subject: About, item: Cited, every: set[About], world: World) -> str | None:
    """The other value that the clause of a number names, where nothing around it names the cited one."""
    (column, cited), passage = subject, item.passage
    if passage is None:
        return None
    breaks = [hit.end() for hit in re.finditer(r"[;:—–]|\.\s", passage.own)]
    start = max((place for place in breaks if place <= item.start), default=0)
    end = min((place for place in breaks if place > item.end), default=len(passage.own))
    clause = passage.label if passage.kind == "cell" else passage.own[start:end]
    context = " ".join((clause, passage.text, passage.before, passage.around, *passage.headings))
    if _names(subject, context, is_lenient=True):
        return None
    others = {"outcome": tuple(_OUTCOMES), "k": tuple(map(str, range(1, 65))), "run": world.rows.runs}
    if column == "measured":  # columns that differ from it in their first word, by which `_names` tells them
        tail = cited.partition("_")[2]
        others[column] = tuple(name for name in world.columns() if tail and name.partition("_")[2] == tail)
    for value in others[column] if column in others else world.values(column):
        if value != cited and (column, value) not in every and _names((column, value), clause):
            return value
    for number, word in enumerate(_ORDINALS) if cited.isdecimal() else ():
        hit = re.search(rf"\b{word}\s+{re.escape(column)}\b", clause, re.IGNORECASE)
        if hit and int(cited) not in (number, number + 1):
            return hit[0]
    return None


def _names(subject: About, text: str, is_lenient: bool = False) -> bool:
    """Whether a text names a value; leniently also by its beginning or inside another word."""
    column, value = subject
    if column == "outcome" and value in _OUTCOMES:
        return _OUTCOMES[value].search(text) is not None
    word = re.escape(value)
    if column == "k":
        pattern = rf"[@^]{word}\b" + (rf"|\b{word}\b" if is_lenient else "")
    elif column == "measured":
        pattern = rf"(?<!\bin )\b{re.escape(value.split('_')[0])}\b"
    elif column == "tool" or re.fullmatch(r"[\d.]+|\w{1,2}", value):  # may mean anything
        pattern = rf"[`“\"'‘]{word}[`”\"'’]|\b{re.escape(column)}\s+(?:number\s+)?#?{word}\b"
        pattern += rf"|\b{word}\b" if is_lenient else ""
    else:
        start = rf"(?<!\w-)\b{re.escape(value[:4])}"
        pattern = start if is_lenient else rf"(?<![\w-]){word}(?!\w|-(?!\w+\b))"
    return re.search(pattern, text, re.IGNORECASE) is not None
