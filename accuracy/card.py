"""Turn what was measured into the card: shares with their n and interval, natural sets first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from accuracy.natural import Labelled, accepted, constant
from accuracy.planted import Told
from accuracy.shuffled import Nothing
from blade import stats

TOLERANCES = (0, 1, 3, 5)


def share(hits: int, n: int) -> dict[str, Any]:
    """A share with its Wilson interval; null where there is nothing to share."""
    if not n:
        return {"value": None, "low": None, "high": None, "n": 0}
    low, high, *_ = stats.wilson(hits, n)
    return {"value": round(hits / n, 4), "low": round(low, 4), "high": round(high, 4), "n": n}


def tolerances(told: Sequence[int | None], true: Sequence[int]) -> dict[str, Any]:
    """How often a told step is the true one, exactly and nearly; an abstention is not right."""
    found = {}
    for width in TOLERANCES:
        hits = sum(t is not None and abs(t - s) <= width for t, s in zip(told, true, strict=True))
        found["exact" if not width else f"within {width}"] = share(hits, len(true))
    return found


def causes(pairs: Sequence[tuple[tuple[str, ...], str, float]]) -> dict[str, Any]:
    """Accepted causes, the cause told and its confidence -> accuracy, coverage, F1, calibration."""
    determined = [one for one in pairs if one[1] != "undetermined"]
    right = [told in true for true, told, _ in determined]
    truth = [told if told in true else true[0] for true, told, _ in pairs]
    stated = [confidence for _, _, confidence in determined]
    return {
        "coverage": share(len(determined), len(pairs)),
        "accuracy where a cause is told": share(sum(right), len(determined)),
        "macro F1": _number(stats.macro_f1(truth, [told for _, told, _ in pairs]), len(pairs)),
        "Brier score": _number(stats.brier(stated, right), len(determined)),
        "calibration error": _number(stats.calibration_error(stated, right), len(determined)),
        "baseline: always the commonest": share(*_commonest([true for true, _, _ in pairs])),
    }


def _number(value: float | None, n: int) -> dict[str, Any]:
    return {"value": None if value is None else round(value, 4), "low": None, "high": None, "n": n}


def _commonest(truths: Sequence[tuple[str, ...]]) -> tuple[int, int]:
    labels = sorted({label for true in truths for label in true})
    return max((sum(label in true for true in truths) for label in labels), default=0), len(truths)


def natural_set(name: str, found: list[Labelled]) -> dict[str, Any]:
    """The card of failures that people labelled, beside what needs no thought."""
    true = [one.step for one in found]
    return {
        "name": name,
        "kind": "natural",
        "step": {
            **tolerances([one.told for one in found], true),
            "abstained": share(sum(one.told is None for one in found), len(found)),
        },
        "step, best ranked even if abstaining": tolerances(
            [one.ranked[0] if one.ranked else None for one in found], true
        ),
        "baseline: constant (median of the others)": tolerances(constant(found), true),
        "baseline: last step": tolerances([one.last for one in found], true),
        "baseline: call of the first error, else last": tolerances([one.before_error for one in found], true),
        "cause": causes(
            [(accepted(one.category), one.cause, one.confidence) for one in found if accepted(one.category)]
        ),
    }


def planted_set(told: Told) -> dict[str, Any]:
    """The card of injected faults."""
    steps = [(said, true) for _, true, said, _ in told.steps]
    return {
        "name": f"injected faults ({told.n_runs} runs)",
        "kind": "planted",
        "cause": causes([(true, said, confidence) for _, true, said, confidence, _ in told.causes]),
        "cause of the run": {
            "named": share(sum(bool(set(true) & set(said)) for _, true, said in told.runs), len(told.runs))
        },
        "step": {
            **tolerances([said for said, _ in steps], [true for _, true in steps]),
            "abstained": share(sum(said is None for said, _ in steps), len(steps)),
        },
        "step, best of three ranked": {
            "within 1": share(
                sum(any(abs(step - true) <= 1 for step in ranked) for _, true, _, ranked in told.steps),
                len(told.steps),
            )
        },
    }


def nothing_set(told: Nothing) -> dict[str, Any]:
    """The card of runs whose outcomes are shuffled: everything found there is false."""
    return {
        "name": f"shuffled outcomes ({told.n_runs} runs)",
        "kind": "planted",
        "false discoveries": {
            "runs with a mechanism": share(told.with_mechanism, told.n_runs),
            "runs with a contrast": share(told.with_contrast, told.n_within),
            "tasks with a contrast": share(told.tasks_with_contrast, told.n_tasks),
        },
    }


def detectors(told: Told, natural: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """What each detector did where the truth is known, and how often it fires on people's data."""
    names = sorted(set(told.planted) | set(told.fired) | set(natural))
    return {
        name: {
            "n_fired": told.fired[name],
            "n_right": told.right[name],
            "n_planted": told.planted[name],
            "n_recalled": told.recalled[name],
            "in_pass": told.in_pass[name],
            "of_pass": told.n_pass,
            "natural": natural.get(name, {}),
        }
        for name in names
    }
