"""Plant the same faults in the JSON form of a report, value by value."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from mutation.identities import requoted
from mutation.page import Fault, Page
from mutation.sentences import negated
from mutation.tables import BUCKETS

Path = tuple[str | int, ...]
WHOLES = {
    "n", "of", "of_fail", "of_pass", "n_with", "n_without", "n_pass", "n_fail", "n_tasks", "n_rollouts",
    "expected_rollouts", "rows",
}  # fmt: skip
TEXTS = {"text", "summary", "mechanism"}
# What says nothing of a run: the form, the tool, and how it was called.
SILENT = {"schema", "made_by", "claims"}
_INDENT = 2
_MOST = 4000  # values of a report that may get a fault


def dumped(value: Any) -> str:
    """JSON as our reports print it."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, indent=_INDENT) + "\n"


def stripped(text: str) -> str:
    """A report in JSON without its claims."""
    value = json.loads(text)
    value.pop("claims", None)
    return dumped(value)


def faults(page: Page, rng: Random) -> Iterator[Fault]:
    """Faults of all kinds, in values drawn from the whole report."""
    document = json.loads(page.text)
    where = places(document)
    lines = page.text.split("\n")
    rng_by = Random(rng.random())

    def made(kind: str, path: Path, new: Any, more: Sequence[tuple[Path, Any]] = ()) -> Fault | None:
        changes = [(path, new), *more]
        edits = []
        for at, value in changes:
            number = where[at]
            old = lines[number - 1]
            head = old[: len(old) - len(old.lstrip())]
            key = f"{json.dumps(at[-1])}: " if isinstance(at[-1], str) else ""
            comma = "," if old.endswith(",") else ""
            edits.append((number, f"{head}{key}{json.dumps(value, ensure_ascii=False)}{comma}"))
        numbers = tuple(number for number, _ in edits)
        before = "\n".join(lines[number - 1].strip() for number in numbers)
        after = "\n".join(text.strip() for _, text in edits)
        section = ".".join(one for one in path if isinstance(one, str))
        place = kind if kind in ("id", "quote") else "json"
        return None if before == after else Fault(kind, place, section, tuple(edits), numbers, before, after)

    paths = list(where)
    for path in rng.sample(paths, min(_MOST, len(paths))):
        value = at(document, path)
        for kind, new, more in _changes(page, document, path, value, rng_by):
            found = made(kind, path, new, more)
            if found is not None:
                yield found


def _changes(
    page: Page, document: Any, path: Path, value: Any, rng: Random
) -> Iterator[tuple[str, Any, list[tuple[Path, Any]]]]:
    name = next((one for one in reversed(path) if isinstance(one, str)), "")
    if isinstance(value, bool | dict | list) or value is None:
        return
    if isinstance(value, int | float):
        if name == "repeat":
            yield "id", value + rng.randrange(100, 200), []
        elif name.endswith("step"):
            yield "number", value + rng.randrange(200, 900), []
        elif name in WHOLES:
            yield "denominator", value + rng.choice((1, 2, 3)), []
        else:
            yield "number", other_value(value, rng), []
        below = _next(path)
        if below is not None and differ(value, _at(document, below)):
            yield "shifted", _at(document, below), [(below, value)]
    elif name in ("task", "tasks") and value in page.tasks:
        yield "id", f"{value}-{rng.randrange(10, 99)}", []
    elif name == "quote" and (new := requoted(value, rng)) is not None:
        yield "quote", new, []
    elif name in TEXTS:
        for new in negated(value):
            yield "negation", new, []
    elif name in ("run", "baseline", "candidate") and value in page.runs and len(path) == 3:
        for new in page.runs:
            item = {**at(document, path[:-1]), name: new}
            # the other run may have the very same value
            if new != value and item not in at(document, path[:1]):
                yield "swapped", new, []
    elif name == "bucket" and value in BUCKETS:
        yield "bucket", rng.choice([one for one in BUCKETS if one != value]), []
    elif name in BUCKETS and path[0] == "buckets":
        yield from _rebucketed(document, path, value, rng)


def _rebucketed(
    document: Any, path: Path, value: str, rng: Random
) -> Iterator[tuple[str, Any, list[tuple[Path, Any]]]]:
    """A task changes places with one of another bucket."""
    buckets = at(document, path[:2])
    others = [name for name in BUCKETS if name != path[2] and buckets[name]]
    if others:
        name = rng.choice(others)
        place = rng.randrange(len(buckets[name]))
        yield "bucket", buckets[name][place], [((*path[:2], name, place), value)]


def other_value(value: float, rng: Random) -> float:
    """A value that no rounding and no order of summing would give."""
    if isinstance(value, int):
        return value + rng.choice((-2, -1, 1, 2, 5)) if value > 2 else value + rng.choice((1, 2, 5))
    if value == 0:
        return rng.choice((0.02, 0.1, 0.5))
    return round(value * rng.choice((0.5, 0.9, 0.97, 1.03, 1.1, 1.5)), 12)


def differ(value: float, other: Any) -> bool:
    """Are two numbers apart by more than a rounding."""
    if isinstance(other, bool) or not isinstance(other, int | float):
        return False
    return abs(other - value) > 1e-3 * max(abs(value), abs(other))


def at(document: Any, path: Path) -> Any:
    for one in path:
        document = document[one]
    return document


def _at(document: Any, path: Path) -> Any:
    try:
        return at(document, path)
    except (KeyError, IndexError, TypeError):
        return None


def _next(path: Path) -> Path | None:
    """The same value of the next item of the list that it is in."""
    for place in range(len(path) - 1, -1, -1):
        one = path[place]
        if isinstance(one, int):
            return (*path[:place], one + 1, *path[place + 1 :])
    return None


def places(document: Any) -> dict[Path, int]:
    """The line on which each value stands, as `dumped` prints them."""
    found: dict[Path, int] = {}
    _walk(document, (), 1, found)
    return {path: line for path, line in found.items() if path and path[0] not in SILENT}


def _walk(value: Any, path: Path, line: int, found: dict[Path, int]) -> int:
    """Note the lines of a value that begins on `line`; the line on which it ends."""
    if isinstance(value, dict | list) and value:
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in items:
            line = _walk(inner, (*path, key), line + 1, found)
        return line + 1
    found[path] = line
    return line
