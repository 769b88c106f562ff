"""Cut a golden report down to its shallow baseline: headings and tables of aggregate numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from blade.package.layout import compiled, read_text, sealed, why_kept, write_text

NOTE = (
    "This is a negative control, made from the headings and aggregate tables of a golden report.",
    "It names no task, quotes no rollout, gives no cause and recommends nothing.",
    "A judge that scores it close to the golden report does not look for a diagnosis.",
    "Do not use it as a report.",
)
HEADING = re.compile(r"^ {0,3}(#{1,6})\s+(.*?)(?:\s+#+)?\s*$")
_RULE = re.compile(r"^\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$")
# Headings under which a table is a diagnosis or no result, whatever its columns are called.
_DIAGNOSIS = compiled("diagnosis")
_LONG = 160  # characters of a cell that tells a story rather than a number


def make_shallow(source: Path, output: Path, force: bool = False) -> str:
    """Write the shallow baseline of a report; returns why not, if a person has changed what is there."""
    draft = sealed(shallow(read_text(source), source.stem))
    why = "" if force else why_kept(output, draft)
    if not why:
        write_text(output, draft)
    return why


def shallow(text: str, name: str) -> str:
    """The headings of the first two levels, and under them every table of aggregate numbers."""
    baseline = [f"# Shallow Baseline: {name}", "", *NOTE, ""]
    heading, below, end = "", "", 0
    lines = dict(unfenced(text))
    for number, line in lines.items():
        if number < end:
            continue
        if hit := HEADING.match(line):
            depth = len(hit[1])
            heading, below = (hit[2], "") if depth < 3 else (heading, hit[2])
            baseline += [f"{hit[1]} {hit[2]}", ""] if depth < 3 else []
        elif "|" in line and "|" in (rule := lines.get(number + 1, "")) and _RULE.match(rule):
            end = number + 2
            while "|" in lines.get(end, ""):
                end += 1
            table = [lines[place].strip() for place in range(number, end)]
            baseline += [*table, ""] if _is_aggregate(table, heading, below) else []
    return "\n".join(baseline).rstrip() + "\n"


def unfenced(text: str) -> Iterator[tuple[int, str]]:
    """The lines of a Markdown text outside fences, each with its number from 0."""
    fence = ""
    for number, line in enumerate(text.splitlines()):
        mark = re.match(r" {0,3}(`{3,}|~{3,})", line)
        if mark and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
        elif not fence:
            yield number, line


def _is_aggregate(table: list[str], heading: str, below: str) -> bool:
    """Whether a table holds headline numbers: by its columns and first cells, not by its heading alone."""
    header, rows = _cells(table[0]), [_cells(line) for line in table[2:]]
    is_story = any(len(cell) > _LONG for row in rows for cell in row)
    if is_story or any(map(compiled("detail").search, header)) or _DIAGNOSIS.search(below):
        return False
    if compiled("aggregate").search(heading) and not below:
        return True
    if _DIAGNOSIS.search(heading):
        return False
    has_numbers = any(re.search(r"\d", cell) for row in rows for cell in row[1:])
    first = [row[0] for row in rows if row]
    return has_numbers and any(compiled("measure").search(cell) for cell in [*header, *first])


def _cells(line: str) -> list[str]:
    inner = line.strip().removeprefix("|").removesuffix("|")
    return [cell.strip().strip("`*_ ") for cell in re.split(r"(?<!\\)\|", inner)]
