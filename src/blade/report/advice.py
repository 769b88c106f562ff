"""Lay out what to change: interventions by what they could win, repairs of the measurement apart."""

from __future__ import annotations

from blade import hostile
from blade.model import Gain, Recommendation
from blade.report import causes, places, words
from blade.report.facts import Facts
from blade.report.sections import Block, Bullets, Code, Heading, Line, Para, Strong, Table, cells, para, prose

MAX_ROWS = 20
MAX_TOLD = 6  # told in full
MAX_TASKS = 8


def recommendations(runs: tuple[Facts, ...]) -> list[Block]:
    """What to do first, what it could win, and what nothing here explains."""
    blocks: list[Block] = []
    for facts in runs:
        if len(runs) > 1:
            blocks.append(Heading(("Run ", Code(hostile.line(facts.run.name, 80)))))
        blocks += _of_run(facts)
    return blocks or [para("No run was read.")]


def _of_run(facts: Facts) -> list[Block]:
    of_model = [found for found in facts.recommendations if not found.is_measurement]
    repairs = [found for found in facts.recommendations if found.is_measurement]
    bounds = any(is_bound(found) for found in of_model)
    blocks: list[Block] = []
    if of_model:
        blocks += [
            para(
                "Ranked by expected gain per effort. Gains are points of score as point [low, high]: low "
                "counts only tasks whose own repeats show what happens without the mode, high is all that "
                "the mode loses. ",
                *(("At most: the point is an upper bound, its basis says why. ",) if bounds else ()),
                Strong("Gains overlap where modes occur together: do not add them up."),
            ),
            *_table(facts, of_model),
            *_told(facts, of_model),
        ]
    elif facts.recommendations:
        blocks.append(para("Nothing is recommended for the model itself: only the measurement needs repair."))
    else:
        blocks.append(para(_why_none(facts)))
    if repairs:
        blocks += [
            Heading(("Repairs of the measurement",)),
            para(
                "These would change the measurement, not the model: the score would move because it was "
                "measured wrongly, and no training or prompt work should be credited with it."
            ),
            *_table(facts, repairs),
            *_told(facts, repairs),
        ]
    return [*blocks, para(*unexplained(facts))]


def _table(facts: Facts, found: list[Recommendation]) -> list[Block]:
    rows = tuple(
        cells(
            words.whole(one.rank),
            prose(hostile.line(one.action, 300)),
            hostile.line(one.kind, 30),
            hostile.line(one.effort, 30),
            expected(one),
            words.whole(len(one.tasks)),
            (causes.badge(one.cause), f" {causes.mode(facts, one.mode, 80)}"),
        )
        for one in found[:MAX_ROWS]
    )
    header = ("Rank", "Action", "Kind", "Effort", "Expected gain", "Tasks", "Addresses")
    return [Table(header, rows, "rlllrrl"), *places.left_out(len(found), len(rows), "recommendation")]


def is_bound(one: Recommendation) -> bool:
    """Whether the gain is only known not to be larger."""
    return "upper bound" in one.basis


def expected(one: Recommendation) -> str:
    """What a recommendation could win; `at most +4.8 points` where its basis makes that an upper bound."""
    if is_bound(one) and one.gain.point >= causes.SAME:
        return f"at most {words.points(one.gain.point)}"
    return gain(one.gain)


def gain(found: Gain) -> str:
    """`+4.2 points [+1.0, +9.5 points]`; where nothing shows a gain, only its bound."""
    if abs(found.point) < causes.SAME <= found.high and abs(found.low) < causes.SAME:
        return f"none shown, at most {words.points(found.high)}"
    low, high = words.points(found.low).removesuffix(" points"), words.points(found.high)
    return f"{words.points(found.point)} [{low}, {high}]"


def _told(facts: Facts, found: list[Recommendation]) -> list[Block]:
    blocks: list[Block] = []
    for one in found[:MAX_TOLD]:
        tasks: Line = places.ids(((task, None) for task in one.tasks), MAX_TASKS)
        items: list[Line] = [
            (f"Expected gain {expected(one)}. Basis: ", *causes.sentence(one.basis or "not stated", 400)),
            (
                f"Kind: {hostile.line(one.kind, 30)}; effort: {hostile.line(one.effort, 30)}; addresses "
                f"{causes.called(one.cause)}: {causes.mode(facts, one.mode)}.",
            ),
        ]
        items += [(f"{words.count(len(one.tasks), 'task')}: ", *tasks, ".")] if one.tasks else []
        blocks += [Para((Strong(f"{one.rank}. "), *causes.sentence(one.action))), Bullets(tuple(items))]
        blocks += places.quotations(facts, one.evidence, 1)
    return blocks


def unexplained(facts: Facts) -> Line:
    """What lies between the score and the best repeat of every task and nothing found here accounts for."""
    run = facts.run
    lead = Strong("Unexplained gap to the oracle: ")
    if run.score is None or run.oracle is None:
        return (lead, "there is none to state, because the run has no score or no best repeat.")
    say = words.percent if facts.is_rate else words.number
    room = f"the best repeat of every task scores {say(run.oracle)}, the run {say(run.score)}"
    if run.coverage.repeats <= 1 and abs(run.oracle - run.score) < causes.SAME:
        return (
            lead,
            f"{room}; with one repeat per task the two cannot differ, so repeats are needed to see one.",
        )
    if run.unexplained is None:
        return (lead, f"not computed; {room}.")
    return (
        lead,
        f"{causes.points(run.unexplained)}. {room.capitalize()}; choosing in each task the repeats least "
        "touched by the modes found here leaves this much of the difference: chance, or something that no "
        "rule here sees.",
    )


def _why_none(facts: Facts) -> str:
    if not facts.run.has_pass_rate:
        return "Without a pass rate no gain can be stated, so nothing is recommended."
    if facts.run.score is None:
        return "No rollout was scored, so nothing can be recommended."
    if abs(1 - facts.run.score) < causes.SAME:
        return "Every task scores 1: there is nothing to win on this benchmark."
    return (
        "Nothing is recommended: no loss was traced to a cause that an intervention could remove. What could "
        "not be said stands under Reproducibility Notes."
    )
