"""Write the commands that show more of a task, and the line that records a judgement of it."""

from __future__ import annotations

import os

from blade import hostile
from blade.agent.dossier.case import Case
from blade.model import Cause, Trace
from blade.report import places

_SHORT = 5  # steps that are shown whole
_LONGEST = 300  # characters of a path or a key that is worth typing
PROMPT = "$ "  # a line that begins so is a command of ours: its arguments are quoted for the shell


def show(case: Case, repeat: int, first: int | None = None, last: int | None = None) -> str | None:
    """Write `blade show RUN TASK/REPEAT --steps 3:9`; None where it cannot be typed."""
    steps = f" --steps {first}:{last}" if first is not None else ""
    where = target(case, places.place(case.task, repeat))
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


def _around(case: Case, trace: Trace, at: int | None) -> str | None:
    """Show a rollout near a step; all of it where it is short or no step is known."""
    if at is None or len(trace.steps) <= _SHORT:
        return show(case, trace.rollout.repeat)
    return show(case, trace.rollout.repeat, max(0, at - 2), at + 3)


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
    quoted = [one.field for one in case.cause.evidence if one.field] if case.cause is not None else []
    return typed(quoted[0]) if quoted else None


def _line(command: str | None) -> list[str]:
    return [PROMPT + command] if command is not None else []
