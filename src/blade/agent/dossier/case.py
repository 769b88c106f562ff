"""Gather what is known of one task: its rows, the proposed cause, and the steps worth reading."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from blade import events
from blade.model import Attribution, Call, Cause, Evidence, Gold, Group, Outcome, TaskResult, Trace
from blade.report.facts import Facts

_NOT_RUN = (Outcome.PASSED, Outcome.MISSING, Outcome.MASKED)


@dataclass(frozen=True)
class Case:
    """One task and the rollout of it that is read closely."""

    facts: Facts
    task: str
    result: TaskResult | None
    cause: Attribution | None
    group: Group | None  # the failures of the run that the cause puts this task among
    traces: dict[int, Trace]  # by repeat; of differing duplicates the first
    focus: Trace | None
    passer: Trace | None  # a passing repeat to set beside it
    parting: tuple[Call | None, Call | None] | None  # the first calls that differ: in focus, in the passer
    calls: dict[int, Call]  # of the rollout in focus, by step
    candidates: list[int]  # steps of it, the likeliest first
    quotes: dict[int, str]  # what is quoted of them
    gold: Gold

    @property
    def is_open(self) -> bool:
        """Whether nothing is proposed, so that more of the rollout must speak for itself."""
        return self.cause is None or self.cause.cause is Cause.UNDETERMINED

    def outcome(self, repeat: int) -> str:
        """Name how a repeat ended."""
        for one in self.result.repeats if self.result else ():
            if one.repeat == repeat:
                return one.outcome.value.replace("_", " ") if one.outcome else "not judged"
        return "not counted"


def case(facts: Facts, task: str, traces: Sequence[Trace], repeat: int | None) -> Case:
    """Gather what is known of a task; `repeat` names the rollout to be read closely, else it is chosen."""
    result, cause = facts.task(task), facts.attribution.get(task)
    group = facts.group(cause.group) if cause is not None else None
    by_repeat: dict[int, Trace] = {}
    for trace in traces:
        by_repeat.setdefault(trace.rollout.repeat, trace)
    focus = _focus(result, cause, by_repeat, repeat)
    passer = _passer(result, by_repeat, focus)
    calls = events.calls(focus.steps, {}, {}) if focus is not None else ()
    candidates, quotes = _candidates(facts.run.name, cause, group, focus)
    return Case(
        facts=facts,
        task=task,
        result=result,
        cause=cause,
        group=group,
        traces=by_repeat,
        focus=focus,
        passer=passer,
        parting=_parting(calls, events.calls(passer.steps, {}, {})) if passer is not None else None,
        calls={call.step: call for call in calls},
        candidates=candidates,
        quotes=quotes,
        gold=_gold(focus, by_repeat) if focus is not None else Gold(),
    )


def _gold(focus: Trace, traces: dict[int, Trace]) -> Gold:
    """Take what the task expects from the rollout in focus, or else from any other."""
    golds = (events.gold(trace.row) for trace in (focus, *traces.values()))
    return next((gold for gold in golds if gold != Gold()), Gold())


def _focus(
    result: TaskResult | None, cause: Attribution | None, traces: dict[int, Trace], repeat: int | None
) -> Trace | None:
    failing = [one.repeat for one in result.repeats if one.outcome not in _NOT_RUN] if result else []
    wanted = [repeat] if repeat is not None else [cause.repeat if cause else None]
    return next(
        (traces[one] for one in (*wanted, *failing, *traces) if one is not None and one in traces), None
    )


def _passer(result: TaskResult | None, traces: dict[int, Trace], focus: Trace | None) -> Trace | None:
    passed = [one.repeat for one in result.repeats if one.outcome is Outcome.PASSED] if result else []
    return next((traces[one] for one in passed if one in traces and traces[one] is not focus), None)


def _parting(calls: Sequence[Call], others: Sequence[Call]) -> tuple[Call | None, Call | None] | None:
    """Find the first calls that differ; where one rollout ends first, it has none."""
    for call, other in zip_longest(calls, others):
        if call is None or other is None or call.key != other.key:
            return call, other
    return None


def _candidates(
    run: str, cause: Attribution | None, group: Group | None, focus: Trace | None
) -> tuple[list[int], dict[int, str]]:
    """Find the steps of the rollout in focus that the cause points to, and what is quoted of each."""
    if focus is None or cause is None:
        return [], {}
    rollout, n = focus.rollout, len(focus.steps)
    steps: list[int | None] = []
    if cause.repeat == rollout.repeat:
        steps += [cause.step, *(blame.step for blame in cause.steps)]
    quotes: dict[int, str] = {}
    evidence: list[Evidence] = [
        *cause.evidence,
        *([group.quote] if group is not None and group.quote else []),
    ]
    for one in evidence:
        if (one.run, one.task, one.repeat) == (run, rollout.task, rollout.repeat) and one.step is not None:
            steps.append(one.step)
            quotes.setdefault(one.step, one.quote or "")
    return [step for step in dict.fromkeys(steps) if step is not None and 0 <= step < n], quotes
