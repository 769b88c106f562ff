"""Find rollouts that call no tool where those that pass do."""

from __future__ import annotations

from collections.abc import Iterator

from blade import events
from blade.detect import passers, wording
from blade.detect.rule import Hit, Rule, hit
from blade.model import Cause, RunFacts, TaskTraces

RULE = Rule(
    name="tool_never_used",
    number="B18",
    rule="Tools are declared, the rollout calls none, and at least 80% of the other passing rollouts of "
    "the task do.",
    cause=Cause.BEHAVIOUR,
    otherwise="",
    procedural=True,
    needs=("declared tools", "passes"),
    kind="prompt",
    remedy="Say in the instructions that an answer without a call of `{tool}` is not accepted, or force a "
    "first tool call (tool_choice).",
)
_SHARE = 0.8


def find(task: TaskTraces, facts: RunFacts) -> Iterator[Hit | None]:
    used = passers.Tally(task, lambda episode: [True] if episode.calls else [])
    tools = passers.Tally(task, passers.tools_called)
    for episode in task.episodes:
        n = used.others(episode)
        if episode.calls or not episode.tools or not n or used.count(episode, True) < _SHARE * n:
            continue
        end = passers.end_of(episode)
        if end is None:  # nothing came out at all: another rule's matter
            continue
        counts = {name: tools.count(episode, name) for name in episode.tools}
        tool = min(counts, key=lambda name: (-counts[name], name))
        yield hit(
            episode,
            f"No tool is called although {wording.count(len(episode.tools), 'tool')} are declared; "
            f"{used.count(episode, True)} of {n} other passing rollouts of the task call some, "
            f"most often `{tool}`.",
            3,
            events.at_step(episode, end),
            events.in_field(episode, "responses_create_params.tools"),
            detail=tool,
            certain=True,
        )
