"""Keep the session that runs were loaded in, join sessions where runs are compared, tell how far reading is."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from msgspec.structs import replace

from blade import hostile, model, pipeline
from blade.api.written_reports import Report
from blade.errors import UsageError
from blade.pipeline import Loaded, Session
from blade.pipeline.report_pages import LISTS
from blade.report.run_facts import ordered
from blade.tables.index import Silent, Watcher


class Loading:
    """How runs were loaded, what came of it, and how it is made anew when a judgement is added."""

    def __init__(self, specs: tuple[str, ...], threshold: float | None, progress: bool) -> None:
        self.specs, self.threshold = specs, threshold
        self.watcher: Watcher = Lines() if progress else Silent()
        self.renew()

    def renew(self) -> None:
        """Read again: what is cheap is done, what did not change comes from the cache."""
        self.session: Session = pipeline.session(self.specs, self.watcher, self.threshold)
        self.report: model.Report = ordered(self.session.report)


def part_of(report: model.Report, names: Sequence[str]) -> model.Report:
    """What a report says of some of its runs; all of it if they are all."""
    if {run.name for run in report.runs} == set(names):
        return report

    chosen = [pair for pair in report.comparisons if {pair.baseline, pair.candidate} <= set(names)]
    return replace(
        report,
        judgements={run: rows for run, rows in report.judgements.items() if run in names},
        task_matrix=None,  # of all runs together
        comparisons=tuple(chosen), matrix=None, series=None,
        benchmark={run: facts for run, facts in report.benchmark.items() if run in names},
        **{part: tuple(row for row in getattr(report, part) if (row.name if part == "runs" else row.run) in names) for part in LISTS},
    )


def together(
    sides: Sequence[tuple[Loading, tuple[str, ...]]], margin: float, by: str | None, series: bool
) -> Report:
    """The comparison of runs that may have been loaded apart, as `blade compare` makes it."""
    from blade.pipeline import comparing

    first = sides[0][0]
    if any(loading.threshold != first.threshold for loading, _ in sides):
        hint = "load them with the same threshold"
        raise UsageError("the runs were loaded with different thresholds", hint, "bad-threshold")
    specs = comparing.apart([spec for loading in _each(sides) for spec in loading.specs])
    loaded = pipeline.load(specs, first.watcher)
    chosen = _chosen(loaded, sides)
    parts = comparing.split_runs(chosen, by) if by else chosen
    if len(parts) < 2:
        hint = "give another run to compare with, or split this one: compare(by=FIELD)"
        raise UsageError("one run was given, and a comparison takes two", hint, "one-run")
    command = hostile.command_line(
        "compare", specs, by=by or None, series=series, margin=margin if margin != comparing.MARGIN else None,
        pass_threshold=first.threshold,
    )  # fmt: skip
    report = comparing.compare(
        parts, command, threshold=first.threshold, margin=margin, ordered=series, watcher=first.watcher
    )
    return Report(pipeline.with_digests(report), specs, first.watcher, first.threshold, True)


def _chosen(loaded: Sequence[Loaded], sides: Sequence[tuple[Loading, tuple[str, ...]]]) -> list[Loaded]:
    """Of what was loaded together the runs that were asked for, in the order in which they were.

    Loaded together, files of the same name get longer names: runs are known again by their sources.
    """
    left, chosen = list(loaded), []
    for loading, names in sides:
        for name in names:
            before = _identity(loading.session.run(name))
            same = next((run for run in left if _identity(run) == before), None)
            if same is None:
                message = f"{name} and the other runs are read as one when they are read together"
                raise UsageError(message, 'load each under a name of its own: blade.load("a=PATH")', "no-such-run")
            left.remove(same)
            chosen.append(same)
    return chosen


def _each(sides: Sequence[tuple[Loading, tuple[str, ...]]]) -> list[Loading]:
    """What has to be loaded: once for runs of one loading, again for a run that is compared with itself."""
    loadings: list[Loading] = []
    seen: set[tuple[int, str]] = set()
    for loading, names in sides:
        keys = {(id(loading), name) for name in names}
        if loading not in loadings or keys & seen:
            loadings.append(loading)
        seen |= keys
    return loadings


def _identity(loaded: Loaded) -> tuple[object, ...]:
    return (tuple(source.path for source in loaded.sources), loaded.run.agent)


class Lines:
    """A line when a piece of work begins, at each quarter of it, and for what a reader should know."""

    def start(self, what: str, total: int, unit: str = "bytes") -> None:
        self._what, self._total, self._done, self._quarters = hostile.line(what, 60), total, 0, 0
        size = f" ({total / 1e6:,.0f} MB)" if total else ""
        print(f"{self._what}{size} ...", file=sys.stderr)

    def advance(self, done: int) -> None:
        self._done += done
        quarters = 4 * self._done // self._total if self._total else 0
        if self._quarters < quarters < 4:
            self._quarters = quarters
            print(f"{self._what} {25 * quarters}% ...", file=sys.stderr)

    def notice(self, text: str) -> None:
        print(f"note: {hostile.lines(text)}", file=sys.stderr)
