"""Find errors that are never fixed and never mentioned, while the final message reports success."""

from __future__ import annotations

import re
from collections.abc import Iterator

from blade import events
from blade.detect import outcome_words, wording
from blade.detect.rule import Hit, Rule, hit
from blade.model import Call, Cause, Episode, RunFacts, TaskTraces

RULE = Rule(
    name="ignored_error",
    number="B17",
    rule="A call fails, no later call of the same tool or on the same thing succeeds, no message after it "
    "owns up to a failure, and the final message claims success.",
    cause=Cause.BEHAVIOUR,
    otherwise="",
    procedural=True,
    needs=("calls",),
    kind="harness",
    remedy="Before the final message, give the model the list of its failed calls of `{tool}` that it never "
    "fixed, and have it fix or report each.",
)
_LONGEST_VALUE = 200


def find(task: TaskTraces, facts: RunFacts) -> Iterator[Hit | None]:
    for episode in task.episodes:
        if episode.final_step is None or not any(call.failed for call in episode.calls):
            continue
        claim = outcome_words.success_at(episode.final)
        if claim is None or outcome_words.owns_up(episode.final):
            continue
        admitted = _last_admission(episode)
        for call in _unrecovered(episode):
            if call.result_step is not None and call.result_step > admitted:
                yield _hit(episode, call, claim)


def _last_admission(episode: Episode) -> int:
    """The last message that owns up to a failure; errors before it are not passed over."""
    for step in reversed(episode.trace.steps):
        if step.kind == "message" and outcome_words.owns_up(step.text):
            return step.index
    return -1


def _unrecovered(episode: Episode) -> list[Call]:
    """Failed calls after which nothing of the same kind succeeds; the earliest of each kind, in order."""
    good: set[str] = set()
    found: dict[str, Call] = {}
    for call in reversed(episode.calls):
        marks = _marks(call)
        if call.failed:
            if good.isdisjoint(marks):
                found[marks[0]] = call
        else:
            good.update(marks)
    return sorted(found.values(), key=lambda call: call.step)


def _marks(call: Call) -> list[str]:
    """By what a later call makes good an earlier one: the tool (of a shell, its program), the thing."""
    command = events.command_of(call.tool, call.arguments)
    if command is not None:
        words = command.split()
        paths = [word for word in words[1:12] if "/" in word or "." in word.strip(".")]
        return [f"{call.tool}: {' '.join(words[:1])}", *paths]
    marks = [call.tool]
    kind = re.match(r"[a-z]+_[a-z]+_", call.tool) if call.does == events.READ else None
    if kind:  # a look-up by another key is the same look-up: find_user_by_mail, find_user_by_name
        marks.append(kind.group())
    if isinstance(call.arguments, dict):
        values = [inner for inner in list(call.arguments.values())[:20] if isinstance(inner, str)]
        marks += [value for value in values if 3 <= len(value) <= _LONGEST_VALUE and " " not in value]
    return marks


def _hit(episode: Episode, call: Call, claim: int) -> Hit | None:
    if call.result_step is None or episode.final_step is None:
        return None
    found = events.ERROR.search(call.output)
    return hit(
        episode,
        f"`{call.tool}` at step {call.step} fails ({wording.short(call.output)}), is never fixed, and the "
        "final message reports success anyway "
        f"(“{wording.short(episode.final[claim : claim + 80])}”).",
        2 if call.does == events.READ else 3,
        events.at_step(episode, call.result_step, found.start() if found else 0),
        events.at_step(episode, episode.final_step, claim),
        detail=call.tool,
    )
