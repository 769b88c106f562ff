"""Tell checkpoints in order: the trend, the first that differs, what was learned and forgotten."""

from __future__ import annotations

from collections.abc import Sequence

from blade import hostile
from blade.model import Series
from blade.report import places, words
from blade.report.change import words as say
from blade.report.change.verdict import note_told
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


def series(found: Series, scale: Scale, figures: tuple[Figure, ...], file: str) -> list[Block]:
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
    blocks += [
        Para(_moved("Learned", "better", found.learned, found.n_learned)),
        Para(_moved("Forgotten", "worse", found.forgotten, found.n_forgotten)),
    ]
    if found.notes:
        blocks.append(Bullets(tuple(note_told(note) for note in found.notes)))
    return blocks


def trend(found: Series, scale: Scale) -> Line:
    """The slope with its interval, and the first checkpoint that differs."""
    n = f"n = {say.tasks(found.n_tasks)}, {words.count(len(found.runs), 'checkpoint')}"
    if found.slope is None:
        said: Line = (f"No trend could be fitted ({n}).",)
    else:
        slope = scale.with_interval(found.slope, found.low, found.high)
        is_clear = found.p is not None and found.p <= ALPHA
        rises = "The score rises" if found.slope > 0 else "The score falls"
        word = rises if is_clear else "No trend is established"
        said = (Strong(word), f": {slope} a checkpoint, over tasks ({words.p_value(found.p)}, {n}).")
    if found.first_different is None:
        return (*said, " No checkpoint differs from the first beyond noise.")
    return (*said, " The earliest that differs from the first is ", say.run(found.first_different), ".")


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
