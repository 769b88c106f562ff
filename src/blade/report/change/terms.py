"""Report what moved a score: the claims first, then the terms that add up to the change."""

from __future__ import annotations

import math
from collections.abc import Sequence

from blade import hostile, number_format
from blade.model import Comparison, Mover, Report, Term, View
from blade.report import numbers, places, queries
from blade.report.blocks import (
    Badge,
    Block,
    Bullets,
    Commands,
    Figure,
    Heading,
    Line,
    Para,
    Span,
    Strong,
    Table,
    cells,
    named,
    para,
)
from blade.report.change import words as say
from blade.report.change.sentences import note_told, sentence
from blade.report.change.verdict import BRIDGE, pair
from blade.report.change.words import Scale

MAX_ROWS = 25  # terms of a table; the smaller ones share its last row
SAME = 1e-9  # terms add up to this
TO_READ = 2  # rollouts of a claim whose commands are written out
ACCOUNTING = "This is accounting, not causation: a failure group that disappears may make room for another."


def what_moved_it(
    comparison: Comparison, report: Report, figures: tuple[Figure, ...], file: str
) -> list[Block]:
    """The claims, mechanical causes first, then the bridge with its sum and its figure."""
    if comparison.refused is not None:
        return [para("Without a comparison there is nothing to explain.")]
    scale = say.scale(comparison.score_name)
    blocks: list[Block] = [*_claims(comparison, report)]
    if not comparison.bridge:
        return [*blocks, para("No bridge could be built: ", *_note(comparison))]
    query = f"{say.query(comparison)}.bridge"
    blocks += [
        Heading(("From the score of the baseline to that of the candidate",)),
        terms_table(comparison, comparison.bridge, scale, file, query),
        Para(sum_line(comparison, comparison.bridge, query)),
        *expectation(comparison.bridge),
        *named(figures, "bridge", key(comparison)),
    ]
    note = sentence(comparison.bridge_note, f"{say.query(comparison)}.bridge_note", names=pair(comparison))
    return [*blocks, Para(note or (ACCOUNTING,))]


def key(comparison: Comparison) -> str:
    """What the figures of a comparison are known by."""
    return f"{comparison.baseline}\n{comparison.candidate}"


def _note(comparison: Comparison) -> Line:
    said = sentence(comparison.bridge_note, f"{say.query(comparison)}.bridge_note")
    return said or ("the scores have no parts that would add up.",)


def ranked(movers: Sequence[Mover]) -> list[Mover]:
    """Mechanical causes first, otherwise as they came: the strongest claim first."""
    return sorted(movers, key=lambda one: not one.mechanical)


def _claims(comparison: Comparison, report: Report) -> list[Block]:
    movers = ranked(comparison.movers)
    if not movers:
        return [
            para(
                Strong("No cause is claimed: "),
                *unclaimed(comparison),
                ". The terms below still add up to the change; they are corrected for the number of terms tried.",
            )
            if not comparison.identical
            else para(Strong("No cause is claimed: "), "the rows are the same, so no term differs from 0.")
        ]
    blocks: list[Block] = []
    if any(one.mechanical for one in movers):
        blocks.append(
            para(
                "A mechanical cause can move the score with the model unchanged: a limit, a timeout, a "
                "verifier, infrastructure, or which tasks were run. Rule it out before the model is credited."
            )
        )
    items: list[Line] = []
    for one in movers:
        mark: Line = (Badge("mechanical", "warning"), " ") if one.mechanical else ()
        also = [span for line in beside(one, comparison) for span in (" ", *line)]
        items.append((*mark, *mover_told(comparison, one), *mover_numbers(comparison, one), *also))
        if lines := to_read(one, comparison, report):
            blocks += [Bullets(tuple(items)), Commands(tuple(lines))]
            items = []
    if rest := undetermined(comparison):
        items.append((*rest, "."))
    return [*blocks, Bullets(tuple(items))] if items else blocks


def unclaimed(comparison: Comparison) -> Line:
    """That no failure group moved beyond noise, and which part of the change no known cause explains."""
    rest = undetermined(comparison)
    return ("no failure group with a known cause moved beyond noise", *((". ", *rest) if rest else ()))


def undetermined(comparison: Comparison) -> Line:
    """The largest term, where its cause is undetermined and it is beyond noise."""
    terms = [term for term in comparison.bridge if term.side not in ("composition", "missing")]
    largest = max(terms, key=lambda term: abs(term.value), default=None)
    if largest is None or largest.side != "undetermined" or largest.p is None or largest.p > say.ALPHA:
        return ()
    query = term_query(f"{say.query(comparison)}.bridge", comparison.bridge, largest)
    moved = say.scale(comparison.score_name).change(largest.value, f"{query}.value")
    name = numbers.name(say.term(largest.term))
    return ("The largest part, ", moved, ", is in failures of undetermined cause: ", *name)


def mover_query(comparison: Comparison, mover: Mover) -> str:
    """The engine query that selects a claim."""
    every = f"{say.query(comparison)}.movers"
    return queries.chosen(every, comparison.movers, mover, "term", "side", "view")


def mover_told(comparison: Comparison, mover: Mover) -> Line:
    """What is claimed to have moved the score, and by how much."""
    scale, query = say.scale(comparison.score_name), mover_query(comparison, mover)
    side = "" if mover.side in ("slice", "composition", "missing") else f" ({say.side(mover.side)})"
    moved = scale.change(mover.value, f"{query}.value", strong=True)
    return (*numbers.name(say.term(mover.term)), f"{side} accounts for ", moved)


def beside(one: Mover, comparison: Comparison) -> list[Line]:
    """What the rollouts of a claim show as well, a sentence each."""
    query = f"{mover_query(comparison, one)}.beside"
    return [
        note_told(text, f"{query}[{place}]", pair(comparison))
        for place, text in enumerate(one.beside)
        if text.strip()
    ]


def to_read(one: Mover, comparison: Comparison, report: Report) -> list[tuple[str, str]]:
    """`blade show` lines for the first rollouts that show it."""
    runs = {run.name: run for run in report.runs}
    found: list[tuple[str, str]] = []
    for name, task, repeat in one.rollouts[:TO_READ]:
        if name in runs:
            role = "baseline" if name == comparison.baseline else "candidate"
            found += places.show(runs[name], task, repeat, f"{role}, {say.term(one.term, 60)}")
    return found


def mover_numbers(comparison: Comparison, mover: Mover) -> Line:
    """` [+3.1 points, +14.2 points], adjusted p = 0.004, 80.0% of the change; 7 tasks are concerned.`"""
    scale, query = say.scale(comparison.score_name), mover_query(comparison, mover)
    bounds = scale.interval(mover.low, mover.high, query) or (" (no interval)",)
    said: Line = (*bounds, ", adjusted ", *numbers.p_value(mover.p_adjusted, f"{query}.p_adjusted"))
    if mover.share is not None:
        said += (", ", *share(mover.share, f"{query}.share"))
    if mover.view != BRIDGE:
        said += (f", view {hostile.line(mover.view, 60)}",)
    return (*said, *_beside_share(comparison, mover), ".")


def _beside_share(comparison: Comparison, mover: Mover) -> Line:
    """What its share of the change would be, and the tasks that it rests on."""
    terms, every = _terms(comparison, mover.view)
    term = next((one for one in terms if (one.term, one.side) == (mover.term, mover.side)), None)
    if term is None:
        return ()
    query, scale = term_query(every, terms, term), say.scale(comparison.score_name)
    tasks = numbers.count(term.n, "task", f"{query}.n")
    expected: Line = (
        "; in proportion to all losses it would be ",
        scale.change(term.expected, f"{query}.expected"),
    )
    return (*(expected if term.expected is not None else ()), "; ", *tasks)


def _terms(comparison: Comparison, name: str) -> tuple[Sequence[Term], str]:
    """The terms of a view, and the query that selects them."""
    if name == BRIDGE:
        return comparison.bridge, f"{say.query(comparison)}.bridge"
    view = next((view for view in comparison.views if view.name == name), None)
    return (view.terms, f"{view_query(comparison, view)}.terms") if view is not None else ((), "")


def view_query(comparison: Comparison, view: View) -> str:
    """The engine query that selects a view."""
    return queries.chosen(f"{say.query(comparison)}.views", comparison.views, view, "name")


def term_query(query: str, terms: Sequence[Term], term: Term) -> str:
    """The engine query that selects a term of those that `query` gives."""
    return queries.chosen(query, terms, term, "term", "side")


def share(value: float, query: str) -> Line:
    """A part of the change; it may be larger than the whole, or against it."""
    if value < -SAME:
        return ("against the change",)
    if value > 1 + SAME:
        return ("more than the whole change",)
    return (numbers.percent(value, query), " of the change")


def folded(terms: Sequence[Term], most: int) -> tuple[list[Term], list[Term]]:
    """The terms to show, in their order, and the smallest that share a row; a lone one is never folded."""
    if len(terms) <= most:
        return list(terms), []
    order = sorted(range(len(terms)), key=lambda at: (-abs(terms[at].value), at))
    kept = set(order[: most - 1])
    shown = [one for at, one in enumerate(terms) if at in kept]
    return shown, [one for at, one in enumerate(terms) if at not in kept]


def terms_table(comparison: Comparison, terms: Sequence[Term], scale: Scale, file: str, query: str) -> Table:
    """One row per term; the smaller ones of many share a row, so that the column still adds up."""
    shown, left = folded(terms, MAX_ROWS)
    beyond = any(term.expected is not None or term.p_excess is not None for term in terms)
    more = ("Expected", "p beyond share") if beyond else ()
    header = ("Term", "Side", "Change, 95% interval", "p", "Tasks", *more)
    rows = [_row(comparison, term, scale, beyond, term_query(query, terms, term)) for term in shown]
    if left:
        total = scale.change(math.fsum(term.value for term in left), _rest_query(query, terms, shown))
        name = numbers.count(len(left), "smaller term", f"{query}.count - {len(shown)}")
        nothing = [number_format.NONE] * (2 + 2 * beyond)
        rows.append(cells((*name, f", each in {file}"), "several", total, *nothing))
    return Table(header, tuple(rows), "llrrr" + "rr" * beyond)


def _rest_query(query: str, terms: Sequence[Term], shown: Sequence[Term]) -> str:
    """The query that gives what the terms that are not shown add up to."""
    names = tuple(term.term for term in shown)
    if sum(term.term in names for term in terms) == len(shown):
        return f"{query}.value - {query}(term={names!r}).value"
    places_of = {id(term): place for place, term in enumerate(terms)}
    return " - ".join([f"{query}.value", *(f"{query}[{places_of[id(term)]}].value" for term in shown)])


def _row(comparison: Comparison, term: Term, scale: Scale, beyond: bool, query: str) -> tuple[Line, ...]:
    more: tuple[Span, ...] = ()
    if beyond:
        more = (
            scale.change(term.expected, f"{query}.expected"),
            numbers.p_number(term.p_excess, f"{query}.p_excess"),
        )
    return cells(
        numbers.name(say.term(term.term)),
        numbers.name(say.side(term.side)),
        (scale.change(term.value, f"{query}.value"), *scale.interval(term.low, term.high, query)),
        numbers.p_number(term.p, f"{query}.p"),
        numbers.whole(term.n, f"{query}.n"),
        *more,
    )


def expectation(terms: Sequence[Term]) -> list[Block]:
    """What the last columns of such a table mean, where it has them."""
    if all(one.expected is None and one.p_excess is None for one in terms):
        return []
    return [
        para(
            "Expected: what the term would be if it took just its share of the change. p beyond share: how "
            "often chance alone would take a term at least as far from its share; small where it moved by more "
            "than its share."
        )
    ]


def sum_line(comparison: Comparison, terms: Sequence[Term], query: str) -> Line:
    """That the terms add up, to six decimals; a sum that does not is said aloud."""
    total, delta = math.fsum(term.value for term in terms), comparison.delta
    scale = say.scale(comparison.score_name)
    six, said = numbers.num(_six(total), total, f"{query}.value"), scale.change(total, f"{query}.value")
    lead: Line = (Strong("Sum of the terms: "), six, ", that is ", said)
    of = f"the change of {say.score_label(comparison.score_name)}"
    if delta is None:
        return (*lead, "; there is no change to compare it with.")
    if abs(total - delta) <= SAME:
        return (*lead, f": {of}, exactly.")
    stated = numbers.num(_six(delta), delta, f"{say.query(comparison)}.delta")
    return (*lead, f", which is not {of}, ", stated, ": do not use these terms.")


def _six(value: float) -> str:
    sign = number_format.MINUS if value < -5e-7 else "+" if value >= 5e-7 else ""
    return f"{sign}{abs(value):.6f}"


def further_views(comparison: Comparison, file: str) -> list[Block]:
    """The other ways to add up to the change, each with its sum."""
    if not comparison.views:
        return [para("There is no further way to split the change: no slice or setting varies.")]
    blocks: list[Block] = [
        para(
            "Each view splits the whole change once more. Terms of different views must not be added: they "
            "split the same points in another way."
        )
    ]
    for view in comparison.views:
        blocks += _view(view, comparison, view_query(comparison, view), file)
    return blocks


def _view(view: View, comparison: Comparison, query: str, file: str) -> list[Block]:
    name, scale = say.term(view.name, 80), say.scale(comparison.score_name)
    blocks: list[Block] = [Heading(numbers.name(f"{name[:1].upper()}{name[1:]}"))]
    if view.note:
        blocks.append(Para(sentence(view.note, f"{query}.note")))
    if not view.terms:
        return [*blocks, para("It has no terms.")]
    table, total = (
        terms_table(comparison, view.terms, scale, file, f"{query}.terms"),
        Para(sum_line(comparison, view.terms, f"{query}.terms")),
    )
    return [*blocks, table, total, *expectation(view.terms)]
