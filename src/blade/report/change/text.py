"""Say on one screen of a terminal why a score changed."""

from __future__ import annotations

import math
from textwrap import wrap

from blade import hostile, number_format
from blade.model import Checked, Churn, Comparison, Report, Term
from blade.report.blocks import short
from blade.report.change import gate as change_gate
from blade.report.change import match as change_match
from blade.report.change import series as change_series
from blade.report.change import tasks as change_tasks
from blade.report.change import terms as change_terms
from blade.report.change import verdict as change_verdict
from blade.report.change import words as say
from blade.report.change.many import first_claim, score_name
from blade.report.change.names import apart, cell_width, middle
from blade.report.change.sentences import sentence
from blade.report.change.verdict import pair
from blade.report.change.words import NEW, THESE, Scale
from blade.report.text import fitted, padded

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
    found = report.comparisons
    if not found:
        lines = ["No pair of runs was compared."]
    elif len(found) == 1:
        lines = _one(report, found[0])
    else:
        lines = _several(report)
    return "\n".join(fitted(text, COLUMNS).rstrip() for text in lines[:LINES]) + "\n"


def _one(report: Report, comparison: Comparison) -> list[str]:
    scale = say.scale(comparison.score_name)
    baseline, candidate = apart(pair(comparison), 44)
    top = [f"BLADE  {baseline} → {candidate}", ""]
    ending = [*_series(report, scale), *_ending(report)]
    if comparison.refused is not None:
        said = short(sentence(comparison.refused, "", names=pair(comparison)))
        top += [*_told("Refused", said, 6), *_aligned(comparison)]
        return [*top, *_gate(report, LINES - len(top) - len(ending)), *ending]
    top += _change(comparison, scale)
    if comparison.identical:
        top += _told("Verdict", "equivalent: both runs hold the same rows", 1)
        return [*top, *_gate(report, LINES - len(top) - len(ending)), *ending]
    least = len(_why(comparison, report, 1, False)) + len(ending)
    for dropped in range(4):  # a gate is told in full before what can be read in the report
        head, rest = _facts(comparison, report, dropped)
        gate = _gate(report, LINES - len(top) - len(head) - len(rest) - least)
        if len(gate) >= len(_gate(report, LINES)):
            break
    top, ending = [*top, *head], [*gate, *ending]
    notes = [short(note) for note in change_verdict.notes(comparison)]
    # What is left out first if the screen is too small: what to read, further claims, what is beside them.
    for claims, shows, reads in (
        (TOLD, True, 2),
        (TOLD, True, 0),
        (TOLD - 1, True, 0),
        (1, True, 0),
        (1, False, 0),
    ):
        read = _read(report, comparison)[:reads]
        why = _why(comparison, report, claims, shows)
        room = LINES - sum(map(len, (top, why, rest, ending, read)))
        if room >= len(_notes(notes, LINES)):
            break
    ending = [*_notes(notes, room), *ending, *read]
    return [*[*top, *why, *rest][: LINES - len(ending)], *ending]


def _facts(comparison: Comparison, report: Report, dropped: int) -> tuple[list[str], list[str]]:
    """What stands before the claims and after them, less so many parts: churn, settings, what resolves it."""
    scale = say.scale(comparison.score_name)
    before, after = _verdicts(comparison, scale), ["", *_aligned(comparison, dropped < 2)]
    if dropped < 3:
        before += _told("Resolve", short(change_verdict.resolve(comparison, report)), 3)
    if comparison.churn is not None and dropped < 1:
        after += _told("Churn", _churn(comparison, comparison.churn), 2)
    return before, after


def _why(comparison: Comparison, report: Report, claims: int, shows: bool) -> list[str]:
    scale = say.scale(comparison.score_name)
    return ["", *_movers(comparison, report, claims, shows), *_bridge(comparison, scale)]


def _churn(comparison: Comparison, churn: Churn) -> str:
    """How much moved, and whether noise alone would."""
    scale = say.scale(comparison.score_name)
    moved = f"{churn.n_up:,} up, {churn.n_down:,} down of {_n(comparison)}"
    said = f"{_size(scale, churn.gains - churn.losses)}: {moved}; "
    if churn.p is None:
        return said + "with so few repeats, how much of it is noise is unknown"
    word = "beyond" if churn.p <= say.ALPHA else "not beyond"
    null = f"{_bare(churn.null_low, scale)} to {_bare(churn.null_high, scale)}".replace("+", "")
    return said + f"two runs of one model would differ by {null}, so {word} noise ({number_format.p_value(churn.p)})"


def _notes(notes: list[str], room: int) -> list[str]:
    """The notes that there is room for, each in full, and how many more there are."""
    told = [_told("" if at else "Notes", note, LINES) for at, note in enumerate(notes)]
    for shown in range(len(told), -1, -1):
        left = len(told) - shown
        label = "" if shown else "Notes"
        more = (
            _told(label, f"{number_format.count(left, 'more note' if shown else 'note')} in the report", 1)
            if left
            else []
        )
        found = [line for lines in told[:shown] for line in lines] + more
        if len(found) <= max(room, 0):
            return found
    return []


def _told(label: str, text: str, most: int) -> list[str]:
    """`text` under its label, in at most so many lines; nothing where there is no text."""
    hang = " " * (len(text) - len(text.lstrip()))
    text = text.removeprefix("What would resolve it: ")
    lines = wrap(text, COLUMNS - INDENT, subsequent_indent=hang) if text else []
    if len(lines) > most:
        lines = [
            *lines[: most - 1],
            fitted(" ".join([lines[most - 1], *(line.strip() for line in lines[most:])]), COLUMNS - INDENT),
        ]
    return [f"{label if at == 0 else '':<{INDENT}}{line}" for at, line in enumerate(lines)]


def _change(comparison: Comparison, scale: Scale) -> list[str]:
    of = say.score_label(comparison.score_name)
    levels = f"{_level(scale, comparison.score_baseline)} → {_level(scale, comparison.score_candidate)}"
    said = f"{scale.said(comparison.delta)} of {of}: {levels}, {_n(comparison)} in common"
    found = _told("Change", said, 1)
    if change_verdict.is_other_on_common(comparison):
        common = (comparison.common_baseline, comparison.common_candidate)
        of_common = " → ".join(_level(scale, value) for value in common)
        said = f"over the common tasks {scale.said(comparison.delta_common)}: {of_common}; "
        found += _told("", said + "the rest comes from tasks that only one run has", 1)
    said = short(change_verdict.mechanical(comparison)).partition("; their")[0]
    return found + _told("", said, 3)


def _verdicts(comparison: Comparison, scale: Scale) -> list[str]:
    found: list[str] = []
    for question, label in LABELS.items():
        word = say.verdict_on(comparison, question) or "no verdict"
        tested = say.test_of(comparison, question)
        change = _with_level(short(scale.tested(tested, ""))) if tested else number_format.NONE
        rests = short(change_verdict.rests_on(comparison, question))
        if say.is_small(comparison, question):
            change = f"{say.SMALL}: {change}"
        if word == "inconclusive" and (mde := change_verdict.smallest(comparison, question)) is not None:
            rests += f"; smallest detectable effect {_size(scale, mde)}"
        lines = wrap(f"{change}; {rests}", COLUMNS - INDENT - 14)[:3]
        found.append(f"{label:<{INDENT}}{word.upper():<13} {lines[0]}")
        found += [" " * (INDENT + 14) + line for line in lines[1:]]
    margin = f"{short(say.margin(comparison))} (--margin): changes within it count as equivalent"
    return [*found, *_told("Margin", margin, 1)]


def _with_level(text: str) -> str:
    """Say of an interval which one it is."""
    return text.replace(" [", ", 95% CI [", 1)


def _movers(comparison: Comparison, report: Report, told: int, shows: bool) -> list[str]:
    """The first claims; under the first what its rollouts show as well, and how to read some of them."""
    movers = change_terms.ranked(comparison.movers)
    if not movers:
        return _told("Moved by", short(change_terms.unclaimed(comparison)), 2)
    found: list[str] = []
    for at, one in enumerate(movers[:told]):
        mark = "[mechanical] " if one.mechanical else ""
        claim = _with_level(
            short((*change_terms.mover_told(comparison, one), *change_terms.mover_numbers(comparison, one)))
        )
        found += _told("Moved by" if at == 0 else "", f"{at + 1}. {mark}{claim}", 4)
        if at == 0 and shows:
            for line in change_terms.beside(one, comparison)[:2]:
                found += _told("", f"   {short(line)}", 3)
            found += [
                f"{'':<{INDENT}}   {line}" for line in _typed(change_terms.to_read(one, comparison, report))
            ]
    found += _told("", short(change_terms.undetermined(comparison)), 2)
    left = len(movers) - told
    return found + (_told("", f"{number_format.count(left, 'more claim')} in the report", 1) if left > 0 else [])


def _bridge(comparison: Comparison, scale: Scale) -> list[str]:
    """The largest terms and what the others add up to; together they are the change."""
    if not comparison.bridge:
        return []
    moved = [one for one in comparison.bridge if abs(one.value) >= change_terms.SAME]
    shown, left = change_terms.folded(moved, SHOWN)
    parts = [f"{say.term(one.term, 60)} {_bare(one.value, scale)}" for one in shown]
    if left:
        parts.append(f"{len(left)} smaller {_bare(_sum(left), scale)}")
    total = scale.said(_sum(comparison.bridge))
    said = (
        f"{', '.join(parts)} = {total}" if parts else f"every term is 0, over {len(comparison.bridge)} terms"
    )
    return _told("Bridge", said, 4)


def _sum(terms: list[Term] | tuple[Term, ...]) -> float:
    return math.fsum(one.value for one in terms)


def _bare(value: float, scale: Scale) -> str:
    return scale.said(value).removesuffix(" points")


def _level(scale: Scale, value: float | None) -> str:
    return number_format.percent(value) if scale.is_rate else number_format.number(value)


def _size(scale: Scale, value: float) -> str:
    return scale.said(abs(value)).removeprefix("+")


def _n(comparison: Comparison) -> str:
    return short(say.n_common(comparison))


def _aligned(comparison: Comparison, settings: bool = True) -> list[str]:
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
    if comparison.refused is None and settings:
        lines += _told("Settings", short(change_match.separability(comparison)), 3)
    return lines


def _series(report: Report, scale: Scale) -> list[str]:
    found = report.series
    if found is None:
        return []
    untold = short(change_series.single_rollouts(found, report))
    learned, forgotten = found.n_learned or len(found.learned), found.n_forgotten or len(found.forgotten)
    moved = (
        untold[:1].upper() + untold[1:] or f"{number_format.count(learned, 'task')} learned, {forgotten:,} forgotten"
    )
    return [*_told("Series", short(change_series.trend(found, scale)), 4), *_told("", moved, 2)]


def _gate(report: Report, room: int) -> list[str]:
    """The verdict of the policy and every check that stands in its way, failures first."""
    gate = report.gate
    if gate is None:
        return []
    open_ = [one for one in gate.checks if one.verdict != "PASS" and not one.waived]
    open_.sort(key=lambda one: change_gate.place(one.verdict))
    doubtful = [one for one in gate.checks if one.verdict == "PASS" and one.remark]
    waived = sum(bool(one.waived) for one in gate.checks)
    said = f"{gate.verdict}: {number_format.count(len(gate.checks), 'check')}, {len(open_):,} not passed"
    head = _told("Gate", said + (f", {waived:,} waived" if waived else ""), 1)
    checks = _checks([*open_, *doubtful], gate.baseline)
    room = max(room, LEAST_GATE)
    for most in (6, 3, 2, 1):
        found = [line for check in checks for line in _told("", check, most)]
        if len(head) + len(found) <= room:
            return [*head, *found]
    shown = room - len(head) - 1
    left = number_format.count(len(checks) - shown, "more check")
    more = _told("", f"{left} {'to look at' if doubtful else 'not passed'}, in the report", 1)
    return [*head, *found[:shown], *more]


def _checks(found: list[Checked], baseline: str) -> list[str]:
    """What each check says; the candidate is named where there are several."""
    runs = list(dict.fromkeys(one.candidate for one in found))
    called = dict(zip(runs, apart(runs, 30), strict=True))
    said = []
    for one in found:
        of = f" of {called[one.candidate]}" if len(runs) > 1 else ""
        why = short(sentence(one.text, "", 400, (baseline, *runs)))
        said.append(f"{hostile.line(one.verdict, 20)} {hostile.line(one.metric, 60)}{of}: {why}")
    return said


def _ending(report: Report) -> list[str]:
    found: list[str] = []
    if report.skipped_total:
        n = number_format.count(report.skipped_total, "line or file", "lines or files")
        found += _told("Skipped", f"{n} that could not be read", 1)
    return found


def _read(report: Report, comparison: Comparison) -> list[str]:
    lines = _typed(change_tasks.to_read(comparison, report))
    return [f"{'Read next' if at == 0 else '':<{INDENT}}{line}" for at, line in enumerate(lines)]


def _typed(found: list[tuple[str, str]]) -> list[str]:
    """Commands that fit a line: one that would be cut is no command."""
    return [line for line in dict.fromkeys(line for line, _ in found) if len(line) <= COLUMNS - INDENT - 3]


def _several(report: Report) -> list[str]:
    """A table with a line for each candidate, then what the runs together say."""
    found = report.comparisons
    first, scale = found[0], say.scale(score_name(report))
    ending = [*_series(report, scale), *_ending(report)]
    ending = [*_gate(report, LINES - 7 - len(ending) - min(len(found), LEAST_ROWS)), *ending]
    room = LINES - 7 - len(ending)
    room -= len(found) > room
    base = f"{middle(first.baseline, 40)} ({_level(scale, first.score_baseline)} "
    lines = [
        f"BLADE  {number_format.count(len(found), 'candidate')} against {base}{say.score_label(first.score_name)})",
        "",
        *_table(found, room),
    ]
    if len(found) > room:
        lines.append(f"… {number_format.count(len(found) - room, 'more candidate')} in the report")
    legend = f"Intervals are 95%; p is Holm's over all candidates; margin {short(say.margin(first))}"
    is_small = any(say.is_small(one, question) for one in found for question in LABELS)
    lines += ["", legend + (f"; * {say.SMALL}." if is_small else ".")]
    left = LINES - len(lines) - len(ending) - 1
    claims = _claims(found)[: max(0, left)]
    return [*lines, *claims, "", *ending] if ending else [*lines, *claims]


def _table(found: tuple[Comparison, ...], room: int) -> list[str]:
    """A line for each candidate, under the names of the columns; numbers are never cut, names are."""
    head = ["Candidate", "Score", "Change on new tasks", "These tasks", "New tasks", "p adj", "n"]
    rows = [head, *(_candidate(one) for one in found[:room])]
    widths = [max(len(row[at]) for row in rows) for at in range(len(head))]
    most = max(10, COLUMNS - sum(widths[1:]) - 2 * (len(head) - 1))
    names = apart([one.candidate for one in found], most)
    widths[0] = min(most, max(map(cell_width, [head[0], *names[:room]])))
    lines = []
    for name, row in zip([head[0], *names], rows, strict=False):
        cells = [
            padded(cell, widths[at], right=at in (1, 2, 5, 6)) for at, cell in enumerate([name, *row[1:]])
        ]
        lines.append("  ".join(cells))
    return lines


def _candidate(one: Comparison) -> list[str]:
    scale, tested = say.scale(one.score_name), say.test_of(one, NEW)
    if one.refused is not None:
        return ["", number_format.NONE, number_format.NONE, "not compared", number_format.NONE, number_format.NONE, "0"]
    change = short(scale.tested(tested, "")) if tested else number_format.NONE
    verdicts = [
        (say.verdict_on(one, question) or number_format.NONE) + "*" * say.is_small(one, question)
        for question in LABELS
    ]
    return [
        "",
        _level(scale, one.score_candidate),
        change.replace(" points", ""),
        *verdicts,
        number_format.p_number(
            one.p_adjusted_new if one.p_adjusted_new is not None else tested.p if tested else None
        ),
        number_format.whole(len(one.alignment.common)),
    ]


def _claims(found: tuple[Comparison, ...]) -> list[str]:
    """What is claimed to have moved each candidate, a line each."""
    names = apart([one.candidate for one in found], 30)
    return [f"{name}: {short(first_claim(one))}" for name, one in zip(names, found, strict=True)]
