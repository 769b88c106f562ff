"""Keep the session that runs were loaded in, join sessions where runs are compared, tell how far reading is."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from blade import hostile, model
from blade.api.written_reports import Report
from blade.errors import UsageError

if TYPE_CHECKING:
    from blade.pipeline import Loaded, Session
    from blade.tables.index import Watcher

# The parts of a report whose rows name their run.
_BY_RUN = (
    "measures", "buckets", "tasks", "health", "funnels", "slices", "compared", "trust", "groups", "unexplained",
    "losses", "attributions", "run_causes", "recommendations", "agreements",
)  # fmt: skip


class Held:
    """How runs were loaded, what came of it, and how it is made anew when a judgement is added."""

    def __init__(self, specs: tuple[str, ...], threshold: float | None, watcher: Watcher) -> None:
        self.specs = specs
        self.threshold = threshold
        self.watcher = watcher
        self.renew()

    def renew(self) -> None:
        """Read again: what is cheap is done, what did not change comes from the cache."""
        from blade import pipeline
        from blade.report.run_facts import ordered

        self.session: Session = pipeline.session(self.specs, self.watcher, self.threshold)
        self.report: model.Report = ordered(self.session.report)


def opened(specs: tuple[str, ...], threshold: float | None, progress: bool) -> Held:
    """The runs that `specs` name, read and diagnosed."""
    from blade.tables.index import Silent

    return Held(specs, threshold, Lines() if progress else Silent())


def part_of(report: model.Report, names: Sequence[str]) -> model.Report:
    """What a report says of some of its runs; all of it if they are all."""
    if {run.name for run in report.runs} == set(names):
        return report
    chosen = [one for one in report.comparisons if {one.baseline, one.candidate} <= set(names)]
    return replace(
        report,
        runs=tuple(run for run in report.runs if run.name in names),
        judgements={run: told for run, told in report.judgements.items() if run in names},
        task_matrix=None,  # of all runs together
        comparisons=tuple(chosen),
        matrix=None,
        series=None,
        benchmark={run: facts for run, facts in report.benchmark.items() if run in names},
        **{part: tuple(row for row in getattr(report, part) if row.run in names) for part in _BY_RUN},
    )


def together(
    sides: Sequence[tuple[Held, tuple[str, ...]]], margin: float, by: str | None, series: bool
) -> Report:
    """The comparison of runs that may have been loaded apart, as `blade compare` makes it."""
    from blade import pipeline
    from blade.pipeline import comparing

    first = sides[0][0]
    if any(held.threshold != first.threshold for held, _ in sides):
        hint = "load them with the same threshold"
        raise UsageError("the runs were loaded with different thresholds", hint, "bad-threshold")
    specs = _apart([spec for held in _each(sides) for spec in held.specs])
    loaded = pipeline.load(specs, first.watcher)
    chosen = _chosen(loaded, sides)
    parts = comparing.split_runs(chosen, by) if by else chosen
    if len(parts) < 2:
        hint = "give another run to compare with, or split this one: compare(by=FIELD)"
        raise UsageError("one run was given, and a comparison takes two", hint, "one-run")
    told = [*(["--by", by] if by else []), *(["--series"] if series else [])]
    told += ["--margin", repr(margin)] if margin != comparing.MARGIN else []
    told += ["--pass-threshold", repr(first.threshold)] if first.threshold is not None else []
    report = comparing.compare(
        parts, shlex.join(["blade", "compare", *specs, *told]), threshold=first.threshold, margin=margin,
        ordered=series, watcher=first.watcher,
    )  # fmt: skip
    return Report(pipeline.with_digests(report), specs, first.watcher, first.threshold, is_comparison=True)


def _chosen(loaded: Sequence[Loaded], sides: Sequence[tuple[Held, tuple[str, ...]]]) -> list[Loaded]:
    """Of what was loaded together the runs that were asked for, in the order in which they were.

    Loaded together, files of the same name get longer names: runs are known again by their sources.
    """
    left = list(loaded)
    found: list[Loaded] = []
    for held, names in sides:
        for name in names:
            was = held.session.run(name)
            same = next((at for at, one in enumerate(left) if _identity(one) == _identity(was)), None)
            if same is None:
                raise UsageError(
                    f"{name} and the other runs are read as one when they are read together",
                    'load each under a name of its own: blade.load("a=PATH")',
                    "no-such-run",
                )
            found.append(left.pop(same))
    return found


def _each(sides: Sequence[tuple[Held, tuple[str, ...]]]) -> list[Held]:
    """What has to be loaded: once for runs of one loading, again for a run held against itself."""
    found: list[Held] = []
    seen: set[tuple[int, str]] = set()
    for held, names in sides:
        asked = {(id(held), name) for name in names}
        if held not in found or asked & seen:
            found.append(held)
        seen |= asked
    return found


def _identity(one: Loaded) -> tuple[object, ...]:
    return (tuple(source.path for source in one.sources), one.run.agent)


def _apart(specs: Sequence[str]) -> tuple[str, ...]:
    """The runs as they were given; one that is given twice is held against itself under a second name."""
    found: list[str] = []
    for spec in specs:
        again = spec in found and "=" not in spec
        found.append(f"{Path(spec).name.split('.')[0]} again={spec}" if again else spec)
    return tuple(found)


class Lines:
    """A line when a piece of work begins, at each quarter of it, and for what a reader should know."""

    def __init__(self) -> None:
        self._what = ""
        self._total = self._done = self._told = 0

    def start(self, what: str, total: int, unit: str = "bytes") -> None:
        self._what, self._total, self._done, self._told = hostile.line(what, 60), total, 0, 0
        size = f" ({total / 1e6:,.0f} MB)" if total else ""
        print(f"{self._what}{size} ...", file=sys.stderr)

    def advance(self, done: int) -> None:
        self._done += done
        quarters = 4 * self._done // self._total if self._total else 0
        if self._told < quarters < 4:
            self._told = quarters
            print(f"{self._what} {25 * quarters}% ...", file=sys.stderr)

    def notice(self, text: str) -> None:
        print(f"note: {hostile.lines(text)}", file=sys.stderr)
