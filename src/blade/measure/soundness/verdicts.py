"""Hold verdicts against what was judged: one answer judged twice, gold rejected, nothing done."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from blade import stats
from blade.measure.health import share
from blade.measure.soundness import matching
from blade.measure.soundness.rows import Rows, answers_openly, at_zero, collected, count, named
from blade.measure.soundness.sounding import (
    EQUAL,
    EXPLICIT,
    HARD,
    NEAR,
    OTHER,
    SCALED,
    Heard,
    Sounding,
)
from blade.model import Cause, Evidence, Finding, Health, Level, Suspicion

SYSTEMATIC = 0.9  # share of rejected gold answers from which the verifier rejects them as such
EXCEPTION = 0.1  # share up to which a rejected gold answer is an exception
ENOUGH = 5  # gold answers that allow to say so
SEVERAL = 20  # gold answers from which it shows that a verifier judges more than the answer
MOSTLY = 0.8  # share of passes that equal the gold from which the others stand out
SURE = 0.02  # rate of contradicted verdicts that must lie below the interval to call it a problem
UNANIMOUS, VOTES = 0.75, 4

Found = tuple[Health | None, Mapping[str, Suspicion]]
Place = tuple[Sounding, Heard]
Places = dict[str, list[Place]]
NOTHING: Found = (None, {})


def nondeterministic(rows: Rows) -> Found:
    """Rollouts of one task that say the same and are judged otherwise."""
    same = split = 0
    places: Places = {}
    for task in rows.tasks:
        if not task.same_gold:
            continue  # rows that expect different things are rightly judged differently
        for group in _identical(task, rows.heard(task)):
            verdicts = [_verdict(rows, one) for one in group]
            pairs = len(group) * (len(group) - 1) // 2
            alike = sum(verdicts.count(value) * (verdicts.count(value) - 1) // 2 for value in set(verdicts))
            same += pairs
            if alike < pairs:
                split += pairs - alike
                first = [group[verdicts.index(value)] for value in sorted(set(verdicts))]
                places.setdefault(task.task, []).extend((task, one) for one in first)
    interval = stats.wilson(split, same)
    if not split or interval is None:
        return NOTHING
    text = (
        f"{split:,} of {same:,} pairs of identical results within a task ({split / same:.1%}, "
        f"95% interval {interval.low:.1%} to {interval.high:.1%}) have different verdicts, "
        f"in {named(places)}: the verifier does not judge by the result alone."
    )
    level = Level.PROBLEM if interval.low > SURE and len(places) > 2 else Level.WARNING
    cited = rows.cited(place for found in places.values() for place in found)
    health = rows.flag("nondeterministic_verifier", level, text, split, same, cited)
    return health, collected(
        places, rows, health.flag, HARD, "the same result is judged differently, as in {rollouts}"
    )


def _verdict(rows: Rows, one: Heard) -> float:
    return float(rows.passed(one)) if rows.judged else round(rows.score(one), 9)


def _identical(task: Sounding, heard: Sequence[Heard]) -> Iterator[list[Heard]]:
    """Groups of rollouts that a verifier cannot tell apart.

    Byte for byte the same output; or the same explicit answer to the same prompt, where nothing was changed;
    or the same changes with the same last words, where nobody was talked to before.
    """
    leader = {one.position: one.position for one in heard}

    def root(place: int) -> int:
        while leader[place] != place:
            place = leader[place]
        return place

    seen: dict[tuple[str, int, int], int] = {}
    for one in heard:
        keys: list[tuple[str, int, int]] = []
        if one.output:
            keys.append(("output", one.output, 0))
        if one.kind in EXPLICIT and task.prompt and not one.n_writes:
            keys.append(("answer", one.spelled, 0))
        if one.state and one.final and not one.has_user and task.prompt:
            keys.append(("state", one.state, one.final))
        for key in keys:
            leader[root(one.position)] = root(seen.setdefault(key, one.position))
    groups: dict[int, list[Heard]] = {}
    for one in heard:
        groups.setdefault(root(one.position), []).append(one)
    yield from (group for group in groups.values() if len(group) > 1)


def gold_rejected(rows: Rows) -> Found:
    """Rollouts that answer with the gold and get nothing."""
    if not rows.judged:
        return NOTHING
    equal = [
        (task, one)
        for task, one in rows.every()
        if rows.by_answer(task) and one.relation in EQUAL and answers_openly(one)
    ]
    rejected = [(task, one) for task, one in equal if at_zero(rows.reward(one)) and not rows.passed(one)]
    if not rejected:
        return NOTHING
    part, whole = len(rejected), len(equal)
    how = [f"{n:,} {name}" for name in EQUAL if (n := sum(one.relation == name for _, one in rejected))]
    text = f"{share(part, whole)} that answer with the gold are scored 0 (match: {', '.join(how)}), "
    text += f"in {named(task.task for task, _ in rejected)}"
    systematic = whole >= ENOUGH and part >= SYSTEMATIC * whole
    sure = [place for place in rejected if not _is_often(place[1].relation, equal, rejected)]
    if systematic:
        text += ": the verifier rejects right answers as such"
    elif not sure:
        text += ": so often that it may judge more than the answer"
    level = Level.PROBLEM if systematic else Level.WARNING if sure else Level.INFO
    health = rows.flag("gold_rejected", level, f"{text}.", part, whole, rows.cited(rejected))
    said = "the gold as the answer is scored 0 in {rollouts}"
    return health, collected(by_task(sure), rows, health.flag, HARD, said)


def _is_often(relation: str, equal: Sequence[Place], rejected: Sequence[Place]) -> bool:
    """Whether answers that match so are rejected neither as an exception nor as a rule."""
    whole = sum(one.relation == relation for _, one in equal)
    part = sum(one.relation == relation for _, one in rejected)
    return whole >= SEVERAL and EXCEPTION * whole < part < SYSTEMATIC * whole


def wrong_accepted(rows: Rows) -> Found:
    """Passes that answer otherwise than the gold, where passes otherwise equal it."""
    if not rows.judged:
        return NOTHING
    passes = [
        (task, one)
        for task, one in rows.every()
        if rows.passed(one)
        and rows.by_answer(task)
        and task.is_plain
        and one.kind in EXPLICIT
        and one.relation
    ]
    equal = sum(one.relation in EQUAL for _, one in passes)
    other = [(t, one) for t, one in passes if one.relation == OTHER and matching.is_plain(one.answer)]
    if not other or equal < MOSTLY * len(passes) or len(passes) < ENOUGH:
        return NOTHING
    text = (
        f"{share(len(other), len(passes))} that pass give another answer than the gold, in "
        f"{named(task.task for task, _ in other)}; {equal:,} of the passes equal it."
    )
    return rows.flag(
        "wrong_answer_accepted", Level.INFO, text, len(other), len(passes), rows.cited(other)
    ), {}


def near_miss(rows: Rows) -> Found:
    """Failures whose number is the gold but for rounding or a power of ten."""
    if not rows.judged:
        return NOTHING
    failed = [
        (task, one)
        for task, one in rows.every()
        if not rows.passed(one) and rows.by_answer(task) and answers_openly(one) and one.relation
    ]
    near = [(task, one) for task, one in failed if one.relation == NEAR]
    scaled = [(task, one) for task, one in failed if one.relation == SCALED]
    if not near and not scaled:
        return NOTHING
    text = (
        f"{share(len(near) + len(scaled), len(failed))} that fail with an answer miss the gold number "
        "narrowly: "
        f"{len(near):,} by at most 1%, {len(scaled):,} by a factor of 10, 100 or 1,000, in "
        f"{named(task.task for task, _ in near + scaled)}. A tolerance or a unit may be at fault; so "
        "may the model."
    )
    part = len(near) + len(scaled)
    health = rows.flag("near_miss_to_gold", Level.INFO, text, part, len(failed), rows.cited(near + scaled))
    return health, collected(
        by_task(near), rows, health.flag, 1, "the answer of {rollouts} is within 1% of the gold"
    )


def does_nothing(rows: Rows) -> Found:
    """Passes without a call where the task expects a change, or where all other passes make one."""
    if not rows.judged:
        return NOTHING
    idle = []
    for task in rows.tasks:
        passes = [one for one in rows.heard(task) if rows.passed(one)]
        working = sum(one.n_writes > 0 for one in passes)
        for one in passes:
            silent = one.n_items > 0 and not one.output  # without any item there is another flag
            expected = task.n_expected_writes > 0
            alone = task.n_expected_writes < 0 and 2 <= working == len(passes) - 1
            if silent or (not one.n_calls and (expected or alone)):
                idle.append((task, one))
    if not idle:
        return NOTHING
    n_passes = sum(rows.passed(one) for _, one in rows.every())
    places = by_task(idle)
    text = (
        f"{share(len(idle), n_passes)} that pass do nothing, in {named(places)}, though these tasks expect a "
        "change or all other passes make one: the verifier may pass anything."
    )
    level = Level.PROBLEM if len(idle) > 0.05 * n_passes and len(idle) > 2 else Level.WARNING
    health = rows.flag(
        "do_nothing_passes", level, text, len(idle), n_passes, rows.cited(idle, "response.output")
    )
    return health, collected(places, rows, health.flag, HARD, "{rollouts} pass without doing anything")


def nothing_expected(rows: Rows) -> Found:
    """How many tasks an agent passes that changes nothing and says nothing."""
    listed = [task for task in rows.tasks if task.n_expected_writes >= 0]
    empty = [task for task in listed if not task.n_expected_writes and not task.asks_words]
    if not empty:
        return NOTHING
    text = (
        f"{len(empty):,} of {count(len(listed), 'task')} ({len(empty) / len(listed):.1%}) expect no "
        "change and no "
        "words: an agent that does nothing may pass them."
    )
    cited = [
        rows.quoted(task.heard[0].position, task.actions_field or "") for task in empty[:3] if task.heard
    ]
    told = [one for one in cited if one is not None]
    return rows.flag("do_nothing_baseline", Level.INFO, text, len(empty), len(listed), told), {}


def unsatisfiable(rows: Rows) -> Found:
    """Tasks that expect a call to a tool that is not there."""
    expecting = [task for task in rows.tasks if task.n_expected_writes > 0 or task.undeclared]
    lacking = [task for task in expecting if task.undeclared]
    if not lacking:
        return NOTHING
    tools = sorted({tool for task in lacking for tool in task.undeclared})
    text = f"{len(lacking):,} of {count(len(expecting), 'task')} expect a tool that is not declared: "
    text += (
        f"{', '.join(tools[:5])}{', ...' if len(tools) > 5 else ''} ({named(task.task for task in lacking)})."
    )
    if len(lacking) > len(expecting) / 2:
        # most tasks cannot all be impossible: the expected calls are likelier named otherwise
        text += " In most tasks: the names in the expected calls may be of another kind."
        return rows.flag("unsatisfiable_tasks", Level.INFO, text, len(lacking), len(expecting)), {}
    found: dict[str, Suspicion] = {}
    for task in lacking:
        cited = rows.quoted(task.heard[0].position, task.actions_field or "") if task.heard else None
        said = f"the expected calls need {', '.join(task.undeclared[:3])}, which is not declared"
        evidence = (cited,) if cited is not None else ()
        found[task.task] = Suspicion(
            task.task, "unsatisfiable_tasks", HARD, Cause.TASK_OR_VERIFIER, said, evidence
        )
    told: list[Evidence] = [one for suspicion in found.values() for one in suspicion.evidence]
    return rows.flag("unsatisfiable_tasks", Level.WARNING, text, len(lacking), len(expecting), told), found


def exploited(rows: Rows, exploits: Mapping[int, Finding]) -> Found:
    """Passes that a finding says were won against the verifier."""
    passed = [(task, one) for task, one in rows.every() if one.position in exploits and rows.passed(one)]
    if not passed:
        return NOTHING
    n_passes = sum(rows.passed(one) for _, one in rows.every())
    places = by_task(passed)
    cited = [evidence for _, one in passed for evidence in exploits[one.position].evidence[:1]]
    text = (
        f"{share(len(passed), n_passes)} that pass touch the tests or the scoring itself, in {named(places)}."
    )
    level = Level.PROBLEM if len(passed) > 0.05 * n_passes else Level.WARNING
    found = {}
    for key, of_task in places.items():
        first = exploits[of_task[0][1].position]
        said = f"{count(len(of_task), 'passing rollout')} touch the tests or the scoring: {first.summary}"
        found[key] = Suspicion(key, "tests_touched", HARD, Cause.TASK_OR_VERIFIER, said, first.evidence[:1])
    return rows.flag("tests_touched", level, text, len(passed), n_passes, cited), found


def unanimous_wrong(rows: Rows) -> Found:
    """Tasks on which one run gives the same wrong answer nearly always."""
    if not rows.judged:
        return NOTHING
    found: Places = {}
    n_tasks = 0
    for task in rows.tasks:
        voting = [one for one in rows.heard(task) if answers_openly(one)]
        if not rows.by_answer(task) or len(voting) < VOTES:
            continue
        n_tasks += 1
        if top := consensus(voting, rows):
            found[task.task] = [(task, one) for one in voting if one.answer == top]
    if not found:
        return NOTHING
    text = (
        f"On {len(found):,} of {count(n_tasks, 'task')} with a gold answer at least {UNANIMOUS:.0%} of "
        "the repeats "
        f"give the same wrong answer ({named(found)}): a wrong key, or a firm error of the model."
    )
    cited = rows.cited([places[0] for places in found.values()])
    return rows.flag("unanimous_wrong", Level.INFO, text, len(found), n_tasks, cited), {}


def consensus(voting: Sequence[Heard], rows: Rows) -> str | None:
    """The wrong answer that nearly all rollouts of a task give."""
    tally: dict[str, int] = defaultdict(int)
    for one in voting:
        if one.relation == OTHER and not rows.passed(one):
            tally[one.answer] += 1
    top = max(sorted(tally), key=lambda answer: tally[answer], default=None)
    return top if top is not None and tally[top] >= UNANIMOUS * len(voting) else None


def by_task(places: Iterable[tuple[Sounding, Heard]]) -> Places:
    found: Places = {}
    for task, one in places:
        found.setdefault(task.task, []).append((task, one))
    return found
