"""Turn comparisons into blocks: for compare.md and for the cross-model section of a diagnosis."""

from __future__ import annotations

from blade import number_format
from blade.model import Comparison, Report
from blade.report import places
from blade.report.blocks import Block, Bullets, Figure, Heading, Line, Section, para
from blade.report.change import words as say
from blade.report.change.gate import gate
from blade.report.change.many import many_runs, overview
from blade.report.change.match import comparability
from blade.report.change.names import apart, middle
from blade.report.change.shifts import what_else_changed
from blade.report.change.tasks import tasks_that_moved
from blade.report.change.terms import further_views, what_moved_it
from blade.report.change.verdict import verdict
from blade.report.facts import facts
from blade.report.inventory import gaps, made_by, run_settings, skipped

FILE = "compare.json"
MAX_TOLD = 8  # candidates told in full; all stand in the overview and on the wire

# How the numbers of a comparison are made, in words.
METHODS: tuple[str, ...] = (
    "The task is the unit: every number compares a task with itself, never row with row, and tasks with "
    "more repeats do not weigh more.",
    "On these tasks: rollouts could have come from either run of the task, so only the luck of repeats is "
    "noise. A change there says nothing yet about other tasks.",
    "On new tasks: the spread of the change over tasks is the noise, so the answer holds for tasks drawn "
    "like these.",
    "Improved or regressed: the test of the question rejects that nothing changed at 5%, two-sided, after "
    "Holm's correction over all candidates, and the 95% interval excludes 0. Equivalent: no change is "
    "claimed and the 90% interval lies inside the margin, which is a setting (--margin) and does not depend "
    "on the rows. Anything else is inconclusive, never unchanged.",
    "Intervals of a change: Student's t, from the spread over tasks (new tasks) or between repeats (these "
    "tasks); where few tasks differ, as beside the exact tests, widened by two added pseudo-tasks, one "
    "better and one worse.",
    "Smallest detectable effect: the true change that such a comparison would find in 80 of 100 cases.",
    "The bridge: every row that loses points has one mode, so that the terms add up to the change exactly. "
    "First come tasks that only one run has or has scored, then losses by who answers for them.",
    "A term is claimed to have moved the score only when it is beyond noise and beyond its share "
    "of the change, after Holm's correction for every term that was looked at.",
    "The noise of flips: the rollouts of each task are dealt anew to the two runs; churn is held against "
    "that.",
    "Posterior probabilities: the rate of a task is drawn towards those of both runs (beta-binomial, one "
    "prior for both).",
)


def title(report: Report) -> str:
    """`BASELINE → CANDIDATE BLADE Comparison Report`."""
    found = report.comparisons
    if not found:
        return "BLADE Comparison Report"
    baseline, *names = apart([found[0].baseline, *(one.candidate for one in found)], 60)
    told = number_format.listing(names) if len(names) <= 3 else number_format.count(len(names), "candidate")
    return f"{baseline} → {told} BLADE Comparison Report"


def chapters(report: Report, figures: tuple[Figure, ...] = ()) -> tuple[Section, ...]:
    """The sections of compare.md: of one pair by topic, of several candidates by candidate."""
    found = report.comparisons
    sections: list[Section] = []
    if not found:
        sections.append(Section("Verdict", (para("No pair of runs was compared."),)))
    elif len(found) == 1:
        told = parts(found[0], report, figures, FILE)
        sections += [Section(name, tuple(blocks)) for name, blocks in told.items()]
    else:
        sections.append(Section("Verdict", (*overview(report), *_left_out(found, FILE))))
        for at, one in enumerate(found[:MAX_TOLD], 1):
            blocks = comparison_blocks(one, report, figures, FILE)
            sections.append(Section(f"Candidate {at}: {middle(one.candidate, 60)}", tuple(blocks)))
    if many := many_runs(report, figures, FILE):
        sections.append(Section("Many Runs", tuple(many)))
    if report.gate is not None:
        sections.append(Section("Gate", tuple(gate(report.gate))))
    sections.append(Section("Reproducibility Notes", tuple(_reproducibility(report, figures))))
    return tuple(sections)


def parts(
    comparison: Comparison, report: Report, figures: tuple[Figure, ...] = (), file: str = FILE
) -> dict[str, list[Block]]:
    """What there is to say of one pair, by topic."""
    found: dict[str, list[Block]] = {"Verdict": verdict(comparison, report)}
    if comparison.refused is not None:
        return {**found, "Comparability": comparability(comparison, file)}
    return {
        **found,
        "What Moved It": what_moved_it(comparison, report, figures, file),
        "Comparability": comparability(comparison, file),
        "Further Views": further_views(comparison, file),
        "Tasks That Moved": tasks_that_moved(comparison, report, figures, file),
        "What Else Changed": what_else_changed(comparison, file),
    }


def comparison_blocks(
    comparison: Comparison,
    report: Report,
    figures: tuple[Figure, ...] = (),
    file: str = FILE,
    named: bool = False,
) -> list[Block]:
    """The same topics under headings, for a section that holds more than one; `named` says of which pair."""
    blocks: list[Block] = []
    for topic, told in parts(comparison, report, figures, file).items():
        of: Line = (" (", *say.both(comparison), ")") if named else ()
        blocks += [Heading((topic, *of)), *told]
    return blocks


def cross_model(report: Report, figures: tuple[Figure, ...], file: str) -> list[Block]:
    """All comparisons of a report as one section: an overview where there are several, then each pair."""
    found = report.comparisons
    blocks: list[Block] = [*overview(report), *_left_out(found, file)] if len(found) > 1 else []
    for one in found[:MAX_TOLD]:
        blocks += comparison_blocks(one, report, figures, file, named=len(found) > 1)
    blocks += many_runs(report, figures, file)
    return blocks + ([Heading(("Gate",)), *gate(report.gate)] if report.gate is not None else [])


def _left_out(found: tuple[Comparison, ...], file: str) -> list[Block]:
    return places.left_out(len(found), MAX_TOLD, "candidate", "engine.comparisons.count", file)


def _reproducibility(report: Report, figures: tuple[Figure, ...]) -> list[Block]:
    blocks: list[Block] = [
        made_by(report),
        para(
            "The same rows give the same report, whatever their order, sharding or compression; exchanging "
            "baseline and candidate flips every sign and no verdict's meaning. What the tables leave out "
            f"stands in {FILE}.",
            "" if figures else " No figures were drawn.",
        ),
        Heading(("How the numbers are made",)),
        Bullets(tuple((text,) for text in METHODS)),
    ]
    for one in facts(report):
        blocks += run_settings(one, FILE)
    return [*blocks, *skipped(report, FILE), *gaps(report, FILE, counted=False)]
