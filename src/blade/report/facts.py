"""Find what a report says of one run: its measures, tasks, buckets and flags."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Protocol, TypeVar

from blade.model import (
    Buckets,
    Compared,
    Finding,
    Funnel,
    Health,
    Level,
    Loss,
    Measure,
    Report,
    Run,
    Slice,
    TaskResult,
)

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


class Facts:
    """One run of a report."""

    def __init__(
        self,
        run: Run,
        measures: list[Measure],
        tasks: list[TaskResult],
        buckets: Buckets,
        health: list[Health],
        funnel: Funnel | None,
        slices: list[Slice],
        findings: list[Finding],
        compared: list[Compared],
        losses: list[Loss],
    ) -> None:
        self.run = run
        self.measures = measures
        self.tasks = tasks
        self.buckets = buckets
        self.health = sorted(health, key=lambda flag: LEVELS.index(flag.level))
        self.funnel = funnel
        self.slices = slices
        self.findings = sorted(findings, key=lambda finding: -finding.severity)
        self.compared = compared
        self.losses = losses
        self._by_key = {(m.name, m.k, m.slice): m for m in reversed(measures)}

    def measure(self, name: str, k: int | None = None, slice: str | None = None) -> Measure | None:
        """The measure, if it was computed and has a value."""
        found = self._by_key.get((name, k, slice))
        return found if found is not None and found.value is not None else None

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


def facts(report: Report) -> tuple[Facts, ...]:
    """What the report says, run by run."""
    measures, tasks, health = by_run(report.measures), by_run(report.tasks), by_run(report.health)
    slices, findings, compared = by_run(report.slices), by_run(report.findings), by_run(report.compared)
    losses = by_run(report.losses)
    buckets = {bucket.run: bucket for bucket in report.buckets}
    funnels = {funnel.run: funnel for funnel in report.funnels}
    return tuple(
        Facts(
            run,
            measures.get(run.name, []),
            tasks.get(run.name, []),
            buckets.get(run.name) or Buckets(run.name, (), (), (), ()),
            health.get(run.name, []),
            funnels.get(run.name),
            slices.get(run.name, []),
            findings.get(run.name, []),
            compared.get(run.name, []),
            losses.get(run.name, []),
        )
        for run in report.runs
    )
