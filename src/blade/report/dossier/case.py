"""Gather what is known of one task: rows, proposal, findings, and the steps worth reading."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from blade import events
from blade.model import (
    Attribution,
    Call,
    Cause,
    Divergence,
    Evidence,
    Finding,
    Gold,
    Outcome,
    Step,
    TaskResult,
    Trace,
)
from blade.report.facts import Facts

_NOT_RUN = (Outcome.PASSED, Outcome.MISSING, Outcome.MASKED)


@dataclass(frozen=True)
class Case:
    """One task and the rollout of it that is read closely."""

    facts: Facts
    task: str
    result: TaskResult | None
    cause: Attribution | None
    traces: dict[int, Trace]  # by repeat; of differing duplicates the first
    focus: Trace | None
    passer: Trace | None  # a passing repeat to hold against it
    parting: Divergence | None  # only where it concerns the rollout in focus
    findings: list[Finding]  # the most severe first
    calls: dict[int, Call]  # of the rollout in focus, by step
    candidates: list[int]  # steps of it, the likeliest first
    quotes: dict[int, str]  # what is quoted of them
    gold: Gold

    @property
    def is_open(self) -> bool:
        """Whether nothing is proposed, so that more of the rollout must speak for itself."""
        return self.cause is None or self.cause.cause is Cause.UNDETERMINED

    def telling_findings(self) -> list[Finding]:
        """Without weak findings in rollouts that are not read, and what passing repeats do as well."""
        focus = self.focus.rollout.repeat if self.focus is not None else None
        return [
            one
            for one in self.findings
            if one.repeat in (focus, None) or (one.severity > 1 and self.outcome(one.repeat) != "passed")
        ]

    def outcome(self, repeat: int) -> str:
        for one in self.result.repeats if self.result else ():
            if one.repeat == repeat:
                return one.outcome.value.replace("_", " ") if one.outcome else "not judged"
        return "not counted"


def case(facts: Facts, task: str, traces: Sequence[Trace], repeat: int | None) -> Case:
    """What is known of a task; `repeat` names the rollout to be read closely, else it is chosen."""
    result, cause = facts.task(task), facts.attribution.get(task)
    by_repeat: dict[int, Trace] = {}
    for trace in traces:
        by_repeat.setdefault(trace.rollout.repeat, trace)
    parting = facts.divergence_of(task)
    focus = _focus(result, cause, parting, by_repeat, repeat)
    chosen = focus.rollout.repeat if focus is not None else None
    if parting is not None and parting.repeat != chosen:
        parting = None
    findings = [found for found in facts.findings if found.task == task]
    calls = {call.step: call for call in events.calls(focus.steps, {}, {})} if focus is not None else {}
    candidates, quotes = _candidates(facts.run.name, cause, parting, findings, focus)
    return Case(
        facts,
        task,
        result,
        cause,
        by_repeat,
        focus,
        _passer(facts, result, parting, by_repeat, chosen),
        parting,
        sorted(findings, key=lambda one: (-one.severity, one.repeat != chosen)),
        calls,
        candidates,
        quotes,
        _gold(focus, by_repeat) if focus is not None else Gold(),
    )


def _gold(focus: Trace, traces: dict[int, Trace]) -> Gold:
    """What the task expects, as the rollout in focus says, or else any other."""
    told = (events.gold(trace.row) for trace in (focus, *traces.values()))
    return next((gold for gold in told if gold != Gold()), Gold())


def _focus(
    result: TaskResult | None,
    cause: Attribution | None,
    parting: Divergence | None,
    traces: dict[int, Trace],
    repeat: int | None,
) -> Trace | None:
    failing = [one.repeat for one in result.repeats if one.outcome not in _NOT_RUN] if result else []
    wanted = [repeat] if repeat is not None else [cause.repeat if cause else None]
    wanted += [parting.repeat if parting else None, *failing, *traces]
    return next((traces[one] for one in wanted if one is not None and one in traces), None)


def _passer(
    facts: Facts,
    result: TaskResult | None,
    parting: Divergence | None,
    traces: dict[int, Trace],
    focus: int | None,
) -> Trace | None:
    if parting is not None:
        return traces.get(parting.passer) if parting.passer_run == facts.run.name else None
    passed = [one.repeat for one in result.repeats if one.outcome is Outcome.PASSED] if result else []
    return next((traces[one] for one in passed if one in traces and one != focus), None)


def _candidates(
    run: str,
    cause: Attribution | None,
    parting: Divergence | None,
    findings: Sequence[Finding],
    focus: Trace | None,
) -> tuple[list[int], dict[int, str]]:
    """The steps of the rollout in focus that anything points to, and what is quoted of each."""
    if focus is None:
        return [], {}
    repeat, n = focus.rollout.repeat, len(focus.steps)
    steps: list[int | None] = []
    evidence: list[Evidence] = []
    if cause is not None and cause.repeat == repeat:
        steps += [cause.step, *(blame.step for blame in cause.steps)]
        evidence += cause.evidence
    if parting is not None:
        steps += [parting.step]
        evidence += parting.evidence
    for found in findings:
        if found.repeat in (repeat, None):
            evidence += found.evidence
    if cause is not None and cause.repeat != repeat:
        evidence += cause.evidence
    quotes: dict[int, str] = {}
    for one in evidence:
        if (one.run, one.repeat) == (run, repeat) and one.step is not None and one.task == focus.rollout.task:
            steps.append(one.step)
            quotes.setdefault(one.step, one.quote or "")
    steps += [parting.first_step] if parting is not None else []
    found_steps = [step for step in dict.fromkeys(steps) if step is not None and 0 <= step < n]
    return found_steps, quotes


def said(step: Step) -> str:
    """What a step says: arguments of a call, else its text, else its thinking."""
    return events.step_text(step)
