"""Print a comparison on one screen of a terminal: the change, both verdicts, what moved it, what to read."""

from __future__ import annotations

import math
from collections.abc import Sequence

from blade import hostile, number_format
from blade.model import Comparison, Report, Term
from blade.number_format import NONE, change, level, p_number, p_value, size
from blade.report import comparison_terms as terms
from blade.report import comparison_verdict as verdicts
from blade.report import comparison_words as say
from blade.report.blocks import Line
from blade.report.comparison_pages import first_claim, single_rollouts, trend
from blade.report.comparison_words import NEW, THESE, apart, middle, pair, sentence
from blade.report.phrases import short
from blade.report.terminal import COUNTED, Row, aligned, fitted, listed, screen

COLUMNS = 100
LINES = 40
INDENT = 13
CLAIMS = 3
TERMS = 6
LABELS = {THESE: "These tasks", NEW: "New tasks"}
# What is left out first where the screen is too small: the last of these. Three checks of a gate and ten candidates
# go before the others.
FIRST, CANDIDATE, CHECK, RESOLVE, SETTINGS, CHURN, NOTE, BESIDE, CLAIM, READ = range(1, 11)


def compare_text(report: Report) -> str:
    """The summary of a comparison: at most 40 lines of 100 columns, plain text without colour."""
    comparisons = report.comparisons
    page = [] if comparisons else ["No pair of runs was compared."]
    if comparisons:
        head, rows = _one(report, comparisons[0]) if len(comparisons) == 1 else _several(report)
        page = [f"BLADE  {head}", "", *screen(rows, COLUMNS, INDENT, LINES - 2)]
    return "\n".join(fitted(text, COLUMNS).rstrip() for text in page[:LINES]) + "\n"


def _one(report: Report, comparison: Comparison) -> tuple[str, list[Row]]:
    ending = _ending(report)
    if comparison.refused is not None:
        rows = [Row("Refused", verdicts.refusal(comparison), 6), _aligned(comparison), *ending]
    elif comparison.identical:
        rows = [*_change(comparison), Row("Verdict", "equivalent: both runs hold the same rows", 1), *ending]
    else:
        notes, read = say.notes(say.cited(comparison), pair(comparison)), _typed(terms.flips_to_read(comparison, report))[:2]
        rows = [
            *_change(comparison), *_verdicts(comparison),
            Row("Resolve", verdicts.resolve(comparison, report)[1:], 3, RESOLVE), Row(),
            *_movers(comparison, report), _bridge(comparison), Row(),
            _aligned(comparison), Row("Settings", verdicts.separability(comparison), 3, SETTINGS),
            Row("Churn", _churn(comparison), 2, CHURN), *listed("Notes", notes, 8, NOTE, "note"), *ending,
            *listed("Read next", read, 1, READ),
        ]  # fmt: skip
    return " → ".join(apart(pair(comparison), 44)), rows


def _change(comparison: Comparison) -> list[Row]:
    is_rate, score = say.is_rate(comparison.score_name), say.score_label(comparison.score_name)

    def levels(*scores: float | None) -> str:
        return " → ".join(level(score, is_rate) for score in scores)

    scores, n = levels(comparison.score_baseline, comparison.score_candidate), short(say.n_common(comparison))
    common = ""
    if verdicts.is_other_on_common(comparison):
        on_common = levels(comparison.common_baseline, comparison.common_candidate)
        delta = change(comparison.delta_common, is_rate)
        common = f"over the common tasks {delta}: {on_common}; the rest comes from tasks that only one run has"
    return [
        Row("Change", f"{change(comparison.delta, is_rate)} of {score}: {scores}, {n} in common", 1), Row("", common, 1),
        Row("", short(verdicts.mechanical(comparison)).partition("; their")[0], 3),
    ]


def _verdicts(comparison: Comparison) -> list[Row]:
    rows: list[Row] = []
    for question, label in LABELS.items():
        word = say.verdict_on(comparison, question) or "no verdict"
        test = say.test_of(comparison, question)
        moved = _with_level(say.tested(comparison, test).estimate("estimate")) if test else NONE
        rests = short(verdicts.rests_on(comparison, question))
        if word == "inconclusive" and (effect := verdicts.smallest(comparison, question)) is not None:
            rests += f"; smallest detectable effect {size(abs(effect), say.is_rate(comparison.score_name))}"
        small = f"{say.SMALL}: " if say.is_small(comparison, question) else ""
        rows.append(Row(f"{label:<{INDENT}}{word.upper():<13} ", f"{small}{moved}; {rests}", 3, indent=INDENT + 14))
    margin = f"{short(say.margin(comparison))} (--margin): changes within it count as equivalent"
    return [*rows, Row("Margin", margin, 1)]


def _with_level(line: Line) -> str:
    """Say of an interval which one it is."""
    return short(line).replace(" [", ", 95% CI [", 1)


def _movers(comparison: Comparison, report: Report) -> list[Row]:
    """The first claims; under the first what its rollouts show as well, and how to read some of them."""
    movers = terms.ranked(comparison.movers)
    if not movers:
        return [Row("Moved by", terms.unclaimed(comparison), 2)]
    rows: list[Row] = []
    for place, mover in enumerate(movers):
        claim = f"{place + 1}. {'[mechanical] ' * mover.mechanical}{_with_level(terms.claim(comparison, mover))}"
        rank = COUNTED if place >= CLAIMS else CLAIM if place else 0
        rows.append(Row("" if place else "Moved by", claim, 4, rank, "claim"))
        if place == 0:
            rows += [Row("", f"   {short(line)}", 3, BESIDE) for line in terms.beside(mover, comparison)[:2]]
            commands = _typed(terms.rollouts_to_read(mover, comparison, report))
            rows += [Row("", f"   {command}", 1, BESIDE) for command in commands]
    return [*rows, Row("", terms.undetermined(comparison), 2)]


def _bridge(comparison: Comparison) -> Row:
    """The largest terms and what the others add up to; together they are the change."""

    def total(addends: Sequence[Term]) -> str:
        return change(math.fsum(term.value for term in addends), say.is_rate(comparison.score_name))

    moved = [term for term in comparison.bridge if abs(term.value) >= terms.SAME]
    if not moved:
        return Row("Bridge", f"every term is 0, over {len(comparison.bridge)} terms" if comparison.bridge else "")
    shown, left = terms.folded(moved, TERMS)
    parts = [f"{say.term(term.term, 60)} {total([term]).removesuffix(' points')}" for term in shown]
    parts += [f"{len(left)} smaller {total(left).removesuffix(' points')}"] if left else []
    return Row("Bridge", f"{', '.join(parts)} = {total(comparison.bridge)}")


def _churn(comparison: Comparison) -> str:
    """How much moved, and whether noise alone would."""
    churn, is_rate, n = comparison.churn, say.is_rate(comparison.score_name), short(say.n_common(comparison))
    if churn is None:
        return ""
    moved = f"{size(churn.gains - churn.losses, is_rate)}: {churn.n_up:,} up, {churn.n_down:,} down of {n}; "
    if churn.p is None:
        return moved + "with so few repeats, how much of it is noise is unknown"
    word = "beyond" if churn.p <= say.ALPHA else "not beyond"
    low, high = (size(end, is_rate).removesuffix(" points") for end in (churn.null_low, churn.null_high))
    return f"{moved}two runs of one model would differ by {low} to {high}, so {word} noise ({p_value(churn.p)})"


def _aligned(comparison: Comparison) -> Row:
    """Which tasks stand in the way of a plain comparison."""
    counts = {kind: len(getattr(comparison.alignment, kind)) for kind in verdicts.KINDS}
    parts = (f"{n:,} {kind.replace('_', ' in the ')}" for kind, n in counts.items() if n or kind == "common")
    return Row("Tasks", ", ".join(parts), 2)


def _typed(commands: list[tuple[str, str]]) -> list[str]:
    """Commands that fit a line: one that would be cut is no command."""
    return [line for line in dict.fromkeys(line for line, _ in commands) if len(line) <= COLUMNS - INDENT - 3]


def _series(report: Report) -> list[Row]:
    if (series := report.series) is None:
        return []
    unknown = short(single_rollouts(series, report))
    learned, forgotten = series.n_learned or len(series.learned), series.n_forgotten or len(series.forgotten)
    counts = f"{number_format.count(learned, 'task')} learned, {forgotten:,} forgotten"
    is_rate = say.is_rate(say.report_score_name(report))
    return [Row("Series", trend(series, is_rate)), Row("", unknown[:1].upper() + unknown[1:] or counts, 2)]


def _gate(report: Report) -> list[Row]:
    """The verdict of the policy and every check that stands in its way, failures first."""
    if (gate := report.gate) is None:
        return []
    unmet = [check for check in gate.checks if check.verdict != "PASS" and not check.waived]
    unmet.sort(key=lambda check: verdicts.gate_rank(check.verdict))
    waived = sum(bool(check.waived) for check in gate.checks)
    counts = f"{gate.verdict}: {number_format.count(len(gate.checks), 'check')}, {len(unmet):,} not passed"
    rows = [Row("Gate", f"{counts}, {waived:,} waived" if waived else counts, 1)]
    checks = [*unmet, *(check for check in gate.checks if check.verdict == "PASS" and check.remark)]
    runs = list(dict.fromkeys(check.candidate for check in checks))
    of_run = {run: f" of {name}" if len(runs) > 1 else "" for run, name in zip(runs, apart(runs, 30), strict=True)}
    for place, check in enumerate(checks):
        why = short(sentence(check.text, "", 400, (gate.baseline, *runs)))
        text = f"{hostile.line(check.verdict, 20)} {hostile.line(check.metric, 60)}{of_run[check.candidate]}: {why}"
        rows.append(Row("", text, 6, FIRST if place < 3 else CHECK, "check"))
    return rows


def _ending(report: Report) -> list[Row]:
    """The gate, the checkpoints in order, what could not be read."""
    n = number_format.count(report.skipped_total, "line or file", "lines or files")
    skipped = [Row("Skipped", f"{n} that could not be read", 1)] if report.skipped_total else []
    return [*_gate(report), *_series(report), *skipped]


def _several(report: Report) -> tuple[str, list[Row]]:
    """A table with a line for each candidate, then what the runs together say."""
    comparisons, first = report.comparisons, report.comparisons[0]
    score = level(first.score_baseline, say.is_rate(say.report_score_name(report)))
    is_small = any(say.is_small(comparison, question) for comparison in comparisons for question in LABELS)
    legend = f"Intervals are 95%; p is Holm's over all candidates; margin {short(say.margin(first))}"
    head, *table = _table(comparisons)
    claims = [
        Row("", f"{name}: {short(first_claim(comparison))}", 1, CLAIM, indent=0)
        for name, comparison in zip(apart([pair.candidate for pair in comparisons], 30), comparisons, strict=True)
    ]
    ending = _ending(report)
    return (
        f"{number_format.count(len(comparisons), 'candidate')} against {middle(first.baseline, 40)} "
        f"({score} {say.score_label(first.score_name)})",
        [
            Row("", head, 1, indent=0),
            *(Row("", line, 1, NOTE if place > 9 else CANDIDATE, "candidate", 0) for place, line in enumerate(table)),
            Row(), Row("", legend + (f"; * {say.SMALL}." if is_small else "."), indent=0), *claims,
            *([Row(), *ending] if ending else []),
        ],
    )  # fmt: skip


def _table(comparisons: tuple[Comparison, ...]) -> list[str]:
    """A line for each candidate, under the names of the columns; numbers are never cut, names are."""
    head = ["Candidate", "Score", "Change on new tasks", "These tasks", "New tasks", "p adj", "n"]
    rows = [head[1:], *map(_candidate, comparisons)]
    numbers = sum(max(len(row[place]) for row in rows) + 2 for place in range(len(head) - 1))
    names = ["Candidate", *apart([comparison.candidate for comparison in comparisons], max(10, COLUMNS - numbers))]
    return aligned([[name, *row] for name, row in zip(names, rows, strict=True)], "lrrllrr", COLUMNS, 0, len(head[0]))


def _candidate(comparison: Comparison) -> list[str]:
    if comparison.refused is not None:
        return [NONE, NONE, "not compared", NONE, NONE, "0"]
    test, p = say.test_of(comparison, NEW), comparison.p_adjusted_new
    moved = short(say.tested(comparison, test).estimate("estimate")) if test else NONE
    verdict = [
        (say.verdict_on(comparison, question) or NONE) + "*" * say.is_small(comparison, question) for question in LABELS
    ]
    score = level(comparison.score_candidate, say.is_rate(comparison.score_name))
    p_adjusted = p_number(p if p is not None else test.p if test else None)
    return [score, moved.replace(" points", ""), *verdict, p_adjusted, number_format.whole(len(comparison.alignment.common))]
