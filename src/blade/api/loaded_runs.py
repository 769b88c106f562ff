"""Load runs that answer in tables: what was measured, whether to trust it, why points are lost, what to fix."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from blade import hostile, model, pipeline
from blade.agent.dossier import Dossier
from blade.api.answer_tables import Result, Table, part, queried
from blade.api.written_reports import Checked, Comparison, Report, checked
from blade.errors import UsageError
from blade.hostile import command_line
from blade.pipeline import Loaded, Session, reviewing
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
    return Report(pipeline.with_digests(report, chosen), specs, first.watcher, first.threshold, True)


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


# ---- Runs -------------------------------------------------------------------------------------------


Place = str | os.PathLike[str]


def load(*paths: Place, threshold: float | None = None, progress: bool = False) -> Runs:
    """Read and diagnose the runs of rollouts files, folders, globs of shards, or `NAME=PATH`.

    A row passes at a reward of `threshold`, if one is given. With `progress` a few lines on stderr tell
    how far it is; otherwise nothing is printed.
    """
    if not paths:
        raise UsageError("no path was given", "name a rollouts file or a folder", "usage")
    if threshold is not None and not math.isfinite(threshold):
        raise UsageError(f"{threshold} is no number to pass at", "give a finite number", "bad-threshold")
    loading = Loading(tuple(os.fspath(path) for path in paths), threshold, progress)
    return Runs(loading, tuple(run.name for run in loading.session.loaded))


class Runs(Mapping[str, "Runs"]):
    """One run, or several by name: `runs["a"]` is that run alone, with the same methods.

    Tables hold the rows of all runs, each with the name of its run. What concerns a single run, such as
    `score`, `rollout` or `label`, is asked of one run.
    """

    def __init__(self, loading: Loading, names: tuple[str, ...]) -> None:
        self._loading, self._names = loading, names

    # ---- The runs --------------------------------------------------------------------------------

    def __getitem__(self, name: str) -> Runs:
        if name not in self._names:
            raise UnknownRun(name, self._names)
        return Runs(self._loading, (name,))

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __bool__(self) -> bool:
        return True

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Runs):
            return NotImplemented
        return other._loading is self._loading and other._names == self._names

    def __hash__(self) -> int:
        return hash(self._names)

    @property
    def name(self) -> str:
        """The name of the only run."""
        if len(self._names) > 1:
            hint = f"take one with runs[NAME]: {', '.join(self._names[:8])}"
            raise UsageError(f"{len(self._names)} runs were read", hint, "no-such-run")
        return self._names[0]

    @property
    def run(self) -> model.Run:
        """What the only run is: its model, settings, counts and score."""
        name = self.name
        return next(run for run in self._report.runs if run.name == name)

    @property
    def score(self) -> float | None:
        """The headline of the only run: `run.score_name` says which measure it is."""
        return self.run.score

    overview = part(model.Run, "runs", "One row for each run.")

    # ---- What was measured -----------------------------------------------------------------------

    measures = part(model.Measure, "measures", "Every number with its n and interval: pass_at_1, tokens, ...")
    tasks = part(model.TaskResult, "tasks", "Every task: repeats, rate, bucket, and how sure the bucket is.")
    buckets = part(model.Buckets, "buckets", "The tasks that always, sometimes, never pass, and the missing.")
    health = part(model.Health, "health", "Flags from columns: coverage, duplicates, rewards, no output.")
    funnels = part(model.Funnel, "funnels", "How far rollouts got.")
    slices = part(model.Slice, "slices", "The score by fields of the tasks.")

    def query(self, query: str) -> Result:
        """Answer one question: `query("pass_at_1 where difficulty = 'hard'")`, or one SELECT.

        A measure has `value`, `low`, `high` and `n`; `to_pandas()` gives the rows as a data frame.
        """
        return queried(self._loading, self._names, query)

    def fields(self) -> Result:
        """Every field of the rows: type, presence, distinct values, and its role by how it behaves."""
        return self.query("select * from fields order by run, role, path")

    # ---- Why -------------------------------------------------------------------------------------

    trust = part(model.Trust, "trust", "What to know before the score is used, the most important first.")
    groups = part(model.Group, "groups", "Failure groups, the largest first: label, rows, quote, fix, query.")
    unexplained = part(model.Unexplained, "unexplained", "Lost points that no group explains, with a query.")
    attributions = part(
        model.Attribution, "attributions", "Cause and group of each failed task; judgements replace proposals."
    )
    run_causes = part(model.RunCause, "run_causes", "Causes of a whole run: alarms, groups of most points.")
    losses = part(model.Loss, "losses", "Points lost to each cause and group; they add up to 1 - score.")
    recommendations = part(model.Recommendation, "recommendations", "What to fix first, and what it gains.")
    gaps = part(model.Gap, "gaps", "What cannot be said, and why.")
    skipped = part(model.Skipped, "skipped", "Lines and files that were not read, the first thousand.")

    @property
    def task_matrix(self) -> model.TaskMatrix | None:
        """Which run passes which task, where several runs share tasks; otherwise None."""
        return self._report.task_matrix

    # ---- Reading and judging ---------------------------------------------------------------------

    def rollouts(self, task: str | int) -> tuple[model.Trace, ...]:
        """All rows of a task of the only run with their steps, in the order of their repeats."""
        session = self._loading.session
        run = session.run(self.name)
        return session.traces(run, session.key(run, str(task)))

    def rollout(self, task: str | int, repeat: int = 0) -> model.Trace:
        """One rollout: `.steps` is what was done, `.row` the row as it stands in the file."""
        traces = self.rollouts(task)
        chosen = [trace for trace in traces if trace.rollout.repeat == repeat]
        if not chosen:
            have = ", ".join(str(trace.rollout.repeat) for trace in traces[:20])
            hint = f"it has the repeats {have}" if traces else "its rollouts failed or were lost"
            raise UsageError(f"task {task} of {self.name} has no repeat {repeat}", hint, "unknown-task")
        if len(chosen) > 1:
            message = f"{len(chosen)} rows are repeat {repeat} of task {task}"
            raise UsageError(message, "rollouts(task) gives all of them", "unknown-task")
        return chosen[0]

    def queue(
        self, most: int | None = 20, *, budget: int | None = None, judged: bool = False
    ) -> Table[model.Waiting]:
        """The failed tasks most worth reading, of each run so many; `judged` keeps those judged already."""
        budget = reviewing.BUDGET if budget is None else budget
        session = self._loading.session
        queues = (reviewing.queue(session, name, most, budget, judged) for name in self._names)
        return Table(model.Waiting, (row for queue in queues for row in queue.waiting))

    def dossier(self, task: str | int, *, budget: int | None = None) -> Dossier:
        """What is needed to judge one task of the only run, as `.text` of at most `budget` tokens."""
        budget = reviewing.BUDGET if budget is None else budget
        return reviewing.dossier(self._loading.session, str(task), self.name, budget)

    agreements = part(model.Agreement, "agreements", "How often authors and the engine say the same.")

    def judgements(self) -> Table[model.Judgement]:
        """What people and agents hold to be the causes."""
        by_run = self._report.judgements
        return Table(model.Judgement, (row for name in self._names for row in by_run.get(name, ())))

    def label(
        self, task: str | int, *, cause: str, repeat: int, quote: str, mechanism: str, by: str, step: int | None = None,
        field: str | None = None, mode: str = "",
    ) -> model.Judgement:  # fmt: skip
        """Keep the cause of a failed task beside the run, if ids, place, quote and chronology verify."""
        judgement = {"task": str(task), "cause": str(cause), "repeat": repeat, "quote": quote, "mechanism": mechanism}
        # without a step and a field it is refused with its reason, and so it is with both
        judgement |= {"step": step} if step is not None or field is None else {}
        judgement |= {"field": field} if field is not None else {}
        return self.label_many([judgement | ({"mode": mode} if mode else {})], by=by)[0]

    def label_many(self, proposals: Sequence[Mapping[str, Any]], *, by: str) -> Table[model.Judgement]:
        """Keep several judgements on the only run: all of them, or none and the reasons why."""
        judgements = reviewing.label(self._loading.session, proposals, by, self.name)
        self._loading.renew()
        return Table(model.Judgement, judgements)

    def withdraw(self, task: str | int, *, by: str) -> Table[model.Judgement]:
        """Take back what an author said of a task of the only run."""
        judgements = reviewing.withdraw(self._loading.session, str(task), by, self.name)
        self._loading.renew()
        return Table(model.Judgement, judgements)

    # ---- Reports and comparisons -----------------------------------------------------------------

    def report(self) -> Report:
        """Everything as pages, as `blade diagnose` writes them."""
        loading = self._loading
        command = command_line("diagnose", loading.specs, pass_threshold=loading.threshold)
        report = replace(self._report, made_by={**self._report.made_by, "command": command})
        return Report(pipeline.with_digests(report, loading.session.loaded), loading.specs, loading.watcher, loading.threshold)

    def check(self, text: Place) -> Checked:
        """Every claim of a text, or of a file that holds one, against the rows."""
        return checked(text, self._loading.specs, self._loading.watcher, self._loading.threshold)

    def compare(
        self, other: Runs | Place | None = None, *, margin: float = 0.03, by: str | None = None, series: bool = False
    ) -> Comparison:
        """Why the score changed from this run to `other`; without one, from the first run to the rest.

        `by` splits the only run by a field of its rows instead; `series` takes runs as checkpoints in order.
        """
        if not 0 < margin < math.inf:
            raise UsageError(f"a margin of {margin:g} is none", "give a fraction such as 0.03", "bad-margin")
        if isinstance(other, str | os.PathLike):
            other = load(other, threshold=self._loading.threshold)
        sides = [(self._loading, self._names)]
        if other is not None:
            sides.append((other._loading, other._names))
        return Comparison(together(sides, margin, by, series))

    # ---- Display ---------------------------------------------------------------------------------

    def __repr__(self) -> str:
        scores = {score.run: score for score in self._headlines()}
        return f"<blade.Runs {'; '.join(_headline(run, scores.get(run.name)) for run in self._report.runs)}>"

    def _repr_html_(self) -> str:
        return self._headlines()._repr_html_()

    def _headlines(self) -> Table[model.Measure]:
        """The score of each run with its n and interval."""
        names = {run.name: run.score_name for run in self._report.runs}
        return self.measures().where(lambda row: row.name == names[row.run], k=None, slice=None)

    @property
    def _report(self) -> model.Report:
        """What was concluded of these runs, in the order of report.json."""
        return part_of(self._loading.report, self._names)

    def _rows(self, name: str) -> Sequence[Any]:
        rows: Sequence[Any] = getattr(self._report, name)
        return rows


class UnknownRun(UsageError, KeyError):
    """No run has that name; a KeyError too, so that runs behave as a mapping does."""

    def __init__(self, name: object, names: Sequence[str]) -> None:
        super().__init__(f"there is no run named {name}", f"the runs are {', '.join(names[:8])}", "no-such-run")


def _headline(run: model.Run, score: model.Measure | None) -> str:
    counts = f"{run.n_tasks:,} tasks, {run.n_rollouts:,} rollouts"
    if score is None or score.value is None:
        return f"{run.name!r}: no score, {counts}"
    interval = "" if score.low is None or score.high is None else f" [{score.low:.3f}, {score.high:.3f}]"
    return f"{run.name!r}: {score.name} {score.value:.3f}{interval}, {counts}"
