"""Print numbers and sentences of the report, each with the query that gives it again."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any

from blade import hostile, number_format
from blade.model import Judgement, Report
from blade.report.blocks import Line, Num, Said, Span

# ---- Queries: measures and SQL over the tables, entries of the engine's lists --------------------

LONGEST = 300  # characters of the keys by which an entry is named; beyond, its place is

# List of a report -> the attributes that tell its entries apart.
KEYS: dict[str, list[str]] = {
    name: keys.split() for name, keys in {
        "runs": "name", "measures": "run name k slice", "tasks": "run task", "health": "run flag task", "funnels": "run",
        "slices": "run field value", "compared": "run file name", "losses": "run cause mode", "trust": "run level text",
        "groups": "run id", "unexplained": "run", "attributions": "run task", "run_causes": "run cause mode",
        "recommendations": "run rank", "agreements": "run first second",
    }.items()
}  # fmt: skip


def quoted(text: str) -> str:
    """A text as SQL writes it."""
    return "'" + text.replace("'", "''") + "'"


def where(run: str, *also: str) -> str:
    """`where run = 'a' and outcome = 'failed'`."""
    return "where " + " and ".join((f"run = {quoted(run)}", *also))


def measure(name: str, run: str, *also: str, k: int | None = None, part: str = "") -> str:
    """`pass_at_k(4).low where run = 'a'`."""
    return f"{name}{f'({k})' if k is not None else ''}{f'.{part}' if part else ''} {where(run, *also)}"


def select(what: str, table: str, run: str, *also: str) -> str:
    """`select count(*) from tasks where run = 'a'`."""
    return f"select {what} from {table} {where(run, *also)}"


def less(query: str, shown: int) -> str:
    """What a list leaves out, as a query: all that `query` counts less those shown."""
    counts = "select count(*)"
    return query.replace(counts, f"{counts} - {shown}", 1) if query.startswith(counts) else f"{query} - {shown}"


def entry(name: str, /, **keys: Any) -> str:
    """`engine.losses(run='a', cause='KG')`."""
    stated = ", ".join(f"{key}={_stated(value)!r}" for key, value in keys.items())
    return f"engine.{name}({stated})" if stated else f"engine.{name}"


def chosen(query: str, entries: Sequence[Any], entry: Any, *keys: str) -> str:
    """The query that selects one entry of a list by as few keys as tell it apart; by its place where none do, or a name is too long."""
    alike, stated = list(entries), dict[str, Any]()
    for key in keys:
        stated[key] = _stated(getattr(entry, key))
        alike = [other for other in alike if _stated(getattr(other, key)) == stated[key]]
        if len(alike) == 1:
            break
    text = ", ".join(f"{key}={value!r}" for key, value in stated.items())
    if len(text) > LONGEST:
        alike, text = list(entries), ""
    selected = f"{query}({text})" if text else query
    if text and len(alike) == 1:
        return selected
    return f"{selected}[{next(place for place, other in enumerate(alike) if other is entry)}]"


def _stated(value: Any) -> Any:
    """A value as a query states it: the value of an enum."""
    return value.value if isinstance(value, Enum) else value


class Entries:
    """Names the entries of a report's lists: by their keys, and by place where several share them."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._indexed: dict[tuple[str, ...], dict[tuple[Any, ...], list[Any]]] = {}

    def query(self, name: str, noun: Any) -> str:
        """The query that selects this entry and no other."""
        keys = {key: _stated(getattr(noun, key)) for key in KEYS[name]}
        alike: list[Any] = []
        for stated in ({key: value for key, value in keys.items() if value is not None}, keys):
            alike = self._alike(name, stated)
            if len(alike) < 2:
                return entry(name, **stated)
        place = next((place for place, other in enumerate(alike) if other is noun or other == noun), 0)
        return f"{entry(name, **keys)}[{place}]"

    def judgement(self, run: str, noun: Judgement) -> str:
        """The query that selects a judgement: they stand by run, in the order in which they were given."""
        judgements = self._report.judgements.get(run, ())
        place = next((place for place, other in enumerate(judgements) if other is noun), 0)
        return f"engine.judgements[{run!r}][{place}]"

    def _alike(self, name: str, stated: dict[str, Any]) -> list[Any]:
        """The entries that share these keys; indexed by them, so that no list is searched for each number."""
        if (name, *stated) not in self._indexed:
            groups = self._indexed[name, *stated] = defaultdict(list)
            for noun in getattr(self._report, name):
                groups[tuple(_stated(getattr(noun, key)) for key in stated)].append(noun)
        return self._indexed[name, *stated][tuple(stated.values())]


# ---- Numbers with their queries ------------------------------------------------------------------


def num(text: str, value: float | None, query: str, strong: bool = False) -> Span:
    """The number, or the plain mark that there is none: what is not finite has no query."""
    if value is None or not math.isfinite(value):
        return text
    exact = float(value)
    return Num(text, int(exact) if exact.is_integer() else exact, query, strong)


def _printed(form: Callable[[Any], str]) -> Callable[[Any, str], Span]:
    """What prints a value in a form, with the query that gives it."""
    return lambda value, query: num(form(value), value, query)


whole = _printed(number_format.whole)
number = _printed(number_format.number)
percent = _printed(number_format.percent)


def count(value: int, noun: str, query: str, plural: str | None = None) -> Line:
    """`1 task`, `1,319 tasks`."""
    return (whole(value, query), " " + (noun if value == 1 else plural or noun + "s"))


def p_value(value: float | None, query: str) -> Line:
    """`p = 0.25`, `p <0.001`, `p not testable`."""
    text = number_format.p_number(value)
    if text == number_format.NONE:
        return ("p not testable",)
    return ("p " if text[0] in "<>" else "p = ", num(text, value, query))


def between(low: Span, high: Span) -> Line:
    """` [32.7%, 51.8%]`, or nothing where an end is no number."""
    return (" [", low, ", ", high, "]") if isinstance(low, Num) and isinstance(high, Num) else ()


def said(text: str, query: str, limit: int = 600, written: str | None = None) -> Said:
    """A sentence of a stage, cleaned and cut; `written` is the stage's own where `text` is a part of it."""
    return Said(hostile.line(text, limit), query, text if written is None else written)


def _member(form: Callable[..., str], is_score: bool = False) -> Callable[[Cited, str], Span]:
    """A method that prints a member in a form; scores are printed as rates or as plain numbers."""

    def printed(self: Cited, member: str) -> Span:
        value, query = self[member]
        return num(form(value, self.is_rate) if is_score else form(value), value, query)

    return printed


class Cited:
    """A noun of the report and the query that selects it: prints its members, each with its own query."""

    def __init__(self, noun: Any, query: str, is_rate: bool = True) -> None:
        self.noun = noun
        self.query = query
        self.is_rate = is_rate  # scores of it are rates

    def of(self, member: str) -> Cited:
        """A member that has members of its own."""
        return Cited(getattr(self.noun, member), f"{self.query}.{member}", self.is_rate)

    def entry(self, member: str, noun: Any, *keys: str) -> Cited:
        """One entry of a list, by as few of these keys as tell it apart."""
        query = chosen(f"{self.query}.{member}", getattr(self.noun, member), noun, *keys)
        return Cited(noun, query, self.is_rate)

    def __getitem__(self, member: str) -> tuple[Any, str]:
        """The value of a member, and its query."""
        return getattr(self.noun, member), f"{self.query}.{member}"

    whole = _member(number_format.whole)
    number = _member(number_format.number)
    percent = _member(number_format.percent)
    probability = _member(number_format.probability)
    p_number = _member(number_format.p_number)
    level = _member(number_format.level, is_score=True)

    def p_value(self, member: str) -> Line:
        return p_value(*self[member])

    def length(self, member: str) -> Span:
        """How many a list has."""
        return whole(len(getattr(self.noun, member)), f"{self.query}.{member}.count")

    def count(self, member: str, noun: str) -> Line:
        value, query = self[member]
        return count(value, noun, query)

    def change(self, member: str, strong: bool = False) -> Span:
        return self.changed(*self[member], strong)

    def changed(self, value: float | None, query: str, strong: bool = False) -> Span:
        """A change that no member is: a sum, a difference."""
        return num(number_format.change(value, self.is_rate), value, query, strong)

    def size(self, member: str) -> Span:
        """A change without its sign: `8.4 points`."""
        value, query = self[member]
        return number_format.NONE if value is None else self.sized(abs(value), query)

    def sized(self, value: float, query: str) -> Span:
        return num(number_format.size(value, self.is_rate), value, query)

    def interval(self) -> Line:
        """` [+3.1 points, +14.2 points]`, or nothing where an end is no number."""
        return between(self.change("low"), self.change("high"))

    def estimate(self, member: str) -> Line:
        """`+8.4 points [+3.1 points, +14.2 points]`."""
        return (self.change(member), *self.interval())

    def said(self, member: str, limit: int = 600) -> Said:
        """A sentence of a stage, cleaned and cut."""
        return said(*self[member], limit)
