"""State the cause the engine proposes, the group of failures it belongs to, who overruled it, and the warnings."""

from __future__ import annotations

from blade import number_format
from blade.agent.dossier import budget
from blade.agent.dossier.case import Case
from blade.model import Attribution, Cause, Confidence, Group
from blade.report import printed_names, row_addresses

MEANS = {
    Cause.KNOWLEDGE_GAP: "the model does not know it or cannot do it",
    Cause.UNRELIABLE_KNOWLEDGE: "the model gets it right only sometimes",
    Cause.BEHAVIOUR: "the model could do it and went about it wrongly",
    Cause.TASK_OR_VERIFIER: "the task, its expected answer, the verifier or a limit of the harness is wrong",
    Cause.INFRASTRUCTURE: "provider, sandbox, tool or network broke it",
    Cause.DATA_ARTIFACT: "the row or its data is broken, doubled or misplaced",
    Cause.UNDETERMINED: "the rows do not decide the cause",
}
CHOICE = "causes: " + "; ".join(
    f"{cause.value} {meaning}" for cause, meaning in MEANS.items() if cause is not Cause.UNDETERMINED
)
_MAX_GROUNDS = 5
_MAX_FLAGS = 4


def proposed(case: Case) -> list[str]:
    """Name the cause with its confidence, what the task's own rows show, and the step."""
    cause = case.cause
    if cause is None:
        return ["no cause: this task loses no points"]
    lines = _labelled(cause)
    if cause.mechanism.strip():
        lines.append(budget.behind("what happened", cause.mechanism, 100))
    if case.group is not None:
        lines += _group(case.group)
    return [*lines, *_where(cause)]


def _labelled(cause: Attribution) -> list[str]:
    named = f"{printed_names.called(cause.cause)} ({MEANS[cause.cause]})"
    if cause.judged_by:
        engine = (
            f"{printed_names.called(cause.proposed)}, {(cause.proposed_confidence or Confidence.UNSURE).value}"
            if cause.proposed
            else "nothing"
        )
        disputed = "; the judges disagree" if cause.disputed else ""
        return [
            f"judged: {named}; the engine proposes {engine}{disputed}",
            budget.behind("judged by", cause.judged_by, 20),
        ]
    if cause.cause is Cause.UNDETERMINED:
        return [f"undetermined: {MEANS[cause.cause]}; judge it from what follows", CHOICE]
    return [f"cause: {named}, {cause.confidence.value}"]


def _group(group: Group) -> list[str]:
    size = f"{number_format.count(group.rows, 'failure')} in {number_format.count(group.tasks, 'task')}"
    passes = number_format.count(group.passed_rows, "passing rollout")
    return [
        budget.behind(f"failure group {budget.ours(group.id)}", group.name, 40),
        f"in the whole run: {size}, {number_format.size(group.points)} of the score; {passes} show it too",
    ]


def _where(cause: Attribution) -> list[str]:
    if not cause.steps and cause.step is None:
        return ["where: no step is named"]
    others = [str(blame.step) for blame in cause.steps if blame.step != cause.step]
    more = f"; also {', '.join(others)}" if others and cause.step is not None else ""
    which = f"step {cause.step}" if cause.step is not None else f"one of the steps {', '.join(others)}"
    return [f"where: repeat {cause.repeat}, {which}{more}"]


def grounds(case: Case, room: int) -> list[str]:
    """Give the reasons for and against the label, and what the group is, with a quotation from one of its rows."""
    cause, group = case.cause, case.group
    if cause is None:
        return []
    lines = [budget.behind("group in words", group.text, room)] if group is not None else []
    for name, texts in (("for", cause.grounds), ("against", cause.against)):
        lines += [budget.behind(name, text, room) for text in texts[:_MAX_GROUNDS]]
        left = len(texts) - _MAX_GROUNDS
        lines += [f"{name}: {left} more in report.json"] if left > 0 else []
    if group is None:
        return lines
    lines += [budget.behind("consequence", text, room) for text in group.consequences[:2]]
    return [*lines, *_quote(case, group, room)]


def _quote(case: Case, group: Group, room: int) -> list[str]:
    """Quote the group where its own example is another rollout: the one in focus is read below."""
    quote = group.quote
    focus = case.focus.rollout if case.focus is not None else None
    if quote is None or not quote.quote:
        return []
    if (
        focus is not None
        and (quote.task, quote.repeat) == (focus.task, focus.repeat)
        and quote.step is not None
    ):
        return []
    where = f"step {quote.step}" if quote.step is not None else quote.field or ""
    return [
        budget.behind(
            "group example", f"{row_addresses.place(quote.task, quote.repeat)}, {where}: {quote.quote}", room
        )
    ]


def flags(case: Case, room: int) -> list[str]:
    """List what limits trust in the score of the whole run, the gravest first; the group's text is not repeated."""
    grave = [doubt for doubt in case.facts.trust if doubt.level in ("alarm", "warning")]
    group = case.group.text if case.group is not None else None
    return [
        budget.behind(
            f"{doubt.level} on the whole run{f', {doubt.label.value}' if doubt.label else ''}, {number_format.count(doubt.rows, 'row')}",
            doubt.text if doubt.text != group else "the failure group above",
            room,
        )
        for doubt in grave[:_MAX_FLAGS]
    ]
