"""Lay out the failure groups and the tasks that failed: each group with its evidence, each task with its own sentence."""

from __future__ import annotations

from blade import hostile, number_format
from blade.model import Report, TaskResult
from blade.report import causes, first_page, judged, numbers, places, quantities, queries, results
from blade.report.blocks import Block, Code, Figure, Heading, Line, Table, cells, named, para
from blade.report.change import pages as change
from blade.report.facts import Facts

MAX_TASKS = 5  # tasks of a table
MAX_FIXES = 6
MAX_GROUPS = 4  # told at length; the first page names them all


def dominant_failure_modes(runs: tuple[Facts, ...], figures: tuple[Figure, ...]) -> list[Block]:
    """The groups one by one, the largest first."""
    blocks: list[Block] = []
    for facts in runs:
        if len(runs) > 1:
            blocks.append(Heading((Code(hostile.line(facts.run.name, 80)),)))
        for place, group in enumerate(facts.groups[:MAX_GROUPS], 1):
            name = numbers.said(group.name, f"{facts.entry('groups', group)}.name", 120)
            blocks.append(Heading((f"{place}. ", name, f" ({group.label.value})")))
            blocks += first_page.group_blocks(facts, group)
        if not facts.groups:
            blocks.append(para("No failure group was found."))
        every = f"{queries.entry('groups', run=facts.run.name)}.count"
        blocks += places.left_out(len(facts.groups), min(len(facts.groups), MAX_GROUPS), "group", every)
        blocks += [*named(figures, "losses", facts.run.name), *judged.judgements(facts)]
    return blocks or [para("No run was read.")]


def sometimes_pass(runs: tuple[Facts, ...]) -> list[Block]:
    """Tasks that pass in some repeats only."""
    return _bucket(runs, "sometimes", "No task passes in some repeats only.")


def never_pass(runs: tuple[Facts, ...]) -> list[Block]:
    """Tasks that never pass."""
    return _bucket(runs, "never", "Every task passes at least once.")


def _bucket(runs: tuple[Facts, ...], bucket: str, nothing: str) -> list[Block]:
    blocks: list[Block] = []
    for facts in runs:
        if len(runs) > 1:
            blocks.append(Heading((Code(hostile.line(facts.run.name, 80)),)))
        if not facts.run.has_pass_rate:
            blocks.append(para("No threshold says what passes, so tasks are in no bucket."))
            continue
        tasks = [task for task in facts.tasks if task.bucket == bucket]
        if not tasks:
            blocks.append(para(nothing))
            continue
        # the dearest first: those that lose most points
        tasks.sort(
            key=lambda task: -(facts.attribution[task.task].lost if task.task in facts.attribution else 0.0)
        )
        most = max(5, MAX_TASKS // len(runs))
        rows = tuple(_task(facts, task) for task in tasks[:most])
        blocks.append(Table(("Task", "Passed", "Label", "What its rollouts show", "Read"), rows, "lrlll"))
        blocks += places.left_out(len(tasks), len(rows), "task", results.in_bucket(facts, bucket))
    return blocks or [para("No run was read.")]


def _task(facts: Facts, task: TaskResult) -> tuple[Line, ...]:
    where = f"task = {queries.quoted(task.task)}"
    passed, n = (
        numbers.whole(count, queries.select(name, "tasks", facts.run.name, where))
        for count, name in ((task.passed or 0, "passes"), (task.n, "n"))
    )
    found = facts.attribution.get(task.task)
    label: Line = (causes.badge(found.cause),) if found else (number_format.NONE,)
    said: Line = (
        (numbers.said(found.mechanism, f"{facts.entry('attributions', found)}.mechanism", 280),)
        if found
        else ("",)
    )
    repeats = " ".join(places.place(task.task, repeat) for repeat in places.to_read(task)[:2])
    return cells(places.task_name(task.task, task.task_name), (passed, " of ", n), label, said, Code(repeats))


def recommendations(runs: tuple[Facts, ...]) -> list[Block]:
    """What to change, ranked: repairs of the measurement first, then by the points concerned."""
    blocks: list[Block] = []
    for facts in runs:
        if len(runs) > 1:
            blocks.append(Heading((Code(hostile.line(facts.run.name, 80)),)))
        rows = []
        for one in facts.recommendations[:MAX_FIXES]:
            query = facts.entry("recommendations", one)
            rows.append(
                cells(
                    numbers.whole(one.rank, f"{query}.rank"),
                    (numbers.said(one.action, f"{query}.action", 400),),
                    (causes.badge(one.cause),),
                    first_page.gain(facts, one),
                    numbers.whole(len(one.tasks), f"{query}.tasks.count"),
                )
            )
        if rows:
            blocks.append(Table(("Rank", "Action", "Label", "Expected gain", "Tasks"), tuple(rows), "rlllr"))
            blocks.append(
                para(
                    "A gain is estimated within tasks that show both outcomes; without such tasks it is not identified, and "
                    "the upper bound assumes that every rollout concerned passes."
                )
            )
        else:
            blocks.append(para("There is nothing to recommend: no failure group was found."))
    return blocks or [para("No run was read.")]


def cross_model(report: Report, runs: tuple[Facts, ...], figures: tuple[Figure, ...] = ()) -> list[Block]:
    """The runs side by side, then each candidate against the baseline."""
    if len(runs) < 2:
        return [para("There is one run, so there is nothing to compare." if runs else "No run was read.")]
    rows = tuple(
        cells(
            Code(hostile.line(facts.run.name, 80)),
            Code(hostile.line(facts.run.model, 80)) if facts.run.model else number_format.NONE,
            quantities.label(facts.score),
            quantities.with_interval(facts.score, facts.is_rate),
            quantities.n_of(facts.score),
            numbers.whole(facts.run.n_rollouts, facts.n_rollouts),
            numbers.whole(facts.run.coverage.repeats, facts.counted("repeats")),
        )
        for facts in runs
    )
    header = ("Run", "Model", "Score is", "Score, 95% interval", "n", "Rollouts", "Repeats")
    blocks: list[Block] = [
        Table(header, rows, "lllrrrr"),
        para(
            "The intervals are for each run alone: whether they overlap does not say whether a difference is "
            "real, because the runs share tasks."
        ),
    ]
    if len({facts.run.score_name for facts in runs}) > 1:
        blocks.append(para("The scores are of different kinds and must not be compared as they stand."))
    if report.comparisons:
        return [*blocks, *change.cross_model(report, figures, "report.json")]
    shared = len(set.intersection(*({task.task for task in facts.tasks} for facts in runs)))
    every = len(set.union(*({task.task for task in facts.tasks} for facts in runs)))
    held = f"select task from tasks group by task having count(distinct run) = {len(runs)}"
    keys = numbers.count(shared, "task key", f"select count(*) from ({held})")
    of = numbers.whole(every, "select count(distinct task) from tasks")
    blocks.append(para(*keys, " of ", of, " occur in every run."))
    blocks.append(para("This report does not pair them; ", Code("blade compare"), " does."))
    return blocks
