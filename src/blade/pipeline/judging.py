"""Turn the judgements that lie beside a run into those that still hold in its rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from blade.agent import judgements
from blade.agent.judgements import Seen
from blade.formats import opened
from blade.model import Cause, Gap, Judged, Judgement

if TYPE_CHECKING:
    from blade.pipeline.load import Loaded

_TOLD = 3  # of those that fell, named


def standing(
    one: Loaded, judged: Judged, is_bounded: bool
) -> tuple[dict[str, tuple[Judgement, ...]], list[Gap]]:
    """Task -> the last word of each author that holds; and what fell because the rows are others now."""
    holds: list[Judgement] = []
    fallen: list[str] = []
    for kept in one.judgements:
        problems = judgements.again(kept, seen_of(one, judged, kept.task, None, is_bounded))
        if problems:
            fallen.append(f"task {kept.task} by {kept.by}: {problems[0]}")
        else:
            holds.append(kept)
    gaps = []
    if fallen:
        more = f" and {len(fallen) - _TOLD} more" if len(fallen) > _TOLD else ""
        why = f"{len(fallen)} of {len(one.judgements)} hold no longer: {'; '.join(fallen[:_TOLD])}{more}"
        gaps.append(Gap(f"judgements of {one.name}", why))
    return judgements.standing(holds), gaps


def seen_of(one: Loaded, judged: Judged, task: str, proposed: Cause | None, is_bounded: bool) -> Seen:
    """A task as a judgement of it is held against; without bounds to rewards nothing is lost."""
    places = opened.positions(one.run, task, None)
    traces = [opened.traced(one.run, at) for at in places]
    return Seen(one.run.agent, task, traces, [is_bounded and _loses(judged, at) for at in places], proposed)


def _loses(judged: Judged, position: int) -> bool:
    at = int(judged.rows.searchsorted(position))
    return at < judged.rows.size and int(judged.rows[at]) == position and bool(judged.score[at] < 1)


def losing(judged: Judged, is_bounded: bool) -> dict[str, frozenset[int]]:
    """Task -> its repeats that lose points, from the columns alone."""
    found: dict[str, set[int]] = {}
    of_all = judged.score < 1
    for code, repeat in zip(judged.task[of_all], judged.repeat[of_all], strict=True):
        found.setdefault(judged.task_keys[int(code)], set()).add(int(repeat))
    return {task: frozenset(repeats) for task, repeats in found.items()} if is_bounded else {}
