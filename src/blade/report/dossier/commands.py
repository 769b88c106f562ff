"""Write the commands that show more of a task, and the line that records a judgement of it."""

from __future__ import annotations

from blade import hostile
from blade.model import Cause
from blade.report import places
from blade.report.dossier.case import Case

_LONGEST = 300  # characters of a path or a key that is worth typing
PROMPT = "$ "  # a line that begins so is a command of ours: its arguments are quoted for the shell


def show(case: Case, repeat: int, first: int | None = None, last: int | None = None) -> str | None:
    """`blade show RUN TASK/REPEAT --steps 3:9`; None where it cannot be typed."""
    who, what = target(case), typed(places.place(case.task, repeat))
    if who is None or what is None:
        return None
    steps = f" --steps {first}:{last}" if first is not None else ""
    return f"blade show {who} {what}{steps}"


def target(case: Case) -> str | None:
    """The run as `blade` takes it, with its name where a file holds several."""
    run = case.facts.run
    path = typed(run.sources[0].path) if len(run.sources) == 1 else typed(run.name)
    return path


def typed(text: str) -> str | None:
    return hostile.argument(text) if len(text) <= _LONGEST else None


def near(case: Case) -> list[str]:
    """The rollout in focus, around the step that is blamed."""
    if case.focus is None:
        return []
    at = case.candidates[0] if case.candidates else max(0, len(case.focus.steps) - 3)
    return _line(show(case, case.focus.rollout.repeat, max(0, at - 2), at + 3))


def more(case: Case) -> list[str]:
    """A passing repeat, and the request in full."""
    if case.passer is None:
        return []
    at = case.parting.passer_step if case.parting is not None else None
    where = (max(0, at - 2), at + 3) if at is not None else (None, None)
    return _line(show(case, case.passer.rollout.repeat, *where))


def label(case: Case) -> list[str]:
    """The template of a judgement; what stands in capitals is to be filled in."""
    who, what = target(case), typed(case.task)
    if who is None or what is None or case.focus is None or case.cause is None:
        return []
    cause = case.cause.cause.value if case.cause.cause is not Cause.UNDETERMINED else "CAUSE"
    step = case.candidates[0] if case.candidates else "STEP"
    return [
        f"{PROMPT}blade label {who} {what} --cause {cause} --repeat {case.focus.rollout.repeat} "
        f'--step {step} --quote "EXACT WORDS OF THAT STEP" --mechanism "WHAT HAPPENED"'
    ]


def _line(command: str | None) -> list[str]:
    return [PROMPT + command] if command is not None else []
