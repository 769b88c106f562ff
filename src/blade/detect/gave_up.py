"""Find final messages that give up."""

from __future__ import annotations

import re
from collections.abc import Iterator

from blade import events
from blade.detect import outcome_words, wording
from blade.detect.rule import Hit, Rule, hit
from blade.model import Cause, Episode, RunFacts, TaskTraces

RULE = Rule(
    name="gave_up",
    number="B29",
    rule="The final message says that the model is unable to complete, find, access or go on with it (or "
    "gives up), claims no success after that and does not take it back, and less than half of "
    "the known turn limit is used.",
    cause=Cause.BEHAVIOUR,
    otherwise="",
    procedural=True,
    needs=("steps",),
    kind="prompt",
    remedy="Have the model try another way (other search words, another tool) before it may say that it "
    "cannot go on; last tool before giving up: {detail}.",
)
_GIVES_UP = re.compile(
    r"\b(?:unable to|not able to|cannot|can ?not|can['’]t|could not|couldn['’]t|was not able to"
    r"|wasn['’]t able to)"
    r"(?: \w+){0,2}? (?:complete|find|access|proceed|finish|continue|locate|retrieve|determine|solve"
    r"|answer)\b"
    r"|\bI(?: have to| must|['’]ll| will)? give up\b",
    re.IGNORECASE,
)
# One of these stands in every such passage; looking for them first is many times faster.
_HINTS = ("able to", "cannot", "can not", "can't", "can’t", "could not", "couldn", "give up")
_OF_OTHERS = re.compile(r"\b(?:you|they|he|she|users?|if|whether|who)\s+(?:\w+\s+)?$", re.IGNORECASE)
_TAKEN_BACK = re.compile(
    r"\b(?:at first|initially)\b(?=\s*[,;:.–—-]|\s+but\b)|\bbut (?:then|later|eventually|in the end)\b"
    r"|\beventually\b|\bbut\b[^.!?\n]{0,60}\bafter all\b",
    re.IGNORECASE,
)
_AFTER_ALL = re.compile(  # what follows "but in the end" may be no better
    r"^[^.!?\n]*?\b(?:not|none|nothing|never|no luck|unable|cannot|\w+n['’]t|fail\w*|g[ia]ve up|giving up"
    r"|stop(?:ped)?|ran out)(?!\w)",
    re.IGNORECASE,
)
_NEAR = 150  # characters after the words in which they are taken back
_HEAD, _TAIL = 4000, 2000  # characters of a final message that are looked at


def find(task: TaskTraces, facts: RunFacts) -> Iterator[Hit | None]:
    for episode in task.episodes:
        if not episode.final.strip() or episode.final_step is None or _used_up(episode, facts.turn_cap):
            continue
        at = _place(episode.final)
        if at is None:
            continue
        tool = episode.calls[-1].tool if episode.calls else "none"
        yield hit(
            episode,
            f"The final message gives up after {wording.count(len(episode.calls), 'call')}: "
            f"“{wording.short(episode.final[at : at + 120], 100)}”.",
            1 if episode.has_user else 2,  # to a user it may be the policy that speaks
            events.at_step(episode, episode.final_step, at),
            detail=tool,
        )


def _used_up(episode: Episode, cap: int | None) -> bool:
    """At least half of the turns are used: then it is the limit rather than the will."""
    if not cap:
        return False
    kinds = [step.kind for step in episode.trace.steps]
    n = kinds.count("call") or kinds.count("message")
    return n >= cap / 2


def _place(final: str) -> int | None:
    tail = max(_HEAD, len(final) - _TAIL)
    for start, text in ((0, final[:_HEAD]), (tail, final[tail:])):
        lower = text.lower()
        for found in _GIVES_UP.finditer(text) if any(hint in lower for hint in _HINTS) else ():
            if _OF_OTHERS.search(text[max(0, found.start() - 30) : found.start()]):
                continue
            rest = text[found.end() :]
            if not outcome_words.claims_success(rest) and not _is_taken_back(rest):
                return start + found.start()
    return None


def _is_taken_back(rest: str) -> bool:
    """Whether the words that follow say that it worked in the end."""
    return any(
        _AFTER_ALL.match(rest[found.end() : found.end() + _NEAR]) is None
        for found in _TAKEN_BACK.finditer(rest[:_NEAR])
    )
