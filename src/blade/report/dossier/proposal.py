"""Say what the engine proposes and on what grounds, who overruled it, and what was found."""

from __future__ import annotations

from blade import events
from blade.model import ENDS, Cause, Level, Trace
from blade.report import causes, words
from blade.report.dossier import frame, steps
from blade.report.dossier.case import Case

MEANS = {
    Cause.KNOWLEDGE_GAP: "the model does not know it or cannot do it",
    Cause.UNRELIABLE_KNOWLEDGE: "the model knows it now and then",
    Cause.BEHAVIOUR: "the model could do it and went about it wrongly",
    Cause.TASK_OR_VERIFIER: "the task, its gold or its verifier is wrong",
    Cause.INFRASTRUCTURE: "provider, sandbox, harness or a limit broke it",
    Cause.DATA_ARTIFACT: "the row or its data is broken, doubled or misplaced",
    Cause.UNDETERMINED: "no cause reaches the bar",
}
CHOICE = "causes: " + "; ".join(
    f"{cause.value} {said}" for cause, said in MEANS.items() if cause is not Cause.UNDETERMINED
)
_MAX_GROUNDS = 5
_MAX_FINDINGS = 8
_MAX_ELSEWHERE = 4


def proposed(case: Case) -> list[str]:
    """The cause in one line, what happened, and where."""
    one = case.cause
    if one is None:
        return ["no cause: this task is not among those that lose score"]
    said = f"{causes.called(one.cause)} ({MEANS[one.cause]})"
    if one.judged_by:
        was = causes.called(one.proposed) if one.proposed else "nothing"
        sure = f", confidence {words.probability(one.proposed_confidence)}" if one.proposed else ""
        found = [f"judged: {said}; the engine proposes {was}{sure}"]
        found.append(frame.behind("judged by", one.judged_by, 20))
    elif one.cause is Cause.UNDETERMINED:
        found = [f"undetermined: {MEANS[one.cause]}; judge it from what follows", CHOICE]
    else:
        found = [f"cause: {said}, confidence {words.probability(one.confidence)}"]
    if one.mode.strip():
        found.append(frame.behind("mode", causes.mode(case.facts, one.mode), 24))
    if one.mechanism.strip():
        found.append(frame.behind("what happened", one.mechanism, 100))
    if one.steps and one.steps[0].reason == ENDS:
        found.append(f"where: no step is named; repeat {one.repeat} ends at step {one.steps[0].step}")
    elif one.steps:
        ranked = ", ".join(f"{blame.step} ({blame.weight:.2f})" for blame in one.steps)
        which = f"step {one.step}" if one.step is not None else "no single step"
        found.append(f"where: repeat {one.repeat}, {which}; candidates by weight: {ranked}")
    return found


def grounds(case: Case, room: int) -> list[str]:
    """What speaks for and against; what was told above is not told again."""
    one = case.cause
    if one is None:
        return []
    told = one.mechanism.strip().rstrip(".")
    found = []
    for name, texts in (("for", one.grounds), ("against", one.against)):
        for text in texts[:_MAX_GROUNDS]:
            said = text.replace(told, "as told above") if told else text
            if said.strip().rstrip(".") != "as told above":
                found.append(frame.behind(name, said, room))
        left = len(texts) - _MAX_GROUNDS
        found += [f"{name}: {left} more in report.json"] if left > 0 else []
    return found


def findings(case: Case, room: int) -> list[str]:
    """Findings of this task, the severe first, each in one line."""
    found = []
    told = case.cause.mechanism.strip().rstrip(".") if case.cause else ""
    chosen = case.telling_findings()
    for one in chosen[:_MAX_FINDINGS]:
        where = next((e.step for e in one.evidence if e.step is not None), None)
        repeat = f", repeat {one.repeat}" if one.repeat is not None else ""
        step = f", step {where}" if where is not None else ""
        head = f"finding {frame.ours(one.detector)}, severity {one.severity}{repeat}{step}"
        is_told = bool(told) and one.summary.strip().rstrip(".") == told
        found.append(head if is_told else frame.behind(head, one.summary, room))
    left = len(case.findings) - min(len(chosen), _MAX_FINDINGS)
    return (
        [*found, f"{words.count(left, 'more finding')} of this task, of less weight"] if left > 0 else found
    )


def elsewhere(case: Case, room: int) -> list[str]:
    """What other failing repeats did: where their gravest finding points, else their last change."""
    focus = case.focus.rollout.repeat if case.focus is not None else None
    pointed: dict[int, tuple[int, str]] = {}
    for one in case.findings:
        at = next((e for e in one.evidence if e.step is not None and e.repeat == one.repeat), None)
        if one.repeat is not None and at is not None and at.step is not None and one.severity > 1:
            pointed.setdefault(one.repeat, (at.step, at.quote or ""))
    found: list[str] = []
    for repeat, trace in case.traces.items():
        if repeat == focus or case.outcome(repeat) == "passed" or len(found) >= _MAX_ELSEWHERE:
            continue
        step, quote = pointed.get(repeat) or (_last_change(trace), "")
        if step is not None and 0 <= step < len(trace.steps) and not _is_last(trace, step):
            head = f"repeat {repeat} {steps.head(trace.steps[step], {})}"
            found.append(frame.behind(head, steps.text(trace.steps[step]), room, quote))
    return found


def _is_last(trace: Trace, step: int) -> bool:
    """Whether a step holds the last words, which stand among the outcomes already."""
    later = (one.kind == "message" for one in trace.steps[step + 1 :])
    return trace.steps[step].kind == "message" and not any(later)


def _last_change(trace: Trace) -> int | None:
    changed = [call.step for call in events.calls(trace.steps, {}, {}) if call.does == events.WRITE]
    return changed[-1] if changed else None


def flags(case: Case, room: int) -> list[str]:
    """What speaks against the task itself, and what concerns the whole run."""
    found = []
    for flag in case.facts.health:
        of_all = flag.task is None and flag.level is Level.PROBLEM
        if flag.task == case.task or (of_all and any(e.task == case.task for e in flag.evidence)):
            head = f"{flag.level.value}, {frame.ours(flag.flag)}"
            found.append(frame.behind(head, flag.text, room))
    for cause in case.facts.run_causes[:2]:
        head = f"of the whole run: {causes.called(cause.cause)}, {words.count(cause.n_rollouts, 'rollout')}"
        found.append(frame.behind(head, causes.text(cause), room))
    return found[:6]
