"""Take one task through every stage that reads traces, and gather what all tasks of a run showed."""

from __future__ import annotations

import time
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from blade import attribute, contrast, detect, discover, locate, signatures
from blade.attribute.contents import Ended
from blade.detect.rule import NEEDS
from blade.detect.run import Detected, detected
from blade.measure import soundness
from blade.model import Attribution, Divergence, Found, Gap, Located, RunFacts, TaskTraces

T = TypeVar("T")


class Clock:
    """Seconds by stage; what workers spend is added up over all of them."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)

    def timed(self, stage: str, work: Callable[[], T]) -> T:
        start = time.perf_counter()
        try:
            return work()
        finally:
            self.seconds[stage] += time.perf_counter() - start


class Seen(msgspec.Struct):
    """What the stages made of the traces of one task, on its way from a worker."""

    detected: Detected
    located: Sequence[Located]
    features: Any
    tokens: Any
    lines: Any
    sounding: Any
    contents: Sequence[Ended]
    failed: Mapping[str, str]  # stage -> what it failed with
    seconds: Mapping[str, float]


def seen(task: TaskTraces, facts: RunFacts) -> Seen:
    """One task through every stage; one that fails is named, and the others go on."""
    seconds: dict[str, float] = {}
    failed: dict[str, str] = {}

    def tried(stage: str, work: Callable[[], Any], otherwise: Any) -> Any:
        start = time.perf_counter()
        try:
            return work()
        except Exception as error:  # stages read hostile text: a fault must not cost the report
            failed[stage] = f"{type(error).__name__}: {error}"[:200]
            return otherwise
        finally:
            seconds[stage] = time.perf_counter() - start

    faults = [episode.fault for episode in task.episodes if episode.fault]
    if faults:
        failed["reading rows"] = faults[0]
    found = tried("detect", lambda: detected(task, facts, detect.DETECTORS), Detected((), {}, {}))
    tokens = tried("contrast", lambda: contrast.observe(task), None)
    pairs = [(one.position, one.finding) for one in found.found]
    parted = tokens.divergences if tokens is not None else ()
    return Seen(
        detected=found,
        located=tried("locate", lambda: locate.observe(task, pairs, parted), []),
        features=tried("discover", lambda: discover.observe(task), []),
        tokens=tokens,
        lines=tried("signatures", lambda: signatures.observe(task), []),
        sounding=tried("health", lambda: soundness.observe(task), None),
        contents=tried("attribute", lambda: attribute.observe(task), []),
        failed=failed,
        seconds=seconds,
    )


class Gathered:
    """What the tasks of a run showed, as it comes in."""

    def __init__(self) -> None:
        self.found: list[Found] = []
        self.located: dict[int, Located] = {}
        self.features = discover.Gathered()
        self.tokens: list[Any] = []
        self.parted: list[Divergence] = []
        self.lines: list[Any] = []
        self.soundings: list[Any] = []
        self.contents: dict[int, str] = {}
        self.grains = array("Q")  # four numbers a row: its position, then what it ended with in each grain
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.lacking: Counter[tuple[str, str]] = Counter()
        self.broken: Counter[tuple[str, str]] = Counter()
        self.n_tasks = 0

    def add(self, told: Seen) -> None:
        self.n_tasks += 1
        self.found += told.detected.found
        self.located |= {one.position: one for one in told.located}
        self.features.add(told.features)
        for position, content, *grains in told.contents:
            if content:
                self.contents[position] = content
            self.grains.extend((position, *grains))
        if told.lines:
            self.lines.append(told.lines)
        if told.tokens is not None:
            self.parted += told.tokens.divergences
            if told.tokens.features:
                self.tokens.append(replace(told.tokens, divergences=()))
        if told.sounding is not None:
            self.soundings.append(told.sounding)
        for stage, seconds in told.seconds.items():
            self.seconds[stage] += seconds
        self.lacking.update(told.detected.lacking.items())
        self.broken.update((f"detector {name}", why) for name, why in told.detected.broken.items())
        self.broken.update(told.failed.items())

    def divergences(self, told: Sequence[Attribution]) -> list[Divergence]:
        """Of each task that passes and fails, the failing rollout that its cause is shown by; else that which
        is most like a passing one."""
        shown = {(one.task, one.repeat) for one in told}
        by_task: dict[str, list[Divergence]] = {}
        for one in self.parted:
            by_task.setdefault(one.task, []).append(one)
        return [
            min(some, key=lambda one: ((one.task, one.repeat) not in shown, one.distance, one.repeat))
            for some in by_task.values()
        ]

    def gaps(self, run: str) -> list[Gap]:
        """What could not run: detectors that no task has the input for, stages that failed."""
        idle: defaultdict[str, list[str]] = defaultdict(list)
        for (name, need), n in sorted(self.lacking.items()):
            if n == self.n_tasks:
                idle[need].append(name)
        found = [
            Gap(f"{', '.join(names)} on {run}", f"no task has what they need: {NEEDS[need]}")
            for need, names in sorted(idle.items())
        ]
        for (stage, why), n in sorted(self.broken.items()):
            found.append(Gap(f"{stage} on {n:,} task{'s' if n > 1 else ''} of {run}", f"it failed: {why}"))
        return found
