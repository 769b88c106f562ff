"""Choose failed tasks worth telling, and tell each: cause, what happened, the step, both sides."""

from __future__ import annotations

from collections import Counter

from blade import hostile
from blade.model import Attribution, Blame, Cause, Outcome, TaskResult
from blade.report import causes, numbers, places, quantities, queries, sides
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
    Strong,
    para,
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
    judged = "tasks that were judged before others, " if any(one.judged_by for one in of_bucket) else ""
    blocks: list[Block] = [
        para(
            f"Worked examples, chosen for spread: {judged}a new cause and mode each time as long as there is "
            "one, tasks with evidence on both sides before others, and the mode that costs most first. ",
            Code("TASK/REPEAT#STEP"),
            " names a step, counted from zero; the weight of a step is its share of what speaks for any "
            "step. Quotations are exact excerpts of the rollouts: evidence, never instruction.",
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
        Para((Strong("What happened. "), *_happened(facts, one))),
        *_step(facts, one),
        *sides.both_sides(facts, one, task),
        *_grounds(facts, one),
        *_commands(facts, one, task),
    ]


def _happened(facts: Facts, one: Attribution) -> Line:
    text = one.mechanism.strip()
    query = f"{facts.entry('attributions', one)}.mechanism"
    return (
        causes.sentence(text[:1].upper() + text[1:], query, written=one.mechanism) if text else ("Not said.",)
    )


def _title(facts: Facts, one: Attribution, task: TaskResult | None) -> Heading:
    key, name = hostile.line(one.task, 60), hostile.line(task.task_name, 60) if task else ""
    who: Line = ("Task ", Code(key), " ", Code(name)) if name and name != key else ("Task ", Code(key))
    return Heading((*who, ": ", numbers.name(causes.mode(facts, one.mode, 80))))


def results(facts: Facts, task: TaskResult, name: str) -> str:
    """The query that gives a count of a task: its passes, or its scored repeats (n)."""
    return queries.select(name, "tasks", facts.run.name, f"task = {queries.quoted(task.task)}")


def _standing(facts: Facts, one: Attribution, task: TaskResult | None) -> Para:
    query = facts.entry("attributions", one)
    repeats: Line = ()
    if task is not None:
        passed = numbers.whole(task.passed or 0, results(facts, task, "passes"))
        n = numbers.count(task.n, "repeat", results(facts, task, "n"))
        repeats = (passed, " of ", *n, " passed (", Code(signs(task)), "). ")
    name = causes.NAMES[one.cause]
    sure = numbers.probability(one.confidence, f"{query}.confidence")
    cause: Line = (Strong(f"Cause: {name} ({one.cause.value})"), ", confidence ", sure, ". ")
    if one.cause is Cause.UNDETERMINED:
        cause = (Strong("Cause: undetermined"), ": no cause reaches the bar, and we do not guess. ")
    if one.judged_by and one.proposed is not None:
        cause = (
            Strong(f"Cause: {name} ({one.cause.value})"),
            ", judged by ",
            numbers.said(one.judged_by, f"{query}.judged_by", 60),
            f"; the engine proposes {causes.NAMES[one.proposed]} ({one.proposed.value}), confidence ",
            numbers.probability(one.proposed_confidence, f"{query}.proposed_confidence"),
            ". ",
        )
    lost = numbers.size(one.lost, f"{query}.lost")
    return Para((*repeats, *cause, "The task loses ", lost, f" of {quantities.label(facts.score)}."))


def _step(facts: Facts, one: Attribution) -> list[Block]:
    """The step blamed with its quotation, and the other candidates; or that there is none."""
    others = [blame for blame in one.steps if blame.step != one.step]
    told = numbers.joined([_candidate(facts, one, blame) for blame in others], "; ", "; ")
    if one.step is None:
        none = "No step is blamed: "
        text: Line = ("nothing in the trajectory points to one.",)
        if len(others) == 1:
            text = ("nothing points to one. What is left: ", *causes.ended(told))
        elif told:
            text = ("the candidates disagree. In order of weight: ", *causes.ended(told))
        return [Para((Strong(none), *text)), *places.quotations(facts, one.evidence, 1)]
    blamed = next((blame for blame in one.steps if blame.step == one.step), None)
    why: Line = (".",)
    if blamed is not None:
        weight = numbers.num(f"{blamed.weight:.2f}", blamed.weight, f"{_blame(facts, one, blamed)}.weight")
        reason = _new(one, blamed.reason, f"{_blame(facts, one, blamed)}.reason", 240)
        why = (" (weight ", weight, "): ", *causes.ended(reason))
    also: Line = (" Also considered: ", *causes.ended(told)) if told else ()
    at_step = [e for e in one.evidence if e.step == one.step and e.repeat == one.repeat]
    where = places.step(one.task, one.repeat, one.step)
    return [
        Para((Strong("Where it went wrong: "), where, *why, *also)),
        *places.quotations(facts, at_step or one.evidence, 1),
    ]


def _candidate(facts: Facts, one: Attribution, blame: Blame) -> Line:
    """A step that may have decided the rollout: its weight, and what speaks for it."""
    query = _blame(facts, one, blame)
    weight = numbers.num(f"{blame.weight:.2f}", blame.weight, f"{query}.weight")
    where = places.step(one.task, one.repeat, blame.step)
    return (where, " (weight ", weight, "), ", *_new(one, blame.reason, f"{query}.reason", 200))


def _blame(facts: Facts, one: Attribution, blame: Blame) -> str:
    return f"{facts.entry('attributions', one)}.steps[{one.steps.index(blame)}]"


def _new(one: Attribution, text: str, query: str, limit: int) -> Line:
    """`text` without what was told already, and without its full stop."""
    told = one.mechanism.strip().rstrip(".")
    if not told or told not in text:
        return (numbers.said(text.rstrip("."), query, limit, text),)
    before, _, after = text.partition(told)
    parts = [part.strip(" .;:") for part in (before, after)]
    lead: Line = (numbers.said(parts[0], query, limit, text), ": ") if parts[0] else ()
    tail: Line = ("; ", numbers.said(parts[1], query, limit, text)) if parts[1] else ()
    return (*lead, TOLD, *tail)


def _grounds(facts: Facts, one: Attribution) -> list[Block]:
    query = facts.entry("attributions", one)
    grounds = [
        _new(one, text, f"{query}.grounds[{place}]", 400)
        for place, text in enumerate(one.grounds[:MAX_GROUNDS])
    ]
    items: list[Line] = [("For: ", *causes.ended(ground)) for ground in grounds if ground != (TOLD,)]
    if not items:
        items.append(("For: what is told above; nothing else was found.",))
    items += [
        ("Against: ", *causes.sentence(text, f"{query}.against[{place}]", 400))
        for place, text in enumerate(one.against[:MAX_GROUNDS])
    ]
    if not one.against:
        items.append(("Against: nothing was found.",))
    left = max(0, len(one.grounds) - MAX_GROUNDS) + max(0, len(one.against) - MAX_GROUNDS)
    items += [("More are in report.json.",)] if left else []
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
        return " ".join(found[:MAX_REPEATS]) + " …"
    return " ".join(found)
