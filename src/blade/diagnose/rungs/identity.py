"""Ask whether rows are grouped as they were run: does a task index hold one prompt, and a prompt one index.

Fires on any run whose indices were assigned by file position or by shard, so that repeats of a prompt lie under several
indices or several prompts under one; stays silent where every row has a prompt of its own, as with simulated users.
"""

from __future__ import annotations

import re
from collections import defaultdict

import numpy as np

from blade.diagnose.answers import value_of
from blade.diagnose.population import Findings, Group, Ints, Population, Trust, count

REGULAR = 0.9  # share of rows in prompts of the commonest size
SHIFTED = 0.4  # share of the rollouts that answer what another task expects
STRANGE = 0.8  # share of rollouts that speak of other tasks alone
CROSSED = 0.5  # share of indices that hold several prompts


def by_content(people: Population) -> Ints | None:
    """The tasks of the rows by prompt and gold, where rows are proved to be grouped wrongly; else None."""
    has_prompt = people.where(lambda row: row.prompt)
    if people.n < 6 or has_prompt.mean() < 0.9:
        return None
    known: dict[tuple[int, int], int] = {}
    content = np.array(
        [known.setdefault((row.prompt, row.gold), len(known)) for row in people.rows], np.int64
    )
    sizes = np.bincount(content)
    usual = int(np.bincount(sizes).argmax())
    if usual < 2 or len(sizes) < 3 or (sizes[content] == usual).mean() < REGULAR:
        return None
    if not people.has_repeats:
        return content if (people.size == 1).mean() >= REGULAR else None
    pairs = np.unique(np.stack([content, people.task]), axis=1)
    spread = np.bincount(pairs[0], minlength=len(sizes))
    held = np.bincount(pairs[1])
    several = (held[np.unique(people.task)] > 1).mean() >= CROSSED
    is_crossed = (spread > 1).mean() >= CROSSED
    # prompts that lie within one index each, and repeat more regularly than the indices do
    is_finer = (spread == 1).all() and (people.size == int(np.bincount(people.size).argmax())).mean() < REGULAR
    return content if several and (is_crossed or is_finer) else None


def _strangers(people: Population) -> Trust | None:
    """Rollouts that speak of what the prompts of other tasks name, and of nothing that their own names."""
    tasks: defaultdict[str, set[int]] = defaultdict(set)
    for at, row in enumerate(people.rows):
        for name in row.asked:
            tasks[name].add(int(people.task[at]))
    few = max(1, 0.2 * people.n_tasks(~people.none))
    telling = {name for name, held in tasks.items() if len(held) <= few}
    asked = odd = 0
    for row in people.rows:
        own, spoken = telling & set(row.asked), telling & set(row.named)
        if own and spoken:
            asked += 1
            odd += not own & spoken
    if asked < max(6, 0.5 * people.n) or odd < STRANGE * asked:
        return None
    text = (
        f"The rollouts do not belong to their tasks: {odd:,} of {asked:,} speak of names and numbers that only other tasks' prompts "
        "hold, and of none of their own. Rewards and causes by task are meaningless."
    )
    return Trust("alarm", "DA", text, ~people.none, "Join prompts and rollouts again by a key that both carry.")


def _shifted(people: Population) -> Group | None:
    """Answers that are the gold of another task and not of their own: the golds were joined to the wrong rows."""
    tasks: defaultdict[object, set[int]] = defaultdict(set)
    for row, task in zip(people.rows, people.task.tolist(), strict=True):
        if row.gold_text:
            tasks[value_of(row.gold_text)].add(task)
    n_tasks = len({task for held in tasks.values() for task in held})
    if n_tasks < 6 or len(tasks) < 0.8 * n_tasks:
        return None  # golds that many tasks share tell none of them apart
    own, other = people.none, people.none
    for at, (row, task) in enumerate(zip(people.rows, people.task.tolist(), strict=True)):
        values = {value_of(text) for name, text in row.answers.items() if name in ("box", "tag", "announced", "whole", "line")}
        held = [tasks[value] for value in values if value in tasks]
        own[at] = any(task in places for places in held)
        other[at] = bool(held) and not own[at]
    if other.sum() < SHIFTED * people.n or own.sum() > 0.1 * people.n:
        return None
    return Group(
        rung="identity", label="DA", name="expected answers of other tasks", rows=other & people.failed, matched=other,
        text=f"The expected answers belong to other tasks: {int(other.sum()):,} of {people.n:,} rollouts answer exactly what another task "
        f"expects, and only {int(own.sum()):,} what their own does. The score says nothing about the model.",
        fix="Join tasks and expected answers again by a key that both carry, and score the stored answers anew.",
        why="the answers are right for other rows of the same file", confidence="proved",
        passed=int(people.passed[other].sum()), blame=lambda row: None,
        place=lambda row: (row.final_step, "") if row.final_step is not None else None,
    )  # fmt: skip


def _copies(people: Population) -> Trust | None:
    """Rows that equal another one in everything the model said and in the times that were taken."""
    times = [path for path in people.paths if _is_time(people, path)]
    if not times:
        return None
    seen: defaultdict[tuple[object, ...], list[int]] = defaultdict(list)
    for at, row in enumerate(people.rows):
        if row.digest:
            seen[row.digest, *(row.fields.get(path) for path in times)].append(at)
    rows = people.none
    for places in seen.values():
        rows[places[1:]] = True
    n = int(rows.sum())
    if not n:
        return None
    kind = "is a copy" if n == 1 else "are copies"
    text = f"{count(n, 'row')} {kind} of another: the same words and the same times. They are no repeats."
    level = "alarm" if n > 0.1 * people.n else "warning"
    return Trust(level, "DA", text, rows, "Drop the copies, or find out why the same rollout was stored twice.")


_TIME = re.compile(r"_(?:ms|s|sec|secs|seconds|ns|us)$|time|latency|duration|elapsed", re.IGNORECASE)


def _is_time(people: Population, path: str) -> bool:
    """Whether a field is a measured amount: large or fractional numbers that seldom occur twice but in copies."""
    column = people.columns[path]
    is_named = _TIME.search(path.rpartition(".")[2]) is not None  # whole numbers are times only where they are called so
    values = [
        value
        for value in column
        if (isinstance(value, float) and not value.is_integer()) or (is_named and isinstance(value, int) and value > 100)
    ]
    if len(values) < 0.5 * people.n or len(set(values)) < 0.2 * len(values):
        return False
    # what is the same in repeats of a task that say different things describes the task
    told: defaultdict[int, set[tuple[int, object]]] = defaultdict(set)
    for row, task, value in zip(people.rows, people.task.tolist(), column, strict=True):
        told[task].add((row.digest, value))
    several = [held for held in told.values() if len({digest for digest, _ in held}) > 1]
    return not several or sum(len({value for _, value in held}) == 1 for held in several) < 0.5 * len(several)


def _outcomes(people: Population, content: Ints) -> str:
    """How many tasks by content always, sometimes and never pass."""
    rates = [people.rate(content == task) for task in np.unique(content)]
    always, never = sum(rate == 1 for rate in rates), sum(rate == 0 for rate in rates)
    return f" ({always} always pass, {len(rates) - always - never} sometimes, {never} never)"


def ask(people: Population) -> tuple[Findings, Ints | None]:
    """What is wrong with the grouping, and the tasks by content to go on with."""
    content = by_content(people)
    others = [doubt for doubt in (_strangers(people), _copies(people)) if doubt is not None]
    shifted = _shifted(people)
    groups = [shifted] if shifted is not None else []
    others += [Trust("alarm", "DA", group.text, group.rows, group.fix) for group in groups]
    if content is None:
        return Findings(groups, others), None
    n_prompts, n_index = len(np.unique(content)), people.n_tasks(~people.none)
    usual = int(np.bincount(np.bincount(content)).argmax())
    if people.has_repeats:
        several = [len(np.unique(content[people.task == task])) for task in np.unique(people.task)]
        most = max(several)
        mixed = sum(count > 1 for count in several)
        text = (
            f"The task index does not identify a task: {mixed} of {n_index} indices mix up to {most} different prompts. "
            f"By prompt there are {n_prompts} tasks with {usual} rollouts each{_outcomes(people, content)}. Per-task rates, pass@k and "
            "flaky tasks by index are meaningless; the causes below are found by prompt."
        )
    else:
        text = (
            f"Every row has its own task index, but the prompts repeat: {n_prompts} different prompts, {usual} rollouts "
            f"each{_outcomes(people, content)}. These are repeats that were numbered as tasks; the causes below are found by prompt."
        )
    fix = "Number tasks by prompt before computing pass@k or per-task rates."
    return Findings(groups, [Trust("alarm", "DA", text, ~people.none, fix), *others]), content
