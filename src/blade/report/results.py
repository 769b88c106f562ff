"""Lay out the numbers: aggregates, effort, slices, the funnel and the buckets."""

from __future__ import annotations

from collections.abc import Iterator

from blade import hostile
from blade.model import Health, Level, Measure, RewardKind, Slice
from blade.report import places, quantities, words
from blade.report.facts import Facts
from blade.report.figures import MAX_RUNS
from blade.report.quantities import EFFORTS, QUANTITIES
from blade.report.sections import Badge, Block, Code, Figure, Heading, Table, cells, named, para

MAX_ROWS = 30
MAX_QUOTES = 6
SUSPECT, SENSITIVITY = "suspect_task", "score_without_suspects"
IN_DOUBT = (SUSPECT, "task_to_review")
TONES = {Level.PROBLEM: "bad", Level.WARNING: "warning", Level.INFO: "quiet"}
SAME_AS_PASS_AT_1 = (("pass_at_k", 1), ("pass_hat_k", 1))
MANY_K = 8  # up to here every k is printed, beyond it powers of two and the largest


def aggregate_results(runs: tuple[Facts, ...], figures: tuple[Figure, ...]) -> list[Block]:
    """Every measure of each run, beside what the evaluation says of itself."""
    blocks: list[Block] = []
    for facts in runs:
        if len(runs) > 1:
            blocks.append(Heading((Code(hostile.line(facts.run.name, 80)),)))
        blocks += _measures(facts)
        blocks += health_blocks(facts)
        blocks += _compared(facts)
        blocks += _slices(facts)
        blocks += _effort(facts)
        blocks += named(figures, "tokens", facts.run.name)
    return blocks or [para("No run was read.")]


def doubted(facts: Facts) -> tuple[list[Health], list[Health]]:
    """The flags of a run, and apart from them those about single tasks in doubt."""
    flags = [flag for flag in facts.health if flag.flag not in IN_DOUBT]
    return flags, [flag for flag in facts.health if flag.flag in IN_DOUBT]


def health_blocks(facts: Facts) -> list[Block]:
    """Whether the evaluation itself is sound: flags, tasks in doubt, and the score without them."""
    flags, tasks = doubted(facts)
    blocks: list[Block] = [Heading(("Health",))]
    shown = [flag for flag in flags if flag.flag != SENSITIVITY][:MAX_ROWS]
    if not shown:
        blocks.append(para("No health flag was raised."))
    else:
        rows = tuple(
            cells(
                Badge(flag.level.value, TONES[flag.level]),
                Code(hostile.line(flag.flag, 60)),
                hostile.line(flag.text, 900),
                words.number(flag.value),
                words.whole(flag.n),
            )
            for flag in shown
        )
        blocks.append(Table(("Level", "Flag", "What was seen", "Value", "n"), rows, "lllrr"))
    left = len([flag for flag in flags if flag.flag != SENSITIVITY]) - len(shown)
    if left > 0:
        blocks.append(para(f"{words.count(left, 'more flag')} in report.json."))
    quoted = [(flag, places.first_quoted(flag.evidence)) for flag in shown if flag.level is not Level.INFO]
    for flag, evidence in [pair for pair in quoted if pair[1] is not None][:MAX_QUOTES]:
        if evidence is not None:
            blocks.append(places.quotation(evidence, Code(hostile.line(flag.flag, 60)), ": "))
    return blocks + _tasks_in_doubt(facts, tasks)


def _tasks_in_doubt(facts: Facts, tasks: list[Health]) -> list[Block]:
    told = [flag for flag in facts.health if flag.flag == SENSITIVITY]
    blocks: list[Block] = [para(hostile.line(flag.text, 600)) for flag in told]
    if not tasks:
        return blocks
    rows = tuple(
        cells(
            Code(hostile.line(flag.task or "", 60)),
            Badge(*(("suspect", "warning") if flag.flag == SUSPECT else ("to review", "quiet"))),
            words.number(flag.value),
            hostile.line(flag.text.partition(" Points:")[0], 400),
            words.whole(flag.n),
        )
        for flag in tasks[:MAX_ROWS]
    )
    blocks += [
        para(
            "Tasks in doubt. Hard evidence against a task or its verifier counts 3 points, a pattern of ",
            "responses 1; a task is suspect from 3 and to review from 2.",
        ),
        Table(("Task", "Standing", "Points", "Why", "Rows"), rows, "llrlr"),
    ]
    if len(tasks) > len(rows):
        blocks.append(para(f"{words.count(len(tasks) - len(rows), 'more task')} in report.json."))
    return blocks


def shown_ks(ks: list[int]) -> set[int]:
    """The k worth a row: all when they are few, else powers of two and the largest."""
    if not ks or ks[-1] <= MANY_K:
        return set(ks)
    return {k for k in ks if k & (k - 1) == 0 or k == ks[-1]}


def _printed(facts: Facts) -> Iterator[Measure]:
    """The measures for the table: known ones in the order of print, then the unknown ones."""
    order = {name: at for at, name in enumerate(QUANTITIES)}
    chosen = {name: shown_ks(facts.ks(name)) for name in {m.name for m in facts.measures if m.k is not None}}
    # rewards of 0 and 1 at a threshold of 1 make the mean reward the pass rate, told already
    is_told = facts.is_rate and facts.run.reward_kind is RewardKind.BINARY and facts.run.pass_threshold == 1
    told = ("mean_reward", "mean_reward_micro") if is_told else ()
    plain = [
        m
        for m in facts.measures
        if m.slice is None
        and m.name not in told
        and m.value is not None
        and (m.k is None or m.k in chosen[m.name])
        and (m.name, m.k) not in SAME_AS_PASS_AT_1
        and m.name.removesuffix("_median") not in EFFORTS
    ]
    plain.sort(key=lambda m: (order.get(m.name, len(order)), m.k or 0))
    yield from plain


def _measures(facts: Facts) -> list[Block]:
    rows = [
        cells(
            quantities.label(m) if m.name in QUANTITIES else Code(quantities.label(m)),
            quantities.with_interval(m, facts.is_rate),
            quantities.n_of(m),
            quantities.meaning(m),
            quantities.method(m),
        )
        for m in _printed(facts)
    ]
    if not rows:
        return [para("No measure could be computed: no rollout was scored.")]
    run = facts.run
    if run.oracle is not None:
        said = words.percent(run.oracle) if facts.is_rate else words.number(run.oracle)
        rows.append(
            cells("oracle", said, words.count(run.n_tasks, "task"), "the best repeat of every task", "exact")
        )
    blocks: list[Block] = [
        Table(("Measure", "Value, 95% interval", "n", "What it is", "Method"), tuple(rows), "lrrll")
    ]
    blocks.append(
        para(
            "The task is the unit: means and intervals are over tasks unless n counts rows. ",
            "pass@k and best of k are unbiased estimates from all repeats of a task, not the first k. ",
            "A row with a smaller n leaves out tasks that have fewer repeats, so it is about other tasks.",
        )
    )
    if any(k > MANY_K for name in ("pass_at_k", "best_of_k") for k in facts.ks(name)):
        blocks.append(
            para("Of the k above 8 only powers of two and the largest are shown; report.json has all.")
        )
    return blocks


def _compared(facts: Facts) -> list[Block]:
    if not facts.compared:
        return []
    rows = tuple(
        cells(
            Code(hostile.line(item.name, 80)),
            words.number(item.reported),
            words.number(item.ours),
            hostile.line(item.explanation, 240),
            Code(hostile.line(item.file, 300)),
        )
        for item in facts.compared[:MAX_ROWS]
    )
    left = len(facts.compared) - len(rows)
    more = [para(f"{words.count(left, 'more number')} stand in report.json under reported.")] if left else []
    header = ("Number", "Reported", "Ours", "Why they agree or differ", "File")
    return [Heading(("Reported by the evaluation itself",)), Table(header, rows, "lrrll"), *more]


def _slices(facts: Facts) -> list[Block]:
    if not facts.slices:
        return []
    kept = facts.slices
    if len(kept) > MAX_ROWS:
        kept = sorted(kept, key=lambda s: (s.p_adjusted is None, s.p_adjusted or 0.0, -s.n_tasks))[:MAX_ROWS]
    rows = tuple(
        cells(
            Code(hostile.line(s.field, 60)),
            Code(hostile.line(s.value, 60)),
            _slice_rate(s, facts.is_rate),
            words.count(s.n_tasks, "task"),
            words.p_number(s.p_adjusted) if s.p_adjusted is not None else "not testable",
        )
        for s in kept
    )
    blocks: list[Block] = [
        Heading(("Slices",)),
        para(
            "Mean score of the tasks in a slice. p compares the slice with the rest of the tasks, ",
            "adjusted within its field (Benjamini-Hochberg); a slice that differs is not yet a cause.",
        ),
        Table(("Field", "Value", "Score, 95% interval", "n", "p adjusted"), rows, "llrrr"),
    ]
    if len(facts.slices) > len(rows):
        left = words.count(len(facts.slices) - len(rows), "slice")
        blocks.append(para(f"The {len(rows)} with the smallest p are shown; {left} more in report.json."))
    return blocks


def _slice_rate(s: Slice, is_rate: bool) -> str:
    say = words.percent if is_rate else words.number
    ends = f" [{say(s.low)}, {say(s.high)}]" if s.low is not None and s.high is not None else ""
    return say(s.pass_rate) + ends


def _effort(facts: Facts) -> list[Block]:
    rows = []
    for m in facts.measures:
        if m.name not in EFFORTS or m.value is None:
            continue
        median = facts.measure(m.name + "_median", slice=m.slice)
        rows.append(
            cells(
                EFFORTS[m.name],
                hostile.line((m.slice or "all").replace("_", " "), 40),
                quantities.with_interval(m),
                words.number(median.value) if median else words.NONE,
                quantities.n_of(m),
            )
        )
    if not rows:
        return [para("No row reports tokens, turns, seconds or cost, so effort cannot be shown.")]
    return [
        Heading(("Effort by outcome",)),
        para(
            "Over the rows that report the quantity. Outcomes mix easy and hard tasks: a difference between "
            "passed and failed rows here is no effect of the quantity."
        ),
        Table(("Quantity", "Outcome", "Mean", "Median", "n"), tuple(rows), "llrrr"),
    ]


def workflow_funnel(runs: tuple[Facts, ...], figures: tuple[Figure, ...]) -> list[Block]:
    """How many expected rollouts reached each stage."""
    blocks: list[Block] = []
    for facts in runs:
        if len(runs) > 1:
            blocks.append(Heading((Code(hostile.line(facts.run.name, 80)),)))
        funnel = facts.funnel
        if funnel is None or not funnel.stages:
            blocks.append(para("No funnel: nothing in the rows says how far a rollout came."))
            continue
        blocks.append(
            para(
                f"Stages: {hostile.line(funnel.source, 200)}. ",
                "Each stage is counted on its own over all expected rollouts (exact counts).",
            )
        )
        rows = tuple(
            cells(
                hostile.line(stage.name, 80),
                words.whole(stage.reached),
                words.whole(stage.of),
                words.percent(stage.reached / stage.of if stage.of else None),
            )
            for stage in funnel.stages
        )
        blocks.append(Table(("Stage", "Reached", "Of rollouts", "Share"), rows, "lrrr"))
        blocks += named(figures, "funnel", facts.run.name)
    return blocks or [para("No run was read.")]


BUCKETS = {
    "always": "every scored repeat passed",
    "sometimes": "some passed, some did not: the richest tasks to read",
    "never": "no scored repeat passed",
    "missing": "no scored rollout",
}


def task_outcome_buckets(runs: tuple[Facts, ...], figures: tuple[Figure, ...]) -> list[Block]:
    """Tasks by what their repeats did, and how sure that is."""
    blocks: list[Block] = [*named(figures, "buckets", None)]
    if figures and len(runs) > MAX_RUNS:
        blocks.append(para(f"Of {len(runs)} runs the first {MAX_RUNS} have figures of their own."))
    for facts in runs:
        if len(runs) > 1:
            blocks.append(Heading((Code(hostile.line(facts.run.name, 80)),)))
        if not facts.run.has_pass_rate:
            blocks.append(para("There is no pass rate, so tasks cannot be put into buckets."))
        else:
            blocks += _buckets(facts)
        blocks += named(figures, "tasks", facts.run.name)
    return blocks or [para("No run was read.")]


def _buckets(facts: Facts) -> list[Block]:
    total = facts.run.n_tasks
    rows = []
    for name, meaning in BUCKETS.items():
        keys: tuple[str, ...] = getattr(facts.buckets, name)
        sure = [t.p_bucket for t in facts.tasks if t.bucket == name and t.p_bucket is not None]
        rows.append(
            cells(
                name,
                words.whole(len(keys)),
                words.percent(len(keys) / total if total else None),
                words.probability(sum(sure) / len(sure)) if sure else words.NONE,
                meaning,
            )
        )
    return [
        Table(
            ("Bucket", "Tasks", f"Share of {total:,}", "Mean P(bucket)", "What it means"),
            tuple(rows),
            "lrrrl",
        ),
        para(
            "Buckets are raw counts. P(bucket) is the posterior probability that the true rate of a task ",
            "lies where its bucket says (always above 90%, never below 10%, sometimes between), from a ",
            "beta-binomial fit over all tasks: with few repeats a task may sit in a bucket by chance.",
        ),
    ]
