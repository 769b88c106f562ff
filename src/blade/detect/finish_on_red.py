"""Find rollouts that finish although their last check failed."""

from __future__ import annotations

import re
from collections.abc import Iterator

from blade import events
from blade.detect import checks, wording
from blade.detect.rule import Hit, Rule, hit
from blade.model import Cause, RunFacts, TaskTraces

RULE = Rule(
    name="finish_on_red",
    number="B26",
    rule="The last check of the work fails, nothing is written after it, and the rollout ends with a "
    "message.",
    cause=Cause.BEHAVIOUR,
    otherwise="",
    procedural=True,
    needs=("calls",),
    kind="harness",
    remedy="Refuse to finish while the last `{tool}` is red; return its output with the refusal.",
)
_ADMITS = re.compile(
    r"\b(?:fail(?:s|ed|ing|ure)?|error|could ?n[o']t|cannot|can't|unable|unresolved|not (?:pass|work))", re.I
)


def find(task: TaskTraces, facts: RunFacts) -> Iterator[Hit | None]:
    for episode in task.episodes:
        place = checks.last_check(episode)
        if place is None or not episode.final.strip():
            continue
        check = episode.calls[place]
        if checks.verdict(check) is not False or any(map(checks.is_edit, episode.calls[place + 1 :])):
            continue
        admitted = _ADMITS.search(episode.final) is not None
        yield hit(
            episode,
            f"The last check (`{check.tool}` at step {check.step}) fails "
            f"({wording.short(check.output[-200:])}) and the rollout "
            f"ends{', which its final message admits' if admitted else ' as if it had passed'}.",
            2 if admitted else 3,
            events.at_step(episode, check.result_step or check.step, len(check.output)),
            events.at_step(episode, episode.final_step) if episode.final_step is not None else None,
            detail=check.tool,
        )
