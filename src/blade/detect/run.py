"""Run every detector over the rollouts of one task: traces to findings, and what could not run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import ModuleType

import msgspec

from blade.detect.rule import Hit, Rule
from blade.model import Confidence, Finding, Found, RunFacts, TaskTraces


class Detected(msgspec.Struct, frozen=True):
    """What the detectors made of one task."""

    found: tuple[Found, ...]
    lacking: Mapping[str, str]  # detector -> the need that was not met
    broken: Mapping[str, str]  # detector -> what it failed with


def _has_steps(task: TaskTraces) -> bool:
    return any(episode.trace.steps for episode in task.episodes)


_MET: dict[str, Callable[[TaskTraces], bool]] = {
    "steps": _has_steps,
    "calls": lambda task: any(episode.calls for episode in task.episodes),
    "declared tools": lambda task: any(episode.tools for episode in task.episodes),
    "passes": lambda task: any(episode.passed for episode in task.episodes),
    "gold actions": lambda task: bool(task.gold.actions),
    "gold answer": lambda task: task.gold.answer is not None,
    "judged": lambda task: all(episode.passed is not None for episode in task.episodes),
}


def detected(task: TaskTraces, facts: RunFacts, detectors: Mapping[str, ModuleType]) -> Detected:
    """The findings of one task; a detector that fails is named, and the others go on."""
    unmet = {need for need, met in _MET.items() if not met(task)}
    found: list[Found] = []
    lacking: dict[str, str] = {}
    broken: dict[str, str] = {}
    for name, module in detectors.items():
        rule: Rule = module.RULE
        missing = next((need for need in rule.needs if need in unmet), None)
        if missing is not None:
            lacking[name] = missing
            continue
        try:
            found += _found(task, rule, module.find(task, facts))
        except Exception as error:  # a detector reads hostile text: its failure must not cost the report
            broken[name] = f"{type(error).__name__}: {error}"[:200]
    return Detected(tuple(found), lacking, broken)


def _found(task: TaskTraces, rule: Rule, hits: Iterable[Hit | None]) -> list[Found]:
    """One finding for each rollout: its gravest hit, and how many more there are."""
    by_row: dict[int, list[Hit]] = {}
    for hit in hits:
        if hit is not None:
            by_row.setdefault(hit.episode.position, []).append(hit)
    found = []
    for position, hits_of_row in by_row.items():
        worst = max(hits_of_row, key=lambda hit: hit.severity)  # the first of equals
        more = len(hits_of_row) - 1
        found.append(Found(_finding(task, rule, worst, more), worst.detail, position))
    return found


def _finding(task: TaskTraces, rule: Rule, hit: Hit, more: int) -> Finding:
    rollout = hit.episode.trace.rollout
    return Finding(
        id=f"{rule.name}:{task.task}/{rollout.repeat}",
        run=task.run,
        detector=rule.name,
        task=task.task,
        repeat=rollout.repeat,
        summary=f"{hit.summary} ({more} more such place{'s' if more > 1 else ''}.)" if more else hit.summary,
        severity=hit.severity,
        confidence=Confidence.PROVED if hit.certain else Confidence.LIKELY,
        evidence=hit.evidence,
        cause=hit.cause or rule.cause,
    )
