"""Find work that is handed in without the check that passing rollouts make."""

from __future__ import annotations

from collections.abc import Iterator

from blade import events
from blade.detect import checks, passers
from blade.detect.rule import Hit, Rule, hit
from blade.model import Cause, Episode, RunFacts, TaskTraces

RULE = Rule(
    name="no_verification",
    number="B24",
    rule="The rollout writes and never checks what it wrote, while at least half of the other "
    "passing rollouts of the task do (the task passes twice or more).",
    cause=Cause.BEHAVIOUR,
    otherwise="",
    procedural=True,
    needs=("calls", "passes"),
    kind="harness",
    remedy="Refuse to finish until `{tool}` has run after the last write.",
)
_SHARE = 0.5
_VERIFIED = "\0verified"  # no tool has this name


def find(task: TaskTraces, facts: RunFacts) -> Iterator[Hit | None]:
    if len(passers.passing(task)) < 2:
        return
    tally = passers.Tally(task, _checked_with)
    if not tally.n:
        return
    for episode in task.episodes:
        place, n = checks.last_edit(episode), tally.others(episode)
        verified = tally.count(episode, _VERIFIED)
        if place is None or tally.of(episode) or not n or verified < max(1, _SHARE * n):
            continue
        if any(call.does == events.CHECK for call in episode.calls[:place]):
            continue  # it checked, and then wrote once more: that has a rule of its own
        call = episode.calls[place]
        tools = {str(name) for one in passers.passing(task) for name in tally.of(one) if name != _VERIFIED}
        tool = min(tools, key=lambda name: (-tally.count(episode, name), name))
        yield hit(
            episode,
            f"After its last write (`{call.tool}` at step {call.step}) nothing is checked; {verified} of "
            f"{n} other passing rollouts of the task check theirs, most often with `{tool}`.",
            2,
            events.at_step(episode, episode.final_step) if episode.final_step is not None else None,
            events.at_step(episode, call.step),
            detail=tool,
            certain=True,
        )


def _checked_with(episode: Episode) -> set[str]:
    """The tools that check what was last written, and a mark that some do."""
    place = checks.last_edit(episode)
    if place is None:
        return set()
    tools = {call.tool for call in episode.calls[place + 1 :] if call.does == events.CHECK}
    return tools | {_VERIFIED} if tools else set()
