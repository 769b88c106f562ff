"""What a detector makes of a task, in short."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

from blade import events
from blade.detect.run import Detected, detected
from blade.model import Finding, TaskTraces
from tests.traces import make_facts


def ran(detector: ModuleType, task: TaskTraces, **facts: Any) -> Detected:
    """One detector over one task, which must not break."""
    done = detected(task, make_facts(**facts), {detector.RULE.name: detector})
    assert not done.broken
    return done


def findings(detector: ModuleType, task: TaskTraces, **facts: Any) -> list[Finding]:
    """Its findings; every quotation is checked against the step or field it is said to stand in."""
    done = ran(detector, task, **facts)
    by_position = {episode.position: episode for episode in task.episodes}
    for one in done.found:
        episode = by_position[one.position]
        for evidence in one.finding.evidence:
            if evidence.step is not None:
                assert evidence.quote in events.step_text(episode.trace.steps[evidence.step])
            else:
                assert evidence.field is not None
                told = events.in_field(episode, evidence.field, length=10**6)
                assert told is not None
                assert evidence.quote in told.quote
    return [one.finding for one in done.found]


def only(detector: ModuleType, task: TaskTraces, **facts: Any) -> Finding:
    """Its one finding."""
    found = findings(detector, task, **facts)
    assert len(found) == 1, [one.summary for one in found]
    return found[0]


def is_lacking(detector: ModuleType, task: TaskTraces) -> str:
    """The need for want of which it did not run."""
    return ran(detector, task).lacking[detector.RULE.name]


def seconds(work: Callable[[], object]) -> float:
    """What some work costs this thread; a look at all that other tests left alive would count as its own."""
    gc.disable()
    try:
        start = time.thread_time()
        work()
        return time.thread_time() - start
    finally:
        gc.enable()
