"""Say what was read and how to read it again: the artifacts, the settings, the gaps."""

from __future__ import annotations

from blade import hostile
from blade.model import Report
from blade.report import numbers, places, queries
from blade.report.accuracy import accuracy
from blade.report.blocks import (
    Block,
    Bullets,
    Code,
    Figure,
    Heading,
    Line,
    Para,
    Quote,
    Table,
    cells,
    para,
)
from blade.report.facts import Facts

MAX_SKIPPED = 20
MAX_ROWS = 30
MAX_SETTINGS = 12
MAX_NAMES = 8  # of gaps with the same reason


def artifact_inventory(report: Report, runs: tuple[Facts, ...]) -> list[Block]:
    """The files of each run, what was counted in them, and the notes that lay beside them."""
    blocks: list[Block] = []
    if not runs:
        blocks.append(para("No run was read."))
    for facts in runs:
        if len(runs) > 1:
            blocks.append(Heading((Code(hostile.line(facts.run.name, 80)),)))
        blocks += [_identity(facts), _sources(facts), *_artifacts(facts), _counts(facts)]
        blocks += _inferred(report, facts)
        for note in facts.run.notes:
            blocks.append(Quote(("A note left beside the run",), hostile.quoted(note, 4000)))
    if report.skipped_total:
        unread = _unread(report.skipped_total)
        blocks.append(para(*unread, " could not be read; see Reproducibility Notes."))
    return blocks


def _unread(total: int) -> Line:
    return numbers.count(total, "line or file", "engine.skipped_total", "lines or files")


def _identity(facts: Facts) -> Block:
    """What was run, as far as an artifact names it."""
    run = facts.run
    named = (("Run", run.name), ("model", run.model), ("agent", run.agent), ("benchmark", run.benchmark))
    told = [(f"{what} ", Code(hostile.line(name, 200))) for what, name in named if name]
    unnamed = [what for what, name in named if not name]
    rest = (f"; not stated: {', '.join(unnamed)}",) if unnamed else ()
    return para(*numbers.joined(list(told), ", ", ", "), *rest, ".")


def _sources(facts: Facts) -> Table:
    sources = f"{facts.entry('runs', facts.run)}.sources"
    rows = tuple(
        cells(
            Code(hostile.line(source.path, 300)),
            numbers.whole(source.rows, f"{sources}[{place}].rows"),
            numbers.whole(source.bytes, f"{sources}[{place}].bytes"),
            Code(source.sha256) if source.sha256 else "not hashed",
        )
        for place, source in enumerate(facts.run.sources[:MAX_ROWS])
    )
    left = len(facts.run.sources) - MAX_ROWS
    if left > 0:
        more = numbers.count(left, "file", f"{sources}.count - {MAX_ROWS}")
        rows += (cells(("… ", *more, " more, all in report.json"), "", "", ""),)
    return Table(("Rollouts file", "Rows", "Bytes", "SHA-256"), rows, "lrrl")


def _artifacts(facts: Facts) -> list[Block]:
    """The files beside the rollouts: those that are there with their path, the others by name."""
    found = facts.run.artifacts
    there = [(Code(hostile.line(one.path, 300)),) for one in found if one.present and one.kind != "rollouts"]
    absent = [hostile.line(one.kind, 60) for one in found if not one.present]
    if not found:
        return []
    line: Line = ("Beside it: ", *numbers.joined(list(there[:MAX_ROWS])), ". ") if there else ()
    missing: Line = (f"Not there: {', '.join(absent)}.",) if absent else ()
    return [para(*line, *missing)]


def _counts(facts: Facts) -> Block:
    """expected = scored + failed + masked + lost, and whatever else was counted."""
    run, counts = facts.run, facts.run.coverage
    parts: list[Line] = [
        (numbers.whole(getattr(counts, name), facts.counted(name)), f" {name}")
        for name in ("scored", "failed", "masked", "lost")
    ]
    more = [
        (numbers.whole(getattr(counts, name), facts.counted(name)), f" {words}")
        for name, words in _ODD.items()
        if getattr(counts, name)
    ]
    beside: Line = ("; ", *numbers.joined(list(more)), ". ") if more else (". ",)
    return para(
        numbers.whole(run.n_rollouts, facts.n_rollouts), " rollouts of ", numbers.whole(run.n_tasks, facts.n_tasks), " tasks. ",
        numbers.whole(counts.expected, facts.counted("expected")), " expected = ", *numbers.joined(parts, " + ", " + "), *beside,
        f"Expected rollouts come from: {hostile.line(counts.expected_from, 80)}.",
    )  # fmt: skip


_ODD = {
    "duplicates": "duplicate rows",
    "unnumbered_copies": "identical rows without a repeat number, counted as repeats",
    "superseded": "rows superseded by a later attempt",
    "unexpected": "rows that the inputs do not name",
}


def _inferred(report: Report, facts: Facts) -> list[Block]:
    known = report.benchmark.get(facts.run.name)
    blocks: list[Block] = []
    if known is not None and known.path:
        blocks.append(para("Facts about the benchmark came from ", Code(hostile.line(known.path, 300)), "."))
    if known is not None and known.inferred:
        inferred = f"{queries.entry('benchmark')}[{facts.run.name!r}].inferred"
        told = [
            (numbers.said(text, f"{inferred}[{place}]", 300),) for place, text in enumerate(known.inferred)
        ]
        blocks.append(
            para(
                "Inferred from the rows, since no file says so: ",
                *numbers.joined(list(told), "; ", "; "),
                ".",
            )
        )
    return blocks


def reproducibility(report: Report, runs: tuple[Facts, ...], figures: tuple[Figure, ...]) -> list[Block]:
    """Version, command, inputs, settings, thresholds, what was skipped, what is unsaid, how right."""
    same = (
        " The same rows give the same report, whatever their order, sharding or compression; what its tables leave out stands in "
        "report.json."
    )
    blocks: list[Block] = [para(*made_by(report).line, same, "" if figures else " No figures were drawn.")]
    for facts in runs:
        blocks += run_settings(facts) if len(runs) > 1 else [*_thresholds(facts), *_settings(facts)]
    blocks += [*skipped(report), *gaps(report), *accuracy(report)]
    return blocks


def run_settings(facts: Facts, file: str = "report.json") -> list[Block]:
    """How one of several runs was judged, and its settings; `file` holds what the tables leave out."""
    name = Code(hostile.line(facts.run.name, 80))
    return [Heading((name,)), *_thresholds(facts), *_settings(facts, file)]


def made_by(report: Report) -> Para:
    """The version and the command."""
    told = [
        ("BLADE " if name == "blade" else f"{name} ", Code(hostile.line(value, 1000)))
        for name, value in report.made_by.items()
    ]
    return para("Made by ", *numbers.joined(list(told), ", ", ", "), ".")


def _thresholds(facts: Facts) -> list[Block]:
    run = facts.run
    how: Line = (f"Rewards are {run.reward_kind.value}. ",)
    if run.has_pass_rate:
        bar = numbers.number(run.pass_threshold, facts.counted("pass_threshold"))
        how += ("A row passes at a reward of ", bar, " or more (tolerance 1e-9). ")
    else:
        how += ("No threshold judges them, so there is no pass rate. ",)
    how += (f"The score is {run.score_name}, the mean over tasks; tasks are the unit of inference. ",)
    return [para(*how)]


def _settings(facts: Facts, file: str = "report.json") -> list[Block]:
    settings = sorted(facts.run.settings.items())
    if not settings:
        return [para("No settings of the run (sampling, limits, agent) were found beside it.")]
    told = [(Code(hostile.line(f"{k} = {v}", 200)),) for k, v in settings[:MAX_SETTINGS]]
    every = f"{facts.entry('runs', facts.run)}.settings.count"
    line = para("Settings: ", *numbers.joined(list(told), ", ", ", "), ".")
    return [line, *places.left_out(len(settings), len(told), "setting", every, file)]


def skipped(report: Report, file: str = "report.json") -> list[Block]:
    """The lines that could not be read, the first of many."""
    if not report.skipped_total and not report.skipped:
        return []
    total = max(report.skipped_total, len(report.skipped))
    rows = tuple(
        cells(
            Code(hostile.line(skipped.file, 120)),
            numbers.whole(skipped.line, f"engine.skipped[{place}].line")
            if skipped.line is not None
            else "whole file",
            numbers.said(skipped.reason, f"engine.skipped[{place}].reason", 200),
        )
        for place, skipped in enumerate(report.skipped[:MAX_SKIPPED])
    )
    is_all = total == report.skipped_total
    every = (
        _unread(total)
        if is_all
        else numbers.count(total, "line or file", "engine.skipped.count", "lines or files")
    )
    more = f" The first are shown; {file} lists more of them." if total > len(rows) else ""
    return [para("Skipped: ", *every, f".{more}"), Table(("File", "Line", "Why"), rows, "lrl")]


def gaps(report: Report, file: str = "report.json", counted: bool = True) -> list[Block]:
    """What the report cannot say, by the reason; `counted` says how many gaps there are."""
    if not report.gaps:
        return [para("No gap was recorded.")]
    by_why: dict[str, list[int]] = {}
    for place, gap in enumerate(report.gaps):
        by_why.setdefault(gap.why, []).append(place)
    items = tuple(
        (*_gaps(report, group, file), ": ", numbers.said(why, f"{_gap(report, group[0])}.why", 400))
        for why, group in list(by_why.items())[:MAX_ROWS]
    )
    n: Line = (" (", *numbers.count(len(report.gaps), "gap", "engine.gaps.count"), ")") if counted else ()
    return [
        para("What this report cannot say", *n, ", by what is missing:"),
        Bullets(items),
        *places.left_out(len(by_why), len(items), "gap", file=file),
    ]


def _gap(report: Report, place: int) -> str:
    return queries.chosen("engine.gaps", report.gaps, report.gaps[place], "what", "why")


def _gaps(report: Report, group: list[int], file: str) -> Line:
    """What one reason leaves unsaid: the first, and that there are more."""
    told = [
        (numbers.said(report.gaps[place].what, f"{_gap(report, place)}.what", 300),)
        for place in group[:MAX_NAMES]
    ]
    more: Line = (f"; … more in {file}",) if len(group) > len(told) else ()
    return (*numbers.joined(list(told), "; ", "; "), *more)
