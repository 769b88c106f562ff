"""Find results that say there is more which is never asked for."""

from __future__ import annotations

import re
from collections.abc import Iterator

from blade import events
from blade.detect import wording
from blade.detect.rule import Hit, Rule, hit
from blade.model import Call, Cause, Episode, RunFacts, TaskTraces

RULE = Rule(
    name="ignored_pagination",
    number="B23",
    rule="A result says that there is more (a next page, has_more, truncated, page 1 of 3, showing 10 of 42) "
    "and the tool is not called again with other arguments.",
    cause=Cause.BEHAVIOUR,
    otherwise="KG if no rollout of the task ever asks for a second page",
    procedural=True,
    needs=("calls",),
    kind="harness",
    remedy="Let `{tool}` return all results, or end its result with the exact call that brings the next "
    "page.",
)
_HEAD, _TAIL = 2000, 1000  # characters of a result that are looked at
_NOTHING = r"(?:null|none|false|\"\"|''|0\b|\[\]|\{\})"
# A word each passage below cannot do without: looking for these first is many times faster.
_HINTS = ("next_", "nextp", "nextc", "nextt", "nexto", "has_more", "hasmore", "truncated", "showing ", "page")
_MORE = re.compile(
    rf"\b(?:next_?page(?:_?token|_?url)?|next_?cursor|next_?token"
    rf"|next_?offset)[\"']?\s*[:=]\s*(?!{_NOTHING})\S"
    r"|\bhas_?more[\"']?\s*[:=]\s*true"
    r"|\b(?:is_?)?truncated[\"']?\s*[:=]\s*true"
    r"|\b(?:output|results?|response|list|file|content) (?:(?:was|were|is|are|has been"
    r"|have been) )?truncated\b"
    r"|[<\[(]truncated\b"
    r"|\bshowing (?:the )?(?:first |top )?(?:\d+ ?[-–] ?)?(?P<shown>\d+)[\w ]{0,20} (?:out )?of (?P<all>\d+)"
    r"|\bpage[\"']?(?:\s*[:=])?\s*(?P<page>\d+)(?:\s+of\s+|[\"']?\s*,\s*[\"']?(?:pages|total_?pages|page_?count|last_?page)"
    r"[\"']?\s*[:=]\s*)(?P<pages>\d+)",
)


def find(task: TaskTraces, facts: RunFacts) -> Iterator[Hit | None]:
    for episode in task.episodes:
        last: dict[str, int] = {}
        keys: dict[str, str] = {}
        for place, call in enumerate(episode.calls):
            if keys.get(call.tool) != call.key:
                last[call.tool], keys[call.tool] = place, call.key
        # Only the last result of each tool can go without a second page.
        for place in sorted(last.values()):
            call = episode.calls[place]
            at = None if call.failed else _says_more(call.output)
            if at is not None:
                yield _hit(episode, call, at)


def _says_more(output: str) -> int | None:
    """Where a result says that there is more."""
    tail = max(_HEAD, len(output) - _TAIL)
    for start, passage in ((0, output[:_HEAD]), (tail, output[tail:])):
        text = passage.lower()
        if len(text) != len(passage) or not any(hint in text for hint in _HINTS):
            continue
        for found in _MORE.finditer(text):
            here, there = found["shown"] or found["page"], found["all"] or found["pages"]
            if there is None or int(here[:9]) < int(there[:9]):
                return start + found.start()
    return None


def _hit(episode: Episode, call: Call, at: int) -> Hit | None:
    if call.result_step is None:
        return None
    text = events.step_text(episode.trace.steps[call.result_step])
    at = at if text == call.output else max(0, text.find(call.output)) + at
    told = wording.short(text[at : at + 60])
    return hit(
        episode,
        f"`{call.tool}` at step {call.step} says that there is more ({told}) and is not called for it again.",
        2,
        events.at_step(episode, call.result_step, at),
        detail=call.tool,
    )
