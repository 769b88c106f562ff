"""Find expected calls that are made with another value in some field."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from blade import events
from blade.detect import expected, wording
from blade.detect.rule import Hit, Rule, hit
from blade.model import Call, Cause, Episode, RunFacts, TaskTraces

RULE = Rule(
    name="wrong_arg_field",
    number="B20",
    rule="A write of the expected actions, or one that all other passing rollouts of the task make alike, "
    "is made with another value in some field that no passing rollout gives it. Readings count only where "
    "nothing is to be written; prose is never compared.",
    cause=Cause.UNRELIABLE_KNOWLEDGE,
    otherwise="KG if every rollout of the task that makes the call gets the field wrong",
    procedural=False,
    needs=("calls",),
    kind="data",
    remedy="Train or instruct on how {detail} is to be chosen, with worked cases in which the near-by "
    "value is wrong.",
)


def find(task: TaskTraces, facts: RunFacts) -> Iterator[Hit | None]:
    expectation = expected.Expectation(task)
    if not expectation.can_compare():
        return
    paired = [(episode, expectation.paired(episode).differing) for episode in task.episodes]
    wrong = Counter(
        (action.tool, field)
        for _, differing in paired
        for action, field in {
            (a.tool, field): (a, field) for _, a, fields in differing for field in fields
        }.values()
    )
    makes = Counter(tool for episode in task.episodes for tool in {call.tool for call in episode.calls})
    for episode, differing in paired:
        for call, action, fields in differing:
            is_gap = all(wrong[call.tool, field] == makes[call.tool] for field in fields)
            yield _hit(episode, expectation, call, action, fields, Cause.KNOWLEDGE_GAP if is_gap else None)


def _hit(
    episode: Episode,
    expectation: expected.Expectation,
    call: Call,
    action: expected.Action,
    fields: list[str],
    cause: Cause | None,
) -> Hit | None:
    field = fields[0]
    told = "; ".join(_difference(call.arguments, action.arguments, name) for name in fields[:3])
    more = f" and {len(fields) - 3} more fields" if len(fields) > 3 else ""
    source = f"`{expectation.field}`" if expectation.has_gold else "the other passing rollouts of the task"
    return hit(
        episode,
        f"`{call.tool}` at step {call.step}: {told}{more} (by {source}).",
        expectation.severity(3 if call.does == events.WRITE else 2),
        events.at_step(episode, call.step, max(0, call.raw.find(f'"{field}"'))),
        expected.quoted(episode, expectation.field, call.tool) if expectation.field else None,
        detail=f"{call.tool}.{field}",
        cause=cause,
        certain=expectation.has_gold,
    )


def _difference(made: Any, wanted: Mapping[str, Any], field: str) -> str:
    """One field and both its values; of lists only what the other one lacks."""
    if field not in made:
        return f"`{field}` is left out, expected {wording.short(wanted[field])}"
    given, asked = made[field], wanted[field]
    if isinstance(given, list) and isinstance(asked, list):
        only_given, only_asked = expected.without(given, asked), expected.without(asked, given)
        if only_given and only_asked:
            return f"`{field}` has {wording.short(only_given)}, expected {wording.short(only_asked)}"
        word, rest = ("has", only_given) if only_given else ("lacks", only_asked)
        return f"`{field}` {word} {wording.short(rest)}{', which is not expected' if only_given else ''}"
    return f"`{field}` is {wording.short(given)}, expected {wording.short(asked)}"
