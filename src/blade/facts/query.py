"""Turn a query over report.json into what it says: paths with selectors, counts, sums, shares."""

# query    = call | path | number
# call     = NAME "(" query { "," query } ")"     a name of FUNCTIONS, or says("<section>", statement, slot)
# path     = step { "." step }                    losses[run=a,cause=IR].lost
# step     = NAME [ "[" NAME ("=" | "!=") VALUE { "," … } "]" ]
# NAME and VALUE are bare words, or JSON strings where they hold , = ! [ ] ( ) . quotes or spaces.

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any

import msgspec


class BadQuery(ValueError):
    """A text that is no query."""


class NeedsPages(LookupError):
    """A query that only the pages answer: `says("<section>", <statement>, <slot>)`, both from 1.

    What no fact explains is bound to the statement itself; whoever checks it makes the pages again.
    """


class Step(msgspec.Struct, frozen=True):
    name: str
    where: tuple[tuple[str, bool, str | None], ...] = ()  # field, whether it must be equal, value; None: null


class Path(msgspec.Struct, frozen=True):
    steps: tuple[Step, ...]


class Called(msgspec.Struct, frozen=True):
    name: str
    given: tuple[Path | Called | float | str, ...]


_BARE = re.compile(r"[^\s,=!\[\]().\"]+")
_VALUE = re.compile(r"[^,\]\"=!\[]+")
_JSON = re.compile(r'"(?:[^"\\]|\\.)*"')
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\w.\[])")
_SIMPLE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_/@:+-]*(?:\.[A-Za-z0-9_/@:+-]+)*")


def worded(value: object) -> str:
    """A value as it stands in a selector."""
    if value is None:
        return "null"
    text = text_of(value)
    return text if _SIMPLE.fullmatch(text) and text != "null" else json.dumps(text)


def text_of(value: object) -> str:
    """What selectors compare: texts as they are, everything else as JSON writes it."""
    return value if isinstance(value, str) else json.dumps(value)


def path(name: str, field: str = "", /, **where: object) -> str:
    """`name[key=value,…].field`; keys may end in _ where Python keeps the word for itself."""
    told = ",".join(f"{key.rstrip('_')}={worded(value)}" for key, value in where.items())
    return name + (f"[{told}]" if told else "") + (f".{field}" if field else "")


def step(name: str) -> str:
    """The name of a step, quoted where it must be."""
    return name if _BARE.fullmatch(name) else json.dumps(name)


class _Parser:
    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def whole(self) -> Path | Called | float | str:
        found = self.query(0)
        self._blank()
        if self.at != len(self.text):
            raise BadQuery(f"nothing is expected at {self.at} in {self.text!r}")
        return found

    def query(self, depth: int) -> Path | Called | float | str:
        if depth > 20:
            raise BadQuery("the query is nested too deep")
        self._blank()
        number = _NUMBER.match(self.text, self.at)
        if number:
            self.at = number.end()
            return float(number[0])
        quoted = self._peek() == '"'
        name = self._name()
        if self._peek() == "(" and not quoted:
            given: list[Path | Called | float | str] = []
            while not given or self._peek() == ",":
                self.at += 1
                given.append(self.query(depth + 1))
                self._blank()
            self._take(")")
            return Called(name, tuple(given))
        if quoted and self._peek() not in (".", "["):
            return name
        return Path(tuple(self._steps(name)))

    def _steps(self, name: str) -> Iterable[Step]:
        while True:
            where: list[tuple[str, bool, str | None]] = []
            if self._peek() == "[":
                while not where or self._peek() == ",":
                    self.at += 1
                    where.append(self._selector())
                self._take("]")
            yield Step(name, tuple(where))
            if self._peek() != ".":
                return
            self.at += 1
            name = self._name()

    def _selector(self) -> tuple[str, bool, str | None]:
        field = self._name()
        equal = self._peek() != "!"
        self.at += not equal
        self._take("=")
        quoted = self._match(_JSON)
        if quoted:
            return field, equal, str(json.loads(quoted))
        bare = self._match(_VALUE)
        if not bare:
            raise BadQuery(f"a value is expected at {self.at} in {self.text!r}")
        return field, equal, None if bare == "null" else bare

    def _name(self) -> str:
        quoted = self._match(_JSON)
        if quoted:
            return str(json.loads(quoted))
        bare = self._match(_BARE)
        if not bare:
            raise BadQuery(f"a name is expected at {self.at} in {self.text!r}")
        return bare

    def _match(self, pattern: re.Pattern[str]) -> str:
        hit = pattern.match(self.text, self.at)
        self.at = hit.end() if hit else self.at
        return hit[0] if hit else ""

    def _peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def _take(self, sign: str) -> None:
        if self._peek() != sign:
            raise BadQuery(f"{sign!r} is expected at {self.at} in {self.text!r}")
        self.at += 1

    def _blank(self) -> None:
        while self._peek() == " ":
            self.at += 1


@lru_cache(maxsize=10_000)
def parsed(query: str) -> Path | Called | float | str:
    """The parts of a query; BadQuery if it is none."""
    return _Parser(query).whole()


def _numbers(found: Any) -> list[float]:
    given = found if isinstance(found, list) else [found]
    return [float(one) for one in given if isinstance(one, int | float)]


def _count(found: Any) -> Any:
    return len(found) if isinstance(found, list | dict) else 0 if found is None else 1


def _each(fold: Callable[[list[float]], float]) -> Callable[..., Any]:
    def folded(found: Any) -> Any:
        numbers = _numbers(found)
        return fold(numbers) if numbers else None

    return folded


def _both(join: Callable[[float, float], float | None]) -> Callable[..., Any]:
    def joined(first: Any, *others: Any) -> Any:
        if not isinstance(first, int | float):
            return None
        found: float | None = first
        for other in others:
            if found is None or not isinstance(other, int | float):
                return None
            found = join(found, other)
        return found

    return joined


_NUMBERS = re.compile(r"\d[\d,]*(?:\.\d+)?")


def running(text: Any) -> str:
    """A text, or the lines of a list, as it runs on a page: one blank between words, no backticks."""
    if isinstance(text, list):
        text = "\n".join(one for one in text if isinstance(one, str))
    return " ".join(text.replace("`", "").split()) if isinstance(text, str) else ""


def numbers_in(text: str) -> list[tuple[int, float]]:
    """The numbers of a running text, unsigned and as printed, with where each starts."""
    return [(hit.start(), float(hit[0].replace(",", ""))) for hit in _NUMBERS.finditer(text)]


def _number(text: Any, at: Any) -> Any:
    found = numbers_in(running(text))
    return found[int(at) - 1][1] if isinstance(at, float) and 1 <= at <= len(found) else None


def _within(text: Any, part: Any) -> Any:
    return part if isinstance(part, str) and part and running(part) in running(text) else None


def _zero_bound(n: Any) -> Any:
    return 1 - 0.05 ** (1 / n) if isinstance(n, int | float) and n > 0 else None


def _lines(found: Any) -> Any:
    return "\n".join(one for one in found if isinstance(one, str)) if isinstance(found, list) else None


def _place(task: Any, repeat: Any) -> Any:
    return f"{task}/{repeat}" if isinstance(task, str) and isinstance(repeat, int) else None


# `sum` of nothing is 0, as of losses to a cause that nobody lost anything to; a mean of nothing is none.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "count": _count,
    "sum": lambda found: math.fsum(_numbers(found)),
    "mean": _each(lambda numbers: math.fsum(numbers) / len(numbers)),
    "most": _each(max),
    "least": _each(min),
    "share": _both(lambda part, whole: part / whole if whole else None),
    "plus": _both(lambda first, second: first + second),
    "minus": _both(lambda first, second: first - second),
    "number": _number,  # number(text, i): the i-th number of a text, from 1
    "within": _within,  # within(text, "part"): the part, if the text holds it
    "zero_bound": _zero_bound,  # the upper 95% limit of a rate of which n tries show nothing
    "lines": _lines,  # the texts of a list, one a line
    "place": _place,  # place(task, repeat): TASK/REPEAT
}
ARITY = {
    "count": 1,
    "sum": 1,
    "mean": 1,
    "most": 1,
    "least": 1,
    "lines": 1,
    "zero_bound": 1,
    "number": 2,
    "within": 2,
    "place": 2,
}


class Answers:
    """Queries over one report.json, its lists indexed as they are asked for."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document
        self._indexes: dict[tuple[int, tuple[str, ...]], dict[tuple[str | None, ...], list[Any]]] = {}

    def answer(self, query: str) -> Any:
        """What the query says; None where the document holds no such thing.

        BadQuery if it is no query, NeedsPages if it is one that the document cannot answer.
        """
        return self._value(parsed(query))

    def _value(self, found: Path | Called | float | str) -> Any:
        if isinstance(found, float | str):
            return found
        if isinstance(found, Path):
            return self._single(found)
        if found.name == "says":
            raise NeedsPages("only the pages answer `says`")
        if found.name not in FUNCTIONS:
            raise BadQuery(f"no function is called {found.name!r}")
        if len(found.given) != ARITY.get(found.name, len(found.given)):
            raise BadQuery(f"{found.name} takes {ARITY[found.name]} arguments")
        of_lists = found.name in ("count", "sum", "mean", "most", "least")
        given = [
            self._several(one) if of_lists and isinstance(one, Path) else self._value(one)
            for one in found.given
        ]
        return FUNCTIONS[found.name](*given)

    def _single(self, path: Path) -> Any:
        found = self._walk(path)
        return found[0] if len(found) == 1 or (found and all(one == found[0] for one in found)) else None

    def _several(self, path: Path) -> Any:
        found = self._walk(path)
        selects = any(step.where for step in path.steps)
        if len(found) == 1 and (isinstance(found[0], list | dict) and not path.steps[-1].where):
            return found[0]
        return found if selects or found else None

    def _walk(self, path: Path) -> list[Any]:
        found: list[Any] = [self._document]
        for step in path.steps:
            inner = [one[step.name] for one in found if isinstance(one, Mapping) and step.name in one]
            if step.where:
                inner = [one for held in inner if isinstance(held, list) for one in self._chosen(held, step)]
            elif step is not path.steps[-1]:
                inner = [one for held in inner for one in (held if isinstance(held, list) else [held])]
            found = inner
        return found

    def _chosen(self, held: list[Any], step: Step) -> list[Any]:
        equal = [(field, value) for field, same, value in step.where if same]
        fields = tuple(field for field, _ in equal)
        chosen = self._index(held, fields).get(tuple(value for _, value in equal), []) if equal else held
        others = [(field, value) for field, same, value in step.where if not same]
        return [one for one in chosen if all(_text(one, field) != value for field, value in others)]

    def _index(self, held: list[Any], fields: tuple[str, ...]) -> dict[tuple[str | None, ...], list[Any]]:
        key = (id(held), fields)
        if key not in self._indexes:
            index: dict[tuple[str | None, ...], list[Any]] = {}
            for one in held:
                index.setdefault(tuple(_text(one, field) for field in fields), []).append(one)
            self._indexes[key] = index
        return self._indexes[key]


def _text(one: Any, field: str) -> str | None:
    value = one.get(field) if isinstance(one, Mapping) else None
    return None if value is None else text_of(value)


def answer(query: str, document: Mapping[str, Any]) -> Any:
    """What a query says of a report.json; many queries of one document go through `Answers`."""
    return Answers(document).answer(query)
