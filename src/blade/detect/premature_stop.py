"""Find rollouts that stop after half the calls that the shortest passing one needs."""

from __future__ import annotations

from collections.abc import Iterator

from blade import events
from blade.detect import expected, passers, wording
from blade.detect.rule import Hit, Rule, hit
from blade.model import Cause, Episode, RunFacts, TaskTraces

RULE = Rule(
    name="premature_stop",
    number="B28",
    rule="The rollout makes at most half as many calls as the other passing rollout of the task that makes "
    "fewest (2 or more; the task passes twice or more), and never calls a tool that is to write by the "
    "expected actions, or without these one that all other passing rollouts call (to write, if they all "
    "write or if there is a user).",
    cause=Cause.BEHAVIOUR,
    otherwise="",
    procedural=True,
    needs=("calls", "passes"),
    kind="prompt",
    remedy="State when the task is complete, as a list to be ticked off before the final message; passing "
    "rollouts make at least {detail}.",
)


def find(task: TaskTraces, facts: RunFacts) -> Iterator[Hit | None]:
    sizes = sorted((len(episode.calls), episode.position) for episode in passers.passing(task))
    if len(sizes) < 2:
        return
    tools = passers.Tally(task, passers.tools_called)
    for episode in task.episodes:
        least = sizes[0][0] if sizes[0][1] != episode.position else sizes[1][0]
        made, end = len(episode.calls), passers.end_of(episode)
        if least < 2 or made > least / 2 or end is None:
            continue
        unmet = _unmet(task, tools, episode)
        if not unmet:
            continue
        n = len(sizes) - bool(episode.passed)
        yield hit(
            episode,
            f"The rollout stops at step {end} after {wording.count(made, 'call')}; the {n} other passing "
            f"rollouts of the task make at least {least}. Never called: "
            f"{', '.join(f'`{tool}`' for tool in unmet[:3])}.",
            2,
            events.at_step(episode, end),
            detail=wording.count(least, "call"),
            certain=True,
        )


def _unmet(task: TaskTraces, tools: passers.Tally, episode: Episode) -> list[str]:
    """Tools that the task needs and the rollout never calls; of expected actions only writes are needed."""
    does = expected.tool_does(task)
    if task.gold.actions:
        needed = {tool for tool, _ in task.gold.actions if does[tool] == events.WRITE}
    else:
        shared = {str(tool) for tool in tools.in_all(episode)}
        needed = {tool for tool in shared if does[tool] == events.WRITE}
        if not needed and not episode.has_user:  # a talk may need no call at all
            needed = shared
    return sorted(needed - passers.tools_called(episode))
