"""Simulate runs whose truth is known: nothing to find, hard tasks, a consequence, and faults of known effect."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from zlib import crc32

import msgspec
import numpy as np
from numpy.typing import NDArray

from blade.diagnose import Diagnosis, Population, RowEvidence, climb, nothing_of, tripwires
from blade.diagnose.evidence import Act
from blade.diagnose.fact_cover import gain
from blade.model import Gain

TOOLS = ("find_parcel", "read_notice", "check_address", "weigh_parcel", "open_archive", "ask_clerk", "print_label")
ERRORS = (
    "error: no such parcel", "error: the scale is in use", "error: the archive is shut", "error: no ink",
)  # fmt: skip
END = "hand_in"


# ---- Rows ----------------------------------------------------------------------------------------


def act(tool: str, step: int, argument: int = 0, error: str = "") -> Act:
    """One call with its answer; an error is told by its template."""
    return Act(tool, crc32(f"{tool} {argument}".encode()), bool(error), error, error, step, True)


def evidence(position: int, task: int, acts: list[Act]) -> RowEvidence:
    """A rollout of an agent that made some calls and ended with a message."""
    length = 40 + (position * 37) % 61
    return msgspec.structs.replace(
        nothing_of(position),
        prompt=task + 1, acts=tuple(acts), n_acts=len(acts), n_turns=len(acts) + 1, has_output=True,
        end="message", final="x" * length + ".", final_step=2 * len(acts), final_length=length + 1,
        made=tuple((call.tool, str(call.key)) for call in acts if not call.failed), tools=("other", *TOOLS),
    )  # fmt: skip


def population(acts: list[list[Act]], passed: NDArray[np.bool_], n_repeats: int) -> Population:
    """A run from what each rollout did and whether it passed, task by task."""
    n = len(acts)
    task = np.arange(n) // n_repeats
    rows = [evidence(position, int(task[position]), each) for position, each in enumerate(acts)]
    lost = np.where(passed, 0.0, 1.0 / n)
    return Population("sim", rows, passed, lost, task, np.arange(n) % n_repeats, [str(key) for key in range(n // n_repeats)])


def diagnosed(people: Population) -> Diagnosis:
    """The ladder and its tripwires."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        diagnosis = climb(people)
        return tripwires.checked(diagnosis, float(people.passed.mean()), people.passed.astype(float))


def calls(
    chance: np.random.Generator, habits: NDArray[np.float64], error_rate: float, banned: Iterable[str] = ()
) -> list[Act]:
    """Calls of a rollout by the habits of its task: how likely each tool is used, and used again."""
    acts: list[Act] = []
    for place in chance.permutation(len(TOOLS)).tolist():
        tool = TOOLS[place]
        n_calls = int(chance.random() < habits[place]) + int(chance.random() < 0.4 * habits[place])
        for _ in range(n_calls if tool not in banned else 0):
            error = ERRORS[int(chance.integers(len(ERRORS)))] if chance.random() < error_rate else ""
            acts.append(act(tool, 2 * len(acts), int(chance.integers(10**6)), error))
    return [*acts, act(END, 2 * len(acts))]


def habits_of(chance: np.random.Generator, n_tasks: int) -> NDArray[np.float64]:
    """How likely each task makes each tool: some tools always, most now and then."""
    return chance.beta(1.2, 1.2, (n_tasks, len(TOOLS)))


# ---- (a) Rewards shuffled within tasks -----------------------------------------------------------


SIZES = ((30, 8), (12, 4), (60, 3), (20, 6), (10, 12))  # tasks and repeats, in turn


def shuffled(seed: int, is_shuffled: bool = True) -> Diagnosis:
    """A run in which a missing look-up fails, with its rewards dealt out anew within each task: nothing is left."""
    chance = np.random.default_rng([1, seed])
    n_tasks, n_repeats = SIZES[seed % len(SIZES)]
    habits, ease = habits_of(chance, n_tasks), chance.beta(2.5, 1.5, n_tasks)
    habits[:, TOOLS.index("check_address")] = chance.uniform(0.4, 0.9, n_tasks)
    acts: list[list[Act]] = []
    passed: list[bool] = []
    for task in range(n_tasks):
        mine = [calls(chance, habits[task], 0.12) for _ in range(n_repeats)]
        looks = [any(call.tool == "check_address" for call in each) for each in mine]
        fate = [looked and chance.random() < ease[task] for looked in looks]
        acts += mine
        passed += chance.permutation(fate).tolist() if is_shuffled else fate
    return diagnosed(population(acts, np.array(passed, np.bool_), n_repeats))


# ---- (b) Nearly deterministic tasks --------------------------------------------------------------


def deterministic(seed: int) -> Diagnosis:
    """Each task passes with 2% or 98%; the archive is opened mostly in hard tasks, and changes nothing."""
    chance = np.random.default_rng([2, seed])
    n_tasks, n_repeats = ((100, 10), (60, 6), (200, 5), (40, 16))[seed % 4]
    habits = habits_of(chance, n_tasks)
    is_hard = chance.random(n_tasks) < 0.5
    habits[:, TOOLS.index("open_archive")] = np.where(is_hard, 0.85, 0.15)
    acts, passed = [], []
    for task in range(n_tasks):
        for _ in range(n_repeats):
            acts.append(calls(chance, habits[task], 0.15 if is_hard[task] else 0.05))
            passed.append(chance.random() < (0.02 if is_hard[task] else 0.98))
    return diagnosed(population(acts, np.array(passed, bool), n_repeats))


# ---- (c) Reverse causation -----------------------------------------------------------------------


def reversed_(seed: int, n_errors: int = 1, n_tasks: int = 30, n_repeats: int = 6) -> Diagnosis:
    """Failing rollouts run into an error and then ask the clerk: the question comes of the failure."""
    chance = np.random.default_rng([3, seed])
    habits, ease = habits_of(chance, n_tasks), chance.uniform(0.3, 0.8, n_tasks)
    acts, passed = [], []
    for task in range(n_tasks):
        for _ in range(n_repeats):
            passes = chance.random() < ease[task]
            mine = calls(chance, habits[task], 0.0, banned=("ask_clerk",))[:-1]
            if chance.random() < (0.1 if passes else 0.9):
                mine.append(act("check_address", 2 * len(mine), 7, ERRORS[int(chance.integers(n_errors))]))
                if not passes:
                    mine.append(act("ask_clerk", 2 * len(mine), int(chance.integers(10**6))))
            acts.append([*mine, act(END, 2 * len(mine))])
            passed.append(passes)
    return diagnosed(population(acts, np.array(passed, bool), n_repeats))


# ---- (d) Gains -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Estimate:
    """What a run says a fix would win, beside what it would win."""

    truth: float
    gain: Gain | None

    @property
    def is_held(self) -> bool:
        return self.gain is not None and self.gain.low - 1e-9 <= self.truth <= self.gain.high + 1e-9


def fault(seed: int, effect: float, n_tasks: int = 40, n_repeats: int = 8) -> Estimate:
    """A third of the rollouts never look the address up, and then pass less often by a known share."""
    chance = np.random.default_rng([4, seed])
    habits, ease = habits_of(chance, n_tasks), chance.uniform(0.5, 0.95, n_tasks)
    habits[:, TOOLS.index("check_address")] = 1.0
    acts, passed, truth = [], [], 0.0
    for task in range(n_tasks):
        for _ in range(n_repeats):
            is_faulty = chance.random() < 0.35
            acts.append(calls(chance, habits[task], 0.05, banned=("check_address",) if is_faulty else ()))
            passed.append(chance.random() < ease[task] * (1 - effect * is_faulty))
            truth += float(ease[task] * effect * is_faulty)
    diagnosis = diagnosed(population(acts, np.array(passed, bool), n_repeats))
    gains = [gain(diagnosis.people, group) for group in diagnosis.groups if "check_address" in group.name]
    return Estimate(truth / len(acts), next((estimate for estimate in gains if estimate is not None), None))


def rungs(diagnosis: Diagnosis) -> set[str]:
    return {group.rung for group in diagnosis.groups}


def share_with(simulate: Callable[[int], Diagnosis], seeds: Iterable[int], rung: str = "behaviour") -> float:
    """The share of runs with a group of some rung."""
    return float(np.mean([rung in rungs(simulate(seed)) for seed in seeds]))


def avoids(diagnosis: Diagnosis, tool: str) -> list[str]:
    """Fixes that tell to call a tool less."""
    words = ("avoid", "refuse", "forbid", "less", "not call", "never call", "stop calling", "remove", "discourage", "only when")
    sentences = [sentence for group in diagnosis.groups for sentence in group.fix.split(". ") if f"`{tool}`" in sentence]
    return [sentence for sentence in sentences if any(word in sentence.lower() for word in words)]
