"""Write causes, mechanisms, contrasts and advice in the wire format `blade.report/2`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from blade.model import (
    Agreement,
    Attribution,
    Behaviour,
    Contrast,
    Divergence,
    Evidence,
    Finding,
    Judgement,
    Loss,
    Meaning,
    Mechanism,
    Recommendation,
    RunCause,
    Signature,
)


def number(value: float | None) -> float | None:
    # JSON has no nan and no infinity; adding 0.0 turns -0.0 into 0.0.
    return float(value) + 0.0 if value is not None and math.isfinite(value) else None


def evidence(found: Evidence) -> dict[str, Any]:
    return {
        "run": found.run,
        "task": found.task,
        "repeat": int(found.repeat) if found.repeat is not None else None,
        "step": int(found.step) if found.step is not None else None,  # index into the output items
        "field": found.field,  # JSON path into the row; at most one of step and field is set
        "quote": found.quote,  # a substring of that place; null: the row is absent
        **({"redacted": True} if found.is_redacted else {}),  # a substring outside its placeholders
    }


def _all(found: tuple[Evidence, ...]) -> list[dict[str, Any]]:
    return [evidence(one) for one in found]


def _rollouts(found: tuple[tuple[str, int], ...]) -> list[dict[str, Any]]:
    return [{"task": task, "repeat": int(repeat)} for task, repeat in found]


def finding(found: Finding) -> dict[str, Any]:
    return {
        "id": found.id,
        "run": found.run,
        "detector": found.detector,
        "task": found.task,
        "repeat": int(found.repeat) if found.repeat is not None else None,  # null: all repeats
        "summary": found.summary,
        "severity": int(found.severity),  # 0 note .. 3 breaks the score
        "confidence": found.confidence.value,  # proved, likely, suspected
        "cause": found.cause.value,  # what it speaks for; undetermined: it says what, not why
        "evidence": _all(found.evidence),  # never empty
    }


def behaviour(found: Behaviour) -> dict[str, Any]:
    return {
        "run": found.run,
        "detector": found.detector,
        "standing": found.standing,  # cause, style (as common among passes), unproven
        "n_rollouts": int(found.n_rollouts),  # rollouts it fires on
        "n_tasks": int(found.n_tasks),
        "in_fail": int(found.in_fail),  # of of_fail failing rollouts
        "of_fail": int(found.of_fail),
        "in_pass": int(found.in_pass),  # of of_pass passing rollouts
        "of_pass": int(found.of_pass),
        "odds_ratio": number(found.odds_ratio),  # of failing with it, within tasks; null: not estimable
        "low": number(found.low),  # 95% interval of the odds ratio
        "high": number(found.high),
        "p": number(found.p),
        "p_adjusted": number(found.p_adjusted),
    }


def signature(found: Signature) -> dict[str, Any]:
    return {
        "id": found.id,
        "run": found.run,
        "class": found.kind,  # an exception type, an HTTP class, a code of the verifier
        "template": found.template,  # the text with what varies masked
        "source": found.source,  # the field it stands in, or the tool that said it
        "n_rollouts": int(found.n_rollouts),
        "n_tasks": int(found.n_tasks),
        "n_failed": int(found.n_failed),  # of these rollouts, how many fail
        "n_exact": int(found.n_exact),  # distinct masked texts under the template
        "spread": found.spread,  # systemic, idiosyncratic, flaky
        "slice": found.slice,  # field=value in which it is concentrated; null: nowhere
        "slice_ratio": number(found.slice_ratio),  # rate inside : rate outside
        "slice_p_adjusted": number(found.slice_p_adjusted),
        "rollouts": _rollouts(found.rollouts),
        "evidence": _all(found.evidence),
    }


def meaning(found: Meaning) -> dict[str, Any]:
    return {
        "run": found.run,
        "field": found.field,
        "value": found.value,  # as quoted in the rows
        "cause": found.cause.value if found.cause is not None else None,  # null: nothing to blame
        "mode": found.mode,  # in words
        "origin": found.origin,  # blade.toml, known, proposed
        "n_rollouts": int(found.n_rollouts),
        "n_passed": int(found.n_passed),
        "n_tasks": int(found.n_tasks),
    }


def mechanism(found: Mechanism) -> dict[str, Any]:
    return {
        "id": found.id,
        "run": found.run,
        "standing": found.standing,  # mechanism, or lead: not beyond chance
        "text": found.text,  # a sentence
        "predicate": found.predicate,  # for a program
        "n_with": int(found.n_with),  # rollouts that meet the condition
        "pass_with": number(found.pass_with),  # their pass rate
        "n_without": int(found.n_without),
        "pass_without": number(found.pass_without),
        "low": number(found.low),  # 95% interval of pass_without - pass_with
        "high": number(found.high),
        "p": number(found.p),
        "p_adjusted": number(found.p_adjusted),  # for all conditions that were tried
        "within_task": bool(found.within_task),  # tested among repeats of the same tasks
        "control": found.control,  # how difficulty was held fixed, in words
        "share_of_failures": number(found.share_of_failures),  # of all failing rollouts
        "actionable": found.actionable,  # the tool, field or setting concerned
        "rollouts": _rollouts(found.rollouts),  # failing rollouts that show it
        "evidence": _all(found.evidence),
    }


def contrast(found: Contrast) -> dict[str, Any]:
    return {
        "id": found.id,
        "run": found.run,
        "task": found.task,  # null: over all tasks that both pass and fail
        "feature": found.feature,
        "text": found.text,  # a sentence
        "in_pass": number(found.in_pass),  # share of passing rollouts that show it
        "in_fail": number(found.in_fail),
        "n_pass": int(found.n_pass),
        "n_fail": int(found.n_fail),
        "p": number(found.p),
        "p_adjusted": number(found.p_adjusted),
        "other_run": found.other_run,  # whose passes they are; null: this run's
        "evidence": _all(found.evidence),
    }


def divergence(found: Divergence) -> dict[str, Any]:
    return {
        "run": found.run,
        "task": found.task,
        "repeat": int(found.repeat),  # of the failing rollout
        "passer": {
            "run": found.passer_run,  # another run, where the passes were borrowed
            "repeat": int(found.passer),
        },  # the passing rollout that is most like it
        "step": int(found.step),  # the last parting that nothing later makes good
        "passer_step": int(found.passer_step),
        "does": found.does,  # what each side does there, as a verb phrase
        "passer_does": found.passer_does,
        "first_step": int(found.first_step),  # the first parting
        "first_passer_step": int(found.first_passer_step),
        "distance": number(found.distance),  # acts that differ, of the longer side
        "fitness": number(found.fitness),  # transitions of the failing rollout that passing ones make too
        "missing": list(found.missing),  # tools that nearly all passing rollouts use and this one does not
        "unusual": list(found.unusual),  # transitions that hardly any passing rollout makes: a > b
        "evidence": _all(found.evidence),  # the failing side, then the passing side
    }


def attribution(found: Attribution) -> dict[str, Any]:
    return {
        "id": found.id,
        "run": found.run,
        "task": found.task,
        "cause": found.cause.value,  # KG, UK, BI, TI, IR, DA, undetermined
        "confidence": number(found.confidence),  # 0 to 1
        "mode": found.mode,
        "mechanism": found.mechanism,  # what happened, in a sentence
        "repeat": int(found.repeat) if found.repeat is not None else None,  # the rollout that shows it best
        "step": int(found.step) if found.step is not None else None,  # null: the candidates disagree
        "steps": [
            {
                "step": int(blame.step),
                "weight": number(blame.weight),
                "reason": _beside(blame.reason, found.mechanism),
            }
            for blame in found.steps
        ],  # ranked, at most three
        "grounds": [_beside(ground, found.mechanism) for ground in found.grounds],  # what speaks for it
        "against": list(found.against),  # what speaks against it
        "lost": number(found.lost),  # points of score this task loses
        "judged_by": found.judged_by or None,  # who gave the cause; null: the engine
        "proposed": found.proposed.value if found.proposed is not None else None,  # the engine's, if judged
        "proposed_confidence": number(found.proposed_confidence),
        "evidence": _all(found.evidence),
    }


def _beside(text: str, mechanism: str) -> str:
    """A text that stands beside a mechanism: what ends with the same sentence does not say it again."""
    return text.removesuffix(mechanism).rstrip(" :;") or text if mechanism else text


def judgement(run: str, found: Judgement) -> dict[str, Any]:
    return {
        "id": found.id,
        "run": run,
        "task": found.task,
        "cause": found.cause.value,  # KG, UK, BI, TI, IR, DA, undetermined
        "mode": found.mode,  # a name for what happened; may be empty
        "mechanism": found.mechanism,  # what happened, in a sentence
        "by": found.by,
        "at": found.at,  # in UTC
        "proposed": found.proposed.value if found.proposed is not None else None,  # by the engine, then
        "condition": found.condition,  # that the rollout meets, where it was judged by one; else empty
        "evidence": _all(found.shown(run)),  # none where the condition alone stands for it
    }


def agreement(found: Agreement) -> dict[str, Any]:
    return {
        "run": found.run,
        "first": found.first,  # an author, or engine
        "second": found.second,
        "n": int(found.n),  # tasks that both labelled
        "agreed": int(found.agreed),
        "kappa": number(found.kappa),  # Cohen's; null: chance alone decides
        "confusion": [
            {"first": one.value, "second": other.value, "n": int(n)} for one, other, n in found.confusion
        ],
    }


def loss(found: Loss) -> dict[str, Any]:
    return {
        "run": found.run,
        "cause": found.cause.value,  # KG, UK, BI, TI, IR, DA, undetermined
        "mode": found.mode,
        "lost": number(found.lost),  # points of score; they add up to 1 - score
    }


def run_cause(found: RunCause) -> dict[str, Any]:
    return {
        "run": found.run,
        "cause": found.cause.value,
        "mode": found.mode,
        "text": found.text,
        "n_rollouts": int(found.n_rollouts),
        "lost": number(found.lost),  # points of score; 0: it distorts without losing
        "score_without": number(found.score_without),  # null: no row is left
        "n_without": int(found.n_without),  # tasks left in score_without
        "evidence": _all(found.evidence),
    }


def recommendation(found: Recommendation) -> dict[str, Any]:
    return {
        "rank": int(found.rank),
        "run": found.run,
        "kind": found.kind,  # harness, prompt, training, data, verifier, infrastructure
        "action": found.action,
        "cause": found.cause.value,
        "mode": found.mode,
        "gain": {
            "low": number(found.gain.low),
            "point": number(found.gain.point),
            "high": number(found.gain.high),
        },  # points of score
        "is_measurement": bool(found.is_measurement),  # repairs the measurement rather than the model
        "effort": found.effort,  # config, prompt, harness, verifier, data, training
        "basis": found.basis,  # how the gain was estimated, in words
        "tasks": list(found.tasks),
        "evidence": _all(found.evidence),
    }


def plain(value: Any) -> Any:
    """`value` as JSON can hold it: mappings and lists of texts, whole numbers and finite numbers."""
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if isinstance(value, float):
        return number(value)
    return value if value is None or isinstance(value, bool | int | str) else str(value)
