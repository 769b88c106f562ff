"""B06: the rollout was stopped at its turn limit before the model was done."""

from __future__ import annotations

import re
from collections.abc import Iterator

from blade import events
from blade.detect import row
from blade.detect.rule import Hit, Rule, hit
from blade.model import Cause, RunFacts, TaskTraces

RULE = Rule(
    name="turn_limit",
    number="B06",
    rule="The row says that it ended at a limit of turns or steps, or the model made as many turns "
    "as any rollout may and did not have the last word.",
    cause=Cause.BEHAVIOUR,
    otherwise="IR, a setting, where most rollouts of the run are cut there; weak where rollouts end as "
    "soon as they pass, since to reach the limit is then to fail",
    procedural=True,
    needs=("steps",),
    kind="harness",
    remedy="Tell the model its budget of {detail} turns and hold the limit against the turns that "
    "passing rollouts need.",
)

_STOPPED = re.compile(
    r"\bmax[ _-]?(?:number[ _-]of[ _-])?(?:model[ _-]|agent[ _-])?(?:turn|step|iteration|round|action)s?"
    r"|\b(?:turn|step|iteration|action)s?[ _-]?(?:limit|budget|cap)"
    r"|(?:limit|budget)[ _-](?:of[ _-])?(?:turn|step)s",
    re.IGNORECASE,
)


_MOST = 0.5  # of the rollouts at the limit: then the limit is wrong, not the model


def find(task: TaskTraces, facts: RunFacts) -> Iterator[Hit | None]:
    """Rows at the limit."""
    most = facts.n_at_cap > _MOST * facts.n_rollouts and not facts.ends_when_solved
    cause = Cause.INFRASTRUCTURE if most else None
    gravest = 1 if facts.ends_when_solved else 3  # then it says no more than that the rollout failed
    for episode in task.episodes:
        stopped = row.stop_reason(episode.trace.row)
        told = stopped is not None and _STOPPED.search(stopped[1]) is not None
        turns = row.n_turns(episode.trace) if told or facts.turn_cap is not None else 0
        capped = facts.turn_cap is not None and turns >= facts.turn_cap and row.is_open(episode)
        if not told and not capped:
            continue
        last = events.at_step(episode, row.last_quotable(episode))
        ended = "with the conversation open" if episode.final.strip() else "without a final text"
        if told and stopped is not None:
            reason = f"(`{stopped[0]}` {stopped[1]})"
            summary = f"The rollout was stopped {reason} after {turns} model turns, {ended}."
            said = events.in_field(episode, stopped[0])
            yield hit(episode, summary, gravest, last, said, detail=str(turns), cause=cause, certain=True)
        else:
            summary = (
                f"The model used all {facts.turn_cap} turns and stopped {ended}; {facts.n_at_cap} of "
                f"{facts.n_rollouts} rollouts stop there and none goes on."
            )
            yield hit(episode, summary, min(2, gravest), last, detail=str(facts.turn_cap), cause=cause)
