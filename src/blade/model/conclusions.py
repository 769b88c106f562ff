"""Nouns of what is concluded: trust, groups of failures, causes, judgements, what a checked text states, the report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from blade.model.comparisons import Comparison, Gate, Matrix, Series
from blade.model.enums import Cause, Confidence, Count, Texts, TrustLevel
from blade.model.measurements import (
    Buckets,
    Compared,
    Evidence,
    Funnel,
    Health,
    Measure,
    Run,
    Slice,
    TaskResult,
)
from blade.model.run_rows import Benchmark, Skipped


class Gain(msgspec.Struct, frozen=True):
    """What a fix could win, in points of score, with its interval at a level."""

    low: float
    point: float
    high: float
    level: float = 0.95


class Loss(msgspec.Struct, frozen=True):
    """Points of score lost to a cause; over all causes they add up to 1 - score."""

    run: str
    cause: Cause
    mode: str
    lost: float


class Gap(msgspec.Struct, frozen=True):
    """What the report cannot say, and why."""

    what: str
    why: str


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


SUPPORTED = "supported"
CONTRADICTED = "contradicted"
UNVERIFIABLE = "unverifiable"
UNCITED = "uncited"
OPINION = "opinion"


class Finding(msgspec.Struct, frozen=True):
    """One statement of a checked report, and what the rows or the report itself say of it."""

    verdict: str
    kind: str  # citation, quotation, id, arithmetic, number, cause
    line: int  # the first line it stands on, from 1
    lines: tuple[int, ...]
    text: str  # the sentence, or the table row with its header
    printed: str  # what the report says
    expected: str = ""  # what the rows say, or the query that gives an uncited number
    reading: str = ""  # how it was read, in words
    why: str = ""
    query: str | None = None
    tasks: tuple[str, ...] = ()  # tasks and rollouts named in the same sentence: 12 or 12/0


class Report(msgspec.Struct, frozen=True):
    """Everything BLADE concluded, ready to be rendered."""

    made_by: Mapping[str, str]
    runs: tuple[Run, ...] = ()
    measures: tuple[Measure, ...] = ()
    buckets: tuple[Buckets, ...] = ()
    tasks: tuple[TaskResult, ...] = ()
    health: tuple[Health, ...] = ()
    funnels: tuple[Funnel, ...] = ()
    slices: tuple[Slice, ...] = ()
    compared: tuple[Compared, ...] = ()
    trust: tuple[Trust, ...] = ()  # the most important first
    groups: tuple[Group, ...] = ()  # of each run the largest first
    unexplained: tuple[Unexplained, ...] = ()
    task_matrix: TaskMatrix | None = None
    losses: tuple[Loss, ...] = ()
    attributions: tuple[Attribution, ...] = ()
    run_causes: tuple[RunCause, ...] = ()
    recommendations: tuple[Recommendation, ...] = ()
    judgements: Mapping[str, tuple[Judgement, ...]] = msgspec.field(default_factory=dict)  # by run name
    agreements: tuple[Agreement, ...] = ()
    comparisons: tuple[Comparison, ...] = ()  # candidates against one baseline, in the order given
    matrix: Matrix | None = None  # several runs against one another
    series: Series | None = None  # checkpoints in order
    gate: Gate | None = None  # what a policy says of the comparisons
    accuracy: Mapping[str, Any] | None = None  # how right the labels are on sets of known truth
    skipped: tuple[Skipped, ...] = ()
    skipped_total: int = 0
    gaps: tuple[Gap, ...] = ()
    benchmark: Mapping[str, Benchmark] = msgspec.field(default_factory=dict)  # by run name
