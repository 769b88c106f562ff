"""Write a diagnosis or a comparison as text, Markdown, HTML, JSON or a folder; ask why scores differ; check a text against its rows."""

from __future__ import annotations

import dataclasses
import html
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from blade import hostile, model
from blade import report as pages
from blade.api.answer_tables import Table, part, to_dict
from blade.errors import Unreadable, UsageError
from blade.model.conclusions import Finding
from blade.number_format import count, points
from blade.report import comparison_screen, first_page
from blade.tables.index import Watcher


@dataclass(frozen=True, repr=False)
class Report:
    """Everything that was concluded, as the command line would write it."""

    data: model.Report  # as typed values
    _specs: tuple[str, ...]
    _watcher: Watcher
    _threshold: float | None
    _is_comparison: bool = False

    def summary(self) -> str:
        """One screen of text, as the command prints it."""
        render = comparison_screen.compare_text if self._is_comparison else first_page.render
        return render(self.data)

    def markdown(self) -> str:
        """The pages as Markdown, without their figures."""
        return pages.markdown_text(self.data, self._is_comparison)

    def html(self) -> str:
        """One offline page without scripts, figures included."""
        return pages.html_text(self.data, self._is_comparison)

    def json(self) -> str:
        """The wire format `blade.report/2`, byte for byte what `--json` prints."""
        return pages.json_text(self.data, self._is_comparison)

    def to_dict(self) -> dict[str, Any]:
        """The wire format as Python values."""
        wire: dict[str, Any] = json.loads(self.json())
        return wire

    def write(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Write the pages and figures into a folder, over those of an earlier report and nothing else."""
        try:
            return pages.write(self.data, Path(folder), self._is_comparison)
        except OSError as error:
            message = f"cannot write {folder}: {error.strerror or error}"
            raise Unreadable(message, "choose another folder", "cannot-write") from error

    def check(self, text: str | os.PathLike[str]) -> Checked:
        """Every claim of a text, or of a file, against the rows; the report itself holds no error to find."""
        return checked(text, self._specs, self._watcher, self._threshold)

    def __repr__(self) -> str:
        names = ", ".join(hostile.line(run.name, 80) for run in self.data.runs[:4])
        return f"<blade.Report of {names}{', ...' if len(self.data.runs) > 4 else ''}>"

    def _repr_html_(self) -> str:
        """The page in a frame of its own: its styles stay inside, and nothing in it runs."""
        page = html.escape(self.html(), quote=True)
        return f'<iframe sandbox srcdoc="{page}" style="width:100%;height:700px;border:0"></iframe>'


ENDINGS = (".md", ".markdown", ".json", ".txt")  # of names of reports


class Statement(Finding, frozen=True):
    """One statement of a checked text: supported, contradicted, unverifiable, uncited or opinion."""


class Checked:
    """The statements of a text, each with its verdict."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        from blade.check import check_findings

        self._findings, self._check = tuple(findings), check_findings

    @property
    def ok(self) -> bool:
        """Is nothing contradicted."""
        return not self.counts["contradicted"]

    @property
    def counts(self) -> dict[str, int]:
        """How many statements are supported, contradicted, unverifiable, uncited, opinion."""
        return self._check.counts(self._findings)

    def claims(self) -> Table[Statement]:
        """Every statement that was read."""
        return _table(self._findings)

    def problems(self) -> Table[Statement]:
        """All that is not supported, contradictions first."""
        return _table(self._check.problems(self._findings))

    def to_dict(self) -> dict[str, Any]:
        """What `blade check --json` prints."""
        document: dict[str, Any] = json.loads(self._check.as_json(self._findings))
        return document

    def __repr__(self) -> str:
        return f"<blade.Checked {', '.join(f'{n:,} {verdict}' for verdict, n in self.counts.items())}>"

    def _repr_html_(self) -> str:
        return self.problems()._repr_html_()


def _table(findings: Sequence[Finding]) -> Table[Statement]:
    return Table(Statement, (Statement(**msgspec.structs.asdict(finding)) for finding in findings))


def checked(text: str | os.PathLike[str], specs: Sequence[str], watcher: Watcher, threshold: float | None) -> Checked:
    """Every statement of a text, or of a file that holds one, against the rows of the runs."""
    from blade import check

    content = _text(text)
    return Checked(check.checked(content, check.world_for(content, specs, watcher, threshold)))


def _text(text: str | os.PathLike[str]) -> str:
    """A text as it is; that of a file where a path or the name of a report is given."""
    if isinstance(text, str) and ("\n" in text or not text.lower().endswith(ENDINGS)):
        return text
    from blade.check.json_reports import read_report

    return read_report(os.fspath(text))


# ---- Comparisons ------------------------------------------------------------------------------------


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
