"""B07: a tool call that nothing answered, though the rollout went on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from blade import events
from blade.detect.rule import Hit, Rule, hit
from blade.model import Cause, RunFacts, Step, TaskTraces

RULE = Rule(
    name="dangling_call",
    number="B07",
    rule="A call has no result, fewer results than calls came back in its turn, and the model went "
    "on after it.",
    cause=Cause.INFRASTRUCTURE,
    otherwise="TI where the tool is never answered in any rollout of the task",
    procedural=False,
    needs=("calls",),
    kind="harness",
    remedy="Make the harness return a result or an error for every call of {detail}.",
)


def find(task: TaskTraces, facts: RunFacts) -> Iterator[Hit | None]:
    """Unanswered calls of rollouts in which other calls are answered."""
    answering = {
        call.tool for episode in task.episodes for call in episode.calls if call.result_step is not None
    }
    for episode in task.episodes:
        if all(call.result_step is None for call in episode.calls):  # a recording without results
            continue
        steps = episode.trace.steps
        left = _left_alone(steps)
        for call in episode.calls:
            if call.result_step is not None or call.step not in left or steps[call.step].call_id is None:
                continue
            known = call.tool in answering
            summary = f"`{call.tool}` at step {call.step} was never answered, and the model went on."
            cause = None if known else Cause.TASK_OR_VERIFIER
            yield hit(episode, summary, 2, events.at_step(episode, call.step), detail=call.tool, cause=cause)


def _left_alone(steps: Sequence[Step]) -> set[int]:
    """The calls of all turns but the last to which fewer results than calls came back.

    Some runners file all results of a turn under the id of its last call: those calls were answered.
    """
    found: set[int] = set()
    calls: list[int] = []
    n_results = 0
    answered = False  # something that is not the model's stands after the calls
    for step in steps:
        by_model = step.kind in ("message", "reasoning", "call")
        if by_model and answered:
            if n_results < len(calls):
                found.update(calls)
            calls, n_results, answered = [], 0, False
        if step.kind == "call":
            calls.append(step.index)
        n_results += step.kind == "result"
        answered = answered or not by_model
    return found
