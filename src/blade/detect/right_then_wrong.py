"""B34: the model had the expected answer, and gave another one."""

from __future__ import annotations

import re
from collections.abc import Iterator

from blade import answers, events
from blade.detect.rule import Hit, Rule, hit
from blade.model import Cause, Episode, RunFacts, TaskTraces

RULE = Rule(
    name="right_then_wrong",
    number="B34",
    rule="An earlier text of the model gives the expected answer as its answer, the final one gives "
    "another, and the rollout does not pass.",
    cause=Cause.UNRELIABLE_KNOWLEDGE,
    otherwise="",
    procedural=False,
    needs=("steps", "gold answer"),
    kind="training",
    remedy="Vote over several answers or have the last one checked before it is given: the model had "
    "{detail}.",
)

_BOXED = re.compile(r"\\boxed\s*\{([^{}\n]{1,100})\}")
_TOLD = re.compile(
    r"\banswer(?:\s+(?:is|should be|would be|must be)|\s*[:=])\s*([^\n]{1,100})", re.IGNORECASE
)
_END = re.compile(r"(?<!\d)\.(?!\d)|[;,](?=\s)|\s(?:because|since|but|so|and|wait|hmm)\b", re.IGNORECASE)
_MAX_TEXT = 20_000  # characters of one step that are searched, from its end
_MAX_CANDIDATES = 50


def find(task: TaskTraces, facts: RunFacts) -> Iterator[Hit | None]:
    """The last place at which the model still had it right."""
    gold = task.gold.answer
    if gold is None or not answers.normalised(gold):
        return
    for episode in task.episodes:
        if episode.passed or episode.final_step is None:
            continue
        given = answers.answer_in(episode.final)
        if given is None or _equal(given, gold):
            continue
        found = _had(episode, gold)
        if found is not None:
            step, at = found
            where = "earlier in the final text" if step == episode.final_step else f"at step {step}"
            summary = f"The model gave {gold} {where}, then answered {' '.join(given.split())[:80]}."
            last = episode.final.rfind(given[:40])
            yield hit(
                episode, summary, 2, events.at_step(episode, episode.final_step, max(0, last)),
                events.at_step(episode, step, at), detail=f"the expected {gold[:60]}",
            )  # fmt: skip


def _had(episode: Episode, gold: str) -> tuple[int, int] | None:
    for step in reversed(episode.trace.steps):
        if step.kind not in ("message", "reasoning"):
            continue
        text = events.step_text(step)  # what can be quoted
        start = max(0, len(text) - _MAX_TEXT)
        candidates = list(_candidates(text[start:]))[-_MAX_CANDIDATES:]
        if step.index == episode.final_step:
            candidates = candidates[:-1]  # the last one is the answer
        for value, at in reversed(candidates):
            if _equal(value, gold):
                return step.index, start + at
    return None


def _candidates(text: str) -> Iterator[tuple[str, int]]:
    """What a text announces as its answer, in order."""
    found = [(hit.group(1), hit.start()) for hit in _BOXED.finditer(text)]
    found += [(hit.group(1), hit.start()) for hit in _TOLD.finditer(text)]
    return iter(sorted(found, key=lambda one: one[1]))


def _equal(value: str, gold: str) -> bool:
    if answers.same(value, gold):
        return True
    return answers.same(_END.split(value, maxsplit=1)[0], gold)
