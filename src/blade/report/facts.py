"""Find what a report says of one run: its measures, tasks, flags, causes and advice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, Protocol, TypeVar

from blade.model import (
    Agreement,
    Attribution,
    Behaviour,
    Buckets,
    Compared,
    Contrast,
    Divergence,
    Finding,
    Funnel,
    Health,
    Judgement,
    Level,
    Loss,
    Meaning,
    Measure,
    Mechanism,
    Recommendation,
    Report,
    Run,
    RunCause,
    Signature,
    Slice,
    TaskResult,
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
        self.findings = by_run(report.findings)
        self.compared = by_run(report.compared)
        self.losses = by_run(report.losses)
        self.behaviours = by_run(report.behaviours)
        self.signatures = by_run(report.signatures)
        self.meanings = by_run(report.meanings)
        self.mechanisms = by_run(report.mechanisms)
        self.contrasts = by_run(report.contrasts)
        self.divergences: dict[str, list[Divergence]] = {}
        for found in report.divergences:
            self.divergences.setdefault(found.run, []).append(found)
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
        self.findings: list[Finding] = sorted(of.findings.get(name, []), key=lambda found: -found.severity)
        self.compared: list[Compared] = of.compared.get(name, [])
        self.losses: list[Loss] = of.losses.get(name, [])
        self.behaviours: list[Behaviour] = of.behaviours.get(name, [])
        self.signatures: list[Signature] = of.signatures.get(name, [])
        self.meanings: list[Meaning] = of.meanings.get(name, [])
        self.mechanisms: list[Mechanism] = of.mechanisms.get(name, [])
        self.contrasts: list[Contrast] = of.contrasts.get(name, [])
        self.attributions: list[Attribution] = of.attributions.get(name, [])
        self.run_causes: list[RunCause] = of.run_causes.get(name, [])
        self.recommendations: list[Recommendation] = of.recommendations.get(name, [])
        self.judgements: tuple[Judgement, ...] = of.judgements.get(name, ())
        self.agreements: list[Agreement] = of.agreements.get(name, [])
        self.attribution: dict[str, Attribution] = {found.task: found for found in self.attributions}
        self._divergence = {found.task: found for found in reversed(of.divergences.get(name, []))}
        self._mechanism = {found.predicate: found for found in reversed(self.mechanisms)}
        self._first = {found.detector: found for found in reversed(self.findings)}
        self._contrasts = _by_task(self.contrasts)
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

    def first_finding(self, detector: str) -> Finding | None:
        """The most severe finding of a detector, the first of its kind."""
        return self._first.get(detector)

    def contrasts_of(self, task: str) -> list[Contrast]:
        """The contrasts of this task, then those over all tasks that quote it."""
        return self._contrasts.get(task, [])

    def divergence_of(self, task: str) -> Divergence | None:
        """Where a failing rollout of this task leaves the passing one most like it."""
        return self._divergence.get(task)

    def mechanism_of(self, predicate: str) -> Mechanism | None:
        """The mechanism with this predicate, if there is one."""
        return self._mechanism.get(predicate)

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
        return self.run.score_name.startswith("pass") or self.run.score_name.startswith("clean_pass")

    def levels(self) -> dict[Level, int]:
        """Health flags by level."""
        seen = Counter(flag.level for flag in self.health)
        return {level: seen[level] for level in LEVELS}


def _by_task(contrasts: list[Contrast]) -> dict[str, list[Contrast]]:
    found: dict[str, list[Contrast]] = {}
    for contrast in sorted(contrasts, key=lambda one: one.task is None):
        quoted = (
            {evidence.task for evidence in contrast.evidence} if contrast.task is None else {contrast.task}
        )
        for task in sorted(quoted):
            found.setdefault(task, []).append(contrast)
    return found


def facts(report: Report) -> tuple[Facts, ...]:
    """What the report says, run by run, its conclusions in the order of print."""
    parts = Parts(ordered(report), queries.Entries(report))
    return tuple(Facts(run, parts) for run in report.runs)
