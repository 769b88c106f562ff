"""Lay out the failure groups of a run as clusters for a model to name, each with quotations of its tasks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b

import msgspec

from blade import hostile
from blade.model import Attribution, Evidence, Group
from blade.report.facts import Facts

MEMBERS = 10  # tasks of a cluster that are quoted
_QUOTES = 2  # of one task
_QUOTED = 400  # characters of a quotation

Losing = dict[str, frozenset[int]]  # task -> its repeats that lose points


class Cluster(msgspec.Struct, frozen=True):
    """Failures that the engine puts together."""

    id: str
    called: str  # by the engine
    tasks: tuple[str, ...]  # those that are quoted
    data: str


def clusters(facts: Facts, losing: Losing) -> tuple[list[Cluster], int]:
    """Lay out the groups in their order, and count those that nothing can be quoted from."""
    members: dict[str, list[Attribution]] = {}
    for attribution in facts.attributions:
        members.setdefault(attribution.group, []).append(attribution)
    found = [_cluster(group, members.get(group.id, []), losing) for group in facts.groups]
    quoting = [cluster for cluster in found if cluster is not None]
    return quoting, len(found) - len(quoting)


def _cluster(group: Group, members: Sequence[Attribution], losing: Losing) -> Cluster | None:
    ranked = sorted(members, key=lambda member: (-member.lost, member.task))
    quoted = _failing(_places(group, ranked), losing)
    if not quoted:
        return None
    tasks = tuple(dict.fromkeys(place.task for place in quoted))
    lines = [
        f"A group of failures, by the engine: {group.label.value}, {hostile.line(group.name, 200)}",
        f"What the engine says of it: {hostile.line(group.text, 600)}",
        f"Tasks: {group.tasks}; failures: {group.rows}; points of score lost: {group.points:.4f}",
        f"Quoted below: {len(tasks)} tasks",
    ]
    said = {member.task: hostile.line(member.mechanism, 300) for member in members}
    for task in tasks:
        lines += ["", f"task {hostile.line(task, 200)}" + (f": {said[task]}" if task in said else "")]
        for place in (place for place in quoted if place.task == task):
            lines += _quotation(place)
    called = f"{group.label.value}: {group.name}"
    digest = blake2b(called.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
    return Cluster(f"group-{digest}", called, tasks, "\n".join(lines))


def _places(group: Group, members: Iterable[Attribution]) -> list[Evidence]:
    """Find what the tasks of a group show in their own rows, and then what the group itself quotes."""
    # what another task shows is no place of this one
    places = [place for member in members for place in member.evidence[:_QUOTES] if place.task == member.task]
    return list(dict.fromkeys([*places, *([group.quote] if group.quote is not None else [])]))


def _failing(places: Iterable[Evidence], losing: Losing) -> list[Evidence]:
    """Keep the places of rollouts that fail, those of as many tasks as fit."""
    found = [place for place in places if place.quote and place.repeat in losing.get(place.task, frozenset())]
    tasks = list(dict.fromkeys(place.task for place in found))[:MEMBERS]
    return [place for place in found if place.task in tasks]


def _quotation(place: Evidence) -> list[str]:
    where = (
        f"step {place.step}" if place.step is not None else f"field {hostile.line(place.field or '', 200)}"
    )
    quote = hostile.lines((place.quote or "")[:_QUOTED]).split("\n")
    return [f"repeat {place.repeat}, {where}:", *(f"| {line}" for line in quote)]
