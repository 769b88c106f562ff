"""Go into single tasks: worked examples of those that pass sometimes or never, then all of them."""

from __future__ import annotations

from blade import hostile
from blade.model import Contrast, Report, TaskResult
from blade.report import cases, causes, numbers, patterns, places, quantities, queries, results, words
from blade.report.change import pages as change
from blade.report.facts import Facts
from blade.report.sections import Block, Code, Figure, Heading, Line, Table, cells, para

MAX_ROWS = 30
TO_READ = 5  # tasks whose commands are written out
LEGEND = "Repeats: 1 passed, 0 failed, e errored, t timed out, x malformed, m masked, - missing."


def sometimes_pass(runs: tuple[Facts, ...]) -> list[Block]:
    """The tasks that pass sometimes: what the two sides did, then every task, the most evenly split first."""
    blocks: list[Block] = []
    for facts in runs:
        tasks = evenly_split(facts.tasks)
        blocks += _run_heading(facts, runs)
        blocks += _contrasts(facts)
        blocks += cases.worked(facts, "sometimes", len(runs)) or [para(_why_no_example(facts, tasks))]
        if tasks:
            blocks += [
                Heading(("All tasks that pass sometimes",)),
                para(
                    "Ranked by how evenly their repeats split (shrunk rate nearest 50%): there the two ",
                    "sides have most to tell.",
                ),
            ]
        blocks += _task_table(facts, tasks, never=False)
    return blocks or [para("No run was read.")]


def never_pass(runs: tuple[Facts, ...]) -> list[Block]:
    """The tasks that never pass: worked examples, then every task, the surest first."""
    blocks: list[Block] = []
    for facts in runs:
        tasks = surely_never(facts.tasks)
        blocks += _run_heading(facts, runs)
        blocks += cases.worked(facts, "never", len(runs)) or [para(_why_no_example(facts, tasks))]
        if tasks:
            blocks += [
                Heading(("All tasks that never pass",)),
                para(
                    "The surest come first, equally sure ones in their order. The upper bound is the exact ",
                    "one-sided 95% limit for no pass in n repeats: with few repeats a task may well be ",
                    "solvable.",
                ),
            ]
        blocks += _task_table(facts, tasks, never=True)
    return blocks or [para("No run was read.")]


def _run_heading(facts: Facts, runs: tuple[Facts, ...]) -> list[Block]:
    return [Heading(("Run ", Code(hostile.line(facts.run.name, 80))))] if len(runs) > 1 else []


def _why_no_example(facts: Facts, tasks: list[TaskResult]) -> str:
    """Why no task is told in full."""
    if not facts.run.has_pass_rate:
        return "Without a pass rate no task can be called failed, so none is told."
    if facts.run.coverage.repeats <= 1 and not tasks:
        return "With one repeat per task a task cannot be seen to pass sometimes."
    if not tasks:
        return "There is no such task, so there is nothing to tell."
    return (
        "None of these tasks was given a root cause, so none is told: the trajectories were not read, or "
        "could not be. What could not be said stands under Reproducibility Notes."
    )


def _contrasts(facts: Facts) -> list[Block]:
    """What separates passing from failing repeats over all tasks that do both."""
    found = [contrast for contrast in facts.contrasts if contrast.task is None]
    if not found:
        return []
    borrowed = any(one.other_run is not None for one in found[:MAX_ROWS])
    rows = tuple(_contrast(facts, contrast, borrowed) for contrast in found[:MAX_ROWS])
    whose = ("Passes from",) if borrowed else ()
    header = ("Id", "What differs", "In passing", "In failing", "p, adjusted", *whose)
    return [
        Heading(("What passing repeats do that failing ones do not",)),
        para(
            "Over all tasks with both outcomes, each task compared with itself; the same search over ",
            "shuffled labels keeps false discoveries honest.",
        ),
        Table(header, rows, "llrrr" + "l" * borrowed),
        *places.left_out(
            len(found),
            len(rows),
            "contrast",
            f"{queries.entry('contrasts', run=facts.run.name, task=None)}.count",
        ),
    ]


def _contrast(facts: Facts, contrast: Contrast, borrowed: bool) -> tuple[Line, ...]:
    query = facts.entry("contrasts", contrast)
    n_pass, n_fail = (
        numbers.whole(getattr(contrast, name), f"{query}.{name}") for name in ("n_pass", "n_fail")
    )
    said = f"{query}.text" if contrast.text else f"{query}.feature"
    whose = Code(hostile.line(contrast.other_run, 60)) if contrast.other_run else "this run"
    return cells(
        Code(hostile.line(contrast.id, 40)),
        causes.sentence(contrast.text or contrast.feature, said, 400),
        (numbers.percent(contrast.in_pass, f"{query}.in_pass"), " of ", n_pass),
        (numbers.percent(contrast.in_fail, f"{query}.in_fail"), " of ", n_fail),
        patterns.p_values(query, contrast.p, contrast.p_adjusted),
        *([whose] if borrowed else []),
    )


def evenly_split(tasks: list[TaskResult]) -> list[TaskResult]:
    """The sometimes-pass tasks, those with a shrunk rate nearest 50% first."""
    found = [task for task in tasks if task.bucket == "sometimes"]
    return sorted(
        found, key=lambda task: abs((task.shrunk if task.shrunk is not None else task.rate or 0.0) - 0.5)
    )


def surely_never(tasks: list[TaskResult]) -> list[TaskResult]:
    """The never-pass tasks, the most probable first."""
    found = [task for task in tasks if task.bucket == "never"]
    return sorted(found, key=lambda task: (-(task.p_bucket or 0.0), -task.n))


def upper_bound(n: int) -> float | None:
    """The rate that `n` failures in a row rule out at 95%: 1 − 0.05^(1/n)."""
    from blade.stats import upper_bound_zero

    return upper_bound_zero(n) if n > 0 else None


def _task_table(facts: Facts, tasks: list[TaskResult], never: bool) -> list[Block]:
    if not tasks:
        return []
    shown = tasks[:MAX_ROWS]
    attributed = bool(facts.attributions)
    rows = tuple(_task(facts, task, never, attributed) for task in shown)
    bound, cause = ("Upper 95% bound",) if never else (), ("Cause, confidence",) if attributed else ()
    header = ("Task", "Rate", "Shrunk rate", "95% interval", *bound, "P(bucket)", *cause, "Repeats", "Read")
    return [
        Table(header, rows, f"lrrr{'r' if never else ''}r{'l' if attributed else ''}ll"),
        *places.left_out(len(tasks), len(rows), "task", results.in_bucket(facts, tasks[0].bucket or "")),
        para(LEGEND),
        *places.read_next(places.commands(facts.run, shown[:TO_READ])),
    ]


def _task(facts: Facts, task: TaskResult, never: bool, attributed: bool) -> tuple[Line, ...]:
    query = facts.entry("tasks", task)
    passed, n = (numbers.whole(count, cases.results(facts, task, name))
                 for count, name in ((task.passed or 0, "passes"), (task.n, "n")))  # fmt: skip
    rate = numbers.percent(task.rate, cases.results(facts, task, "rate"))
    bound = numbers.percent(upper_bound(task.n), cases.results(facts, task, "1 - power(0.05, 1 / n)"))
    low, high = (numbers.percent(getattr(task, name), f"{query}.{name}") for name in ("low", "high"))
    return cells(
        places.task_name(task.task, task.task_name),
        (rate, " (", passed, "/", n, ")"),
        numbers.percent(task.shrunk, f"{query}.shrunk"),
        quantities.range_of(low, high),
        *([bound] if never else []),
        numbers.probability(task.p_bucket, f"{query}.p_bucket"),
        *([_cause(facts, task)] if attributed else []),
        Code(cases.signs(task)),
        Code(" ".join(places.place(task.task, repeat) for repeat in places.to_read(task))),
    )


def _cause(facts: Facts, task: TaskResult) -> Line:
    found = facts.attribution.get(task.task)
    if found is None:
        return (words.NONE,)
    sure = numbers.probability(found.confidence, f"{facts.entry('attributions', found)}.confidence")
    return (causes.badge(found.cause), " ", sure, " ", numbers.name(causes.mode(facts, found.mode, 60)))


def cross_model(report: Report, runs: tuple[Facts, ...], figures: tuple[Figure, ...] = ()) -> list[Block]:
    """The runs side by side, then each candidate against the baseline."""
    if len(runs) < 2:
        return [para("There is one run, so there is nothing to compare." if runs else "No run was read.")]
    rows = tuple(
        cells(
            Code(hostile.line(facts.run.name, 80)),
            Code(hostile.line(facts.run.model, 80)) if facts.run.model else words.NONE,
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
