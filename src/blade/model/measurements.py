"""Nouns of what is counted and rated, with its evidence."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from blade.model.enums import Bucket, Count, Level, Outcome, RewardKind, Share, Unit
from blade.model.run_rows import Artifact, Coverage, Source

# What stands for a value that may not be shared: its kind, a keyed code and, of a dropped text, its length.
# Markdown may escape the brackets.
PLACEHOLDER = re.compile(r"\\?\[([A-Z]{2,12}):([0-9a-f]{8})(?::(\d{1,18}))?\\?\]")


class Evidence(msgspec.Struct, frozen=True):
    """An address and a quotation.

    Exactly one of `step` and `field` is set and `quote` is a substring of it; for an absent row all
    three are None and `check` verifies the absence.
    """

    run: str
    task: str
    repeat: int | None
    step: Count | None = None
    field: str | None = None
    quote: str | None = None

    def __post_init__(self) -> None:
        places = (self.step is not None) + (self.field is not None)
        if places > 1 or (places == 0) != (self.quote is None):
            raise ValueError("evidence names a step or a field with its quote, or an absent row")

    @property
    def is_redacted(self) -> bool:
        """Does a placeholder stand in the quote for something that may not be shared."""
        return self.quote is not None and PLACEHOLDER.search(self.quote) is not None


class Measure(msgspec.Struct, frozen=True):
    """A number with its denominator and interval."""

    run: str
    name: str
    value: float | None
    n: Count  # what `unit` counts
    unit: Unit = "tasks"
    k: Count | None = None
    slice: str | None = None
    low: float | None = None
    high: float | None = None
    method: str = "exact"  # how the interval was made, or why there is none


class Repeat(msgspec.Struct, frozen=True):
    repeat: int
    outcome: Outcome | None  # None: a reward that no threshold judges
    reward: float | None


class TaskResult(msgspec.Struct, frozen=True):
    """One task: its repeats, its rate, the shrunk rate, the bucket and how sure the bucket is."""

    run: str
    task: str
    task_name: str
    n: Count
    passed: Count | None
    rate: Share | None
    mean_reward: float | None
    shrunk: Share | None
    low: Share | None
    high: Share | None
    bucket: Bucket | None  # always, sometimes, never, missing; None where there is no pass rate
    p_bucket: Share | None
    repeats: tuple[Repeat, ...]


class Buckets(msgspec.Struct, frozen=True):
    run: str
    always: tuple[str, ...]
    sometimes: tuple[str, ...]
    never: tuple[str, ...]
    missing: tuple[str, ...]


class Health(msgspec.Struct, frozen=True):
    """Something about the evaluation itself that a reader of the score must know."""

    run: str
    flag: str
    level: Level
    text: str
    value: float | None
    n: Count
    task: str | None = None
    evidence: tuple[Evidence, ...] = ()


class FunnelStage(msgspec.Struct, frozen=True):
    name: str
    reached: Count
    of: Count


class Funnel(msgspec.Struct, frozen=True):
    run: str
    source: str  # "blade.toml" or "inferred"
    stages: tuple[FunnelStage, ...]


class Slice(msgspec.Struct, frozen=True):
    """Tasks that share a value of a field about the task, beside all others."""

    run: str
    field: str
    value: str
    n_tasks: Count
    pass_rate: float | None  # mean over tasks of `score`
    low: float | None
    high: float | None
    rest: float | None  # the same of all other tasks
    p_adjusted: Share | None  # against the rest, corrected over all fields and values; None: not testable

    @property
    def is_worse(self) -> bool:
        """Whether it scores below the rest."""
        return self.pass_rate is not None and self.rest is not None and self.pass_rate < self.rest


class Compared(msgspec.Struct, frozen=True):
    """A number the evaluation reported beside ours, and why they differ if they do."""

    run: str
    file: str
    name: str
    reported: float
    ours: float | None
    explanation: str


class Run(msgspec.Struct, frozen=True):
    """One run: what it is, what was counted, and its score."""

    name: str
    model: str | None
    agent: str | None
    benchmark: str | None
    sources: tuple[Source, ...]
    artifacts: tuple[Artifact, ...]
    notes: tuple[str, ...]
    settings: Mapping[str, str]
    n_tasks: Count
    n_rollouts: Count
    coverage: Coverage
    reward_kind: RewardKind
    pass_threshold: float
    has_pass_rate: bool
    score_name: str
    score: float | None
    oracle: float | None  # the score of the best repeat of every task
    outcomes: Mapping[Outcome, int]  # rows as they were scored, keys where there is no row
