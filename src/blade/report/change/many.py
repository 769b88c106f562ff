"""Tell several runs at once: candidates side by side, every pair, what they cost, who solves what."""

from __future__ import annotations

from collections.abc import Sequence

from blade import hostile, number_format
from blade.model import Comparison, Matrix, Placed, Report
from blade.report import numbers, places, queries
from blade.report.blocks import (
    Badge,
    Block,
    Bullets,
    Code,
    Figure,
    Heading,
    Line,
    Span,
    Table,
    cells,
    named,
    para,
)
from blade.report.change import words as say
from blade.report.change.names import apart
from blade.report.change.sentences import note_told, sentence
from blade.report.change.series import series
from blade.report.change.terms import mover_query, ranked, unclaimed
from blade.report.change.verdict import pair
from blade.report.change.words import NEW, THESE, Scale

MAX_PAIRS = 12  # runs of a matrix that is printed
MAX_ROWS = 30
LETTERS = "ABCDEFGHIJKL"  # what the runs of a printed matrix are called in its columns
NAME = 32  # characters of a candidate in the overview; the list under it has more


def overview(report: Report) -> list[Block]:
    """One row per candidate: both verdicts and the change on new tasks; then what is claimed of each."""
    # Numbers first and names short: a column that has to be scrolled to is not read.
    comparisons = report.comparisons
    names = apart([one.candidate for one in comparisons], NAME)
    rows = tuple(_candidate(one, name, report) for one, name in zip(comparisons, names, strict=True))
    header = ("Candidate", "Score", "Change, 95%", "p, adjusted", "These tasks", "New tasks", "Tasks")
    first = comparisons[0]
    counted = numbers.count(len(comparisons), "candidate", "engine.comparisons.count")
    query = say.score_query(first, report, "baseline")
    score = say.scale(first.score_name).level(first.score_baseline, query)
    of = say.score_label(first.score_name)
    return [
        para(*counted, " against ", say.run(first.baseline), " (", score, f" {of})."),
        Table(header, rows, "lrrrllr"),
        para(
            "Change and p are for new tasks like these. Adjusted p: Holm's correction over all candidates "
            "compared with this baseline. Intervals are for each candidate alone."
        ),
        Bullets(tuple((say.run(one.candidate), ": ", *first_claim(one), ".") for one in comparisons)),
    ]


def _candidate(one: Comparison, name: str, report: Report) -> tuple[Line, ...]:
    scale, found = say.scale(one.score_name), say.test_of(one, NEW)
    if one.refused is not None:
        return cells(Code(name), *[number_format.NONE] * 3, "not compared", number_format.NONE, number_format.NONE)
    change: Line = (number_format.NONE,)
    p: Span = number_format.NONE
    if found is not None:
        query = say.test_query(one, found)
        change, p = scale.tested(found, query), numbers.p_number(found.p, f"{query}.p")
    return cells(
        Code(name),
        scale.level(one.score_candidate, say.score_query(one, report, "candidate")),
        change,
        (p, ", ", numbers.p_number(one.p_adjusted_new, f"{say.query(one)}.p_adjusted_new")),
        say.verdict_told(one, THESE),
        say.verdict_told(one, NEW),
        say.n_common(one)[0],
    )


def first_claim(one: Comparison) -> Line:
    """The first mover in a few words, and how many there are."""
    if one.refused is not None:
        why = sentence(one.refused, f"{say.query(one)}.refused", 200, pair(one))
        return ("not compared: ", *(why[:1] if why else ()))
    if one.identical:
        return ("the same rows",)
    mover = next(iter(ranked(one.movers)), None)
    if mover is None:
        return unclaimed(one)
    mark = "mechanical: " if mover.mechanical else ""
    moved = say.scale(one.score_name).change(mover.value, f"{mover_query(one, mover)}.value")
    more, every = len(one.movers) - 1, f"{say.query(one)}.movers.count"
    also: Line = (", and ", *numbers.count(more, "further claim", f"{every} - 1")) if more else ()
    return (mark, *numbers.name(say.term(mover.term, 60)), ", ", moved, *also)


def many_runs(report: Report, figures: tuple[Figure, ...], file: str) -> list[Block]:
    """The pairs, what each run costs, and which tasks only some of them solve; then the checkpoints."""
    blocks: list[Block] = []
    scale = say.scale(score_name(report))
    if report.matrix is not None:
        blocks += _matrix(report.matrix, scale, figures, file)
    if report.series is not None:
        blocks += series(report.series, report, scale, figures, file)
    return blocks


def score_name(report: Report) -> str:
    """Of the comparisons, else of the runs."""
    found = [one.score_name for one in report.comparisons] + [run.score_name for run in report.runs]
    return next(iter(found), "pass_at_1")


def _matrix(found: Matrix, scale: Scale, figures: tuple[Figure, ...], file: str) -> list[Block]:
    return [
        Heading(("Every run against every other",)),
        *_pairs(found, scale, file),
        *_placed(found, scale, figures),
        *_solved(found),
        *_settings(found),
    ]


def _pairs(found: Matrix, scale: Scale, file: str) -> list[Block]:
    n = len(found.runs)
    if n > MAX_PAIRS:
        runs = numbers.count(n, "run", "engine.matrix.runs.count")
        tasks = numbers.count(found.n_tasks, "task", "engine.matrix.n_tasks")
        return [para("The pairs of ", *runs, f" are in {file} (n = ", *tasks, ").")]
    header = ("", "Run", *(f"against {letter}" for letter in LETTERS[:n]))
    rows = [
        cells(
            LETTERS[row],
            say.run(run, 60),
            *(number_format.NONE if row == column else _pair(found, row, column, scale) for column in range(n)),
        )
        for row, run in enumerate(found.runs)
    ]
    return [
        para(
            "The run of the row against the run of the column, over the tasks that both have and for new "
            "tasks like these: the change, the verdict, and p adjusted over all pairs."
        ),
        Table(header, tuple(rows), "rl" + "r" * n),
    ]


def _pair(found: Matrix, row: int, column: int, scale: Scale) -> Line:
    place = f"[{found.runs[row]!r}][{found.runs[column]!r}]"
    change = scale.change(found.deltas[row][column], f"engine.matrix.deltas{place}")
    p = numbers.p_value(found.p_adjusted[row][column], f"engine.matrix.p_adjusted{place}")
    return (change, " ", say.verdict(found.verdicts[row][column] or None), " ", *p)


def _placed(found: Matrix, scale: Scale, figures: tuple[Figure, ...]) -> list[Block]:
    costs = any(one.cost is not None for one in found.placed)
    tokens = any(one.tokens is not None for one in found.placed)
    if not found.placed or not (costs or tokens):
        return []
    rows = tuple(
        _place(one, scale, costs, tokens, queries.chosen("engine.matrix.placed", found.placed, one, "run"))
        for one in found.placed[:MAX_ROWS]
    )
    header = ("Run", "Score", *(("Cost (USD)", "Front") * costs), *(("Output tokens", "Front") * tokens))
    return [
        Heading(("Score against what it costs",)),
        para(
            "Means of a rollout; scores over the ",
            *numbers.count(found.n_tasks, "task", "engine.matrix.n_tasks"),
            " that all runs have. On the front: no other run scores as much for less, or more for as much.",
        ),
        Table(header, rows, "lr" + "rl" * costs + "rl" * tokens),
        *named(figures, "front", None),
    ]


def _place(one: Placed, scale: Scale, costs: bool, tokens: bool, query: str) -> tuple[Line, ...]:
    told: list[Span] = []
    if costs:
        told += [numbers.number(one.cost, f"{query}.cost"), _front(one.on_front_cost)]
    if tokens:
        told += [numbers.number(one.tokens, f"{query}.tokens"), _front(one.on_front_tokens)]
    return cells(say.run(one.run), scale.level(one.score, f"{query}.score"), *told)


def _front(on: bool | None) -> Span:
    return Badge("on the front", "good") if on else "dominated" if on is not None else "not reported"


def _solved(found: Matrix) -> list[Block]:
    """Tasks that tell the runs apart, and those that tell nothing."""
    own = sorted(found.only_one.items(), key=lambda pair: (-len(pair[1]), pair[0]))
    rows = [
        cells(
            ("only ", say.run(run, 60)),
            numbers.whole(len(keys), f"engine.matrix.only_one[{run!r}].count"),
            numbers.number(found.expected_alone.get(run), f"engine.matrix.expected_alone[{run!r}]"),
            _surest(found, run, keys),
        )
        for run, keys in own
        if keys
    ][:MAX_ROWS]
    rows += [
        cells(who, numbers.whole(len(keys), f"{every}.count"), number_format.NONE, _keys(keys, f"{every}.count"))
        for who, keys, every in (
            ("no run", found.none_solves, "engine.matrix.none_solves"),
            ("every run", found.all_solve, "engine.matrix.all_solve"),
        )
    ]
    header = ("Solved at least once by", "Tasks", "By chance", "First tasks (passes of repeats)")
    notes = tuple(
        note_told(note, f"engine.matrix.notes[{place}]", found.runs) for place, note in enumerate(found.notes)
    )
    return [
        Heading(("Who solves what",)),
        Table(header, tuple(rows), "lrrl"),
        para(
            "Of ",
            *numbers.count(found.n_tasks, "task", "engine.matrix.n_tasks"),
            ". By chance: tasks that only this run would solve if the passes of each task fell to the runs "
            "at random.",
        ),
        *([Bullets(notes)] if notes else []),
    ]


def _surest(found: Matrix, run: str, keys: Sequence[str]) -> Line:
    """The tasks of a run that chance explains least, with their counts."""
    alone = [one for one in found.alone if one.run == run][: places.MAX_IDS]
    every = f"engine.matrix.only_one[{run!r}].count"
    if not alone:
        return _keys(keys, every)
    line: list[Span] = []
    for one in alone:
        query = queries.chosen("engine.matrix.alone", found.alone, one, "run", "task")
        passes, repeats = (
            numbers.whole(getattr(one, name), f"{query}.{name}") for name in ("passes", "repeats")
        )
        line += [", "] if line else []
        line += [Code(hostile.line(one.task, 60)), " ", passes, "/", repeats]
    left = len(keys) - len(alone)
    more: Line = (" and ", numbers.whole(left, f"{every} - {len(alone)}"), " more") if left > 0 else ()
    return (*line, *more)


def _keys(keys: Sequence[str], query: str) -> Line:
    return places.names(keys, query) if keys else (number_format.NONE,)


def _settings(found: Matrix) -> list[Block]:
    if not found.settings:
        return []
    shown = found.settings[:MAX_ROWS]
    every = f"engine.matrix(baseline={found.runs[0]!r})"  # their sentences go from the baseline to the others
    items = tuple(
        (
            Code(hostile.line(key, 80)),
            ": ",
            *sentence(text, f"{every}.settings[{key!r}]", names=found.runs),
        )
        for key, text in shown
    )
    return [Heading(("What the runs together say of the settings",)), Bullets(items)]
