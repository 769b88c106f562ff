"""Tell what moved a score: the claims first, then the terms that add up to the change."""

from __future__ import annotations

import math
from collections.abc import Sequence

from blade import hostile
from blade.model import Comparison, Mover, Report, Term, View
from blade.report import places, words
from blade.report.change import words as say
from blade.report.change.sentences import note_told, sentence
from blade.report.change.verdict import BRIDGE, pair
from blade.report.change.words import Scale
from blade.report.sections import (
    Badge,
    Block,
    Bullets,
    Commands,
    Figure,
    Heading,
    Line,
    Para,
    Strong,
    Table,
    cells,
    named,
    para,
)

MAX_ROWS = 25  # terms of a table; the smaller ones share its last row
SAME = 1e-9  # terms add up to this
TO_READ = 2  # rollouts of a claim whose commands are written out
ACCOUNTING = "This is accounting, not causation: a mode that is gone may make room for another."


def what_moved_it(
    comparison: Comparison, report: Report, figures: tuple[Figure, ...], file: str
) -> list[Block]:
    """The claims, mechanical causes first, then the bridge with its sum and its figure."""
    if comparison.refused is not None:
        return [para("Without a comparison there is nothing to explain.")]
    scale = say.scale(comparison.score_name)
    blocks: list[Block] = [*_claims(comparison, report, scale)]
    if not comparison.bridge:
        return [*blocks, para("No bridge could be built: ", *_note(comparison.bridge_note))]
    blocks += [
        Heading(("From the score of the baseline to that of the candidate",)),
        terms_table(comparison.bridge, scale, file),
        Para(sum_line(comparison.bridge, comparison.delta, scale, comparison.score_name)),
        *expectation(comparison.bridge),
        *named(figures, "bridge", key(comparison)),
    ]
    return [*blocks, Para(sentence(comparison.bridge_note or ACCOUNTING, names=pair(comparison)))]


def key(comparison: Comparison) -> str:
    """What the figures of a comparison are known by."""
    return f"{comparison.baseline}\n{comparison.candidate}"


def _note(text: str) -> Line:
    return sentence(text) or ("the scores have no parts that would add up.",)


def ranked(movers: Sequence[Mover]) -> list[Mover]:
    """Mechanical causes first, otherwise as they came: the strongest claim first."""
    return sorted(movers, key=lambda one: not one.mechanical)


def _claims(comparison: Comparison, report: Report, scale: Scale) -> list[Block]:
    movers = ranked(comparison.movers)
    if not movers:
        return [
            para(
                Strong("No cause is claimed: "),
                "no term below is both beyond noise and beyond its share of the change once all terms that "
                "were tried are corrected for. The terms still add up to the change; one that is beyond "
                "noise may have moved with the rest, and any other may be luck."
                if not comparison.identical
                else "the rows are the same, so no term differs from 0.",
            )
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
        items.append((*mark, *mover_told(one), f" ({mover_numbers(one, scale)})"))
        if below := _beside(one, comparison, report):
            blocks += [Bullets(tuple(items)), *below]
            items = []
    return [*blocks, Bullets(tuple(items))] if items else blocks


def mover_told(one: Mover) -> Line:
    """The claim as a sentence; the name of its term stays as it is."""
    return sentence(one.text, names=(one.term, say.term(one.term)))


def beside(one: Mover, comparison: Comparison) -> list[Line]:
    """What the rollouts of a claim show as well, a sentence each."""
    return [note_told(text, pair(comparison)) for text in one.beside if text.strip()]


def to_read(one: Mover, comparison: Comparison, report: Report) -> list[tuple[str, str]]:
    """`blade show` lines for the first rollouts that show it."""
    runs = {run.name: run for run in report.runs}
    found: list[tuple[str, str]] = []
    for name, task, repeat in one.rollouts[:TO_READ]:
        if name in runs:
            role = "baseline" if name == comparison.baseline else "candidate"
            found += places.show(runs[name], task, repeat, f"{role}, {say.term(one.term, 60)}")
    return found


def _beside(one: Mover, comparison: Comparison, report: Report) -> list[Block]:
    """What stands under a claim: its other readings, then rollouts to check it with."""
    lines = to_read(one, comparison, report)
    said: list[Block] = [Para(line) for line in beside(one, comparison)]
    return [*said, Commands(tuple(lines))] if lines else said


def mover_numbers(one: Mover, scale: Scale) -> str:
    """`95% interval [+3.1, +14.2 points], adjusted p = 0.004, 80.0% of the change`."""
    between = scale.between(one.low, one.high)
    said = [f"95% interval {between}" if between else "no interval"]
    said.append(f"adjusted {words.p_value(one.p_adjusted)}")
    if one.share is not None:
        said.append(share(one.share))
    if one.view != BRIDGE:
        said.append(f"view {hostile.line(one.view, 60)}")
    return ", ".join(said)


def share(value: float) -> str:
    """A part of the change; it may be larger than the whole, or against it."""
    if value < -SAME:
        return "against the change"
    whole = value <= 1 + SAME
    return (
        f"{words.percent(min(max(value, 0.0), 1.0))} of the change" if whole else "more than the whole change"
    )


def folded(terms: Sequence[Term], most: int) -> tuple[list[Term], list[Term]]:
    """The terms to show, in their order, and the smallest that share a row; a lone one is never folded."""
    if len(terms) <= most:
        return list(terms), []
    order = sorted(range(len(terms)), key=lambda at: (-abs(terms[at].value), at))
    kept = set(order[: most - 1])
    shown = [one for at, one in enumerate(terms) if at in kept]
    return shown, [one for at, one in enumerate(terms) if at not in kept]


def terms_table(terms: Sequence[Term], scale: Scale, file: str) -> Table:
    """One row per term; the smaller ones of many share a row, so that the column still adds up."""
    shown, left = folded(terms, MAX_ROWS)
    beyond = any(one.expected is not None or one.p_excess is not None for one in terms)
    more = ("Expected", "p beyond share") if beyond else ()
    header = ("Term", "Side", "Change, 95% interval", "p", "Tasks", *more)
    rows = [_row(one, scale, beyond) for one in shown]
    if left:
        total = math.fsum(one.value for one in left)
        name = f"{words.count(len(left), 'smaller term')}, each in {file}"
        rows.append(cells(name, "several", scale.change(total), words.NONE, words.NONE, *["–"] * 2 * beyond))
    return Table(header, tuple(rows), "llrrr" + "rr" * beyond)


def _row(one: Term, scale: Scale, beyond: bool) -> tuple[Line, ...]:
    more = (scale.change(one.expected), words.p_number(one.p_excess)) if beyond else ()
    return cells(
        say.term(one.term),
        hostile.line(one.side, 40),
        scale.with_interval(one.value, one.low, one.high),
        words.p_number(one.p),
        words.whole(one.n),
        *more,
    )


def expectation(terms: Sequence[Term]) -> list[Block]:
    """What the last columns of such a table mean, where it has them."""
    if all(one.expected is None and one.p_excess is None for one in terms):
        return []
    return [
        para(
            "Expected: what the term would be if it took just its share of the change. p beyond share: how "
            "often luck alone would take a term at least as far from its share; small where it moved by more "
            "than its share."
        )
    ]


def sum_line(terms: Sequence[Term], delta: float | None, scale: Scale, score_name: str) -> Line:
    """That the terms add up, to six decimals; a sum that does not is said aloud."""
    total = math.fsum(one.value for one in terms)
    lead = Strong(f"Sum of {words.count(len(terms), 'term')}: ")
    said = f"{_six(total)}, that is {scale.change(total)}"
    of = f"the change of {say.score_label(score_name)}"
    if delta is None:
        return (lead, f"{said}; there is no change to hold it against.")
    if abs(total - delta) <= SAME:
        return (lead, f"{said}: {of}, exactly.")
    return (lead, f"{said}, which is not {of}, {_six(delta)}: do not use these terms.")


def _six(value: float) -> str:
    sign = words.MINUS if value < -5e-7 else "+" if value >= 5e-7 else ""
    return f"{sign}{abs(value):.6f}"


def further_views(comparison: Comparison, file: str) -> list[Block]:
    """The other ways to add up to the change, each with its sum."""
    if not comparison.views:
        return [para("There is no further way to split the change: no slice or setting varies.")]
    scale = say.scale(comparison.score_name)
    blocks: list[Block] = [
        para(
            "Each view splits the whole change once more. Terms of different views must not be added: they "
            "are the same points told another way."
        )
    ]
    for view in comparison.views:
        blocks += _view(view, comparison, scale, file)
    return blocks


def _view(view: View, comparison: Comparison, scale: Scale, file: str) -> list[Block]:
    name = say.term(view.name, 80)
    blocks: list[Block] = [Heading((f"{name[:1].upper()}{name[1:]}",))]
    if view.note:
        blocks.append(Para(sentence(view.note)))
    if not view.terms:
        return [*blocks, para("It has no terms.")]
    total = sum_line(view.terms, comparison.delta, scale, comparison.score_name)
    return [*blocks, terms_table(view.terms, scale, file), Para(total), *expectation(view.terms)]
