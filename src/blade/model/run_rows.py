"""Nouns of what was read: files, rows as columns, coverage, benchmark facts; the steps and calls of a rollout."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from blade.model.enums import Count, Digest

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Bools = NDArray[np.bool_]
    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]
    Hashes = NDArray[np.uint64]
else:  # so that a report can be decoded by its annotations without numpy; in it, arrays are lists
    Bools = Ints = Floats = Hashes = Any


MAPPED = "read as"  # the setting that says how rows of another shape were read


class Source(msgspec.Struct, frozen=True):
    """One rollouts file of a run."""

    path: str
    sha256: Digest | None  # of the file as it lies on disk; None until someone asks
    bytes: Count
    rows: Count


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
    digest: str = ""  # of the lines as they were read


class Column(msgspec.Struct, frozen=True):
    """One verifier or metadata field over all rows of a run, in the order of `Rollouts`."""

    kind: NDArray[np.uint8]  # 0 absent, 1 null, 2 bool, 3 number, 4 text, 5 list, 6 object
    number: Floats  # value of bools and numbers, else nan
    code: NDArray[np.int32]  # into `texts` for short texts, else -1
    texts: tuple[str, ...]
    hash: Hashes  # of the raw JSON; 0 when absent


class Values(msgspec.Struct, frozen=True):
    """One scalar over some rows, with its texts; of a long text only how it begins."""

    kind: NDArray[np.uint8]  # as in `Column`
    number: Floats
    code: NDArray[np.int32]  # into `texts`, -1 for what is no text
    texts: tuple[str, ...]


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
    "task_id", "problem_id", "instance_id", "question_id", "verifier_metadata.task_id", "metadata.task_id", "id", "uuid",
    "task_name", "name",
)  # fmt: skip
PROMPT = "responses_create_params.input"  # the field of the request that holds the prompt


class Judged(msgspec.Struct, frozen=True):
    """The rows of a run that count, with what became of them: what the stages that explain work on."""

    run: str
    task_keys: tuple[str, ...]
    rows: Ints  # positions in `Rollouts`, ascending; the arrays below have one entry for each
    task: Ints  # code into `task_keys`, ascending
    repeat: Ints
    passed: Bools
    score: Floats  # what the row adds to the score: 0 and 1, or its reward
    judged: bool  # False: no threshold says what passes, and `passed` is False throughout
    unscored: Bools | None = None  # rows without a usable reward: they count as 0; None: all have one


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


class Code(msgspec.Struct, frozen=True):
    """What a value of a verifier field means, as `blade.toml` says."""

    field: str
    equals: Any
    cause: str  # a `Cause`, or "passed"
    mode: str  # in words


class Benchmark(msgspec.Struct, frozen=True):
    """What is peculiar to a benchmark, as data (`blade.toml`)."""

    name: str | None = None
    pass_threshold: float | None = None
    task_id: str | None = None
    answer: str | None = None
    stages: tuple[Stage, ...] = ()
    slices: tuple[str, ...] = ()
    tools: Mapping[str, str] = msgspec.field(default_factory=dict)  # tool -> read, write or check
    codes: tuple[Code, ...] = ()
    path: str | None = None  # the file this came from
    inferred: tuple[str, ...] = ()  # what was guessed from the rows, in words


class ReportedNumber(msgspec.Struct, frozen=True):
    """A number the evaluation wrote down itself, from one of its sidecars."""

    run: str
    file: str
    agent: str
    name: str
    value: float


# ---- What a rollout did --------------------------------------------------------------------------


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


class Call(msgspec.Struct, frozen=True):
    """One tool call with its result: what a rollout did at a step."""

    step: int
    tool: str
    arguments: Any  # as parsed; None where they are no JSON
    raw: str  # as the model wrote them
    key: str  # tool and canonical arguments without volatile fields: equal keys are the same action
    does: str  # read, write or check
    result_step: int | None  # None: nothing answered it
    output: str
    failed: bool  # the result says so, or reads like an error


class Episode(msgspec.Struct, frozen=True):
    """A trace read as events."""

    trace: Trace
    position: int  # in `Rollouts`
    score: float  # what the row adds to the score: 0 and 1, or its reward
    passed: bool | None  # None: no threshold judges the run
    calls: tuple[Call, ...]
    final: str  # what the model said after its last call; may be empty
    final_step: int | None  # of the last message that makes up `final`
    tools: Mapping[str, Any]  # declared tools: name -> JSON schema of the parameters (may be empty)
    has_user: bool  # somebody answers the model inside the rollout
    fault: str = ""  # why it could not be read as events; then it has no calls and no final text


class Gold(msgspec.Struct, frozen=True):
    """What a task expects, as far as its rows say."""

    answer: str | None = None
    answer_field: str | None = None
    actions: tuple[tuple[str, Any], ...] = ()  # tool and arguments; only those the model itself must take
    actions_field: str | None = None


class TaskTraces(msgspec.Struct, frozen=True):
    """All counted rollouts of one task, read as events."""

    run: str
    task: str
    task_name: str
    episodes: tuple[Episode, ...]
    gold: Gold
    given: Mapping[str, Any] = msgspec.field(default_factory=dict)  # the materialised input, where there is one
