"""What an injection is, and what is true of a run that holds one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tools.planted.injected.scene import Scene

Pick = Literal["rows", "tasks", "block", "run"]


@dataclass(frozen=True, slots=True)
class Mark:
    """Where an injection has worked: the decisive step, and every step that shows the fault."""

    step: int | None = None
    steps: tuple[int, ...] = ()
    also: tuple[str, ...] = ()  # behaviours that the same steps show by the letter of their rules


@dataclass(frozen=True, slots=True)
class Truth:
    """What is wrong with one rollout, and since which step."""

    task: str  # the task key, as a report prints it
    repeat: int
    behaviour: str
    causes: tuple[str, ...]  # KG UK BI TI IR DA; the first is preferred, the others are accepted
    step: int | None  # where the fault begins, into the flattened output; None: no step shows it
    steps: tuple[int, ...] = ()  # every step that evidence may cite
    also: tuple[str, ...] = ()  # true of the row as well, as a consequence: neither hit nor false alarm


@dataclass(frozen=True, slots=True)
class Injected:
    """A written run and the truth about it."""

    path: Path
    fault: str
    twin: bool
    prevalence: float  # as asked for; 1 where the fault is one of the whole run
    truths: tuple[Truth, ...]  # of the injected fault; a twin has none
    background: tuple[Truth, ...]  # rollouts that fail for their content, injected or not
    touched: tuple[tuple[str, int], ...]  # task and repeat of every row that was changed, twins too


@dataclass(frozen=True, slots=True)
class Injection:
    """How a fault, or what only looks like it, is put into rollouts that pass."""

    behaviour: str
    id: str  # the number of its rule; empty for what is a matter of the task or of the run
    domain: str
    causes: tuple[str, ...]  # empty: a near-miss twin, nothing is wrong
    inject: Callable[[Scene], Mark | None]  # None: this row is left as it was
    throughout: tuple[str, ...] = ()  # the causes where more than a tenth of the run has it
    least: int = 1  # tasks that must have it before its rule holds
    pick: Pick = "rows"
    passers: int = 1  # passing repeats that every task keeps: what some faults are seen against
    repeats: int = 1  # at the least
    options: frozenset[str] = frozenset()  # how the domain plays

    @property
    def twin(self) -> bool:
        return not self.causes
