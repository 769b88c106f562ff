"""Everything BLADE concluded, ready to be rendered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from blade.model.comparisons import Comparison, Gate, Matrix, Series
from blade.model.explained import (
    Attribution,
    Group,
    Recommendation,
    RunCause,
    TaskMatrix,
    Trust,
    Unexplained,
)
from blade.model.judged import Agreement, Judgement
from blade.model.measured import (
    Buckets,
    Compared,
    Funnel,
    Gap,
    Health,
    Loss,
    Measure,
    Run,
    Slice,
    TaskResult,
)
from blade.model.rows import Benchmark, Skipped


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
