"""Write the first page: can the score be trusted, where the points went, what to fix first, what to look at."""

from __future__ import annotations

from blade import hostile, number_format
from blade.model import Cause, Gain, Group, Outcome, Recommendation, Slice, Trust
from blade.report import causes, numbers, places, quantities, queries
from blade.report.blocks import (
    Block,
    Bullets,
    Code,
    Commands,
    Line,
    Para,
    Span,
    Strong,
    Table,
    cells,
    para,
)
from blade.report.facts import Facts

TRUSTED, POINTS, FIX, LOOK, WHERE, HAPPENED = LABELS = (
    "Can the score be trusted?", "Where the points went", "Fix first", "Look at", "On which tasks", "What happened",
)  # fmt: skip
MAX_TRUST = 4
MAX_FIXES = 3
MAX_SLICES, MAX_VALUES = 3, 5  # fields, and values of one
MAX_LOOK = 3
SOUND = "Yes: nothing in the rows speaks against it."
LEVEL = 0.05
SENTENCE = 700


def headline(facts: Facts) -> Line:
    """The score with what it rests on."""
    run, score = facts.run, facts.score
    name = hostile.line(run.name, 60)
    model = hostile.line(run.model or "", 60)
    who: Line = (Code(name),) if not model or model in name else (Code(model), " (", Code(name), ")")
    where: Line = (" on ", Code(hostile.line(run.benchmark, 60))) if run.benchmark else ()
    if score.value is None or run.score is None:
        return (*who, *where, ": no score, because no rollout was scored.")
    value = quantities.value(score, facts.is_rate, True)
    interval = _interval(facts)
    tries = run.coverage.repeats
    rests: Line = (
        *numbers.count(run.n_tasks, "task", facts.n_tasks),
        ", ",
        *(
            ("one try each",)
            if tries == 1
            else (numbers.whole(tries, facts.counted("repeats")), " tries each")
        ),
    )
    if not facts.is_rate:
        kind = " (partial credit)" if 0 <= score.value <= 1 else ""
        return (*who, *where, ": mean reward ", value, kind, *interval, "; ", *rests, *_threshold(facts))
    passed = facts.run.outcomes.get(Outcome.PASSED, 0)
    of = (
        numbers.whole(passed, queries.measure("count", run.name, "passed")),
        " of ",
        numbers.whole(run.n_rollouts, facts.n_rollouts),
    )
    # tasks count alike, so with unequal numbers of tries the score is no plain ratio of rollouts
    is_ratio = abs(passed / run.n_rollouts - score.value) < 5e-4 if run.n_rollouts else True
    return (
        *who,
        *where,
        ": ",
        value,
        " passed (" if is_ratio else " passed on average over tasks (",
        *of,
        " rollouts",
        *interval,
        "); ",
        *rests,
        *_threshold(facts),
    )


def _interval(facts: Facts) -> Line:
    """The interval of the score; over the tasks that share a prompt, where the index does not tell tasks apart."""
    by_prompt = next((one for one in facts.measures if one.name == "pass_at_k" and one.k == 1 and one.slice is not None), None)
    score = by_prompt or facts.score
    if score.low is None or score.high is None:
        return ()
    low, high = (quantities.part(score, name, facts.is_rate) for name in ("low", "high"))
    return (", 95% CI ", *(("by prompt ",) if by_prompt else ()), low, " to ", high)


def _threshold(facts: Facts) -> Line:
    """What passes, where it is not simply a reward of 1."""
    run = facts.run
    if not run.has_pass_rate or run.pass_threshold == 1:
        return ()
    return (
        "; a rollout passes at a reward of ",
        numbers.number(run.pass_threshold, facts.counted("pass_threshold")),
    )


def trust(facts: Facts) -> tuple[Line, list[Line]]:
    """The answer in a word, and its reasons, the gravest first."""
    alarms = [one for one in facts.trust if one.level == "alarm"]
    warnings = [one for one in facts.trust if one.level == "warning"]
    notes = [one for one in facts.trust if one.level == "note"]
    answer = "No." if alarms else "With care." if warnings else "Yes, with a note:" if notes else SOUND
    if facts.score.value is None and not alarms:
        answer = "There is none."
    shown = [*alarms, *warnings, *notes][:MAX_TRUST]
    return (Strong(answer),), [_reason(facts, one) for one in shown]


def _reason(facts: Facts, one: Trust) -> Line:
    label: Line = (
        (f" [{causes.called(one.label)}]",) if one.label is not None and one.level == "alarm" else ()
    )
    return (numbers.said(one.text, f"{facts.entry('trust', one)}.text", SENTENCE), *label)


def points(facts: Facts) -> list[tuple[Line, Line, Line, Line, Line]]:
    """Each group: points, what it is, label, failures, passes that show the same; the unexplained last."""
    rows: list[tuple[Line, Line, Line, Line, Line]] = []
    lost = sum(group.points for group in facts.groups) + (facts.unexplained.points if facts.unexplained is not None else 0.0)
    for group in facts.groups:
        query = facts.entry("groups", group)
        rows.append(
            (
                (_size(group.points, f"{query}.points") if lost else number_format.NONE,),
                (numbers.said(group.name, f"{query}.name", 120),),
                (group.label.value,),
                numbers.count(group.rows, "failure", f"{query}.rows"),
                numbers.count(group.passed_rows, "pass", f"{query}.passed_rows", "passes"),
            )
        )
    rest = facts.unexplained
    if rest is not None:
        query = facts.entry("unexplained", rest)
        failures = numbers.count(rest.rows, "failure", f"{query}.rows")
        size: Line = (_size(rest.points, f"{query}.points") if lost else number_format.NONE,)
        rows.append((size, ("unexplained",), ("",), failures, ("",)))
    return rows


def legend(facts: Facts) -> str:
    """The labels of the groups, spelled out."""
    labels = dict.fromkeys(group.label for group in facts.groups if group.label is not Cause.UNDETERMINED)
    return "; ".join(f"{label.value}: {causes.NAMES[label]}" for label in labels)


def _size(value: float, query: str) -> Span:
    """Points of score without their unit."""
    text = "0.0" if abs(value) < 5e-5 else "<0.1" if abs(value) < 5e-4 else f"{100 * value:.1f}"
    return numbers.num(text + " points", value, query)


def fixes(facts: Facts) -> list[Line]:
    """What to change, each with what it could win."""
    return [(*_said(facts, one), " ", *gain(facts, one)) for one in facts.recommendations[:MAX_FIXES]] or [
        ("Nothing: no failure is explained by something that can be changed.",)
    ]


def _said(facts: Facts, one: Recommendation) -> Line:
    return causes.sentence(one.action, f"{facts.entry('recommendations', one)}.action", 400)


def gain(facts: Facts, one: Recommendation) -> Line:
    """The expected gain, or its upper bound, called so."""
    query = facts.entry("recommendations", one)
    if one.gain is not None:
        return (*_gained(one.gain, query), ".")
    if one.is_measurement:
        return ("(Fixes the measurement, not the model.)",)
    if one.most <= 0:
        return ()
    return (
        "(Gain not identified; at most ",
        numbers.num(number_format.points(one.most).removeprefix("+"), one.most, f"{query}.most"),
        ".)",
    )


def _gained(found: Gain, query: str) -> Line:
    point, low, high = (
        numbers.points(getattr(found, name), f"{query}.gain.{name}") for name in ("point", "low", "high")
    )
    return ("Expected gain ", point, " (95% interval ", low, " to ", high, ")")


def slices(facts: Facts) -> list[Line]:
    """Kinds of task that pass far less often than the others."""
    fields: dict[str, list[Slice]] = {}
    for piece in facts.slices:
        if piece.p_adjusted is not None and piece.p_adjusted <= LEVEL and piece.is_worse:
            fields.setdefault(piece.field, []).append(piece)
    return [_slice(facts, field, pieces) for field, pieces in list(fields.items())[:MAX_SLICES]]


def _slice(facts: Facts, field: str, pieces: list[Slice]) -> Line:
    """The values of a field on which tasks pass less often, each with its rate; beside a single one that of the others."""
    say = numbers.percent
    parts: list[Line] = []
    for piece in sorted(pieces[:MAX_VALUES], key=lambda one: one.pass_rate or 0.0):
        query = facts.entry("slices", piece)
        parts.append(
            (
                # a class of expected answers is a description, any other value is as the rows have it
                piece.value if piece.value.startswith(("a ", "several ")) and " " in field else Code(hostile.line(piece.value, 60)), ": ",
                say(piece.pass_rate, f"{query}.pass_rate"), " pass (",
                *numbers.count(piece.n_tasks, "task", f"{query}.n_tasks"), ")",
            )
        )  # fmt: skip
    name: Line = (f"{field} ",) if " " in field else (Code(hostile.line(field, 60)), " = ")
    others: Line = ()
    if len(pieces) == 1:
        others = (", the others ", say(pieces[0].rest, f"{facts.entry('slices', pieces[0])}.rest"))
    return (*name, *(span for at, part in enumerate(parts) for span in ((", ",) if at else ()) + part), *others)


def look(facts: Facts) -> list[tuple[str, str]]:
    """Commands that show an example of the first groups, each with why it is worth it."""
    found: list[tuple[str, str]] = []
    for group in facts.groups[:MAX_LOOK]:
        task, _, repeat = group.examples[0].rpartition("/")
        found += places.show(facts.run, task, int(repeat), hostile.line(group.name, 60))
    return found


# ---- As blocks of a page -------------------------------------------------------------------------


def blocks(facts: Facts) -> list[Block]:
    """The first page of one run, for Markdown and HTML."""
    answer, reasons = trust(facts)
    found: list[Block] = [Para(headline(facts)), para(Strong(TRUSTED), " ", *answer)]
    if reasons:
        found.append(Bullets(tuple(reasons)))
    if facts.groups or facts.unexplained is not None:
        rows = tuple(cells(*row) for row in points(facts))
        found += [
            para(Strong(POINTS), f" ({legend(facts)})" if legend(facts) else ""),
            Table(("Lost", "Failure group", "Label", "Failures", "Passes with it"), rows, "rllrr"),
        ]
    where = slices(facts)
    if where:
        found += [para(Strong(WHERE)), Bullets(tuple(where))]
    if facts.groups:
        found += [para(Strong(FIX)), Bullets(tuple(fixes(facts)))]
    lines = look(facts)
    if lines:
        found += [para(Strong(LOOK)), Commands(tuple(lines))]
    return found


def group_blocks(facts: Facts, group: Group) -> list[Block]:
    """One failure group with its evidence."""
    query = facts.entry("groups", group)
    against: Line = ()
    if group.against:
        said = "; ".join(group.against)
        against = (" Against it: ", numbers.said(said, f"{query}.against[0]", written=group.against[0]), ".")
    found: list[Block] = [
        Para(
            (
                numbers.said(group.text, f"{query}.text", SENTENCE),
                f" {group.confidence.value.capitalize()}: ",
                numbers.said(group.why_label, f"{query}.why_label"),
                ".",
                *against,
                " Fix: ",
                numbers.said(group.fix, f"{query}.fix"),
                " Rollouts: ",
                *numbers.joined([(Code(hostile.line(name, 60)),) for name in group.examples]),
                ".",
            )
        )
    ]
    if group.quote is not None:
        found.append(places.quotation(group.quote, places.side(facts, group.quote)))
    return found
