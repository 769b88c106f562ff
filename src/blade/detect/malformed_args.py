"""B09: the arguments of a call are no JSON object."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from blade import events
from blade.detect import schema
from blade.detect.rule import Hit, Rule, hit
from blade.model import Call, Cause, Episode, RunFacts, TaskTraces

RULE = Rule(
    name="malformed_args",
    number="B09",
    rule="The arguments of a call do not parse, or are no object, of a tool that takes an object.",
    cause=Cause.BEHAVIOUR,
    otherwise="weak where the call works all the same",
    procedural=True,
    needs=("calls",),
    kind="harness",
    remedy="Constrain decoding of the arguments of {detail} to JSON, and answer such a call with what "
    "is wrong and where.",
)


def find(task: TaskTraces, facts: RunFacts) -> Iterator[Hit | None]:
    """Calls whose arguments nobody can read."""
    takes_objects = {
        call.tool
        for episode in task.episodes
        for call in episode.calls
        if isinstance(call.arguments, Mapping)
    }
    for episode in task.episodes:
        for call in episode.calls:
            if (
                isinstance(call.arguments, Mapping)
                or not call.raw.strip()
                or not _expected(call, episode, takes_objects)
            ):
                continue
            problem = _problem(call.raw)
            if problem is None:
                continue
            works = call.result_step is not None and not call.failed
            summary = f"The arguments of `{call.tool}` at step {call.step} are {problem[0]}" + (
                "; it was answered all the same." if works else "."
            )
            quote = events.at_step(episode, call.step, problem[1])
            yield hit(episode, summary, 1 if works else 2, quote, detail=call.tool)


def _expected(call: Call, episode: Episode, takes_objects: set[str]) -> bool:
    """Whether the tool takes an object: some take free text by design."""
    if schema.declared_schema(episode.tools.get(call.tool)) is not None or call.tool in takes_objects:
        return True
    return call.failed or call.raw.lstrip().startswith("{")


def _problem(raw: str) -> tuple[str, int] | None:
    """What is wrong with the text and where; None if it is an object after all."""
    try:
        value = json.loads(raw[:1_000_000])
    except (ValueError, RecursionError) as error:
        at = error.pos if isinstance(error, json.JSONDecodeError) else 0
        what = (
            f"{error.msg} at character {at}"
            if isinstance(error, json.JSONDecodeError)
            else "too deeply nested"
        )
        return f"no JSON ({what})", at
    if isinstance(value, dict):
        return None
    names = {list: "a JSON array", str: "a JSON string", bool: "a JSON boolean", type(None): "null"}
    return f"{names.get(type(value), 'a JSON number')}, not an object", 0
