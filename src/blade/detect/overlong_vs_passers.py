"""B39: the model wrote more than nearly all passing rollouts of the same task."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from blade import events
from blade.detect import row
from blade.detect.rule import Hit, Rule, hit
from blade.model import Cause, Episode, RunFacts, TaskTraces

RULE = Rule(
    name="overlong_vs_passers",
    number="B39",
    rule="The output is longer than that of 95% of at least five passing repeats of the task, and "
    "half as long again as their median. A weak sign, never a cause alone: hard tasks make long"
    " texts.",
    cause=Cause.BEHAVIOUR,
    otherwise="",
    procedural=True,
    needs=("steps", "passes"),
    kind="prompt",
    remedy="Look at what the passing repeats of these tasks leave out ({detail}).",
)

_MIN_PASSES = 5
_QUANTILE = 0.95
_EXCESS = 1.5
_SHORT = 200  # nothing below is long


def find(task: TaskTraces, facts: RunFacts) -> Iterator[Hit | None]:
    """Rollouts beyond the passing ones, in tokens where all tell them, else in characters."""
    lengths, unit = _lengths(task)
    passing = [length for episode, length in zip(task.episodes, lengths, strict=True) if episode.passed]
    if len(passing) < _MIN_PASSES:
        return
    bar = max(float(np.quantile(passing, _QUANTILE)), _EXCESS * float(np.median(passing)), _SHORT)
    for episode, length in zip(task.episodes, lengths, strict=True):
        if length <= bar:
            continue
        place = episode.final_step if episode.final_step is not None else row.last_quotable(episode)
        evidence = (
            events.in_field(episode, "response.usage.output_tokens") if unit == "output tokens" else None
        )
        summary = (
            f"It wrote {length:,} {unit}; 95% of the {len(passing)} passing repeats stay below "
            f"{np.quantile(passing, _QUANTILE):,.0f}."
        )
        yield hit(episode, summary, 1, events.at_step(episode, place), evidence, detail=unit)


def _lengths(task: TaskTraces) -> tuple[list[int], str]:
    tokens = [row.used(episode.trace.row, "output_tokens") for episode in task.episodes]
    if all(tokens):
        return [value or 0 for value in tokens], "output tokens"
    return [_characters(episode) for episode in task.episodes], "characters"


def _characters(episode: Episode) -> int:
    made = ("message", "reasoning", "call")
    return sum(len(step.text) + len(step.reasoning) for step in episode.trace.steps if step.kind in made)
