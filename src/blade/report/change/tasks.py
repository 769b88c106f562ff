"""Report which tasks moved, beside what noise alone would move: churn, buckets, the surest flips."""

from __future__ import annotations

from collections.abc import Sequence

from blade import hostile, number_format
from blade.model import Churn, Comparison, Flip, Report, Run
from blade.report import numbers, places, queries
from blade.report.blocks import (
    Block,
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
from blade.report.change.terms import key
from blade.report.change.verdict import pair
from blade.report.change.words import ALPHA, Scale

MAX_FLIPS = 20
TO_READ = 3  # tasks whose commands are written out, in both runs
ORDER = ("never", "sometimes", "always")
FEW = 8  # flips shown where all of them are equally sure
LEVEL = 0.95  # posterior probability from which a task is called better or worse
SURE = 0.8  # posterior probability from which a changed bucket is called one


def tasks_that_moved(
    comparison: Comparison, report: Report, figures: tuple[Figure, ...], file: str
) -> list[Block]:
    """How much moved against noise, between which buckets, then the surest tasks and how to read them."""
    if comparison.refused is not None or not comparison.alignment.common:
        return [para("The runs have no task in common, so none can have moved.")]
    blocks: list[Block] = []
    if comparison.churn is not None:
        blocks.append(Para(churned(comparison, comparison.churn)))
    if comparison.sure is not None:
        blocks.append(Para(surely(comparison)))
    blocks += named(figures, "scatter", key(comparison))
    blocks += _transitions(comparison, figures)
    blocks += _flips(comparison, report, file)
    return [*blocks, *places.read_next(to_read(comparison, report))]


def churned(comparison: Comparison, churn: Churn) -> Line:
    """Tasks up and down, and what exchanging the rollouts of each task between the runs would give."""
    scale, query = say.scale(comparison.score_name), f"{say.query(comparison)}.churn"
    common = numbers.whole(
        len(comparison.alignment.common), f"{say.query(comparison)}.alignment.common.count"
    )
    said: Line = (
        *numbers.count(churn.n_up, "task", f"{query}.n_up"),
        " rose (",
        scale.change(churn.gains, f"{query}.gains"),
        ") and ",
        numbers.whole(churn.n_down, f"{query}.n_down"),
        " fell (",
        scale.change(churn.losses, f"{query}.losses"),
        "), of ",
        common,
        ": a churn of ",
        scale.size(churn.gains - churn.losses, f"{query}.gains - {query}.losses"),
        ". ",
    )
    if churn.p is None:
        return (*said, "With so few repeats, how much of this is noise is unknown.")
    null, low, high = (
        scale.size(getattr(churn, name), f"{query}.{name}")
        for name in ("null_churn", "null_low", "null_high")
    )
    said += ("Two runs of the same model with these repeats would differ by ", null)
    said += (*numbers.between(low, high), ". ", *_against_noise(churn, query))
    moved = numbers.whole(churn.n_up + churn.n_down, f"{query}.n_up + {query}.n_down")
    expected = numbers.number(churn.null_changed, f"{query}.null_changed")
    return (*said, " By count, such runs would move ", expected, " tasks; here ", moved, " moved.")


def _against_noise(churn: Churn, query: str) -> Line:
    p = numbers.p_value(churn.p, f"{query}.p")
    if churn.p is not None and churn.p <= ALPHA:
        moved = Strong("tasks moved by more than noise would move them")
        return ("In points, ", moved, " (", *p, "): some of these moves are real.")
    return (
        Strong("The churn is not beyond noise"),
        " (",
        *p,
        "): the tasks below may have flipped by chance, so read them as leads.",
    )


def surely(comparison: Comparison) -> Line:
    """Tasks that are surely better or worse, beside what noise alone would show as such."""
    sure, query = comparison.sure, f"{say.query(comparison)}.sure"
    if sure is None:
        return ()
    said: Line = (
        f"With a posterior probability of at least {LEVEL:g}, ",
        *numbers.count(sure.up, "task", f"{query}.up"),
        f" {'is' if sure.up == 1 else 'are'} better and ",
        numbers.whole(sure.down, f"{query}.down"),
        " worse. ",
    )
    if sure.null_up is None or sure.null_down is None:
        return (*said, "How many of them noise alone would show is unknown.")
    up, down = (numbers.number(getattr(sure, name), f"{query}.{name}") for name in ("null_up", "null_down"))
    return (*said, "Noise alone would show ", up, " and ", down, " as such.")


def _transitions(comparison: Comparison, figures: tuple[Figure, ...]) -> list[Block]:
    if not comparison.transitions:
        return []
    query = f"{say.query(comparison)}.transitions"
    rows = tuple(
        cells(
            f"{before} in the baseline",
            *(_cell(comparison, before, after) for after in ORDER),
            numbers.whole(
                sum(one.n for one in comparison.transitions if one.before == before),
                f"{query}(before={before!r}).n",
            ),
        )
        for before in ORDER
    )
    moved = [one for one in comparison.transitions if one.before != one.after]
    n, sure = (
        numbers.whole(
            sum(getattr(one, name) for one in moved),
            " - ".join(
                [
                    f"{query}.{name}",
                    *(f"{query}(before={bucket!r}, after={bucket!r}).{name}" for bucket in ORDER),
                ]
            ),
        )
        for name in ("n", "sure")
    )
    return [
        Heading(("Buckets before and after",)),
        Table(("Tasks", *(f"{after} in the candidate" for after in ORDER), "All"), rows, "lrrrr"),
        para(
            "Tasks that changed bucket by counts: ",
            n,
            "; of these ",
            sure,
            f" did so with a posterior probability of at least {SURE:g}. In brackets: tasks of the cell of "
            "which that is sure, on the diagonal those that surely stayed.",
        ),
        *named(figures, "transitions", key(comparison)),
    ]


def _cell(comparison: Comparison, before: str, after: str) -> Line:
    """`5 (2)`: tasks that moved so, and those of which it is sure."""
    found = [one for one in comparison.transitions if (one.before, one.after) == (before, after)]
    query = f"{say.query(comparison)}.transitions(before={before!r}, after={after!r})"
    n, sure = (
        numbers.whole(sum(getattr(one, name) for one in found), f"{query}.{name}") for name in ("n", "sure")
    )
    return (n, " (", sure, ")")


def _flips(comparison: Comparison, report: Report, file: str) -> list[Block]:
    if not comparison.flips:
        return [para("No task has a different rate in the candidate than in the baseline.")]
    alike = _are_alike(comparison.flips[:MAX_FLIPS])
    shown = comparison.flips[: FEW if alike else MAX_FLIPS]
    judged = any(one.p_better is not None for one in shown)
    tabled = [run for run in pair(comparison) if say.is_tabled(comparison, report, run)]
    rows = tuple(_flip(comparison, flip, judged, tabled) for flip in shown)
    more = ("P(candidate better)", "P(bucket changed)", "Buckets") if judged else ()
    header = ("Task", "Baseline", "Candidate", "Change", *more)
    lead = (
        "Ranked by posterior probability, drawn towards the rates of both runs: a large swing on few "
        "repeats may rank below a smaller one on many."
        if judged
        else "Ranked by the size of the change: without a pass rate no posterior can be given."
    )
    if alike and judged:
        lead = "With these repeats all flips are equally sure, so their order means nothing."
    return [
        Heading(("The surest flips",)),
        para(lead, *_more_flips(comparison, len(shown), file)),
        Table(header, rows, "lrrr" + "rrl" * judged),
    ]


def _more_flips(comparison: Comparison, shown: int, file: str) -> Line:
    churn, query = comparison.churn, say.query(comparison)
    total, every = len(comparison.flips), f"{query}.flips.count"
    if churn is not None:
        total, every = churn.n_up + churn.n_down, f"{query}.churn.n_up + {query}.churn.n_down"
    if total <= shown:
        return ()
    more = numbers.count(total - shown, "more task", f"{every} - {shown}")
    return (" ", *more, f" moved; the surest are in {file}.")


def _are_alike(found: tuple[Flip, ...]) -> bool:
    """Whether the rows tell nothing about which of several tasks moved more surely."""
    sure = {round(abs((0.5 if one.p_better is None else one.p_better) - 0.5), 6) for one in found}
    return len(found) > 1 and len(sure) == 1 and len({round(abs(one.change), 9) for one in found}) == 1


def _flip(comparison: Comparison, flip: Flip, judged: bool, tabled: Sequence[str]) -> tuple[Line, ...]:
    query = queries.chosen(f"{say.query(comparison)}.flips", comparison.flips, flip, "task")
    scale = say.scale(comparison.score_name)
    other = say.candidate_keys(comparison).get(flip.task, flip.task)
    before, after = (
        _counted(result, scale, f"{query}.{role}", (run, task) if run in tabled else None)
        for result, role, run, task in (
            (flip.baseline, "baseline", comparison.baseline, flip.task),
            (flip.candidate, "candidate", comparison.candidate, other),
        )
    )
    more: tuple[Span, ...] = ()
    if judged:
        more = (
            numbers.probability(flip.p_better, f"{query}.p_better"),
            numbers.probability(flip.p_class_change, f"{query}.p_class_change"),
            " → ".join(hostile.line(name, 20) for name in flip.classes),
        )
    return cells(
        places.task_name(flip.task, flip.task_name),
        before,
        after,
        scale.change(flip.change, f"{query}.change"),
        *more,
    )


def _counted(result: tuple[float, int], scale: Scale, query: str, place: tuple[str, str] | None) -> Line:
    """`3/4`, or the mean with its n where rewards are no passes; `place` is a run and its name of the task,
    where rollouts can be counted in its tables."""
    total, n = result
    if not n:
        return (number_format.NONE,)
    is_counted = scale.is_rate and total == int(total)
    of_passes, of_repeats = f"{query}[0]", f"{query}[1]"
    if place is not None and is_counted:
        task = f"task = {queries.quoted(place[1])}"
        of_passes = queries.measure("count", place[0], task, "passed")
        of_repeats = queries.measure("count", place[0], task, "not masked")
    repeats = numbers.whole(n, of_repeats)
    if is_counted:
        return (numbers.whole(int(total), of_passes), "/", repeats)
    return (scale.level(total / n, f"{query}[0] / {query}[1]"), " (n = ", repeats, ")")


def to_read(comparison: Comparison, report: Report) -> list[tuple[str, str]]:
    """`blade show` lines for the surest flips, in both runs."""
    runs = {run.name: run for run in report.runs}
    lines: list[tuple[str, str]] = []
    other = say.candidate_keys(comparison)
    for flip in comparison.flips[:TO_READ]:
        for name, role, task in (
            (comparison.baseline, "baseline", flip.task),
            (comparison.candidate, "candidate", other.get(flip.task, flip.task)),
        ):
            run: Run | None = runs.get(name)
            if run is not None:
                lines += places.show(run, task, None, role)
    return lines
