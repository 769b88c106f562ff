"""Turn tables with a column for each run, or a row for each rule, into claims, by their labels."""

from __future__ import annotations

import re
from collections.abc import Iterator

from blade.check.reader.efforts import meant, of_effort
from blade.check.reader.ground import ROLLOUTS, TASKS, Reading
from blade.check.reader.mentions import AMOUNT, METRIC, RUN, STATE, Mention, Reader
from blade.check.reader.quantities import quantities
from blade.check.reader.verdicts import Place, judged
from blade.model import Assertion, Behaviour
from blade.prose.document import Row, Table

_CHANGE = re.compile(r"\W*(?:Δ|change|difference|diff|delta|gap|gain|p)?\W*(?:\(.*\))?", re.IGNORECASE)
_CORNER = re.compile(
    r"\W*(?:metrics?|measures?|outcomes?|quantity|what|runs?|models?|results?|values?)?\W*", re.IGNORECASE
)
_EFFORT = re.compile(
    r"(?:(?:mean|average|avg\.?)\s+)?(?P<what>[a-z -]+?)"
    r"(?:\s+(?:per|a|/)\s*(?:rollout|task|question|run|attempt))?"
    r"(?:\s+\((?:mean|average|avg\.?)\))?",
    re.IGNORECASE,
)
_STATES = re.compile(r"(?:n(?:umber)? of\s+|#\s*)?(?:rollouts?|tasks?|rows?|questions?)?\s*", re.IGNORECASE)
_NUMBER = re.compile(r"\W{0,2}\s*\d[\d,]*(?:\.\d+)?\s*(?:%|s|sec(?:onds)?)?\W{0,2}")


_COUNT = re.compile(r"\W{0,2}\d[\d,]*\W{0,2}")
_OF = r"(?:(?:in|n|#|no\.|rollouts?|rows|runs|of) )*"
_FAILING = re.compile(rf"{_OF}fail(?:s|ed|ing|ures?)?(?: rollouts?| rows)?", re.I)
_PASSING = re.compile(rf"{_OF}(?:pass(?:es|ed|ing)?|success(?:es|ful)?)(?: rollouts?| rows)?", re.I)
_FIRING = re.compile(
    r"(?:n |# ?|all )?(?:rollouts?|rows)(?: affected| with it)?|fires(?: on)?|fired(?: on)?|hits", re.I
)
_TASKS = re.compile(r"(?:n |# ?)?tasks?(?: affected| with it)?", re.I)


def _fired(seen: Behaviour, head: str) -> list[tuple[int, str]]:
    """What a column says of a rule: its rollouts that fail, that pass, all of them, or its tasks."""
    head = head.strip("`* ")
    if _FAILING.fullmatch(head):
        return [(seen.in_fail, "failing rollouts")]
    if _PASSING.fullmatch(head):
        return [(seen.in_pass, "passing rollouts")]
    if _FIRING.fullmatch(head):
        return [(seen.n_rollouts, "rollouts"), (seen.in_fail, "failing rollouts")]
    return [(seen.n_tasks, "tasks")] if _TASKS.fullmatch(head) else []


class Rows:
    """The rows of tables whose columns are the runs."""

    def __init__(self, reader: Reader) -> None:
        self.reader, self.ground = reader, reader.ground

    def read(self, table: Table) -> Iterator[Assertion]:
        """Every cell under a run whose row says what it is."""
        runs = self._runs(table)
        for row in table.rows:
            if len(row.cells) == len(table.header) > 1:
                yield from self._row(row, runs) if runs else self._rule(table, row)

    def _rule(self, table: Table, row: Row) -> Iterator[Assertion]:
        """The row of a rule under its own name, in a report on one run: the rollouts it fires on."""
        if len(self.ground.runs) != 1:
            return
        run, known = next(iter(self.ground.runs.items()))
        seen = known.behaviours.get(row.cells[0].strip("`* "))
        if seen is None:
            return
        place = Place(" | ".join(row.cells), row.line, row.line)
        for at, head in enumerate(table.header[1:], 1):
            counts = _fired(seen, head)
            start = sum(len(one) + 3 for one in row.cells[:at])
            if counts and _COUNT.fullmatch(row.cells[at]):
                for one in quantities(row.cells[at])[:1]:
                    mention = Mention(AMOUNT, (), start + one.start, start + one.end, one, one.text)
                    told = [Reading(float(n), f"{seen.detector}: {n} {what}") for n, what in counts]
                    yield judged(place, mention, "cell", told, subject="behaviour_rollouts", run=run)

    def _runs(self, table: Table) -> dict[int, str]:
        """The columns that are runs; none unless all but the first are, or tell how they differ."""
        found: dict[int, str] = {}
        if not table.header or not _CORNER.fullmatch(table.header[0]):
            return {}  # `on the common tasks`: what all of it is about
        for at, cell in enumerate(table.header[1:], 1):
            named = self.reader.sentence(cell)
            runs = named.of(RUN)
            rest = cell.strip("`* ")
            if len(runs) == 1 and len(runs[0].names) == 1 and runs[0].text.strip("`* ") == rest:
                found[at] = runs[0].names[0]
            elif not _CHANGE.fullmatch(rest):
                return {}
        return found if len(set(found.values())) == len(found) >= 2 else {}

    def _row(self, row: Row, runs: dict[int, str]) -> Iterator[Assertion]:
        label = row.cells[0].strip("`* ")
        place = Place(" | ".join(row.cells), row.line, row.line)
        for at, run in runs.items():
            told = self._readings(label, run)
            cell = row.cells[at]
            start = sum(len(one) + 3 for one in row.cells[:at])
            if told is None or not _NUMBER.fullmatch(cell):
                continue
            readings, subject, as_rate = told
            for one in quantities(cell)[:1]:
                mention = Mention(AMOUNT, (), start + one.start, start + one.end, one, one.text)
                yield judged(place, mention, "cell", readings, subject=subject, run=run, as_rate=as_rate)

    def _readings(self, label: str, run: str) -> tuple[list[Reading], str, bool] | None:
        """What the label of a row says of one run."""
        effort = _EFFORT.fullmatch(label)
        names = meant(effort["what"]) if effort else None
        if names:
            report = self.ground.report
            found = [one for name in names for one in of_effort(report, run, name, "all", either=True)]
            return (found, names[0], False) if found else None
        named = self.reader.sentence(label)
        states, metrics = named.of(STATE), named.of(METRIC)
        rest = label
        for one in (*states, *metrics):
            rest = rest.replace(one.text, "")
        if not _STATES.fullmatch(rest.strip()):
            return None
        if len(states) == 1 and not metrics and states[0].names[0] in ("passed", "failed", "solved"):
            state = states[0].names
            units = (TASKS, ROLLOUTS)
            counts = [one for unit in units for one in self.ground.counts(run, unit, state)]
            shares = [one for unit in units for one in self.ground.shares(run, unit, (), state)]
            # a number of them, or a share as a percentage
            return [*counts, *shares], state[0], False
        return None
