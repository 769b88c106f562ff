"""Read, write and draft anchor facts: each a query with its answer and the tasks it is about, or prose alone."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from operator import itemgetter
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from blade.errors import BladeError
from blade.model.conclusions import SUPPORTED
from blade.package.layout import is_finite, sealed_json, table
from blade.package.matching import Tasks, passages, tasks_of, visible
from blade.package.package_queries import Worlds, names_in
from blade.package.shallow import shallow
from blade.query.citations import PLACE
from blade.query.comments import escape_comment
from blade.query.measures import RATES, Measure, measure_of
from blade.tables.database import literal

VITAL, OKAY, TRIVIAL = "vital", "okay", "trivial"
WEIGHTS = {VITAL: 1.0, OKAY: 0.5, TRIVIAL: 0.0}
DIFFICULTIES = {"high": VITAL, "medium": OKAY, "low": OKAY}
MIN_FACT, MAX_FACT = 20, 320  # characters
SHORT = 8  # words below which a sentence says too little alone
MAX_TASKS = 12  # beyond which a fact is about no particular tasks
MAX_LOOKED = 20_000  # rollouts up to which contrasts are looked for
MIN_ROWS, MIN_GAP = 3, 0.3  # of a contrast: rollouts on either side, difference of their pass rates
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


def as_file(anchors: Sequence[Anchor], benchmark: str, model: str, method: str = CITED) -> dict[str, Any]:
    """The anchors in the shape of the file."""
    entries = [msgspec.to_builtins(anchor) for anchor in anchors]
    for entry in entries:
        unsaid = {"problem", *(key for key in ("tolerance", "weak") if not entry[key])}
        unsaid |= {"query", "value"} if entry["query"] is None else set()
        for key in unsaid:
            del entry[key]
    head = {"benchmark": benchmark, "model": model, "extraction_method": method, "review_required": True}
    return sealed_json({**head, "anchor_facts": entries})


def of_file(data: Any) -> list[Anchor]:
    """The anchors of a file: an object or a bare list, of objects or of sentences."""
    entries = data.get("anchor_facts", []) if isinstance(data, Mapping) else data
    entries = entries if isinstance(entries, list) else []
    anchors = [_entry(entry, number) for number, entry in enumerate(entries, 1)]
    again = Counter(anchor.id for anchor in anchors)
    numbered = enumerate(anchors, 1)
    return [replace(each, id=f"{each.id}#{n}") if again[each.id] > 1 else each for n, each in numbered]


def _entry(entry: Any, number: int) -> Anchor:
    members = entry if isinstance(entry, Mapping) else {"fact": entry}
    fact, tasks, query = members.get("fact"), members.get("tasks"), members.get("query")
    fact = fact if isinstance(fact, str) else ""
    odd = [key for key in ("difficulty", "weight", "query") if not isinstance(members.get(key), str | None)]
    problem = f"its {' and '.join(odd)} is not text" if odd else ""
    if len(fact.strip()) < MIN_FACT:
        problem = f"the fact has fewer than {MIN_FACT} characters"
    difficulty, weight = str(members.get("difficulty")), str(members.get("weight"))
    difficulty = difficulty if difficulty in DIFFICULTIES else "high"
    mean = number_or_none(members.get("mean_score"))
    return Anchor(
        str(members.get("id") or f"B{number}"), fact, query.strip() or None if isinstance(query, str) else None,
        number_or_none(members.get("value")), number_or_none(members.get("tolerance")) or 0.0,
        tuple(str(task) for task in tasks if isinstance(task, str | int)) if isinstance(tasks, list) else (),
        weight if weight in WEIGHTS else DIFFICULTIES[difficulty],
        difficulty, 3.5 if mean is None else mean, members.get("weak") is True, problem,
    )  # fmt: skip


def number_or_none(value: Any) -> float | None:
    """A finite number; None for anything else."""
    return value if is_finite(value) and not isinstance(value, bool) else None


# -- what a query means -----------------------------------------------------------------------------


class Meaning(msgspec.Struct, frozen=True):
    """What an anchor's query says of the rows: its number, the rollouts it counts, what it names."""

    kind: str  # rate, count, number
    value: float
    rollouts: frozenset[str] | None = None  # that meet its condition; None: not known, or too many to list
    n_rollouts: int | None = None  # of all its tasks
    names: frozenset[str] = frozenset()  # tools, values and fields in its query, in lower case
    measure: str = ""


def meaning(anchor: Anchor, worlds: Worlds | None) -> Meaning | str:
    """What the anchor asks for, or why that cannot be told or is not so."""
    if anchor.query is None:
        return "it has no query"
    try:
        measure = measure_of(anchor.query)
        answer: Any = worlds.value(anchor.query) if worlds is not None else anchor.value
    except BladeError as error:
        return f"its query cannot be answered: {error.message}"
    if number_or_none(answer) is None:
        return f"its query gives {answer!r}, not a number"
    slack = max(anchor.tolerance, 1e-6 * abs(answer), 1e-9)
    if anchor.value is not None and abs(answer - anchor.value) > slack:
        return f"the rows give {answer:.6g}, the anchor says {anchor.value:.6g}"
    n_rollouts = None
    if worlds is not None and anchor.tasks:
        tasks = ", ".join(map(literal, anchor.tasks))
        n_rollouts = worlds.own(f"select count(*) from rollouts where task in ({tasks})")[0][0]
    rollouts, name = worlds.rollouts(measure) if worlds else None, measure.name if measure else ""
    return Meaning(_kind(measure, answer), answer, rollouts, n_rollouts, names_in(anchor.query), name)


def _kind(measure: Measure | None, answer: float) -> str:
    if measure is not None and measure.part != "n":
        is_count = measure.name in ("count", "tasks")
        return "rate" if measure.name in RATES else "count" if is_count else "number"
    if isinstance(answer, int) or float(answer).is_integer():
        return "count"
    return "rate" if 0 < answer < 1 else "number"


# -- drafting ---------------------------------------------------------------------------------------


class Draft(NamedTuple):
    """A sentence, the query behind its number, and the tasks that it names."""

    fact: str
    query: str
    tasks: tuple[str, ...] = ()
    is_thin: bool = False  # the shallow baseline of the report has it too


def drafted(golden: str, worlds: Worlds, most: int) -> list[Anchor]:
    """Facts that the golden report cites, each with its query; filled up by wording and from the rows."""
    text = visible(golden)
    chosen = _chosen(_anchors(_cited(text, worlds, shallow(golden, "")), worlds), most)
    strong = [anchor for anchor in chosen if not anchor.weak]
    if len(strong) < most:
        strong += _worded(text, tasks_of(worlds.home), most - len(strong), strong)
    if len(strong) < most:
        strong += _chosen(_anchors(_contrasts(worlds), worlds), most - len(strong), strong)
    return _numbered([*strong, *(anchor for anchor in chosen if anchor.weak)][:most])


def drafted_by_wording(golden: str, most: int) -> list[Anchor]:
    """Sentences that name a task and a number: all that a report alone can give."""
    return _numbered(_worded(visible(golden), Tasks(), most))


def _numbered(anchors: Sequence[Anchor]) -> list[Anchor]:
    return [replace(anchor, id=f"B{number}") for number, anchor in enumerate(anchors, 1)]


def _in_order(tasks: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(tasks), key=lambda task: (len(task), task)))


def _worded(text: str, known: Tasks, most: int, before: Sequence[Anchor] = ()) -> list[Anchor]:
    """Facts without a query: sentences and rows with a number and tasks that no fact before them is about."""
    anchors: dict[frozenset[str], Anchor] = {}
    have = {frozenset(anchor.tasks) for anchor in before}
    for statement in (part for passage in passages(text, known) for part in passage.statements):
        is_fact = statement.kind != "heading" and len(statement.text) >= MIN_FACT and statement.figures
        if is_fact and 0 < len(statement.tasks) <= MAX_TASKS and statement.tasks not in have:
            anchor = Anchor("", statement.text[:MAX_FACT], tasks=_in_order(statement.tasks))
            anchors.setdefault(statement.tasks, anchor)
    return list(anchors.values())[:most]


def _cited(text: str, worlds: Worlds, baseline: str) -> Iterator[Draft]:
    around: dict[int, str] = {}  # by line: its paragraph or list item, without quotations
    for passage in passages(text, tasks_of(worlds.home)):
        paragraph = " ".join(part.text for part in passage.statements if "“" not in part.text)
        around |= dict.fromkeys(passage.lines, paragraph)
    for finding in worlds.checked(text):
        query, fact = finding.query or "", finding.text
        if finding.kind == "citation" and finding.verdict == SUPPORTED and not PLACE.fullmatch(query):
            paragraph = around.get(finding.line, fact)
            is_short = " | " not in fact and len(fact.split()) < SHORT and fact in paragraph
            fact = " ".join((paragraph if is_short else fact).split())
            fact = fact if len(fact) <= MAX_FACT else fact[:MAX_FACT].rpartition(" ")[0] + " …"
            yield Draft(fact, query, finding.tasks, escape_comment(query) in baseline)


def _anchors(drafts: Iterable[Draft], worlds: Worlds) -> Iterator[Anchor]:
    """Facts with the answers of their queries; those that give no single number are left out."""
    long = [draft for draft in dict.fromkeys(drafts) if len(draft.fact) >= MIN_FACT]
    own = [draft for draft in long if not draft.query.startswith("engine.") and not worlds.is_of_others(draft.query)]
    queries = [draft.query for draft in own]
    worlds.prefetch(queries, queries)
    for draft in own:
        anchor = Anchor("", draft.fact, draft.query)
        meant = meaning(anchor, worlds)
        if isinstance(meant, str):
            continue
        anchor = replace(anchor, value=meant.value)
        if draft.is_thin or worlds.is_aggregate(draft.query):
            yield replace(anchor, weak=True, weight=OKAY, difficulty="low", mean_score=2.5)
        else:
            tasks = _tasks(draft, meant)
            yield replace(anchor, tasks=tasks) if tasks else replace(anchor, weight=OKAY, difficulty="medium")


def _tasks(draft: Draft, meant: Meaning) -> tuple[str, ...]:
    """The tasks that a number is about: those of its query, of the rows it counts, or of its sentence."""
    parts = re.findall(r"\btask\s*(?:=|in)\s*('[^']*'|\([^()]*\))", draft.query)
    literals = [task for part in parts for task in re.findall(r"'([^']*)'", part)]
    counted = [rollout.rpartition("/")[0] for rollout in meant.rollouts or ()]
    for tasks in (literals, counted, [name.partition("/")[0] for name in draft.tasks]):
        if 0 < len(set(tasks)) <= MAX_TASKS:
            return _in_order(tasks)
    return ()


def _chosen(candidates: Iterable[Anchor], most: int, before: Sequence[Anchor] = ()) -> list[Anchor]:
    """The most telling facts: about tasks before totals, one for each set of tasks before a second."""
    distinct: dict[tuple[object, ...], Anchor] = {}  # short queries before SQL: a reader understands them
    have = {_same(anchor) for anchor in before}
    ranked = sorted(candidates, key=lambda each: (each.weak, not each.tasks, measure_of(each.query or "") is None))
    for anchor in ranked:
        if _same(anchor) not in have:
            distinct.setdefault(_same(anchor), anchor)
    seen: Counter[tuple[str, ...]] = Counter(anchor.tasks for anchor in before)
    turns: list[tuple[bool, int]] = []
    for anchor in distinct.values():
        turns.append((anchor.weak or not anchor.tasks, seen[anchor.tasks]))
        seen[anchor.tasks] += 1
    ordered = sorted(zip(turns, distinct.values(), strict=True), key=itemgetter(0))
    return [anchor for _, anchor in ordered[:most]]


def _same(anchor: Anchor) -> tuple[object, ...]:
    """What two facts share that ask for the same: the value about the same tasks."""
    return (anchor.value, anchor.tasks) if anchor.tasks else (anchor.value, anchor.query)


# -- from the rows ----------------------------------------------------------------------------------

def _contrasts(worlds: Worlds) -> Iterator[Draft]:
    """What the tables show: pass rates with and without a tool, tasks that never pass, checks, last tools."""
    if worlds.own("select count(*) from rollouts")[0][0] > MAX_LOOKED:
        return
    for contrast in table()["contrasts"]:
        limits = {"rows": MIN_ROWS, "gap": MIN_GAP, "tasks": MAX_TASKS}
        with suppress(BladeError):  # rows that have no such column
            for row in worlds.own(contrast["sql"].format(**limits)):
                listed = [[task for _, task in cell] if isinstance(cell, list | tuple) else [cell] for cell in row]
                texts = [cell[0] if len(cell) == 1 else ", ".join(cell) for cell in listed]
                quoted = [", ".join(literal(str(part)) for part in cell) for cell in listed]
                yield Draft(contrast["fact"].format(*texts), contrast["query"].format(*quoted))
