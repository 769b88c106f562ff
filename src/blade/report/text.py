"""Print the first page on a terminal: wrapped to its width, with colour where it has some, cut nowhere."""

from __future__ import annotations

import os
import shutil
import sys
from textwrap import wrap

from blade import hostile, number_format
from blade.model import Report
from blade.report import causes, first_page, quantities
from blade.report.blocks import Figure, Line, short
from blade.report.change import verdict as change_verdict
from blade.report.facts import Facts, facts

SUFFIX = ".txt"
WIDEST, NARROWEST = 110, 60  # columns
PIPED = 100  # columns where nothing says how wide the reader's window is
LABEL = 27  # columns of the labels on the left
NAME = 30  # cells of a run's name in the table of several runs
SHARED = 6  # groups of several runs that are told once for all of them


def render(report: Report, figures: tuple[Figure, ...] = ()) -> str:
    """The first page of the runs as plain text."""
    runs = facts(report)
    width = columns()
    if not runs:
        lines = ["No run was read."]
    elif len(runs) == 1:
        lines = [*_one(runs[0], width), *_ending(report, width)]
    else:
        lines = [*_several(report, runs, width), *_ending(report, width)]
    return "\n".join(hostile.lines(line).rstrip() for line in lines) + "\n"


_ANSWERS = {"No.": "31", "With care.": "33", "Yes,": "32"}  # red, yellow, green


def painted(page: str) -> str:
    """The page with colour: labels bold, the answer about trust red, yellow or green. A pipe gets none of it."""
    if os.environ.get("NO_COLOR") is not None:
        return page
    found = []
    for line in page.split("\n"):
        label, rest = line[:LABEL], line[LABEL:]
        if label.strip() in first_page.LABELS:
            for answer, colour in _ANSWERS.items():
                if label.startswith(first_page.TRUSTED) and rest.startswith(answer):
                    rest = f"\x1b[1;{colour}m{answer}\x1b[0m{rest[len(answer) :]}"
            line = f"\x1b[1m{label}\x1b[0m{rest}"
        found.append(line)
    return "\n".join(found)


def columns() -> int:
    """How wide the page is: as the terminal, within reason; a file or a pipe has no width."""
    if not sys.stdout.isatty():
        return PIPED
    return max(NARROWEST, min(WIDEST, shutil.get_terminal_size().columns))


def fitted(text: str, columns: int) -> str:
    """`text`, cleaned, in at most `columns` cells of a terminal; wide characters take two."""
    from rich.cells import cell_len, set_cell_size

    text = hostile.lines(text).replace("\n", " ").replace("\t", " ")
    return text if cell_len(text) <= columns else set_cell_size(text, columns - 1).rstrip() + "…"


def padded(text: str, columns: int, right: bool = False) -> str:
    from rich.cells import cell_len

    text = fitted(text, columns)
    space = " " * (columns - cell_len(text))
    return space + text if right else text + space


def wrapped(text: str, columns: int, is_command: bool = False) -> list[str]:
    """`text` in lines of at most `columns` cells of a terminal; the words of a command stay whole."""
    from rich.cells import cell_len

    wide = cell_len(text) > len(text)
    if wide:  # a character of two cells is counted as two
        text = "".join(sign + "\0" if cell_len(sign) == 2 else sign for sign in text)
    lines = wrap(text, columns - wide, break_long_words=not is_command, break_on_hyphens=False)
    return [line.replace("\0", "") for line in lines] or [""]


def _said(line: Line) -> str:
    return hostile.line(short(line, "`"), 2000)


def _labelled(label: str, texts: list[str], width: int) -> list[str]:
    """Texts under a label, each wrapped and beginning a line of its own."""
    lines = [line for text in texts for line in wrapped(text, width - LABEL, text.startswith("blade "))]
    return [f"{label if at == 0 else '':<{LABEL}}{line}" for at, line in enumerate(lines)]


def _one(facts: Facts, width: int) -> list[str]:
    answer, reasons = first_page.trust(facts)
    told = [_said(line) for line in reasons]
    lead = _said(answer)
    first = [f"{lead} {told[0]}", *told[1:]] if told else [lead]
    found = [*wrapped(_said(first_page.headline(facts)), width), ""]
    found += _labelled(first_page.TRUSTED, first, width)
    if facts.groups or (facts.unexplained is not None and facts.unexplained.rows):
        found += _points(facts, width)
    where = first_page.slices(facts)
    if where:
        found += _labelled(first_page.WHERE, [_said(line) for line in where], width)
    if facts.groups:
        found += _first_group(facts, width)
        found += _labelled(first_page.FIX, [_said(line) for line in first_page.fixes(facts)], width)
    look = [f"{command}   ({why})" for command, why in first_page.look(facts)]
    return found + (_labelled(first_page.LOOK, look, width) if look else [])


def _points(facts: Facts, width: int) -> list[str]:
    """The groups as a table: points, what it is, label, failures, passes that show the same."""
    from rich.cells import cell_len

    rows = [[_said(cell) for cell in row] for row in first_page.points(facts)]
    rows = [[row[0].removesuffix(" points"), *row[1:]] for row in rows]
    widths = [max(cell_len(row[at]) for row in rows) for at in range(5)]
    room = width - LABEL - widths[0] - sum(widths[2:]) - 8
    widths[1] = max(20, min(widths[1], room))
    found = []
    for at, row in enumerate(rows):
        names = wrapped(row[1], widths[1])
        cells = [row[0].rjust(widths[0]), padded(names[0], widths[1]), row[2].ljust(widths[2])]
        cells += [row[3].rjust(widths[3]), row[4].rjust(widths[4])]
        label = first_page.POINTS if at == 0 else ""
        found.append(f"{label:<{LABEL}}{'  '.join(cells)}")
        found += [f"{'':<{LABEL + widths[0] + 2}}{name}" for name in names[1:]]
    counted = "passes: passing rollouts that show the same" if any(group.passed_rows for group in facts.groups) else ""
    legend = "; ".join(filter(None, (first_page.legend(facts), counted)))
    return found + (_labelled("", [f"({legend})"], width) if legend else [])


def _first_group(facts: Facts, width: int) -> list[str]:
    """What the first groups are, each with words from one of its own rows."""
    told = {one.text for one in facts.trust[: first_page.MAX_TRUST]}
    texts = []
    for place, group in enumerate(facts.groups[:3], 1):
        quote = ""
        if group.quote is not None and group.quote.quote:
            address = f"{group.quote.task}/{group.quote.repeat}"
            quote = f' In {hostile.line(address, 60)}: "{hostile.line(group.quote.quote, 160)}"'
        is_told = group.text in told
        text = f" {hostile.line(group.name, 120) + ' (see above).' if is_told else hostile.line(group.text, first_page.SENTENCE)}"
        if text or quote:
            texts.append(f"{place}.{text}{quote}")
    return _labelled(first_page.HAPPENED, texts, width) if texts else []


def _several(report: Report, runs: tuple[Facts, ...], width: int) -> list[str]:
    """One line for each run, then the groups that they share, then the verdicts of their comparison."""
    from rich.cells import cell_len

    head = ["Run", "Score", "95% interval", "Tasks", "Rows", "Trust", "Largest group"]
    rows = []
    for each in runs:
        largest = next(iter(each.groups), None)
        rows.append(
            [
                fitted(hostile.line(each.run.name, 60), NAME),
                quantities.said(each.score, each.score.value, each.is_rate),
                short(quantities.interval(each.score, each.is_rate)).strip() or number_format.NONE,
                f"{each.score.n:,}",
                f"{each.run.n_rollouts:,}",
                _said(first_page.trust(each)[0]).partition(":")[0].partition(",")[0].rstrip("."),
                f"{largest.label.value} {hostile.line(largest.name, 60)}" if largest else number_format.NONE,
            ]
        )
    *widths, last = [max(cell_len(row[at]) for row in [head, *rows]) for at in range(len(head))]
    before = sum(widths) + 2 * len(widths)
    found = [f"{number_format.count(len(runs), 'run')}", ""]
    for row in [head, *rows]:
        *cells, group = row
        lines = wrapped(group, max(20, min(last, width - before)))
        cells = [padded(cell, widths[at], right=0 < at < 5) for at, cell in enumerate(cells)]
        found.append("  ".join([*cells, lines[0]]))
        found += [" " * before + line for line in lines[1:]]
    found += ["", *_matrix(report, width), *_shared(runs, width)]
    alarms = [
        f"{hostile.line(each.run.name, 40)}: {one.label.value if one.label else ''} {hostile.line(one.text, first_page.SENTENCE)}"
        for each in runs
        for one in each.trust
        if one.level == "alarm"
    ]
    if alarms:
        found += _labelled(first_page.TRUSTED, alarms, width)
    fixes = [
        f"{hostile.line(each.run.name, 40)}: {_said(first_page.fixes(each)[0])}"
        for each in runs
        if each.groups
    ]
    found += _labelled(first_page.FIX, fixes, width) if fixes else []
    for one in report.comparisons:
        found += ["", *wrapped(change_verdict.in_short(one), width)]
    return found


def _matrix(report: Report, width: int) -> list[str]:
    """What the runs together say of their tasks."""
    matrix = report.task_matrix
    if matrix is None:
        return []
    said = [
        f"{len(matrix.tasks):,} tasks in common: {len(matrix.never_passed):,} passed by no run, "
        f"{len(matrix.passed_by_one):,} by one run only."
    ]
    for names, what in (
        (matrix.gold_to_review, "different models agree against the expected answer (review these golds)"),
        (matrix.gold_differs, "the runs expect different answers"),
        (matrix.misfit_runs, "runs that do not belong to these tasks"),
    ):
        if names:
            shown = ", ".join(hostile.line(name, 40) for name in names[:8])
            said.append(f"{len(names):,}: {what}: {shown}{' …' if len(names) > 8 else ''}")
    return _labelled("Tasks", said, width)


def _shared(runs: tuple[Facts, ...], width: int) -> list[str]:
    """The groups of all runs by name, with the points they cost in each."""
    cost: dict[str, dict[str, float]] = {}
    label: dict[str, str] = {}
    for each in runs:
        for group in each.groups:
            cost.setdefault(group.name, {})[each.run.name] = group.points
            label[group.name] = causes.called(group.label)
    ranked = sorted(cost, key=lambda name: -sum(cost[name].values()))[:SHARED]
    texts = []
    for name in ranked:
        parts = ", ".join(f"{hostile.line(run, 30)} {100 * points:.1f}" for run, points in cost[name].items())
        texts.append(f"{hostile.line(name, 90)} [{label[name]}]: {parts}")
    return _labelled(first_page.POINTS, texts, width) if texts else []


def _ending(report: Report, width: int) -> list[str]:
    """What was skipped and what cannot be said."""
    said = []
    if report.skipped_total:
        said.append(
            f"{number_format.count(report.skipped_total, 'line or file', 'lines or files')} could not be read."
        )
    if report.gaps:
        where = "see the report" if " -o " in report.made_by.get("command", "") else "see the report: -o DIR"
        said.append(f"{number_format.count(len(report.gaps), 'limitation')} ({where}).")
    return ["", *wrapped(" ".join(said), width)] if said else []
