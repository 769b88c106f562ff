"""Find writes without the confirmation that the instructions ask for."""

from __future__ import annotations

import re
from collections.abc import Iterator

from blade import events
from blade.detect import wording
from blade.detect.rule import Hit, Rule, hit
from blade.model import Call, Cause, Episode, RunFacts, TaskTraces

RULE = Rule(
    name="unconfirmed_write",
    number="B38",
    rule="The instructions ask for the user's confirmation before an action, somebody answers the model in "
    "some rollout of the task, and a write is made although no word of the user since the last write agrees "
    "to it.",
    cause=Cause.BEHAVIOUR,
    otherwise="",
    procedural=True,
    needs=("calls",),
    kind="harness",
    remedy="Hold `{tool}` back until the user's last message agrees to the action as the model described it.",
)
_POLICY = re.compile(
    r"\bexplicit(?:ly)?\b[^.\n]{0,60}\b(?:confirm|yes\b|approv|consent|permission|agree)"
    r"|\b(?:obtain|get|ask|request|require|await|wait)\w*\b[^.\n]{0,60}\bconfirmation\b"
    r"|\bbefore\b[^.\n]{0,150}\b(?:user|customer|caller|client)\b[^.\n]{0,60}\bconfirm"
    r"|\bconfirm(?:ation|ed|s)?\b[^.\n]{0,60}\b(?:before|prior to)\b[^.\n]{0,60}"
    r"\b(?:proceed|execut|updat|act|chang|mak|modif|cancel|writ|book|delet)",
    re.IGNORECASE,
)
_AGREES = re.compile(
    r"\b(?:yes|yeah|yep|yup|ok|okay|o\.k\.|confirm(?:ed|ing)?|i agree|agreed|go ahead|proceed|(?<!not )sure"
    r"|correct"
    r"|fine|absolutely|definitely|certainly|of course|please do|do it|do that|let['’]s (?:do|go|proceed)"
    r"|go for it"
    r"|sounds? (?:good|great|perfect|right|fine)|looks? (?:good|great|right|correct|fine)|perfect|that works"
    r"|works for me|that['’]?s (?:right|fine|correct|good|great|perfect|it)|that is (?:right|fine|correct"
    r"|good)"
    r"|i['’]d like (?:that|to (?:go|proceed))|that would be (?:great|good|perfect|fine|helpful|awesome)|y)\b",
    re.IGNORECASE,
)
_AROUND = 250  # characters on either side of a word that make up its sentence
_MAX_PLACES = 20
_HANDS_OVER = re.compile(r"human|escalat|hand_?(?:off|over)|transfer_to", re.IGNORECASE)


def find(task: TaskTraces, facts: RunFacts) -> Iterator[Hit | None]:
    asked = next((episode for episode in task.episodes if episode.has_user), None)
    if asked is None or not _asks_to_confirm(events.prompt(asked.trace.row)):
        return
    for episode in task.episodes:  # one in which nobody answers was never confirmed either
        yield from _in(episode)


def _asks_to_confirm(prompt: str) -> bool:
    """Whether the instructions ask for a confirmation; only what stands around the word is read."""
    lower = prompt.lower()
    for word in ("confirm", "explicit"):
        at = lower.find(word)
        for _ in range(_MAX_PLACES):
            if at < 0:
                break
            if _POLICY.search(prompt[max(0, at - _AROUND) : at + _AROUND]):
                return True
            at = lower.find(word, at + 1)
    return False


def _in(episode: Episode) -> Iterator[Hit | None]:
    by_step = {
        call.step: call
        for call in episode.calls
        if call.does == events.WRITE and not _HANDS_OVER.search(call.tool)
    }
    agreed = written = False
    said: int | None = None
    for step in episode.trace.steps:
        if step.kind == "user" and step.text.strip():
            agrees = _AGREES.search(step.text) is not None
            agreed, written, said = (agrees if written else agreed or agrees), False, step.index
        elif step.index in by_step:
            if not agreed:
                yield _hit(episode, by_step[step.index], said)
                agreed = True  # the rest of the turn is the same fault
            written = True


def _hit(episode: Episode, call: Call, said: int | None) -> Hit | None:
    before = (
        f"the user's last words (step {said}) are “{wording.short(episode.trace.steps[said].text, 80)}”"
        if said is not None
        else "the user has not said a word"
    )
    return hit(
        episode,
        f"`{call.tool}` writes at step {call.step} without a confirmation, which the instructions ask for: "
        f"{before}.",
        2,
        events.at_step(episode, call.step),
        events.at_step(episode, said) if said is not None else None,
        detail=call.tool,
    )
