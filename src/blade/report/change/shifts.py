"""Tell what changed beside the score: outcomes, effort, behaviours, errors, further measures."""

from __future__ import annotations

from blade import hostile
from blade.model import Comparison, Derived, Measure, Shift
from blade.report import quantities, words
from blade.report.change import words as say
from blade.report.change.words import Scale
from blade.report.sections import Badge, Block, Heading, Line, Span, Table, cells, para

MAX_ROWS = 15
# In the order of print: what ends a rollout first, since it can move the score mechanically.
KINDS = {
    "outcome": ("How rollouts end", "Outcome"),
    "effort": ("What rollouts cost", "Mean over tasks"),
    "behaviour": ("Behaviours", "Behaviour"),
    "signature": ("Error texts", "Error"),
}
ORDER = ("appeared", "disappeared", "more", "less", "unclear")


def what_else_changed(comparison: Comparison, file: str) -> list[Block]:
    """Everything but the score that was held against the baseline, by kind."""
    if comparison.refused is not None:
        return [para("Without common tasks nothing else is compared.")]
    blocks: list[Block] = []
    for kind in dict.fromkeys([*KINDS, *(one.kind for one in comparison.shifts)]):
        found = sorted((one for one in comparison.shifts if one.kind == kind), key=_rank)
        blocks += _kind(kind, found, file) if found else []
    told = {one.name for one in comparison.shifts if one.kind == "effort"}
    blocks += _derived([one for one in comparison.derived if one.name not in told])
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


def _kind(kind: str, found: list[Shift], file: str) -> list[Block]:
    title, column = KINDS.get(kind, (hostile.line(kind, 40).capitalize(), "What"))
    form = Scale(kind != "effort")
    rows = tuple(_shift(one, form) for one in found[:MAX_ROWS])
    header = (column, "Baseline", "Candidate", "Change, 95% interval", "Adjusted p", "Tasks", "Reading")
    left = len(found) - len(rows)
    clear = sum(one.status != "unclear" for one in found[MAX_ROWS:])
    more = f"{words.count(left, 'more row')} in {file}, {clear:,} of them not unclear." if left > 0 else ""
    return [Heading((title,)), Table(header, rows, "lrrrrrl"), *([para(more)] if more else [])]


def _shift(one: Shift, form: Scale) -> tuple[Line, ...]:
    change = form.with_interval(one.change, one.low, one.high)
    if not form.is_rate and one.baseline > 0:
        change += f", {_relative(one.change / one.baseline)}"
    return cells(
        shift_name(one),
        form.level(one.baseline),
        form.level(one.candidate),
        change,
        words.p_number(one.p_adjusted),
        words.whole(one.n),
        status(one.status),
    )


def shift_name(one: Shift) -> str:
    if one.kind == "effort" and one.name in quantities.EFFORTS:
        return quantities.EFFORTS[one.name]
    return say.term(one.name, 160)


def _relative(value: float) -> str:
    said = words.percent(abs(value))
    return f"{'+' if value > 0 else words.MINUS if value < 0 else ''}{said}"


def status(word: str) -> Span:
    said = hostile.line(word, 20)
    return Badge(said, "warning" if said in ("appeared", "disappeared") else "quiet")


def _derived(found: list[Derived]) -> list[Block]:
    if not found:
        return []
    rows = []
    for one in found:
        form = Scale(one.unit == "rate")
        before, after = form.level(one.baseline), form.level(one.candidate)
        change = form.with_interval(one.change, one.low, one.high)
        if one.unit == say.LOG_RATIO:  # the means themselves stand in a row of their own
            before, after, change = words.NONE, words.NONE, say.ratio(one.change, one.low, one.high)
        rows.append(
            cells(
                derived_name(one),
                before,
                after,
                change,
                words.whole(one.n),
                hostile.line(one.method, 80),
            )
        )
    header = ("Measure", "Baseline", "Candidate", "Change, 95% interval", "Tasks", "Interval by")
    return [Heading(("Further measures, over the common tasks",)), Table(header, tuple(rows), "lrrrrl")]


def derived_name(one: Derived) -> str:
    """`pass@4`; what is counted where it is no rate; `output tokens, ratio` of logarithms."""
    if one.unit == say.LOG_RATIO:
        name = one.name.removeprefix("log_")
        return f"{quantities.EFFORTS.get(name) or say.term(name, 80)}, ratio"
    label = quantities.EFFORTS.get(one.name) or quantities.label(Measure("", one.name, None, 0, k=one.k))
    unit = "" if one.unit in ("rate", "") else hostile.line(one.unit, 20)
    return f"{label} ({unit})" if unit and unit not in label else label
