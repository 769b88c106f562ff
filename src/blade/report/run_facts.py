"""Find what a report says of one run: its measures, tasks, flags, causes and advice, in the order of print."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from blade import model
from blade.model import Level, Measure, Report, Run, TaskResult
from blade.report import queried_numbers
from blade.report.queried_numbers import Cited, select

LEVELS = (Level.PROBLEM, Level.WARNING, Level.INFO)  # most urgent first
LISTS = ("buckets", *(name for name in queried_numbers.KEYS if name != "runs"))


class Facts:
    """One run of a report."""

    def __init__(self, run: Run, report: Report, parts: Mapping[str, Any], entries: queried_numbers.Entries) -> None:
        self.run = run
        self._entries = entries
        mine = {part: nouns.get(run.name, []) for part, nouns in parts.items()}
        self.measures: list[Measure] = mine["measures"]
        self.tasks: list[TaskResult] = mine["tasks"]
        self.slices: list[model.Slice] = mine["slices"]
        self.compared: list[model.Compared] = mine["compared"]
        self.losses: list[model.Loss] = mine["losses"]
        self.trust: list[model.Trust] = mine["trust"]
        self.groups: list[model.Group] = mine["groups"]
        self.attributions: list[model.Attribution] = mine["attributions"]
        self.run_causes: list[model.RunCause] = mine["run_causes"]
        self.recommendations: list[model.Recommendation] = mine["recommendations"]
        self.agreements: list[model.Agreement] = mine["agreements"]
        self.buckets: model.Buckets = next(iter(mine["buckets"]), model.Buckets(run.name, (), (), (), ()))
        self.health: list[model.Health] = sorted(mine["health"], key=lambda flag: LEVELS.index(flag.level))
        self.funnel: model.Funnel | None = next(iter(mine["funnels"]), None)
        self.unexplained: model.Unexplained | None = next(iter(mine["unexplained"]), None)
        self.judgements: tuple[model.Judgement, ...] = report.judgements.get(run.name, ())
        self.attribution: dict[str, model.Attribution] = {cause.task: cause for cause in self.attributions}
        self._tasks = {task.task: task for task in self.tasks}
        self._by_key = {(m.name, m.k, m.slice): m for m in reversed(self.measures)}
        self.is_rate = run.score_name.startswith("pass")
        # The headline; without an interval if none was computed.
        unsure = Measure(run.name, run.score_name, run.score, run.n_tasks, method="no interval")
        self.score = self.measure(run.score_name) or unsure
        # The queries that count the tasks and the rollouts of the run.
        self.n_tasks, self.n_rollouts = select("count(*)", "tasks", run.name), queried_numbers.measure("count", run.name)

    def entry(self, name: str, noun: Any) -> str:
        """The engine query that selects this entry of a list of the report."""
        return self._entries.query(name, noun)

    def cited(self, name: str, noun: Any) -> Cited:
        """An entry of a list of the report, with the queries of its members."""
        return Cited(noun, self.entry(name, noun), self.is_rate)

    def listed(self, name: str, most: int | None = None) -> list[Cited]:
        """The first entries of such a list."""
        return [self.cited(name, noun) for noun in getattr(self, name)[:most]]

    def judgement(self, noun: model.Judgement) -> Cited:
        """A judgement, with the queries of its members."""
        return Cited(noun, self._entries.judgement(self.run.name, noun))

    def counted(self, name: str) -> str:
        """The query that gives a count of the run as a whole: expected, scored, repeats and the like."""
        return select(name, "runs", self.run.name)

    def measure(self, name: str, k: int | None = None, slice: str | None = None) -> Measure | None:
        """The measure, if it was computed and has a value."""
        measure = self._by_key.get((name, k, slice))
        return measure if measure is not None and measure.value is not None else None

    def task(self, key: str) -> TaskResult | None:
        return self._tasks.get(key)

    def group(self, key: str) -> model.Group | None:
        return next((group for group in self.groups if group.id == key), None)

    def at_most_k(self, name: str) -> Measure | None:
        """`name` at the repeats of the usual task: a few tasks with more rows are no headline."""
        ks = sorted({m.k for m in self.measures if m.name == name and m.k is not None and m.value is not None})
        usual = [k for k in ks if k <= self.run.coverage.repeats] or ks[:1]
        return self.measure(name, usual[-1]) if usual else None


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
    places = {run.name: place for place, run in enumerate(report.runs)}

    def of(run: str) -> int:
        return places.get(run, len(places))

    orders: dict[str, Callable[[Any], tuple[Any, ...]]] = {
        **dict.fromkeys(("trust", "groups", "unexplained", "run_causes"), lambda noun: (of(noun.run),)),
        "attributions": lambda cause: (of(cause.run), *task_key(cause.task), cause.id),
        "losses": lambda loss: (of(loss.run), -loss.lost, loss.cause.value, loss.mode),
        "recommendations": lambda fix: (of(fix.run), fix.rank, fix.action),
    }
    lists = {name: tuple(sorted(getattr(report, name), key=order)) for name, order in orders.items()}
    judgements = {
        run: tuple(sorted(judgements, key=lambda j: (*task_key(j.task), j.at, j.by)))
        for run, judgements in sorted(report.judgements.items(), key=lambda item: of(item[0]))
    }
    return replace(report, **lists, judgements=judgements)


def task_key(task: str) -> tuple[bool, int, str]:
    """What tasks are sorted by: numbers in numeric order, then names."""
    is_number = task.isascii() and task.isdigit() and len(task) <= 18
    return (not is_number, int(task) if is_number else 0, task)
