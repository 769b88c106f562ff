"""Find failing rollouts whose own last check passed."""

from __future__ import annotations

from collections.abc import Iterator

from blade import events
from blade.detect import checks, wording
from blade.detect.rule import Hit, Rule, hit
from blade.model import Cause, RunFacts, TaskTraces

RULE = Rule(
    name="self_check_pass_verifier_fail",
    number="B27",
    rule="The last check of the work passes, nothing is written after it, and the rollout fails all the "
    "same. It can fire on failing rollouts only.",
    cause=Cause.KNOWLEDGE_GAP,
    otherwise="TI if rollouts of several models share it on the task",
    procedural=False,
    needs=("calls", "judged"),
    kind="verifier",
    remedy="Compare what `{tool}` checks with what the verifier checks on these tasks; state the "
    "difference in the task, or repair the verifier.",
    terminal=True,
)


def find(task: TaskTraces, facts: RunFacts) -> Iterator[Hit | None]:
    for episode in task.episodes:
        place = None if episode.passed else checks.last_check(episode)
        if place is None:
            continue
        check = episode.calls[place]
        if checks.verdict(check) is not True or any(map(checks.is_edit, episode.calls[place + 1 :])):
            continue
        edits = [call for call in episode.calls[:place] if checks.is_edit(call)]
        yield hit(
            episode,
            f"The last check (`{check.tool}` at step {check.step}) passes "
            f"({wording.short(check.output[-200:])}) and the rollout fails all the same.",
            2,
            events.at_step(episode, edits[-1].step) if edits else None,  # what the check was to find wanting
            events.at_step(episode, check.result_step or check.step, len(check.output)),
            detail=check.tool,
        )
