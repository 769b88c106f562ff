"""List what a report states without a source: uncited numbers, and causes that rest on nothing it cites."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice
from typing import Any

import msgspec

from blade.check.arithmetic.printed_numbers import Figure, phrase
from blade.check.cited_numbers import Cited, is_sentence
from blade.check.markdown_document import Passage, blanked, quotes_in
from blade.check.report_ground import World
from blade.check.row_ids import mentions, numbered, runs_named, step_spans, with_noun
from blade.check.vocabulary import compiled
from blade.model.conclusions import OPINION, UNCITED, Finding
from blade.model.measurements import PLACEHOLDER
from blade.query.number_readings import last_figure
from blade.query.query_ground import value
from blade.query.query_process import Answers
from blade.tables.database import literal, quoted

Spans = list[tuple[int, int]]
_NUMBERING = re.compile(r"^\s*(?:\d+(?:\.\d+)*[.)]?|\(?\d+\))\s+")
_ID_HEADS = "# no. no k rank step steps line row repeat task rollout id index version seed date year".split()
_DAY = compiled("day")
_COUNTED = re.compile(r"(count|tasks)\b(?! *[.(])")


def uncited(passages: list[Passage], items: list[Cited], answers: Answers, world: World) -> Iterator[Finding]:
    """One finding for each number that nothing is cited for, with the query that would give it."""
    banks = cache(lambda run: list(islice(bank(world, run), 2_000)))  # each made when it is first asked
    taken = _taken(passages, items, answers)
    covered = {line for item in items if item.passage is None for line in item.lines}
    for passage in passages:
        # a cell that names its row, or whose column names things by number
        is_label = passage.header.strip().lower() in _ID_HEADS or with_noun(passage) != passage.own
        is_label = is_label or (passage.column == 0 and re.fullmatch(r"[\W\d]*", passage.own) is not None)
        if passage.line in covered or (passage.kind == "cell" and is_label):
            continue
        runs = runs_named(" ".join((passage.text, *passage.headings)), world.rows.runs)
        for figure in phrase(_masked(passage, taken.get(id(passage), []), world)).figures:
            is_known = figure.unit in ("", "%", "$", "s") and not figure.signed
            fits = {known.query for run in runs[:4] if is_known for known in banks(run) if _gives(known, figure)}
            query = fits.pop() if len(fits) == 1 else None  # if exactly one short query about the runs does
            why = f"{figure.text} = {query}; cite it?" if query else ""
            place = (passage.line, passage.lines, passage.text, figure.text, query or "", "", why, query)
            yield Finding(UNCITED, "number", *place)
    for item in items:  # what a cited count is said to be out of, where that is not all there are: `84 of 999`
        printed, counted = last_figure(item.before), _COUNTED.match(item.citation.query)
        if printed is None or printed.whole is None or counted is None:
            continue
        if len(answers.runs) > 1 or value(counted[1], answers) != printed.whole:
            yield Finding(UNCITED, "number", item.line, item.lines, item.text, f"{printed.whole:,g}")


def _taken(passages: Sequence[Passage], items: Sequence[Cited], answers: Answers) -> dict[int, Spans]:
    """What is cited in each passage; of a sentence of the engine, all of it back to the citation before."""
    taken: dict[int, Spans] = {}
    whole: set[int] = set()  # passages that belong to such a sentence from their beginning
    for item in items:
        start = item.after if is_sentence(item, answers) else item.start
        taken.setdefault(id(item.passage), []).append((start, item.end))
        whole |= {id(item.passage)} if start < item.start and not start else set()
    for passage, following in zip(reversed(passages[:-1]), reversed(passages[1:]), strict=True):
        if id(following) in whole and following.before and id(passage) not in taken:
            taken[id(passage)] = [(0, len(passage.own))]
            whole.add(id(passage))
    return taken


def _masked(passage: Passage, taken: Spans, world: World) -> str:
    """A passage without what is cited, quoted or named by a number."""
    text = blanked(passage.own, taken)
    text = blanked(text, [hit.span() for pattern in (PLACEHOLDER, _DAY) for hit in pattern.finditer(text)])
    text = blanked(text, [(start, end) for _, start, end in quotes_in(text)])
    names = [(name.start, name.end) for name in numbered(text)] + step_spans(text)
    text = blanked(text, names + [(name.start, name.end) for name in mentions(text, world.rows)])
    return _NUMBERING.sub("", text) if passage.kind == "heading" else text


def opinions(passages: Sequence[Passage]) -> Iterator[Finding]:
    """Causal sentences that neither cite nor quote anything."""
    for passage in passages:
        cause = compiled("cause").search(passage.own) if passage.kind in ("sentence", "item") else None
        is_cited = any(re.match(r"blade:|c\d+$", comment.text) for comment in passage.comments)
        if cause is not None and not is_cited and not any(True for _ in quotes_in(passage.own)):
            yield Finding(OPINION, "cause", passage.line, passage.lines, passage.text, cause[0])


MAX_COLUMNS, MAX_VALUES = 24, 20  # columns that conditions are made of, and values of each
MAX_K = 8
_EFFORTS = "turns calls steps input_tokens output_tokens reasoning_tokens total_tokens seconds cost_usd"
_ENDS = "repeat outcome last_tool last_kind stop_reason truncated errored timed_out equals_gold".split()
COUNT, RATE, MEAN = "count", "rate", "mean"
_SCORED = "filter (where not masked and passed is not null)"
_COUNTS = (("count", "count(*)"), ("tasks", "count(distinct task)"))
_MEASURES = (  # name, outcome, kind, and what gives it for each group of rows
    *((name, "", COUNT, sql) for name, sql in _COUNTS),
    ("pass_at_1", "", RATE, f"sum(cast(passed as int) * share) {_SCORED} / count(distinct task) {_SCORED}"),
    ("rate", "", RATE, f"avg(cast(passed as int)) {_SCORED}"),
    *((name, of, COUNT, f"{sql} filter (where {of})") for of in ("passed", "not passed") for name, sql in _COUNTS),
)
_TWINS = {"tasks": "count", "rate": "pass_at_1"}  # the same where each task has one row


class Known(msgspec.Struct, frozen=True):
    """A short query and what it gives."""

    query: str
    value: float
    kind: str


def _gives(known: Known, figure: Figure) -> bool:
    is_whole = figure.step >= 1 and not figure.unit
    scaled = known.value * 100 if figure.unit == "%" else known.value
    if (figure.unit == "%") != (known.kind == RATE) and (figure.unit == "%" or is_whole):
        return False
    if known.kind == COUNT:
        return is_whole and scaled == figure.value
    is_slice = re.search(r"\.(?:low|high)\b|\bwhere (?!run = '[^']*'$)", known.query)
    if (is_whole and abs(figure.value) < 100) or (figure.digits < 3 and is_slice):
        return False  # a mean of 7.2 is not printed as 7; of so many slices one is 40% by chance
    return abs(scaled - figure.value) <= figure.step / 2 + 1e-9


def bank(world: World, run: str) -> Iterator[Known]:
    """The short queries about a run; of conditions that select the same rows the first."""
    columns, seen = world.columns(), set[int]()
    efforts = [name for name in _EFFORTS.split() if columns.get(name, "VARCHAR") != "VARCHAR"]
    means = ((f"mean({name})", f"avg({quoted(name)}) filter (where not masked)") for name in efforts)
    measures = (*_MEASURES, *((name, "", MEAN, sql) for name, sql in means))
    scope = f"run = {literal(run)}" if len(world.rows.runs) > 1 else ""
    yield from _whole_run(world, run, scope)
    plain: dict[tuple[str, str], float] = {}  # what a measure gives without a condition of its own
    sql = f"""select "column" from fields where run = {literal(run)} and "distinct" between 2 and {MAX_VALUES}
        and type in ('text', 'boolean') and role in ('task-level', 'verdict', 'other') order by 1"""
    few = dict.fromkeys([*_ENDS, *(row[0] for row in world.select(sql))])  # of few values, which tell rows apart
    for column in ("", "passed", *[name for name in few if name in columns][:MAX_COLUMNS]):
        name = column if re.fullmatch(r"[a-z_][a-z0-9_]*", column) else quoted(column)
        for key, rows, *numbers in _groups(world, run, column, [sql for *_, sql in measures]):
            if key is None or rows in seen:
                continue
            condition = {"true": name, "false": f"not {name}"}.get(key, f"{name} = {literal(key)}") if column else ""
            seen.add(rows)
            values = {entry[:2]: number for entry, number in zip(measures, numbers, strict=True)}
            for measure, outcome, kind, _ in measures:
                number, twin = values[measure, outcome], values.get((_TWINS.get(measure, ""), outcome))
                is_given = column in ("passed", "outcome") and bool(outcome or kind == RATE)
                if number is None or is_given or (twin is not None and abs(twin - number) < 1e-9):
                    continue
                where = " and ".join(filter(None, (scope, condition, outcome)))
                if plain.setdefault((measure, outcome), number) != number or not condition:
                    yield Known(f"{measure} where {where}" if where else measure, float(number), kind)


def _groups(world: World, run: str, column: str, measures: Sequence[str]) -> list[tuple[Any, ...]]:
    """For each value of a column: the value, which rows have it, and the measures of them."""
    key = f"cast({quoted(column)} as varchar)" if column else "'true'"
    return world.select(f"""
        with held as (
            select *, {key} as key, 1.0 / count(*) {_SCORED} over (partition by {key}, task) as share
            from rollouts where run = {literal(run)})
        select key, bit_xor(hash("row")), {", ".join(measures)}
        from held group by key order by count(*) desc limit {MAX_VALUES}""")


def _whole_run(world: World, run: str, scope: str) -> Iterator[Known]:
    where = f" where {scope}" if scope else ""
    repeats = world.select(f"select repeats from runs where run = {literal(run)}")
    ks = range(2, min(MAX_K, repeats[0][0] if repeats else 1) + 1)
    queries = [f"{name}({k}){where}" for k in ks for name in ("pass_at_k", "pass_hat_k")]
    for query in [*queries, f"pass_at_1.low{where}", f"pass_at_1.high{where}"]:
        number = value(query, world.ground)
        if number is not None:
            yield Known(query, number, RATE)
    buckets = f"select bucket, count(*) from tasks where run = {literal(run)} and bucket is not null group by 1"
    for bucket, n in world.select(buckets):
        where = " and ".join(filter(None, (scope, f"bucket = {literal(bucket)}")))
        yield Known(f"select count(*) from tasks where {where}", float(n), COUNT)
