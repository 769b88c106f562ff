"""What the rows explain: trust in the score, groups of failures, causes of tasks, and what to fix."""

from __future__ import annotations

import msgspec

from blade.model.measured import Evidence
from blade.model.words import Cause, Confidence, Count, Texts, TrustLevel


class Gain(msgspec.Struct, frozen=True):
    """What a fix could win, in points of score, with its interval at a level."""

    low: float
    point: float
    high: float
    level: float = 0.95


class Trust(msgspec.Struct, frozen=True):
    """What a reader must know before the score is used."""

    run: str
    level: TrustLevel  # alarm: labelled, the score cannot be used as it stands; warning; note
    label: Cause | None
    text: str
    rows: Count  # rows concerned
    query: str  # a SELECT that gives them
    fix: str = ""


class Group(msgspec.Struct, frozen=True):
    """Failing rows that one fact explains."""

    id: str
    run: str
    rung: str  # the question of the ladder that it answers
    label: Cause
    confidence: Confidence
    name: str  # a phrase
    text: str  # a sentence
    points: float  # of the score that these rows lose
    rows: Count  # failing rows
    tasks: Count
    passed_rows: Count  # passing rows that show the same fact
    query: str  # a SELECT that gives the failing rows: run, task, repeat, row
    examples: Texts  # TASK/REPEAT
    quote: Evidence | None
    why_label: str
    against: tuple[str, ...]  # what speaks against it
    consequences: tuple[str, ...]
    fix: str
    gain: Gain | None  # None: not identified
    most: float  # upper bound of the gain: all of these rows passed


class Unexplained(msgspec.Struct, frozen=True):
    """What no question of the ladder explains."""

    run: str
    points: float
    rows: Count
    query: str


class TaskMatrix(msgspec.Struct, frozen=True):
    """Several runs on the same tasks."""

    tasks: tuple[str, ...]
    runs: tuple[str, ...]
    passes: tuple[tuple[float | None, ...], ...]  # by task, by run: share of its rows that pass
    never_passed: tuple[str, ...]
    passed_by_one: tuple[str, ...]
    gold_differs: tuple[str, ...]
    gold_to_review: tuple[str, ...]  # runs of different models agree on another answer
    misfit_runs: tuple[str, ...]


class Blame(msgspec.Struct, frozen=True):
    """A step that may have decided a rollout."""

    step: Count
    weight: float
    reason: str


class Attribution(msgspec.Struct, frozen=True):
    """The cause of one failed task: the group that most of its lost points belong to."""

    id: str
    run: str
    task: str
    group: str  # id of the group; empty: unexplained, or judged otherwise
    cause: Cause
    confidence: Confidence
    mode: str  # the name of the group
    mechanism: str  # what its own rows show, in a sentence
    repeat: int | None  # the rollout that shows it
    step: Count | None  # None: no step is blamed
    steps: tuple[Blame, ...]  # ranked
    grounds: tuple[str, ...]  # what speaks for it
    against: tuple[str, ...]  # what speaks against it
    evidence: tuple[Evidence, ...]
    lost: float  # points of score this task loses
    judged_by: str = ""  # who gave the cause, where a judgement stands in for the engine's proposal
    proposed: Cause | None = None  # what the engine proposes instead
    proposed_confidence: Confidence | None = None
    disputed: bool = False  # several authors judged it, and not alike


class RunCause(msgspec.Struct, frozen=True):
    """A cause that concerns the run as a whole: an alarm, or a group of more than half of the lost points."""

    run: str
    cause: Cause
    mode: str
    text: str
    n_rollouts: Count
    lost: float  # points of score; 0: it distorts without losing
    evidence: tuple[Evidence, ...]


class Recommendation(msgspec.Struct, frozen=True):
    """What to change, and what it could win."""

    rank: Count
    run: str
    group: str  # id of the group it repairs; empty where it repairs the measurement as a whole
    action: str
    cause: Cause
    mode: str
    gain: Gain | None  # None: not identified
    most: float  # upper bound: all rows concerned passed
    is_measurement: bool  # repairs the measurement rather than the model
    basis: str  # how the gain was estimated, in words
    tasks: tuple[str, ...]
    evidence: tuple[Evidence, ...]
