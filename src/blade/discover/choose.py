"""Turn tested candidates into a few predicates that cover the failures, and the strongest leads."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from blade import stats
from blade.discover import grammar, permute
from blade.discover.candidates import Candidates, restates
from blade.discover.gather import Rows
from blade.discover.kinds import CHANGES
from blade.discover.permute import Design, Tested

if TYPE_CHECKING:
    from blade.model import Bools, Ints

ALPHA = 0.05
MAX_MECHANISMS = 8
MIN_LEADS = 3  # mechanisms and leads together, where there is anything to compare
LEAD_P = 0.005
READ = 400  # candidates looked at, the strongest first
MIN_EFFECT = 0.05  # difference in pass rate below which a sentence says nothing
ALIKE = 0.8  # Jaccard
ACTIONABLE = 0.5  # weight from which a predicate comes before those close to the reward
TOLD = 0.6  # share of the failures of a length or count from which an act that shares them tells more
RESIDUAL_Z = 1.64
MAX_EXACT = 3000  # rows up to which p is exact
SOMETIMES = "sometimes_pass"
MIN_SOMETIMES = 8
KEPT = 0.9  # of the test value: then what tells lies inside the closer condition


@dataclass(frozen=True)
class Predicate:
    """A candidate turned so that it goes with failing."""

    feature: str
    condition: str
    absent: bool
    pair: int
    shown: Bools  # rows that show it
    others: Bools  # rows of the condition that do not
    n_with: int
    c_with: int  # of these pass
    n_without: int
    c_without: int
    effect: float  # within groups
    z: float
    p: float
    p_adjusted: float
    weight: float
    is_near: bool  # about something that the tasks themselves expect, and so close to the reward

    @property
    def difference(self) -> float:
        return self.c_without / self.n_without - self.c_with / self.n_with

    @property
    def gain(self) -> float:
        """Failures it may stand for, weighed by what a reader can do with it."""
        return self.weight * self.n_with * max(0.0, min(self.difference, self.effect))


def choose(rows: Rows, found: Candidates, tested: Tested, layout: Design) -> list[Predicate]:
    """Mechanisms first, each still telling where the earlier ones are silent; then leads."""
    strength = np.nan_to_num(np.abs(tested.z))
    ranked = np.lexsort((np.arange(strength.size), -strength))
    read = [
        predicate for at in ranked[:READ] if (predicate := _predicate(int(at), rows, found, tested, layout))
    ]
    strong = _one_condition(
        [one for one in read if layout.firm and one.p_adjusted <= ALPHA and one.difference >= MIN_EFFECT]
    )
    strong = _without_amounts(strong, strong, rows)
    chosen = _cover(strong, rows, found, layout)
    taken = {predicate.feature for predicate in strong}
    weak = _without_amounts([one for one in read if one.feature not in taken], read, rows)
    weak.sort(key=lambda one: (-one.z * (0.6 + 0.4 * one.weight), one.feature, one.condition))
    return chosen + _leads(weak, chosen)


def _predicate(at: int, rows: Rows, found: Candidates, tested: Tested, layout: Design) -> Predicate | None:
    column, place = found.pairs[at]
    feature, condition, held = found.features[column], found.conditions[place], found.held[place]
    z = float(tested.z[at])
    if math.isnan(z) or z == 0:
        return None
    is_shown = (found.matrix[:, column] == 1) == (z > 0)
    numbers = (abs(float(tested.effect[at])), abs(z), float(tested.p[at]), float(tested.p_adjusted[at]))
    faint: Predicate | None = None
    for told, inside in ((condition, held), *_sometimes(condition, held, rows, layout)):
        made = _counted(feature, told, z < 0, at, is_shown & inside, ~is_shown & inside, rows, numbers)
        if made is None or (told.endswith(SOMETIMES) and min(made.n_with, made.n_without) < MIN_SOMETIMES):
            continue
        if made.difference >= MIN_EFFECT:
            return made
        faint = faint or made
    return faint


def _sometimes(condition: str, held: Bools, rows: Rows, layout: Design) -> list[tuple[str, Bools]]:
    """The same within tasks that do both: where tasks of one outcome drown the difference."""
    if not layout.within_task:
        return []
    mixed = np.zeros(rows.n, bool)
    mixed[layout.rows] = True
    return [(f"{condition} & {SOMETIMES}" if condition else SOMETIMES, held & mixed)]


def _counted(
    feature: str, condition: str, absent: bool, pair: int, shown: Bools, others: Bools, rows: Rows,
    numbers: tuple[float, float, float, float],
) -> Predicate | None:  # fmt: skip
    n_with, n_without = int(shown.sum()), int(others.sum())
    if not n_with or not n_without:
        return None
    c_with, c_without = int(rows.passed[shown].sum()), int(rows.passed[others].sum())
    if restates(feature, shown, others, rows.passed):
        return None
    tool = grammar.tool_of(feature)
    is_write = (
        absent
        and grammar.kind(feature) in ("calls", "n_calls", "writes", "n_writes")
        and _expects(tool, rows)
    )
    if is_write and not _asks(tool, condition, rows):
        return None  # tasks that do not expect it pass without it
    if absent and n_with > _most_lacking(feature) * n_without:
        return None  # that most rollouts lack something rare is no account of their failing
    effect, z, p, p_adjusted = numbers
    is_near = is_write or grammar.kind(feature) in grammar.NEAR
    weight = grammar.weight(feature) * (0.5 if is_near else 1.0)
    made = Predicate(
        feature, condition, absent, pair, shown, others, n_with, c_with, n_without, c_without, effect, z, p,
        p_adjusted, weight, is_near,
    )  # fmt: skip
    return made if made.difference > 0 else None


def _most_lacking(feature: str) -> float:
    """How many may lack a feature for one that has it; without limit for what a rollout should do."""
    if grammar.kind(feature) in grammar.OMITTED:
        return math.inf
    if grammar.kind(feature) in grammar.PRESENT:
        return 0
    return 1 if grammar.is_word(feature) or grammar.kind(feature) in grammar.LATE else 3


def _asks(tool: str, condition: str, rows: Rows) -> bool:
    """Whether the condition leaves only tasks that expect the call, where rows say what is expected."""
    if tool:
        return f"gold_has({tool})" in condition or f"task:gold_writes({tool})" not in rows.columns
    return CHANGES in condition or not any(name.startswith("task:gold_writes(") for name in rows.columns)


def _expects(tool: str, rows: Rows) -> bool:
    if not tool:
        return True
    return f"writes({tool})" in rows.columns or f"task:gold_writes({tool})" in rows.columns


def _one_condition(strong: list[Predicate]) -> list[Predicate]:
    """Of each feature one condition: the widest, unless a closer one shows clearly more."""
    by_feature: dict[tuple[str, bool], list[Predicate]] = {}
    for predicate in strong:
        by_feature.setdefault((predicate.feature, predicate.absent), []).append(predicate)
    found = []
    for several in by_feature.values():
        several.sort(
            key=lambda one: (SOMETIMES in one.condition, -(one.n_with + one.n_without), one.condition)
        )
        widest = several[0]
        closer = [
            one
            for one in several[1:]
            if one.difference > widest.difference + _error(one) and one.z >= KEPT * widest.z
        ]
        best = max(closer, key=lambda one: (one.gain, one.condition)) if closer else widest
        found.append(best)
    return found


def _without_amounts(several: list[Predicate], others: list[Predicate], rows: Rows) -> list[Predicate]:
    """All but lengths and counts of failures that an act tells apart at least as well."""
    acts = [
        (one.difference, one.shown)
        for one in others
        if grammar.kind(one.feature) in grammar.ACTS and one.p <= LEAD_P
    ]

    def is_told(one: Predicate) -> bool:
        failing = one.shown & ~rows.passed
        least = TOLD * int(failing.sum())
        return any(
            difference >= one.difference and int((failing & shown).sum()) >= least
            for difference, shown in acts
        )

    return [one for one in several if grammar.kind(one.feature) not in grammar.AMOUNTS or not is_told(one)]


def _error(predicate: Predicate) -> float:
    """Standard error of the difference."""
    parts = ((predicate.c_with, predicate.n_with), (predicate.c_without, predicate.n_without))
    return math.sqrt(sum(c / n * (1 - c / n) / n for c, n in parts))


def _cover(strong: list[Predicate], rows: Rows, found: Candidates, layout: Design) -> list[Predicate]:
    chosen: list[Predicate] = []
    covered = np.zeros(rows.n, bool)
    failing = ~rows.passed
    waiting = list(strong)
    while waiting and len(chosen) < MAX_MECHANISMS:
        worth = [
            one.weight
            * max(0.0, min(one.difference, one.effect))
            * int((one.shown & failing & ~covered).sum())
            for one in waiting
        ]
        ranks = [
            (_tier(one), -value, one.feature, one.condition)
            for one, value in zip(waiting, worth, strict=True)
        ]
        at = ranks.index(min(ranks))
        best = waiting.pop(at)
        if worth[at] <= 0:
            continue
        if chosen and (
            any(
                _alike(best, other) or grammar.stem(best.feature) == grammar.stem(other.feature)
                for other in chosen
            )
            or _residual(best, covered, rows, found, layout) < RESIDUAL_Z
        ):
            continue
        chosen.append(best)
        covered |= best.shown
    return chosen


def _tier(one: Predicate) -> int:
    """What a reader can act on, then what comes close to the reward, then what merely goes with failing."""
    return 1 if one.is_near else 0 if one.weight >= ACTIONABLE else 2


def _alike(one: Predicate, other: Predicate) -> bool:
    either = int((one.shown | other.shown).sum())
    return bool(either) and int((one.shown & other.shown).sum()) / either > ALIKE


def _residual(one: Predicate, covered: Bools, rows: Rows, found: Candidates, layout: Design) -> float:
    """The test value among the rows that no chosen predicate shows."""
    column = found.pairs[one.pair][0]
    left = (one.shown | one.others) & ~covered
    z = permute.single(found.matrix[:, column], left, layout)
    return -z if one.absent else z


def _leads(weak: list[Predicate], chosen: list[Predicate]) -> list[Predicate]:
    found: list[Predicate] = []
    clear = [one for one in weak if one.difference >= MIN_EFFECT]
    stems = {grammar.stem(one.feature) for one in chosen}
    # Rather another cut of the same number, or a faint difference, than too few.
    for several, anew in ((clear, True), (clear, False), (weak, True)):
        for one in several:
            short = len(chosen) + len(found) < MIN_LEADS
            room = len(found) < MIN_LEADS and len(chosen) + len(found) < MAX_MECHANISMS
            if not short and not (room and anew and one.p <= LEAD_P and several is clear):
                continue
            if anew and grammar.stem(one.feature) in stems:
                continue
            if not any(_alike(one, other) for other in (*chosen, *found)):
                found.append(one)
                stems.add(grammar.stem(one.feature))
    return found


def exact(one: Predicate, rows: Rows, layout: Design) -> float | None:
    """The exact two-sided p of a predicate; None where rows are too many or no unit of their own."""
    if layout.rows.size > MAX_EXACT or layout.rows.size != layout.group.size:
        return None
    shown, others = one.shown[layout.rows], one.others[layout.rows]
    passed = rows.passed[layout.rows]
    n = int(layout.group.max()) + 1 if layout.group.size else 0

    def counted(which: Bools) -> Ints:
        return np.bincount(layout.group[which], minlength=n)

    tables = np.stack(
        [
            counted(shown & ~passed),
            counted(shown & passed),
            counted(others & ~passed),
            counted(others & passed),
        ],
        axis=1,
    ).reshape(-1, 2, 2)
    more, less = stats.exact_stratified(tables), stats.exact_stratified(tables, greater=False)
    return None if more is None or less is None else min(1.0, 2 * min(more, less))
