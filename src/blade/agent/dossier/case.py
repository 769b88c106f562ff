"""Gather what is known of one task, and write the commands that show more of it or record a judgement."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from blade import events, hostile
from blade.model import Attribution, Call, Cause, Evidence, Gold, Group, Outcome, TaskResult, Trace
from blade.report import row_addresses
from blade.report.run_facts import Facts

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
        for row in self.result.repeats if self.result else ():
            if row.repeat == repeat:
                return row.outcome.value.replace("_", " ") if row.outcome else "not judged"
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
    failing = [each.repeat for each in result.repeats if each.outcome not in _NOT_RUN] if result else []
    wanted = [repeat] if repeat is not None else [cause.repeat if cause else None]
    return next(
        (traces[each] for each in (*wanted, *failing, *traces) if each is not None and each in traces), None
    )


def _passer(result: TaskResult | None, traces: dict[int, Trace], focus: Trace | None) -> Trace | None:
    passed = [each.repeat for each in result.repeats if each.outcome is Outcome.PASSED] if result else []
    return next((traces[each] for each in passed if each in traces and traces[each] is not focus), None)


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
    for quotation in evidence:
        if (quotation.run, quotation.task, quotation.repeat) == (
            run,
            rollout.task,
            rollout.repeat,
        ) and quotation.step is not None:
            steps.append(quotation.step)
            quotes.setdefault(quotation.step, quotation.quote or "")
    return [step for step in dict.fromkeys(steps) if step is not None and 0 <= step < n], quotes


_SHORT = 5  # steps that are shown whole
_LONGEST = 300  # characters of a path or a key that is worth typing
PROMPT = "$ "  # a line that begins so is a command of ours: its arguments are quoted for the shell


def show(case: Case, repeat: int, first: int | None = None, last: int | None = None) -> str | None:
    """Write `blade show RUN TASK/REPEAT --steps 3:9`; None where it cannot be typed."""
    steps = f" --steps {first}:{last}" if first is not None else ""
    where = target(case, row_addresses.place(case.task, repeat))
    return f"blade show {where}{steps}" if where is not None else None


def target(case: Case, task: str) -> str | None:
    """Write RUN and TASK as `blade` takes them, with the name of the run where RUN holds several."""
    run = case.facts.run
    folders = {os.path.dirname(source.path) for source in run.sources}
    only = run.agent is not None and run.name.endswith(f":{run.agent}")
    if len(run.sources) == 1:
        path = run.sources[0].path
    else:
        path, only = (folders.pop() or ".", True) if len(folders) == 1 else (run.name, False)
    who, what, name = typed(path), typed(task), typed(run.name)
    if who is None or what is None or (only and name is None):
        return None
    return f"{who} {what} --run {name}" if only else f"{who} {what}"


def typed(text: str) -> str | None:
    return hostile.argument(text) if len(text) <= _LONGEST else None


def near(case: Case) -> list[str]:
    """Show the rollout in focus, around the step that is blamed."""
    if case.focus is None:
        return []
    return _line(_around(case, case.focus, case.candidates[0] if case.candidates else None))


def more(case: Case) -> list[str]:
    """Show a passing repeat, around its first call that differs."""
    if case.passer is None:
        return []
    call = case.parting[1] if case.parting is not None else None
    return _line(_around(case, case.passer, call.step if call is not None else None))


def _around(case: Case, trace: Trace, step: int | None) -> str | None:
    """Show a rollout near a step; all of it where it is short or no step is known."""
    if step is None or len(trace.steps) <= _SHORT:
        return show(case, trace.rollout.repeat)
    return show(case, trace.rollout.repeat, max(0, step - 2), step + 3)


def label(case: Case) -> list[str]:
    """Write the template of a judgement; words in capitals are to be filled in."""
    where_to = target(case, case.task)
    if where_to is None or case.focus is None or case.cause is None:
        return []
    cause = case.cause.cause.value if case.cause.cause is not Cause.UNDETERMINED else "CAUSE"
    passes = case.facts.run.pass_threshold
    where_to += f" --pass-threshold {passes!r}" if case.facts.run.has_pass_rate and passes != 1 else ""
    where = f"--step {case.candidates[0] if case.candidates else 'STEP'}"
    if not case.focus.steps:
        where = f"--field {_field(case) or 'FIELD'}"
    return [
        f"{PROMPT}blade label {where_to} --cause {cause} --repeat {case.focus.rollout.repeat} "
        f'{where} --quote "EXACT WORDS FROM THERE" --mechanism "WHAT HAPPENED"'
    ]


def _field(case: Case) -> str | None:
    """Find a field that is quoted for the cause, where no step can be."""
    quoted = [each.field for each in case.cause.evidence if each.field] if case.cause is not None else []
    return typed(quoted[0]) if quoted else None


def _line(command: str | None) -> list[str]:
    return [PROMPT + command] if command is not None else []
