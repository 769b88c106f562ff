"""Map causes to interventions, ranked by what they could win for their effort."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from msgspec.structs import replace

from blade.model import (
    Attribution,
    Behaviour,
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

__all__ = ["Books", "Recommended", "recommend"]

MAX_MODES = 6  # that share what all of them could win: 2^6 sets
LEAST = 1e-9
MEASUREMENT = (Cause.INFRASTRUCTURE, Cause.TASK_OR_VERIFIER, Cause.DATA_ARTIFACT)
QUOTES = 3


class Recommended(msgspec.Struct, frozen=True):
    recommendations: tuple[Recommendation, ...]
    unexplained: float | None  # oracle - score with the least-affected rollouts of all modes
    shares: Mapping[str, float]  # of each mode in what all of them could win


@dataclass(frozen=True)
class Books:
    """How the points of a run were lost, and all that is known of it."""

    judged: Judged
    losses: Sequence[Loss]
    modes: Mapping[int, tuple[Cause, str]]  # position of each row that loses points -> cause and mode
    attributions: Sequence[Attribution]
    found: Sequence[Found]
    mechanisms: Sequence[Mechanism]
    rules: Mapping[str, Rule]
    codes: Mapping[int, Meaning]
    contents: Mapping[int, str]  # what each row ended with: equal contents are the same result
    behaviours: Mapping[str, Behaviour]
    quote: Callable[[int], tuple[Evidence, ...]]  # finds evidence in a row that has none yet

    @cached_property
    def shows(self) -> dict[str, dict[int, int]]:
        """Mode -> position -> severity."""
        held: defaultdict[str, dict[int, int]] = defaultdict(dict)
        for one in self.found:
            of_mode = held[one.finding.detector]
            of_mode[one.position] = max(of_mode.get(one.position, 0), one.finding.severity)
        judged = self.judged
        places = defaultdict(list)
        for code, repeat, position in zip(judged.task, judged.repeat, judged.rows, strict=True):
            places[judged.task_keys[int(code)], int(repeat)].append(int(position))
        for mechanism in self.mechanisms:
            if mechanism.standing == "mechanism":
                held[mechanism.predicate] = {p: 2 for place in mechanism.rollouts for p in places[place]}
        return dict(held)


def recommend(books: Books) -> Recommended:
    """The interventions a run asks for; every gain is in points of score."""
    judged, shows = books.judged, books.shows
    severities = {name: gains.severity(judged, held) for name, held in shows.items()}
    ablation = Ablation(judged.task, judged.score, severities)
    merged = _by_mode(books.losses)
    named = list(dict.fromkeys(loss.mode for loss in merged if loss.mode in shows))[:MAX_MODES]
    shares = ablation.shares(named) if len(named) > 1 else {}
    uplifts = {mode: ablation.uplift(mode) for mode in named}
    made = []
    for loss in merged:
        one = _one(books, loss) if loss.lost > LEAST else None
        if one is not None:
            made.append(_with_ablation(one, uplifts.get(loss.mode), shares.get(loss.mode)))
    made.sort(key=lambda one: (-one.gain.point / actions.COST[one.effort], -one.gain.high, one.mode))
    ranked = tuple(replace(one, rank=at + 1) for at, one in enumerate(made))
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
        found.append(replace(largest, lost=sum(loss.lost for loss in group)))
    return sorted(found, key=lambda loss: (-loss.lost, loss.mode))


def _one(books: Books, loss: Loss) -> Recommendation | None:
    judged, outside = books.judged, loss.cause in MEASUREMENT
    positions = sorted(
        at
        for at, (cause, mode) in books.modes.items()
        if mode == loss.mode and (cause in MEASUREMENT) == outside
    )
    primary = np.isin(judged.rows, positions)
    tasks = _tasks(judged, primary)
    action, evidence = _action(books, loss, set(positions), tasks)
    if action is None:
        return None
    seen = np.isin(judged.rows, sorted(books.shows.get(loss.mode, {})))
    told = gains.estimate(judged, primary, seen)
    if loss.mode == actions.VARIES:
        told = gains.voted(judged, primary, books.contents)
    return Recommendation(
        rank=0,
        run=judged.run,
        kind=action.kind,
        action=action.text,
        cause=loss.cause,
        mode=loss.mode,
        gain=told.gain,
        is_measurement=outside,
        effort=actions.EFFORT[action.kind],
        basis=f"{told.basis}; {action.bound}" if action.bound else told.basis,
        tasks=tuple(tasks),
        evidence=evidence or tuple(quote for at in positions[:QUOTES] for quote in books.quote(at)[:1]),
    )


def _tasks(judged: Judged, primary: Bools) -> list[str]:
    """The tasks concerned, those that lose most first."""
    lost = np.bincount(judged.task[primary], minlength=len(judged.task_keys))
    order = sorted(np.flatnonzero(lost), key=lambda code: (-lost[code], code))
    return [judged.task_keys[int(code)] for code in order]


def _action(
    books: Books, loss: Loss, positions: set[int], tasks: Sequence[str]
) -> tuple[actions.Action | None, tuple[Evidence, ...]]:
    """What to do about a mode, by what it is: a behaviour, a mechanism, a code, a flag, a kind of result."""
    if loss.mode in books.rules:
        hits = [one for one in books.found if one.finding.detector == loss.mode and one.position in positions]
        quotes = tuple(one.finding.evidence[0] for one in hits[:QUOTES])
        action = actions.of_rule(books.rules[loss.mode], _telling(books, hits), loss.cause)
        behaviour = books.behaviours.get(loss.mode)
        if loss.cause not in MEASUREMENT and behaviour is not None and behaviour.standing != "cause":
            unproven = "unproven: too few rollouts say that it goes with failing"
            action = replace(action, bound="; ".join(filter(None, (unproven, action.bound))))
        return action, quotes
    for mechanism in books.mechanisms:
        if mechanism.predicate == loss.mode:
            return actions.of_mechanism(mechanism), mechanism.evidence[:QUOTES]
    of_tasks = [one for one in books.attributions if one.mode == loss.mode]
    quotes = tuple(quote for one in of_tasks[:QUOTES] for quote in one.evidence[:1])
    for position in sorted(positions):
        meaning = books.codes.get(position)
        if meaning is not None and meaning.mode == loss.mode:
            return actions.of_meaning(meaning.field, meaning.value, meaning.mode, loss.cause), quotes
    said = next((one for one in of_tasks if one.judged_by), None)
    if said is not None:
        return actions.of_judged(loss.mode, said.mechanism, loss.cause, tasks), quotes
    if loss.cause in MEASUREMENT and of_tasks:
        return actions.of_flag(loss.mode, of_tasks[0].mechanism, loss.cause), quotes
    return actions.of_result(loss.mode, tasks), quotes


def _telling(books: Books, hits: Sequence[Found]) -> list[str]:
    """The tools and fields of some findings, without those that passing rollouts show as often."""
    details = {one.detail for one in hits}
    failing = set(books.judged.rows[~books.judged.passed].tolist())
    in_fail: Counter[str] = Counter()
    in_pass: Counter[str] = Counter()
    for one in books.found:
        if one.finding.detector == hits[0].finding.detector and one.detail in details:
            (in_fail if one.position in failing else in_pass)[one.detail] += 1
    n_fail = max(len(failing), 1)
    n_pass = max(int(books.judged.passed.sum()), 1)
    kept = {detail for detail in details if in_fail[detail] / n_fail > in_pass[detail] / n_pass}
    return [one.detail for one in hits if one.detail in (kept or details)]


def _with_ablation(one: Recommendation, uplift: Uplift | None, share: float | None) -> Recommendation:
    if uplift is None:
        return one
    told = f"; least-affected repeats score {100 * uplift.point:+.1f} points"
    told += f" (shuffled: p = {uplift.p:.3f})" if uplift.p is not None else " (no task has both)"
    if share is not None:
        told += f", {100 * share:+.1f} of them its own share"
    return replace(one, basis=one.basis + told)
