"""Ask whether rows are grouped as they were run: does a task index hold one prompt, and a prompt one index.

Fires on any run whose indices were assigned by file position or by shard, so that repeats of a prompt lie under several
indices or several prompts under one; stays silent where every row has a prompt of its own, as with simulated users.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise, product
from typing import Any

import numpy as np

from blade.answers import value_of
from blade.diagnose.evidence import RowEvidence
from blade.diagnose.groups import Findings, Group, Trust, group, warning
from blade.diagnose.population import Ints, Population
from blade.stats.intervals import special

REGULAR = 0.9  # share of rows in prompts of the commonest size
SHIFTED = 0.4  # share of the rollouts that answer what another task expects
LEAST_SLIPPED, LEAST_GOLDS = 10, 5  # tasks that answer their neighbour's gold, and different golds among them
SLIPPED, LEAST_PART = 0.5, 4  # share of the failing tasks of a part that do, and failing tasks that it has
SLIPPED_PASS, LEAST_CHANCE = 0.2, 0.01  # pass rate of these tasks, and agreement by chance at least
MAX_PARTS, MAX_ORDERS, MAX_OTHERS = 12, 3, 200  # fields that are tried, and golds that chance is measured on
LEVEL = 1e-4
WORDS = 4  # characters from which an expected answer is looked for in a text
STRANGE = 0.8  # share of rollouts that speak of other tasks alone
CROSSED = 0.5  # share of indices that hold several prompts


def by_content(people: Population) -> Ints | None:
    """The tasks of the rows by prompt and gold, where rows are proved to be grouped wrongly; else None."""
    has_prompt = people.where(lambda row: row.prompt)
    if people.n < 6 or has_prompt.mean() < 0.9:
        return None
    known: dict[tuple[int, int], int] = {}
    content = np.array([known.setdefault((row.prompt, row.gold), len(known)) for row in people.rows], np.int64)
    sizes = np.bincount(content)
    usual = int(np.bincount(sizes).argmax())
    if usual < 2 or len(sizes) < 3 or (sizes[content] == usual).mean() < REGULAR:
        return None
    if not people.has_repeats:
        return content if (people.size == 1).mean() >= REGULAR else None
    pairs = np.unique(np.stack([content, people.task]), axis=1)
    spread = np.bincount(pairs[0], minlength=len(sizes))
    present = np.bincount(pairs[1])
    several = (present[np.unique(people.task)] > 1).mean() >= CROSSED
    is_crossed = (spread > 1).mean() >= CROSSED
    # prompts that lie within one index each, and repeat more regularly than the indices do
    is_finer = (spread == 1).all() and (people.size == int(np.bincount(people.size).argmax())).mean() < REGULAR
    return content if several and (is_crossed or is_finer) else None


def _strangers(people: Population) -> Trust | None:
    """Rollouts that speak of what the prompts of other tasks name, and of nothing that their own names."""
    prompts: defaultdict[str, set[int]] = defaultdict(set)
    rollouts: defaultdict[str, set[int]] = defaultdict(set)
    for row, task in zip(people.rows, people.task.tolist(), strict=True):
        for name in row.asked:
            prompts[name].add(task)
        for name in row.named:
            rollouts[name].add(task)
    few = max(1, 0.2 * people.n_tasks(~people.none))
    # a word that rollouts of many tasks say is how the model speaks, whichever prompt holds it
    telling = {name for name, present in prompts.items() if max(len(present), len(rollouts[name])) <= few}
    pairs = ((telling & set(row.asked), telling & set(row.named)) for row in people.rows)
    strange = [own.isdisjoint(spoken) for own, spoken in pairs if own and spoken]
    if len(strange) < max(6, 0.5 * people.n) or sum(strange) < STRANGE * len(strange):
        return None
    return warning("identity.strangers", people, ~people.none, odd=sum(strange), asked=len(strange))


def _shifted(people: Population) -> Group | None:
    """Answers that are the gold of another task and not of their own: the golds were joined to the wrong rows."""
    tasks: defaultdict[object, set[int]] = defaultdict(set)
    for row, task in zip(people.rows, people.task.tolist(), strict=True):
        if row.gold_text:
            tasks[value_of(row.gold_text)].add(task)
    n_tasks = len({task for present in tasks.values() for task in present})
    if n_tasks < 6 or len(tasks) < 0.8 * n_tasks:
        return None  # golds that many tasks share tell none of them apart
    answered = [set[int]().union(*(tasks[value] for value in _values(row) if value in tasks)) for row in people.rows]
    own = np.array([task in places for task, places in zip(people.task.tolist(), answered, strict=True)], bool)
    other = np.array(list(map(bool, answered)), bool) & ~own
    if other.sum() < SHIFTED * people.n or own.sum() > 0.1 * people.n:
        return None
    return group("identity.shifted", people, other, people.failed, other=int(other.sum()), own=int(own.sum()))


def _neighbours(people: Population) -> Group | None:
    """Failing answers that are the gold of the task beside theirs, in part of the run: there the golds slipped by one."""
    first = dict(reversed([(task, row) for row, task in zip(people.rows, people.task.tolist(), strict=True)]))
    golds = {task: row.gold_text.strip() for task, row in first.items() if row.gold_text.strip()}
    if len(set(golds.values())) < LEAST_GOLDS or not people.passed.any():
        return None
    failing = {int(people.task[i]): int(i) for i in np.flatnonzero(people.failed)[::-1] if int(people.task[i]) in golds}
    ways = list(_ways(people, first, golds))
    slips = [_slip(people, golds, failing, *way) for way in ways]
    slip, n_hits, n_asked = max(slips, key=lambda result: len(result[0]))  # task -> the one whose gold it answers
    phrase = {task: people.rows[failing[task]] for task in slip}
    if len(slip) < LEAST_SLIPPED or len({golds[task] for task in slip}) < LEAST_GOLDS:
        return None
    others = list(golds.values())[:MAX_OTHERS]
    chance = float(np.mean([_answers(row, gold) for row in phrase.values() for gold in others]))
    # over all parts, not only those that were chosen; the choice of the order is paid for
    if float(special().bdtrc(n_hits - 1, n_asked, max(chance, LEAST_CHANCE))) * len(ways) > LEVEL:
        return None
    rows = people.failed.copy()
    for i in np.flatnonzero(rows).tolist():
        near = slip.get(int(people.task[i]))
        rows[i] = near is not None and _answers(people.rows[i], golds[near])
    if people.rate(np.isin(people.task, list(slip))) > SLIPPED_PASS:
        return None
    return group("identity.neighbours", people, rows, slipped=len(slip), chance=chance)


def _ways(people: Population, first: dict[int, RowEvidence], golds: dict[int, str]) -> Iterator[tuple[dict[int, Any], dict[int, Any], int]]:
    """Ways to part the tasks, to order them, and to step; `first` is a row of each task.

    Parts: none, or by each field that describes tasks and has few values. Orders: as they are numbered, or by a field of numbers that
    seldom repeat.
    """
    parts: list[dict[int, Any]] = [{}]
    orders: list[dict[int, Any]] = [{task: task for task in golds}]
    for path, (_, values) in people.task_level.items():
        column = {task: first[task].fields.get(path) for task in golds}
        parts += [column] if 2 <= len(values) <= 0.3 * len(golds) else []
        orders += [column] if len(values) >= 0.8 * len(golds) and {int} == set(map(type, column.values())) else []
    return product(parts[: MAX_PARTS + 1], orders[:MAX_ORDERS], (-1, 1))


def _slip(
    people: Population, golds: dict[int, str], failing: dict[int, int], part: dict[int, Any], order: dict[int, Any], step: int
) -> tuple[dict[int, int], int, int]:
    """The tasks that answer the gold of the one beside them, in the parts where most failing ones do; how many of all that fail."""
    parted: defaultdict[object, list[int]] = defaultdict(list)
    for task in sorted(golds, key=lambda task: order[task]):
        parted[part.get(task)].append(task)
    result: dict[int, int] = {}
    n_hits = n_asked = 0
    for tasks in parted.values():
        near = {entry: other for pair in pairwise(tasks) for entry, other in [pair if step > 0 else pair[::-1]]}
        requests = [task for task in tasks if task in failing and task in near and golds[near[task]] != golds[task]]
        hits = {task: near[task] for task in requests if _answers(people.rows[failing[task]], golds[near[task]])}
        n_hits, n_asked = n_hits + len(hits), n_asked + len(requests)
        if len(requests) >= LEAST_PART and len(hits) >= SLIPPED * len(requests):
            result |= hits
    return result, n_hits, n_asked


def _answers(row: RowEvidence, gold: str) -> bool:
    """Whether a row answers with a value, or says it in words that a text can be searched for."""
    return value_of(gold) in _values(row) or (len(gold) >= WORDS and gold.casefold() in row.final.casefold())


def _values(row: RowEvidence) -> set[object]:
    """What a row answers, wherever its text gives it."""
    return {value_of(text) for name, text in row.answers.items() if name in ("box", "tag", "announced", "whole", "line")}


def _copies(people: Population) -> Trust | None:
    """Rows that equal another one in everything the model said and in the times that were taken."""
    times = [path for path in people.paths if _is_time(people, path)]
    if not times:
        return None
    seen = people.places(lambda row: [(row.digest, *(row.fields.get(path) for path in times))] if row.digest else [])
    rows = people.mask(i for places in seen.values() for i in places[1:])
    if not rows.any():
        return None
    level = "alarm" if rows.sum() > 0.1 * people.n else "warning"
    return warning("identity.copies", people, rows, level=level, kind="is a copy" if rows.sum() == 1 else "are copies")


_TIME = re.compile(r"_(?:ms|s|sec|secs|seconds|ns|us)$|time|latency|duration|elapsed", re.IGNORECASE)


def _is_time(people: Population, path: str) -> bool:
    """Whether a field is a measured amount: large or fractional numbers that seldom occur twice but in copies."""
    column = people.columns[path]
    is_named = _TIME.search(path.rpartition(".")[2]) is not None  # whole numbers are times only where they are called so
    fractions = [value for value in column if isinstance(value, float) and not value.is_integer()]
    values = fractions + [value for value in column if is_named and isinstance(value, int) and value > 100]
    if len(values) < 0.5 * people.n or len(set(values)) < 0.2 * len(values):
        return False
    # what is the same in repeats of a task that say different things describes the task
    text: defaultdict[int, set[tuple[int, object]]] = defaultdict(set)
    for row, task, value in zip(people.rows, people.task.tolist(), column, strict=True):
        text[task].add((row.digest, value))
    several = [present for present in text.values() if len({digest for digest, _ in present}) > 1]
    return not several or sum(len({value for _, value in present}) == 1 for present in several) < 0.5 * len(several)


def ask(people: Population) -> tuple[Findings, Ints | None]:
    """What is wrong with the grouping, and the tasks by content to go on with."""
    content = by_content(people)
    doubts = [entry for entry in (_strangers(people), _copies(people)) if entry is not None]
    shifted = _shifted(people) or _neighbours(people)
    if shifted is not None:
        doubts.append(Trust("alarm", "DA", shifted.text, shifted.rows, shifted.fix))
    findings = Findings([shifted] if shifted is not None else [], doubts)
    if content is not None:
        rates = [people.rate(content == task) for task in np.unique(content)]
        mixed = [n for task in np.unique(people.task) if (n := len(np.unique(content[people.task == task]))) > 1]
        always, never = rates.count(1), rates.count(0)
        doubts.insert(0, warning(
            "identity.mixed" if people.has_repeats else "identity.numbered", people, ~people.none, mixed=len(mixed),
            indices=people.n_tasks(~people.none), most=max(mixed, default=1), prompts=len(rates),
            usual=int(np.bincount(np.bincount(content)).argmax()), always=always, never=never, sometimes=len(rates) - always - never,
        ))  # fmt: skip
    return findings, content
