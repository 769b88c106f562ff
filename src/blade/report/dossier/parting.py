"""Set the rollout in focus beside a passing one where they part."""

from __future__ import annotations

from itertools import groupby

from blade import hostile
from blade.model import Trace
from blade.report import words
from blade.report.dossier import frame, steps
from blade.report.dossier.case import Case

_MAX_TOOLS = 30


def lines(case: Case, room: int, around: int = 0) -> list[str]:
    """What each side does at the parting; `around` is how many steps of the passing side stand beside."""
    found = [*_contrasts(case, room)]
    parting = case.parting
    if parting is None:
        return found + _sequences(case, room)
    borrowed = parting.passer_run != case.facts.run.name
    same_ends = parting.does == parting.passer_does == "finishes"
    alike = f"{words.percent(parting.distance)} of acts differ, first at step {parting.first_step}"
    found.append(
        f"failing repeat {parting.repeat} parts from passing repeat {parting.passer}"
        f"{' of another run' if borrowed else ''}"
        f"{' only in its last words' if same_ends else ''} ({alike}; shown to be read, not tested)"
    )
    if borrowed:
        found.append(frame.behind("that run", parting.passer_run, 20))
    # the failing side is read at length below
    found += _side("failing", case.traces.get(parting.repeat), parting.step, min(room, 30), 0, case, True)
    passer = None if borrowed else case.traces.get(parting.passer)
    found += _side("passing", passer, parting.passer_step, room, around, case, False)
    if parting.missing:
        names = ", ".join(hostile.line(name, 40) for name in parting.missing[:6])
        found.append(frame.behind("used by nearly all passing rollouts, not by this one", names, 40))
    return found


def _side(
    name: str, trace: Trace | None, at: int, room: int, around: int, case: Case, is_focus: bool
) -> list[str]:
    if trace is None:
        told = case.parting.evidence if case.parting is not None else ()
        quoted = next((one for one in told if (one.task, one.run) != (case.task, case.facts.run.name)), None)
        return [frame.behind(f"{name} step {at}", quoted.quote or "", room)] if quoted is not None else []
    made = case.calls if is_focus else {}
    chosen = trace.steps[max(0, at - around) : at + 1 + around]
    # what a call brought back belongs to it
    if around == 0 and at + 1 < len(trace.steps) and trace.steps[at + 1].kind == "result" and not is_focus:
        chosen = (*chosen, trace.steps[at + 1])
    found = []
    for step in chosen:
        head = f"{name} {steps.head(step, made)}"
        size = room if step.index == at else room // 2
        ends = step.kind == "message" and not any(one.kind == "call" for one in trace.steps)
        found.append(frame.behind(head, steps.text(step), size, ends=ends and is_focus))
    return found


def _contrasts(case: Case, room: int) -> list[str]:
    found = []
    for one in case.facts.contrasts_of(case.task)[:2]:
        if one.text.strip() and one.task == case.task:
            tested = words.p_value(one.p_adjusted if one.p_adjusted is not None else one.p)
            found.append(frame.behind(f"contrast ({tested})", one.text, room))
    return found


def _sequences(case: Case, room: int) -> list[str]:
    """The calls of both sides by name, where nothing was aligned."""
    if case.passer is None or case.focus is None:
        return []
    found = []
    for name, trace in (("failing", case.focus), ("passing", case.passer)):
        made = [hostile.line(step.tool or "", 40) for step in trace.steps if step.kind == "call"]
        head = f"{name} repeat {trace.rollout.repeat}, {words.count(len(made), 'call')}"
        if made:
            runs = [name for name, _ in groupby(made)][:_MAX_TOOLS]
            found.append(frame.behind(head, " > ".join(runs), room))
    last = [step for step in case.passer.steps if step.kind == "message" and step.text.strip()][-1:]
    for step in last:
        found.append(frame.behind(f"passing {steps.head(step, {})}, its last words", step.text, room))
    return found
