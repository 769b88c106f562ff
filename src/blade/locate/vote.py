"""Turn candidate steps into at most three that are blamed, or into an abstention."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from blade import events
from blade.align import end_step, model_step
from blade.model import ENDS, Blame, Episode, Located

# How much each rule counts. Where failures labelled by people allowed to measure how often the rule alone
# names the very step, that share: expected actions .31; the call before the first error .36 on short
# traces, far less on long ones. The others stand relative to these until planted failures measure them.
WEIGHTS = {
    "expected_action": 0.31,  # differs from what the task expects
    "value_drop": 0.25,  # repeats that go on like this pass less often
    "divergence": 0.20,  # leaves the nearest passing repeat for good
    "unrecovered_error": 0.30,  # an error that nothing later makes good
    "first_error": 0.15,  # what led to the first error
    "truncated": 0.35,  # where most of the budget was gone
    "no_final_answer": 0.20,  # the last call of a rollout without an answer
    "finding_3": 0.60,  # a decisive behaviour
    "finding_2": 0.30,  # a plain one
}
SAME = 1  # steps apart at which two candidates mean one act: what a call announces, the call, its result
SPREAD = 0.25  # share of the rollout over which candidates may lie before they disagree
ENOUGH = 0.5  # share of the votes that settles it all the same
TOP = 3


class Candidate(NamedTuple):
    """A step that a rule blames, and the step that shows the harm."""

    step: int
    rule: str  # a key of WEIGHTS
    reason: str
    shown_at: int | None = None  # None: the outcome itself


def admissible(episode: Episode, candidates: Sequence[Candidate]) -> list[Candidate]:
    """Candidates as steps of the model, none of them later than the harm they explain."""
    found = []
    for one in candidates:
        step = model_step(episode, one.step)
        if step is not None and (one.shown_at is None or step <= one.shown_at):
            found.append(one._replace(step=step))
    return found


def located(episode: Episode, candidates: Sequence[Candidate]) -> Located:
    """The steps with most votes; no single step where they lie far apart and none has half the votes."""
    votes = admissible(episode, candidates)
    clusters = _clusters(votes)
    total = sum(weight for _, weight, _ in clusters)
    top = clusters[:TOP]
    kept = sum(weight for _, weight, _ in top)
    steps = tuple(Blame(step, weight / kept, reason) for step, weight, reason in top)
    step: int | None = None
    if steps:
        places = [vote.step for vote in votes]
        apart = max(places) - min(places) > SPREAD * len(episode.trace.steps)
        step = None if apart and top[0][1] <= ENOUGH * total else steps[0].step
    else:
        steps, step = _at_the_end(episode)
    rollout = episode.trace.rollout
    quotes = (events.at_step(episode, blame.step) for blame in steps)
    return Located(
        rollout.task,
        rollout.repeat,
        episode.position,
        step,
        steps,
        tuple(quote for quote in quotes if quote is not None),
    )


def _clusters(votes: Sequence[Candidate]) -> list[tuple[int, float, str]]:
    """Steps with their weights and reasons, the heaviest first; neighbours count for the heavier."""
    weights: dict[int, float] = {}
    for vote in votes:
        weights[vote.step] = weights.get(vote.step, 0.0) + WEIGHTS[vote.rule]
    left = dict(weights)
    found = []
    while left:
        step = min(left, key=lambda at: (-left[at], at))
        near = [at for at in range(step - SAME, step + SAME + 1) if at in left]
        weight = sum(left.pop(at) for at in near)
        told = sorted((vote for vote in votes if vote.step in near), key=lambda vote: -WEIGHTS[vote.rule])
        found.append((step, weight, "; ".join(dict.fromkeys(vote.reason for vote in told))))
    return sorted(found, key=lambda cluster: (-cluster[1], cluster[0]))


def _at_the_end(episode: Episode) -> tuple[tuple[Blame, ...], int | None]:
    """Without a vote only the end is left; it is the step in question if there is no other."""
    end = end_step(episode)
    if end is None:
        return (), None
    others = [step for step in episode.trace.steps if step.kind in ("message", "call") and step.index != end]
    return (Blame(end, 1.0, ENDS),), None if others else end
