"""Map causes to interventions, ranked by what they could win for their effort."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from blade.model import (
    Attribution,
    Cause,
    Evidence,
    Found,
    Judged,
    Loss,
    Meaning,
    Mechanism,
    Recommendation,
    Rule,
)
from blade.recommend import actions, gains
from blade.recommend.ablation import Ablation, Uplift

if TYPE_CHECKING:
    from blade.model import Bools

__all__ = ["Recommended", "recommend"]

MAX_MODES = 6  # that share what all of them could win: 2^6 sets
LEAST = 1e-9
MEASUREMENT = (Cause.INFRASTRUCTURE, Cause.TASK_OR_VERIFIER, Cause.DATA_ARTIFACT)
QUOTES = 3


class Recommended(msgspec.Struct, frozen=True):
    recommendations: tuple[Recommendation, ...]
    unexplained: float | None  # oracle - score with the least-affected rollouts of all modes
    shares: Mapping[str, float]  # of each mode in what all of them could win


def recommend(
    judged: Judged,
    losses: Sequence[Loss],
    modes: Mapping[int, tuple[Cause, str]],
    found: Sequence[Found],
    mechanisms: Sequence[Mechanism],
    attributions: Sequence[Attribution],
    rules: Mapping[str, Rule],
    codes: Mapping[int, Meaning],
) -> Recommended:
    """The interventions a run asks for; every gain is in points of score."""
    shows = _severities(judged, found, mechanisms)
    ablation = Ablation(
        judged.task, judged.score, {name: gains.severity(judged, held) for name, held in shows.items()}
    )
    merged = _by_mode(losses)
    named = list(dict.fromkeys(loss.mode for loss in merged if loss.mode in shows))[:MAX_MODES]
    shares = ablation.shares(named) if len(named) > 1 else {}
    uplifts = {mode: ablation.uplift(mode) for mode in named}
    made = []
    for loss in merged:
        if loss.lost > LEAST:
            one = _one(judged, loss, modes, shows, found, mechanisms, attributions, rules, codes)
            if one is not None:
                made.append(_with_ablation(one, uplifts.get(loss.mode), shares.get(loss.mode)))
    made.sort(key=lambda one: (-one.gain.point / actions.COST[one.effort], -one.gain.high, one.mode))
    ranked = tuple(msgspec.structs.replace(one, rank=at + 1) for at, one in enumerate(made))
    left = ablation.oracle - ablation.value(frozenset(named)) if judged.rows.size else None
    return Recommended(ranked, left, shares)


def _by_mode(losses: Sequence[Loss]) -> list[Loss]:
    """One loss for each mode, under the cause that it costs most with; what lies outside the model apart."""
    held: dict[tuple[str, bool], list[Loss]] = {}
    for loss in losses:
        held.setdefault((loss.mode, loss.cause in MEASUREMENT), []).append(loss)
    found = []
    for group in held.values():
        largest = max(group, key=lambda loss: (loss.lost, loss.cause))
        found.append(msgspec.structs.replace(largest, lost=sum(loss.lost for loss in group)))
    return sorted(found, key=lambda loss: (-loss.lost, loss.mode))


def _severities(
    judged: Judged, found: Sequence[Found], mechanisms: Sequence[Mechanism]
) -> dict[str, dict[int, int]]:
    """Mode -> position -> severity."""
    held: defaultdict[str, dict[int, int]] = defaultdict(dict)
    for one in found:
        of_mode = held[one.finding.detector]
        of_mode[one.position] = max(of_mode.get(one.position, 0), one.finding.severity)
    places = defaultdict(list)
    for at in range(judged.rows.size):
        places[judged.task_keys[int(judged.task[at])], int(judged.repeat[at])].append(int(judged.rows[at]))
    for mechanism in mechanisms:
        if mechanism.standing == "mechanism":
            held[mechanism.predicate] = {p: 2 for place in mechanism.rollouts for p in places[place]}
    return dict(held)


def _one(
    judged: Judged,
    loss: Loss,
    modes: Mapping[int, tuple[Cause, str]],
    shows: Mapping[str, Mapping[int, int]],
    found: Sequence[Found],
    mechanisms: Sequence[Mechanism],
    attributions: Sequence[Attribution],
    rules: Mapping[str, Rule],
    codes: Mapping[int, Meaning],
) -> Recommendation | None:
    outside = loss.cause in MEASUREMENT
    positions = {at for at, (c, mode) in modes.items() if mode == loss.mode and (c in MEASUREMENT) == outside}
    primary = np.isin(judged.rows, sorted(positions))
    tasks = _tasks(judged, primary)
    action, evidence = _action(loss, positions, tasks, found, mechanisms, attributions, rules, codes)
    if action is None:
        return None
    seen = np.isin(judged.rows, sorted(shows.get(loss.mode, {})))
    told = gains.estimate(judged, primary, seen)
    basis = told.basis
    if action.bound:
        basis += f"; {action.bound}"
    return Recommendation(
        rank=0,
        run=judged.run,
        kind=action.kind,
        action=action.text,
        cause=loss.cause,
        mode=loss.mode,
        gain=told.gain,
        is_measurement=loss.cause in MEASUREMENT,
        effort=actions.EFFORT[action.kind],
        basis=basis,
        tasks=tuple(tasks),
        evidence=evidence,
    )


def _tasks(judged: Judged, primary: Bools) -> list[str]:
    """The tasks concerned, those that lose most first."""
    lost = np.bincount(judged.task[primary], minlength=len(judged.task_keys))
    order = sorted(np.flatnonzero(lost), key=lambda code: (-lost[code], code))
    return [judged.task_keys[int(code)] for code in order]


def _action(
    loss: Loss,
    positions: set[int],
    tasks: Sequence[str],
    found: Sequence[Found],
    mechanisms: Sequence[Mechanism],
    attributions: Sequence[Attribution],
    rules: Mapping[str, Rule],
    codes: Mapping[int, Meaning],
) -> tuple[actions.Action | None, tuple[Evidence, ...]]:
    if loss.mode in rules:
        hits = [one for one in found if one.finding.detector == loss.mode and one.position in positions]
        quotes = tuple(one.finding.evidence[0] for one in hits[:QUOTES])
        return actions.of_rule(rules[loss.mode], [one.detail for one in hits], loss.cause), quotes
    for mechanism in mechanisms:
        if mechanism.predicate == loss.mode:
            return actions.of_mechanism(mechanism), mechanism.evidence[:QUOTES]
    of_tasks = [one for one in attributions if one.mode == loss.mode]
    quotes = tuple(quote for one in of_tasks[:QUOTES] for quote in one.evidence[:1])
    for position in sorted(positions):
        meaning = codes.get(position)
        if meaning is not None and meaning.mode == loss.mode:
            return actions.of_meaning(meaning.field, meaning.value, meaning.mode, loss.cause), quotes
    if loss.cause in MEASUREMENT and of_tasks:
        return actions.of_flag(loss.mode, of_tasks[0].mechanism, loss.cause), quotes
    return actions.of_result(loss.mode, tasks), quotes


def _with_ablation(one: Recommendation, uplift: Uplift | None, share: float | None) -> Recommendation:
    if uplift is None:
        return one
    told = f"; least-affected repeats score {100 * uplift.point:+.1f} points"
    told += f" (shuffled: p = {uplift.p:.3f})" if uplift.p is not None else " (no task has both)"
    if share is not None:
        told += f", {100 * share:+.1f} of them its own share"
    return msgspec.structs.replace(one, basis=one.basis + told)
