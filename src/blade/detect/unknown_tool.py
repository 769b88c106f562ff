"""B08: the model called a tool that nobody declared."""

from __future__ import annotations

from collections.abc import Iterator

from blade import events
from blade.detect import row
from blade.detect.rule import Hit, Rule, hit
from blade.model import Call, Cause, Episode, RunFacts, TaskTraces

RULE = Rule(
    name="unknown_tool",
    number="B08",
    rule="A call names a tool that is not among the declared ones.",
    cause=Cause.BEHAVIOUR,
    otherwise="KG where at least half of two or more repeats do it; weak where the call works all the same",
    procedural=True,
    needs=("calls", "declared tools"),
    kind="prompt",
    remedy="Name the tools there are in the prompt and constrain decoding to them: {detail} is none.",
)


def find(task: TaskTraces, facts: RunFacts) -> Iterator[Hit | None]:
    """The first call of each undeclared tool in each rollout."""
    found = [(episode, _unknown(episode)) for episode in task.episodes]
    affected = sum(bool(calls) for _, calls in found)
    often = len(found) > 1 and 2 * affected >= len(found)
    for episode, calls in found:
        declared = ", ".join(f"`{name}`" for name in sorted(episode.tools)[:5])
        for call in calls.values():
            works = call.result_step is not None and not call.failed
            summary = (
                f"`{call.tool}` was called at step {call.step} but is not declared "
                f"({len(episode.tools)} tools are: {declared}{', …' if len(episode.tools) > 5 else ''})"
                + ("; it was answered all the same." if works else ".")
            )
            result = events.at_step(episode, row.result_place(call)) if call.result_step is not None else None
            severity, cause = (1, None) if works else (2, Cause.KNOWLEDGE_GAP if often else None)
            named = events.at_step(episode, call.step)
            yield hit(episode, summary, severity, named, result, detail=call.tool, cause=cause)


def _unknown(episode: Episode) -> dict[str, Call]:
    calls: dict[str, Call] = {}
    if not episode.tools:
        return calls
    steps = episode.trace.steps
    for call in episode.calls:
        hosted = steps[call.step].call_id is None or call.tool.endswith(
            "_call"
        )  # declared by type, not by name
        if call.tool and call.tool not in episode.tools and not hosted:
            calls.setdefault(call.tool, call)
    return calls
