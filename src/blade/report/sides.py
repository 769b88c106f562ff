"""Set failing rollouts of a task beside passing ones: what was tested, what was aligned, both quoted."""

from __future__ import annotations

from collections.abc import Iterable

from blade import hostile
from blade.model import Attribution, Contrast, Divergence, Evidence, Outcome, TaskResult
from blade.report import causes, numbers, places
from blade.report.facts import Facts
from blade.report.sections import Block, Code, Line, Para, Strong, para

MAX_SIDE = 2  # contrasts of a task, and quotations from either side of one
MAX_TOOLS = 4
ENDS = "finishes"  # what a side does that only ends
UNTESTED = " Shown to be read, not tested."


def has_both(facts: Facts, one: Attribution) -> bool:
    """Whether a failing and a passing rollout are both quoted for this task."""
    failing, passing = quoted(facts, one)
    return bool(failing) and bool(passing)


def quoted(facts: Facts, one: Attribution) -> tuple[list[Evidence], list[Evidence]]:
    """What is quoted of this task, from failing and from passing rollouts."""
    told = [e for contrast in facts.contrasts_of(one.task) for e in contrast.evidence]
    parted = divergence(facts, one)
    told += parted.evidence if parted is not None else ()
    return _split(facts, one, (*told, *one.evidence))


def divergence(facts: Facts, one: Attribution) -> Divergence | None:
    """Where the task's failing rollout parts from a passing one; nothing where the model is not to blame."""
    return facts.divergence_of(one.task) if _of_model(one) else None


def both_sides(facts: Facts, one: Attribution, task: TaskResult | None) -> list[Block]:
    """What sets the sides of a task apart, each statement with its quotations."""
    contrasts, parted = facts.contrasts_of(one.task)[:MAX_SIDE], divergence(facts, one)
    blocks: list[Block] = []
    told = list(one.evidence)
    for contrast in contrasts:
        blocks.append(Para((Strong("Beside the passing side: "), *contrast_line(facts, contrast))))
        blocks += _quotations(facts, one, contrast.evidence, told)
    if parted is not None:
        blocks.append(Para((Strong("Beside a passing rollout: "), *divergence_line(facts, parted))))
        blocks += _quotations(facts, one, parted.evidence, told)
    return blocks or [para(Strong("Passing side: "), _no_passing_side(facts, one, task))]


def contrast_line(facts: Facts, contrast: Contrast) -> Line:
    """The difference in words, its p, and whose passes they are."""
    query = facts.entry("contrasts", contrast)
    said = _shares(contrast, query)
    if contrast.text.strip():
        said = causes.sentence(contrast.text, f"{query}.text", 400)
    whose: Line = ()
    if contrast.other_run is not None:
        whose = (" The passes are borrowed from run ", Code(hostile.line(contrast.other_run, 80)), ".")
    tested = numbers.p_value(contrast.p, f"{query}.p")
    if contrast.p_adjusted is not None:
        tested += (", adjusted ", *numbers.p_value(contrast.p_adjusted, f"{query}.p_adjusted"))
    return (*said, *((" (", *tested, ")") if contrast.p is not None else (UNTESTED,)), *whose)


def divergence_line(facts: Facts, found: Divergence) -> Line:
    """`At 5/2#9 the failing rollout calls x; the passing 5/0#8, alike until then, calls y`."""
    whose: Line = ()
    if found.passer_run != facts.run.name:
        whose = (" of run ", Code(hostile.line(found.passer_run, 80)))
    failing = places.step(found.task, found.repeat, found.step)
    passing = places.step(found.task, found.passer, found.passer_step)
    if found.does == found.passer_does == ENDS:
        return (
            "The last words of the failing rollout (",
            failing,
            ") differ from those of the passing one (",
            passing,
            *whose,
            "); nothing they do before sets them apart.",
            UNTESTED,
        )
    other = " with other arguments" if _tool(found.does) == _tool(found.passer_does) != found.does else ""
    return (
        "At ",
        failing,
        " the failing rollout ",
        *_act(found.does),
        "; the passing one (",
        passing,
        *whose,
        "), ",
        *_nearness(facts, found),
        ", ",
        *_act(found.passer_does),
        f"{other}.",
        *_missing(facts, found),
        UNTESTED,
    )


def _nearness(facts: Facts, found: Divergence) -> Line:
    """How alike the two rollouts are: only the first parting has nothing but likeness before it."""
    if found.distance >= 1 - causes.SAME:
        return ("which does nothing that it does",)
    if (found.first_step, found.first_passer_step) == (found.step, found.passer_step):
        return ("alike until then",)
    differ = numbers.percent(found.distance, f"{facts.entry('divergences', found)}.distance")
    first = places.step(found.task, found.repeat, found.first_step)
    return ("which it first leaves at ", first, " (", differ, " of acts differ)")


def _missing(facts: Facts, found: Divergence) -> Line:
    """The tools that passing rollouts of the task use and this one does not."""
    if not found.missing:
        return ()
    task = facts.task(found.task)
    is_one = found.passer_run == facts.run.name and task is not None and task.passed == 1
    who = "The one passing repeat calls " if is_one else "Nearly all passing rollouts of the task call "
    lacks = "this one does not" if len(found.missing) == 1 else "this one calls none of them"
    every = f"{facts.entry('divergences', found)}.missing.count"
    return (f" {who}", *places.names(found.missing, every, MAX_TOOLS), f"; {lacks}.")


def _tool(does: str) -> str:
    return does.partition(" with ")[0]


def _act(does: str) -> Line:
    """What a side does, the tool as a name; its arguments stand in the quotation below."""
    verb, _, called = hostile.line(_tool(does), 200).partition(" ")
    return (
        ("calls ", Code(called)) if verb == "calls" and called else (numbers.name(hostile.line(does, 200)),)
    )


def _shares(contrast: Contrast, query: str) -> Line:
    in_pass, in_fail = (
        numbers.percent(getattr(contrast, name), f"{query}.{name}") for name in ("in_pass", "in_fail")
    )
    passing = numbers.count(contrast.n_pass, "passing rollout", f"{query}.n_pass")
    failing = numbers.count(contrast.n_fail, "failing one", f"{query}.n_fail")
    feature = numbers.said(contrast.feature, f"{query}.feature", 300)
    return (feature, " in ", in_pass, " of ", *passing, " and ", in_fail, " of ", *failing, ".")


def _split(
    facts: Facts, one: Attribution, evidence: Iterable[Evidence]
) -> tuple[list[Evidence], list[Evidence]]:
    task = facts.task(one.task)
    passed = {repeat.repeat for repeat in task.repeats if repeat.outcome is Outcome.PASSED} if task else set()
    failing: list[Evidence] = []
    passing: list[Evidence] = []
    for found in dict.fromkeys(evidence):
        if found.task == one.task and found.quote:
            borrowed = found.run != facts.run.name
            (passing if borrowed or found.repeat in passed else failing).append(found)
    return failing, passing


def _quotations(
    facts: Facts, one: Attribution, evidence: tuple[Evidence, ...], told: list[Evidence]
) -> list[Block]:
    """The quotations of either side that were not `told` before; they are told now."""
    failing, passing = _split(facts, one, evidence)
    blocks: list[Block] = []
    for found in [e for e in failing if not _is_told(e, told)][:MAX_SIDE]:
        blocks.append(places.quotation(found, "Failing, "))
        told.append(found)
    for found in [e for e in passing if not _is_told(e, told)][:MAX_SIDE]:
        whose: Line = ("Passing, ",)
        if found.run != facts.run.name:
            whose = ("Passing in run ", Code(hostile.line(found.run, 60)), ", ")
        blocks.append(places.quotation(found, *whose))
        told.append(found)
    return blocks


def _is_told(found: Evidence, told: list[Evidence]) -> bool:
    """Whether the same place is quoted already with these words or more of them."""
    place = (found.run, found.task, found.repeat, found.step, found.field)
    return any(
        place == (e.run, e.task, e.repeat, e.step, e.field) and (found.quote or "") in (e.quote or "")
        for e in told
    )


def _of_model(one: Attribution) -> bool:
    return causes.SIDES[one.cause] in ("model", "undetermined")


def _no_passing_side(facts: Facts, one: Attribution, task: TaskResult | None) -> str:
    if not _of_model(one):
        return "not compared, since the fault lies outside what the model did."
    if task is not None and task.bucket == "never":
        return "no repeat of this task passes, and no passing rollout of another run stands beside it."
    if facts.run.coverage.repeats <= 1:
        return "one repeat per task leaves nothing to compare with."
    return "nothing sets the passing repeats of this task apart beyond what chance would."
