"""B10: the arguments of a call break the schema that declares them."""

from __future__ import annotations

from collections.abc import Iterator

from blade import events
from blade.detect import row, schema
from blade.detect.rule import Hit, Rule, hit
from blade.model import Cause, RunFacts, TaskTraces

RULE = Rule(
    name="schema_invalid",
    number="B10",
    rule="A field of a call's arguments is missing, of the wrong type, outside its allowed values or"
    " unknown, by the declared schema.",
    cause=Cause.KNOWLEDGE_GAP,
    otherwise="weak where the call works all the same",
    procedural=False,
    needs=("calls", "declared tools"),
    kind="prompt",
    remedy="Validate {detail} before the call is made, answer with the field and the type it wants, "
    "and show one valid call in its description.",
)

_WORDS = {
    "missing": "is missing",
    "extra": "is not known",
    "type": "has the wrong type",
    "value": "is not allowed",
}


def find(task: TaskTraces, facts: RunFacts) -> Iterator[Hit | None]:
    """The first wrong field of each kind in each rollout."""
    for episode in task.episodes:
        told = set()
        for call in episode.calls:
            declared = episode.tools.get(call.tool)
            found = schema.wrong(call, declared) if declared is not None else None
            if found is None:
                continue
            detail = f"{call.tool}.{found.field}" if found.field else call.tool
            works = call.result_step is not None and not call.failed
            if (detail, works) in told:
                continue
            told.add((detail, works))
            subject = f"field `{found.field}`" if found.field else "the whole"
            summary = (
                f"In the arguments of `{call.tool}` at step {call.step}, {subject} {_WORDS[found.what]} "
                f"({found.message})" + ("; it was answered all the same." if works else ".")
            )
            result = events.at_step(episode, row.result_place(call)) if call.failed else None
            yield hit(
                episode, summary, 1 if works else 2, events.at_step(episode, call.step), result, detail=detail
            )
