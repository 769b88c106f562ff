"""Check the conclusions before they are printed, and say what a reader must know before the causes."""

from __future__ import annotations

import numpy as np

from blade.answers import value_of
from blade.diagnose.expected_calls import ADOPTED, demanding, graded_tools, nothing_due
from blade.diagnose.ladder import Diagnosis
from blade.diagnose.population import Group, Population, Trust, count

NEAR = 0.10  # distance of the do-nothing baseline from the score that is told
UNEXPLAINED = 0.25
FORM = 0.1  # share of the failures whose label a doubt concerns, from which it is told
BLANK = 0.05  # share of rollouts without a final text
SMALL = 30  # tasks up to which one task is worth telling


def checked(
    diagnosis: Diagnosis, score: float | None, rewards: np.ndarray, pass_field: str | None = None
) -> Diagnosis:
    """The diagnosis without conclusions that contradict themselves, and with the warnings that go first."""
    people = diagnosis.people
    diagnosis.groups = [group for group in diagnosis.groups if not _is_contradicted(people, group)]
    result = [
        _partial(people, rewards, pass_field), _idle(people, score), _constant(people, rewards), _blank(diagnosis), _unexplained(diagnosis),
        _by_gold(diagnosis), _by_form(diagnosis), _unanimous(diagnosis), _undetermined(diagnosis),
        _small(people),
    ]  # fmt: skip
    diagnosis.trust += [one for one in result if one is not None]
    order = {"alarm": 0, "warning": 1, "note": 2}
    # data first, since nothing else means much where rows are grouped wrongly; then by rows concerned
    diagnosis.trust.sort(
        key=lambda entry: (order[entry.level], entry.label != "DA", -int(entry.rows.sum()) if entry.level == "alarm" else 0)
    )
    return diagnosis


def _is_contradicted(people: Population, group: Group) -> bool:
    """Whether most rows of a group speak against its own name: an empty rollout has no steps, a cut one no pass rate."""
    if group.name.startswith("empty"):
        has = sum(row.has_output for row in people.of(group.rows))
        return bool(has > 0.5 * group.rows.sum())
    return bool(group.passed > group.rows.sum()) and group.label in ("IR", "TI")


def _idle(people: Population, score: float | None) -> Trust | None:
    """The score of doing nothing, where it is near the score."""
    has = people.where(lambda row: row.expected is not None)
    if score is None or not people.n or has.mean() < 0.9:
        return None
    graded = graded_tools(people)
    still, told = nothing_due(people), demanding(people)
    idle = still & ~told
    if not graded or not idle.any() or idle.all():
        return None
    n_tasks, n_idle = people.n_tasks(~people.none), people.n_tasks(idle)
    n_spared = people.n_tasks(idle & people.where(lambda row: row.expected_at == ADOPTED))
    baseline = n_idle / n_tasks
    passes = int((people.passed & idle).sum())
    if not passes:
        return None
    due = ~idle
    entry = f", and {n_spared:,} more {'task passes without what it expects' if n_spared == 1 else 'tasks pass without what they expect'}"
    spared = entry if n_spared else ""
    text = (
        f"Doing nothing would score up to {baseline:.0%}: {n_idle - n_spared:,} of {n_tasks:,} tasks expect no action (no write){spared}. "
        f"{passes:,} of the {int(people.passed.sum()):,} passes are of that kind; where an action "
        f"{'or a result to be told ' if (still & told).any() else ''}is due, "
        f"{int(people.passed[due].sum()):,} of {int(due.sum()):,} rollouts pass ({people.rate(due):.1%})."
    )
    is_near = abs(score - baseline) <= NEAR
    return Trust("warning" if is_near else "note", None, text, idle)


def _constant(people: Population, rewards: np.ndarray) -> Trust | None:
    if people.n < 2 or people.is_unscored:
        return None
    if not people.passed.any():
        if np.unique(rewards[np.isfinite(rewards)]).size > 1:
            return None  # partial credit differs from row to row, so it was computed
        text = f"Nothing passes (0 of {people.n:,} rollouts): check that rewards were computed at all before reading causes."
        return Trust("warning", None, text, ~people.none)
    if people.passed.all():
        text = (
            f"All {people.n:,} rollouts pass: the set is at its ceiling ({people.n_tasks(~people.none):,} tasks) and cannot rank "
            "models that are this good."
        )
        return Trust("note", None, text, ~people.none)
    return None


def _blank(diagnosis: Diagnosis) -> Trust | None:
    """Rollouts that end without a word, where passes end with one."""
    people = diagnosis.people
    blank = people.where(lambda row: not row.final.strip() and row.has_response and not row.acts)
    n = int(blank.sum())
    if n <= BLANK * people.n or people.passed[blank].sum() > BLANK * people.passed.sum():
        return None
    if any((blank & entry.rows).sum() >= 0.5 * n for entry in diagnosis.trust if entry.level != "note"):
        return None  # said already
    text = f"{n:,} of {people.n:,} rollouts end without any final text; {int(people.passed[blank].sum()):,} of them pass."
    return Trust("warning", None, text, blank)


def _unexplained(diagnosis: Diagnosis) -> Trust | None:
    people, rows = diagnosis.people, diagnosis.unexplained
    lost = float(people.lost[people.failed].sum())
    share = float(people.lost[rows].sum()) / lost if lost else 0.0
    if share <= UNEXPLAINED:
        return None
    text = f"{share:.0%} of the lost points are unexplained: BLADE found no reason why {int(rows.sum()):,} rollouts fail."
    return Trust("warning", None, text, rows)


def _by_gold(diagnosis: Diagnosis) -> Trust | None:
    """That most failures are told by a difference from the expected calls, which nobody has checked."""
    people, rows = diagnosis.people, diagnosis.people.none
    for group in diagnosis.groups:
        if any("expected calls themselves" in doubt for doubt in group.against):
            rows |= group.rows
    n = int(rows.sum())
    if not n or n < 0.5 * people.failed.sum():
        return None
    never = [task for task in np.unique(people.task[rows]).tolist() if not people.passed[people.task == task].any()]
    names = ", ".join(people.name_of(task) for task in never[:5])
    which = f" of the tasks that never pass ({names}{', …' if len(never) > 5 else ''})" if never else ""
    text = (
        f"{n:,} of {int(people.failed.sum()):,} failures are described by how their calls differ from the expected ones, which may "
        f"be wrong themselves: review the expected calls{which} before you count them as faults of the model."
    )
    fix = f"Review the expected calls{which}: are they what the task asks for? Only then count the differences as faults of the model."
    return Trust("note", None, text, rows, fix)


def _by_form(diagnosis: Diagnosis) -> Trust | None:
    """That failures of one group may be the grader's or the task's, as the group itself says against its label."""
    people = diagnosis.people
    doubtful = [(group, doubt) for group in diagnosis.groups for doubt in group.against if doubt.endswith("(TI)")]
    rows = people.none
    for group, _ in doubtful:
        rows |= group.rows
    n = int(rows.sum())
    if not n or n < FORM * people.failed.sum():
        return None
    largest = max(doubtful, key=lambda pair: int(pair[0].rows.sum()))[1]
    text = f"In {count(n, 'failure')} the task or the grader may be at fault and not the model: {largest.removesuffix(' (TI)')}."
    return Trust("note", None, text, rows)


def _unanimous(diagnosis: Diagnosis) -> Trust | None:
    """Tasks that never pass although all their repeats give one and the same closed answer: golds to review."""
    people, known = diagnosis.people, diagnosis.reference
    if known is None or not known.is_telling or not people.has_repeats:
        return None
    rows, names = people.none, []
    measured = people.none  # rows that a fault of the measurement explains say nothing about the expected answer
    for group in diagnosis.groups:
        if group.label in ("TI", "IR", "DA"):
            measured |= group.rows
    for task in np.unique(people.task[people.failed & known.held & ~measured]).tolist():
        own = people.task == task
        if measured[own].any():
            continue
        answers = {value_of(known.answer[i] or "") for i in np.flatnonzero(own)}
        if own.sum() >= 3 and not people.passed[own].any() and known.held[own].all() and len(answers) == 1 and not known.same[own].any():
            rows |= own
            names.append(people.name_of(task))
    if not names or len(names) > 0.5 * people.n_tasks(~people.none):
        return None
    which = f"{', '.join(names[:8])}{', …' if len(names) > 8 else ''}"
    text = (
        f"In {count(len(names), 'task')} ({which}) all repeats give the same answer, and it is not the expected one: a wrong expected "
        "answer and a knowledge gap look the same, so review these expected answers first."
    )
    return Trust("note", None, text, rows)


def _undetermined(diagnosis: Diagnosis) -> Trust | None:
    """That for most lost points the rows show what happened, but not why."""
    people, rows = diagnosis.people, diagnosis.people.none
    for group in diagnosis.groups:
        if group.label == "undetermined":
            rows |= group.rows
    lost = float(people.lost[people.failed].sum())
    share = float(people.lost[rows].sum()) / lost if lost else 0.0
    if share <= 0.5:
        return None
    text = f"For {share:.0%} of the lost points the rows show what happened, but not whether the model or the task is to blame."
    return Trust("note", None, text, rows)


def _small(people: Population) -> Trust | None:
    n_tasks = people.n_tasks(~people.none)
    if n_tasks > SMALL or people.n < 2:
        return None
    tries = "one try each" if not people.has_repeats else f"{people.n / n_tasks:.3g} tries each"
    text = f"Small set: {n_tasks:,} tasks, {tries}; one task is {100 / n_tasks:.1f} points of the score."
    return Trust("note", None, text, ~people.none)


def _partial(people: Population, rewards: np.ndarray, pass_field: str | None) -> Trust | None:
    """That the mean reward is no rate, where rewards are partial credit or leave 0 to 1."""
    levels = np.unique(np.round(rewards[np.isfinite(rewards)], 9))
    if levels.size <= 2 or set(levels.tolist()) <= {0.0, 1.0}:
        return None
    empty = people.where(lambda row: not row.has_output and row.has_response)
    floor = (
        f" An empty answer earns {float(np.mean(rewards[empty])):.2f} on average, so much of the mean is a floor."
        if empty.sum() >= 3 and float(np.mean(rewards[empty])) > 0.05
        else ""
    )
    by = f" (`{pass_field}` is 1)" if pass_field else ""
    text = (
        f"The reward is partial credit ({levels.min():g} to {levels.max():g}), so its mean ({float(np.mean(rewards)):.2f}) is not a "
        f"rate of solved tasks: {int(people.passed.sum()):,} of {people.n:,} rollouts are fully right{by}.{floor}"
    )
    return Trust("warning", None, text, ~people.none)
