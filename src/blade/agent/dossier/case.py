"""Gather what is known of one task, and write the commands that show more of it or record a judgement."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from blade import events, hostile
from blade.model import Attribution, Call, Cause, Gold, Group, Outcome, TaskResult, Trace
from blade.report import row_addresses
from blade.report.run_facts import Facts

_NOT_RUN = (Outcome.PASSED, Outcome.MISSING, Outcome.MASKED)
_SHORT = 5  # steps that are shown whole
_LONGEST = 300  # characters of a path or a key that is worth typing
PROMPT = "$ "  # a line that begins so is a command of ours: its arguments are quoted for the shell


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
    quotes: dict[int, str]  # what is quoted of the steps that the cause points to, the likeliest first
    gold: Gold

    @property
    def candidates(self) -> list[int]:
        """The steps that the cause points to, the likeliest first."""
        return list(self.quotes)

    @property
    def is_open(self) -> bool:
        """Whether nothing is proposed, so that more of the rollout must speak for itself."""
        return self.cause is None or self.cause.cause is Cause.UNDETERMINED

    def outcome(self, repeat: int) -> str:
        """Name how a repeat ended."""
        for row in self.result.repeats if self.result else ():
            if row.repeat == repeat:
                return named(row.outcome)
        return "not counted"


def named(outcome: Outcome | None) -> str:
    return outcome.value.replace("_", " ") if outcome else "not judged"


def case(facts: Facts, task: str, traces: Sequence[Trace], repeat: int | None) -> Case:
    """Gather what is known of a task; `repeat` names the rollout to be read closely, else it is chosen."""
    result, cause = facts.task(task), facts.attribution.get(task)
    group = facts.group(cause.group) if cause is not None else None
    by_repeat: dict[int, Trace] = {}
    for trace in traces:
        by_repeat.setdefault(trace.rollout.repeat, trace)
    rows = result.repeats if result else ()
    failing = [row.repeat for row in rows if row.outcome not in _NOT_RUN]
    wanted = cause.repeat if repeat is None and cause is not None else repeat
    focus = next((by_repeat[each] for each in (wanted, *failing, *by_repeat) if each in by_repeat), None)
    passed = [by_repeat.get(row.repeat) for row in rows if row.outcome is Outcome.PASSED]
    passer = next((trace for trace in passed if trace is not None and trace is not focus), None)
    calls = events.calls(focus.steps, {}, {}) if focus is not None else ()
    # where one rollout ends first, it has no call that differs
    pairs = zip_longest(calls, events.calls(passer.steps, {}, {})) if passer is not None else ()
    # what the task expects stands in the rollout in focus, or else in any other
    golds = (events.gold(trace.row) for trace in (focus, *by_repeat.values()) if trace is not None)
    return Case(
        facts, task, result, cause, group, by_repeat, focus, passer,
        parting=next((pair for pair in pairs if None in pair or pair[0].key != pair[1].key), None),
        calls={call.step: call for call in calls},
        quotes=_quotes(facts.run.name, cause, group, focus),
        gold=next((gold for gold in golds if gold != Gold()), Gold()),
    )  # fmt: skip


def _quotes(run: str, cause: Attribution | None, group: Group | None, focus: Trace | None) -> dict[int, str]:
    """Find the steps of the rollout in focus that the cause points to, and what is quoted of each."""
    if focus is None or cause is None:
        return {}
    rollout = focus.rollout
    steps = (cause.step, *(blame.step for blame in cause.steps)) if cause.repeat == rollout.repeat else ()
    quotes: dict[int | None, str] = {}
    for quotation in (*cause.evidence, *([group.quote] if group is not None and group.quote else [])):
        if (quotation.run, quotation.task, quotation.repeat) == (run, rollout.task, rollout.repeat):
            quotes.setdefault(quotation.step, quotation.quote or "")
    order = dict.fromkeys((*steps, *quotes))
    return {step: quotes.get(step, "") for step in order if step is not None and 0 <= step < len(focus.steps)}


def target(case: Case, task: str) -> str | None:
    """Write RUN and TASK as `blade` takes them, with the name of the run where RUN holds several."""
    run = case.facts.run
    folders = {os.path.dirname(source.path) for source in run.sources}
    only = run.agent is not None and run.name.endswith(f":{run.agent}")
    if len(run.sources) == 1:
        path = run.sources[0].path
    else:
        path, only = (folders.pop() or ".", True) if len(folders) == 1 else (run.name, False)
    words = [typed(path), typed(task), *(["--run", typed(run.name)] if only else [])]
    return None if None in words else " ".join(map(str, words))


def typed(text: str) -> str | None:
    return hostile.argument(text) if len(text) <= _LONGEST else None


def near(case: Case) -> list[str]:
    """Show the rollout in focus, around the step that is blamed."""
    return _shown(case, case.focus, next(iter(case.quotes), None))


def more(case: Case) -> list[str]:
    """Show a passing repeat, around its first call that differs."""
    call = case.parting[1] if case.parting is not None else None
    return _shown(case, case.passer, call.step if call is not None else None)


def _shown(case: Case, trace: Trace | None, step: int | None) -> list[str]:
    """Show a rollout near a step; all of it where it is short or no step is known; nothing that cannot be typed."""
    where = target(case, row_addresses.place(case.task, trace.rollout.repeat)) if trace is not None else None
    if trace is None or where is None:
        return []
    is_whole = step is None or len(trace.steps) <= _SHORT
    steps = "" if is_whole or step is None else f" --steps {max(0, step - 2)}:{step + 3}"
    return [f"{PROMPT}blade show {where}{steps}"]


def label(case: Case) -> list[str]:
    """Write the template of a judgement; words in capitals are to be filled in."""
    where_to = target(case, case.task)
    if where_to is None or case.focus is None or case.cause is None:
        return []
    cause = case.cause.cause.value if case.cause.cause is not Cause.UNDETERMINED else "CAUSE"
    passes = case.facts.run.pass_threshold
    where_to += f" --pass-threshold {passes!r}" if case.facts.run.has_pass_rate and passes != 1 else ""
    where = f"--step {next(iter(case.quotes), 'STEP')}"
    if not case.focus.steps:  # a field that is quoted for the cause, where no step can be
        quoted = [each.field for each in case.cause.evidence if each.field]
        where = f"--field {(typed(quoted[0]) if quoted else None) or 'FIELD'}"
    return [
        f"{PROMPT}blade label {where_to} --cause {cause} --repeat {case.focus.rollout.repeat} "
        f'{where} --quote "EXACT WORDS FROM THERE" --mechanism "WHAT HAPPENED"'
    ]
