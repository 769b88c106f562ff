"""Turn the rollouts of one task into where its failing ones went wrong."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from blade.align import divergences
from blade.locate.expected import Expected
from blade.locate.faults import ends, errors, findings
from blade.locate.prefixes import value_drops
from blade.locate.vote import Candidate, located
from blade.model import Divergence, Finding, Located, TaskTraces


def observe(
    task: TaskTraces,
    found: Iterable[tuple[int, Finding]] = (),
    parted: Sequence[Divergence] | None = None,
) -> list[Located]:
    """Where each failing rollout went wrong; `found` are findings by position, `parted` known divergences."""
    by_position: dict[int, list[Finding]] = {}
    for position, finding in found:
        by_position.setdefault(position, []).append(finding)
    failing = [episode for episode in task.episodes if episode.passed is False]
    if not failing:
        return []
    drops, expected = value_drops(task), Expected(task)
    parting = {one.position: one for one in (divergences(task) if parted is None else parted)}
    told = []
    for episode in failing:
        candidates = expected.against(episode)
        if episode.position in drops:
            candidates.append(drops[episode.position])
        one = parting.get(episode.position)
        if one is not None and one.does != one.passer_does:  # both may merely end
            candidates.append(_parts(one))
        candidates += errors(episode)
        candidates += ends(episode)
        candidates += findings(episode, by_position.get(episode.position, ()))
        told.append(located(episode, candidates))
    return told


def _parts(one: Divergence) -> Candidate:
    where = f"repeat {one.passer}, which passes, {one.passer_does}"
    return Candidate(one.step, "divergence", f"{one.does} where {where}")
