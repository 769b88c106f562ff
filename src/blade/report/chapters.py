"""Write the title and the eleven chapters of a diagnosis: what was read, the numbers, the failure groups, the tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from blade import hostile, number_format
from blade.model import (
    Cause,
    Compared,
    Confidence,
    FunnelStage,
    Judgement,
    Level,
    Measure,
    Recommendation,
    Report,
    RewardKind,
    Slice,
    TaskResult,
)  # fmt: skip
from blade.report import first_page, printed_names, queried_numbers
from blade.report.blocks import (
    Badge,
    Block,
    Bullets,
    Code,
    Figure,
    Heading,
    Line,
    Para,
    Quote,
    Section,
    Table,
    cells,
    code,
    line,
    named,
    para,
    paragraph,
)  # fmt: skip
from blade.report.printed_names import EFFORTS, QUANTITIES
from blade.report.queried_numbers import Cited, between, count, joined, number, percent, said, select, whole
from blade.report.row_addresses import left_out, place, task_name, to_read
from blade.report.run_charts import MAX_RUNS
from blade.report.run_facts import Facts, facts

Runs = tuple[Facts, ...]
Figures = tuple[Figure, ...]
NO_RUN = para("No run was read.")


def title(report: Report) -> str:
    """`<Benchmark or run name> BLADE Analysis Report`."""
    benchmarks = {run.benchmark for run in report.runs}
    shared = benchmarks.pop() if len(benchmarks) == 1 else None
    names = [hostile.line(run.name, 60) for run in report.runs]
    subject = hostile.line(shared or "", 80) or (
        number_format.listing(names) if 0 < len(names) <= 3 else number_format.count(len(names), "run")
    )
    return f"{subject} BLADE Analysis Report"


def chapters(report: Report, figures: Figures = ()) -> tuple[Section, ...]:
    """The eleven sections, in the order that readers of BLADE reports expect."""
    runs = facts(report)
    no_summary = para("No run was read, so there is nothing to summarise.")
    contents = {
        "Executive Summary": _each(runs, first_page.blocks, no_summary),
        "Artifact Inventory": artifact_inventory(report, runs),
        "Aggregate Results": _each(runs, lambda run: aggregate_results(run, figures)),
        "Workflow Funnel": _each(runs, lambda run: workflow_funnel(run, figures)),
        "Task Outcome Buckets": task_outcome_buckets(runs, figures),
        "Dominant Failure Modes": _each(runs, lambda run: dominant_failure_modes(run, figures)),
        "Sometimes-Pass Deep Dives": _each(runs, sometimes_pass),
        "Never-Pass Deep Dives": _each(runs, never_pass),
        "Cross-Model Comparison": cross_model(report, runs, figures),
        "Recommendations": _each(runs, recommendations),
        "Reproducibility Notes": reproducibility(report, runs, figures),
    }
    return tuple(Section(name, tuple(blocks)) for name, blocks in contents.items())


def _each(runs: Runs, blocks_of: Callable[[Facts], list[Block]], none: Block = NO_RUN) -> list[Block]:
    """The blocks of each run, under its name where there are several."""
    blocks: list[Block] = []
    for run in runs:
        blocks += [Heading((code(run.run.name),))] if len(runs) > 1 else []
        blocks += blocks_of(run)
    return blocks or ([] if runs else [none])


# ---- Artifact Inventory --------------------------------------------------------------------------

MAX_FILES = 30
ODD = {
    "duplicates": "duplicate rows",
    "unnumbered_copies": "identical rows without a repeat number, counted as repeats",
    "superseded": "rows superseded by a later attempt",
    "unexpected": "rows that the inputs do not name",
}


def artifact_inventory(report: Report, runs: Runs) -> list[Block]:
    """The files of each run, what was counted in them, and the notes that lay beside them."""
    blocks = _each(runs, lambda run: _inventory(report, run))
    if report.skipped_total:
        blocks.append(paragraph("{} could not be read; see Reproducibility Notes.", _unread(report.skipped_total)))
    return blocks


def _unread(total: int, query: str = "engine.skipped_total") -> Line:
    return count(total, "line or file", query, "lines or files")


def _inventory(report: Report, run: Facts) -> list[Block]:
    notes = (Quote(("A note left beside the run",), hostile.quoted(note, 4000)) for note in run.run.notes)
    return [_identity(run), _sources(run), *_artifacts(run), _counts(run), *_inferred(report, run), *notes]


def _identity(facts: Facts) -> Block:
    """What was run, as far as an artifact names it."""
    run = facts.run
    identity = (("Run", run.name), ("model", run.model), ("agent", run.agent), ("benchmark", run.benchmark))
    stated: list[Line] = [(f"{what} ", code(name, 200)) for what, name in identity if name]
    unstated = [what for what, name in identity if not name]
    return paragraph("{}{}.", joined(stated, last=", "), f"; not stated: {', '.join(unstated)}" if unstated else "")


def _sources(facts: Facts) -> Table:
    run = facts.cited("runs", facts.run)
    rows = []
    for at, source in enumerate(facts.run.sources[:MAX_FILES]):
        of = Cited(source, f"{run.query}.sources[{at}]")
        digest = Code(source.sha256) if source.sha256 else "not hashed"
        rows.append(cells(code(source.path, 300), of.whole("rows"), of.whole("bytes"), digest))
    left = len(facts.run.sources) - MAX_FILES
    if left > 0:
        more = count(left, "file", f"{run.query}.sources.count - {MAX_FILES}")
        rows.append(cells(line("… {} more, all in report.json", more), "", "", ""))
    return Table(("Rollouts file", "Rows", "Bytes", "SHA-256"), tuple(rows), "lrrl")


def _artifacts(facts: Facts) -> list[Block]:
    """The files beside the rollouts: those that are there with their path, the others by name."""
    artifacts = facts.run.artifacts
    there: list[Line] = [(code(file.path, 300),) for file in artifacts if file.present and file.kind != "rollouts"]
    absent = [hostile.line(file.kind, 60) for file in artifacts if not file.present]
    if not artifacts:
        return []
    beside = line("Beside it: {}. ", joined(there[:MAX_FILES])) if there else ()
    return [para(*beside, *((f"Not there: {', '.join(absent)}.",) if absent else ()))]


def _counts(facts: Facts) -> Block:
    """expected = scored + failed + masked + lost, and whatever else was counted."""
    run, counts = facts.run, facts.run.coverage

    def counted(name: str, words: str) -> Line:
        return (whole(getattr(counts, name), facts.counted(name)), f" {words}")

    parts = [counted(name, name) for name in ("scored", "failed", "masked", "lost")]
    more = [counted(name, words) for name, words in ODD.items() if getattr(counts, name)]
    return paragraph(
        "{} rollouts of {} tasks. {} expected = {}{}. Expected rollouts come from: {}.",
        whole(run.n_rollouts, facts.n_rollouts), whole(run.n_tasks, facts.n_tasks),
        whole(counts.expected, facts.counted("expected")), joined(parts, " + ", " + "),
        ("; ", *joined(more)) if more else (), hostile.line(counts.expected_from, 80),
    )  # fmt: skip


def _inferred(report: Report, facts: Facts) -> list[Block]:
    known = report.benchmark.get(facts.run.name)
    blocks: list[Block] = []
    if known is not None and known.path:
        blocks.append(paragraph("Facts about the benchmark came from {}.", code(known.path, 300)))
    if known is not None and known.inferred:
        query = f"{queried_numbers.entry('benchmark')}[{facts.run.name!r}].inferred"
        items: list[Line] = [(said(text, f"{query}[{at}]", 300),) for at, text in enumerate(known.inferred)]
        blocks.append(paragraph("Inferred from the rows, since no file says so: {}.", joined(items, "; ", "; ")))
    return blocks


# ---- Aggregate Results ---------------------------------------------------------------------------

MAX_ROWS = 30
MAX_SLICES = 12
LEVEL = 0.05
HEADLINES = frozenset(
    "pass_at_1 pass_at_1_micro mean_reward pass_at_k pass_hat_k best_of_k worst_of_k majority_at_k".split()
)
TONES = {Level.PROBLEM: "bad", Level.WARNING: "warning", Level.INFO: "quiet"}
SAME_AS_PASS_AT_1 = (("pass_at_k", 1), ("pass_hat_k", 1))
MANY_K = 8  # up to here every k is printed, beyond it powers of two and the largest


def aggregate_results(facts: Facts, figures: Figures) -> list[Block]:
    """Every measure of a run, beside what the evaluation says of itself."""
    return [
        *_measures(facts), *_health(facts), *_compared(facts), *_slices(facts), *_effort(facts),
        *named(figures, "tokens", facts.run.name),
    ]  # fmt: skip


def _health(facts: Facts) -> list[Block]:
    """Counts about the evaluation itself that a reader of the score should know."""
    rows = tuple(
        cells(Badge(flag.level.value, TONES[flag.level]), facts.cited("health", flag).said("text", 900))
        for flag in [flag for flag in facts.health if flag.level is not Level.INFO][:MAX_ROWS]
    )
    return [Heading(("Health",)), Table(("Level", "What was seen"), rows, "ll")] if rows else []


def shown_ks(ks: list[int]) -> set[int]:
    """The k worth a row: all when they are few, else powers of two and the largest."""
    if not ks or ks[-1] <= MANY_K:
        return set(ks)
    return {k for k in ks if k & (k - 1) == 0 or k == ks[-1]}


def _printed(facts: Facts) -> list[Measure]:
    """The measures for the table: known ones in the order of print, then the unknown ones."""
    order = {name: at for at, name in enumerate(QUANTITIES)}
    chosen = {name: shown_ks(facts.ks(name)) for name in {m.name for m in facts.measures if m.k is not None}}
    # rewards of 0 and 1 at a threshold of 1 make the mean reward the pass rate, which stands there already
    is_same = facts.is_rate and facts.run.reward_kind is RewardKind.BINARY and facts.run.pass_threshold == 1
    same = ("mean_reward", "mean_reward_micro") if is_same else ()
    shown = [
        m
        for m in facts.measures
        if m.slice is None
        and m.name not in same
        and m.value is not None
        and (m.k is None or m.k in chosen[m.name])
        and (m.name, m.k) not in SAME_AS_PASS_AT_1
        and m.name.removesuffix("_median") not in EFFORTS
    ]
    return sorted(shown, key=lambda m: (order.get(m.name, len(order)), m.k or 0))


def _measures(facts: Facts) -> list[Block]:
    rows = [
        cells(
            printed_names.label(m) if m.name in QUANTITIES else Code(printed_names.label(m)),
            printed_names.with_interval(m, facts.is_rate),
            printed_names.n_of(m),
            printed_names.meaning(m),
        )
        for m in _headlines(facts)
    ]
    if not rows:
        return [para("No measure could be computed: no rollout was scored.")]
    note = "Means and intervals are over tasks unless n counts rows; report.json has all measures and how each interval was made."
    return [Table(("Measure", "Value, 95% interval", "n", "What it is"), tuple(rows), "lrrl"), para(note)]


def _headlines(facts: Facts) -> list[Measure]:
    """The measures that a reader asks for first; of those that count tries, one try and the usual number of them."""
    tried = ("pass_at_k", "pass_hat_k", "best_of_k", "worst_of_k", "majority_at_k")
    usual = {name: facts.at_most_k(name) for name in tried}
    micro, score = facts.measure("pass_at_1_micro"), facts.score.value
    is_same = micro is None or score is None or abs((micro.value or 0.0) - score) < 1e-9
    wanted = HEADLINES - ({"pass_at_1_micro"} if is_same else set())
    headlines = [m for m in _printed(facts) if m.name in wanted and (m.k is None or m is usual.get(m.name))]
    # of tasks known by their prompt
    parts = [m for m in facts.measures if m.name in ("pass_at_k", "pass_hat_k") and m.slice is not None]
    most = max((m.k or 0 for m in parts), default=0)
    return [*headlines, *(m for m in parts if m.k == most > 1)]


def _compared(facts: Facts) -> list[Block]:
    if not facts.compared:
        return []
    rows = tuple(_reported(facts, item) for item in facts.compared[:MAX_ROWS])
    every = f"{queried_numbers.entry('compared', run=facts.run.name)}.count"
    return [
        Heading(("Reported by the evaluation itself",)),
        Table(("Number", "Reported", "Ours", "Why they agree or differ", "File"), rows, "lrrll"),
        *left_out(len(facts.compared), len(rows), "number", every),
    ]


def _reported(facts: Facts, item: Compared) -> tuple[Line, ...]:
    of = facts.cited("compared", item)
    name, file = code(item.name), code(item.file, 300)
    return cells(name, of.number("reported"), of.number("ours"), of.said("explanation", 240), file)


def _slices(facts: Facts) -> list[Block]:
    """Every value of the fields in which some value differs from the rest beyond chance."""
    telling = {piece.field for piece in facts.slices if piece.p_adjusted is not None and piece.p_adjusted <= LEVEL}
    pieces = [piece for piece in facts.slices if piece.field in telling]
    if not pieces:
        return []
    rows = tuple(_slice(facts, piece) for piece in pieces[:MAX_SLICES])
    return [
        Heading(("Pass rate by field",)),
        para(
            "Fields about the task in which some value differs from all other tasks. p is corrected over all fields and "
            "values; a slice says where points are lost, not why."
        ),
        Table(("Field", "Value", "Pass rate, 95% interval", "Other tasks", "n", "p adjusted"), rows, "llrrrr"),
        *left_out(len(pieces), len(rows), "slice"),
    ]


def _slice(facts: Facts, piece: Slice) -> tuple[Line, ...]:
    of = facts.cited("slices", piece)
    rate: Line = (of.percent("pass_rate"), *between(of.percent("low"), of.percent("high")))
    tasks = of.count("n_tasks", "task")
    return cells(code(piece.field, 60), code(piece.value, 60), rate, of.percent("rest"), tasks, of.p_number("p_adjusted"))


def _effort(facts: Facts) -> list[Block]:
    """What rollouts cost, passing beside failing."""
    parts: list[Line] = []
    for name, label in EFFORTS.items():
        by = {m.slice: m for m in facts.measures if m.name == name and m.value is not None}
        passed, failed = by.get("passed"), by.get("failed")
        if passed is not None and failed is not None:
            parts.append((f"{label} ", printed_names.value(passed), " and ", printed_names.value(failed)))
    if not parts:
        return []
    return [
        paragraph(
            "Effort, mean of passing and of failing rollouts: {}. Outcomes mix easy and hard tasks, so a difference is no "
            "effect of the quantity.",
            joined(parts, last=", "),
        )
    ]


# ---- Workflow Funnel -----------------------------------------------------------------------------

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


def workflow_funnel(facts: Facts, figures: Figures) -> list[Block]:
    """How many expected rollouts reached each stage."""
    if facts.funnel is None or not facts.funnel.stages:
        return [para("No funnel: nothing in the rows says how far a rollout came.")]
    rows = tuple(_stage(facts, facts.cited("funnels", facts.funnel), stage) for stage in facts.funnel.stages)
    header = (f"Stage ({hostile.line(facts.funnel.source, 60)})", "Reached", "Of rollouts", "Share")
    return [Table(header, rows, "lrrr"), *named(figures, "funnel", facts.run.name)]


def _stage(facts: Facts, funnel: Cited, stage: FunnelStage) -> tuple[Line, ...]:
    run = facts.run.name
    of = f"{funnel.query}.stages[{funnel.noun.stages.index(stage)}]"
    query, share = f"{of}.reached", f"{of}.reached / {of}.of"
    if funnel.noun.source == "inferred" and stage.name in STAGES:
        holds = STAGES[stage.name].format(run=f"run = {queried_numbers.quoted(run)}")
        query = select("count(distinct (task, repeat))", "rollouts", run, f"({holds})")
        share = select(f"({query}) / expected", "runs", run)
    return cells(
        queried_numbers.name(hostile.line(stage.name, 80)),
        whole(stage.reached, query),
        whole(stage.of, facts.counted("expected")),
        percent(stage.reached / stage.of if stage.of else None, share),
    )


# ---- Task Outcome Buckets ------------------------------------------------------------------------

BUCKETS = {
    "always": "every scored repeat passed",
    "sometimes": "some passed, some did not: the richest tasks to read",
    "never": "no scored repeat passed",
    "missing": "no scored rollout",
}


def task_outcome_buckets(runs: Runs, figures: Figures) -> list[Block]:
    """Tasks by what their repeats did, and how sure that is."""
    blocks: list[Block] = [] if any(map(_is_misindexed, runs)) else [*named(figures, "buckets", None)]
    if figures and len(runs) > MAX_RUNS:
        blocks.append(para("Only the first runs have figures of their own."))
    return blocks + _each(runs, lambda run: _buckets(run, figures))


def _is_misindexed(facts: Facts) -> bool:
    return any(entry.level == "alarm" and entry.label is Cause.DATA_ARTIFACT for entry in facts.trust)


def _buckets(facts: Facts, figures: Figures) -> list[Block]:
    if not facts.run.has_pass_rate:
        table: Block = para("There is no pass rate, so tasks cannot be put into buckets.")
    elif _is_misindexed(facts):
        return [para("The task index does not identify tasks (see the first page), so buckets by index are not shown.")]
    else:
        rows = tuple(_bucket(facts, name, meaning) for name, meaning in BUCKETS.items())
        table = Table(("Bucket", "Tasks", "Share of tasks", "What it means"), rows, "lrrl")
    return [table, *named(figures, "tasks", facts.run.name)]


def _bucket(facts: Facts, name: str, meaning: str) -> tuple[Line, ...]:
    run, n = facts.run, len(getattr(facts.buckets, name))
    share = select(f"avg(cast(bucket = {queried_numbers.quoted(name)} as int))", "tasks", run.name)
    part = percent(n / run.n_tasks if run.n_tasks else None, share)
    return cells(name, whole(n, in_bucket(facts, name)), part, meaning)


def in_bucket(facts: Facts, name: str) -> str:
    """The query that counts the tasks of a bucket."""
    return select("count(*)", "tasks", facts.run.name, f"bucket = {queried_numbers.quoted(name)}")


# ---- Dominant Failure Modes ----------------------------------------------------------------------

MAX_GROUPS = 4  # told at length; the first page names them all
MAX_JUDGEMENTS = 40


def dominant_failure_modes(facts: Facts, figures: Figures) -> list[Block]:
    """The groups one by one, the largest first, and what people and agents judged."""
    blocks: list[Block] = []
    for rank, group in enumerate(facts.groups[:MAX_GROUPS], 1):
        name = facts.cited("groups", group).said("name", 120)
        blocks.append(Heading((f"{rank}. ", name, f" ({group.label.value})")))
        blocks += first_page.group_blocks(facts, group)
    if not facts.groups:
        blocks.append(para("No failure group was found."))
    every = f"{queried_numbers.entry('groups', run=facts.run.name)}.count"
    blocks += left_out(len(facts.groups), min(len(facts.groups), MAX_GROUPS), "group", every)
    return [*blocks, *named(figures, "losses", facts.run.name), *judgements(facts)]


def judgements(facts: Facts) -> list[Block]:
    """The judgements of a run, and the agreement of their authors with the engine and one another."""
    if not facts.judgements:
        return []
    given, every = facts.judgements, f"engine.judgements[{facts.run.name!r}]"
    authors: list[Line] = [(Code(name),) for name in sorted({hostile.line(entry.by, 60) for entry in given})]
    header = ("Task", "Cause", "Engine", "By", "On", "What happened")
    blocks: list[Block] = [
        Heading(("Judgements",)),
        paragraph(
            "{} by {} stand in for the engine's proposals. Each quotation was found in its rollout, and each condition "
            "holds of it; where authors differ, the last word stands.",
            count(len(given), "judgement", f"{every}.count"), joined(authors),
        ),
        Table(header, tuple(_judgement(facts, entry) for entry in given[:MAX_JUDGEMENTS]), "llllll"),
        *left_out(len(given), MAX_JUDGEMENTS, "judgement", f"{every}.count"),
    ]  # fmt: skip
    if not facts.agreements:
        return blocks
    rows = []
    for pair in facts.agreements:
        of = facts.cited("agreements", pair)
        both = line("{} and {}", code(pair.first, 60), code(pair.second, 60))
        same = line("{} of {}", of.whole("agreed"), of.whole("n"))
        rows.append(cells(both, of.whole("n"), same, of.number("kappa")))
    note = "Agreement, over tasks that both labelled; kappa is Cohen's, and says nothing where labels hardly vary."
    return [*blocks, para(note), Table(("Between", "Tasks", "Same label", "Kappa"), tuple(rows), "lrrr")]


def _judgement(facts: Facts, entry: Judgement) -> tuple[Line, ...]:
    cause = facts.attribution.get(entry.task)
    engine = cause.proposed if cause is not None and cause.proposed is not None else entry.proposed
    return cells(
        code(place(entry.task, entry.repeat), 60),
        printed_names.named(entry.cause),
        engine.value if engine is not None else number_format.NONE,
        code(entry.by, 60),
        Code(entry.at[:10]),
        facts.judgement(entry).said("mechanism", 200),
    )


# ---- Deep Dives ----------------------------------------------------------------------------------

MAX_TASKS = 5  # tasks of a table


def sometimes_pass(facts: Facts) -> list[Block]:
    """Tasks that pass in some repeats only."""
    return _deep_dives(facts, "sometimes", "No task passes in some repeats only.")


def never_pass(facts: Facts) -> list[Block]:
    """Tasks that never pass."""
    return _deep_dives(facts, "never", "Every task passes at least once.")


def _deep_dives(facts: Facts, bucket: str, nothing: str) -> list[Block]:
    if not facts.run.has_pass_rate:
        return [para("No threshold says what passes, so tasks are in no bucket.")]
    tasks = [task for task in facts.tasks if task.bucket == bucket]
    if not tasks:
        return [para(nothing)]
    # the dearest first: those that lose most points
    tasks.sort(key=lambda task: -(facts.attribution[task.task].lost if task.task in facts.attribution else 0.0))
    rows = tuple(_task(facts, task) for task in tasks[:MAX_TASKS])
    table = Table(("Task", "Passed", "Label", "What its rollouts show", "Read"), rows, "lrlll")
    return [table, *left_out(len(tasks), len(rows), "task", in_bucket(facts, bucket))]


def _task(facts: Facts, task: TaskResult) -> tuple[Line, ...]:
    where = f"task = {queried_numbers.quoted(task.task)}"
    passed, n = (
        whole(number, select(name, "tasks", facts.run.name, where))
        for number, name in ((task.passed or 0, "passes"), (task.n, "n"))
    )
    cause = facts.attribution.get(task.task)
    label = printed_names.badge(cause.cause) if cause else number_format.NONE
    shows = facts.cited("attributions", cause).said("mechanism", 280) if cause else ""
    repeats = " ".join(place(task.task, repeat) for repeat in to_read(task)[:2])
    return cells(task_name(task.task, task.task_name), (passed, " of ", n), label, shows, Code(repeats))


# ---- Cross-Model Comparison ----------------------------------------------------------------------


def cross_model(report: Report, runs: Runs, figures: Figures = ()) -> list[Block]:
    """The runs side by side, then each candidate against the baseline."""
    if len(runs) < 2:
        return [para("There is one run, so there is nothing to compare.") if runs else NO_RUN]
    rows = tuple(
        cells(
            code(run.run.name),
            code(run.run.model) if run.run.model else number_format.NONE,
            printed_names.label(run.score),
            printed_names.with_interval(run.score, run.is_rate),
            printed_names.n_of(run.score),
            whole(run.run.n_rollouts, run.n_rollouts),
            whole(run.run.coverage.repeats, run.counted("repeats")),
        )
        for run in runs
    )
    header = ("Run", "Model", "Score is", "Score, 95% interval", "n", "Rollouts", "Repeats")
    blocks: list[Block] = [
        Table(header, rows, "lllrrrr"),
        para(
            "The intervals are for each run alone: whether they overlap does not say whether a difference is real, because "
            "the runs share tasks."
        ),
    ]
    if len({run.run.score_name for run in runs}) > 1:
        blocks.append(para("The scores are of different kinds and must not be compared as they stand."))
    if report.comparisons:
        from blade.report import comparison_pages

        return [*blocks, *comparison_pages.cross_model(report, figures, "report.json")]
    shared = len(set.intersection(*({task.task for task in run.tasks} for run in runs)))
    every = len(set.union(*({task.task for task in run.tasks} for run in runs)))
    in_all = f"select task from tasks group by task having count(distinct run) = {len(runs)}"
    keys = count(shared, "task key", f"select count(*) from ({in_all})")
    of = whole(every, "select count(distinct task) from tasks")
    blocks.append(paragraph("{} of {} occur in every run.", keys, of))
    return [*blocks, paragraph("This report does not pair them; {} does.", Code("blade compare"))]


# ---- Recommendations -----------------------------------------------------------------------------

MAX_FIXES = 6


def recommendations(facts: Facts) -> list[Block]:
    """What to change, ranked: repairs of the measurement first, then by the points concerned."""
    rows = tuple(_fix(facts, fix) for fix in facts.recommendations[:MAX_FIXES])
    if not rows:
        return [para("There is nothing to recommend: no failure group was found.")]
    note = (
        "A gain is estimated within tasks that show both outcomes; without such tasks it is not identified, and the upper "
        "bound assumes that every rollout concerned passes."
    )
    return [Table(("Rank", "Action", "Label", "Expected gain", "Tasks"), rows, "rlllr"), para(note)]


def _fix(facts: Facts, fix: Recommendation) -> tuple[Line, ...]:
    of, badge = facts.cited("recommendations", fix), printed_names.badge(fix.cause)
    return cells(of.whole("rank"), of.said("action", 400), badge, first_page.gain(facts, fix), of.length("tasks"))


# ---- Reproducibility Notes -----------------------------------------------------------------------

MAX_SKIPPED = 20
MAX_SETTINGS = 12
MAX_NAMES = 8  # of gaps with the same reason


def reproducibility(report: Report, runs: Runs, figures: Figures) -> list[Block]:
    """Version, command, inputs, settings, thresholds, what was skipped, what is unsaid, how right."""
    same = (
        " The same rows give the same report, whatever their order, sharding or compression; what its tables leave out stands in "
        "report.json."
    )
    blocks: list[Block] = [para(*made_by(report).line, same, "" if figures else " No figures were drawn.")]
    blocks += _each(runs, settings) if runs else []
    return [*blocks, *skipped(report), *gaps(report), *accuracy(report)]


def made_by(report: Report) -> Para:
    """The version and the command."""
    items: list[Line] = [
        ("BLADE " if name == "blade" else f"{name} ", code(value, 1000)) for name, value in report.made_by.items()
    ]
    return paragraph("Made by {}.", joined(items, last=", "))


def settings(facts: Facts, file: str = "report.json") -> list[Block]:
    """How a run was judged, and its settings; `file` holds what the tables leave out."""
    run = facts.run
    how: Line = ("No threshold judges them, so there is no pass rate. ",)
    if run.has_pass_rate:
        bar = number(run.pass_threshold, facts.counted("pass_threshold"))
        how = line("A row passes at a reward of {} or more (tolerance 1e-9). ", bar)
    score = f"The score is {run.score_name}, the mean over tasks; tasks are the unit of inference. "
    judged = para(f"Rewards are {run.reward_kind.value}. ", *how, score)
    if not run.settings:
        return [judged, para("No settings of the run (sampling, limits, agent) were found beside it.")]
    shown: list[Line] = [(code(f"{k} = {v}", 200),) for k, v in sorted(run.settings.items())[:MAX_SETTINGS]]
    every = f"{facts.entry('runs', run)}.settings.count"
    more = left_out(len(run.settings), len(shown), "setting", every, file)
    return [judged, paragraph("Settings: {}.", joined(shown, last=", ")), *more]


def skipped(report: Report, file: str = "report.json") -> list[Block]:
    """The lines that could not be read, the first of many."""
    if not report.skipped_total and not report.skipped:
        return []
    total = max(report.skipped_total, len(report.skipped))
    rows = []
    for at, entry in enumerate(report.skipped[:MAX_SKIPPED]):
        of = Cited(entry, f"engine.skipped[{at}]")
        where = of.whole("line") if entry.line is not None else "whole file"
        rows.append(cells(code(entry.file, 120), where, of.said("reason", 200)))
    query = "engine.skipped_total" if total == report.skipped_total else "engine.skipped.count"
    more = f" The first are shown; {file} lists more of them." if total > len(rows) else ""
    table = Table(("File", "Line", "Why"), tuple(rows), "lrl")
    return [paragraph("Skipped: {}.{}", _unread(total, query), more), table]


def gaps(report: Report, file: str = "report.json", counted: bool = True) -> list[Block]:
    """What the report cannot say, by the reason; `counted` says how many gaps there are."""
    if not report.gaps:
        return [para("No gap was recorded.")]
    by_why: dict[str, list[Cited]] = {}
    for gap in report.gaps:
        query = queried_numbers.chosen("engine.gaps", report.gaps, gap, "what", "why")
        by_why.setdefault(gap.why, []).append(Cited(gap, query))
    items = tuple((*_gap(group, file), ": ", group[0].said("why", 400)) for group in list(by_why.values())[:MAX_ROWS])
    n = line(" ({})", count(len(report.gaps), "gap", "engine.gaps.count")) if counted else ()
    return [
        paragraph("What this report cannot say{}, by what is missing:", n),
        Bullets(items),
        *left_out(len(by_why), len(items), "gap", file=file),
    ]


def _gap(group: Iterable[Cited], file: str) -> Line:
    """What one reason leaves unsaid: the first, and that there are more."""
    items: list[Line] = [(of.said("what", 300),) for of in group]
    more: Line = (f"; … more in {file}",) if len(items) > MAX_NAMES else ()
    return (*joined(items[:MAX_NAMES], "; ", "; "), *more)


def accuracy(report: Report) -> list[Block]:
    """How many labels of each confidence were right, or that this was never measured."""
    card = (report.accuracy or {}).get("confidence", {})
    heading = Heading(("How right are these labels",))
    rows = []
    for word in map(str, Confidence):  # the surest first
        if word in card:
            query = f"engine.accuracy['confidence'][{word!r}]"
            right, n = (whole(card[word][name], f"{query}[{name!r}]") for name in ("right", "n"))
            rows.append(cells(word, (right, " of ", n)))
    if not rows:
        return [heading, para("How often such labels are right was not measured.")]
    return [
        heading,
        Table(("Confidence", "Groups whose label was right"), tuple(rows), "lr"),
        paragraph(
            "On real runs with an answer key and on runs with planted faults; {} measures it again.", Code("make accuracy")
        ),
    ]
