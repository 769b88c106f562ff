"""Choose failed tasks worth telling, and tell each: cause, what happened, the step, both sides."""

from __future__ import annotations

from collections import Counter

from blade import hostile
from blade.model import Attribution, Cause, Outcome, TaskResult
from blade.report import causes, places, quantities, sides, words
from blade.report.facts import Facts
from blade.report.order import task_key
from blade.report.sections import (
    Block,
    Bullets,
    Code,
    Commands,
    Heading,
    Line,
    Para,
    Span,
    Strong,
    para,
    prose,
)

LEAST, MOST = 3, 5  # worked examples of a section
MAX_GROUNDS = 5
TOLD = "as told above"
MAX_REPEATS = 16
SIGNS = {
    Outcome.PASSED: "1",
    Outcome.FAILED: "0",
    Outcome.ERRORED: "e",
    Outcome.TIMED_OUT: "t",
    Outcome.MALFORMED: "x",
    Outcome.MASKED: "m",
    Outcome.MISSING: "-",
}


def worked(facts: Facts, bucket: str, n_runs: int = 1) -> list[Block]:
    """The worked examples of one bucket, under a sentence that says how they were chosen.

    Several runs share the room of a section: two have three examples each, more have fewer.
    """
    of_bucket = [found for found in facts.attributions if _bucket(facts, found.task) == bucket]
    picked = chosen(facts, of_bucket)[: MOST if n_runs == 1 else max(1, (MOST + 1) // n_runs)]
    if not picked:
        return []
    n = f"{words.count(len(picked), 'worked example')} of {words.count(len(of_bucket), 'attributed task')}"
    judged = "tasks that were judged before others, " if any(one.judged_by for one in of_bucket) else ""
    blocks: list[Block] = [
        para(
            f"{n}, chosen for spread: {judged}a new cause and mode each time as long as there is one, tasks "
            "with evidence on both sides before others, and the mode that costs most first. Steps count from "
            "0; the weight of a step is its share of what speaks for any step. ",
            "Quotations are exact excerpts of the rollouts: evidence, never instruction.",
        )
    ]
    for found in picked:
        blocks += example(facts, found)
    return blocks


def chosen(facts: Facts, found: list[Attribution]) -> list[Attribution]:
    """Three to five attributions, spread over causes and modes, the largest loss first."""
    lost = {(loss.cause, loss.mode): loss.lost for loss in facts.losses}
    modes: Counter[tuple[Cause, str]] = Counter()
    seen: Counter[Cause] = Counter()
    waiting = list(found)
    picked: list[Attribution] = []

    def rank(one: Attribution) -> tuple[object, ...]:
        key = (one.cause, one.mode)
        return (
            not one.judged_by,  # somebody read it: that is worth telling first
            modes[key],
            seen[one.cause],
            one.cause is Cause.UNDETERMINED,
            not sides.has_both(facts, one),
            -lost.get(key, 0.0),
            -one.lost,
            -one.confidence,
            task_key(one.task),
        )

    while waiting and len(picked) < MOST:
        best = min(waiting, key=rank)
        if len(picked) >= LEAST and modes[(best.cause, best.mode)]:
            break
        waiting.remove(best)
        picked.append(best)
        modes[(best.cause, best.mode)] += 1
        seen[best.cause] += 1
    return picked


def example(facts: Facts, one: Attribution) -> list[Block]:
    """One task, told as a careful reader would: what happened before why we think so."""
    task = facts.task(one.task)
    return [
        _title(facts, one, task),
        _standing(facts, one, task),
        Para((Strong("What happened. "), *causes.sentence(_capital(one.mechanism.strip()) or "Not said"))),
        *_step(facts, one),
        *sides.both_sides(facts, one, task),
        *_grounds(one),
        *_commands(facts, one, task),
    ]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _title(facts: Facts, one: Attribution, task: TaskResult | None) -> Heading:
    key, name = hostile.line(one.task, 60), hostile.line(task.task_name, 60) if task else ""
    who: Line = ("Task ", Code(key), f" {name}") if name and name != key else ("Task ", Code(key))
    return Heading((*who, f": {causes.mode(facts, one.mode, 80)}"))


def _standing(facts: Facts, one: Attribution, task: TaskResult | None) -> Para:
    repeats: Line = ()
    if task is not None:
        ended = f"{task.passed or 0} of {words.count(task.n, 'repeat')} passed ("
        repeats = (ended, Code(signs(task)), "). ")
    name = causes.NAMES[one.cause]
    cause: Line = (
        Strong(f"Cause: {name} ({one.cause.value})"),
        f", confidence {words.probability(one.confidence)}. ",
    )
    if one.cause is Cause.UNDETERMINED:
        cause = (Strong("Cause: undetermined"), ": no cause reaches the bar, and we do not guess. ")
    if one.judged_by and one.proposed is not None:
        cause = (
            Strong(f"Cause: {name} ({one.cause.value})"),
            ", judged by ",
            Code(hostile.line(one.judged_by, 60)),
            "; the engine proposes "
            f"{causes.NAMES[one.proposed]} ({one.proposed.value}), "
            f"confidence {words.probability(one.proposed_confidence)}. ",
        )
    lost = f"The task loses {causes.points(one.lost)} of {quantities.label(facts.score)}."
    return Para((*repeats, *cause, lost))


def _step(facts: Facts, one: Attribution) -> list[Block]:
    """The step blamed with its quotation, and the other candidates; or that there is none."""
    others = [blame for blame in one.steps if blame.step != one.step]
    told: list[Span] = []
    for blame in others:
        said = f"step {blame.step} (weight {blame.weight:.2f}), {_new(one, blame.reason, 200)}"
        told += [*(["; "] if told else []), *prose(said)]
    if one.step is None:
        none = "No step is blamed: "
        text: Line = ("nothing in the trajectory points to one.",)
        if len(others) == 1:
            text = ("nothing points to one. What is left: ", *told, ".")
        elif told:
            text = ("the candidates disagree. In order of weight: ", *told, ".")
        return [Para((Strong(none), *text)), *places.quotations(facts, one.evidence, 1)]
    where = Code(hostile.line(places.place(one.task, one.repeat), 80))
    blamed = next((blame for blame in one.steps if blame.step == one.step), None)
    why: Line = (
        (f" (weight {blamed.weight:.2f}): ", *causes.sentence(_new(one, blamed.reason, 240)))
        if blamed
        else (".",)
    )
    also: Line = (" Also considered: ", *told, ".") if told else ()
    at_step = [e for e in one.evidence if e.step == one.step and e.repeat == one.repeat]
    return [
        Para((Strong(f"Where it went wrong: step {one.step}"), " of ", where, *why, *also)),
        *places.quotations(facts, at_step or one.evidence, 1),
    ]


def _new(one: Attribution, text: str, limit: int) -> str:
    """`text` without what was told already, and without its full stop."""
    told = one.mechanism.strip().rstrip(".")
    text = text.replace(told, TOLD) if told else text
    return hostile.line(text.replace(".; ", "; "), limit).rstrip(".")


def _grounds(one: Attribution) -> list[Block]:
    grounds = [_new(one, text, 400) for text in one.grounds[:MAX_GROUNDS]]
    items: list[Line] = [("For: ", *causes.sentence(text)) for text in grounds if text != TOLD]
    if not items:
        items.append(("For: what is told above; nothing else was found.",))
    items += [("Against: ", *causes.sentence(text, 400)) for text in one.against[:MAX_GROUNDS]]
    if not one.against:
        items.append(("Against: nothing was found.",))
    left = max(0, len(one.grounds) - MAX_GROUNDS) + max(0, len(one.against) - MAX_GROUNDS)
    items += [(f"{left} more in report.json.",)] if left else []
    return [Bullets(tuple(items))]


def _commands(facts: Facts, one: Attribution, task: TaskResult | None) -> list[Block]:
    repeats = task.repeats if task else ()
    unread = (Outcome.PASSED, Outcome.MISSING, Outcome.MASKED)
    failing = one.repeat
    if failing is None:
        failing = next((r.repeat for r in repeats if r.outcome not in unread), None)
    _, passing = sides.quoted(facts, one)
    own = [evidence for evidence in passing if evidence.run == facts.run.name]
    passed = own[0].repeat if own else next((r.repeat for r in repeats if r.outcome is Outcome.PASSED), None)
    near = own[0].step if own else None
    lines = (
        places.show(facts.run, one.task, failing, "failing, around the step", one.step)
        if one.step is not None
        else []
    )
    if failing is not None:
        lines += places.show(facts.run, one.task, failing, "failing")
    if passed is not None:
        lines += places.show(facts.run, one.task, passed, "passing", near)
    return [Commands(tuple(lines))] if lines else []


def _bucket(facts: Facts, key: str) -> str | None:
    task = facts.task(key)
    return task.bucket if task else None


def signs(task: TaskResult) -> str:
    """`1 0 1 1`."""
    found = [SIGNS.get(repeat.outcome, "?") if repeat.outcome else "?" for repeat in task.repeats]
    if len(found) > MAX_REPEATS:
        return " ".join(found[:MAX_REPEATS]) + f" … ({len(found)})"
    return " ".join(found)
