"""B35: the model repeats itself until its text says nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from blade import events
from blade.detect.rule import Hit, Rule, hit
from blade.model import Cause, RunFacts, TaskTraces

RULE = Rule(
    name="degenerate_text",
    number="B35",
    rule="Of the last 500 words of a text fewer than 30% of the four-word sequences are distinct, or"
    " one line stands in it ten times and makes up a third of it.",
    cause=Cause.BEHAVIOUR,
    otherwise="",
    procedural=True,
    needs=("steps",),
    kind="training",
    remedy="Change the decoding of {detail} (temperature, repetition penalty) or stop a text that "
    "repeats itself.",
)

_TAIL = 8000  # characters: five hundred words and some
_WORDS = 500
_MIN_TEXT = 300  # characters below which no hundred words stand
_MIN_WORDS = 100  # fewer may repeat for good reason
_DISTINCT = 0.3
_TIMES = 10
_MIN_LINE = 8
_LINE_SHARE = 1 / 3
_LONG_WORD = 25  # a script without spaces
_KINDS = {"message": "messages", "reasoning": "reasoning"}


def find(task: TaskTraces, facts: RunFacts) -> Iterator[Hit | None]:
    """The last degenerate text of each rollout."""
    for episode in task.episodes:
        ends = (len(episode.trace.steps) - 1, episode.final_step)
        for step in reversed(episode.trace.steps):
            if step.kind not in _KINDS or len(step.text) < _TIMES * _MIN_LINE:
                continue
            found = _repeats(step.text)
            if found is not None:
                what, at = found
                summary = f"The {step.kind} at step {step.index} repeats itself: {what}."
                severity = 3 if step.index in ends else 2
                quote = events.at_step(episode, step.index, at)
                yield hit(episode, summary, severity, quote, detail=_KINDS[step.kind])
                break


def _repeats(text: str) -> tuple[str, int] | None:
    """How a text repeats itself, and where."""
    start = max(0, len(text) - _TAIL)
    tail = text[start:]
    if tail.count("\n") >= _TIMES - 1:
        lines = [line.strip() for line in tail.splitlines() if line.strip()] or [""]
        line, times = Counter(lines).most_common(1)[0]
        told = len(line) >= _MIN_LINE and any(letter.isalpha() for letter in line)
        if told and times >= _TIMES and times >= _LINE_SHARE * len(lines):
            return f"one line stands in it {times} times", start + tail.find(line)
    if len(tail) < _MIN_TEXT:
        return None
    words = [word for word in tail.split() if word[0].isalpha() or word[-1].isalpha()][-_WORDS:]
    unit, length = "word", 4
    if len(words) < _MIN_WORDS and len(tail) > max(_MIN_WORDS, _LONG_WORD * len(words)):
        words, unit, length = [letter for letter in tail if letter.isalpha()][-2 * _WORDS :], "letter", 8
    share = _distinct(words, length)
    if share is None or share >= _DISTINCT:
        return None
    what = f"{share:.0%} of the sequences of {length} {unit}s in its last {len(words)} {unit}s are distinct"
    return what, len(text) - events.QUOTE


def _distinct(words: Sequence[str], length: int) -> float | None:
    """The share of sequences that are distinct; None where there are too few, or words enough."""
    n = len(words) - length + 1
    if len(words) < _MIN_WORDS or len(set(words)) - length >= _DISTINCT * n:
        return None  # each word but the last few opens a sequence of its own
    return len({tuple(words[at : at + length]) for at in range(n)}) / n
