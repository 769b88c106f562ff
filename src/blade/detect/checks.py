"""Turn the calls of a rollout into edits, checks of what was made, and what the checks said."""

from __future__ import annotations

import re

from blade import events
from blade.model import Call, Episode

_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_TESTS = frozenset("test tests pytest unittest lint compile build typecheck".split())
_HANDS_IN = frozenset(
    "submit finish complete done end commit push send reply post publish transfer answer final "
    "deliver".split()
)
_HAND_IN = re.compile(r"^\s*(?:cd\s+\S+\s*&&\s*)?git\s+(?:add|commit|push|diff|status|stash)\b")
_TAIL = 1500  # characters at the end of a result in which a test tool sums up
_RED = re.compile(
    r"\b[1-9]\d* (?:failed|failures?|failing|errors?)\b|\bFAILED\b|\bFAIL\b|^FAIL:|\bfailures=[1-9]"
    r"|\berrors=[1-9]"
    r"|\bexit(?:ed)?(?: with)? (?:code|status):? *[1-9]|Traceback \(most recent call last\)"
    r"|\bBUILD FAILURE\b",
    re.MULTILINE,
)
_GREEN = re.compile(
    r"\b[1-9]\d* (?:passed|passing|tests? ok)\b|^OK\b|\bPASSED\b|\ball (?:tests|checks) (?:have )?pass"
    r"|\b(?:no|0) (?:issues|errors|problems|failures)\b|\bSuccess\b|\bexit(?:ed)?(?: with)? (?:code"
    r"|status):? *0\b"
    r"|\bBUILD SUCCESS|\bok\s+\S+\s+[\d.]+s",
    re.MULTILINE | re.IGNORECASE,
)


def is_edit(call: Call) -> bool:
    """A write that changes the work, rather than handing it in; one that failed changes nothing."""
    if call.does != events.WRITE or call.failed:
        return False
    command = events.command_of(call.tool, call.arguments)
    if command is not None:
        return _HAND_IN.match(command) is None
    words = [word.lower() for word in _WORDS.findall(call.tool.rpartition("__")[2])]
    return not (words and words[0] in _HANDS_IN)


def last_edit(episode: Episode) -> int | None:
    """Place of the last edit among the calls."""
    return next(
        (place for place in range(len(episode.calls) - 1, -1, -1) if is_edit(episode.calls[place])), None
    )


def last_check(episode: Episode) -> int | None:
    """Place of the last check of the work: a test by its name, or any check that follows an edit."""
    first = next((place for place, call in enumerate(episode.calls) if is_edit(call)), len(episode.calls))
    for place in range(len(episode.calls) - 1, -1, -1):
        call = episode.calls[place]
        if call.does == events.CHECK and (place > first or _is_test(call)):
            return place
    return None


def _is_test(call: Call) -> bool:
    if events.command_of(call.tool, call.arguments) is not None:
        return True
    return not _TESTS.isdisjoint(word.lower() for word in _WORDS.findall(call.tool))


def verdict(call: Call) -> bool | None:
    """What a check said: True for a pass; None if it cannot be told."""
    if call.result_step is None:
        return None
    tail = call.output[-_TAIL:]
    if _RED.search(tail):
        return False
    if _GREEN.search(tail):
        return True
    return False if call.failed else None
