"""Turn one task of a run into facts: its repeats, rate, bucket, and what is said of its failure."""

from __future__ import annotations

from collections.abc import Iterator

from blade.facts.making import Says, said, told
from blade.facts.query import path
from blade.model import Attribution, Fact, TaskResult

FIELDS = (
    Says("n", "count", ("rows", "repeats", "scored repeats", "rollouts"), "task_n", "rows"),
    Says("passed", "count", ("passed", "passes", "repeats passed"), "task_passed", "rows", "n"),
    Says("rate", "rate", ("rate", "pass rate", "passed"), "task_rate", "rows", "n"),
    Says("mean_reward", "number", ("mean reward", "reward"), "task_mean_reward", "rows", "n"),
    Says("shrunk", "rate", ("shrunk rate", "shrunk", "true rate"), "task_shrunk", "", "", "low", "high"),
    Says("low", "rate", ("lower end",), "task_shrunk_low"),
    Says("high", "rate", ("upper end",), "task_shrunk_high"),
    Says("bucket", "text", ("bucket", "outcome"), "task_bucket"),
    Says("p_bucket", "p", ("p(bucket)", "sure"), "task_p_bucket"),
    Says("task_name", "text", ("task name",), "task_name"),
)
OF_CAUSE = (
    Says("confidence", "p", ("confidence", "certainty"), "task_confidence"),
    Says("proposed_confidence", "p", ("the engine's confidence",), "task_proposed_confidence"),
    Says("mode", "text", ("mode", "failure mode"), "task_mode"),
    Says("mechanism", "text", ("mechanism", "what happened"), "task_mechanism"),
    Says("repeat", "number", ("repeat", "rollout"), "task_blamed_repeat"),
    Says("step", "number", ("step",), "task_step"),
    Says("lost", "points", ("loses", "lost", "points lost"), "task_lost"),
)


def of_task(task: TaskResult) -> Iterator[Fact]:
    """What the rows say of a task."""
    scope = (("task", task.task),)
    stem = path("tasks", run=task.run, task=task.task)
    cites = (f"{task.run}/{task.task}",)
    yield from said(task, stem, FIELDS, task.run, scope, cites=cites)
    if task.passed is not None:
        yield Fact(
            f"minus({stem}.n, {stem}.passed)",
            "count",
            "task_failed",
            ("failed", "failures"),
            float(task.n - task.passed),
            task.run,
            scope,
            float(task.n),
            "rows",
            cites=cites,
        )
    if task.passed == 0 and task.n:
        called = ("upper 95% bound", "upper bound")
        bound = 1 - 0.05 ** (1 / task.n)
        yield Fact(f"zero_bound({stem}.n)", "rate", "task_upper", called, bound, task.run, scope, cites=cites)
    seen = [repeat.repeat for repeat in task.repeats]
    for repeat in task.repeats:
        if seen.count(repeat.repeat) > 1:
            continue
        found = f"{stem}.{path('repeats', repeat=repeat.repeat)}"
        at = (*scope, ("repeat", str(repeat.repeat)))
        fields = (
            Says("outcome", "text", ("outcome",), "repeat_outcome"),
            Says("reward", "number", ("reward",), "repeat_reward"),
        )
        yield from said(repeat, found, fields, task.run, at, cites=(f"{cites[0]}/{repeat.repeat}",))


def of_failure(found: Attribution) -> Iterator[Fact]:
    """What a failed task is put down to."""
    scope = (("task", found.task),)
    cites = (f"{found.run}/{found.task}",)
    stem = path("attributions", id=found.id, run=found.run)
    yield from said(found, stem, OF_CAUSE, found.run, scope, cites=cites)
    yield Fact(
        f"{stem}.cause",
        "text",
        "task_cause",
        ("cause", "root cause"),
        found.cause.value,
        found.run,
        scope,
        cites=cites,
    )
    yield Fact(f"{stem}.id", "text", "attribution_id", ("id",), found.id, found.run, scope, cites=cites)
    yield from told(f"{stem}.grounds", "task_grounds", found.grounds, found.run, scope)
    yield from told(f"{stem}.against", "task_against", found.against, found.run, scope)
    steps = [blame.step for blame in found.steps]
    for blame in found.steps:
        if steps.count(blame.step) > 1:
            continue
        fields = (
            Says("step", "number", ("step",), "blamed_step"),
            Says("weight", "number", ("weight",), "blamed_weight"),
            Says("reason", "text", ("reason",), "blamed_reason"),
        )
        inner = f"{stem}.{path('steps', step=blame.step)}"
        yield from said(blame, inner, fields, found.run, scope, cites=cites)
