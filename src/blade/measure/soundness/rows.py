"""Look up what became of a row: its verdict, its reward, its task, and what was heard of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice

import numpy as np

from blade.measure.health import Quote
from blade.measure.soundness.sounding import EXPLICIT, Heard, Sounding
from blade.model import Cause, Evidence, Health, Judged, Level, Rollouts, Suspicion

QUOTES = 3  # of a flag
NAMED = 5  # tasks named in a text
MANY = 0.05  # share from which a fault of single rows is a fault of the evaluation
_NO_GOLD = frozenset(("answer", "label", "solution"))  # names under which a row may echo the model's answer


class Rows:
    """The rows of one run that count and that nothing spoiled, task by task."""

    def __init__(
        self,
        judged: Judged,
        soundings: Iterable[Sounding],
        rollouts: Rollouts,
        quote: Quote | None,
        spoiled: Collection[int],
    ) -> None:
        self.run, self.judged, self.rollouts, self.quote = judged.run, judged.judged, rollouts, quote
        self._index = {int(position): at for at, position in enumerate(judged.rows)}
        self._passed, self._score = judged.passed, judged.score
        self._spoiled = {*spoiled, *judged.rows[judged.broken].tolist()}
        order = {key: at for at, key in enumerate(judged.task_keys)}
        self.tasks = sorted(soundings, key=lambda one: order.get(one.task, len(order)))
        self.n_rows = len(self._index)

    def heard(self, task: Sounding) -> list[Heard]:
        """The rollouts of a task that neither infrastructure nor a failed verifier spoiled."""
        return [one for one in task.heard if one.position not in self._spoiled]

    def every(self) -> Iterator[tuple[Sounding, Heard]]:
        for task in self.tasks:
            for one in self.heard(task):
                yield task, one

    def passed(self, one: Heard) -> bool:
        return bool(self._passed[self._index[one.position]])

    def score(self, one: Heard) -> float:
        return float(self._score[self._index[one.position]])

    def reward(self, one: Heard) -> float:
        """What the verifier gave; nan where it gave nothing usable."""
        return float(self.rollouts.reward[one.position])

    def has_gold(self, task: Sounding) -> bool:
        """Whether the rows of a task state one gold answer, in a field that is no echo of the model."""
        field = task.gold_field
        if not task.gold or field is None or not task.same_gold:
            return False
        return field.rpartition(".")[2] not in _NO_GOLD or field in self.rollouts.input_fields

    def by_answer(self, task: Sounding) -> bool:
        """Whether a task can be judged by an answer alone: it has a gold, and nothing is to be changed."""
        changes = task.n_expected_writes > 0 or any(one.n_writes for one in task.heard)
        return self.has_gold(task) and not changes

    def cited(self, places: Iterable[tuple[Sounding, Heard]], field: str = "reward") -> tuple[Evidence, ...]:
        """A few quotations: the answer where it was kept, else a field of the row."""
        return tuple(islice(self._cited(places, field), QUOTES))

    def _cited(self, places: Iterable[tuple[Sounding, Heard]], field: str) -> Iterator[Evidence]:
        for task, one in islice(places, 4 * QUOTES):
            found = task.quotes.get(one.position) or self.quoted(one.position, field)
            if found is not None:
                yield found

    def quoted(self, position: int, field: str) -> Evidence | None:
        return self.quote(position, field) if self.quote is not None else None

    def flag(
        self,
        name: str,
        level: Level,
        text: str,
        part: float | None,
        whole: int,
        evidence: Sequence[Evidence] = (),
    ) -> Health:
        """A flag of the run; its value is a share of `whole`."""
        value = part / whole if whole and part is not None else None
        return Health(self.run, name, level, text, value, whole, None, tuple(evidence[:QUOTES]))


def answers_openly(one: Heard) -> bool:
    """Whether a rollout has an answer that is more than the last words of a talk."""
    return one.kind in EXPLICIT or (bool(one.kind) and not one.has_user)


def named(keys: Iterable[str]) -> str:
    """`tasks 3, 7 and 12 more`."""
    listed = list(dict.fromkeys(keys))
    shown, left = ", ".join(listed[:NAMED]), len(listed) - NAMED
    noun = "task" if len(listed) == 1 else "tasks"
    return f"{noun} {shown}" + (f" and {left:,} more" if left > 0 else "")


def count(n: int, noun: str) -> str:
    """`1 task`, `3 tasks`."""
    return f"{n:,} {noun}" + ("" if n == 1 else "s")


def collected(
    found: Mapping[str, Sequence[tuple[Sounding, Heard]]],
    rows: Rows,
    flag: str,
    points: int,
    text: str,
    cause: Cause = Cause.TASK_OR_VERIFIER,
    field: str = "reward",
) -> dict[str, Suspicion]:
    """One suspicion for each task, with the rows that raise it."""
    return {
        key: Suspicion(
            key,
            flag,
            points,
            cause,
            text.format(rollouts=count(len(places), "rollout")),
            rows.cited(places, field),
        )
        for key, places in found.items()
    }


def at_zero(reward: float) -> bool:
    """Whether a verifier gave nothing; a mark that is not there is none."""
    return bool(np.isfinite(reward)) and reward <= 1e-9
