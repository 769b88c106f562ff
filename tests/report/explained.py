"""Builders: what the ladder concludes about a run, made by hand for a desk that handles orders."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from blade import model
from blade.model import Attribution, Cause, Confidence, Evidence, Gain, Group, Loss, Report, TaskResult, Trust

from .nouns import NOUNS, Word, nouns

SKIPS, STALE, STOPS, OUTAGE, GOLD = (NOUNS[kind][3] for kind in ("skips", "stale", "stops", "outage", "gold"))
UNEXPLAINED = "unexplained"
# The group of each failed task in turn; None: no question of the ladder explains it.
GROUPS = ("skips", "stale", "outage", "skips", "gold", None, "stops", "skips")


def explain(report: Report, word: Word = str, **changes: Any) -> Report:
    """The report with trust, groups, causes and advice for its runs; its points add up."""
    conclusions: dict[str, list[Any]] = {}
    for run in report.runs:
        if run.score is None or not run.has_pass_rate:
            continue
        mine = [task for task in report.tasks if task.run == run.name]
        tasks = [task for task in mine if task.rate is not None and task.rate < 1]
        for name, parts in _of_run(run.name, tasks, len([task for task in mine if task.n]), word).items():
            conclusions.setdefault(name, []).extend(parts)
    several = {"task_matrix": matrix(report, word) if len(report.runs) > 1 else None, "accuracy": NOUNS["accuracy"]}
    return replace(report, **{name: tuple(parts) for name, parts in conclusions.items()} | several | changes)


def _of_run(run: str, tasks: list[TaskResult], n: int, word: Word) -> dict[str, list[Any]]:
    """The conclusions of one run over `n` scored tasks, of which `tasks` fail at least once."""
    of_task = [GROUPS[place % len(GROUPS)] for place in range(len(tasks))]
    pairs = list(zip(tasks, of_task, strict=True))
    by_kind = {
        kind: group(run, kind, [task for task, mine in pairs if mine == kind], n, word) for kind in of_task if kind is not None
    }
    order = sorted(by_kind.items(), key=lambda item: -item[1].points)
    by_kind = {kind: replace(each, id=f"g{place}") for place, (kind, each) in enumerate(order, 1)}
    groups = list(by_kind.values())
    left = [task for task, kind in pairs if kind is None]
    rest = sum(lost(task, n) for task in left)
    losses = [Loss(run, each.label, each.name, each.points) for each in groups]
    losses += [Loss(run, Cause.UNDETERMINED, UNEXPLAINED, rest)] if left else []
    return {
        "trust": list(nouns(Trust, "trust", word, run=run, query=rows_of(run, []))) if tasks else [],
        "groups": groups,
        "unexplained": [model.Unexplained(run, rest, sum(map(failures, left)), rows_of(run, left))] if tasks else [],
        "losses": losses,
        "attributions": [attribution(run, task, by_kind[kind] if kind is not None else None, n, word) for task, kind in pairs],
        "run_causes": list(nouns(model.RunCause, "run causes", word, run=run)),
        "recommendations": [advice(rank, each, tasks, word) for rank, each in enumerate(groups, 1)],
        "slices": list(nouns(model.Slice, "explained slices", word, run=run)),
    }  # fmt: skip


def failures(task: TaskResult) -> int:
    return task.n - (task.passed or 0)


def lost(task: TaskResult, n: int) -> float:
    """Points of score that a task loses, of `n` scored ones."""
    return failures(task) / task.n / n


def failing(task: TaskResult) -> int:
    return next(r.repeat for r in task.repeats if r.outcome is model.Outcome.FAILED)


def rows_of(run: str, tasks: list[TaskResult]) -> str:
    """A query that gives the failing rows of some tasks."""
    names = ", ".join("'" + task.task.replace("'", "''") + "'" for task in tasks) or "''"
    quoted = run.replace("'", "''")
    return f"select run, task, repeat, row from rollouts where run = '{quoted}' and task in ({names})"


def group(run: str, kind: str, tasks: list[TaskResult], n: int, word: Word) -> Group:
    rung, label, confidence, name, gain, fix = NOUNS[kind]
    rows = sum(map(failures, tasks))
    points = sum(lost(task, n) for task in tasks)
    quote = Evidence(run, tasks[0].task, failing(tasks[0]), step=7, quote=word('{"order_id": "#W42"}'))
    return Group(
        id="", run=run, rung=rung, label=Cause(label), confidence=Confidence(confidence), name=word(name),
        text=word(f"{rows} failures show it: {name}."), points=points, rows=rows, tasks=len(tasks), passed_rows=int(rung == "behaviour"),
        query=rows_of(run, tasks), examples=tuple(f"{task.task}/{failing(task)}" for task in tasks), quote=quote,
        why_label=word("the tool accepts an item that no look-up returned"),
        against=(word("one pass does the same"),) if rung == "behaviour" else (),
        consequences=(word("the order ends with the wrong variant"),), fix=word(fix), gain=Gain(*gain) if gain else None, most=points,
    )  # fmt: skip


def attribution(run: str, task: TaskResult, of: Group | None, n: int, word: Word) -> Attribution:
    """The cause of one task: that of its group."""
    start, ids = f"{failures(task)} of its {task.n} rollouts", (f"cause:{task.task}", run, task.task)
    quote = Evidence(run, task.task, failing(task), step=7, quote=word('{"new_item_ids": ["1008"]}'))
    if of is None:
        unknown = (Cause.UNDETERMINED, Confidence.UNSURE, UNEXPLAINED, word(f"{start} fail, and the rows do not show why."))
        return Attribution(*ids, "", *unknown, failing(task), None, (), (), (), (), lost(task, n))
    known = (of.label, of.confidence, of.name, word(f"{start} show it"))
    steps, grounds = (model.Blame(7, 1.0, of.name),), (of.why_label,)
    return Attribution(*ids, of.id, *known, failing(task), 7, steps, grounds, of.against, (quote,), lost(task, n))


def advice(rank: int, of: Group, tasks: list[TaskResult], word: Word) -> model.Recommendation:
    is_measurement = of.label in (Cause.INFRASTRUCTURE, Cause.TASK_OR_VERIFIER)
    keys = tuple(task.task for task in tasks[: of.tasks])
    quotes = (of.quote,) if of.quote is not None else ()
    return model.Recommendation(
        rank, of.run, of.id, of.fix, of.label, of.name, of.gain, of.most, is_measurement, word("within tasks"), keys, quotes
    )  # fmt: skip


def matrix(report: Report, word: Word) -> model.TaskMatrix:
    """The tasks of several runs; what it says of them is made up."""
    names = tuple(dict.fromkeys(task.task for task in report.tasks))
    rates = {(task.task, task.run): task.rate for task in report.tasks}
    return model.TaskMatrix(
        names, tuple(run.name for run in report.runs),
        tuple(tuple(rates.get((name, run.name)) for run in report.runs) for name in names),
        names[:1], names[1:2], (), (word("3"),), (),
    )  # fmt: skip
