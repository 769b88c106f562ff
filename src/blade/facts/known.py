"""Find facts by what they are about: subject, entity, phrase, text, or a range of values."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterable
from functools import cached_property
from typing import TypeVar

from blade.facts import _unambiguous, facts
from blade.facts.tasks import of_failure, of_task
from blade.model import Attribution, Fact, Report, TaskResult

Key = TypeVar("Key", bound=Hashable)


class Known:
    """The facts of a report under everything they are looked up by; those of a task are made when asked.

    `all` leaves out the facts of single tasks (`task`), so that it stays small however many tasks there are.
    """

    def __init__(self, report: Report) -> None:
        self.report = report
        self.all: tuple[Fact, ...] = facts(report)
        self._made: dict[tuple[str, str], tuple[Fact, ...]] = {}

    @property
    def runs(self) -> tuple[str, ...]:
        """The names of the runs, in order."""
        return tuple(run.name for run in self.report.runs)

    def of(self, subject: str, run: str | None = None) -> tuple[Fact, ...]:
        """The facts of a subject, of one run if told."""
        found = self._subjects.get(subject, ())
        return tuple(fact for fact in found if run is None or fact.run == run)

    def about(self, entity: tuple[str, str], run: str | None = None) -> tuple[Fact, ...]:
        """The facts whose scope names an entity such as ("slice", "level=hard"); of a task all its facts."""
        found = self._entities.get(entity, ())
        if entity[0] == "task":
            found += tuple(fact for name in self.runs for fact in self.task(name, entity[1]))
        return tuple(fact for fact in found if run is None or fact.run == run)

    def between(self, low: float, high: float) -> tuple[Fact, ...]:
        """The facts of `all` whose number lies in a range, ends included."""
        values, held = self._values
        return held[bisect_left(values, low) : bisect_right(values, high)]

    def saying(self, text: str) -> tuple[Fact, ...]:
        """The facts of `all` whose value is this text."""
        return self._texts.get(text, ())

    def named(self, phrase: str) -> tuple[Fact, ...]:
        """The facts of `all` that a reader may call so; lower case."""
        return self._phrases.get(phrase, ())

    def task(self, run: str, task: str) -> tuple[Fact, ...]:
        """What is known of one task of one run, by its key; () if the run has no such task."""
        key = (run, task)
        if key not in self._made:
            result, failure = self._tasks.get(key), self._failures.get(key)
            found = [*(of_task(result) if result else ()), *(of_failure(failure) if failure else ())]
            self._made[key] = _unambiguous(found)
        return self._made[key]

    def result(self, run: str, task: str) -> TaskResult | None:
        """The task itself, by its key."""
        return self._tasks.get((run, task))

    def keys(self, name: str) -> tuple[tuple[str, str], ...]:
        """(run, task key) of the tasks that go by this key or name."""
        return self._named.get(name, ())

    @cached_property
    def _subjects(self) -> dict[str, tuple[Fact, ...]]:
        return _grouped((fact.subject, fact) for fact in self.all)

    @cached_property
    def _entities(self) -> dict[tuple[str, str], tuple[Fact, ...]]:
        return _grouped((entity, fact) for fact in self.all for entity in dict.fromkeys(fact.scope))

    @cached_property
    def _phrases(self) -> dict[str, tuple[Fact, ...]]:
        return _grouped((name, fact) for fact in self.all for name in dict.fromkeys(fact.names))

    @cached_property
    def _texts(self) -> dict[str, tuple[Fact, ...]]:
        return _grouped((fact.value, fact) for fact in self.all if isinstance(fact.value, str))

    @cached_property
    def _values(self) -> tuple[list[float], tuple[Fact, ...]]:
        held = sorted(
            (fact for fact in self.all if isinstance(fact.value, float)), key=lambda fact: number_of(fact)
        )
        return [number_of(fact) for fact in held], tuple(held)

    @cached_property
    def _tasks(self) -> dict[tuple[str, str], TaskResult]:
        return {(one.run, one.task): one for one in reversed(self.report.tasks)}

    @cached_property
    def _failures(self) -> dict[tuple[str, str], Attribution]:
        return {(one.run, one.task): one for one in reversed(self.report.attributions)}

    @cached_property
    def _named(self) -> dict[str, tuple[tuple[str, str], ...]]:
        found: dict[str, dict[tuple[str, str], None]] = {}
        for one in self.report.tasks:
            for name in (one.task, one.task_name):
                found.setdefault(name, {})[one.run, one.task] = None
        return {name: tuple(keys) for name, keys in found.items()}


def number_of(fact: Fact) -> float:
    """The value of a fact that is a number."""
    return fact.value if isinstance(fact.value, float) else 0.0


def _grouped(pairs: Iterable[tuple[Key, Fact]]) -> dict[Key, tuple[Fact, ...]]:
    found: dict[Key, list[Fact]] = {}
    for key, fact in pairs:
        found.setdefault(key, []).append(fact)
    return {key: tuple(held) for key, held in found.items()}
