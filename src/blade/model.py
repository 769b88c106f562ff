"""The nouns: every value that passes between stages."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Bools = NDArray[np.bool_]
    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]
    Hashes = NDArray[np.uint64]


class Outcome(StrEnum):
    """What became of one expected rollout; the order is the order of print."""

    PASSED = "passed"
    FAILED = "failed"  # scored below the threshold
    ERRORED = "errored"  # scored below the threshold, and the row carries an error
    TIMED_OUT = "timed_out"  # scored below the threshold, and the row says it timed out
    MALFORMED = "malformed"  # in the main file without a usable reward
    MASKED = "masked"  # the environment says its reward is no measurement
    MISSING = "missing"  # expected, not in the main file


class Cause(StrEnum):
    """The root causes; the value is the code of print and wire."""

    KNOWLEDGE_GAP = "KG"
    UNRELIABLE_KNOWLEDGE = "UK"
    BEHAVIOUR = "BI"
    TASK_OR_VERIFIER = "TI"
    INFRASTRUCTURE = "IR"
    DATA_ARTIFACT = "DA"
    UNDETERMINED = "undetermined"


class Confidence(StrEnum):
    PROVED = "proved"
    LIKELY = "likely"
    SUSPECTED = "suspected"


class RewardKind(StrEnum):
    BINARY = "binary"
    ORDINAL = "ordinal"
    CONTINUOUS = "continuous"
    UNBOUNDED = "unbounded"
    CONSTANT = "constant"


class Level(StrEnum):
    """How much a health flag matters to a reader of the score."""

    INFO = "info"
    WARNING = "warning"
    PROBLEM = "problem"


# ---- Seen: what the artifacts say ------------------------------------------------------------


class Source(msgspec.Struct, frozen=True):
    """One rollouts file of a run."""

    path: str
    sha256: str | None  # of the file as it lies on disk; None until someone asks
    bytes: int
    rows: int


class Artifact(msgspec.Struct, frozen=True):
    """A file that belongs to a run, or would if it were there."""

    kind: str  # rollouts, materialized_inputs, failures, aggregate_metrics, ...
    path: str
    present: bool


class Skipped(msgspec.Struct, frozen=True):
    """A line or file that could not be read, and why."""

    file: str
    line: int | None  # 1-based; None when the whole file is meant
    reason: str


class Part(msgspec.Struct, frozen=True):
    """One batch of rows as columns, on its way from a file into the index."""

    columns: Mapping[str, NDArray[Any]]  # all of the same length
    texts: Mapping[str, list[str]]  # what the codes of a column stand for
    skipped: tuple[tuple[int, str], ...]  # line within the batch (0-based), reason; the first of them
    n_skipped: int
    n_rows: int
    n_lines: int
    start: int  # byte offsets of the batch in the (inflated) source
    end: int
    open_ended: bool  # its last line has no newline yet: a writer may still extend it


class Step(msgspec.Struct, frozen=True):
    """One output item of a rollout."""

    index: int  # into the rollout's flattened output items, 0-based
    kind: str  # message, user, system, reasoning, call, result, other
    text: str
    reasoning: str = ""  # thinking that stood inside the text, taken out of it
    tool: str | None = None
    arguments: str | None = None  # as the model wrote them
    call_id: str | None = None
    answered: bool | None = None  # calls only: does a result with this call_id follow
    failed: bool | None = None  # None: the item does not say
    tokens: int | None = None


class Rollout(msgspec.Struct, frozen=True):
    """One row, light: what its columns say and where its text lies."""

    run: str
    task: str
    task_name: str
    repeat: int
    reward: float | None
    file: str
    line: int


class Trace(msgspec.Struct, frozen=True):
    """A rollout with its steps."""

    rollout: Rollout
    steps: tuple[Step, ...]
    steps_from: str  # the field the steps were read from
    row: Mapping[str, Any]


class Column(msgspec.Struct, frozen=True):
    """One verifier or metadata field over all rows of a run, in the order of `Rollouts`."""

    kind: NDArray[np.uint8]  # 0 absent, 1 null, 2 bool, 3 number, 4 text, 5 list, 6 object
    number: Floats  # value of bools and numbers, else nan
    code: NDArray[np.int32]  # into `texts` for short texts, else -1
    texts: tuple[str, ...]
    hash: Hashes  # of the raw JSON; 0 when absent


class Rollouts(msgspec.Struct, frozen=True):
    """The rows of one run as columns, sorted by task, repeat and content.

    Holds one entry per kept row of the main file: identical duplicates and superseded attempts are
    gone (and counted in `Coverage`), differing duplicates and masked rows are here.
    """

    run: str
    task_keys: tuple[str, ...]  # every task seen anywhere, numbers in numeric order
    task_names: tuple[str, ...]  # the readable id beside each key
    grouped_by: str  # what makes rows one task, in words
    task: NDArray[np.int32]  # code into `task_keys`, ascending
    repeat: Ints
    reward: Floats  # nan where the row has no usable reward
    has_reward: Bools  # the row has a reward of whatever kind
    masked: Bools
    row_id: Ints  # position in the index, for opening the row
    copies: Ints  # identical rows that were set aside for this one
    n_items: Ints  # output items
    n_calls: Ints  # tool calls
    n_turns: Ints  # model turns
    last_kind: NDArray[np.uint8]  # code into LAST_KINDS
    truncated: Bools  # the response says it hit its token limit
    errored: Bools  # the row carries an error text or an error code
    timed_out: Bools
    input_tokens: Floats  # nan where not reported
    output_tokens: Floats
    reasoning_tokens: Floats
    total_tokens: Floats
    cost_usd: Floats
    wall_s: Floats
    fields: Mapping[str, Column]  # loaded on first use
    input_fields: frozenset[str]  # fields known to come from the task, not from the verifier


LAST_KINDS = ("none", "message", "user", "system", "reasoning", "call", "result", "other")

# Fields that name a task, in the order in which the format's own trajectory builder prefers them.
ID_FIELDS = (
    "task_id",
    "problem_id",
    "instance_id",
    "question_id",
    "verifier_metadata.task_id",
    "metadata.task_id",
    "id",
    "uuid",
    "task_name",
    "name",
)
PROMPT = "responses_create_params.input"  # the field of the request that holds the prompt


class Coverage(msgspec.Struct, frozen=True):
    """What was expected of a run and what came: expected = scored + failed + masked + lost, in keys."""

    expected_from: str  # "materialized inputs" or "inferred: tasks x modal repeats"
    expected: int
    scored: int
    failed: int
    masked: int
    lost: int
    duplicates: int  # surplus rows of the main file that share a key
    identical_duplicates: int  # of these, byte-identical and kept once
    superseded: int  # rows replaced by a later attempt
    unnumbered_copies: int  # identical rows without a repeat index: they count as repeats
    unexpected: int  # keys in the main file that the materialised inputs do not name
    repeats: int  # modal repeats per task
    expected_per_task: Ints  # by task code
    missing_per_task: Ints  # failed + masked + lost, by task code
    failed_keys: tuple[tuple[str, int], ...]
    failed_classes: tuple[str, ...]  # beside each failed key what its last attempt was called; may be empty
    lost_keys: tuple[tuple[str, int], ...]
    masked_keys: tuple[tuple[str, int], ...]
    duplicate_keys: tuple[tuple[str, int], ...]  # keys whose rows differ


class Stage(msgspec.Struct, frozen=True):
    """A funnel stage as `blade.toml` defines it: a field and what it must be."""

    name: str
    field: str
    equals: Any = None
    at_least: float | None = None
    present: bool | None = None


class Benchmark(msgspec.Struct, frozen=True):
    """What is peculiar to a benchmark, as data (`blade.toml`)."""

    name: str | None = None
    pass_threshold: float | None = None
    task_id: str | None = None
    answer: str | None = None
    stages: tuple[Stage, ...] = ()
    slices: tuple[str, ...] = ()
    path: str | None = None  # the file this came from
    inferred: tuple[str, ...] = ()  # what was guessed from the rows, in words


class ReportedNumber(msgspec.Struct, frozen=True):
    """A number the evaluation wrote down itself, from one of its sidecars."""

    run: str
    file: str
    agent: str
    name: str
    value: float


# ---- Concluded: what the stages make of it ----------------------------------------------------


class Evidence(msgspec.Struct, frozen=True):
    """An address and a quotation.

    Exactly one of `step` and `field` is set and `quote` is a substring of it; for an absent row all
    three are None and `check` verifies the absence.
    """

    run: str
    task: str
    repeat: int | None
    step: int | None = None
    field: str | None = None
    quote: str | None = None

    def __post_init__(self) -> None:
        places = (self.step is not None) + (self.field is not None)
        if places > 1 or (places == 0) != (self.quote is None):
            raise ValueError("evidence names a step or a field with its quote, or an absent row")


class Measure(msgspec.Struct, frozen=True):
    """A number with its denominator and interval."""

    run: str
    name: str
    value: float | None
    n: int  # what `unit` counts
    unit: str = "tasks"
    k: int | None = None
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
    n: int
    passed: int | None
    rate: float | None
    mean_reward: float | None
    shrunk: float | None
    low: float | None
    high: float | None
    bucket: str | None  # always, sometimes, never, missing; None where there is no pass rate
    p_bucket: float | None
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
    n: int
    task: str | None = None
    evidence: tuple[Evidence, ...] = ()


class FunnelStage(msgspec.Struct, frozen=True):
    name: str
    reached: int
    of: int


class Funnel(msgspec.Struct, frozen=True):
    run: str
    source: str  # "blade.toml" or "inferred"
    stages: tuple[FunnelStage, ...]


class Slice(msgspec.Struct, frozen=True):
    run: str
    field: str
    value: str
    n_tasks: int
    pass_rate: float | None  # mean over tasks of `score`
    low: float | None
    high: float | None
    p_adjusted: float | None  # this slice against the rest, BH within its field; None: not testable


class Finding(msgspec.Struct, frozen=True):
    """Something the rows show, with where they show it."""

    id: str
    run: str
    detector: str
    task: str
    repeat: int | None
    summary: str
    severity: int  # 0 note .. 3 breaks the score
    confidence: Confidence
    evidence: tuple[Evidence, ...]
    cause: Cause = Cause.UNDETERMINED

    def __post_init__(self) -> None:
        if not self.evidence:
            raise ValueError(f"finding {self.id} has no evidence")


class Compared(msgspec.Struct, frozen=True):
    """A number the evaluation reported beside ours, and why they differ if they do."""

    run: str
    file: str
    name: str
    reported: float
    ours: float | None
    explanation: str


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
    n_tasks: int
    n_rollouts: int
    coverage: Coverage
    reward_kind: RewardKind
    pass_threshold: float
    has_pass_rate: bool
    score_name: str
    score: float | None
    oracle: float | None
    outcomes: Mapping[Outcome, int]  # rows as they were scored, keys where there is no row
    unexplained: float | None = None


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
    findings: tuple[Finding, ...] = ()
    compared: tuple[Compared, ...] = ()
    losses: tuple[Loss, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    skipped_total: int = 0
    gaps: tuple[Gap, ...] = ()
    benchmark: Mapping[str, Benchmark] = msgspec.field(default_factory=dict)  # by run name
