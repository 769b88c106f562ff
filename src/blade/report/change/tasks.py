"""Tell which tasks moved, beside what noise alone would move: churn, buckets, the surest flips."""

from __future__ import annotations

from blade import hostile
from blade.model import Churn, Comparison, Flip, Report, Run, SureFlips, Transition
from blade.report import places, words
from blade.report.change import words as say
from blade.report.change.terms import key
from blade.report.change.words import ALPHA, Scale
from blade.report.sections import Block, Code, Figure, Heading, Line, Para, Strong, Table, cells, named, para

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
    scale = say.scale(comparison.score_name)
    blocks: list[Block] = []
    if comparison.churn is not None:
        blocks.append(Para(churned(comparison.churn, say.n_common(comparison), scale)))
    if comparison.sure is not None:
        blocks.append(Para(surely(comparison.sure)))
    blocks += named(figures, "scatter", key(comparison))
    blocks += _transitions(comparison, figures)
    blocks += _flips(comparison, scale, file)
    return [*blocks, *places.read_next(to_read(comparison, report))]


def churned(churn: Churn, n: int, scale: Scale) -> Line:
    """Tasks up and down, and what exchanging the rollouts of each task between the runs would give."""
    size = churn.gains - churn.losses
    moved = churn.n_up + churn.n_down
    said = (
        f"{words.count(churn.n_up, 'task')} rose ({scale.change(churn.gains)}) and {churn.n_down:,} fell "
        f"({scale.change(churn.losses)}), of {n:,}: a churn of {scale.size(size)}. "
    )
    if churn.p is None:
        return (said, "Nothing here tells how much of this is noise: more repeats of each task would.")
    null = f"{scale.size(churn.null_churn)} [{_bare(churn.null_low, scale)}, {_bare(churn.null_high, scale)}]"
    said += f"Two runs of one and the same model with these repeats would churn {null}. "
    counts = (
        f" By count, such runs would move {words.number(churn.null_changed)} tasks; here {moved:,} moved."
    )
    return (said, *_against_noise(churn), counts)


def _bare(value: float, scale: Scale) -> str:
    return scale.size(value).removesuffix(" points")


def _against_noise(churn: Churn) -> Line:
    p = words.p_value(churn.p)
    if churn.p is not None and churn.p <= ALPHA:
        moved = Strong("tasks moved by more than noise would move them")
        return ("In points, ", moved, f" ({p}): some of these moves are real.")
    return (
        Strong("The churn is not beyond noise"),
        f" ({p}): a list of flips would be a list of luck, so read the tasks below as leads.",
    )


def surely(sure: SureFlips) -> Line:
    """Tasks that are surely better or worse, beside what noise alone would show as such."""
    said = (
        f"With a posterior probability of at least {LEVEL:g}, {say.tasks(sure.up)} {_are(sure.up)} better "
        f"and {sure.down:,} worse. "
    )
    if sure.null_up is None or sure.null_down is None:
        return (said, "How many of them noise alone would show cannot be told.")
    null = f"{words.number(sure.null_up)} and {words.number(sure.null_down)}"
    return (said, f"Noise alone would show {null} as such.")


def _are(n: int) -> str:
    return "is" if n == 1 else "are"


def _transitions(comparison: Comparison, figures: tuple[Figure, ...]) -> list[Block]:
    if not comparison.transitions:
        return []
    cell = {(one.before, one.after): one for one in comparison.transitions}
    rows = tuple(
        cells(
            f"{before} in the baseline",
            *(_cell(cell.get((before, after))) for after in ORDER),
            words.whole(sum(one.n for one in comparison.transitions if one.before == before)),
        )
        for before in ORDER
    )
    moved = [one for one in comparison.transitions if one.before != one.after]
    n, sure = sum(one.n for one in moved), sum(one.sure for one in moved)
    return [
        Heading(("Buckets before and after",)),
        Table(("Tasks", *(f"{after} in the candidate" for after in ORDER), "All"), rows, "lrrrr"),
        para(
            f"By counts {words.count(n, 'task')} changed bucket; of these {sure:,} did so with a posterior "
            f"probability of at least {SURE:g}. In brackets: tasks of the cell of which that is sure, on the "
            "diagonal those that surely stayed."
        ),
        *named(figures, "transitions", key(comparison)),
    ]


def _cell(one: Transition | None) -> str:
    return f"{one.n:,} ({one.sure:,})" if one is not None else "0 (0)"


def _flips(comparison: Comparison, scale: Scale, file: str) -> list[Block]:
    if not comparison.flips:
        return [para("No task has another rate in the candidate than in the baseline.")]
    alike = _are_alike(comparison.flips[:MAX_FLIPS])
    shown = comparison.flips[: FEW if alike else MAX_FLIPS]
    judged = any(one.p_better is not None for one in shown)
    rows = tuple(_flip(one, scale, judged) for one in shown)
    more = ("P(candidate better)", "P(bucket changed)", "Buckets") if judged else ()
    header = ("Task", "Baseline", "Candidate", "Change", *more)
    churn = comparison.churn
    total = churn.n_up + churn.n_down if churn is not None else len(comparison.flips)
    left = total - len(shown)
    said = f" {words.count(left, 'more task')} moved; the surest are in {file}." if left > 0 else ""
    lead = (
        "Ranked by posterior probability, drawn towards the rates of both runs: a large swing on few "
        "repeats may rank below a smaller one on many."
        if judged
        else "Ranked by the size of the change: without a pass rate no posterior can be given."
    )
    if alike and judged:
        lead = "With these repeats all flips are equally sure, so the order among them says nothing."
    return [
        Heading(("The surest flips",)),
        para(lead + said),
        Table(header, rows, "lrrr" + "rrl" * judged),
    ]


def _are_alike(found: tuple[Flip, ...]) -> bool:
    """Whether the rows tell nothing about which of several tasks moved more surely."""
    sure = {round(abs((0.5 if one.p_better is None else one.p_better) - 0.5), 6) for one in found}
    return len(found) > 1 and len(sure) == 1 and len({round(abs(one.change), 9) for one in found}) == 1


def _flip(one: Flip, scale: Scale, judged: bool) -> tuple[Line, ...]:
    more: tuple[str, ...] = ()
    if judged:
        buckets = " → ".join(hostile.line(name, 20) for name in one.classes)
        more = (words.probability(one.p_better), words.probability(one.p_class_change), buckets)
    return cells(
        task_name(one.task, one.task_name),
        _counted(one.baseline, scale),
        _counted(one.candidate, scale),
        scale.change(one.change),
        *more,
    )


def task_name(task: str, name: str) -> Line:
    task, name = hostile.line(task, 60), hostile.line(name, 60)
    return (Code(task), " ", name) if name and name != task else (Code(task),)


def _counted(found: tuple[float, int], scale: Scale) -> str:
    """`3/4`, or the mean with its n where rewards are no passes."""
    total, n = found
    if not n:
        return words.NONE
    if scale.is_rate and total == int(total):
        return f"{int(total)}/{n}"
    return f"{scale.level(total / n)} (n = {n:,})"


def to_read(comparison: Comparison, report: Report) -> list[tuple[str, str]]:
    """`blade show` lines for the surest flips, in both runs."""
    runs = {run.name: run for run in report.runs}
    scale = say.scale(comparison.score_name)
    found: list[tuple[str, str]] = []
    other = say.candidate_keys(comparison)
    for one in comparison.flips[:TO_READ]:
        for name, role, task, counted in (
            (comparison.baseline, "baseline", one.task, one.baseline),
            (comparison.candidate, "candidate", other.get(one.task, one.task), one.candidate),
        ):
            run: Run | None = runs.get(name)
            if run is not None:
                found += places.show(run, task, None, f"{role}, {_counted(counted, scale)}")
    return found
