"""Turn the failures of a run into clusters to be named: modes of failing and error signatures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b

import msgspec

from blade import hostile
from blade.model import Attribution, Evidence, Signature
from blade.report.facts import Facts

MEMBERS = 10  # tasks of a cluster that are quoted
_QUOTED = 400  # characters of a quotation


class Cluster(msgspec.Struct, frozen=True):
    """Failures that the engine puts together."""

    id: str
    kind: str  # mode, signature
    called: str  # by the engine
    n_tasks: int
    tasks: tuple[str, ...]  # those that are quoted
    data: str


def clusters(facts: Facts, losing: dict[str, frozenset[int]]) -> tuple[list[Cluster], int]:
    """Modes by what they cost, then signatures by the failures that show them; and how many quote nothing."""
    found = [_mode(members, losing) for members in _modes(facts.attributions)]
    found += [
        _signature(one, losing) for one in sorted(facts.signatures, key=lambda one: (-one.n_failed, one.id))
    ]
    told = [one for one in found if one is not None]
    return told, len(found) - len(told)


def _modes(attributions: Iterable[Attribution]) -> list[list[Attribution]]:
    groups: dict[tuple[str, str], list[Attribution]] = {}
    for one in attributions:
        groups.setdefault((one.cause.value, one.mode), []).append(one)
    for members in groups.values():
        members.sort(key=lambda one: (-one.lost, one.task))
    return sorted(groups.values(), key=lambda told: (-sum(one.lost for one in told), told[0].mode))


def _mode(members: Sequence[Attribution], losing: dict[str, frozenset[int]]) -> Cluster | None:
    first = members[0]
    lost = sum(one.lost for one in members)
    head = [
        f"A mode of failing, by the engine: {first.cause.value}, {hostile.line(first.mode, 200)}",
        f"Tasks: {len(members)}; points of score lost: {lost:.4f}",
    ]
    # what another task shows is no place of this one
    quoted = [(one.task, place) for one in members for place in one.evidence[:2] if place.task == one.task]
    told = {one.task: hostile.line(one.mechanism, 300) for one in members}
    name = f"{first.cause.value}: {first.mode}"
    return _cluster("mode", name, len(members), head, _failing(quoted, losing), told)


def _signature(one: Signature, losing: dict[str, frozenset[int]]) -> Cluster | None:
    head = [
        f"An error signature: {hostile.line(one.kind, 100)}, in {hostile.line(one.source, 100)}",
        f"Template: {hostile.line(one.template, 400)}",
        f"Tasks: {one.n_tasks}; rollouts: {one.n_rollouts}, of which {one.n_failed} fail",
    ]
    quoted = [(place.task, place) for place in one.evidence]
    # several tools may give the same error
    called = f"{one.template} ({one.source})"
    return _cluster("signature", called, one.n_tasks, head, _failing(quoted, losing), {})


def _failing(
    quoted: Iterable[tuple[str, Evidence]], losing: dict[str, frozenset[int]]
) -> list[tuple[str, Evidence]]:
    """Places of rollouts that fail, those of as many tasks as fit."""
    found = [one for one in quoted if one[1].quote and one[1].repeat in losing.get(one[0], frozenset())]
    tasks = list(dict.fromkeys(task for task, _ in found))[:MEMBERS]
    return [one for one in found if one[0] in tasks]


def _cluster(
    kind: str,
    called: str,
    n_tasks: int,
    head: Sequence[str],
    quoted: Sequence[tuple[str, Evidence]],
    told: dict[str, str],
) -> Cluster | None:
    if not quoted:
        return None
    tasks = tuple(dict.fromkeys(task for task, _ in quoted))
    lines = [*head, f"Quoted below: {len(tasks)} tasks"]
    for task in tasks:
        lines += ["", f"task {hostile.line(task, 200)}" + (f": {told[task]}" if told.get(task) else "")]
        for place in (place for of, place in quoted if of == task):
            where = (
                f"step {place.step}"
                if place.step is not None
                else f"field {hostile.line(place.field or '', 200)}"
            )
            lines.append(f"repeat {place.repeat}, {where}:")
            lines += [f"| {line}" for line in hostile.lines((place.quote or "")[:_QUOTED]).split("\n")]
    digest = blake2b(f"{kind}\0{called}".encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
    return Cluster(f"{kind}-{digest}", kind, called, n_tasks, tasks, "\n".join(lines))
