"""Find, fill in and verify citations: what a text prints, and the query beside it that gives it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from blade import hostile
from blade.errors import BladeError, UsageError
from blade.query.comments import inline, unescape_comment
from blade.query.measures import RATES, Answer, measure_of
from blade.query.number_readings import Figure, agrees, interval, readings
from blade.query.query_ground import Ground, Table

OPEN = re.compile(r"\{\{\s*(?P<query>.+?)\s*\}\}")
COMMENT = re.compile(r"<!--(?P<body>.*?)-->", re.DOTALL)
_CITED = re.compile(r"blade:\s*(?P<query>.+?)\s*", re.DOTALL)
_NAMED = re.compile(r"c\d+")
_DEFINED = re.compile(r"blade claims\s*\n(?P<lines>.*)", re.DOTALL)
_FORMAT = re.compile(
    r"(?P<query>.*?)\s*\|\s*(?P<format>percent|points|number|count|list|table)(?:\s+(?P<digits>\d))?",
    re.DOTALL,
)
PLACE = re.compile(r"(?P<task>[^\s#/`]+(?:/[^\s#/`]+)*?)/(?P<repeat>\d{1,8})#(?P<where>\w[\w.\[\]-]*)")
MAX_LISTED = 40
MAX_TABLE = 200


class Citation(msgspec.Struct, frozen=True):
    """One citation of a text: the query, how it is printed, and the text it belongs to."""

    query: str
    form: str  # percent, points, number, count, list, table, or nothing
    digits: int | None
    start: int  # of the comment, or of the braces
    end: int
    is_open: bool  # still to be filled in
    cited: str = ""  # what stands between `<!--blade-->` and the comment; else nothing


def definitions(text: str) -> dict[str, str]:
    """The queries that a text lists by name at its end."""
    queries: dict[str, str] = {}
    for comment in COMMENT.finditer(text):
        hit = _DEFINED.fullmatch(comment["body"].strip())
        for line in hit["lines"].splitlines() if hit else ():
            name, _, query = line.strip().partition(" ")
            if _NAMED.fullmatch(name) and query:
                queries[name] = unescape_comment(query)
    return queries


def citation_in(body: str, names: dict[str, str], start: int, end: int, cited: str = "") -> Citation | None:
    """The citation that a comment holds, if it holds one."""
    body = body.strip()
    hit = _CITED.fullmatch(body)
    query = names.get(body) if _NAMED.fullmatch(body) else hit["query"].replace("-%2D", "--") if hit else None
    return _citation(query, start, end, False, cited) if query is not None else None


def _citation(text: str, start: int, end: int, is_open: bool, cited: str = "") -> Citation:
    hit = _FORMAT.fullmatch(text.strip())
    query, form, digits = hit.group("query", "format", "digits") if hit else (text, "", None)
    return Citation(query.strip(), form, int(digits) if digits else None, start, end, is_open, cited)


def citations(text: str) -> list[Citation]:
    """All citations of a text, filled in or not, in its order; code is not looked into."""
    names = definitions(text)
    codes = [hit.span() for hit in _CODE.finditer(text)]
    opened: re.Match[str] | None = None

    def is_text(hit: re.Match[str]) -> bool:
        return not any(start <= hit.start() < end for start, end in codes)

    braces = filter(is_text, OPEN.finditer(text))
    cited_here = [_citation(hit["query"], hit.start(), hit.end(), True) for hit in braces]
    for comment in filter(is_text, COMMENT.finditer(text)):
        if comment["body"].strip() == "blade":
            opened = comment
            continue
        cited = text[opened.end() : comment.start()] if opened else ""
        citation = citation_in(comment["body"], names, comment.start(), comment.end(), cited)
        if citation is not None:
            cited_here.append(citation)
            opened = None
    return sorted(cited_here, key=lambda citation: citation.start)


_CODE = re.compile(r"^(?P<fence>```+|~~~+).*?^(?P=fence)\s*$|`[^`\n]+`", re.DOTALL | re.MULTILINE)


# -- filling in -------------------------------------------------------------------------------------


def filled(text: str, ground: Ground, quote: Callable[[str, int, str], str | None]) -> tuple[str, list[str]]:
    """The text with every open citation filled in, and what could not be."""
    problems: list[str] = []
    parts: list[str] = []
    last = 0
    for citation in (citation for citation in citations(text) if citation.is_open):
        parts.append(text[last : citation.start])
        last = citation.end
        try:
            shown = _filled(citation, ground, quote)
            if "\n" in shown:  # a table between blank lines, wherever it was asked for
                above = "" if not parts[-1].strip() or parts[-1].endswith("\n") else "\n\n"
                shown = above + shown + ("" if text[last : last + 1] in ("", "\n") else "\n\n")
            parts.append(shown)
        except BladeError as error:
            line = text.count("\n", 0, citation.start) + 1
            problems.append(f"line {line}: {citation.query}: {error.message}")
            parts.append(text[citation.start : citation.end])
    parts.append(text[last:])
    return "".join(parts), problems


def _filled(citation: Citation, ground: Ground, quote: Callable[[str, int, str], str | None]) -> str:
    place = PLACE.fullmatch(citation.query)
    if place is not None:
        words = quote(place["task"], int(place["repeat"]), place["where"])
        if words is None:
            raise UsageError(f"there is no {citation.query}", "name a task, a repeat and a step", "bad-query")
        return f"“{words}”<!--blade: {inline(citation.query)}-->"
    form = f" {citation.digits}" if citation.digits is not None else ""
    text = f"{citation.query} | {citation.form}{form}" if citation.form else citation.query
    comment = f"<!--blade: {inline(text)}-->"
    shown = shown_as(ground.ask(citation.query), citation)
    if "\n" in shown:
        return f"<!--blade-->\n\n{shown}\n\n{comment}"
    return f"<!--blade-->{shown}{comment}" if citation.form == "list" else f"{shown}{comment}"


def shown_as(result: list[Answer] | Table, citation: Citation) -> str:
    """What a query gives, as a text prints it."""
    measure = measure_of(citation.query)
    if isinstance(result, Table):
        if result.shape != (1, 1) or citation.form == "table":
            if citation.form == "list":
                return listed([str(row[0]) for row in result.rows])
            return table_of(result.columns, result.rows)
        return number(result.rows[0][0], citation, is_rate=False)
    is_rate = measure is not None and measure.name in RATES
    if len(result) != 1 or (measure and measure.by):
        cells = [
            (answer.group, number(answer.value, citation, is_rate), f"{answer.n:,}" if answer.n is not None else "")
            for answer in result
        ]
        return table_of(((measure.by if measure else "") or "", measure.name if measure else "value", "n"), cells)
    if citation.form == "list":
        return listed(list(result[0].tasks or ()))
    return number(result[0].value, citation, is_rate and measure is not None and measure.part != "n")


def number(value: Any, citation: Citation, is_rate: bool) -> str:
    """A value in the form that was asked for, else in the usual one."""
    if value is None:
        return "none"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    form, digits = citation.form, citation.digits
    if form == "percent" or (not form and is_rate):
        return f"{value * 100:,.{1 if digits is None else digits}f}%"
    if form == "points":
        return f"{value * 100:+,.{1 if digits is None else digits}f} points".replace("-", "−", 1)
    if form == "count" or (not form and float(value).is_integer()):
        return f"{round(value):,}"
    if digits is not None:
        return f"{value:,.{digits}f}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def listed(items: list[str]) -> str:
    """`3, 8 and 12`."""
    if len(items) > MAX_LISTED:
        return f"{', '.join(items[:MAX_LISTED])} and {len(items) - MAX_LISTED} more"
    *before, last = items or ["none"]
    return f"{', '.join(before)} and {last}" if before else last


def table_of(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Rows as a Markdown table."""
    def cell(value: Any) -> str:
        if value is None:
            return ""
        text = f"{value:.4g}" if isinstance(value, float) else str(value)
        return hostile.markdown_inline(hostile.line(text, 200)).replace("|", "\\|")

    lines = [[cell(name) for name in columns], ["---"] * len(columns)]
    lines += [[cell(value) for value in row] for row in rows[:MAX_TABLE]]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


# -- verifying --------------------------------------------------------------------------------------


class Verdict(msgspec.Struct, frozen=True):
    """What came of one citation."""

    holds: bool | None  # None: it could not be evaluated
    printed: str
    expected: str
    reading: str  # the citation in words
    why: str = ""


_FALLS = re.compile(
    r"\b(?:drop|fall|fell|declin\w+|decreas\w+|loss|los[et]s?|lower|down|less|fewer|below|behind)\b", re.I
)


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


def verified(citation: Citation, before: str, ground: Ground) -> Verdict:
    """Whether what is printed is what the query gives now, at the printed precision."""
    reading = in_words(citation.query)
    try:
        answer = ground.ask(citation.query)
        expected = shown_as(answer, citation)
    except BladeError as error:
        return Verdict(None, "", "", reading, error.message)
    if citation.cited:
        holds = _normal(citation.cited) == _normal(expected)
        return Verdict(holds, citation.cited.strip()[:200], expected[:200], reading)
    if isinstance(answer, Table):
        value = answer.rows[0][0] if answer.shape == (1, 1) else None
    else:
        value = answer[0].value
    figure, value = _read(before, value, citation.query)
    if isinstance(value, str) or value is None:
        printed = before[-len(expected) - 8 :].strip()
        return Verdict(_normal(before).endswith(_normal(expected)), printed, expected, reading)
    if figure is None:
        return Verdict(None, "", expected, reading, "no number stands before the citation")
    measure = measure_of(citation.query)
    is_share = measure is not None and measure.name in RATES and measure.part != "n"
    is_whole = figure.is_bare and figure.step == 1 and figure.whole is None and not figure.bound
    is_coarse = is_share and is_whole and abs(figure.number - value) > 0.005  # 0 for 42%
    holds = agrees(figure, value) and not is_coarse
    printed, expected = figure.text.strip(), _beside(figure, value, expected)
    ends, limits = interval(before), [answer[0].low, answer[0].high] if isinstance(answer, list) else [None]
    if holds and ends and None not in limits and not all(map(agrees, ends, limits)):
        printed = f"[{ends[0].text}, {ends[1].text}]"
        return Verdict(False, printed, f"[{', '.join(map(_beside, ends, limits, ('', '')))}]", reading)
    return Verdict(holds, printed, expected, reading)


def _beside(figure: Figure, value: Any, expected: str) -> str:
    """The value in the unit in which the text prints it."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return expected
    if figure.is_percent:
        return f"{value * 100:.4g}%"
    if figure.is_points:
        return f"{value * 100:.4g} points"
    return f"{value:,.6g}" if isinstance(value, float) and not value.is_integer() else f"{int(value):,}"


def _normal(text: str) -> str:
    return re.sub(r"[\s*_`\\]+", " ", text).strip().strip(".,;:").lower()


_WORDS_OF = {
    "count": "number of rollouts",
    "tasks": "number of tasks with a rollout",
    "rate": "share of rollouts that pass",
    "pass_at_1": "pass@1 (mean over tasks)",
    "pass_at_k": "pass@{k}",
    "pass_hat_k": "pass^{k}",
    "mean": "mean {column} of the rollouts",
    "sum": "sum of {column} over the rollouts",
}
_PARTS_OF = {"low": "lower 95% limit of ", "high": "upper 95% limit of ", "n": "n of "}


def in_words(query: str) -> str:
    """A query as a person reads it."""
    try:
        measure = measure_of(query)
    except BladeError:
        measure = None
    if measure is None:
        return query if PLACE.fullmatch(query) is None else f"a quotation of {query}"
    text = _WORDS_OF[measure.name].format(k=measure.argument, column=measure.argument)
    text = _PARTS_OF.get(measure.part or "", "") + text
    text += f" where {measure.where}" if measure.where else ""
    return text + (f", by {measure.by}" if measure.by else "")
