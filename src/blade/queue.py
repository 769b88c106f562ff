"""Turn the causes of failed tasks into the order in which to read them: unsure and costly first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heappush, heapreplace

import msgspec

from blade.model import Attribution, Cause, Health, Level, TaskResult, Waiting

PRICED = 2000  # tasks whose dossiers are priced at most: of more, those with the most at stake
FLOOR = 200  # tokens that the shortest dossier costs: no task is worth more for a token than by this
VARIES = "varies between repeats"
DEFECTS = (Cause.TASK_OR_VERIFIER, Cause.DATA_ARTIFACT)


class Worth(msgspec.Struct, frozen=True):
    """What reading a task could set right."""

    attribution: Attribution
    confidence: float
    value: float
    reason: str
    is_settled: bool = False  # somebody judged it, and nobody disagreed: it need not be read again


def worth(attribution: Attribution, doubts: Sequence[Health]) -> Worth:
    """The points that hang on a label: all of them where nothing is sure, or the task itself is doubted."""
    told = attribution.cause
    if attribution.judged_by:
        reason = "judged, and disputed" if attribution.disputed else "judged"
        return _worth(attribution, attribution.confidence, reason, not attribution.disputed)
    if told in DEFECTS or doubts:
        flags = ", ".join(dict.fromkeys(one.flag.replace("_", " ") for one in doubts))
        return _worth(attribution, 0.0, f"the task itself is suspected ({flags or attribution.mode})")
    if told is Cause.UNDETERMINED:
        return _worth(attribution, 0.0, "undetermined")
    if attribution.mode == VARIES:
        return _worth(attribution, attribution.confidence, "passes and fails, and nothing sets the two apart")
    return _worth(attribution, attribution.confidence, "the label may be wrong")


def _worth(attribution: Attribution, confidence: float, reason: str, is_settled: bool = False) -> Worth:
    return Worth(attribution, confidence, attribution.lost * (1.0 - confidence), reason, is_settled)


def doubts_of(health: Sequence[Health]) -> dict[str, list[Health]]:
    """Task -> the flags that speak against the task or its verdict."""
    found: dict[str, list[Health]] = {}
    for one in health:
        if one.task is not None and one.level is not Level.INFO:
            found.setdefault(one.task, []).append(one)
    return found


def queue(
    worths: Sequence[Worth],
    tasks: dict[str, TaskResult],
    tokens: Callable[[str], int],
    most: int | None,
) -> tuple[Waiting, ...]:
    """The tasks worth most for a token of their dossiers, best first.

    Dossiers are priced only of those that can still come in: a task is worth at most its value for FLOOR.
    Of a very large run only the tasks with the most at stake are priced unless all are asked for.
    """
    waiting = sorted((one for one in worths if one.value > 0), key=lambda one: (-one.value, _key(one)))
    waiting = waiting if most is None else waiting[: max(PRICED, most)]
    best: list[tuple[float, int, Waiting]] = []
    for at, one in enumerate(waiting):
        if most is not None and len(best) >= most and one.value / FLOOR <= best[0][0]:
            break
        found = _waiting(one, tasks.get(one.attribution.task), tokens(one.attribution.task))
        entry = (per_token(found), -at, found)
        if most is None or len(best) < most:
            heappush(best, entry)
        else:
            heapreplace(best, entry) if entry > best[0] else None
    return tuple(found for *_, found in sorted(best, reverse=True))


def per_token(one: Waiting) -> float:
    """Points of score for a token of reading: what the queue is sorted by."""
    return one.value / max(one.tokens, FLOOR)


def _key(one: Worth) -> tuple[bool, int, str]:
    task = one.attribution.task
    return (False, int(task), "") if task.isascii() and task.isdigit() else (True, 0, task)


def _waiting(one: Worth, task: TaskResult | None, tokens: int) -> Waiting:
    told = one.attribution
    name, bucket = (task.task_name, task.bucket) if task is not None else (told.task, None)
    return Waiting(
        told.run,
        told.task,
        name,
        bucket,
        told.cause,
        one.confidence,
        told.lost,
        one.value,
        tokens,
        one.reason,
    )
