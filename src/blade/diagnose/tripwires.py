"""Check the conclusions before they are printed, and say what a reader must know before the causes."""

from __future__ import annotations

import numpy as np

from blade.answers import value_of
from blade.diagnose.expected_calls import ADOPTED, demanding, graded_tools, nothing_due
from blade.diagnose.groups import Group, Trust, explained, warning
from blade.diagnose.ladder import Diagnosis
from blade.diagnose.population import Mask, Population

NEAR = 0.10  # distance of the do-nothing baseline from the score that is told
UNEXPLAINED = 0.25
FORM = 0.1  # share of the failures whose label a doubt concerns, from which it is told
BLANK = 0.05  # share of rollouts without a final text
SMALL = 30  # tasks up to which one task is worth telling


def checked(diagnosis: Diagnosis, score: float | None, rewards: np.ndarray, pass_field: str | None = None) -> Diagnosis:
    """The diagnosis without conclusions that contradict themselves, and with the warnings that go first."""
    people = diagnosis.people
    diagnosis.groups = [group for group in diagnosis.groups if not _is_contradicted(people, group)]
    result = (
        _partial(people, rewards, pass_field), _idle(people, score), _constant(people, rewards), _blank(diagnosis),
        _of_most(people, "unexplained", diagnosis.unexplained, UNEXPLAINED), _by_gold(diagnosis), _by_form(diagnosis),
        _unanimous(diagnosis), _of_most(people, "undetermined", _labelled(diagnosis, "undetermined"), 0.5), _small(people),
    )  # fmt: skip
    diagnosis.trust += [entry for entry in result if entry is not None]
    order = {"alarm": 0, "warning": 1, "note": 2}
    # data first, since nothing else means much where rows are grouped wrongly; then by rows concerned
    diagnosis.trust.sort(key=lambda entry: (order[entry.level], entry.label != "DA", -int(entry.rows.sum()) * (entry.level == "alarm")))
    return diagnosis


def _is_contradicted(people: Population, group: Group) -> bool:
    """Whether most rows of a group speak against its own name: an empty rollout has no steps, a cut one no pass rate."""
    if group.name.startswith("empty"):
        has = sum(row.has_output for row in people.of(group.rows))
        return bool(has > 0.5 * group.rows.sum())
    return bool(group.passed > group.rows.sum()) and group.label in ("IR", "TI")


def _labelled(diagnosis: Diagnosis, *labels: str) -> Mask:
    """The rows of all groups with one of some labels."""
    return explained(diagnosis.people, (group for group in diagnosis.groups if group.label in labels))


def _of_most(people: Population, kind: str, rows: Mask, least: float) -> Trust | None:
    """That some rows lose more than a share of the lost points."""
    lost = float(people.lost[people.failed].sum())
    share = float(people.lost[rows].sum()) / lost if lost else 0.0
    return warning(f"tripwires.{kind}", people, rows, share=share) if share > least else None


def _listed(names: list[str], most: int) -> str:
    return ", ".join(names[:most]) + (", …" if len(names) > most else "")


def _idle(people: Population, score: float | None) -> Trust | None:
    """The score of doing nothing, where it is near the score."""
    has = people.where(lambda row: row.expected is not None)
    if score is None or not people.n or has.mean() < 0.9 or not graded_tools(people):
        return None
    still, demanded = nothing_due(people), demanding(people)
    idle = still & ~demanded
    passes = int((people.passed & idle).sum())
    if not passes or idle.all():
        return None
    n_tasks, n_idle, due = people.n_tasks(~people.none), people.n_tasks(idle), ~idle
    n_spared = people.n_tasks(idle & people.where(lambda row: row.expected_at == ADOPTED))
    spared = f", and {n_spared:,} more {'task passes without what it expects' if n_spared == 1 else 'tasks pass without what they expect'}"
    return warning(
        "tripwires.idle", people, idle, level="warning" if abs(score - n_idle / n_tasks) <= NEAR else "note",
        baseline=n_idle / n_tasks, due_none=n_idle - n_spared, tasks=n_tasks, passes=passes,
        spared=spared if n_spared else "", all_passes=int(people.passed.sum()), due=int(due.sum()), due_rate=people.rate(due),
        due_passes=int(people.passed[due].sum()), told="or a result to be told " if (still & demanded).any() else "",
    )  # fmt: skip


def _constant(people: Population, rewards: np.ndarray) -> Trust | None:
    if people.n < 2 or people.is_unscored:
        return None
    # where partial credit differs from row to row, it was computed
    if not people.passed.any() and np.unique(rewards[np.isfinite(rewards)]).size <= 1:
        return warning("tripwires.nothing passes", people, ~people.none)
    return warning("tripwires.all pass", people, ~people.none, tasks=people.n_tasks(~people.none)) if people.passed.all() else None


def _blank(diagnosis: Diagnosis) -> Trust | None:
    """Rollouts that end without a word, where passes end with one."""
    people = diagnosis.people
    blank = people.where(lambda row: not row.final.strip() and row.has_response and not row.acts)
    n, passes = int(blank.sum()), int(people.passed[blank].sum())
    if n <= BLANK * people.n or passes > BLANK * people.passed.sum():
        return None
    if any((blank & entry.rows).sum() >= 0.5 * n for entry in diagnosis.trust if entry.level != "note"):
        return None  # said already
    return warning("tripwires.blank", people, blank, passes=passes)


def _by_gold(diagnosis: Diagnosis) -> Trust | None:
    """That most failures are told by a difference from the expected calls, which nobody has checked."""
    people = diagnosis.people
    rows = explained(people, (group for group in diagnosis.groups if any("expected calls themselves" in doubt for doubt in group.against)))
    if not rows.any() or rows.sum() < 0.5 * people.failed.sum():
        return None
    never = [people.name_of(task) for task in np.unique(people.task[rows]).tolist() if not people.passed[people.task == task].any()]
    which = f" of the tasks that never pass ({_listed(never, 5)})" if never else ""
    return warning("tripwires.by gold", people, rows, failed=int(people.failed.sum()), which=which)


def _by_form(diagnosis: Diagnosis) -> Trust | None:
    """That failures of one group may be the grader's or the task's, as the group itself says against its label."""
    people = diagnosis.people
    doubtful = [(group, doubt) for group in diagnosis.groups for doubt in group.against if doubt.endswith("(TI)")]
    rows = explained(people, (group for group, _ in doubtful))
    if not rows.any() or rows.sum() < FORM * people.failed.sum():
        return None
    largest = max(doubtful, key=lambda pair: int(pair[0].rows.sum()))[1]
    return warning("tripwires.by form", people, rows, doubt=largest.removesuffix(" (TI)"))


def _unanimous(diagnosis: Diagnosis) -> Trust | None:
    """Tasks that never pass although all their repeats give one and the same closed answer: golds to review."""
    people, known = diagnosis.people, diagnosis.reference
    if known is None or not known.is_telling or not people.has_repeats:
        return None
    rows, names = people.none, []
    measured = _labelled(diagnosis, "TI", "IR", "DA")  # a fault of the measurement says nothing about the expected answer
    for task in np.unique(people.task[people.failed & known.held & ~measured]).tolist():
        own = people.task == task
        if own.sum() < 3 or (own & (measured | people.passed | ~known.held | known.same)).any():
            continue
        if len({value_of(known.answer[i] or "") for i in np.flatnonzero(own)}) == 1:
            rows |= own
            names.append(people.name_of(task))
    if not names or len(names) > 0.5 * people.n_tasks(~people.none):
        return None
    return warning("tripwires.unanimous", people, rows, tasks=len(names), which=_listed(names, 8))


def _small(people: Population) -> Trust | None:
    n_tasks = people.n_tasks(~people.none)
    if n_tasks > SMALL or people.n < 2:
        return None
    tries = "one try each" if not people.has_repeats else f"{people.n / n_tasks:.3g} tries each"
    return warning("tripwires.small", people, ~people.none, tasks=n_tasks, tries=tries, points=100 / n_tasks)


def _partial(people: Population, rewards: np.ndarray, pass_field: str | None) -> Trust | None:
    """That the mean reward is no rate, where rewards are partial credit or leave 0 to 1."""
    levels = np.unique(np.round(rewards[np.isfinite(rewards)], 9))
    if levels.size <= 2 or set(levels.tolist()) <= {0.0, 1.0}:
        return None
    empty = people.where(lambda row: not row.has_output and row.has_response)
    floor = float(np.mean(rewards[empty])) if empty.sum() >= 3 else 0.0
    return warning(
        "tripwires.partial", people, ~people.none, low=levels.min(), high=levels.max(), mean=float(np.mean(rewards)),
        passes=int(people.passed.sum()), by=f" (`{pass_field}` is 1)" if pass_field else "", floor=floor if floor > 0.05 else 0,
    )  # fmt: skip
