"""Print a comparison on one screen of a terminal: the change, both verdicts, what moved it, what to read."""

from __future__ import annotations

import math
from collections.abc import Sequence

from blade import hostile, number_format
from blade.model import Checked, Churn, Comparison, Report, Term
from blade.number_format import NONE, change, level, p_number, p_value, size
from blade.report import comparison_terms as terms
from blade.report import comparison_verdict as verdicts
from blade.report import comparison_words as say
from blade.report.blocks import Line, short
from blade.report.comparison_pages import first_claim, score_name, single_rollouts, trend
from blade.report.comparison_words import NEW, THESE, apart, middle, pair, sentence
from blade.report.terminal import aligned, fitted, hung, wrapped

COLUMNS = 100
LINES = 40
INDENT = 13
TOLD = 3  # claims
SHOWN = 6  # terms of the bridge
LEAST_GATE = 3  # lines of a gate, however little room there is
LEAST_ROWS = 10  # candidates that a long gate leaves room for
LABELS = {THESE: "These tasks", NEW: "New tasks"}


def compare_text(report: Report) -> str:
    """The summary of a comparison: at most 40 lines of 100 columns, plain text without colour."""
    comparisons = report.comparisons
    if not comparisons:
        lines = ["No pair of runs was compared."]
    elif len(comparisons) == 1:
        lines = _one(report, comparisons[0])
    else:
        lines = _several(report)
    return "\n".join(fitted(text, COLUMNS).rstrip() for text in lines[:LINES]) + "\n"


def _row(label: str, text: str | Line, most: int) -> list[str]:
    """A text under its label, in at most so many lines; nothing where there is no text."""
    text = short(text) if isinstance(text, tuple) else text
    if not text:
        return []
    hang, width = " " * (len(text) - len(text.lstrip())), COLUMNS - INDENT
    lines = [hang + line for line in wrapped(text.lstrip(), width - len(hang))]
    if len(lines) > most:
        rest = " ".join([lines[most - 1], *(line.strip() for line in lines[most:])])
        lines = [*lines[: most - 1], fitted(rest, width)]
    return hung(label, lines, INDENT)


# ---- One pair ------------------------------------------------------------------------------------


def _one(report: Report, comparison: Comparison) -> list[str]:
    baseline, candidate = apart(pair(comparison), 44)
    top = [f"BLADE  {baseline} → {candidate}", ""]
    ending = [*_series(report), *_skipped(report)]
    if comparison.refused is not None:
        top += [*_row("Refused", verdicts.refusal(comparison), 6), *_aligned(comparison)]
        return [*top, *_gate(report, LINES - len(top) - len(ending)), *ending]
    top += _change(comparison)
    if comparison.identical:
        top += _row("Verdict", "equivalent: both runs hold the same rows", 1)
        return [*top, *_gate(report, LINES - len(top) - len(ending)), *ending]
    least = len(_why(comparison, report, 1, False)) + len(ending)
    for dropped in range(4):  # a gate is told in full before what can be read in the report
        head, rest = _around_claims(comparison, report, dropped)
        gate = _gate(report, LINES - len(top) - len(head) - len(rest) - least)
        if len(gate) >= len(_gate(report, LINES)):
            break
    top, ending = [*top, *head], [*gate, *ending]
    notes = [short(note) for note in verdicts.notes(comparison)]
    # What is left out first if the screen is too small: what to read, further claims, what is beside them.
    for claims, shows, reads in ((TOLD, True, 2), (TOLD, True, 0), (TOLD - 1, True, 0), (1, True, 0), (1, False, 0)):
        read = hung("Read next", _typed(terms.flips_to_read(comparison, report)), INDENT)[:reads]
        why = _why(comparison, report, claims, shows)
        room = LINES - sum(map(len, (top, why, rest, ending, read)))
        if room >= len(_notes(notes, LINES)):
            break
    ending = [*_notes(notes, room), *ending, *read]
    return [*[*top, *why, *rest][: LINES - len(ending)], *ending]


def _around_claims(comparison: Comparison, report: Report, dropped: int) -> tuple[list[str], list[str]]:
    """What stands before the claims and after them, less so many parts: churn, settings, what resolves it."""
    before, after = _verdicts(comparison), ["", *_aligned(comparison, dropped < 2)]
    if dropped < 3:
        before += _row("Resolve", short(verdicts.resolve(comparison, report)[1:]), 3)
    if comparison.churn is not None and dropped < 1:
        after += _row("Churn", _churn(comparison, comparison.churn), 2)
    return before, after


def _why(comparison: Comparison, report: Report, claims: int, shows: bool) -> list[str]:
    return ["", *_movers(comparison, report, claims, shows), *_bridge(comparison)]


def _change(comparison: Comparison) -> list[str]:
    is_rate, of = say.is_rate(comparison.score_name), say.score_label(comparison.score_name)

    def levels(*scores: float | None) -> str:
        return " → ".join(level(score, is_rate) for score in scores)

    scores = levels(comparison.score_baseline, comparison.score_candidate)
    n = short(say.n_common(comparison))
    lines = _row("Change", f"{change(comparison.delta, is_rate)} of {of}: {scores}, {n} in common", 1)
    if verdicts.is_other_on_common(comparison):
        common = levels(comparison.common_baseline, comparison.common_candidate)
        delta = change(comparison.delta_common, is_rate)
        rest = "the rest comes from tasks that only one run has"
        lines += _row("", f"over the common tasks {delta}: {common}; {rest}", 1)
    return lines + _row("", short(verdicts.mechanical(comparison)).partition("; their")[0], 3)


def _verdicts(comparison: Comparison) -> list[str]:
    lines: list[str] = []
    for question, label in LABELS.items():
        word = say.verdict_on(comparison, question) or "no verdict"
        test = say.test_of(comparison, question)
        moved = _with_level(short(say.estimate(say.tested(comparison, test)))) if test else NONE
        rests = short(verdicts.rests_on(comparison, question))
        if say.is_small(comparison, question):
            moved = f"{say.SMALL}: {moved}"
        if word == "inconclusive" and (effect := verdicts.smallest(comparison, question)) is not None:
            rests += f"; smallest detectable effect {size(abs(effect), say.is_rate(comparison.score_name))}"
        first, *more = wrapped(f"{moved}; {rests}", COLUMNS - INDENT - 14)[:3]
        lines.append(f"{label:<{INDENT}}{word.upper():<13} {first}")
        lines += [" " * (INDENT + 14) + line for line in more]
    margin = f"{short(say.margin(comparison))} (--margin): changes within it count as equivalent"
    return [*lines, *_row("Margin", margin, 1)]


def _with_level(text: str) -> str:
    """Say of an interval which one it is."""
    return text.replace(" [", ", 95% CI [", 1)


def _movers(comparison: Comparison, report: Report, most: int, shows: bool) -> list[str]:
    """The first claims; under the first what its rollouts show as well, and how to read some of them."""
    movers = terms.ranked(comparison.movers)
    if not movers:
        return _row("Moved by", terms.unclaimed(comparison), 2)
    lines: list[str] = []
    for place, mover in enumerate(movers[:most]):
        mark = "[mechanical] " if mover.mechanical else ""
        claim = _with_level(short(terms.claim(comparison, mover)))
        lines += _row("" if place else "Moved by", f"{place + 1}. {mark}{claim}", 4)
        if place == 0 and shows:
            for line in terms.beside(mover, comparison)[:2]:
                lines += _row("", f"   {short(line)}", 3)
            lines += [f"{'':<{INDENT}}   {line}" for line in _typed(terms.rollouts_to_read(mover, comparison, report))]
    lines += _row("", terms.undetermined(comparison), 2)
    left = len(movers) - most
    return lines + (_row("", f"{number_format.count(left, 'more claim')} in the report", 1) if left > 0 else [])


def _bridge(comparison: Comparison) -> list[str]:
    """The largest terms and what the others add up to; together they are the change."""
    is_rate = say.is_rate(comparison.score_name)

    def total(some: Sequence[Term]) -> str:
        return change(math.fsum(term.value for term in some), is_rate)

    if not comparison.bridge:
        return []
    moved = [term for term in comparison.bridge if abs(term.value) >= terms.SAME]
    if not moved:
        return _row("Bridge", f"every term is 0, over {len(comparison.bridge)} terms", 4)
    shown, left = terms.folded(moved, SHOWN)
    parts = [f"{say.term(term.term, 60)} {total([term]).removesuffix(' points')}" for term in shown]
    parts += [f"{len(left)} smaller {total(left).removesuffix(' points')}"] if left else []
    return _row("Bridge", f"{', '.join(parts)} = {total(comparison.bridge)}", 4)


def _churn(comparison: Comparison, churn: Churn) -> str:
    """How much moved, and whether noise alone would."""
    is_rate, n = say.is_rate(comparison.score_name), short(say.n_common(comparison))
    moved = f"{size(churn.gains - churn.losses, is_rate)}: {churn.n_up:,} up, {churn.n_down:,} down of {n}; "
    if churn.p is None:
        return moved + "with so few repeats, how much of it is noise is unknown"
    word = "beyond" if churn.p <= say.ALPHA else "not beyond"
    low, high = (
        size(end, is_rate).removesuffix(" points") for end in (churn.null_low, churn.null_high)
    )
    return f"{moved}two runs of one model would differ by {low} to {high}, so {word} noise ({p_value(churn.p)})"


def _aligned(comparison: Comparison, settings: bool = True) -> list[str]:
    """What stands in the way of a plain comparison."""
    alignment = comparison.alignment
    counts = [
        (alignment.added, "added"),
        (alignment.removed, "removed"),
        (alignment.modified, "modified"),
        (alignment.missing_baseline, "missing in the baseline"),
        (alignment.missing_candidate, "missing in the candidate"),
    ]
    parts = [f"{len(alignment.common):,} common", *(f"{len(tasks):,} {what}" for tasks, what in counts if tasks)]
    lines = _row("Tasks", ", ".join(parts), 2)
    if comparison.refused is None and settings:
        lines += _row("Settings", verdicts.separability(comparison), 3)
    return lines


def _notes(notes: list[str], room: int) -> list[str]:
    """The notes that there is room for, each in full, and how many more there are."""
    rows = [_row("" if place else "Notes", note, LINES) for place, note in enumerate(notes)]
    for shown in range(len(rows), -1, -1):
        left = len(rows) - shown
        lines = [line for row in rows[:shown] for line in row]
        if left:
            more = number_format.count(left, "more note" if shown else "note")
            lines += _row("" if shown else "Notes", f"{more} in the report", 1)
        if len(lines) <= max(room, 0):
            return lines
    return []


def _typed(commands: list[tuple[str, str]]) -> list[str]:
    """Commands that fit a line: one that would be cut is no command."""
    return [line for line in dict.fromkeys(line for line, _ in commands) if len(line) <= COLUMNS - INDENT - 3]


# ---- Beside the pairs ----------------------------------------------------------------------------


def _series(report: Report) -> list[str]:
    series = report.series
    if series is None:
        return []
    unknown = short(single_rollouts(series, report))
    learned, forgotten = series.n_learned or len(series.learned), series.n_forgotten or len(series.forgotten)
    counts = f"{number_format.count(learned, 'task')} learned, {forgotten:,} forgotten"
    line = short(trend(series, say.is_rate(score_name(report))))
    return [*_row("Series", line, 4), *_row("", unknown[:1].upper() + unknown[1:] or counts, 2)]


def _gate(report: Report, room: int) -> list[str]:
    """The verdict of the policy and every check that stands in its way, failures first."""
    gate = report.gate
    if gate is None:
        return []
    unmet = [check for check in gate.checks if check.verdict != "PASS" and not check.waived]
    unmet.sort(key=lambda check: verdicts.gate_rank(check.verdict))
    doubtful = [check for check in gate.checks if check.verdict == "PASS" and check.remark]
    waived = sum(bool(check.waived) for check in gate.checks)
    counts = f"{gate.verdict}: {number_format.count(len(gate.checks), 'check')}, {len(unmet):,} not passed"
    head = _row("Gate", counts + (f", {waived:,} waived" if waived else ""), 1)
    checks = _checks([*unmet, *doubtful], gate.baseline)
    room = max(room, LEAST_GATE)
    for most in (6, 3, 2, 1):
        lines = [line for check in checks for line in _row("", check, most)]
        if len(head) + len(lines) <= room:
            return [*head, *lines]
    shown = room - len(head) - 1
    left = number_format.count(len(checks) - shown, "more check")
    more = _row("", f"{left} {'to look at' if doubtful else 'not passed'}, in the report", 1)
    return [*head, *lines[:shown], *more]


def _checks(checks: list[Checked], baseline: str) -> list[str]:
    """What each check says; the candidate is named where there are several."""
    runs = list(dict.fromkeys(check.candidate for check in checks))
    names = dict(zip(runs, apart(runs, 30), strict=True))
    texts = []
    for check in checks:
        of = f" of {names[check.candidate]}" if len(runs) > 1 else ""
        why = short(sentence(check.text, "", 400, (baseline, *runs)))
        texts.append(f"{hostile.line(check.verdict, 20)} {hostile.line(check.metric, 60)}{of}: {why}")
    return texts


def _skipped(report: Report) -> list[str]:
    n = number_format.count(report.skipped_total, "line or file", "lines or files")
    return _row("Skipped", f"{n} that could not be read", 1) if report.skipped_total else []


# ---- Several candidates --------------------------------------------------------------------------


def _several(report: Report) -> list[str]:
    """A table with a line for each candidate, then what the runs together say."""
    comparisons = report.comparisons
    first = comparisons[0]
    ending = [*_series(report), *_skipped(report)]
    ending = [*_gate(report, LINES - 7 - len(ending) - min(len(comparisons), LEAST_ROWS)), *ending]
    room = LINES - 7 - len(ending)
    room -= len(comparisons) > room
    score = level(first.score_baseline, say.is_rate(score_name(report)))
    base = f"{middle(first.baseline, 40)} ({score} {say.score_label(first.score_name)})"
    lines = [
        f"BLADE  {number_format.count(len(comparisons), 'candidate')} against {base}",
        "",
        *_table(comparisons, room),
    ]
    if len(comparisons) > room:
        lines.append(f"… {number_format.count(len(comparisons) - room, 'more candidate')} in the report")
    legend = f"Intervals are 95%; p is Holm's over all candidates; margin {short(say.margin(first))}"
    is_small = any(say.is_small(one, question) for one in comparisons for question in LABELS)
    lines += ["", legend + (f"; * {say.SMALL}." if is_small else ".")]
    names = apart([one.candidate for one in comparisons], 30)
    claims = [f"{name}: {short(first_claim(one))}" for name, one in zip(names, comparisons, strict=True)]
    lines += claims[: max(0, LINES - len(lines) - len(ending) - 1)]
    return [*lines, "", *ending] if ending else lines


def _table(comparisons: tuple[Comparison, ...], room: int) -> list[str]:
    """A line for each candidate, under the names of the columns; numbers are never cut, names are."""
    head = ["Candidate", "Score", "Change on new tasks", "These tasks", "New tasks", "p adj", "n"]
    rows = [head[1:], *(_candidate(one) for one in comparisons[:room])]
    numbers = sum(max(len(row[place]) for row in rows) + 2 for place in range(len(head) - 1))
    names = apart([one.candidate for one in comparisons], max(10, COLUMNS - numbers))
    return aligned([[name, *row] for name, row in zip([head[0], *names], rows, strict=False)], "lrrllrr", COLUMNS, 0, len(head[0]))


def _candidate(one: Comparison) -> list[str]:
    if one.refused is not None:
        return [NONE, NONE, "not compared", NONE, NONE, "0"]
    test = say.test_of(one, NEW)
    moved = short(say.estimate(say.tested(one, test))) if test else NONE
    p = one.p_adjusted_new if one.p_adjusted_new is not None else test.p if test else None
    verdict = [
        (say.verdict_on(one, question) or NONE) + "*" * say.is_small(one, question) for question in LABELS
    ]
    score = level(one.score_candidate, say.is_rate(one.score_name))
    n = number_format.whole(len(one.alignment.common))
    return [score, moved.replace(" points", ""), *verdict, p_number(p), n]
