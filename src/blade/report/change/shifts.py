"""Report what changed beside the score: outcomes, effort, behaviours, errors, further measures."""

from __future__ import annotations

from blade import hostile, number_format
from blade.model import Comparison, Derived, Measure, Shift
from blade.report import numbers, places, quantities, queries
from blade.report.blocks import Badge, Block, Heading, Line, Span, Table, cells, para
from blade.report.change import words as say
from blade.report.change.words import Scale

MAX_ROWS = 15
# In the order of print: what ends a rollout first, since it can move the score mechanically.
KINDS = {
    "outcome": ("How rollouts end", "Outcome"),
    "effort": ("What rollouts cost", "Mean over tasks"),
    "behaviour": ("Facts behind the failure groups", "Fact"),
    "signature": ("Error texts", "Error"),
}
ORDER = ("appeared", "disappeared", "more", "less", "unclear")


def what_else_changed(comparison: Comparison, file: str) -> list[Block]:
    """Everything but the score that was compared with the baseline, by kind."""
    if comparison.refused is not None:
        return [para("Without common tasks nothing else is compared.")]
    blocks: list[Block] = []
    for kind in dict.fromkeys([*KINDS, *(one.kind for one in comparison.shifts)]):
        found = sorted((one for one in comparison.shifts if one.kind == kind), key=_rank)
        blocks += _kind(comparison, kind, found, file) if found else []
    blocks += _derived(comparison)
    if not blocks:
        return [para("Nothing else was compared: no rollout reports effort, behaviour or errors.")]
    return [
        para(
            "Rates and means are over tasks, each task against itself; p is adjusted within each table. What "
            "changed along with the score need not have caused it."
        ),
        *blocks,
    ]


def _rank(one: Shift) -> tuple[int, float, str]:
    at = ORDER.index(one.status) if one.status in ORDER else len(ORDER)
    return (at == len(ORDER) - 1, 2.0 if one.p_adjusted is None else one.p_adjusted, one.name)


def _kind(comparison: Comparison, kind: str, found: list[Shift], file: str) -> list[Block]:
    title, column = KINDS.get(kind, (hostile.line(kind, 40).capitalize(), "What"))
    query, form = f"{say.query(comparison)}.shifts", Scale(kind != "effort")
    rows = tuple(
        _shift(shift, form, queries.chosen(query, comparison.shifts, shift, "kind", "name"))
        for shift in found[:MAX_ROWS]
    )
    header = (column, "Baseline", "Candidate", "Change, 95% interval", "Adjusted p", "Tasks", "Reading")
    more = places.left_out(len(found), len(rows), "row", f"{query}(kind={kind!r}).count", file)
    return [Heading((title,)), Table(header, rows, "lrrrrrl"), *more]


def _shift(shift: Shift, form: Scale, query: str) -> tuple[Line, ...]:
    change: Line = (
        form.change(shift.change, f"{query}.change"),
        *form.interval(shift.low, shift.high, query),
    )
    if not form.is_rate and shift.baseline > 0:
        relative = shift.change / shift.baseline
        part = numbers.num(_relative(relative), relative, f"{query}.change / {query}.baseline")
        change += (", ", part)
    return cells(
        numbers.name(shift_name(shift)),
        form.level(shift.baseline, f"{query}.baseline"),
        form.level(shift.candidate, f"{query}.candidate"),
        change,
        numbers.p_number(shift.p_adjusted, f"{query}.p_adjusted"),
        numbers.whole(shift.n, f"{query}.n"),
        status(shift.status),
    )


def shift_name(one: Shift) -> str:
    if one.kind == "effort" and one.name in quantities.EFFORTS:
        return quantities.EFFORTS[one.name]
    return say.term(one.name, 160)


def _relative(value: float) -> str:
    said = number_format.percent(abs(value))
    return f"{'+' if value > 0 else number_format.MINUS if value < 0 else ''}{said}"


def status(word: str) -> Span:
    said = hostile.line(word, 20)
    return Badge(said, "warning" if said in ("appeared", "disappeared") else "quiet")


def _derived(comparison: Comparison) -> list[Block]:
    """The measures that no table above has; a ratio of what they have is left out."""
    told = {shift.name for shift in comparison.shifts if shift.kind == "effort"}
    rows = []
    for derived in comparison.derived:
        if derived.name in told or derived.unit == say.LOG_RATIO:
            continue
        form, every = Scale(derived.unit == "rate"), f"{say.query(comparison)}.derived"
        query = queries.chosen(every, comparison.derived, derived, "name", "k")
        change = form.change(derived.change, f"{query}.change")
        rows.append(
            cells(
                derived_name(derived) if derived.unit == "rate" else numbers.name(derived_name(derived)),
                form.level(derived.baseline, f"{query}.baseline"),
                form.level(derived.candidate, f"{query}.candidate"),
                (change, *form.interval(derived.low, derived.high, query)),
                numbers.whole(derived.n, f"{query}.n"),
                numbers.said(derived.method, f"{query}.method", 80),
            )
        )
    if not rows:
        return []
    header = ("Measure", "Baseline", "Candidate", "Change, 95% interval", "Tasks", "Interval by")
    return [Heading(("Further measures, over the common tasks",)), Table(header, tuple(rows), "lrrrrl")]


def derived_name(one: Derived) -> str:
    """`pass@4`; what is counted where it is no rate."""
    label = quantities.EFFORTS.get(one.name) or quantities.label(Measure("", one.name, None, 0, k=one.k))
    unit = "" if one.unit in ("rate", "") else hostile.line(one.unit, 20)
    return f"{label} ({unit})" if unit and unit not in label else label
