"""Report checkpoints in order: the trend, the first that differs, what was learned and forgotten."""

from __future__ import annotations

from collections.abc import Sequence

from blade import hostile
from blade.model import Report, Series
from blade.report import numbers, places, queries
from blade.report.blocks import (
    Block,
    Bullets,
    Code,
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
from blade.report.change.sentences import note_told
from blade.report.change.words import ALPHA, Scale

MAX_ROWS = 60


def series(
    found: Series, report: Report, scale: Scale, figures: tuple[Figure, ...], file: str
) -> list[Block]:
    """The trend in a sentence, every checkpoint in a table, then the tasks that moved for good."""
    rows = tuple(_checkpoint(found, place, scale) for place in range(min(len(found.checkpoints), MAX_ROWS)))
    blocks: list[Block] = [
        Heading(("Checkpoints in order",)),
        Para(trend(found, scale)),
        *named(figures, "series", None),
        Table(("Checkpoint", "Score", "Change from the first, 95% interval", "Adjusted p"), rows, "lrrr"),
    ]
    every = "engine.series.checkpoints.count"
    blocks += places.left_out(len(found.checkpoints), len(rows), "checkpoint", every, file)
    if untold := single_rollouts(found, report):
        blocks.append(para(Strong("Learned and forgotten: "), *untold))
    else:
        blocks += [
            Para(_moved("learned", "better", found.learned, found.n_learned)),
            Para(_moved("forgotten", "worse", found.forgotten, found.n_forgotten)),
        ]
    if found.notes:
        notes = enumerate(found.notes)
        blocks.append(
            Bullets(tuple(note_told(note, f"engine.series.notes[{at}]", found.runs) for at, note in notes))
        )
    return blocks


def _checkpoint(found: Series, place: int, scale: Scale) -> tuple[Line, ...]:
    point = found.checkpoints[place]
    query = queries.chosen("engine.series.checkpoints", found.checkpoints, point, "run")
    change = scale.change(point.change, f"{query}.change")
    return cells(
        say.run(point.run),
        scale.level(point.score, f"{query}.score"),
        (change, *scale.interval(point.low, point.high, query)),
        numbers.p_number(point.p_adjusted, f"{query}.p_adjusted"),
    )


def trend(found: Series, scale: Scale) -> Line:
    """The slope with its interval, and the first checkpoint that differs."""
    tasks = numbers.count(found.n_tasks, "task", "engine.series.n_tasks")
    points = numbers.count(len(found.runs), "checkpoint", "engine.series.runs.count")
    n: Line = ("n = ", *tasks, ", ", *points)
    if found.slope is None:
        said: Line = ("No trend could be fitted (", *n, ").")
    else:
        slope = scale.change(found.slope, "engine.series.slope")
        is_clear = found.p is not None and found.p <= ALPHA and _excludes_zero(found.low, found.high)
        rises = "The score rises" if found.slope > 0 else "The score falls"
        said = (
            Strong(rises if is_clear else "No trend is established"),
            ": ",
            slope,
            *scale.interval(found.low, found.high, "engine.series"),
            " a checkpoint, for new tasks like these (",
            *numbers.p_value(found.p, "engine.series.p"),
            ", ",
            *n,
            ").",
        )
    if found.first_different is None:
        return (*said, " For new tasks like these, no checkpoint differs from the first beyond noise.")
    earliest = " The earliest that differs from the first for new tasks like these is "
    return (*said, earliest, say.run(found.first_different), ".")


def _excludes_zero(low: float | None, high: float | None) -> bool:
    return low is not None and high is not None and not low <= 0 <= high


def single_rollouts(found: Series, report: Report) -> Line:
    """That nobody can tell which tasks were learned from one rollout of each; else nothing."""
    ends = found.runs[:1] + found.runs[-1:]
    repeats = [run.coverage.repeats for run in report.runs if run.name in ends]
    if found.learned or found.forgotten or not repeats or max(repeats) > 1:
        return ()
    said = "one try per task cannot show which tasks were learned or forgotten"
    pair = next(
        (
            comparison
            for comparison in report.comparisons
            if comparison.churn is not None and {comparison.baseline, comparison.candidate} == set(ends)
        ),
        None,
    )
    if pair is None or pair.churn is None:
        return (f"{said}.",)
    query = f"{say.query(pair)}.churn"
    flipped = numbers.count(pair.churn.n_up + pair.churn.n_down, "task", f"{query}.n_up + {query}.n_down")
    return (f"{said}; from the first checkpoint to the last ", *flipped, " flipped, some of them by chance.")


def _moved(name: str, word: str, found: Sequence[tuple[str, float]], n: int) -> Line:
    lead = Strong(f"{name.capitalize()}: ")
    if not found:
        return (lead, "no task that can be named with confidence.")
    shown: list[Span] = []
    for place, (task, p) in enumerate(found[: places.MAX_IDS]):
        sure = numbers.probability(p, f"engine.series.{name}[{task!r}]")
        shown += [", "] if place else []
        shown += [Code(hostile.line(task, 60)), " (", sure, ")"]
    is_listed = n < len(found)
    total, every = (
        max(n, len(found)),
        f"engine.series.{name}.count" if is_listed else f"engine.series.n_{name}",
    )
    listed = min(len(found), places.MAX_IDS)
    left = total - listed
    more: Line = (" and ", numbers.whole(left, f"{every} - {listed}"), " more") if left > 0 else ()
    tasks = numbers.count(total, "task", every)
    said: Line = (f"the last checkpoint is {word} at ", *tasks, " (posterior probability of each): ")
    return (lead, *said, *shown, *more, ".")
