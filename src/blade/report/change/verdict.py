"""Say whether a change is real: on these tasks, on new tasks, and what would resolve it."""

from __future__ import annotations

import math

from blade import hostile
from blade.model import Comparison, Report, Tested
from blade.report import words
from blade.report.change import words as say
from blade.report.change.names import apart
from blade.report.change.sentences import note_told, plain, sentence
from blade.report.change.words import ALPHA, NEW, THESE
from blade.report.sections import Block, Bullets, Line, Para, Span, Strong, Table, cells, para

BRIDGE = "bridge"  # the view that claims of the bridge are made in
ON = {THESE: "on these tasks", NEW: "for new tasks like these"}
WORTH = {THESE: "where only the luck of repeats is noise", NEW: "where the choice of tasks is noise too"}


def verdict(comparison: Comparison, report: Report) -> list[Block]:
    """The answer in one paragraph, what would sharpen it, then every test."""
    if comparison.refused is not None:
        return [Para((Strong("Not compared: "), *sentence(comparison.refused, names=pair(comparison))))]
    blocks: list[Block] = [Para(opening(comparison))]
    if not comparison.identical:
        for found in (mechanical(comparison), resolve(comparison, report), _differs(comparison)):
            blocks += [Para(found)] if found else []
    if comparison.notes:
        blocks.append(Bullets(tuple(note_told(note, pair(comparison)) for note in comparison.notes)))
    return blocks + _tests(comparison)


def opening(comparison: Comparison) -> Line:
    """The verdict, the two scores, and each question with its test, interval and n."""
    n = say.n_common(comparison)
    if comparison.identical:
        return (
            Strong("Equivalent: both runs hold the same rows. "),
            *say.both(comparison),
            f" is one run held against itself, so every difference is 0 (n = {say.tasks(n)}).",
        )
    parts: list[Span] = [Strong(headline(comparison) + " "), *_scores(comparison)]
    for question in (THESE, NEW):
        parts += [" ", question_told(comparison, question)]
    return tuple(parts)


def headline(comparison: Comparison) -> str:
    """Both verdicts in one sentence."""
    scale = say.scale(comparison.score_name)
    these, new = comparison.verdict, comparison.verdict_new_tasks
    within = f"equivalent within ±{scale.size(comparison.margin)}"

    def said(word: str | None, question: str) -> str:
        told = {"equivalent": within, None: "no verdict"}.get(word, word or "")
        return f"{told}, {say.SMALL}," if say.is_small(comparison, question) else told

    first, second = said(these, THESE), said(new, NEW)
    start = f"{first[:1].upper()}{first[1:]} {ON[THESE]}"
    if first == second:
        return f"{start} and {ON[NEW]}."
    if new == "inconclusive":
        second = "not established"
    elif these not in (new, "inconclusive"):
        second = f"but {second}"
    return f"{start}; {second} {ON[NEW]}."


def _scores(comparison: Comparison) -> Line:
    """Both headline scores, and those over the common tasks where they differ."""
    scale = say.scale(comparison.score_name)
    of = say.score_label(comparison.score_name)
    said: Line = (
        say.run(comparison.candidate),
        f" scores {scale.level(comparison.score_candidate)} {of} and ",
        say.run(comparison.baseline),
        f" {scale.level(comparison.score_baseline)}: ",
        Strong(scale.change(comparison.delta)),
    )
    n = say.tasks(say.n_common(comparison))
    if not is_other_on_common(comparison):
        return (*said, f" (n = {n}).")
    return (
        *said,
        f". Over the {n} that both have, and which the verdicts are about, it is "
        f"{scale.level(comparison.common_baseline)} → {scale.level(comparison.common_candidate)}: ",
        Strong(scale.change(comparison.delta_common)),
        "; the rest is which tasks each run has (see What Moved It).",
    )


def mechanical(comparison: Comparison) -> Line:
    """How much of the change is claimed by causes that say nothing about the model."""
    found = [one for one in comparison.movers if one.mechanical and one.view == BRIDGE]
    if not found or comparison.delta is None:
        return ()
    scale, part = say.scale(comparison.score_name), math.fsum(one.value for one in found)
    names = words.listing([say.term(one.term, 80) for one in found])
    return (
        Strong("Not all of it is the model: "),
        f"{scale.change(part)} of the change go to {names}, which can move a score whatever the model. "
        f"The other terms add up to {scale.change(comparison.delta - part)}; their intervals stand in the "
        "bridge.",
    )


def is_other_on_common(comparison: Comparison) -> bool:
    """Whether the change over common tasks is not the change of the headline."""
    delta, common = comparison.delta, comparison.delta_common
    return delta is not None and common is not None and abs(delta - common) > 1e-9


def question_told(comparison: Comparison, question: str) -> str:
    """One question, its answer and what it rests on; nothing is called unchanged for a large p."""
    scale, found = say.scale(comparison.score_name), say.test_of(comparison, question)
    word = say.verdict_on(comparison, question)
    start = f"{ON[question][:1].upper()}{ON[question][1:]}, {WORTH[question]}, "
    if found is None or word is None:
        return f"{start}nothing could be tested (n = {say.tasks(say.n_common(comparison))})."
    change = scale.with_interval(found.estimate, found.low, found.high)
    margin = f"±{scale.size(comparison.margin)}"
    if word in ("improved", "regressed"):
        better = "better" if word == "improved" else "worse"
        if say.is_small(comparison, question):
            better += f", {say.SMALL} of {margin}"
        return f"{start}the candidate is {better}: {change} ({rests_on(comparison, question)})."
    if word == "equivalent":
        return f"{start}the change is {change}, inside {margin} ({rests_on(comparison, question)})."
    rests = rests_on(comparison, question)
    mde = smallest(comparison, question)
    cannot = f"; the smallest detectable effect is {scale.size(mde)}" if mde is not None else ""
    return (
        f"{start}neither a change nor equivalence within {margin} is established: {change} ({rests}{cannot})."
    )


def rests_on(comparison: Comparison, question: str) -> str:
    """`paired t, p = 0.29; n = 8 tasks`; of an open question the equivalence too, of equivalence it alone."""
    found, word = say.answers(comparison, question), say.verdict_on(comparison, question)
    found = found[:2] if word == "inconclusive" else found[1:2] if word == "equivalent" else found[:1]
    said = [f"{hostile.line(one.name, 80)}, {words.p_value(one.p)}" for one in found]
    if word == "inconclusive" and len(found) == 2:  # the margin stands beside it
        said[1] = f"equivalence {words.p_value(found[1].p)}"
    adjusted = comparison.p_adjusted if question == THESE else comparison.p_adjusted_new
    if adjusted is not None and found and word != "equivalent" and is_other(adjusted, found[0].p):
        said[0] += f", {words.p_number(adjusted)} adjusted for all candidates"
    return "; ".join([*said, f"n = {say.tasks(say.n_common(comparison))}"])


def is_other(adjusted: float, p: float | None) -> bool:
    return p is not None and abs(adjusted - p) > 1e-12


def smallest(comparison: Comparison, question: str) -> float | None:
    """The smallest change that this comparison would have seen in 80 of 100 cases."""
    if comparison.power is None:
        return None
    return comparison.power.mde_these if question == THESE else comparison.power.mde


def resolve(comparison: Comparison, report: Report) -> Line:
    """What would make an open question decidable."""
    power = comparison.power
    if power is None or "inconclusive" not in (comparison.verdict, comparison.verdict_new_tasks):
        return ()
    if power.target is None or (power.repeats_needed is None and power.tasks_needed is None):
        return (
            Strong("What would resolve it: "),
            "cannot be estimated, since these rows do not tell how much repeats and tasks vary.",
        )
    scale = say.scale(comparison.score_name)
    is_margin = power.target <= comparison.margin * (1 + 1e-9)
    seen = f"{scale.size(power.target)}, {'the margin' if is_margin else 'as large as the one seen,'}".rstrip(
        ","
    )
    if power.tasks_needed == 0:
        return (
            Strong("What would resolve it: "),
            f"these tasks are already enough to see a true change of {seen}, in 80 of 100 cases; a smaller "
            "one, or equivalence, takes more tasks or repeats.",
        )
    now = {one.coverage.repeats for one in report.runs if one.name in pair(comparison)}
    have = f" (now {words.listing([words.whole(n) for n in sorted(now)])})" if now else ""
    ways = []
    if power.repeats_needed is not None:
        ways.append(f"{words.count(power.repeats_needed, 'repeat')} per task in each run{have}")
    if power.tasks_needed is not None:
        more = words.count(power.tasks_needed, "more task")
        ways.append(f"{more} like these with as many repeats")
    said = f"{', or '.join(ways)}, to see a true change of {seen}, in 80 of 100 cases."
    if power.repeats_needed is None and power.omega2 is None:
        said += " How many repeats would do, single rollouts do not tell."
    elif power.repeats_needed is None:
        p = power.p_heterogeneity
        said += (
            " More repeats alone would not do: the change varies from task to task."
            if p is not None and p <= 0.05
            else " Whether more repeats alone would do, these rows do not tell."
        )
    return (Strong("What would resolve it: "), said)


def pair(comparison: Comparison) -> tuple[str, str]:
    return (comparison.baseline, comparison.candidate)


def _differs(comparison: Comparison) -> Line:
    """That the change is not one and the same for every task."""
    p = comparison.power.p_heterogeneity if comparison.power is not None else None
    if p is None or p >= ALPHA:
        return ()
    return (
        Strong("The change differs by task "),
        f"beyond the luck of repeats ({words.p_value(p)}, n = {say.tasks(say.n_common(comparison))}): read "
        "the views by slice and the tasks that moved before quoting the mean.",
    )


def _tests(comparison: Comparison) -> list[Block]:
    if not comparison.tests or comparison.identical:
        return []
    rows = tuple(
        cells(
            hostile.line(one.question, 60),
            hostile.line(one.name, 100),
            _estimate(comparison, one),
            words.p_number(one.p),
        )
        for one in sorted(comparison.tests, key=_order)
    )
    margin = say.scale(comparison.score_name).size(comparison.margin)
    return [
        Table(("Question", "Test", "Estimate, 95% interval (of equivalence 90%)", "p"), rows, "llrr"),
        para(
            f"Every test is over the {say.tasks(say.n_common(comparison))} that both runs have, each task "
            f"against itself. The margin of equivalence, ±{margin}, is a setting (--margin) and does not "
            "depend on the rows.",
        ),
    ]


def _order(one: Tested) -> int:
    return (THESE, NEW).index(one.question) if one.question in (THESE, NEW) else 2


def _estimate(comparison: Comparison, one: Tested) -> str:
    """The estimate in the form of what was asked."""
    if one.question in (THESE, NEW):
        return say.scale(comparison.score_name).with_interval(one.estimate, one.low, one.high)
    units = {found.name: found.unit for found in comparison.derived}
    if units.get(one.question) == say.LOG_RATIO:
        return say.ratio(one.estimate, one.low, one.high)
    form = say.Scale(units.get(one.question) == "rate")
    return form.with_interval(one.estimate, one.low, one.high)


def in_short(comparison: Comparison) -> str:
    """One line: who against whom, both verdicts, the change for new tasks with its interval and n."""
    baseline, candidate = apart(pair(comparison), 30)
    who = f"{candidate} against {baseline}"
    if comparison.refused is not None:
        why = plain(sentence(comparison.refused, 160, pair(comparison)))
        return f"{who}: not compared, {why.removesuffix('.')}"
    if comparison.identical:
        return f"{who}: the same rows (n = {say.tasks(say.n_common(comparison))})"
    scale, found = say.scale(comparison.score_name), say.test_of(comparison, NEW)
    change = scale.with_interval(found.estimate, found.low, found.high) if found else "nothing to test"
    these, new = (say.small_too(comparison, question, "no verdict") for question in (THESE, NEW))
    n = say.tasks(say.n_common(comparison))
    return f"{who}: {these} on these tasks, {new} for new ones; {change}, n = {n}"
