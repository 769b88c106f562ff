"""Find writes that nothing in the task asks for."""

from __future__ import annotations

from collections.abc import Iterator

from blade import events
from blade.detect import expected, wording
from blade.detect.rule import Hit, Rule, hit
from blade.model import Call, Cause, Episode, RunFacts, TaskTraces

RULE = Rule(
    name="extra_side_effect",
    number="B21",
    rule="A write succeeds that is not among the expected actions and that no other passing rollout of the "
    "task makes on the same thing. Without expected actions the task must pass twice, and shell commands "
    "do not count.",
    cause=Cause.BEHAVIOUR,
    otherwise="",
    procedural=True,
    needs=("calls",),
    kind="prompt",
    remedy="Have `{tool}` confirmed before it runs: the instructions name the cases in which it may be "
    "called, and all others are refused.",
)


def find(task: TaskTraces, facts: RunFacts) -> Iterator[Hit | None]:
    expectation = expected.Expectation(task)
    if not expectation.can_compare():
        return
    for episode in task.episodes:
        if not expectation.has_gold and not expectation.beside(episode):
            continue
        for call in expectation.paired(episode).extra:
            if expectation.has_gold or events.command_of(call.tool, call.arguments) is None:
                yield _hit(episode, expectation, call)


def _hit(episode: Episode, expectation: expected.Expectation, call: Call) -> Hit | None:
    n = expectation.beside(episode)
    source = f"`{expectation.field}` does not ask for it" if expectation.has_gold else ""
    others = f"none of {wording.count(n, 'other passing rollout')} does it" if n else ""
    return hit(
        episode,
        f"`{call.tool}` writes {wording.short(call.raw, 100)} at step {call.step}; "
        f"{' and '.join(filter(None, (source, others)))}.",
        3 if expectation.has_gold else 2,
        events.at_step(episode, call.step),
        events.in_field(episode, expectation.field) if expectation.field else None,
        detail=call.tool,
        certain=expectation.has_gold,
    )
