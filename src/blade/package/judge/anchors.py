"""Read and write anchor facts: each a query with its answer and the tasks it is about, or prose alone."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from blade.errors import BladeError
from blade.package.names import names_in
from blade.package.seal import sealed_data
from blade.query.measures import RATES, Measure, measure_of
from blade.tables.database import literal

if TYPE_CHECKING:
    from blade.package.worlds import Worlds

VITAL, OKAY, TRIVIAL = "vital", "okay", "trivial"
WEIGHTS = {VITAL: 1.0, OKAY: 0.5, TRIVIAL: 0.0}
DIFFICULTIES = {"high": VITAL, "medium": OKAY, "low": OKAY}
MIN_FACT = 20  # characters
MAX_ROWS = 400  # rollouts that a report could list one by one
CITED = "citations of the golden report and contrasts of the rows; a person reviews them"
BY_WORDING = "sentences of the report; there were no rollouts to query"


class Anchor(msgspec.Struct, frozen=True):
    """A fact that a report should have found."""

    id: str
    fact: str
    query: str | None = None
    value: float | None = None
    tolerance: float = 0.0
    tasks: tuple[str, ...] = ()
    weight: str = VITAL
    difficulty: str = "high"
    mean_score: float = 3.5
    weak: bool = False  # an aggregate that any table of totals has
    problem: str = ""  # why it cannot be used

    @property
    def weighs(self) -> float:
        return WEIGHTS[self.weight]

    @property
    def by_wording(self) -> bool:
        return self.query is None


class Meaning(msgspec.Struct, frozen=True):
    """What an anchor's query says of the rows: its number, the rollouts it counts, what it names."""

    kind: str  # rate, count, number
    value: float
    rollouts: frozenset[str] | None = None  # that meet its condition; None: not known, or too many to list
    n_rollouts: int | None = None  # of all its tasks
    names: frozenset[str] = frozenset()  # tools, values and fields in its query, in lower case
    measure: str = ""


def as_file(anchors: Sequence[Anchor], benchmark: str, model: str, method: str = CITED) -> dict[str, Any]:
    """The anchors in the shape of the file."""
    entries = []
    for anchor in anchors:
        entry: dict[str, Any] = {"id": anchor.id, "fact": anchor.fact}
        if anchor.query is not None:
            entry |= {"query": anchor.query, "value": anchor.value}
        if anchor.tolerance:
            entry["tolerance"] = anchor.tolerance
        entry |= {"tasks": list(anchor.tasks), "weight": anchor.weight, "difficulty": anchor.difficulty}
        entry["mean_score"] = anchor.mean_score
        entries.append(entry | ({"weak": True} if anchor.weak else {}))
    head = {"benchmark": benchmark, "model": model, "extraction_method": method, "review_required": True}
    return sealed_data({**head, "anchor_facts": entries})


def of_file(data: Any) -> list[Anchor]:
    """The anchors of a file: an object or a bare list, of objects or of sentences."""
    entries = data.get("anchor_facts", []) if isinstance(data, Mapping) else data
    if not isinstance(entries, list):
        return []
    anchors = [_anchor(entry, number) for number, entry in enumerate(entries, 1)]
    again = Counter(anchor.id for anchor in anchors)
    return [
        msgspec.structs.replace(anchor, id=f"{anchor.id}#{number}") if again[anchor.id] > 1 else anchor
        for number, anchor in enumerate(anchors, 1)
    ]


def _anchor(entry: Any, number: int) -> Anchor:
    given = entry if isinstance(entry, Mapping) else {"fact": entry}
    fact = given.get("fact")
    fact = fact if isinstance(fact, str) else ""
    difficulty = given.get("difficulty", "high")
    odd = [name for name in ("difficulty", "weight", "query") if not isinstance(given.get(name), str | None)]
    difficulty = difficulty if isinstance(difficulty, str) and difficulty in DIFFICULTIES else "high"
    weight, score, query = given.get("weight"), given.get("mean_score"), given.get("query")
    problem = f"its {' and '.join(odd)} is not text" if odd else ""
    if len(fact.strip()) < MIN_FACT:
        problem = f"the fact has fewer than {MIN_FACT} characters"
    tasks = given.get("tasks")
    return Anchor(
        str(given.get("id") or f"B{number}"), fact, query.strip() or None if isinstance(query, str) else None,
        _number(given.get("value")), _number(given.get("tolerance")) or 0.0,
        tuple(str(task) for task in tasks if isinstance(task, str | int)) if isinstance(tasks, list) else (),
        weight if isinstance(weight, str) and weight in WEIGHTS else DIFFICULTIES[difficulty],
        difficulty, 3.5 if (mean := _number(score)) is None else mean, given.get("weak") is True, problem,
    )  # fmt: skip


def _number(given: Any) -> float | None:
    is_number = isinstance(given, int | float) and not isinstance(given, bool) and math.isfinite(given)
    return given if is_number else None


def needs_review(data: Any) -> bool:
    """Whether a file says that nobody has read its facts yet."""
    return isinstance(data, Mapping) and data.get("review_required") is True


# -- what a query means -----------------------------------------------------------------------------


def meaning(anchor: Anchor, worlds: Worlds | None) -> Meaning | str:
    """What the anchor asks for, or why that cannot be told or is not so."""
    if anchor.query is None:
        return "it has no query"
    try:
        measure = measure_of(anchor.query)
        answer: Any = worlds.value(anchor.query) if worlds is not None else anchor.value
    except BladeError as error:
        return f"its query cannot be answered: {error.message}"
    if _number(answer) is None:
        return f"its query gives {answer!r}, not a number"
    if anchor.value is not None and abs(answer - anchor.value) > max(
        anchor.tolerance, 1e-6 * abs(answer), 1e-9
    ):
        return f"the rows give {answer:.6g}, the anchor says {anchor.value:.6g}"
    rollouts, n_rollouts = _rows(anchor, measure, worlds)
    kind = _kind(measure, answer)
    return Meaning(
        kind, answer, rollouts, n_rollouts, names_in(anchor.query), measure.name if measure else ""
    )


def _kind(measure: Measure | None, answer: float) -> str:
    if measure is not None and measure.part != "n":
        return (
            "rate" if measure.name in RATES else "count" if measure.name in ("count", "tasks") else "number"
        )
    if isinstance(answer, int) or float(answer).is_integer():
        return "count"
    return "rate" if 0 < answer < 1 else "number"


def _rows(
    anchor: Anchor, measure: Measure | None, worlds: Worlds | None
) -> tuple[frozenset[str] | None, int | None]:
    """The rollouts that a measure counts, and the number of those of the anchor's tasks."""
    if worlds is None:
        return None, None
    tasks = ", ".join(map(literal, anchor.tasks))
    whole = f"select count(*) from rollouts where task in ({tasks})"
    return rows_of(measure, worlds), worlds.own(whole)[0][0] if tasks else None


def rows_queries(queries: Iterable[str], worlds: Worlds) -> Iterator[str]:
    """The queries that list the rollouts which measures of the own run count."""
    for query in queries:
        with suppress(BladeError):
            rows = rows_query(measure_of(query)) if not worlds.is_of_others(query) else None
            yield from (rows,) if rows is not None else ()


def rows_of(measure: Measure | None, worlds: Worlds) -> frozenset[str] | None:
    """The rollouts of a measure's condition; None if there is none, or they are too many to list."""
    query = rows_query(measure)
    if query is None:
        return None
    try:
        answer = worlds.ask(query)
    except BladeError:
        return None
    rows = getattr(answer, "rows", ())
    return frozenset(f"{task}/{repeat}" for task, repeat in rows) if len(rows) <= MAX_ROWS else None


def rows_query(measure: Measure | None) -> str | None:
    """The query that lists the rollouts of a measure's condition."""
    if measure is None or not measure.where or measure.by:
        return None
    return f"select task, repeat from rollouts where ({measure.where})"
