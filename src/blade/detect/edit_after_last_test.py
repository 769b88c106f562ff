"""Find work that was changed after it was last tested."""

from __future__ import annotations

from collections.abc import Iterator

from blade import events
from blade.detect import checks, wording
from blade.detect.rule import Hit, Rule, hit
from blade.model import Cause, RunFacts, TaskTraces

RULE = Rule(
    name="edit_after_last_test",
    number="B25",
    rule="The work is tested at least once, and written to after its last test. Handing it in is no write.",
    cause=Cause.BEHAVIOUR,
    otherwise="",
    procedural=True,
    needs=("calls",),
    kind="harness",
    remedy="Run `{tool}` once more by itself when the model finishes with untested edits, and hand it the "
    "result.",
)


def find(task: TaskTraces, facts: RunFacts) -> Iterator[Hit | None]:
    for episode in task.episodes:
        test = checks.last_check(episode)
        edits = (
            [call for call in episode.calls[test + 1 :] if checks.is_edit(call)] if test is not None else []
        )
        if test is None or not edits:
            continue
        check, last = episode.calls[test], edits[-1]
        yield hit(
            episode,
            f"`{last.tool}` writes at step {last.step}, after the last test (`{check.tool}` at step "
            f"{check.step}): {wording.count(len(edits), 'write')} untested.",
            2,
            events.at_step(episode, edits[0].step),
            events.at_step(episode, check.step),
            detail=check.tool,
            certain=True,
        )
