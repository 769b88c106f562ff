"""Turn the evidence of one row into grounds: what may have made it fail, and how sure that is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from blade.model import Behaviour, Cause, Confidence, Evidence, Found, Meaning, Mechanism, Rule, Suspicion

# How sure a label on this ground is: a judgement between two measured ends. On injected faults nearly every
# label is right whatever its ground; of the few natural failures that people have labelled a quarter agree.
# `make accuracy` holds these numbers against both sets (Brier score, calibration error). Below ENOUGH a task
# is undetermined.
CONFIDENCE = {
    "row says so": 0.95,  # an error field, a failed sandbox: the row itself tells
    "known code": 0.95,  # a value of a verifier field whose meaning is known
    "suspect task": 0.85,  # hard evidence against the task or its verifier
    "read in text": 0.8,  # infrastructure, harness or verifier faults read from a text
    "cause": 0.85,  # a behaviour that goes with failing within tasks
    "unproven": 0.7,  # a behaviour that too few rows can judge
    "mechanism": 0.6,  # a condition found in the rows
    "same result": 0.65,  # the same wrong result in most repeats
    "varies": 0.5,  # passes and fails, and nothing sets the two apart
    "check": 0.45,  # a check of the verifier names what is wrong, not why
    "weak": 0.4,
}
ENOUGH = 0.5
ONE_REPEAT = 0.75  # of it, where a task has one repeat: nothing shows that the cause would come again
GRAVE = 2  # severity from which a finding may explain a failure
UNSCORED = "no usable reward"
SUSPECT = 3  # points from which a task counts as broken
EXCLUDED_FIRST = (Cause.DATA_ARTIFACT, Cause.INFRASTRUCTURE, Cause.TASK_OR_VERIFIER)


class Ground(msgspec.Struct, frozen=True):
    """One thing that may have made a row fail."""

    name: str  # of the detector, field, flag or mechanism
    cause: Cause
    mode: str  # what the loss is booked under
    kind: str  # key of CONFIDENCE
    weight: float  # confidence x severity, to choose by
    text: str
    step: int | None
    evidence: tuple[Evidence, ...]
    procedural: bool = False
    detail: str = ""


class Known(msgspec.Struct, frozen=True):
    """All that is known of the rows of a run, by position."""

    found: Mapping[int, Sequence[Found]]
    codes: Mapping[int, Meaning]
    covered: Mapping[int, Sequence[Mechanism]]  # failing rows that a mechanism covers
    behaviours: Mapping[str, Behaviour]
    rules: Mapping[str, Rule]
    suspects: Mapping[str, Sequence[Suspicion]]  # by task
    unscored: frozenset[int]  # rows without a usable reward
    checks: Mapping[int, tuple[str, Evidence]]  # a check of the verifier that a row did not meet


def grounds(position: int, task: str, known: Known) -> list[Ground]:
    """The grounds of a failing row: data, infrastructure and task faults first, then by weight."""
    found = [*_of_reward(position, known), *_of_task(task, known), *_of_codes(position, known)]
    found += [*_of_findings(position, known), *_of_mechanisms(position, known), *_of_checks(position, known)]
    order = {cause: at for at, cause in enumerate(EXCLUDED_FIRST)}
    return sorted(found, key=lambda g: (order.get(g.cause, len(order)), -g.weight, g.name))


def _of_reward(position: int, known: Known) -> Iterator[Ground]:
    if position in known.unscored:
        text = "the row has no usable reward and counts as 0"
        yield Ground("reward", Cause.DATA_ARTIFACT, UNSCORED, "row says so", 1.0, text, None, ())


def _of_checks(position: int, known: Known) -> Iterator[Ground]:
    """What the verifier found wanting names the failure; why it is wanting, it does not say."""
    if position in known.checks:
        name, quote = known.checks[position]
        text = f"the verifier's check {name} was not met"
        weight = CONFIDENCE["check"] / 3
        yield Ground(
            "check", Cause.KNOWLEDGE_GAP, f"check not met: {name}", "check", weight, text, None, (quote,)
        )


def _of_task(task: str, known: Known) -> Iterator[Ground]:
    against = known.suspects.get(task, ())
    if sum(one.points for one in against) < SUSPECT:
        return
    for one in sorted(against, key=lambda one: (-one.points, one.flag)):
        yield Ground(
            one.flag, one.cause, one.flag, "suspect task", CONFIDENCE["suspect task"] * one.points / SUSPECT,
            one.text, None, one.evidence,
        )  # fmt: skip


def _of_codes(position: int, known: Known) -> Iterator[Ground]:
    meaning = known.codes.get(position)
    if meaning is not None and meaning.cause is not None:
        text = f"`{meaning.field}` is {meaning.value}: {meaning.mode}"
        confidence = CONFIDENCE["known code"]
        yield Ground(
            meaning.field, meaning.cause, meaning.mode, "known code", confidence, text, None, (),
            procedural=meaning.cause is Cause.BEHAVIOUR, detail=meaning.value,
        )  # fmt: skip


def _of_findings(position: int, known: Known) -> Iterator[Ground]:
    for one in known.found.get(position, ()):
        finding = one.finding
        rule = known.rules[finding.detector]
        kind = _kind(one, known)
        if kind is None:
            continue
        first = finding.evidence[0]
        yield Ground(
            name=finding.detector,
            cause=finding.cause,
            mode=finding.detector,
            kind=kind,
            weight=CONFIDENCE[kind] * finding.severity / 3,
            text=finding.summary,
            step=first.step,
            evidence=finding.evidence,
            procedural=rule.procedural,
            detail=one.detail,
        )


def _kind(one: Found, known: Known) -> str | None:
    """How far a finding can be believed as a cause; None: not at all."""
    finding = one.finding
    if finding.severity < GRAVE:
        return None
    behaviour = known.behaviours.get(finding.detector)
    if finding.cause in EXCLUDED_FIRST:
        if finding.confidence is Confidence.PROVED:
            return "row says so"
        return None if behaviour is not None and behaviour.standing == "style" else "read in text"
    if behaviour is None or behaviour.standing == "style":
        return None
    return behaviour.standing


def _of_mechanisms(position: int, known: Known) -> Iterator[Ground]:
    for one in known.covered.get(position, ()):
        gap = max(one.pass_without - one.pass_with, 0.0)
        yield Ground(
            one.id, Cause.UNRELIABLE_KNOWLEDGE, one.predicate, "mechanism", CONFIDENCE["mechanism"] * gap,
            one.text, None, one.evidence, detail=one.actionable,
        )  # fmt: skip
