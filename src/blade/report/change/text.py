"""Say on one screen of a terminal why a score changed."""

from __future__ import annotations

import math
from textwrap import wrap

from blade import hostile
from blade.model import Churn, Comparison, Gate, Report, Term
from blade.report import words
from blade.report.change import match as change_match
from blade.report.change import series as change_series
from blade.report.change import tasks as change_tasks
from blade.report.change import terms as change_terms
from blade.report.change import verdict as change_verdict
from blade.report.change import words as say
from blade.report.change.many import first_claim, score_name
from blade.report.change.words import NEW, THESE, Scale
from blade.report.sections import Line, prose
from blade.report.text import fitted, padded

COLUMNS = 100
LINES = 40
INDENT = 13
TOLD = 3  # claims
SHOWN = 6  # terms of the bridge
LABELS = {THESE: "These tasks", NEW: "New tasks"}


def compare_text(report: Report) -> str:
    """The summary of a comparison: at most 40 lines of 100 columns, plain text without colour."""
    found = report.comparisons
    if not found:
        lines = ["No pair of runs was compared."]
    elif len(found) == 1:
        lines = _one(report, found[0])
    else:
        lines = _several(report)
    return "\n".join(fitted(text, COLUMNS).rstrip() for text in lines[:LINES]) + "\n"


def _one(report: Report, comparison: Comparison) -> list[str]:
    comparison = say.worded(comparison, report)
    scale = say.scale(comparison.score_name)
    names = [hostile.line(name, 40) for name in change_verdict.pair(comparison)]
    head = [f"BLADE  {names[0]} → {names[1]}", ""]
    if comparison.refused is not None:
        return [*head, *_told("Refused", hostile.line(comparison.refused, 400), 4), *_aligned(comparison)]
    found = [*head, *_change(comparison, scale)]
    if comparison.identical:
        return [*found, *_told("Verdict", "equivalent: both runs hold the same rows", 1), *_ending(report)]
    found += _verdicts(comparison, scale)
    found += _told("Resolve", _plain(change_verdict.resolve(comparison, report)), 3)
    rest = ["", *_aligned(comparison)]
    if comparison.churn is not None:
        rest += _told("Churn", _churn(comparison.churn, say.n_common(comparison), scale), 2)
    ending = [*_many(report, scale), *_ending(report), *_read(report, comparison)]
    for told in (TOLD, TOLD - 1, 1):
        why = ["", *_movers(comparison, scale, told), *_bridge(comparison, scale)]
        room = LINES - len(found) - len(why) - len(rest) - len(ending)
        if room >= 0:
            break
    found += [*why, *rest, *_notes(comparison, room)]
    return [*found[: LINES - len(ending)], *ending]


def _churn(churn: Churn, n: int, scale: Scale) -> str:
    """How much moved, and whether noise alone would."""
    moved = f"{churn.n_up:,} up, {churn.n_down:,} down of {say.tasks(n)}"
    said = f"{scale.size(churn.gains - churn.losses)}: {moved}; "
    if churn.p is None:
        return said + "nothing here tells how much of it is noise"
    word = "beyond" if churn.p <= say.ALPHA else "not beyond"
    null = f"{_bare(churn.null_low, scale)} to {_bare(churn.null_high, scale)}".replace("+", "")
    return said + f"one model against itself {null}, so {word} noise ({words.p_value(churn.p)})"


def _notes(comparison: Comparison, room: int) -> list[str]:
    """The notes that there is room for, two lines of each."""
    found: list[str] = []
    for note in comparison.notes:
        lines = _told("Notes" if not found else "", _plain(change_verdict.note_told(note)), 2)
        if len(found) + len(lines) > room:
            break
        found += lines
    return found


def _plain(line: Line) -> str:
    """A line of blocks as plain text."""
    return "".join(span if isinstance(span, str) else span.text for span in line)


def _told(label: str, text: str, most: int) -> list[str]:
    """`text` under its label, in at most so many lines; nothing where there is no text."""
    lines = wrap(text.removeprefix("What would resolve it: "), COLUMNS - INDENT) if text else []
    if len(lines) > most:
        lines = [*lines[: most - 1], fitted(" ".join(lines[most - 1 :]), COLUMNS - INDENT)]
    return [f"{label if at == 0 else '':<{INDENT}}{line}" for at, line in enumerate(lines)]


def _change(comparison: Comparison, scale: Scale) -> list[str]:
    of = say.score_label(comparison.score_name)
    n = say.tasks(say.n_common(comparison))
    levels = f"{scale.level(comparison.score_baseline)} → {scale.level(comparison.score_candidate)}"
    found = _told("Change", f"{scale.change(comparison.delta)} of {of}: {levels}, {n} in common", 1)
    if change_verdict.is_other_on_common(comparison):
        of_common = f"{scale.level(comparison.common_baseline)} → {scale.level(comparison.common_candidate)}"
        said = f"over the common tasks {scale.change(comparison.delta_common)}: {of_common}; the rest is "
        found += _told("", said + "which tasks each run has", 1)
    said = _plain(change_verdict.mechanical(comparison)).partition("; their")[0]
    return found + _told("", said, 3)


def _verdicts(comparison: Comparison, scale: Scale) -> list[str]:
    found: list[str] = []
    for question, label in LABELS.items():
        word = change_verdict.verdict_on(comparison, question) or "no verdict"
        tested = say.test_of(comparison, question)
        change = scale.with_interval(tested.estimate, tested.low, tested.high) if tested else words.NONE
        rests = change_verdict.rests_on(comparison, question)
        if word == "inconclusive" and (mde := change_verdict.smallest(comparison, question)) is not None:
            rests += f"; smallest detectable effect {scale.size(mde)}"
        lines = wrap(f"{change}; {rests}", COLUMNS - INDENT - 14)[:3]
        found.append(f"{label:<{INDENT}}{word.upper():<13} {lines[0]}")
        found += [" " * (INDENT + 14) + line for line in lines[1:]]
    return [*found, *_told("Margin", f"±{scale.size(comparison.margin)}, fixed in advance", 1)]


def _movers(comparison: Comparison, scale: Scale, told: int) -> list[str]:
    movers = change_terms.ranked(comparison.movers)
    if not movers:
        return _told("Moved by", "no term is beyond noise, so no cause is claimed", 1)
    found: list[str] = []
    for at, one in enumerate(movers[:told]):
        mark = "[mechanical] " if one.mechanical else ""
        said = f"{at + 1}. {mark}{_plain(prose(hostile.line(one.text, 300)))}"
        found += _told("Moved by" if at == 0 else "", said, 3)
        found += _told("", f"   {change_terms.mover_numbers(one, scale)}", 1)
    left = len(movers) - told
    return found + (_told("", f"{words.count(left, 'more claim')} in the report", 1) if left > 0 else [])


def _bridge(comparison: Comparison, scale: Scale) -> list[str]:
    """The largest terms and what the others add up to; together they are the change."""
    if not comparison.bridge:
        return []
    moved = [one for one in comparison.bridge if abs(one.value) >= change_terms.SAME]
    shown, left = change_terms.folded(moved, SHOWN)
    parts = [f"{say.term(one.term, 40)} {_bare(one.value, scale)}" for one in shown]
    if left:
        parts.append(f"{len(left)} smaller {_bare(_sum(left), scale)}")
    total = scale.change(_sum(comparison.bridge))
    said = (
        f"{', '.join(parts)} = {total}" if parts else f"every term is 0, over {len(comparison.bridge)} terms"
    )
    return _told("Bridge", said, 4)


def _sum(terms: list[Term] | tuple[Term, ...]) -> float:
    return math.fsum(one.value for one in terms)


def _bare(value: float, scale: Scale) -> str:
    return scale.change(value).removesuffix(" points")


def _aligned(comparison: Comparison) -> list[str]:
    """What stands in the way of a plain comparison."""
    found = comparison.alignment
    counts = [
        (len(found.added), "added"),
        (len(found.removed), "removed"),
        (len(found.modified), "modified"),
        (len(found.missing_baseline), "missing in the baseline"),
        (len(found.missing_candidate), "missing in the candidate"),
    ]
    parts = [f"{len(found.common):,} common", *(f"{n:,} {what}" for n, what in counts if n)]
    lines = _told("Tasks", ", ".join(parts), 2)
    if comparison.refused is None:
        lines += _told("Settings", _plain(change_match.separability(comparison)), 3)
    return lines


def _many(report: Report, scale: Scale) -> list[str]:
    found: list[str] = []
    if report.series is not None:
        found += _told("Series", _plain(change_series.trend(report.series, scale)), 3)
        moved = f"{report.series.n_learned or len(report.series.learned):,} tasks learned, "
        moved += f"{report.series.n_forgotten or len(report.series.forgotten):,} forgotten"
        found += _told("", moved, 1)
    return found + (_gate(report.gate) if report.gate is not None else [])


def _gate(gate: Gate) -> list[str]:
    """The verdict of the policy, and what stands in its way."""
    open_ = [one for one in gate.checks if one.verdict != "PASS" and not one.waived]
    waived = sum(bool(one.waived) for one in gate.checks)
    said = f"{gate.verdict}: {words.count(len(gate.checks), 'check')}, {len(open_):,} not passed"
    found = _told("Gate", said + (f", {waived:,} waived" if waived else ""), 1)
    for one in open_[:3]:
        what = f"{hostile.line(one.metric, 40)} of {hostile.line(one.candidate, 30)}"
        found += _told("", f"{hostile.line(one.verdict, 20)} {what}: {hostile.line(one.text, 200)}", 1)
    return found


def _ending(report: Report) -> list[str]:
    found: list[str] = []
    if report.skipped_total:
        n = words.count(report.skipped_total, "line or file", "lines or files")
        found += _told("Skipped", f"{n} that could not be read", 1)
    return found


def _read(report: Report, comparison: Comparison) -> list[str]:
    # A command that would be cut is no command.
    told = dict.fromkeys(line for line, _ in change_tasks.to_read(comparison, report))
    lines = [line for line in told if len(line) <= COLUMNS - INDENT]
    return [f"{'Read next' if at == 0 else '':<{INDENT}}{line}" for at, line in enumerate(lines[:2])]


def _several(report: Report) -> list[str]:
    """A table with a line for each candidate, then what the runs together say."""
    found = tuple(say.worded(one, report) for one in report.comparisons)
    first = found[0]
    scale = say.scale(score_name(report))
    head = ["Candidate", "Score", "Change on new tasks", "These tasks", "New tasks", "p adj", "n"]
    rows = [_candidate(one) for one in found]
    ending = [*_many(report, scale), *_ending(report)]
    claims = _claims(found)
    room = LINES - 7 - len(ending)
    room -= len(rows) > room
    widths = [max(len(row[at]) for row in [head, *rows[:room]]) for at in range(len(head))]
    widths[0] = max(10, min(widths[0], COLUMNS - sum(widths[1:]) - 2 * (len(head) - 1)))
    base = f"{hostile.line(first.baseline, 40)} ({scale.level(first.score_baseline)} "
    lines = [
        f"BLADE  {words.count(len(found), 'candidate')} against {base}{say.score_label(first.score_name)})",
        "",
    ]
    for row in [head, *rows[:room]]:
        cells = [padded(cell, widths[at], right=at in (1, 2, 5, 6)) for at, cell in enumerate(row)]
        lines.append("  ".join(cells))
    if len(rows) > room:
        lines.append(f"… {words.count(len(rows) - room, 'more candidate')} in the report")
    lines += ["", f"Intervals are 95%; p is Holm's over all candidates; margin ±{scale.size(first.margin)}."]
    left = LINES - len(lines) - len(ending) - 1
    return [*lines, *claims[: max(0, left)], "", *ending] if ending else [*lines, *claims[: max(0, left)]]


def _candidate(one: Comparison) -> list[str]:
    scale, tested = say.scale(one.score_name), say.test_of(one, NEW)
    name = hostile.line(one.candidate, 60)
    if one.refused is not None:
        return [name, words.NONE, words.NONE, "not compared", words.NONE, words.NONE, "0"]
    change = scale.with_interval(tested.estimate, tested.low, tested.high) if tested else words.NONE
    return [
        name,
        scale.level(one.score_candidate),
        change.replace(" points", ""),
        one.verdict or words.NONE,
        one.verdict_new_tasks or words.NONE,
        words.p_number(
            one.p_adjusted_new if one.p_adjusted_new is not None else tested.p if tested else None
        ),
        words.whole(say.n_common(one)),
    ]


def _claims(found: tuple[Comparison, ...]) -> list[str]:
    """What is claimed to have moved each candidate, a line each."""
    return [fitted(f"{hostile.line(one.candidate, 30)}: {first_claim(one)}", COLUMNS) for one in found]
