"""Tell checkpoints in order: the trend, the first that differs, what was learned and forgotten."""

from __future__ import annotations

from collections.abc import Sequence

from blade import hostile
from blade.model import Report, Series
from blade.report import places, words
from blade.report.change import words as say
from blade.report.change.sentences import note_told
from blade.report.change.words import ALPHA, Scale
from blade.report.sections import (
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

MAX_ROWS = 60


def series(
    found: Series, report: Report, scale: Scale, figures: tuple[Figure, ...], file: str
) -> list[Block]:
    """The trend in a sentence, every checkpoint in a table, then the tasks that moved for good."""
    rows = tuple(
        cells(
            say.run(one.run),
            scale.level(one.score),
            scale.with_interval(one.change, one.low, one.high),
            words.p_number(one.p_adjusted),
        )
        for one in found.checkpoints[:MAX_ROWS]
    )
    blocks: list[Block] = [
        Heading(("Checkpoints in order",)),
        Para(trend(found, scale)),
        *named(figures, "series", None),
        Table(("Checkpoint", "Score", "Change from the first, 95% interval", "Adjusted p"), rows, "lrrr"),
    ]
    if len(found.checkpoints) > MAX_ROWS:
        blocks.append(para(f"{len(found.checkpoints) - MAX_ROWS:,} more checkpoints in {file}."))
    if untold := single_rollouts(found, report):
        blocks.append(para(Strong("Learned and forgotten: "), untold))
    else:
        blocks += [
            Para(_moved("Learned", "better", found.learned, found.n_learned)),
            Para(_moved("Forgotten", "worse", found.forgotten, found.n_forgotten)),
        ]
    if found.notes:
        blocks.append(Bullets(tuple(note_told(note, found.runs) for note in found.notes)))
    return blocks


def trend(found: Series, scale: Scale) -> Line:
    """The slope with its interval, and the first checkpoint that differs."""
    n = f"n = {say.tasks(found.n_tasks)}, {words.count(len(found.runs), 'checkpoint')}"
    if found.slope is None:
        said: Line = (f"No trend could be fitted ({n}).",)
    else:
        slope = scale.with_interval(found.slope, found.low, found.high)
        is_clear = found.p is not None and found.p <= ALPHA and _excludes_zero(found.low, found.high)
        rises = "The score rises" if found.slope > 0 else "The score falls"
        word = rises if is_clear else "No trend is established"
        said = (
            Strong(word),
            f": {slope} a checkpoint, for new tasks like these ({words.p_value(found.p)}, {n}).",
        )
    if found.first_different is None:
        return (*said, " For new tasks like these, no checkpoint differs from the first beyond noise.")
    earliest = " The earliest that differs from the first for new tasks like these is "
    return (*said, earliest, say.run(found.first_different), ".")


def _excludes_zero(low: float | None, high: float | None) -> bool:
    return low is not None and high is not None and not low <= 0 <= high


def single_rollouts(found: Series, report: Report) -> str:
    """That nobody can tell which tasks were learned from one rollout of each; else nothing."""
    ends = found.runs[:1] + found.runs[-1:]
    repeats = [run.coverage.repeats for run in report.runs if run.name in ends]
    if found.learned or found.forgotten or not repeats or max(repeats) > 1:
        return ""
    said = "single rollouts cannot tell which tasks were learned or forgotten"
    pairs = {(one.baseline, one.candidate): one.churn for one in report.comparisons}
    churn = pairs.get((ends[0], ends[-1])) or pairs.get((ends[-1], ends[0]))
    if churn is None:
        return f"{said}."
    n = churn.n_up + churn.n_down
    return f"{said}; from the first checkpoint to the last {say.tasks(n)} flipped, some of them by luck."


def _moved(title: str, word: str, found: Sequence[tuple[str, float]], n: int) -> Line:
    if not found:
        return (Strong(f"{title}: "), "no task that can be named with confidence.")
    shown: list[Span] = []
    for at, (task, p) in enumerate(found[: places.MAX_IDS]):
        shown += [", " if at else "", Code(hostile.line(task, 60)), f" ({words.probability(p)})"]
    n = max(n, len(found))
    left = n - min(len(found), places.MAX_IDS)
    more = f" and {left:,} more" if left > 0 else ""
    lead = f"the last checkpoint is {word} at {say.tasks(n)} (posterior probability of each): "
    return (Strong(f"{title}: "), lead, *shown, f"{more}.")
