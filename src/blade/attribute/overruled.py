"""Turn the engine's proposal for a task and judgements of it into what stands, and against what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from blade.attribute.grounds import EXCLUDED_FIRST
from blade.attribute.tasks import Decision, Row
from blade.model import Attribution, Blame, Cause, Judgement

JUDGED = 0.9  # how sure a label is that somebody gave with a quotation that holds
DISPUTED = 0.5  # where authors say different things: the last word stands, and is no more than that

Judged = Mapping[str, Sequence[Judgement]]  # task -> the last word of each author, the newest last


def modes(
    decision: Decision, rows: Sequence[Row], told: Sequence[Judgement]
) -> Mapping[int, tuple[Cause, str]]:
    """The mode of each row that loses points: the judgement's, but for rows that something else spoiled."""
    label = told[-1].cause, mode_of(decision, told[-1])
    own = decision.cause, decision.mode
    found = {}
    for row in rows:
        if row.position not in decision.modes:
            continue
        booked = decision.modes[row.position]
        stays = booked[0] in EXCLUDED_FIRST and booked != own and label[0] not in EXCLUDED_FIRST
        found[row.position] = booked if stays else label
    return found


def mode_of(decision: Decision, one: Judgement) -> str:
    """What the loss is booked under: a name that was given, or the engine's where it says the same."""
    return one.mode or (decision.mode if decision.cause is one.cause else f"judged {one.cause.value}")


def attribution(engine: Attribution, decision: Decision, told: Sequence[Judgement]) -> Attribution:
    """The attribution of a judged task, with the engine's proposal among what speaks against it."""
    last, others = told[-1], told[:-1]
    disputed = [one for one in others if one.cause is not last.cause]
    shown = last.shown(engine.run)
    by_condition = [f"the rollout meets the condition {last.condition}"] if last.condition else []
    who = f"judged by {last.by} on {last.at[:10]}"
    agreed = [f"{one.by} says the same: {one.mechanism}" for one in others if one.cause is last.cause]
    against = [f"{one.by} says {one.cause.value}: {one.mechanism}" for one in disputed]
    if engine.cause is not last.cause:
        against.append(f"the engine proposes {engine.cause.value}: {engine.mechanism}")
    steps = engine.steps
    if last.step is not None:
        rest = [one for one in steps if (one.step, engine.repeat) != (last.step, last.repeat)]
        same = rest if engine.repeat == last.repeat else []
        steps = (Blame(last.step, 1.0, f"{who}: {last.mechanism}"), *_halved(same))[:3]
    elif engine.repeat != last.repeat:
        steps = ()
    return replace(
        engine,
        cause=last.cause,
        confidence=DISPUTED if disputed else JUDGED,
        mode=mode_of(decision, last),
        mechanism=last.mechanism,
        repeat=last.repeat,
        step=last.step,
        steps=steps,
        grounds=(f"{who}: {last.mechanism}", *by_condition, *agreed),
        against=(*against, *engine.against),
        evidence=(*shown, *(one for one in engine.evidence if one not in shown)),
        judged_by=last.by,
        proposed=engine.cause,
        proposed_confidence=engine.confidence,
        disputed=bool(disputed),
    )


def _halved(steps: Sequence[Blame]) -> list[Blame]:
    """The engine's candidates behind a step that was judged: none weighs as much any more."""
    return [replace(one, weight=round(one.weight * (1 - JUDGED), 3)) for one in steps]
