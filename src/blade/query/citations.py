"""Find and fill in citations: what a text prints, and the query beside it that gives it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from blade import hostile, number_format
from blade.errors import BladeError, UsageError
from blade.query.comments import inline, unescape_comment
from blade.query.measures import RATES, Answer, measure_of
from blade.query.query_ground import Ground, Table

OPEN = re.compile(r"\{\{\s*(?P<query>.+?)\s*\}\}")
COMMENT = re.compile(r"<!--(?P<body>.*?)-->", re.DOTALL)
_CODE = re.compile(r"^(?P<fence>```+|~~~+).*?^(?P=fence)\s*$|`[^`\n]+`", re.DOTALL | re.MULTILINE)
_NAMED = re.compile(r"c\d+")
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
        hit = re.fullmatch(r"blade claims\s*\n(?P<lines>.*)", comment["body"].strip(), re.DOTALL)
        for line in hit["lines"].splitlines() if hit else ():
            name, _, query = line.strip().partition(" ")
            if _NAMED.fullmatch(name) and query:
                queries[name] = unescape_comment(query)
    return queries


def citation_in(body: str, names: dict[str, str], start: int, end: int, cited: str = "") -> Citation | None:
    """The citation that a comment holds, if it holds one."""
    body = body.strip()
    hit = re.fullmatch(r"blade:\s*(?P<query>.+?)\s*", body, re.DOTALL)
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

    def is_text(hit: re.Match[str]) -> bool:
        return not any(start <= hit.start() < end for start, end in codes)

    braces = filter(is_text, OPEN.finditer(text))
    comments = filter(is_text, COMMENT.finditer(text))
    cited = [_citation(hit["query"], hit.start(), hit.end(), True) for hit in braces]
    cited += filter(None, (citation_in(hit["body"], names, hit.start(), hit.end()) for hit in comments))
    return sorted(cited, key=lambda citation: citation.start)


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
    form, digits = citation.form or ("percent" if is_rate else ""), citation.digits
    if form in ("percent", "points") and digits is not None:
        sign, unit = ("", "%") if form == "percent" else ("+", " points")
        return f"{value * 100:{sign},.{digits}f}{unit}".replace("-", number_format.MINUS, 1)
    if form in ("percent", "points"):
        return number_format.percent(value) if form == "percent" else number_format.points(value)
    digits = 0 if form == "count" else digits
    return number_format.number(value) if digits is None else f"{value:,.{digits}f}"


def listed(items: list[str]) -> str:
    """`3, 8 and 12`."""
    more = [f"{len(items) - MAX_LISTED} more"] if len(items) > MAX_LISTED else []
    return number_format.listing([*items[:MAX_LISTED], *more] or ["none"])


def table_of(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Rows as a Markdown table."""

    def cell(value: Any) -> str:
        return hostile.markdown_inline(hostile.line(plain(value), 200)).replace("|", "\\|")

    lines = [[cell(name) for name in columns], ["---"] * len(columns)]
    lines += [[cell(value) for value in row] for row in rows[:MAX_TABLE]]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def plain(value: Any) -> str:
    """A value of a table that nothing else is known of."""
    return "" if value is None else number_format.number(value) if isinstance(value, float) else str(value)


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
