"""Write the title and the eleven chapters of a diagnosis: what was read, the numbers, the failure groups, the tasks."""

from __future__ import annotations

from collections.abc import Callable

from blade import hostile, number_format
from blade.model import Cause, Confidence, Judgement, Level, Measure, Report, RewardKind, TaskResult
from blade.report import first_page, printed_names, queried_numbers
from blade.report.blocks import Badge, Block, Bullets, Code, Figure, Line, Para, Quote, Section, Span, para
from blade.report.charts import MAX_RUNS
from blade.report.phrases import LABELS, code, explained, heading, joined, line, name, named, paragraph, table
from blade.report.printed_names import EFFORTS, QUANTITIES
from blade.report.queried_numbers import Cited, between, count, number, percent, said, select, whole
from blade.report.row_addresses import left_out, place, task_name, to_read
from blade.report.run_facts import Facts, facts

Runs = tuple[Facts, ...]
Figures = tuple[Figure, ...]
NO_RUN = para("No run was read.")


def title(report: Report) -> str:
    """`<Benchmark or run name> BLADE Analysis Report`."""
    benchmarks = {run.benchmark for run in report.runs}
    shared = benchmarks.pop() if len(benchmarks) == 1 else None
    names = [hostile.line(run.name, 60) for run in report.runs]
    runs = number_format.listing(names) if 0 < len(names) <= 3 else number_format.count(len(names), "run")
    return f"{hostile.line(shared or '', 80) or runs} BLADE Analysis Report"


def chapters(report: Report, figures: Figures = ()) -> tuple[Section, ...]:
    """The eleven sections, in the order that readers of BLADE reports expect."""
    runs = facts(report)
    no_summary = para("No run was read, so there is nothing to summarise.")
    contents = {
        "Executive Summary": _each(runs, first_page.blocks, no_summary),
        "Artifact Inventory": artifact_inventory(report, runs),
        "Aggregate Results": _each(runs, lambda run: [
            *_measures(run), *_health(run), *_compared(run), *_slices(run), *_effort(run), *named(figures, "tokens", run.run.name),
        ]),
        "Workflow Funnel": _each(runs, lambda run: workflow_funnel(run, figures)),
        "Task Outcome Buckets": task_outcome_buckets(runs, figures),
        "Dominant Failure Modes": _each(runs, lambda run: dominant_failure_modes(run, figures)),
        "Sometimes-Pass Deep Dives": _each(runs, lambda run: deep_dives(run, "sometimes", "No task passes in some repeats only.")),
        "Never-Pass Deep Dives": _each(runs, lambda run: deep_dives(run, "never", "Every task passes at least once.")),
        "Cross-Model Comparison": cross_model(report, runs, figures),
        "Recommendations": _each(runs, recommendations),
        "Reproducibility Notes": reproducibility(report, runs, figures),
    }  # fmt: skip
    return tuple(Section(name, tuple(blocks)) for name, blocks in contents.items())


def _each(runs: Runs, blocks_of: Callable[[Facts], list[Block]], none: Block = NO_RUN) -> list[Block]:
    """The blocks of each run, under its name where there are several."""
    blocks: list[Block] = []
    for run in runs:
        blocks += [heading(code(run.run.name))] if len(runs) > 1 else []
        blocks += blocks_of(run)
    return blocks or ([] if runs else [none])


# ---- Artifact Inventory --------------------------------------------------------------------------

MAX_FILES = 30


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
    identity = {"Run": run.name, "model": run.model, "agent": run.agent, "benchmark": run.benchmark}
    stated: list[Line] = [(f"{what} ", code(name, 200)) for what, name in identity.items() if name]
    unstated = ", ".join(what for what, name in identity.items() if not name)
    return paragraph("{}{}.", joined(stated, last=", "), f"; not stated: {unstated}" if unstated else "")


def _sources(facts: Facts) -> Block:
    query = facts.entry("runs", facts.run)
    rows: list[tuple[Span | Line, ...]] = []
    for position, source in enumerate(facts.run.sources[:MAX_FILES]):
        of = Cited(source, f"{query}.sources[{position}]")
        digest = Code(source.sha256) if source.sha256 else "not hashed"
        rows.append((code(source.path, 300), of.whole("rows"), of.whole("bytes"), digest))
    if (left := len(facts.run.sources) - MAX_FILES) > 0:
        more = count(left, "file", f"{query}.sources.count - {MAX_FILES}")
        rows.append((line("… {} more, all in report.json", more), "", "", ""))
    return table("Rollouts file|Rows|Bytes|SHA-256", "lrrl", rows)


def _artifacts(facts: Facts) -> list[Block]:
    """The files beside the rollouts: those that are there with their path, the others by name."""
    artifacts = facts.run.artifacts
    if not artifacts:
        return []
    there: list[Line] = [(code(file.path, 300),) for file in artifacts if file.present and file.kind != "rollouts"]
    absent = ", ".join(hostile.line(file.kind, 60) for file in artifacts if not file.present)
    beside = line("Beside it: {}. ", joined(there[:MAX_FILES])) if there else ()
    return [para(*beside, *((f"Not there: {absent}.",) if absent else ()))]


def _counts(facts: Facts) -> Block:
    """expected = scored + failed + masked + lost, and whatever else was counted."""
    run, counts = facts.run, facts.run.coverage

    def counted(name: str, words: str) -> Line:
        return (whole(getattr(counts, name), facts.counted(name)), f" {words}")

    parts = [counted(name, name) for name in ("scored", "failed", "masked", "lost")]
    more = [counted(name, words) for name, words in LABELS["odd rows"].items() if getattr(counts, name)]
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
        items: list[Line] = [(said(text, f"{query}[{position}]", 300),) for position, text in enumerate(known.inferred)]
        blocks.append(paragraph("Inferred from the rows, since no file says so: {}.", joined(items, "; ", "; ")))
    return blocks


# ---- Aggregate Results ---------------------------------------------------------------------------

MAX_ROWS = 30
MAX_SLICES = 12
LEVEL = 0.05
TRIES = ("pass_at_k", "pass_hat_k", "best_of_k", "worst_of_k", "majority_at_k")
HEADLINES = {"pass_at_1", "pass_at_1_micro", "mean_reward", *TRIES}
TONES = {Level.PROBLEM: "bad", Level.WARNING: "warning", Level.INFO: "quiet"}
SAME_AS_PASS_AT_1 = (("pass_at_k", 1), ("pass_hat_k", 1))


def _health(facts: Facts) -> list[Block]:
    """Counts about the evaluation itself that a reader of the score should know."""
    flags = [flag for flag in facts.listed("health") if flag.noun.level is not Level.INFO][:MAX_ROWS]
    rows = [(Badge(flag.noun.level.value, TONES[flag.noun.level]), flag.said("text", 900)) for flag in flags]
    return [heading("Health"), table("Level|What was seen", "ll", rows)] if rows else []


def _measures(facts: Facts) -> list[Block]:
    rows = [
        (
            printed_names.label(m) if m.name in QUANTITIES else Code(printed_names.label(m)),
            printed_names.with_interval(m, facts.is_rate), printed_names.n_of(m), printed_names.meaning(m),
        ) for m in _headlines(facts)
    ]  # fmt: skip
    if not rows:
        return [para("No measure could be computed: no rollout was scored.")]
    return [table("Measure|Value, 95% interval|n|What it is", "lrrl", rows), Para(explained("measures"))]


def _headlines(facts: Facts) -> list[Measure]:
    """The measures that a reader asks for first; of those that count tries the usual number of them."""
    usual = {name: facts.at_most_k(name) for name in TRIES}
    micro, score, run = facts.measure("pass_at_1_micro"), facts.score.value, facts.run
    left = {"pass_at_1_micro"} if micro is None or score is None or abs((micro.value or 0.0) - score) < 1e-9 else set()
    # rewards of 0 and 1 at a threshold of 1 make the mean reward the pass rate, which stands there already
    is_same = facts.is_rate and run.reward_kind is RewardKind.BINARY and run.pass_threshold == 1
    left |= {"mean_reward"} if is_same else set()
    shown = [
        m for m in facts.measures if m.name in HEADLINES - left and m.slice is None and m.value is not None
        and (m.name, m.k) not in SAME_AS_PASS_AT_1 and (m.k is None or m is usual.get(m.name))
    ]  # fmt: skip
    order = list(QUANTITIES)
    shown.sort(key=lambda m: (order.index(m.name), m.k or 0))
    # of tasks known by their prompt
    parts = [m for m in facts.measures if m.name in ("pass_at_k", "pass_hat_k") and m.slice is not None]
    most = max((m.k or 0 for m in parts), default=0)
    return [*shown, *(m for m in parts if m.k == most > 1)]


def _compared(facts: Facts) -> list[Block]:
    rows = [
        (code(of.noun.name), of.number("reported"), of.number("ours"), of.said("explanation", 240), code(of.noun.file, 300))
        for of in facts.listed("compared", MAX_ROWS)
    ]
    every = f"{queried_numbers.entry('compared', run=facts.run.name)}.count"
    return [
        heading("Reported by the evaluation itself"),
        table("Number|Reported|Ours|Why they agree or differ|File", "lrrll", rows),
        *left_out(len(facts.compared), len(rows), "number", every),
    ] if rows else []  # fmt: skip


def _slices(facts: Facts) -> list[Block]:
    """Every value of the fields in which some value differs from the rest beyond chance."""
    telling = {piece.field for piece in facts.slices if piece.p_adjusted is not None and piece.p_adjusted <= LEVEL}
    pieces = [piece for piece in facts.listed("slices") if piece.noun.field in telling]
    if not pieces:
        return []
    rows = [
        (
            code(of.noun.field, 60), code(of.noun.value, 60),
            (of.percent("pass_rate"), *between(of.percent("low"), of.percent("high"))),
            of.percent("rest"), of.count("n_tasks", "task"), of.p_number("p_adjusted"),
        ) for of in pieces[:MAX_SLICES]
    ]  # fmt: skip
    return [
        heading("Pass rate by field"),
        Para(explained("fields")),
        table("Field|Value|Pass rate, 95% interval|Other tasks|n|p adjusted", "llrrrr", rows),
        *left_out(len(pieces), len(rows), "slice"),
    ]


def _effort(facts: Facts) -> list[Block]:
    """What rollouts cost, passing beside failing."""
    parts: list[Line] = []
    for effort, label in EFFORTS.items():
        by = {m.slice: m for m in facts.measures if m.name == effort and m.value is not None}
        if "passed" in by and "failed" in by:
            parts.append((f"{label} ", printed_names.value(by["passed"]), " and ", printed_names.value(by["failed"])))
    return [Para(explained("effort", joined(parts, last=", ")))] if parts else []


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
    funnel = facts.cited("funnels", facts.funnel)
    rows = [_stage(facts, funnel, position) for position in range(len(facts.funnel.stages))]
    header = f"Stage ({hostile.line(facts.funnel.source, 60).replace('|', '/')})|Reached|Of rollouts|Share"
    return [table(header, "lrrr", rows), *named(figures, "funnel", facts.run.name)]


def _stage(facts: Facts, funnel: Cited, position: int) -> tuple[Span | Line, ...]:
    run, of, stage = facts.run.name, f"{funnel.query}.stages[{position}]", funnel.noun.stages[position]
    query, share = f"{of}.reached", f"{of}.reached / {of}.of"
    if funnel.noun.source == "inferred" and stage.name in STAGES:
        holds = STAGES[stage.name].format(run=f"run = {queried_numbers.quoted(run)}")
        query = select("count(distinct (task, repeat))", "rollouts", run, f"({holds})")
        share = select(f"({query}) / expected", "runs", run)
    return (
        name(hostile.line(stage.name, 80)), whole(stage.reached, query), whole(stage.of, facts.counted("expected")),
        percent(stage.reached / stage.of if stage.of else None, share),
    )  # fmt: skip


# ---- Task Outcome Buckets ------------------------------------------------------------------------


def task_outcome_buckets(runs: Runs, figures: Figures) -> list[Block]:
    """Tasks by what their repeats did, and how sure that is."""
    blocks: list[Block] = [] if any(map(_is_misindexed, runs)) else [*named(figures, "buckets", None)]
    if figures and len(runs) > MAX_RUNS:
        blocks.append(para("Only the first runs have figures of their own."))
    return blocks + _each(runs, lambda run: _buckets(run, figures))


def _is_misindexed(facts: Facts) -> bool:
    return any(entry.level == "alarm" and entry.label is Cause.DATA_ARTIFACT for entry in facts.trust)


def _buckets(facts: Facts, figures: Figures) -> list[Block]:
    run = facts.run
    shown: Block = para("There is no pass rate, so tasks cannot be put into buckets.")
    if run.has_pass_rate and _is_misindexed(facts):
        return [para("The task index does not identify tasks (see the first page), so buckets by index are not shown.")]
    if run.has_pass_rate:
        rows = []
        for name, meaning in LABELS["buckets"].items():
            n = len(getattr(facts.buckets, name))
            share = select(f"avg(cast(bucket = {queried_numbers.quoted(name)} as int))", "tasks", run.name)
            part = percent(n / run.n_tasks if run.n_tasks else None, share)
            rows.append((name, whole(n, in_bucket(facts, name)), part, meaning))
        shown = table("Bucket|Tasks|Share of tasks|What it means", "lrrl", rows)
    return [shown, *named(figures, "tasks", run.name)]


def in_bucket(facts: Facts, name: str) -> str:
    """The query that counts the tasks of a bucket."""
    return select("count(*)", "tasks", facts.run.name, f"bucket = {queried_numbers.quoted(name)}")


# ---- Dominant Failure Modes ----------------------------------------------------------------------

MAX_GROUPS = 4  # at length; the first page names them all
MAX_JUDGEMENTS = 40


def dominant_failure_modes(facts: Facts, figures: Figures) -> list[Block]:
    """The groups one by one, the largest first, and what people and agents judged."""
    blocks: list[Block] = []
    for rank, group in enumerate(facts.groups[:MAX_GROUPS], 1):
        name = facts.cited("groups", group).said("name", 120)
        blocks += [heading(f"{rank}. ", name, f" ({group.label.value})"), *first_page.group_blocks(facts, group)]
    every = f"{queried_numbers.entry('groups', run=facts.run.name)}.count"
    return [
        *(blocks or [para("No failure group was found.")]),
        *left_out(len(facts.groups), min(len(facts.groups), MAX_GROUPS), "group", every),
        *named(figures, "losses", facts.run.name), *judgements(facts),
    ]  # fmt: skip


def judgements(facts: Facts) -> list[Block]:
    """The judgements of a run, and the agreement of their authors with the engine and one another."""
    if not facts.judgements:
        return []
    entries, every = facts.judgements, f"engine.judgements[{facts.run.name!r}]"
    authors: list[Line] = [(Code(name),) for name in sorted({hostile.line(entry.by, 60) for entry in entries})]
    blocks: list[Block] = [
        heading("Judgements"),
        Para(explained("judgements", count(len(entries), "judgement", f"{every}.count"), joined(authors))),
        table("Task|Cause|Engine|By|On|What happened", "llllll", (_judgement(facts, entry) for entry in entries[:MAX_JUDGEMENTS])),
        *left_out(len(entries), MAX_JUDGEMENTS, "judgement", f"{every}.count"),
    ]  # fmt: skip
    if not facts.agreements:
        return blocks
    rows = [
        (
            line("{} and {}", code(of.noun.first, 60), code(of.noun.second, 60)), of.whole("n"),
            line("{} of {}", of.whole("agreed"), of.whole("n")), of.number("kappa"),
        ) for of in facts.listed("agreements")
    ]  # fmt: skip
    return [*blocks, Para(explained("kappa")), table("Between|Tasks|Same label|Kappa", "lrrr", rows)]


def _judgement(facts: Facts, entry: Judgement) -> tuple[Span | Line, ...]:
    cause = facts.attribution.get(entry.task)
    engine = cause.proposed if cause is not None and cause.proposed is not None else entry.proposed
    return (
        code(place(entry.task, entry.repeat), 60), printed_names.named(entry.cause),
        engine.value if engine is not None else number_format.NONE, code(entry.by, 60), Code(entry.at[:10]),
        facts.judgement(entry).said("mechanism", 200),
    )  # fmt: skip


# ---- Deep Dives ----------------------------------------------------------------------------------

MAX_TASKS = 5  # tasks of a table


def deep_dives(facts: Facts, bucket: str, none: str) -> list[Block]:
    """The tasks of a bucket, those first that lose most points."""
    if not facts.run.has_pass_rate:
        return [para("No threshold says what passes, so tasks are in no bucket.")]
    tasks = [task for task in facts.tasks if task.bucket == bucket]
    if not tasks:
        return [para(none)]
    tasks.sort(key=lambda task: -(facts.attribution[task.task].lost if task.task in facts.attribution else 0.0))
    rows = [_task(facts, task) for task in tasks[:MAX_TASKS]]
    shown = table("Task|Passed|Label|What its rollouts show|Read", "lrlll", rows)
    return [shown, *left_out(len(tasks), len(rows), "task", in_bucket(facts, bucket))]


def _task(facts: Facts, task: TaskResult) -> tuple[Span | Line, ...]:
    where = f"task = {queried_numbers.quoted(task.task)}"
    passed, n = (
        whole(number, select(name, "tasks", facts.run.name, where))
        for number, name in ((task.passed or 0, "passes"), (task.n, "n"))
    )
    cause = facts.attribution.get(task.task)
    label: Span = printed_names.badge(cause.cause) if cause else number_format.NONE
    shows = facts.cited("attributions", cause).said("mechanism", 280) if cause else ""
    repeats = " ".join(place(task.task, repeat) for repeat in to_read(task)[:2])
    return task_name(task.task, task.task_name), (passed, " of ", n), label, shows, Code(repeats)


# ---- Cross-Model Comparison ----------------------------------------------------------------------


def cross_model(report: Report, runs: Runs, figures: Figures = ()) -> list[Block]:
    """The runs side by side, then each candidate against the baseline."""
    if len(runs) < 2:
        return [para("There is one run, so there is nothing to compare.") if runs else NO_RUN]
    rows = [
        (
            code(run.run.name), code(run.run.model) if run.run.model else number_format.NONE, printed_names.label(run.score),
            printed_names.with_interval(run.score, run.is_rate), printed_names.n_of(run.score),
            whole(run.run.n_rollouts, run.n_rollouts), whole(run.run.coverage.repeats, run.counted("repeats")),
        ) for run in runs
    ]  # fmt: skip
    blocks: list[Block] = [
        table("Run|Model|Score is|Score, 95% interval|n|Rollouts|Repeats", "lllrrrr", rows),
        Para(explained("intervals of runs")),
    ]
    if len({run.run.score_name for run in runs}) > 1:
        blocks.append(para("The scores are of different kinds and must not be compared as they stand."))
    if report.comparisons:
        from blade.report import comparison_pages

        return [*blocks, *comparison_pages.cross_model(report, figures, "report.json")]
    tasks = [{task.task for task in run.tasks} for run in runs]
    in_all = f"select task from tasks group by task having count(distinct run) = {len(runs)}"
    keys = count(len(set.intersection(*tasks)), "task key", f"select count(*) from ({in_all})")
    of = whole(len(set.union(*tasks)), "select count(distinct task) from tasks")
    blocks.append(paragraph("{} of {} occur in every run.", keys, of))
    return [*blocks, paragraph("This report does not pair them; {} does.", Code("blade compare"))]


# ---- Recommendations -----------------------------------------------------------------------------

MAX_FIXES = 6


def recommendations(facts: Facts) -> list[Block]:
    """What to change, ranked: repairs of the measurement first, then by the points concerned."""
    rows = [
        (
            of.whole("rank"), of.said("action", 400), printed_names.badge(of.noun.cause), first_page.gain(facts, of.noun),
            of.length("tasks"),
        ) for of in facts.listed("recommendations", MAX_FIXES)
    ]  # fmt: skip
    if not rows:
        return [para("There is nothing to recommend: no failure group was found.")]
    return [table("Rank|Action|Label|Expected gain|Tasks", "rlllr", rows), Para(explained("gains"))]


# ---- Reproducibility Notes -----------------------------------------------------------------------

MAX_SKIPPED = 20
MAX_SETTINGS = 12
MAX_NAMES = 8  # of gaps with the same reason


def reproducibility(report: Report, runs: Runs, figures: Figures) -> list[Block]:
    """Version, command, inputs, settings, thresholds, what was skipped, what is unsaid, how right."""
    same, drawn = explained("same bytes"), "" if figures else " No figures were drawn."
    blocks: list[Block] = [para(*made_by(report).line, *same, drawn)]
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
    for position, entry in enumerate(report.skipped[:MAX_SKIPPED]):
        of = Cited(entry, f"engine.skipped[{position}]")
        where = of.whole("line") if entry.line is not None else "whole file"
        rows.append((code(entry.file, 120), where, of.said("reason", 200)))
    query = "engine.skipped_total" if total == report.skipped_total else "engine.skipped.count"
    more = f" The first are shown; {file} lists more of them." if total > len(rows) else ""
    return [paragraph("Skipped: {}.{}", _unread(total, query), more), table("File|Line|Why", "lrl", rows)]


def gaps(report: Report, file: str = "report.json", counted: bool = True) -> list[Block]:
    """What the report cannot say, by the reason; `counted` says how many gaps there are."""
    if not report.gaps:
        return [para("No gap was recorded.")]
    by_why: dict[str, list[Cited]] = {}
    for gap in report.gaps:
        query = queried_numbers.chosen("engine.gaps", report.gaps, gap, "what", "why")
        by_why.setdefault(gap.why, []).append(Cited(gap, query))
    items: list[Line] = []
    for group in list(by_why.values())[:MAX_ROWS]:
        what: list[Line] = [(of.said("what", 300),) for of in group[:MAX_NAMES]]
        more: Line = (f"; … more in {file}",) if len(group) > MAX_NAMES else ()
        items.append((*joined(what, "; ", "; "), *more, ": ", group[0].said("why", 400)))
    n = line(" ({})", count(len(report.gaps), "gap", "engine.gaps.count")) if counted else ()
    return [
        paragraph("What this report cannot say{}, by what is missing:", n),
        Bullets(tuple(items)),
        *left_out(len(by_why), len(items), "gap", file=file),
    ]


def accuracy(report: Report) -> list[Block]:
    """How many labels of each confidence were right, or that this was never measured."""
    card = (report.accuracy or {}).get("confidence", {})
    rows: list[tuple[Span | Line, ...]] = []
    for word in map(str, Confidence):  # the surest first
        if word in card:
            query = f"engine.accuracy['confidence'][{word!r}]"
            right, n = (whole(card[word][name], f"{query}[{name!r}]") for name in ("right", "n"))
            rows.append((word, (right, " of ", n)))
    measured = "On real runs with an answer key and on runs with planted faults; {} measures it again."
    blocks: list[Block] = [para("How often such labels are right was not measured.")]
    if rows:
        blocks = [table("Confidence|Groups whose label was right", "lr", rows), paragraph(measured, Code("make accuracy"))]
    return [heading("How right are these labels"), *blocks]
