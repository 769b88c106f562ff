"""Find what a report says of one run: its measures, tasks, flags, causes and advice, in the order of print."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from blade.model import (
    Agreement,
    Attribution,
    Buckets,
    Compared,
    Funnel,
    Group,
    Health,
    Judgement,
    Level,
    Loss,
    Measure,
    Recommendation,
    Report,
    Run,
    RunCause,
    Slice,
    TaskResult,
    Trust,
    Unexplained,
)  # fmt: skip
from blade.report import queried_numbers
from blade.report.queried_numbers import Cited

LEVELS = (Level.PROBLEM, Level.WARNING, Level.INFO)  # most urgent first
LISTS = (
    "measures", "tasks", "buckets", "health", "funnels", "slices", "compared", "losses", "trust", "groups",
    "unexplained", "attributions", "run_causes", "recommendations", "agreements",
)  # fmt: skip


class Facts:
    """One run of a report."""

    measures: list[Measure]
    tasks: list[TaskResult]
    slices: list[Slice]
    compared: list[Compared]
    losses: list[Loss]
    trust: list[Trust]
    groups: list[Group]
    attributions: list[Attribution]
    run_causes: list[RunCause]
    recommendations: list[Recommendation]
    agreements: list[Agreement]

    def __init__(self, run: Run, report: Report, parts: Mapping[str, Any], entries: queried_numbers.Entries) -> None:
        name = run.name
        self.run = run
        self._entries = entries
        mine: dict[str, list[Any]] = {part: nouns.get(name, []) for part, nouns in parts.items()}
        self.__dict__ |= {part: mine[part] for part in LISTS if part not in ("buckets", "health", "funnels", "unexplained")}
        self.buckets: Buckets = next(iter(mine["buckets"]), Buckets(name, (), (), (), ()))
        self.health: list[Health] = sorted(mine["health"], key=lambda flag: LEVELS.index(flag.level))
        self.funnel: Funnel | None = next(iter(mine["funnels"]), None)
        self.unexplained: Unexplained | None = next(iter(mine["unexplained"]), None)
        self.judgements: tuple[Judgement, ...] = report.judgements.get(name, ())
        self.attribution: dict[str, Attribution] = {cause.task: cause for cause in self.attributions}
        self._tasks = {task.task: task for task in self.tasks}
        self._by_key = {(m.name, m.k, m.slice): m for m in reversed(self.measures)}

    def entry(self, name: str, noun: Any) -> str:
        """The engine query that selects this entry of a list of the report."""
        return self._entries.query(name, noun)

    def cited(self, name: str, noun: Any) -> Cited:
        """An entry of a list of the report, with the queries of its members."""
        return Cited(noun, self.entry(name, noun), self.is_rate)

    def judgement(self, noun: Judgement) -> Cited:
        """A judgement, with the queries of its members."""
        return Cited(noun, self._entries.judgement(self.run.name, noun))

    def counted(self, name: str) -> str:
        """The query that gives a count of the run as a whole: expected, scored, repeats and the like."""
        return queried_numbers.select(name, "runs", self.run.name)

    @property
    def n_tasks(self) -> str:
        """The query that counts the tasks of the run."""
        return queried_numbers.select("count(*)", "tasks", self.run.name)

    @property
    def n_rollouts(self) -> str:
        """The query that counts the rollouts of the run."""
        return queried_numbers.measure("count", self.run.name)

    def measure(self, name: str, k: int | None = None, slice: str | None = None) -> Measure | None:
        """The measure, if it was computed and has a value."""
        measure = self._by_key.get((name, k, slice))
        return measure if measure is not None and measure.value is not None else None

    def task(self, key: str) -> TaskResult | None:
        return self._tasks.get(key)

    def group(self, key: str) -> Group | None:
        """The group of this id."""
        return next((group for group in self.groups if group.id == key), None)

    def ks(self, name: str) -> list[int]:
        """The k for which `name` has a value, ascending."""
        return sorted({m.k for m in self.measures if m.name == name and m.k is not None and m.value is not None})

    def at_most_k(self, name: str) -> Measure | None:
        """`name` at the repeats of the usual task: a few tasks with more rows are no headline."""
        ks = self.ks(name)
        usual = [k for k in ks if k <= self.run.coverage.repeats] or ks[:1]
        return self.measure(name, usual[-1]) if usual else None

    @property
    def score(self) -> Measure:
        """The headline; without an interval if none was computed."""
        run = self.run
        return self.measure(run.score_name) or Measure(
            run.name, run.score_name, run.score, run.n_tasks, method="no interval"
        )

    @property
    def is_rate(self) -> bool:
        """Whether the score is a pass rate."""
        return self.run.score_name.startswith("pass")


def facts(report: Report) -> tuple[Facts, ...]:
    """What the report says, run by run, its conclusions in the order of print."""
    entries, report = queried_numbers.Entries(report), ordered(report)
    parts: dict[str, dict[str, list[Any]]] = {name: {} for name in LISTS}
    for name, nouns in parts.items():
        for noun in getattr(report, name):
            nouns.setdefault(noun.run, []).append(noun)
    return tuple(Facts(run, report, parts, entries) for run in report.runs)


def ordered(report: Report) -> Report:
    """The report with its conclusions in the order of print, however they came; trust and groups keep their rank within a run."""
    runs = {run.name: place for place, run in enumerate(report.runs)}

    def of(run: str) -> int:
        return runs.get(run, len(runs))

    return replace(
        report,
        trust=tuple(sorted(report.trust, key=lambda entry: of(entry.run))),
        groups=tuple(sorted(report.groups, key=lambda group: of(group.run))),
        unexplained=tuple(sorted(report.unexplained, key=lambda rest: of(rest.run))),
        attributions=tuple(sorted(report.attributions, key=lambda a: (of(a.run), *task_key(a.task), a.id))),
        losses=tuple(sorted(report.losses, key=lambda x: (of(x.run), -x.lost, x.cause.value, x.mode))),
        run_causes=tuple(sorted(report.run_causes, key=lambda c: of(c.run))),
        judgements={
            run: tuple(sorted(judgements, key=lambda j: (*task_key(j.task), j.at, j.by)))
            for run, judgements in sorted(report.judgements.items(), key=lambda item: of(item[0]))
        },
        recommendations=tuple(sorted(report.recommendations, key=lambda r: (of(r.run), r.rank, r.action))),
    )


def task_key(task: str) -> tuple[bool, int, str]:
    """What tasks are sorted by: numbers in numeric order, then names."""
    is_number = task.isascii() and task.isdigit() and len(task) <= 18
    return (not is_number, int(task) if is_number else 0, task)
