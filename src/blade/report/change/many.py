"""Tell several runs at once: candidates side by side, every pair, what they cost, who solves what."""

from __future__ import annotations

from collections.abc import Sequence

from blade import hostile
from blade.model import Comparison, Matrix, Placed, Report
from blade.report import places, words
from blade.report.change import words as say
from blade.report.change.names import apart
from blade.report.change.sentences import note_told, plain, sentence
from blade.report.change.series import series
from blade.report.change.terms import ranked
from blade.report.change.verdict import pair
from blade.report.change.words import NEW, THESE, Scale
from blade.report.sections import (
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

MAX_PAIRS = 12  # runs of a matrix that is printed
MAX_ROWS = 30
NAME = 32  # characters of a candidate in the overview; the list under it has more


def overview(comparisons: Sequence[Comparison]) -> list[Block]:
    """One row per candidate: both verdicts and the change on new tasks; then what is claimed of each."""
    # Numbers first and names short: a column that has to be scrolled to is not read.
    names = apart([one.candidate for one in comparisons], NAME)
    rows = tuple(_candidate(one, name) for one, name in zip(comparisons, names, strict=True))
    header = ("Candidate", "Score", "Change, 95%", "p, adjusted", "These tasks", "New tasks", "Tasks")
    baseline = comparisons[0].baseline
    n = words.count(len(comparisons), "candidate")
    return [
        para(f"{n} against ", say.run(baseline), f" ({_baseline_score(comparisons[0])})."),
        Table(header, rows, "lrrrllr"),
        para(
            "Change, in points of score, and p are for new tasks like these. Adjusted p: Holm's correction "
            "over all candidates held against this baseline. Intervals are for each candidate alone."
        ),
        Bullets(tuple((say.run(one.candidate), ": ", first_claim(one), ".") for one in comparisons)),
    ]


def _baseline_score(one: Comparison) -> str:
    scale = say.scale(one.score_name)
    return f"{scale.level(one.score_baseline)} {say.score_label(one.score_name)}"


def _candidate(one: Comparison, name: str) -> tuple[Line, ...]:
    scale, found = say.scale(one.score_name), say.test_of(one, NEW)
    if one.refused is not None:
        return cells(Code(name), *[words.NONE] * 3, "not compared", words.NONE, "0")
    change = scale.with_interval(found.estimate, found.low, found.high) if found else words.NONE
    return cells(
        Code(name),
        scale.level(one.score_candidate),
        change.replace(" points", ""),
        f"{words.p_number(found.p if found else None)}, {words.p_number(one.p_adjusted_new)}",
        say.verdict_told(one, THESE),
        say.verdict_told(one, NEW),
        words.whole(say.n_common(one)),
    )


def first_claim(one: Comparison) -> str:
    """The first mover in a few words, and how many there are."""
    if one.refused is not None:
        return f"not compared: {plain(sentence(one.refused, 200, pair(one))).removesuffix('.')}"
    if one.identical:
        return "the same rows"
    mover = next(iter(ranked(one.movers)), None)
    if mover is None:
        return "no cause is claimed"
    scale = say.scale(one.score_name)
    mark = "mechanical: " if mover.mechanical else ""
    more = len(one.movers) - 1
    also = f", and {words.count(more, 'further claim')}" if more else ""
    return f"{mark}{say.term(mover.term, 60)}, {scale.change(mover.value)}{also}"


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
        said = f"{n:,} runs make {n * (n - 1) // 2:,} pairs; they stand in {file}"
        return [para(f"{said} (n = {say.tasks(found.n_tasks)}).")]
    header = ("", "Run", *(f"against {at}" for at in range(1, n + 1)))
    rows = []
    for at, run in enumerate(found.runs):
        told = [
            words.NONE if at == other else _pair(found, at, other, scale) for other in range(len(found.runs))
        ]
        rows.append(cells(str(at + 1), say.run(run, 60), *told))
    return [
        para(
            "The run of the row against the run of the column, over the tasks that both have and for new "
            "tasks like these: the change in points of score, the verdict, and p adjusted over all pairs."
        ),
        Table(header, tuple(rows), "rl" + "r" * n),
    ]


def _pair(found: Matrix, at: int, other: int, scale: Scale) -> Line:
    word = found.verdicts[at][other]
    change = scale.change(found.deltas[at][other]).removesuffix(" points")
    return (f"{change} ", say.verdict(word or None), f" p {_p(found.p_adjusted[at][other])}")


def _p(value: float | None) -> str:
    said = words.p_number(value)
    return said if said[0] in "<>–" else f"= {said}"


def _placed(found: Matrix, scale: Scale, figures: tuple[Figure, ...]) -> list[Block]:
    costs = any(one.cost is not None for one in found.placed)
    tokens = any(one.tokens is not None for one in found.placed)
    if not found.placed or not (costs or tokens):
        return []
    rows = tuple(_place(one, scale, costs, tokens) for one in found.placed[:MAX_ROWS])
    header = ("Run", "Score", *(("Cost (USD)", "Front") * costs), *(("Output tokens", "Front") * tokens))
    return [
        Heading(("Score against what it costs",)),
        para(
            f"Means of a rollout; scores over the {say.tasks(found.n_tasks)} that all runs have. On the "
            "front: no other run scores as much for less, or more for as much."
        ),
        Table(header, rows, "lr" + "rl" * costs + "rl" * tokens),
        *named(figures, "front", None),
    ]


def _place(one: Placed, scale: Scale, costs: bool, tokens: bool) -> tuple[Line, ...]:
    told: list[Span] = []
    if costs:
        told += [words.number(one.cost), _front(one.on_front_cost)]
    if tokens:
        told += [words.number(one.tokens), _front(one.on_front_tokens)]
    return cells(say.run(one.run), scale.level(one.score), *told)


def _front(on: bool | None) -> Span:
    return Badge("on the front", "good") if on else "dominated" if on is not None else "not reported"


def _solved(found: Matrix) -> list[Block]:
    """Tasks that tell the runs apart, and those that tell nothing."""
    own = sorted(found.only_one.items(), key=lambda one: (-len(one[1]), one[0]))
    rows = [
        cells(
            ("only ", say.run(run, 60)),
            words.whole(len(keys)),
            words.number(found.expected_alone.get(run)),
            _surest(found, run, keys),
        )
        for run, keys in own
        if keys
    ][:MAX_ROWS]
    rows += [
        cells(who, words.whole(len(keys)), words.NONE, _keys(keys))
        for who, keys in (("no run", found.none_solves), ("every run", found.all_solve))
    ]
    header = ("Solved at least once by", "Tasks", "By chance", "First tasks (passes of repeats)")
    return [
        Heading(("Who solves what",)),
        Table(header, tuple(rows), "lrrl"),
        para(
            f"Of {say.tasks(found.n_tasks)}. By chance: tasks that only this run would solve if the passes "
            "of each task fell to the runs at random."
        ),
        *([Bullets(tuple(note_told(note, found.runs) for note in found.notes))] if found.notes else []),
    ]


def _surest(found: Matrix, run: str, keys: Sequence[str]) -> Line:
    """The tasks of a run that chance explains least, with their counts."""
    told = [one for one in found.alone if one.run == run][: places.MAX_IDS]
    if not told:
        return _keys(keys)
    line: list[Span] = []
    for at, one in enumerate(told):
        line += [", " if at else "", Code(hostile.line(one.task, 60)), f" {one.passes}/{one.repeats}"]
    left = len(keys) - len(told)
    return (*line, f" and {left:,} more") if left > 0 else tuple(line)


def _keys(keys: Sequence[str]) -> Line:
    return places.names(keys) if keys else (words.NONE,)


def _settings(found: Matrix) -> list[Block]:
    if not found.settings:
        return []
    shown = found.settings[:MAX_ROWS]
    items = tuple(
        (Code(hostile.line(key, 80)), ": ", *sentence(text, names=found.runs)) for key, text in shown
    )
    return [Heading(("What the runs together say of the settings",)), Bullets(items)]
