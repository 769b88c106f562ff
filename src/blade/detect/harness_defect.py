"""B02: a tool gives the same error to nearly every call, though its schema allows them."""

from __future__ import annotations

from collections.abc import Iterator

from blade import events
from blade.detect import row, survey
from blade.detect.rule import Hit, Rule, hit
from blade.model import Cause, RunFacts, TaskTraces

RULE = Rule(
    name="harness_defect",
    number="B02",
    rule="One error, its volatile values aside, comes back from at least 90% of all calls of a tool "
    "and in at least three tasks, though the arguments keep to the declared schema.",
    cause=Cause.TASK_OR_VERIFIER,
    otherwise="",
    procedural=False,
    needs=("calls",),
    kind="harness",
    remedy="Fix the tool {detail} or the schema that declares it, then rerun: the model calls it as told.",
)


def find(task: TaskTraces, facts: RunFacts) -> Iterator[Hit | None]:
    """The first such error of each tool in each rollout."""
    known = {(defect.tool, defect.template): defect for defect in facts.defects}
    broken = {defect.tool for defect in facts.defects}
    for episode in task.episodes:
        told = set()
        for call in episode.calls:
            if call.tool not in broken or call.tool in told or not call.failed:
                continue
            defect = known.get((call.tool, survey.template(call, episode.tools.get(call.tool)) or ""))
            if defect is None:
                continue
            told.add(call.tool)
            summary = (
                f"`{call.tool}` gives this error to {defect.n_calls} of its calls in {defect.n_tasks} tasks "
                f"({defect.share:.0%} of all its calls) whose arguments are valid: {defect.template}"
            )
            yield hit(episode, summary, 3, events.at_step(episode, row.result_place(call)), detail=call.tool)
