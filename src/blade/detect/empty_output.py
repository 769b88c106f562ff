"""B32: the model gave no answer at all."""

from __future__ import annotations

import re
from collections.abc import Iterator

from blade import events
from blade.detect import row
from blade.detect.rule import Hit, Rule, hit
from blade.model import Cause, Episode, Evidence, RunFacts, TaskTraces

RULE = Rule(
    name="empty_output",
    number="B32",
    rule="The row has no output items, or the rollout ends without a final text where the task asks "
    "for an answer or its other repeats give one.",
    cause=Cause.BEHAVIOUR,
    otherwise="IR where the row carries an error other than an overflow, where it was cut as more than 10% "
    "of the rows are, or where 90% of the run's rows have neither output items nor token use",
    procedural=True,
    needs=(),
    kind="harness",
    remedy="Find out why no text came back ({detail}): the request, the stop tokens, the parser of the"
    " runner.",
    terminal=True,
)

_THROUGHOUT = 0.9
_OFTEN_CUT = 0.1
_ENDINGS = {
    "reasoning": "reasoning",
    "call": "a call",
    "result": "a tool result",
    "message": "an empty message",
}
_FINISHES = re.compile(
    r"submit|finish|final|answer|done|complete|stop|end|exit|terminate|respond|reply", re.IGNORECASE
)


def find(task: TaskTraces, facts: RunFacts) -> Iterator[Hit | None]:
    """Rows without items first; then rollouts that break off."""
    speaking = sum(bool(episode.final.strip()) for episode in task.episodes)
    answers = task.gold.answer is not None or 2 * speaking >= len(task.episodes)
    for episode in task.episodes:
        if episode.final.strip():
            continue
        trace = episode.trace
        told = list(row.errors(trace.row))
        overflowed = any(row.is_overflow(field, text) for field, text in told)
        cut = row.cut_by(trace) is not None and facts.share_truncated > _OFTEN_CUT  # as where text was cut
        broken = (bool(told) and not overflowed) or cut
        if not trace.steps:
            yield _nothing(episode, facts, broken)
        elif _breaks_off(episode, answers, facts):
            yield _no_text(episode, broken)


def _nothing(episode: Episode, facts: RunFacts, broken: bool) -> Hit | None:
    data = episode.trace.row
    silent = row.is_silent(episode.trace)
    throughout = silent and facts.share_empty >= _THROUGHOUT
    use = (
        "and reports no token use"
        if silent
        else f"though it used {row.used(data, 'output_tokens'):,} output tokens"
    )
    whole = f"; so do {facts.share_empty:.0%} of the run's rows" if throughout else ""
    summary = f"The response has no output items {use}{whole}."
    evidence: Evidence | None = None
    for field in ("response.output", "response", "reward"):
        evidence = evidence or events.in_field(episode, field)
    cause = Cause.INFRASTRUCTURE if broken or throughout else None
    return hit(episode, summary, 3, evidence, detail="no output items", cause=cause, certain=True)


def _breaks_off(episode: Episode, answers: bool, facts: RunFacts) -> bool:
    """Whether a text was to be expected: not where an environment ends the rollout."""
    last = next(
        (step for step in reversed(episode.trace.steps) if step.kind in ("message", "reasoning", "call")),
        None,
    )
    if last is None:
        return False
    if last.kind != "call":
        return not episode.has_user or episode.trace.steps[-1].index == last.index
    if episode.has_user or not answers or _FINISHES.search(last.tool or ""):
        return False
    return facts.turn_cap is None or row.n_turns(episode.trace) < facts.turn_cap  # else the limit cut it


def _no_text(episode: Episode, broken: bool) -> Hit | None:
    steps = episode.trace.steps
    last = steps[-1]
    said = events.at_step(episode, row.last_quotable(episode))
    evidence = said or events.in_field(episode, "response.output")
    ending = _ENDINGS.get(last.kind, "another item")
    summary = f"The rollout ends with {ending} at step {last.index} and without a final text."
    cause = Cause.INFRASTRUCTURE if broken else None
    return hit(episode, summary, 2, evidence, detail=f"it ends with {ending}", cause=cause)
