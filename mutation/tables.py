"""Plant cells that stand in another row or column, and tasks in another bucket."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from random import Random

from mutation.lines import PROSE, ROW, Line, cells, replaced, with_cell
from mutation.numbers import fault
from mutation.page import EXPLAINING, Fault, Page

BUCKETS = ("always", "sometimes", "never")
_COUNTS = re.compile(r"^\d[\d,]*(?: / \d[\d,]*){2,3}$")
_DIVE = re.compile(r"^(?P<passed>\d+) of (?P<n>\d+) (?P<unit>repeats?) passed \(`(?P<all>[^`]+)`\)")
_SOME = re.compile(
    r"(?P<always>\d[\d,]*) passed in every repeat, (?P<some>\d[\d,]*) in some and (?P<never>\d[\d,]*)"
)
_VALUE = re.compile(r"\d|^[–∞]")
_NUMERIC = re.compile(r"^[+−<>\[×]*[\d∞]|^–$")


def shifted(page: Page, rng: Random) -> Iterator[Fault]:
    """Two cells exchange their places: with the row below, or with the column to the right."""
    for table in page.tables:
        for line, below in pairwise(table):
            yield from _down(line, below)
        for line in table:
            yield from _across(line)


def _down(line: Line, below: Line) -> Iterator[Fault]:
    mine, theirs = cells(line.text), cells(below.text)
    if len(mine) != len(theirs) or below.number != line.number + 1:
        return
    for column in range(1, min(len(mine), len(line.header))):
        # a sum in bold is the same sum
        if line.header[column] in EXPLAINING or mine[column].strip("*") == theirs[column].strip("*"):
            continue
        if (
            not (_VALUE.search(mine[column]) and _VALUE.search(theirs[column]))
            or mine[:column] == theirs[:column]
        ):
            continue
        edits = (
            (line.number, with_cell(line.text, column, theirs[column])),
            (below.number, with_cell(below.text, column, mine[column])),
        )
        yield Fault(
            "shifted", "table", line.section, edits, (line.number, below.number),
            f"{line.text}\n{below.text}", f"{edits[0][1]}\n{edits[1][1]}",
        )  # fmt: skip


def _across(line: Line) -> Iterator[Fault]:
    found = cells(line.text)
    for left in range(1, min(len(found), len(line.header)) - 1):
        right = left + 1
        # what a value rests on is as true beside it as in its place
        if {line.header[left], line.header[right]} & (EXPLAINING | {"Rests on"}) or found[left] == found[
            right
        ]:
            continue
        if _NUMERIC.search(found[left]) and _NUMERIC.search(found[right]):
            text = with_cell(with_cell(line.text, left, found[right]), right, found[left])
            yield fault("shifted", line, text)


def bucket(page: Page, rng: Random) -> Iterator[Fault]:
    """A task, or the number of tasks, of one bucket is put into another."""
    for line in page.lines:
        if line.role == ROW:
            yield from _in_row(line, rng)
        elif line.role == PROSE:
            yield from _in_prose(line, rng)
    yield from _moved(page, rng)


def _in_row(line: Line, rng: Random) -> Iterator[Fault]:
    found = cells(line.text)
    for column, cell in enumerate(found):
        if _COUNTS.match(cell):
            parts = cell.split(" / ")
            if parts[0] != parts[-1] or parts[0] != parts[1]:
                new = parts[1:] + parts[:1]
                yield fault("bucket", line, with_cell(line.text, column, " / ".join(new)))
        told = re.fullmatch(r"(always|sometimes|never) → (always|sometimes|never)", cell)
        if told:
            at = rng.choice((1, 2))
            new_word = rng.choice([one for one in BUCKETS if one != told[at]])
            yield fault(
                "bucket", line, with_cell(line.text, column, replaced(cell, *told.span(at), new_word))
            )
    if line.header[0] == "Bucket" and found[0] in BUCKETS:
        # the share of a bucket that another one of the same size could have would not be false
        others = [one for one in BUCKETS if one != found[0]]
        yield fault("bucket", line, with_cell(line.text, 0, rng.choice(others)))


def _in_prose(line: Line, rng: Random) -> Iterator[Fault]:
    hit = _SOME.search(line.text)
    if hit and len({hit["always"], hit["some"], hit["never"]}) > 1:
        text = f"{hit['some']} passed in every repeat, {hit['never']} in some and {hit['always']}"
        if text != hit[0]:
            yield fault("bucket", line, replaced(line.text, *hit.span(), text))
    hit = _DIVE.match(line.text)
    if hit:
        passed, n = int(hit["passed"]), int(hit["n"])
        for new in {0, n, n // 2 if n > 1 else 0} - {passed}:
            kinds = [kind(at, n) for at in (passed, new)]
            if kinds[0] != kinds[1]:
                ends = " ".join(["1"] * new + ["0"] * (n - new))
                text = f"{new} of {n} {hit['unit']} passed (`{ends}`)"
                yield fault("bucket", line, replaced(line.text, *hit.span(), text))


def kind(passed: int, n: int) -> str:
    return "never" if passed == 0 else "always" if passed == n else "sometimes"


_LISTS = {"All tasks that never pass": "never", "All tasks that pass sometimes": "sometimes"}


def _moved(page: Page, rng: Random) -> Iterator[Fault]:
    """The row of a task stands in the list of another bucket as well, in the words of that list."""
    by_list: dict[str, list[Line]] = {}
    for line in page.lines:
        name = _LISTS.get(line.section.rpartition(" > ")[2], "")
        if line.role == ROW and name and line.header[0] == "Task":
            by_list.setdefault(name, []).append(line)
    for here, there in (("never", "sometimes"), ("sometimes", "never")):
        for line in by_list.get(here, ())[:12]:
            if by_list.get(there) and run_of(line) == run_of(by_list[there][0]):
                at = rng.choice([one for one in by_list[there] if run_of(one) == run_of(line)])
                row = _as_in(line, at)
                if page.buckets.get(re.sub(r"^`([^`]+)`.*", r"\1", cells(line.text)[0])) == {here}:
                    edits = ((at.number, f"{at.text}\n{row}"),)
                    yield Fault("bucket", "table", at.section, edits, (at.number + 1,), "", row)


def run_of(line: Line) -> str:
    """The run under whose heading a line stands; nothing where there is one run only."""
    told = re.search(r"Run `([^`]+)`", line.section)
    return told[1] if told else ""


def _as_in(line: Line, at: Line) -> str:
    """The cells of a row under the columns of another table, as far as it has them."""
    found = dict(zip(line.header, cells(line.text), strict=False))
    return f"| {' | '.join(found.get(name, '52.7%') for name in at.header)} |"
