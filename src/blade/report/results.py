"""Lay out the numbers of a run: aggregates, effort, slices, the funnel and the buckets."""

from __future__ import annotations

from collections.abc import Iterator

from blade import hostile
from blade.model import Cause, Compared, Funnel, FunnelStage, Health, Level, Measure, RewardKind, Slice
from blade.report import numbers, places, quantities, queries
from blade.report.blocks import Badge, Block, Code, Figure, Heading, Line, Table, cells, named, para
from blade.report.facts import Facts
from blade.report.figures import MAX_RUNS
from blade.report.quantities import EFFORTS, QUANTITIES

MAX_ROWS = 30
MAX_SLICES = 12
LEVEL = 0.05
HEADLINES = frozenset(
    "pass_at_1 pass_at_1_micro mean_reward pass_at_k pass_hat_k best_of_k worst_of_k majority_at_k".split()
)
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


def health_blocks(facts: Facts) -> list[Block]:
    """Counts about the evaluation itself that a reader of the score should know."""
    shown = [flag for flag in facts.health if flag.level is not Level.INFO][:MAX_ROWS]
    if not shown:
        return []
    rows = tuple(_flag(facts, flag) for flag in shown)
    return [Heading(("Health",)), Table(("Level", "What was seen"), rows, "ll")]


def _flag(facts: Facts, flag: Health) -> tuple[Line, ...]:
    query = facts.entry("health", flag)
    return cells(Badge(flag.level.value, TONES[flag.level]), numbers.said(flag.text, f"{query}.text", 900))


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
        )
        for m in _headlines(facts)
    ]
    if not rows:
        return [para("No measure could be computed: no rollout was scored.")]
    return [
        Table(("Measure", "Value, 95% interval", "n", "What it is"), tuple(rows), "lrrl"),
        para(
            "Means and intervals are over tasks unless n counts rows; report.json has all measures and how each interval was made."
        ),
    ]


def _headlines(facts: Facts) -> list[Measure]:
    """The measures that a reader asks for first; of those that count tries, one try and the usual number of them."""
    found = list(_printed(facts))
    usual = {
        name: facts.at_most_k(name)
        for name in ("pass_at_k", "pass_hat_k", "best_of_k", "worst_of_k", "majority_at_k")
    }
    micro = facts.measure("pass_at_1_micro")
    score = facts.score.value
    is_same = micro is None or score is None or abs((micro.value or 0.0) - score) < 1e-9
    hidden = {"pass_at_1_micro"} if is_same else set()
    headlines = [m for m in found if m.name in HEADLINES - hidden and (m.k is None or m is usual.get(m.name))]
    parts = [m for m in facts.measures if m.name in ("pass_at_k", "pass_hat_k") and m.slice is not None]  # tasks known by prompt
    most = max((m.k or 0 for m in parts), default=0)
    return [*headlines, *(m for m in parts if m.k == most > 1)]


def _compared(facts: Facts) -> list[Block]:
    if not facts.compared:
        return []
    rows = tuple(_reported(facts, item) for item in facts.compared[:MAX_ROWS])
    every = f"{queries.entry('compared', run=facts.run.name)}.count"
    header = ("Number", "Reported", "Ours", "Why they agree or differ", "File")
    return [
        Heading(("Reported by the evaluation itself",)),
        Table(header, rows, "lrrll"),
        *places.left_out(len(facts.compared), len(rows), "number", every),
    ]


def _reported(facts: Facts, item: Compared) -> tuple[Line, ...]:
    query = facts.entry("compared", item)
    return cells(
        Code(hostile.line(item.name, 80)),
        numbers.number(item.reported, f"{query}.reported"),
        numbers.number(item.ours, f"{query}.ours"),
        numbers.said(item.explanation, f"{query}.explanation", 240),
        Code(hostile.line(item.file, 300)),
    )


def _slices(facts: Facts) -> list[Block]:
    """Every value of the fields in which some value differs from the rest beyond chance."""
    telling = {one.field for one in facts.slices if one.p_adjusted is not None and one.p_adjusted <= LEVEL}
    kept = [one for one in facts.slices if one.field in telling]
    if not kept:
        return []
    rows = tuple(_slice(facts, piece) for piece in kept[:MAX_SLICES])
    return [
        Heading(("Pass rate by field",)),
        para(
            "Fields about the task in which some value differs from all other tasks. p is corrected over all fields and "
            "values; a slice says where points are lost, not why."
        ),
        Table(("Field", "Value", "Pass rate, 95% interval", "Other tasks", "n", "p adjusted"), rows, "llrrrr"),
        *places.left_out(len(kept), len(rows), "slice"),
    ]


def _slice(facts: Facts, piece: Slice) -> tuple[Line, ...]:
    query = facts.entry("slices", piece)
    say = numbers.percent
    interval = numbers.between(say(piece.low, f"{query}.low"), say(piece.high, f"{query}.high"))
    return cells(
        Code(hostile.line(piece.field, 60)),
        Code(hostile.line(piece.value, 60)),
        (say(piece.pass_rate, f"{query}.pass_rate"), *interval),
        say(piece.rest, f"{query}.rest"),
        numbers.count(piece.n_tasks, "task", f"{query}.n_tasks"),
        numbers.p_number(piece.p_adjusted, f"{query}.p_adjusted"),
    )


def _effort(facts: Facts) -> list[Block]:
    """What rollouts cost, passing beside failing."""
    parts: list[Line] = []
    for name, label in EFFORTS.items():
        by = {m.slice: m for m in facts.measures if m.name == name and m.value is not None}
        passed, failed = by.get("passed"), by.get("failed")
        if passed is not None and failed is not None:
            parts.append((f"{label} ", quantities.value(passed), " and ", quantities.value(failed)))
    if not parts:
        return []
    return [
        para(
            "Effort, mean of passing and of failing rollouts: ", *numbers.joined(parts, ", ", ", "),
            ". Outcomes mix easy and hard tasks, so a difference is no effect of the quantity.",
        )
    ]  # fmt: skip


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
        rows = tuple(_stage(facts, funnel, stage) for stage in funnel.stages)
        header = (f"Stage ({hostile.line(funnel.source, 60)})", "Reached", "Of rollouts", "Share")
        blocks.append(Table(header, rows, "lrrr"))
        blocks += named(figures, "funnel", facts.run.name)
    return blocks or [para("No run was read.")]


# The stages that are inferred from any rows, as conditions on `rollouts`; {run} is the condition on the run.
STAGES = {
    "started": "true",
    "produced output": "steps > 0",
    "called a tool": "calls > 0",
    "finished": "not truncated and not errored and not timed_out and (last_kind in ('message', 'user') or "
    "last_kind = 'result' and "
    "exists (select 1 from rollouts where {run} and passed and last_kind = 'result'))",
    "scored": "reward is not null and not masked",
    "passed": "passed and not masked",
}


def _stage(facts: Facts, funnel: Funnel, stage: FunnelStage) -> tuple[Line, ...]:
    run, place = facts.run.name, funnel.stages.index(stage)
    query, share = f"{facts.entry('funnels', funnel)}.stages[{place}].reached", ""
    share = f"{query} / {facts.entry('funnels', funnel)}.stages[{place}].of"
    if funnel.source == "inferred" and stage.name in STAGES:
        holds = STAGES[stage.name].format(run=f"run = {queries.quoted(run)}")
        query = queries.select("count(distinct (task, repeat))", "rollouts", run, f"({holds})")
        share = queries.select(f"({query}) / expected", "runs", run)
    return cells(
        numbers.name(hostile.line(stage.name, 80)),
        numbers.whole(stage.reached, query),
        numbers.whole(stage.of, facts.counted("expected")),
        numbers.percent(stage.reached / stage.of if stage.of else None, share),
    )


BUCKETS = {
    "always": "every scored repeat passed",
    "sometimes": "some passed, some did not: the richest tasks to read",
    "never": "no scored repeat passed",
    "missing": "no scored rollout",
}


def task_outcome_buckets(runs: tuple[Facts, ...], figures: tuple[Figure, ...]) -> list[Block]:
    """Tasks by what their repeats did, and how sure that is."""
    blocks: list[Block] = [] if any(map(_is_misindexed, runs)) else [*named(figures, "buckets", None)]
    if figures and len(runs) > MAX_RUNS:
        blocks.append(para("Only the first runs have figures of their own."))
    for facts in runs:
        if len(runs) > 1:
            blocks.append(Heading((Code(hostile.line(facts.run.name, 80)),)))
        if not facts.run.has_pass_rate:
            blocks.append(para("There is no pass rate, so tasks cannot be put into buckets."))
        elif _is_misindexed(facts):
            blocks.append(
                para("The task index does not identify tasks (see the first page), so buckets by index are not shown.")
            )
            continue
        else:
            blocks += _buckets(facts)
        blocks += named(figures, "tasks", facts.run.name)
    return blocks or [para("No run was read.")]


def _is_misindexed(facts: Facts) -> bool:
    return any(one.level == "alarm" and one.label is Cause.DATA_ARTIFACT for one in facts.trust)


def _buckets(facts: Facts) -> list[Block]:
    rows = tuple(_bucket(facts, name, meaning) for name, meaning in BUCKETS.items())
    return [Table(("Bucket", "Tasks", "Share of tasks", "What it means"), rows, "lrrl")]


def _bucket(facts: Facts, name: str, meaning: str) -> tuple[Line, ...]:
    run, total = facts.run.name, facts.run.n_tasks
    n = len(getattr(facts.buckets, name))
    holds = f"bucket = {queries.quoted(name)}"
    return cells(
        name,
        numbers.whole(n, in_bucket(facts, name)),
        numbers.percent(
            n / total if total else None, queries.select(f"avg(cast({holds} as int))", "tasks", run)
        ),
        meaning,
    )


def in_bucket(facts: Facts, name: str) -> str:
    """The query that counts the tasks of a bucket."""
    return queries.select("count(*)", "tasks", facts.run.name, f"bucket = {queries.quoted(name)}")
