"""Turn the grounds of the rows of a task into one root cause, the model's own last."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

import msgspec

from blade.attribute.grounds import CONFIDENCE, ENOUGH, EXCLUDED_FIRST, ONE_REPEAT, Ground
from blade.model import Cause

MOST = 2 / 3  # of the failing repeats must show a behaviour that explains a task which never passes
HALF = 0.5  # of the failing repeats, where others pass
FEW = 0.34  # of the passing repeats may show it too
NOTHING = "nothing found"
SAME = 0.6  # of the failing repeats must agree for "the same wrong result every time"


class Row(msgspec.Struct, frozen=True):
    """One counted row of a task as the decision sees it."""

    position: int
    repeat: int
    passed: bool
    lost: float  # 1 - score
    grounds: Sequence[Ground]  # of a failing row; also of a passing one, to hold against
    content: str  # what it ended with: equal contents are the same result; empty if unknown


class Decision(msgspec.Struct, frozen=True):
    """The root cause of a task, and the mode of each of its rows."""

    cause: Cause
    confidence: float
    mode: str
    text: str
    ground: Ground | None
    row: Row | None  # that shows it best
    grounds: tuple[str, ...]
    against: tuple[str, ...]
    modes: Mapping[int, tuple[Cause, str]]  # position of each row that loses points -> its own cause and mode


def decide(rows: Sequence[Row], p_never: float | None) -> Decision:
    """The cause of a task with at least one row that loses points."""
    losing = [row for row in rows if row.lost > 0]
    spoiled = {row.position: _spoiled(row) for row in losing}
    first = _excluded(losing, spoiled)
    of_model = [row for row in losing if spoiled[row.position] is None]
    told = first or _model(rows, of_model, p_never)
    modes = {}
    for row in losing:
        ground = spoiled[row.position]
        modes[row.position] = (
            (ground.cause, ground.mode) if ground else _mode_of(row, told, of_model, rows, p_never)
        )
    return msgspec.structs.replace(told, modes=modes)


def _spoiled(row: Row) -> Ground | None:
    """What takes the row out of the model's account, if anything."""
    return next((ground for ground in row.grounds if ground.cause in EXCLUDED_FIRST), None)


def _excluded(losing: Sequence[Row], spoiled: Mapping[int, Ground | None]) -> Decision | None:
    """A cause outside the model, where most of the lost points are its."""
    lost: defaultdict[tuple[Cause, str], float] = defaultdict(float)
    for row in losing:
        ground = spoiled[row.position]
        if ground is not None:
            lost[ground.cause, ground.mode] += row.lost
    total = sum(row.lost for row in losing)
    if not lost or 2 * sum(lost.values()) <= total:
        return None
    by_cause: defaultdict[Cause, float] = defaultdict(float)
    for (cause, _), value in lost.items():
        by_cause[cause] += value
    cause = max(EXCLUDED_FIRST, key=lambda one: (by_cause[one], -EXCLUDED_FIRST.index(one)))
    mode = max(sorted(mode for c, mode in lost if c is cause), key=lambda mode: lost[cause, mode])
    shown = [row for row in losing if (g := spoiled[row.position]) and (g.cause, g.mode) == (cause, mode)]
    best = max(shown, key=lambda row: (_of(row, spoiled).weight, -row.repeat))
    ground = _of(best, spoiled)
    share = f"{len(shown)} of {len(losing)} rollouts that lose points"
    against = (
        (f"{len(losing) - len(shown)} of {len(losing)} fail for another reason",)
        if len(shown) < len(losing)
        else ()
    )
    grounds = (f"{share}: {ground.text}",)
    return Decision(cause, CONFIDENCE[ground.kind], mode, ground.text, ground, best, grounds, against, {})


def _of(row: Row, spoiled: Mapping[int, Ground | None]) -> Ground:
    ground = spoiled[row.position]
    assert ground is not None
    return ground


def _model(rows: Sequence[Row], failing: Sequence[Row], p_never: float | None) -> Decision:
    """A cause inside the model: how it went about the task, or what it knew."""
    passing = [row for row in rows if row.passed]
    best = _best_ground(failing, passing)
    if best is not None:
        return _by_ground(best, failing, passing)
    if passing:
        text = f"{len(failing)} of {len(rows)} repeats fail and nothing found sets them apart from the others"
        against = ("no rule, tool or argument that was tried separates passes from failures",)
        cause, mode = Cause.UNRELIABLE_KNOWLEDGE, "varies between repeats"
        return Decision(cause, CONFIDENCE["varies"], mode, text, None, failing[0], (text,), against, {})
    return _by_content(failing, p_never)


def _best_ground(failing: Sequence[Row], passing: Sequence[Row]) -> tuple[Ground, Row, int, int] | None:
    """The ground that most failing repeats share and few passing ones do: what is proven to go with failing
    first; then how the model went about it, since what it did wrong follows from that."""
    in_fail: Counter[str] = Counter()
    in_pass: Counter[str] = Counter()
    best: dict[str, tuple[Ground, Row]] = {}
    for row in failing:
        for ground in {ground.mode: ground for ground in reversed(row.grounds)}.values():
            in_fail[ground.mode] += 1
            held = best.get(ground.mode)
            if held is None or ground.weight > held[0].weight:
                best[ground.mode] = ground, row
    for row in passing:
        in_pass.update({ground.mode for ground in row.grounds})
    wanted = HALF if passing else MOST
    candidates = []
    for mode, (ground, row) in best.items():
        share, beside = in_fail[mode] / len(failing), in_pass[mode] / len(passing) if passing else 0.0
        if share >= wanted - 1e-9 and beside <= FEW:
            worth = ground.weight * share * (1 - beside)
            proven = ground.kind != "unproven" and ground.kind != "check"
            candidates.append((proven, ground.procedural, worth, mode, ground, row))
    if not candidates:
        return None
    *_, mode, ground, row = max(candidates, key=lambda c: c[:4])
    return ground, row, in_fail[mode], in_pass[mode]


def _by_ground(
    best: tuple[Ground, Row, int, int], failing: Sequence[Row], passing: Sequence[Row]
) -> Decision:
    ground, row, n_fail, n_pass = best
    cause = _cause_of(ground, bool(passing))
    same = (
        f"{n_fail} of {len(failing)} failing repeats show it"
        if len(failing) > 1
        else "the failing repeat shows it"
    )
    told = [f"{same} ({ground.mode.replace('_', ' ')}); in repeat {row.repeat}: {ground.text}"]
    against = []
    if passing:
        told.append(f"{n_pass} of {len(passing)} passing repeats show it")
    if n_fail < len(failing):
        against.append(f"{len(failing) - n_fail} of {len(failing)} failing repeats do not show it")
    if n_pass:
        against.append(f"{n_pass} of {len(passing)} passing repeats show it too")
    share = n_fail / len(failing)
    confidence = CONFIDENCE[ground.kind] * (0.75 + 0.25 * share)
    if len(failing) + len(passing) == 1:
        confidence *= ONE_REPEAT
    if confidence < ENOUGH:
        cause = Cause.UNDETERMINED
    return Decision(cause, confidence, ground.mode, ground.text, ground, row, tuple(told), tuple(against), {})


def _cause_of(ground: Ground, passes: bool) -> Cause:
    """What a ground says of the model; what it knew is unreliable where other repeats of the task pass."""
    if CONFIDENCE[ground.kind] < ENOUGH:
        return Cause.UNDETERMINED
    if ground.procedural and (passes or ground.cause is not Cause.KNOWLEDGE_GAP):
        return Cause.BEHAVIOUR
    if ground.cause is Cause.KNOWLEDGE_GAP and passes:
        return Cause.UNRELIABLE_KNOWLEDGE
    if ground.kind == "mechanism" and not passes:
        return Cause.KNOWLEDGE_GAP
    return ground.cause


def _by_content(failing: Sequence[Row], p_never: float | None) -> Decision:
    """A task that never passes and shows no behaviour: does it end in the same wrong result."""
    n = len(failing)
    if any(row.lost < 1 for row in failing):
        text = f"{n} repeats with part of the score; nothing found says what the rest is lost to"
        return Decision(
            Cause.UNDETERMINED, CONFIDENCE["weak"], "partial credit", text, None, failing[0], (text,), (), {}
        )
    known = [row for row in failing if row.content]
    common, times = Counter(row.content for row in known).most_common(1)[0] if known else ("", 0)
    if n >= 2 and times >= 2 and times >= SAME * n:
        row = next(row for row in known if row.content == common)
        text = f"the same wrong result in {times} of {n} repeats"
        return Decision(
            Cause.KNOWLEDGE_GAP,
            CONFIDENCE["same result"],
            "same wrong result",
            text,
            None,
            row,
            (text,),
            (),
            {},
        )
    if n < 2:
        text = "one failing repeat, and nothing found in it explains the failure"
        return Decision(
            Cause.UNDETERMINED, CONFIDENCE["weak"], NOTHING, text, None, failing[0], (text,), (), {}
        )
    results = len({row.content for row in known})
    text = f"{n} repeats fail and nothing explains it"
    if results == n:
        text = f"{n} repeats fail, each with another result"
    elif known:
        text = f"{n} repeats fail, with {results} different result{'s' if results > 1 else ''} among them"
    sure = p_never if p_never is not None else 0.0
    against = (f"with {n} repeats a task that sometimes passes may show none",)
    if known and sure >= ENOUGH:
        cause, confidence = Cause.KNOWLEDGE_GAP, min(sure, CONFIDENCE["same result"])
    elif known and sure <= 1 - ENOUGH and p_never is not None:
        cause, confidence = Cause.UNRELIABLE_KNOWLEDGE, CONFIDENCE["varies"]
    else:
        cause, confidence = Cause.UNDETERMINED, CONFIDENCE["weak"]
    mode = "different wrong results" if known else NOTHING
    return Decision(cause, confidence, mode, text, None, failing[0], (text,), against, {})


def _mode_of(
    row: Row, told: Decision, of_model: Sequence[Row], rows: Sequence[Row], p_never: float | None
) -> tuple[Cause, str]:
    """The mode a row is booked under: the task's if it shows that, else its own, else none is known."""
    if (
        told.cause in EXCLUDED_FIRST
    ):  # the task's label is another's; the model's rows keep a label of their own
        told = _model(rows, of_model, p_never)
    if told.ground is None or any(ground.mode == told.mode for ground in row.grounds):
        return told.cause, told.mode
    if not row.grounds:
        return Cause.UNDETERMINED, NOTHING
    return _cause_of(row.grounds[0], any(other.passed for other in rows)), row.grounds[0].mode
