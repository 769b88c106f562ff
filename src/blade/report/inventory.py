"""Say what was read and how to read it again: the artifacts, the settings, the gaps."""

from __future__ import annotations

from blade import hostile
from blade.model import Report
from blade.report import words
from blade.report.accuracy import accuracy
from blade.report.facts import Facts
from blade.report.sections import (
    Badge,
    Block,
    Bullets,
    Code,
    Figure,
    Heading,
    Line,
    Quote,
    Table,
    cells,
    para,
)

MAX_SKIPPED = 20
MAX_ROWS = 30
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
        for at, note in enumerate(facts.run.notes, 1):
            blocks.append(Quote((f"Note {at}, as it was left beside the run",), hostile.quoted(note, 4000)))
    if report.skipped_total:
        text = f"{words.count(report.skipped_total, 'line or file', 'lines or files')} could not be read; "
        blocks.append(para(text + "see Reproducibility Notes."))
    return blocks


def _identity(facts: Facts) -> Table:
    """What was run; a blank says that no artifact names it."""
    run = facts.run
    named = (("Run", run.name), ("Model", run.model), ("Agent", run.agent), ("Benchmark", run.benchmark))
    rows = tuple(cells(what, Code(hostile.line(name, 200)) if name else "not stated") for what, name in named)
    return Table(("What", "Name"), rows, "ll")


def _sources(facts: Facts) -> Table:
    rows = tuple(
        cells(
            Code(hostile.line(source.path, 300)),
            words.whole(source.rows),
            words.sized(source.bytes),
            Code(source.sha256) if source.sha256 else "not hashed",
        )
        for source in facts.run.sources[:MAX_ROWS]
    )
    left = len(facts.run.sources) - MAX_ROWS
    rows += (
        (cells(f"… {words.count(left, 'file')} more, all in report.json", "", "", ""),) if left > 0 else ()
    )
    return Table(("Rollouts file", "Rows", "Size", "SHA-256"), rows, "lrrl")


def _artifacts(facts: Facts) -> list[Block]:
    found = facts.run.artifacts
    if not found:
        return []
    there, absent = Badge("present", "good"), Badge("absent", "quiet")
    rows = tuple(
        cells(
            Code(hostile.line(artifact.kind, 60)),
            there if artifact.present else absent,
            Code(hostile.line(artifact.path, 300)),
        )
        for artifact in found[:MAX_ROWS]
    )
    blocks: list[Block] = [Table(("Artifact", "State", "Path"), rows, "lll")]
    if len(found) > MAX_ROWS:
        blocks.append(para(f"{len(found) - MAX_ROWS} more artifacts stand in report.json."))
    return blocks


def _counts(facts: Facts) -> Block:
    run, counts = facts.run, facts.run.coverage
    named = [
        ("Tasks", run.n_tasks),
        ("Rollouts kept", run.n_rollouts),
        ("Expected rollouts", counts.expected),
        ("Scored", counts.scored),
        ("Failed (only in the failures file)", counts.failed),
        ("Masked", counts.masked),
        ("Lost without trace", counts.lost),
        ("Duplicate rows", counts.duplicates),
        ("of these identical, kept once", counts.identical_duplicates),
        ("Identical rows without a repeat number, counted as repeats", counts.unnumbered_copies),
        ("Superseded by a later attempt", counts.superseded),
        ("Not expected by the inputs", counts.unexpected),
        ("Repeats per task (modal)", counts.repeats),
    ]
    return Table(("Counted", "n"), tuple(cells(name, words.whole(n)) for name, n in named), "lr")


def _inferred(report: Report, facts: Facts) -> list[Block]:
    known = report.benchmark.get(facts.run.name)
    blocks: list[Block] = []
    if known is not None and known.path:
        blocks.append(para("Facts about the benchmark came from ", Code(hostile.line(known.path, 300)), "."))
    if known is not None and known.inferred:
        blocks.append(para("Inferred from the rows, since no file says so:"))
        blocks.append(Bullets(tuple((hostile.line(text, 300),) for text in known.inferred)))
    return blocks


def reproducibility(report: Report, runs: tuple[Facts, ...], figures: tuple[Figure, ...]) -> list[Block]:
    """Version, command, inputs, settings, thresholds, what was skipped, what is unsaid, how right."""
    blocks: list[Block] = [made_by(report)]
    blocks.append(
        para(
            "The same rows give the same report, whatever their order, sharding or compression. ",
            "What its tables leave out stands in report.json.",
            "" if figures else " No figures were drawn.",
        )
    )
    for facts in runs:
        blocks += run_settings(facts) if len(runs) > 1 else [*_thresholds(facts), *_settings(facts)]
    blocks += [*skipped(report), *gaps(report), *accuracy(report)]
    return blocks


def run_settings(facts: Facts, file: str = "report.json") -> list[Block]:
    """How one of several runs was judged, and its settings; `file` holds what the tables leave out."""
    name = Code(hostile.line(facts.run.name, 80))
    return [Heading((name,)), *_thresholds(facts), *_settings(facts, file)]


def made_by(report: Report) -> Block:
    rows = [
        cells("BLADE" if name == "blade" else name.capitalize(), Code(hostile.line(value, 1000)))
        for name, value in report.made_by.items()
    ]
    rows += [
        cells(
            "Source", (Code(hostile.line(source.path, 300)), " SHA-256 ", Code(source.sha256 or "not hashed"))
        )
        for run in report.runs
        for source in run.sources[:MAX_ROWS]
    ]
    return Table(("Made by", "Value"), tuple(rows), "ll")


def _thresholds(facts: Facts) -> list[Block]:
    run = facts.run
    how: Line = (f"Rewards are {run.reward_kind.value}. ",)
    if run.has_pass_rate:
        how += (f"A row passes at a reward of {words.number(run.pass_threshold)} or more (tolerance 1e-9). ",)
    else:
        how += ("No threshold judges them, so there is no pass rate. ",)
    how += (f"The score is {run.score_name}, the mean over tasks; tasks are the unit of inference. ",)
    how += (f"Expected rollouts come from: {hostile.line(run.coverage.expected_from, 80)}.",)
    return [para(*how)]


def _settings(facts: Facts, file: str = "report.json") -> list[Block]:
    settings = sorted(facts.run.settings.items())
    if not settings:
        return [para("No settings of the run (sampling, limits, agent) were found beside it.")]
    rows = tuple(
        cells(Code(hostile.line(k, 80)), Code(hostile.line(v, 200))) for k, v in settings[: 2 * MAX_ROWS]
    )
    blocks: list[Block] = [Table(("Setting", "Value"), rows, "ll")]
    if len(settings) > 2 * MAX_ROWS:
        blocks.append(para(f"{len(settings) - 2 * MAX_ROWS} more settings stand in {file}."))
    return blocks


def skipped(report: Report, file: str = "report.json") -> list[Block]:
    """The lines that could not be read, the first of many."""
    if not report.skipped_total and not report.skipped:
        return [para("No line was skipped.")]
    total = max(report.skipped_total, len(report.skipped))
    rows = tuple(
        cells(
            Code(hostile.line(skipped.file, 120)),
            words.whole(skipped.line) if skipped.line is not None else "whole file",
            hostile.line(skipped.reason, 200),
        )
        for skipped in report.skipped[:MAX_SKIPPED]
    )
    text = f"Skipped: {words.count(total, 'line or file', 'lines or files')}."
    if total > len(rows):
        text += f" The first {len(rows)} are shown; {file} lists the first 1,000."
    return [para(text), Table(("File", "Line", "Why"), rows, "lrl")]


def gaps(report: Report, file: str = "report.json") -> list[Block]:
    """What the report cannot say, by the reason."""
    if not report.gaps:
        return [para("No gap was recorded.")]
    by_why: dict[str, list[str]] = {}
    for gap in report.gaps:
        by_why.setdefault(gap.why, []).append(gap.what)
    told = {why: [several(what.split(", "), file=file) for what in found] for why, found in by_why.items()}
    rows = tuple(
        cells(several(found, "; ", file), hostile.line(why, 400))
        for why, found in list(told.items())[:MAX_ROWS]
    )
    left = len(by_why) - len(rows)
    return [
        para(f"What this report cannot say ({words.count(len(report.gaps), 'gap')}, by what is wanting):"),
        Table(("Gap", "Why"), rows, "ll"),
        *([para(f"{words.count(left, 'more kind')} of gap in {file}.")] if left > 0 else []),
    ]


def several(names: list[str], between: str = ", ", file: str = "report.json") -> str:
    """The first names, the last one, and how many stand between: the last may say where all belong."""
    left = len(names) - MAX_NAMES
    if left > 0:
        names = [*names[: MAX_NAMES - 1], f"… ({left:,} more in {file})", names[-1]]
    return hostile.line(between.join(names), 600)
