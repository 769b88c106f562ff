"""Lay comparisons out as pages: compare.md by topic or by candidate, several runs and checkpoints side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from blade import number_format
from blade.model import Comparison, Matrix, Placed, Report, Series
from blade.report import comparison_terms as terms
from blade.report import comparison_words as say
from blade.report.blocks import Badge, Block, Bullets, Figure, Line, Para, Section, Span, Strong, para
from blade.report.chapters import gaps, made_by, settings, skipped
from blade.report.comparison_verdict import comparability, gate, refusal, verdict
from blade.report.comparison_words import ALPHA, NEW, THESE, apart, cited, middle, sentence
from blade.report.phrases import code, explained, heading, line, name, named, paragraph, table
from blade.report.queried_numbers import Cited, count, num, p_value, whole
from blade.report.row_addresses import MAX_IDS, and_more, left_out, names
from blade.report.run_facts import facts

FILE = "compare.json"
MAX_TOLD = 8  # candidates told in full; all stand in the overview and on the wire

METHODS = Path(__file__).with_name("comparison_methods.txt")  # how the numbers of a comparison are made, in words


def title(report: Report) -> str:
    """`BASELINE → CANDIDATE BLADE Comparison Report`."""
    comparisons = report.comparisons
    if not comparisons:
        return "BLADE Comparison Report"
    baseline, *names = apart([comparisons[0].baseline, *(pair.candidate for pair in comparisons)], 60)
    candidates = number_format.listing(names) if len(names) <= 3 else number_format.count(len(names), "candidate")
    return f"{baseline} → {candidates} BLADE Comparison Report"


def chapters(report: Report, figures: tuple[Figure, ...] = ()) -> tuple[Section, ...]:
    """The sections of compare.md: of one pair by topic, of several candidates by candidate."""
    comparisons = report.comparisons
    sections: dict[str, list[Block]] = {}
    if not comparisons:
        sections["Verdict"] = [para("No pair of runs was compared.")]
    elif len(comparisons) == 1:
        sections = topics(comparisons[0], report, figures, FILE)
    else:
        sections["Verdict"] = overview(report, FILE)
        for place, pair in enumerate(comparisons[:MAX_TOLD], 1):
            sections[f"Candidate {place}: {middle(pair.candidate, 60)}"] = _under_headings(pair, report, figures, FILE)
    if many := many_runs(report, figures, FILE):
        sections["Many Runs"] = many
    if report.gate is not None:
        sections["Gate"] = gate(report.gate)
    sections["Reproducibility Notes"] = _reproducibility(report, figures)
    return tuple(Section(name, tuple(blocks)) for name, blocks in sections.items())


def topics(comparison: Comparison, report: Report, figures: tuple[Figure, ...], file: str) -> dict[str, list[Block]]:
    """What there is to say of one pair, by topic."""
    first = {"Verdict": verdict(comparison, report)}
    if comparison.refused is not None:
        return {**first, "Comparability": comparability(comparison, file)}
    return {
        **first,
        "What Moved It": terms.what_moved_it(comparison, report, figures, file),
        "Comparability": comparability(comparison, file),
        "Further Views": terms.further_views(comparison, file),
        "Tasks That Moved": terms.tasks_that_moved(comparison, report, figures, file),
        "What Else Changed": terms.what_else_changed(comparison, file),
    }


def _under_headings(
    comparison: Comparison, report: Report, figures: tuple[Figure, ...], file: str, named: bool = False
) -> list[Block]:
    """The same topics under headings, for a section that holds more than one; `named` says of which pair."""
    of = line(" ({})", say.both(comparison)) if named else ()
    parts = topics(comparison, report, figures, file)
    return [block for topic, blocks in parts.items() for block in (heading(topic, *of), *blocks)]


def cross_model(report: Report, figures: tuple[Figure, ...], file: str) -> list[Block]:
    """All comparisons of a report as one section: an overview where there are several, then each pair."""
    comparisons, is_many = report.comparisons, len(report.comparisons) > 1
    blocks = overview(report, file) if is_many else []
    for comparison in comparisons[:MAX_TOLD]:
        blocks += _under_headings(comparison, report, figures, file, named=is_many)
    blocks += many_runs(report, figures, file)
    return blocks + ([heading("Gate"), *gate(report.gate)] if report.gate is not None else [])


def _reproducibility(report: Report, figures: tuple[Figure, ...]) -> list[Block]:
    blocks: list[Block] = [
        made_by(report),
        para(*explained("same bytes of pairs"), "" if figures else " No figures were drawn."),
        heading("How the numbers are made"),
        Bullets(tuple((text,) for text in METHODS.read_text(encoding="utf-8").splitlines())),
    ]
    for run in facts(report):
        blocks += [heading(code(run.run.name)), *settings(run, FILE)]
    return [*blocks, *skipped(report, FILE), *gaps(report, FILE, counted=False)]


# ---- Several candidates --------------------------------------------------------------------------

NAME = 32  # characters of a candidate in the overview; the list under it has more


def overview(report: Report, file: str) -> list[Block]:
    """One row per candidate: both verdicts and the change on new tasks; then what is claimed of each."""
    # Numbers first and names short: a column that has to be scrolled to is not read.
    comparisons = report.comparisons
    names, first, every = apart([pair.candidate for pair in comparisons], NAME), comparisons[0], "engine.comparisons.count"
    rows = [_candidate(pair, name, report) for pair, name in zip(comparisons, names, strict=True)]
    return [
        paragraph(
            "{} against {} ({} {}).",
            count(len(comparisons), "candidate", every), say.run(first.baseline),
            say.score_of(first, report, "baseline"), say.score_label(first.score_name),
        ),
        table("Candidate|Score|Change, 95%|p, adjusted|These tasks|New tasks|Tasks", "lrrrllr", rows),
        Para(explained("candidates")),
        Bullets(tuple((say.run(pair.candidate), ": ", *first_claim(pair), ".") for pair in comparisons)),
        *left_out(len(comparisons), MAX_TOLD, "candidate", every, file),
    ]  # fmt: skip


def _candidate(pair: Comparison, name: str, report: Report) -> tuple[Span | Line, ...]:
    none = number_format.NONE
    if pair.refused is not None:
        return (code(name), *[none] * 3, "not compared", none, none)
    test = say.test_of(pair, NEW)
    of = say.tested(pair, test) if test is not None else None
    return (
        code(name), say.score_of(pair, report, "candidate"), of.estimate("estimate") if of else none,
        (of.p_number("p") if of else none, ", ", cited(pair).p_number("p_adjusted_new")),
        say.verdict_badge(pair, THESE), say.verdict_badge(pair, NEW), say.n_common(pair)[0],
    )  # fmt: skip


def first_claim(pair: Comparison) -> Line:
    """The first mover in a few words, and how many there are."""
    if pair.refused is not None:
        return ("not compared: ", *refusal(pair, 200)[:1])
    if pair.identical:
        return ("the same rows",)
    mover = next(iter(terms.ranked(pair.movers)), None)
    if mover is None:
        return terms.unclaimed(pair)
    more, every = len(pair.movers) - 1, f"{cited(pair).query}.movers.count"
    also: Line = (", and ", *count(more, "further claim", f"{every} - 1")) if more else ()
    mark = "mechanical: " if mover.mechanical else ""
    return (mark, *name(say.term(mover.term, 60)), ", ", terms.mover_of(pair, mover).change("value"), *also)


# ---- Every run against every other ---------------------------------------------------------------

MAX_PAIRS = 12  # runs of a matrix that is printed
MAX_LISTED = 30
LETTERS = "ABCDEFGHIJKL"  # what the runs of a printed matrix are called in its columns


def many_runs(report: Report, figures: tuple[Figure, ...], file: str) -> list[Block]:
    """The pairs, what each run costs, and which tasks only some of them solve; then the checkpoints."""
    blocks: list[Block] = []
    is_rate, matrix = say.is_rate(say.report_score_name(report)), report.matrix
    if matrix is not None:
        of = Cited(matrix, "engine.matrix", is_rate)
        blocks += [heading("Every run against every other"), *_pairs(matrix, of, file), *_placed(matrix, of, figures)]
        blocks += [*_solved(matrix, of), *_effects(matrix)]
    return blocks + (series(report.series, report, is_rate, figures, file) if report.series is not None else [])


def _pairs(matrix: Matrix, of: Cited, file: str) -> list[Block]:
    n = len(matrix.runs)
    if n > MAX_PAIRS:
        runs = count(n, "run", f"{of.query}.runs.count")
        return [paragraph(f"The pairs of {{}} are in {file} (n = {{}}).", runs, of.count("n_tasks", "task"))]

    def pair(row: int, column: int) -> Line:
        if row == column:
            return (number_format.NONE,)
        place = f"[{matrix.runs[row]!r}][{matrix.runs[column]!r}]"
        change = of.changed(matrix.deltas[row][column], f"{of.query}.deltas{place}")
        p = p_value(matrix.p_adjusted[row][column], f"{of.query}.p_adjusted{place}")
        return (change, " ", say.verdict(matrix.verdicts[row][column] or None), " ", *p)

    rows: list[tuple[Span | Line, ...]] = [
        (LETTERS[row], say.run(run, 60), *(pair(row, column) for column in range(n))) for row, run in enumerate(matrix.runs)
    ]
    header = "|".join(("", "Run", *(f"against {letter}" for letter in LETTERS[:n])))
    return [Para(explained("pairs")), table(header, "rl" + "r" * n, rows)]


def _placed(matrix: Matrix, of: Cited, figures: tuple[Figure, ...]) -> list[Block]:
    costs = any(run.cost is not None for run in matrix.placed)
    tokens = any(run.tokens is not None for run in matrix.placed)
    if not matrix.placed or not (costs or tokens):
        return []
    rows = [_place(of.entry("placed", run, "run"), run, costs, tokens) for run in matrix.placed[:MAX_LISTED]]
    header = "Run|Score" + "|Cost (USD)|Front" * costs + "|Output tokens|Front" * tokens
    return [
        heading("Score against what it costs"),
        Para(explained("front", of.count("n_tasks", "task"))),
        table(header, "lr" + "rl" * costs + "rl" * tokens, rows),
        *named(figures, "front", None),
    ]


def _place(of: Cited, run: Placed, costs: bool, tokens: bool) -> tuple[Span | Line, ...]:
    def front(on: bool | None) -> Span:
        return Badge("on the front", "good") if on else "dominated" if on is not None else "not reported"

    spans: list[Span] = [of.number("cost"), front(run.on_front_cost)] if costs else []
    spans += [of.number("tokens"), front(run.on_front_tokens)] if tokens else []
    return say.run(run.run), of.level("score"), *spans


def _solved(matrix: Matrix, of: Cited) -> list[Block]:
    """Tasks that tell the runs apart, and those that tell nothing."""
    rows: list[tuple[Span | Line, ...]] = []
    for run, keys in sorted(matrix.only_one.items(), key=lambda pair: (-len(pair[1]), pair[0])):
        if keys:
            every, chance = f"{of.query}.only_one[{run!r}].count", matrix.expected_alone.get(run)
            by_chance = num(number_format.number(chance), chance, f"{of.query}.expected_alone[{run!r}]")
            rows.append((("only ", say.run(run, 60)), whole(len(keys), every), by_chance, _surest(matrix, of, run, keys)))
    rows = rows[:MAX_LISTED]
    for who, member in (("no run", "none_solves"), ("every run", "all_solve")):
        keys = getattr(matrix, member)
        rows.append((who, of.length(member), number_format.NONE, names(keys, f"{of.query}.{member}.count")))
    return [
        heading("Who solves what"),
        table("Solved at least once by|Tasks|By chance|First tasks (passes of repeats)", "lrrl", rows),
        Para(explained("only in one run", of.count("n_tasks", "task"))),
        *say.note_bullets(of, matrix.runs),
    ]


def _surest(matrix: Matrix, of: Cited, run: str, keys: Sequence[str]) -> Line:
    """The tasks of a run that chance explains least, with their counts."""
    alone = [task for task in matrix.alone if task.run == run][:MAX_IDS]
    every = f"{of.query}.only_one[{run!r}].count"
    if not alone:
        return names(keys, every)
    entries = [of.entry("alone", task, "run", "task") for task in alone]
    shown = [line("{} {}/{}", code(task.noun.task, 60), task.whole("passes"), task.whole("repeats")) for task in entries]
    return and_more(shown, len(keys), every)


def _effects(matrix: Matrix) -> list[Block]:
    if not matrix.settings:
        return []
    every = f"engine.matrix(baseline={matrix.runs[0]!r})"  # their sentences go from the baseline to the others
    items = tuple(
        line("{}: {}", code(key), sentence(text, f"{every}.settings[{key!r}]", names=matrix.runs))
        for key, text in matrix.settings[:MAX_LISTED]
    )
    return [heading("What the runs together say of the settings"), Bullets(items)]


# ---- Checkpoints in order ------------------------------------------------------------------------

MAX_CHECKPOINTS = 60


def series(series: Series, report: Report, is_rate: bool, figures: tuple[Figure, ...], file: str) -> list[Block]:
    """The trend in a sentence, every checkpoint in a table, then the tasks that moved for good."""
    of = Cited(series, "engine.series", is_rate)
    points = [of.entry("checkpoints", checkpoint, "run") for checkpoint in series.checkpoints[:MAX_CHECKPOINTS]]
    rows = [(say.run(point.noun.run), point.level("score"), point.estimate("change"), point.p_number("p_adjusted")) for point in points]
    unknown = single_rollouts(series, report)
    return [
        heading("Checkpoints in order"),
        Para(trend(series, is_rate)),
        *named(figures, "series", None),
        table("Checkpoint|Score|Change from the first, 95% interval|Adjusted p", "lrrr", rows),
        *left_out(len(series.checkpoints), len(rows), "checkpoint", f"{of.query}.checkpoints.count", file),
        *([para(Strong("Learned and forgotten: "), *unknown)] if unknown else [
            Para(_moved("learned", "better", series.learned, series.n_learned)),
            Para(_moved("forgotten", "worse", series.forgotten, series.n_forgotten)),
        ]),
        *say.note_bullets(of, series.runs),
    ]  # fmt: skip


def trend(series: Series, is_rate: bool) -> Line:
    """The slope with its interval, and the first checkpoint that differs."""
    of = Cited(series, "engine.series", is_rate)
    n = line("n = {}, {}", of.count("n_tasks", "task"), count(len(series.runs), "checkpoint", f"{of.query}.runs.count"))
    if series.slope is None:
        text = line("No trend could be fitted ({}).", n)
    else:
        excludes_zero = series.low is not None and series.high is not None and not series.low <= 0 <= series.high
        is_clear = series.p is not None and series.p <= ALPHA and excludes_zero
        rises = "The score rises" if series.slope > 0 else "The score falls"
        text = line(
            "{}: {}{} a checkpoint, for new tasks like these ({}, {}).",
            Strong(rises if is_clear else "No trend is established"), of.change("slope"), of.interval(), of.p_value("p"), n,
        )  # fmt: skip
    if series.first_different is None:
        return (*text, " For new tasks like these, no checkpoint differs from the first beyond noise.")
    earliest = "{} The earliest that differs from the first for new tasks like these is {}."
    return line(earliest, text, say.run(series.first_different))


def single_rollouts(series: Series, report: Report) -> Line:
    """That nobody can tell which tasks were learned from one rollout of each; else nothing."""
    ends = series.runs[:1] + series.runs[-1:]
    repeats = [run.coverage.repeats for run in report.runs if run.name in ends]
    if series.learned or series.forgotten or not repeats or max(repeats) > 1:
        return ()
    text = "one try per task cannot show which tasks were learned or forgotten"
    for comparison in report.comparisons:
        churn = comparison.churn
        if churn is not None and {comparison.baseline, comparison.candidate} == set(ends):
            query = f"{cited(comparison).query}.churn"
            flipped = count(churn.n_up + churn.n_down, "task", f"{query}.n_up + {query}.n_down")
            return line(f"{text}; from the first checkpoint to the last {{}} flipped, some of them by chance.", flipped)
    return (f"{text}.",)


def _moved(member: str, word: str, tasks: Sequence[tuple[str, float]], n: int) -> Line:
    lead = Strong(f"{member.capitalize()}: ")
    if not tasks:
        return (lead, "no task that can be named with confidence.")
    query = f"engine.series.{member}"
    shown = [
        line("{} ({})", code(task, 60), num(number_format.probability(p), p, f"{query}[{task!r}]"))
        for task, p in tasks[:MAX_IDS]
    ]
    total, every = max(n, len(tasks)), f"{query}.count" if n < len(tasks) else f"engine.series.n_{member}"
    better = f"{{}}the last checkpoint is {word} at {{}} (posterior probability of each): {{}}."
    return line(better, lead, count(total, "task", every), and_more(shown, total, every))
