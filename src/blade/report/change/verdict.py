"""Say whether a change is real: on these tasks, on new tasks, and what would resolve it."""

from __future__ import annotations

import math

from blade import hostile
from blade.model import Comparison, Power, Report, Tested
from blade.report import numbers, queries
from blade.report.blocks import Block, Bullets, Line, Para, Strong, Table, cells, para, plain, short
from blade.report.change import words as say
from blade.report.change.names import apart
from blade.report.change.sentences import note_told, sentence
from blade.report.change.words import ALPHA, NEW, THESE

BRIDGE = "bridge"  # the view that claims of the bridge are made in
ON = {THESE: "on these tasks", NEW: "for new tasks like these"}
WORTH = {
    THESE: "where only the repeats are left to chance",
    NEW: "where the choice of tasks is left to chance too",
}


def verdict(comparison: Comparison, report: Report) -> list[Block]:
    """The answer in one paragraph, what would sharpen it, then every test."""
    if comparison.refused is not None:
        query = f"{say.query(comparison)}.refused"
        return [
            Para((Strong("Not compared: "), *sentence(comparison.refused, query, names=pair(comparison))))
        ]
    blocks: list[Block] = [Para(opening(comparison, report))]
    if not comparison.identical:
        for found in (mechanical(comparison), resolve(comparison, report), _differs(comparison)):
            blocks += [Para(found)] if found else []
    if comparison.notes:
        blocks.append(Bullets(tuple(notes(comparison))))
    return blocks + _tests(comparison)


def notes(comparison: Comparison) -> list[Line]:
    """The notes of a comparison, a sentence each."""
    return [
        note_told(note, f"{say.query(comparison)}.notes[{place}]", pair(comparison))
        for place, note in enumerate(comparison.notes)
    ]


def opening(comparison: Comparison, report: Report) -> Line:
    """The verdict, the two scores, and each question with its test, interval and n."""
    if comparison.identical:
        return (
            Strong("Equivalent: both runs hold the same rows. "),
            *say.both(comparison),
            " is one run compared with itself, so every difference is 0 (n = ",
            *say.n_common(comparison),
            ").",
        )
    questions = [(" ", *question_told(comparison, question)) for question in (THESE, NEW)]
    return (Strong(headline(comparison)), " ", *_scores(comparison, report), *questions[0], *questions[1])


def headline(comparison: Comparison) -> str:
    """Both verdicts in one sentence."""
    these, new = comparison.verdict, comparison.verdict_new_tasks

    def said(word: str | None, question: str) -> str:
        told = {"equivalent": "equivalent within the margin", None: "no verdict"}.get(word, word or "")
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


def _scores(comparison: Comparison, report: Report) -> Line:
    """Both headline scores, and those over the common tasks where they differ."""
    scale, query = say.scale(comparison.score_name), say.query(comparison)
    said: Line = (
        say.run(comparison.candidate),
        " scores ",
        scale.level(comparison.score_candidate, say.score_query(comparison, report, "candidate")),
        f" {say.score_label(comparison.score_name)} and ",
        say.run(comparison.baseline),
        " ",
        scale.level(comparison.score_baseline, say.score_query(comparison, report, "baseline")),
        ": ",
        scale.change(comparison.delta, f"{query}.delta", strong=True),
    )
    if not is_other_on_common(comparison):
        return (*said, " (n = ", *say.n_common(comparison), ").")
    return (
        *said,
        ". Over the ",
        *say.n_common(comparison),
        " that both have, and which the verdicts are about, it is ",
        scale.level(comparison.common_baseline, f"{query}.common_baseline"),
        " → ",
        scale.level(comparison.common_candidate, f"{query}.common_candidate"),
        ": ",
        scale.change(comparison.delta_common, f"{query}.delta_common", strong=True),
        "; the rest is which tasks each run has (see What Moved It).",
    )


def mechanical(comparison: Comparison) -> Line:
    """How much of the change is claimed by causes that say nothing about the model."""
    found = [one for one in comparison.movers if one.mechanical and one.view == BRIDGE]
    if not found or comparison.delta is None:
        return ()
    scale, query = say.scale(comparison.score_name), say.query(comparison)
    part = math.fsum(one.value for one in found)
    taken = f"{query}.movers(mechanical=True, view={BRIDGE!r}).value"
    names = numbers.joined([numbers.name(say.term(one.term, 80)) for one in found])
    return (
        Strong("Not all of it is the model: "),
        scale.change(part, taken),
        " of the change come from ",
        *names,
        ", which can move a score with the model unchanged. The other terms add up to ",
        scale.change(comparison.delta - part, f"{query}.delta - {taken}"),
        "; their intervals are in the bridge.",
    )


def is_other_on_common(comparison: Comparison) -> bool:
    """Whether the change over common tasks is another than that of the headline, as both are printed."""
    delta, common = comparison.delta, comparison.delta_common
    if delta is None or common is None:
        return False
    scale = say.scale(comparison.score_name)
    return plain((scale.change(delta, ""),)) != plain((scale.change(common, ""),))


def question_told(comparison: Comparison, question: str) -> Line:
    """One question, its answer and what it rests on; nothing is called unchanged for a large p."""
    scale, found = say.scale(comparison.score_name), say.test_of(comparison, question)
    word = say.verdict_on(comparison, question)
    start = f"{ON[question][:1].upper()}{ON[question][1:]}, {WORTH[question]}, "
    if found is None or word is None:
        return (f"{start}nothing could be tested (n = ", *say.n_common(comparison), ").")
    change = scale.tested(found, say.test_query(comparison, found))
    margin, rests = say.margin(comparison), rests_on(comparison, question)
    if word in ("improved", "regressed"):
        better = "better" if word == "improved" else "worse"
        small: Line = (f", {say.SMALL} of ", *margin) if say.is_small(comparison, question) else ()
        return (f"{start}the candidate is {better}", *small, ": ", *change, " (", *rests, ").")
    if word == "equivalent":
        return (f"{start}the change is ", *change, ", inside ", *margin, " (", *rests, ").")
    effect, query = smallest(comparison, question), smallest_query(comparison, question)
    cannot: Line = (
        ("; the smallest detectable effect is ", scale.size(effect, query)) if effect is not None else ()
    )
    open_: Line = (f"{start}neither a change nor equivalence within ", *margin, " is established: ")
    return (*open_, *change, " (", *rests, *cannot, ").")


def rests_on(comparison: Comparison, question: str) -> Line:
    """`paired t, p = 0.29; n = 8 tasks`; of an open question the equivalence too, of equivalence it alone."""
    found, word = say.answers(comparison, question), say.verdict_on(comparison, question)
    found = found[:2] if word == "inconclusive" else found[1:2] if word == "equivalent" else found[:1]
    parts: list[Line] = [(*_test_name(comparison, test), ", ", *_p_value(comparison, test)) for test in found]
    if word == "inconclusive" and len(found) == 2:  # the margin stands beside it
        parts[1] = ("equivalence ", *_p_value(comparison, found[1]))
    name = "p_adjusted" if question == THESE else "p_adjusted_new"
    adjusted: float | None = getattr(comparison, name)
    if adjusted is not None and found and word != "equivalent" and is_other(adjusted, found[0].p):
        p = numbers.p_number(adjusted, f"{say.query(comparison)}.{name}")
        parts[0] = (*parts[0], ", ", p, " adjusted for all candidates")
    return numbers.joined([*parts, ("n = ", *say.n_common(comparison))], "; ", "; ")


def _test_name(comparison: Comparison, test: Tested) -> Line:
    return (numbers.said(test.name, f"{say.test_query(comparison, test)}.name", 100),)


def _p_value(comparison: Comparison, test: Tested) -> Line:
    return numbers.p_value(test.p, f"{say.test_query(comparison, test)}.p")


def is_other(adjusted: float, p: float | None) -> bool:
    return p is not None and abs(adjusted - p) > 1e-12


def smallest(comparison: Comparison, question: str) -> float | None:
    """The smallest change that this comparison would have seen in 80 of 100 cases."""
    if comparison.power is None:
        return None
    return comparison.power.mde_these if question == THESE else comparison.power.mde


def smallest_query(comparison: Comparison, question: str) -> str:
    return f"{say.query(comparison)}.power.{'mde_these' if question == THESE else 'mde'}"


def resolve(comparison: Comparison, report: Report) -> Line:
    """What would make an open question decidable."""
    power = comparison.power
    if power is None or "inconclusive" not in (comparison.verdict, comparison.verdict_new_tasks):
        return ()
    if power.target is None or (power.repeats_needed is None and power.tasks_needed is None):
        return (
            Strong("What would resolve it: "),
            "unknown, since these rows do not show how much repeats and tasks vary.",
        )
    scale, query = say.scale(comparison.score_name), f"{say.query(comparison)}.power"
    is_margin = power.target <= comparison.margin * (1 + 1e-9)
    target = scale.size(power.target, f"{query}.target")
    seen: Line = (target, " (the margin)" if is_margin else " (the size seen)")
    if power.tasks_needed == 0:
        return (
            Strong("What would resolve it: "),
            "these tasks are already enough to see a true change of ",
            *seen,
            " in 80 of 100 cases; a smaller one, or equivalence, takes more tasks or repeats.",
        )
    ways: list[Line] = []
    if power.repeats_needed is not None:
        repeats = numbers.count(power.repeats_needed, "repeat", f"{query}.repeats_needed")
        ways.append((*repeats, " per task in each run", *_repeats_now(comparison, report)))
    if power.tasks_needed is not None:
        more = numbers.count(power.tasks_needed, "more task", f"{query}.tasks_needed")
        ways.append((*more, " like these (with as many repeats)"))
    said = (
        *numbers.joined(ways, ", or ", ", or "),
        " would detect a true change of ",
        *seen,
        " in 80 of 100 cases.",
    )
    return (Strong("What would resolve it: "), *said, _whether_repeats(power))


def _repeats_now(comparison: Comparison, report: Report) -> Line:
    """` (now 4)`: the repeats that the two runs have."""
    now = {run.coverage.repeats: run.name for run in report.runs if run.name in pair(comparison)}
    parts = [(numbers.whole(n, queries.select("repeats", "runs", now[n])),) for n in sorted(now)]
    return (" (now ", *numbers.joined(list(parts)), ")") if parts else ()


def _whether_repeats(power: Power) -> str:
    """Whether more repeats alone would resolve it, where no number of them is given."""
    if power.repeats_needed is not None:
        return ""
    if power.omega2 is None:
        return " With one try per task, the number of repeats that would be enough is unknown."
    if power.p_heterogeneity is not None and power.p_heterogeneity <= ALPHA:
        return " More repeats alone would not be enough: the change varies from task to task."
    return " These rows do not show whether more repeats alone would be enough."


def pair(comparison: Comparison) -> tuple[str, str]:
    return (comparison.baseline, comparison.candidate)


def _differs(comparison: Comparison) -> Line:
    """That the change is not one and the same for every task."""
    p = comparison.power.p_heterogeneity if comparison.power is not None else None
    if p is None or p >= ALPHA:
        return ()
    return (
        Strong("The change differs by task "),
        "by more than repeats alone would (",
        *numbers.p_value(p, f"{say.query(comparison)}.power.p_heterogeneity"),
        ", n = ",
        *say.n_common(comparison),
        "): read the views by slice and the tasks that moved before quoting the mean.",
    )


def _tests(comparison: Comparison) -> list[Block]:
    if not comparison.tests or comparison.identical:
        return []
    rows = tuple(
        cells(
            numbers.name(hostile.line(test.question, 60)),
            _test_name(comparison, test),
            _estimate(comparison, test),
            numbers.p_number(test.p, f"{say.test_query(comparison, test)}.p"),
        )
        for test in sorted(comparison.tests, key=_order)
    )
    return [
        Table(("Question", "Test", "Estimate, 95% interval (of equivalence 90%)", "p"), rows, "llrr"),
        para(
            "Every test is over the ",
            *say.n_common(comparison),
            " that both runs have, each task against itself. The margin of equivalence, ",
            *say.margin(comparison),
            ", is a setting (--margin) and does not depend on the rows.",
        ),
    ]


def _order(one: Tested) -> int:
    return (THESE, NEW).index(one.question) if one.question in (THESE, NEW) else 2


def _estimate(comparison: Comparison, test: Tested) -> Line:
    """The estimate in the form of what was asked."""
    units = {derived.name: derived.unit for derived in comparison.derived}
    form = say.Scale(units.get(test.question) == "rate")
    if test.question in (THESE, NEW):
        form = say.scale(comparison.score_name)
    return form.tested(test, say.test_query(comparison, test))


def in_short(comparison: Comparison) -> str:
    """One line: who against whom, both verdicts, the change for new tasks with its interval and n."""
    baseline, candidate = apart(pair(comparison), 30)
    who, n = f"{candidate} against {baseline}", plain(say.n_common(comparison))
    if comparison.refused is not None:
        why = plain(sentence(comparison.refused, "", 160, pair(comparison)))
        return f"{who}: not compared, {why.removesuffix('.')}"
    if comparison.identical:
        return f"{who}: the same rows (n = {n})"
    scale, found = say.scale(comparison.score_name), say.test_of(comparison, NEW)
    change = short(scale.tested(found, "")) if found else "nothing to test"
    these, new = (say.small_too(comparison, question, "no verdict") for question in (THESE, NEW))
    return f"{who}: {these} on these tasks, {new} for new ones; {change}, n = {n}"
