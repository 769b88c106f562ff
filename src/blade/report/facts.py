"""Find what a report says of one run: its measures, tasks, flags, causes and advice."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol, TypeVar

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
)
from blade.report import queries
from blade.report.order import ordered

LEVELS = (Level.PROBLEM, Level.WARNING, Level.INFO)  # most urgent first


class OfRun(Protocol):
    @property
    def run(self) -> str: ...


Noun = TypeVar("Noun", bound=OfRun)


def by_run(nouns: Iterable[Noun]) -> dict[str, list[Noun]]:
    """The nouns under the name of their run, in their order."""
    found: dict[str, list[Noun]] = {}
    for noun in nouns:
        found.setdefault(noun.run, []).append(noun)
    return found


class Parts:
    """The nouns of a report, each kind under the names of the runs."""

    def __init__(self, report: Report, entries: queries.Entries) -> None:
        self.entries = entries
        self.measures = by_run(report.measures)
        self.tasks = by_run(report.tasks)
        self.buckets = by_run(report.buckets)
        self.health = by_run(report.health)
        self.funnels = by_run(report.funnels)
        self.slices = by_run(report.slices)
        self.compared = by_run(report.compared)
        self.losses = by_run(report.losses)
        self.trust = by_run(report.trust)
        self.groups = by_run(report.groups)
        self.unexplained = by_run(report.unexplained)
        self.attributions = by_run(report.attributions)
        self.run_causes = by_run(report.run_causes)
        self.recommendations = by_run(report.recommendations)
        self.judgements = report.judgements
        self.agreements = by_run(report.agreements)


class Facts:
    """One run of a report."""

    def __init__(self, run: Run, of: Parts) -> None:
        name = run.name
        self.run = run
        self._entries = of.entries
        self.measures: list[Measure] = of.measures.get(name, [])
        self.tasks: list[TaskResult] = of.tasks.get(name, [])
        self.buckets: Buckets = next(iter(of.buckets.get(name, [])), Buckets(name, (), (), (), ()))
        self.health: list[Health] = sorted(of.health.get(name, []), key=lambda flag: LEVELS.index(flag.level))
        self.funnel: Funnel | None = next(iter(of.funnels.get(name, [])), None)
        self.slices: list[Slice] = of.slices.get(name, [])
        self.compared: list[Compared] = of.compared.get(name, [])
        self.losses: list[Loss] = of.losses.get(name, [])
        self.trust: list[Trust] = of.trust.get(name, [])
        self.groups: list[Group] = of.groups.get(name, [])
        self.unexplained: Unexplained | None = next(iter(of.unexplained.get(name, [])), None)
        self.attributions: list[Attribution] = of.attributions.get(name, [])
        self.run_causes: list[RunCause] = of.run_causes.get(name, [])
        self.recommendations: list[Recommendation] = of.recommendations.get(name, [])
        self.judgements: tuple[Judgement, ...] = of.judgements.get(name, ())
        self.agreements: list[Agreement] = of.agreements.get(name, [])
        self.attribution: dict[str, Attribution] = {found.task: found for found in self.attributions}
        self._tasks = {task.task: task for task in self.tasks}
        self._by_key = {(m.name, m.k, m.slice): m for m in reversed(self.measures)}

    def entry(self, name: str, noun: Any) -> str:
        """The engine query that selects this entry of a list of the report."""
        return self._entries.query(name, noun)

    def judgement(self, noun: Judgement) -> str:
        """The engine query that selects this judgement."""
        return self._entries.judgement(self.run.name, noun)

    def counted(self, name: str) -> str:
        """The query that gives a count of the run as a whole: expected, scored, repeats and the like."""
        return queries.select(name, "runs", self.run.name)

    @property
    def n_tasks(self) -> str:
        """The query that counts the tasks of the run."""
        return queries.select("count(*)", "tasks", self.run.name)

    @property
    def n_rollouts(self) -> str:
        """The query that counts the rollouts of the run."""
        return queries.measure("count", self.run.name)

    def measure(self, name: str, k: int | None = None, slice: str | None = None) -> Measure | None:
        """The measure, if it was computed and has a value."""
        found = self._by_key.get((name, k, slice))
        return found if found is not None and found.value is not None else None

    def task(self, key: str) -> TaskResult | None:
        return self._tasks.get(key)

    def group(self, key: str) -> Group | None:
        """The group of this id."""
        return next((group for group in self.groups if group.id == key), None)

    def ks(self, name: str) -> list[int]:
        """The k for which `name` has a value, ascending."""
        return sorted(
            {m.k for m in self.measures if m.name == name and m.k is not None and m.value is not None}
        )

    def at_most_k(self, name: str) -> Measure | None:
        """`name` at the repeats of the usual task: a few tasks with more rows are no headline."""
        ks = self.ks(name)
        usual = [k for k in ks if k <= self.run.coverage.repeats] or ks[:1]
        return self.measure(name, usual[-1]) if usual else None

    @property
    def score(self) -> Measure:
        """The headline; without an interval if none was computed."""
        found = self.measure(self.run.score_name)
        return found or Measure(
            self.run.name, self.run.score_name, self.run.score, self.run.n_tasks, method="no interval"
        )

    @property
    def is_rate(self) -> bool:
        """Whether the score is a pass rate."""
        return self.run.score_name.startswith("pass")

def facts(report: Report) -> tuple[Facts, ...]:
    """What the report says, run by run, its conclusions in the order of print."""
    parts = Parts(ordered(report), queries.Entries(report))
    return tuple(Facts(run, parts) for run in report.runs)
