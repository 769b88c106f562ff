"""What each tool takes: typed, described, with closed vocabularies."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

Cause = Literal["KG", "UK", "BI", "TI", "IR", "DA", "undetermined"]
Bucket = Literal["always", "sometimes", "never", "missing"]
TASK = "Key or name of a task, as blade_tasks lists it."


class Asked(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What every tool takes."""

    format: Annotated[
        Literal["markdown", "json"],
        Meta(description="markdown to read; json to compute with (also as structured content)."),
    ] = "markdown"


Limit = Annotated[int, Meta(ge=1, le=200, description="Most entries of this page.")]
Offset = Annotated[
    int, Meta(ge=0, description="Entries to pass over: 0, then next_offset of the page before.")
]


class Pages(Asked, frozen=True, kw_only=True):
    """A list that is answered page by page."""

    limit: Limit = 20
    offset: Offset = 0


class OfRun(Asked, frozen=True, kw_only=True):
    """A question about one run."""

    run: Annotated[
        str | None,
        Meta(
            description="Name or path of a run, as blade_list_runs gives it; optional if there is only one."
        ),
    ] = None
    pass_threshold: Annotated[
        float | None,
        Meta(description="A row passes at reward >= this (default: 1, or what blade.toml says)."),
    ] = None


class PagesOfRun(OfRun, frozen=True, kw_only=True):
    """A list about one run."""

    limit: Limit = 20
    offset: Offset = 0


Paging = Pages | PagesOfRun


class ListRuns(Pages, frozen=True, kw_only=True):
    """Runs under the folders of the server."""


class Summary(OfRun, frozen=True, kw_only=True):
    """The first page."""


class Query(Asked, frozen=True, kw_only=True):
    """One question about the rows."""

    runs: Annotated[
        list[str], Meta(min_length=1, max_length=20, description="Runs as blade_list_runs gives them.")
    ]
    query: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=20_000,
            description="A measure, NAME[(k)] [where EXPR] [by COLUMN]: NAME is count, tasks, rate, "
            "pass_at_1, pass_at_k, pass_hat_k, mean(COLUMN) or sum(COLUMN), EXPR a SQL condition over "
            "rollouts, which may use calls('tool'), says('regex') and check_failed('name'). Or one SELECT "
            "over rollouts, tasks, runs, fields, checks, answers, steps, calls, texts.",
        ),
    ]
    pass_threshold: Annotated[float | None, Meta(description="A row passes at reward >= this.")] = None


Role = Literal["reward", "verdict", "task-level", "identity", "effort", "text", "constant", "other"]


class Fields(PagesOfRun, frozen=True, kw_only=True):
    """Every field of the rows."""

    role: Annotated[Role | None, Meta(description="Only fields of this role.")] = None


class Tasks(PagesOfRun, frozen=True, kw_only=True):
    """Tasks with outcome and cause."""

    bucket: Annotated[Bucket | None, Meta(description="Only tasks that pass always, sometimes, never.")] = (
        None
    )
    cause: Annotated[Cause | None, Meta(description="Only failed tasks of this root cause.")] = None


class Queue(PagesOfRun, frozen=True, kw_only=True):
    """Tasks that wait to be read."""


class Dossier(OfRun, frozen=True, kw_only=True):
    """What there is to judge one task by."""

    task: Annotated[str, Meta(min_length=1, description=TASK)]
    budget: Annotated[
        Annotated[int, Meta(ge=600, le=20_000)] | None,
        Meta(description="Most tokens of the dossier (default: 3,500)."),
    ] = None


class Show(PagesOfRun, frozen=True, kw_only=True):
    """A task, or the steps of one rollout."""

    task: Annotated[str, Meta(min_length=1, description=TASK)]
    repeat: Annotated[
        int | None,
        Meta(description="Number of the rollout to read step by step; without it the task's repeats."),
    ] = None
    chars: Annotated[int, Meta(ge=80, le=8_000, description="Most characters of one step.")] = 1_500


class Groups(PagesOfRun, frozen=True, kw_only=True):
    """Failure groups."""

    label: Annotated[Cause | None, Meta(description="Only groups with this label.")] = None
    task: Annotated[
        str | None,
        Meta(description="Only the group that most of the lost points of this task belong to. " + TASK),
    ] = None


class Health(PagesOfRun, frozen=True, kw_only=True):
    """What speaks against the score."""


class Compare(Asked, frozen=True, kw_only=True):
    """Why a score changed."""

    baseline: Annotated[
        str, Meta(min_length=1, description="The run to compare with, as blade_list_runs gives it.")
    ]
    candidates: Annotated[
        list[str],
        Meta(min_length=1, max_length=20, description="The runs to compare with it, in their order."),
    ]
    margin: Annotated[
        float, Meta(gt=0, lt=1, description="Fraction of score within which two runs are equivalent.")
    ] = 0.03
    series: Annotated[bool, Meta(description="The runs are checkpoints in order: tell the trend.")] = False
    pass_threshold: Annotated[float | None, Meta(description="A row passes at reward >= this.")] = None


class CheckClaims(Pages, frozen=True, kw_only=True):
    """A report against its rows."""

    report: Annotated[
        str | None, Meta(description="The text of a report, Markdown or JSON; this or `path`.")
    ] = None
    path: Annotated[str | None, Meta(description="A report file under the folders of the server.")] = None
    runs: Annotated[
        list[str],
        Meta(
            max_length=20, description="The runs it is about; without them it is held against itself alone."
        ),
    ] = []
    pass_threshold: Annotated[
        float | None, Meta(description="A row passes at reward >= this (default: as the report says).")
    ] = None


class Proposal(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One judgement to be verified."""

    task: Annotated[str, Meta(min_length=1, description=TASK)]
    cause: Annotated[Cause, Meta(description="The root cause of the failed task.")]
    repeat: Annotated[int, Meta(description="The rollout that shows it.")]
    quote: Annotated[str, Meta(min_length=1, description="Exact words of that step or field.")]
    mechanism: Annotated[str, Meta(min_length=1, description="What happened, in one sentence.")]
    step: Annotated[
        Annotated[int, Meta(ge=0)] | None, Meta(description="The step quoted; this or `field`.")
    ] = None
    field: Annotated[str | None, Meta(description="A field of the row instead, such as error.")] = None
    mode: Annotated[str | None, Meta(description="A short name for what happened, to count it by.")] = None


class RecordJudgement(OfRun, frozen=True, kw_only=True):
    """Judgements to be kept."""

    by: Annotated[
        str, Meta(min_length=1, max_length=80, description="Who judges: your name or your model's.")
    ]
    judgements: Annotated[
        list[Proposal],
        Meta(
            min_length=1, max_length=100, description="One or many; all are kept, or none if one is refused."
        ),
    ]


class Judgements(PagesOfRun, frozen=True, kw_only=True):
    """What was judged."""

    task: Annotated[str | None, Meta(description="Only judgements of this task.")] = None
