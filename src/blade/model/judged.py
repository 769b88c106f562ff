"""What people and agents say of single tasks, and which tasks wait to be read."""

from __future__ import annotations

import msgspec

from blade.model.measured import Evidence
from blade.model.words import Cause, Confidence, Count


class Judgement(msgspec.Struct, frozen=True):
    """What somebody holds to be the cause of a failed task, with a place of its rollouts that shows it.

    Where it was given by a condition that no place shows, as `calls('x') = 0`, the condition stands for it.
    """

    id: str  # of what it says and who says it: the same judgement twice is one
    agent: str | None  # whose rollouts they are, where a file holds those of several
    task: str
    cause: Cause
    repeat: int
    step: int | None  # one of step and field, or neither where a condition stands for the place
    field: str | None  # a JSON path into the row
    quote: str  # a substring of that place; empty without one
    mechanism: str  # what happened, in a sentence
    by: str
    at: str  # when, in UTC
    mode: str = ""  # a name for what happened; empty: the engine's, where it proposes the same cause
    proposed: Cause | None = None  # what the engine proposed when it was given
    rollout: str = ""  # a hash of the rollout it quotes: of another one it says nothing
    condition: str = ""  # the condition that the rollout meets, where it was given by one

    def shown(self, run: str) -> tuple[Evidence, ...]:
        """The place that shows it; none where the condition alone stands for it."""
        if self.step is None and self.field is None:
            return ()
        return (Evidence(run, self.task, self.repeat, self.step, self.field, self.quote),)


class Agreement(msgspec.Struct, frozen=True):
    """How often two who labelled the same tasks said the same; one of them may be the engine."""

    run: str
    first: str  # an author, or engine
    second: str
    n: int  # tasks that both labelled
    agreed: Count
    kappa: float | None  # None: chance alone decides, or nothing was labelled by both
    confusion: tuple[tuple[Cause, Cause, int], ...]  # what the first said, what the second said, how often


class Waiting(msgspec.Struct, frozen=True):
    """A failed task in the queue, and what reading it is worth."""

    run: str
    task: str
    task_name: str
    bucket: str | None
    cause: Cause  # the engine's proposal
    confidence: Confidence  # of that cause
    lost: float  # points of score
    value: float  # lost x how often labels of this confidence are wrong
    tokens: int  # of its dossier
    reason: str  # why it waits, in words
