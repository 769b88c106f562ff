"""Answer why the scores of runs differ: verdicts, terms that add up, tasks that flipped."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from typing import Any

import msgspec

from blade import hostile, model
from blade.api.answer_tables import Table, part, to_dict
from blade.api.written_reports import Checked, Report
from blade.errors import UsageError
from blade.number_format import count, points


def fact(name: str, says: str) -> Any:
    """A field of the only comparison, as a property."""
    return property(lambda self: getattr(self.details, name), doc=says)


class Comparison:
    """A baseline against one candidate or several; what is asked of one is asked of the only one."""

    def __init__(self, report: Report) -> None:
        self._report = report

    @property
    def comparisons(self) -> Table[model.Comparison]:
        """One row for each candidate."""
        return Table(model.Comparison, self._report.data.comparisons)

    @property
    def details(self) -> model.Comparison:
        """The only comparison, with all that is known of it."""
        pairs = self._report.data.comparisons
        if len(pairs) == 1:
            return pairs[0]
        names = ", ".join(pair.candidate for pair in pairs[:8])
        message = f"{len(pairs)} runs were compared with {pairs[0].baseline}"
        raise UsageError(message, f"take one with comparison[NAME]: {names}", "no-such-run")

    def __getitem__(self, candidate: str) -> Comparison:
        """The comparison with the candidate of this name."""
        report = self._report.data
        pairs = tuple(pair for pair in report.comparisons if pair.candidate == candidate)
        if not pairs:
            names = ", ".join(pair.candidate for pair in report.comparisons[:8])
            raise UsageError(f"no candidate is named {candidate}", f"they are {names}", "no-such-run")
        return Comparison(dataclasses.replace(self._report, data=msgspec.structs.replace(report, comparisons=pairs)))

    baseline: str = fact("baseline", "The name of the run that the candidate is compared with.")
    candidate: str = fact("candidate", "The name of the other run.")
    delta: float | None = fact("delta", "Score of the candidate less that of the baseline; None where they cannot be compared.")
    verdict: str | None = fact("verdict", "On these tasks: improved, regressed, equivalent or inconclusive.")
    verdict_new_tasks: str | None = fact("verdict_new_tasks", "On new tasks like these.")
    margin: float = fact("margin", "Points of score within which runs are equivalent.")
    refused: str | None = fact("refused", "Why there is no comparison; None: there is one.")

    @property
    def mde(self) -> float | None:
        """The smallest change that the comparison would have seen, on new tasks."""
        power = self.details.power
        return power.mde if power is not None else None

    tests = part(model.Tested, "tests", "The change with its interval and p, for each of the two questions.")
    bridge = part(model.Term, "bridge", "What moved the score, in terms that add up to `delta`.")
    movers = part(model.Mover, "movers", "The terms claimed to have moved the score, strongest claim first.")
    flips = part(model.Flip, "flips", "The tasks that changed most surely.")
    settings = part(model.Setting, "config_diff", "The settings that differ.")
    shifts = part(model.Shift, "shifts", "What changed beside the score: behaviours, errors, tokens, turns.")

    def _rows(self, name: str) -> Sequence[Any]:
        rows: Sequence[Any] = getattr(self.details, name)
        return rows

    def views(self) -> dict[str, Table[model.Term]]:
        """Other ways to add up to `delta`, by name."""
        return {view.name: Table(model.Term, view.terms) for view in self.details.views}

    def report(self) -> Report:
        """The comparison as pages."""
        return self._report

    def check(self, text: str | os.PathLike[str]) -> Checked:
        """Every claim of a text, or of a file, against the rows of the runs."""
        return self._report.check(text)

    def to_dicts(self) -> list[dict[str, Any]]:
        """`comparisons` as compare.json has them."""
        return [to_dict(pair) for pair in self._report.data.comparisons]

    def __repr__(self) -> str:
        texts = (f"{pair.candidate} against {pair.baseline}: {_verdict(pair)}" for pair in self.comparisons)
        return f"<blade.Comparison {'; '.join(hostile.line(text, 400) for text in texts)}>"

    def _repr_html_(self) -> str:
        pairs = self._report.data.comparisons
        bridge = self.bridge()._repr_html_() if len(pairs) == 1 and pairs[0].bridge else ""
        return self.comparisons._repr_html_() + bridge


def _verdict(pair: model.Comparison) -> str:
    if pair.refused is not None or pair.delta is None:
        return f"refused, {pair.refused}"
    verdicts = {"these tasks": pair.verdict, "new tasks": pair.verdict_new_tasks}
    texts = [f"{verdict}{_interval(pair, question)} on {question}" for question, verdict in verdicts.items()]
    return f"{points(pair.delta)}; {', '.join(texts)}; {count(len(pair.alignment.common), 'task')} in common"


def _interval(pair: model.Comparison, question: str) -> str:
    test = next((test for test in pair.tests if test.question == question), None)
    if test is None or test.low is None or test.high is None:
        return ""
    return f" [{points(test.low).removesuffix(' points')}, {points(test.high).removesuffix(' points')}]"
