"""Order the failed tasks by what reading them is worth: costly and doubtful labels first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heappop, heappush

from blade.model import Attribution, Cause, Confidence, TaskResult, Waiting

PRICED = 2000  # tasks whose dossiers are priced at most: of more, those with the most at stake
FLOOR = 200  # tokens that the shortest dossier costs: no task is worth more for a token than by this
# How often labels of a confidence are wrong. Rough guesses that only order the queue: no conclusion rests on them.
WRONG = {Confidence.PROVED: 0.1, Confidence.LIKELY: 0.3, Confidence.UNSURE: 0.7}
WRONG_UNDETERMINED = 1.0  # a task without a cause has everything to gain from being read


def worth(attribution: Attribution) -> float:
    """Weigh the lost points of a task by how often labels like its own are wrong."""
    return attribution.lost * wrong(attribution)


def is_settled(attribution: Attribution) -> bool:
    """Whether somebody judged it, and nobody disagreed: it need not be read again."""
    return bool(attribution.judged_by) and not attribution.disputed


def reason(attribution: Attribution) -> str:
    """Say why reading a task may be worth its tokens."""
    if attribution.judged_by:
        return "judged, and the judges disagree" if attribution.disputed else "judged"
    is_open = attribution.cause is Cause.UNDETERMINED
    return f"{'no cause is shown' if is_open else f'label {attribution.confidence.value}'}: {attribution.mode}"


def wrong(attribution: Attribution) -> float:
    """Give the share of labels like this one that are expected to be wrong."""
    if attribution.cause is Cause.UNDETERMINED and not attribution.judged_by:
        return WRONG_UNDETERMINED
    return WRONG[attribution.confidence]


def queue(
    attributions: Sequence[Attribution], tasks: dict[str, TaskResult], tokens: Callable[[str], int], most: int | None
) -> tuple[Waiting, ...]:
    """Rank the tasks by value for a token of their dossiers, best first.

    Dossiers are priced only of those that can still come in: a task is worth at most its value for FLOOR.
    Of a very large run only the tasks with the most at stake are priced unless all are asked for.
    """
    # the most valuable first; those that are worth the same in the order of the report
    waiting = sorted((entry for entry in attributions if worth(entry) > 0), key=worth, reverse=True)
    waiting = waiting if most is None else waiting[: max(PRICED, most)]
    best: list[tuple[float, int, Waiting]] = []
    for place, entry in enumerate(waiting):
        if most is not None and len(best) >= most and worth(entry) / FLOOR <= best[0][0]:
            break
        task = tasks.get(entry.task)
        name, bucket = (task.task_name, task.bucket) if task is not None else (entry.task, None)
        candidate = Waiting(
            entry.run, entry.task, name, bucket, entry.cause, entry.confidence, entry.lost, worth(entry),
            tokens(entry.task), reason(entry),
        )  # fmt: skip
        heappush(best, (per_token(candidate), -place, candidate))
        if most is not None and len(best) > most:
            heappop(best)
    return tuple(candidate for *_, candidate in sorted(best, reverse=True))


def per_token(task: Waiting) -> float:
    """Give the points of score for a token of reading, by which the queue is sorted."""
    return task.value / max(task.tokens, FLOOR)

