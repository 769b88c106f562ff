"""Diagnose runs with an injected fault and hold every conclusion against what was injected."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from blade import measure, pipeline
from blade.pipeline import reading
from blade.planted.injected import INJECTIONS, Injected, Truth, write_injected
from blade.store.index import Silent

PREVALENCES = (0.02, 0.05, 1.0)
# Faults of the run or of whole tasks: the cause of the run is what must be right.
OF_RUN = frozenset(
    "empty_run broken_verifier provider_outage agent_never_started format_rejected turn_limit_run "
    "wrong_tasks".split()
)


@dataclass
class Told:
    """What was concluded beside what is true, over all injected runs."""

    causes: list[tuple[str, tuple[str, ...], str, float, str]] = field(
        default_factory=list
    )  # fault, true, told, confidence, mode
    steps: list[tuple[str, int, int | None, tuple[int, ...]]] = field(
        default_factory=list
    )  # fault, true, told, ranked
    runs: list[tuple[str, tuple[str, ...], tuple[str, ...]]] = field(
        default_factory=list
    )  # fault, true, told
    alarms: Counter[str] = field(default_factory=Counter)  # twin -> run causes that should not be
    planted: Counter[str] = field(default_factory=Counter)  # behaviour -> rows
    recalled: Counter[str] = field(default_factory=Counter)
    fired: Counter[str] = field(default_factory=Counter)
    right: Counter[str] = field(default_factory=Counter)
    in_pass: Counter[str] = field(default_factory=Counter)
    n_pass: int = 0
    n_runs: int = 0


def measured(
    seeds: Iterable[int], faults: Iterable[str] | None = None, prevalences: Iterable[float] = PREVALENCES
) -> Told:
    """Every injection at every prevalence."""
    told = Told()
    for fault in faults or INJECTIONS:
        for prevalence in (1.0,) if fault.removesuffix("_twin") in OF_RUN else prevalences:
            for seed in seeds:
                with TemporaryDirectory() as folder:
                    written = write_injected(Path(folder), fault=fault, prevalence=prevalence, seed=seed)
                    _add(told, written)
    return told


def _add(told: Told, written: Injected) -> None:
    one = pipeline.load([str(written.path)], Silent())[0]
    scoring = measure.scoring.scoring(one.run.rollouts, None)
    read = reading.read_all([one], [scoring], Silent(), reading.Clock())[0]
    judged = read.judged
    keys = {
        (judged.task_keys[int(task)], int(repeat)): int(position)
        for task, repeat, position in zip(judged.task, judged.repeat, judged.rows, strict=True)
    }
    passed = {int(p) for p, ok in zip(judged.rows, judged.passed, strict=True) if ok}
    told.n_runs += 1
    told.n_pass += len(passed)
    _detectors(told, written, read, keys, passed)
    _causes(told, written, read, keys, passed)
    _steps(told, written, read, keys, passed)
    causes = tuple(dict.fromkeys(cause.cause.value for cause in read.attributed.run_causes))
    if written.fault in OF_RUN:
        told.runs.append((written.fault, written.truths[0].causes, causes))
    elif written.twin and causes:
        told.alarms[written.fault] += 1


def _detectors(
    told: Told, written: Injected, read: reading.Reading, keys: dict[tuple[str, int], int], passed: set[int]
) -> None:
    truth: defaultdict[int, set[str]] = defaultdict(set)
    excused: defaultdict[int, set[str]] = defaultdict(set)
    for one in written.truths:
        truth[keys[one.task, one.repeat]].add(one.behaviour)
        told.planted[one.behaviour] += 1
    for one in (*written.truths, *written.background):
        excused[keys[one.task, one.repeat]].update(one.also)
    fired = {(entry.finding.detector, entry.position) for entry in read.found if entry.finding.severity >= 2}
    background = {keys[one.task, one.repeat] for one in written.background}
    for name, position in fired:
        if name in truth[position]:
            told.recalled[name] += 1
        if position in passed:
            told.in_pass[name] += 1
        if name in excused[position] or position in background:
            continue
        told.fired[name] += 1
        told.right[name] += name in truth[position]


def _causes(
    told: Told, written: Injected, read: reading.Reading, keys: dict[tuple[str, int], int], passed: set[int]
) -> None:
    """One cause per task that the injection made fail, unless as many of its rows fail by themselves."""
    failing: defaultdict[str, list[Truth]] = defaultdict(list)
    for one in written.truths:
        if keys[one.task, one.repeat] not in passed:
            failing[one.task].append(one)
    beside = Counter(one.task for one in written.background)
    attributed = {one.task: one for one in read.attributed.attributions}
    for task, truths in failing.items():
        if beside[task] >= len(truths) or written.fault in OF_RUN:
            continue
        one = attributed[task]
        told.causes.append((written.fault, truths[0].causes, one.cause.value, one.confidence, one.mode))


def _steps(
    told: Told, written: Injected, read: reading.Reading, keys: dict[tuple[str, int], int], passed: set[int]
) -> None:
    for one in written.truths:
        position = keys[one.task, one.repeat]
        if one.step is None or position in passed or written.fault in OF_RUN:
            continue
        step, ranked = read.attributed.steps.get(position, (None, ()))
        told.steps.append((written.fault, one.step, step, tuple(blame.step for blame in ranked)))


__all__ = ["OF_RUN", "PREVALENCES", "Told", "measured"]
