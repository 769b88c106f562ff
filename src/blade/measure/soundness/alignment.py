"""Ask whether rows hang on the right tasks: does what a task expects occur in its own trajectory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from blade.measure.soundness.rows import Rows, count, named
from blade.measure.soundness.sounding import EQUAL, EXPLICIT, HARD, OTHER, Sounding
from blade.measure.soundness.verdicts import NOTHING, Found
from blade.model import Cause, Evidence, Level, Suspicion

if TYPE_CHECKING:
    from numpy.typing import NDArray

FEWEST_WORDS = 3  # telling words of a task from which its trajectory can be told by them
ENOUGH = 8  # tasks with such words
PASSES = 20  # passing tasks with fewer words: a pass has said what was expected
ANSWERED = 20  # tasks with an exact answer and an exact gold
DISTINCT = 0.9  # of the tasks that answers point at, of all that belong elsewhere
DIVERSE = 0.5  # distinct golds per task from which an answer points at a task
MOST = 0.6  # share of these that must belong elsewhere
RARE = 0.05  # share of trajectories up to which a word is telling
MARGIN = 0.5  # by which another trajectory must hold more of the words than its own
PARTLY = 0.2  # share of tasks that belong elsewhere from which a part of the run is misaligned


@dataclass(frozen=True)
class Aligned:
    """How well one field of the tasks fits their trajectories."""

    field: str
    home: list[str]  # tasks whose own trajectory holds most of their words
    elsewhere: list[
        tuple[str, str, int, int, int]
    ]  # task, where its words are, how many, at home, of how many
    own: float  # mean share of a task's words in its own trajectory
    best: float  # mean share in the best other one
    of: str = "words"  # what was looked for

    @property
    def n(self) -> int:
        return len(self.home) + len(self.elsewhere)


def misaligned(rows: Rows) -> Found:
    """Whether the words of some expected field are found under other tasks rather than their own."""
    passing = {one.position for _, one in rows.every() if rows.passed(one)}
    candidates = [
        found
        for found in alignments(rows.tasks)
        if found.n >= ENOUGH and len(found.elsewhere) >= max(ENOUGH / 2, PARTLY * found.n)
    ] or [
        found
        for found in alignments(rows.tasks, passing)
        if found.n >= PASSES and len(found.elsewhere) >= MOST * found.n
    ]
    candidates = candidates or [found for found in [_answered(rows)] if found is not None]
    worst = max(candidates, key=lambda found: len(found.elsewhere), default=None)
    if worst is None:
        return NOTHING
    text = _told(worst)
    by_key = {one.task: one for one in rows.tasks}
    suspects = {}
    told: list[Evidence] = []
    for key, where, there, here, of in worst.elsewhere:
        heard = by_key[key].heard
        quoted = rows.quoted(heard[0].position, worst.field) if heard and len(told) < 20 else None
        told += [quoted] if quoted is not None else []
        said = f"{there} of {of} {worst.of} fit {worst.field} of task {where}, {here} its own"
        if worst.of == "words":
            said = f"{there} of {of} telling words of {worst.field} stand under task {where}, {here} here"
        cited = (quoted,) if quoted is not None else ()
        suspects[key] = Suspicion(key, "misaligned_tasks", HARD, Cause.DATA_ARTIFACT, said, cited)
    level = Level.PROBLEM if len(worst.elsewhere) >= len(worst.home) else Level.WARNING
    return rows.flag("misaligned_tasks", level, text, len(worst.elsewhere), worst.n, told), suspects


def _told(found: Aligned) -> str:
    task, other, there, here, of = found.elsewhere[0]
    n = len(found.elsewhere)
    keys = named(key for key, *_ in found.elsewhere)
    if found.of == "answers":
        return (
            f"Rows hang on the wrong tasks: for {n:,} of {count(found.n, 'task')} the answers are not "
            f"{found.field} of their own task but that of another, nearly each of another one. Of {of} "
            "answers "
            f"to task {task} {there} fit task {other}, {here} its own. Concerned: {keys}."
        )
    return (
        f"Rows hang on the wrong tasks: for {n:,} of {count(found.n, 'task')} the telling words of "
        f"{found.field} "
        f"stand in the trajectory of another task, not in its own (mean share {found.own:.0%} in its own, "
        f"{found.best:.0%} in the best other; sign test that its own holds more: p "
        f"{_sign_test(len(found.home), found.n):.2g}). Of task {task} {there} of {of} words stand under task "
        f"{other}, {here} under its own. Concerned: {keys}."
    )


def _answered(rows: Rows) -> Aligned | None:
    """How answers fit the golds, where golds are exact and differ from task to task.

    A model that is wrong throughout may hit the gold of some other task, but not of another one each time.
    """
    told = [task for task in rows.tasks if rows.by_answer(task) and task.is_plain]
    under: dict[str, list[str]] = {}
    for task in told:
        under.setdefault(task.gold, []).append(task.task)
    if len(under) < max(ENOUGH, DIVERSE * len(told)):
        return None
    home: list[str] = []
    elsewhere: list[tuple[str, str, int, int, int]] = []
    n = 0
    for task in told:
        given = [one for one in rows.heard(task) if one.kind in EXPLICIT and one.relation]
        n += bool(given)
        right = sum(one.relation in EQUAL for one in given)
        others = Counter(one.answer for one in given if one.relation == OTHER and one.answer in under)
        top = max(sorted(others), key=lambda answer: others[answer], default="")
        if given and 2 * right >= len(given):
            home.append(task.task)
        elif top and 2 * others[top] > len(given):
            elsewhere.append((task.task, under[top][0], others[top], right, len(given)))
    targets = {where for _, where, *_ in elsewhere}
    if n < ANSWERED or len(elsewhere) < MOST * n or len(targets) < DISTINCT * len(elsewhere):
        return None
    return Aligned(str(told[0].gold_field), home, elsewhere, len(home) / n, len(elsewhere) / n, "answers")


def alignments(tasks: Sequence[Sounding], passing: Collection[int] | None = None) -> list[Aligned]:
    """How each expected field fits the trajectories; of `passing` rollouts, one telling word will do."""
    speaking = [task for task in tasks if task.words]
    if len(speaking) < ENOUGH:
        return []
    held = [np.frombuffer(task.words, np.uint32) for task in speaking]
    words = np.concatenate(held)
    holder = np.repeat(np.arange(len(held)), [part.size for part in held])
    order = np.argsort(words, kind="stable")
    words, holder = words[order], holder[order]
    fields = sorted({name for task in speaking for name in task.expected})
    return [_aligned(field, speaking, words, holder, passing) for field in fields]


def _aligned(
    field: str,
    tasks: Sequence[Sounding],
    words: NDArray[np.uint32],
    holder: NDArray[np.int64],
    passing: Collection[int] | None,
) -> Aligned:
    fewest = FEWEST_WORDS if passing is None else 1
    home: list[str] = []
    elsewhere: list[tuple[str, str, int, int, int]] = []
    shares: list[tuple[float, float]] = []
    limit = max(2, int(RARE * len(tasks)))
    for at, task in enumerate(tasks):
        wanted = np.array(task.expected.get(field, ()), np.uint32)
        if wanted.size < fewest or (passing is not None and task.spoke not in passing):
            continue
        low, high = np.searchsorted(words, wanted, "left"), np.searchsorted(words, wanted, "right")
        telling = (high > low) & (high - low <= limit)
        n = int(telling.sum())
        if n < fewest:
            continue
        places = np.concatenate([holder[a:b] for a, b in zip(low[telling], high[telling], strict=True)])
        counts = np.bincount(places, minlength=len(tasks))
        own = int(counts[at])
        counts[at] = -1
        best = int(counts.argmax())
        there = int(counts[best])
        shares.append((own / n, there / n))
        if own >= there:
            home.append(task.task)
        elif there >= fewest and (there - own) / n >= MARGIN:
            elsewhere.append((task.task, tasks[best].task, there, own, n))
    means = np.array(shares).mean(axis=0) if shares else (0.0, 0.0)
    return Aligned(field, home, elsewhere, float(means[0]), float(means[1]))


def _sign_test(wins: int, n: int) -> float:
    """P(at least so many wins of n by chance)."""
    from scipy.special import bdtrc

    return float(bdtrc(wins - 1, n, 0.5)) if wins > 0 else 1.0
