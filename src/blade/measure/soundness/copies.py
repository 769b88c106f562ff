"""Find prompts, golds and outputs that stand where they should not: doubled, copied, given away."""

from __future__ import annotations

from collections.abc import Iterable

from blade.measure.health import share
from blade.measure.soundness.rows import MANY, Rows, collected, count, named
from blade.measure.soundness.sounding import HARD, Heard, Sounding
from blade.measure.soundness.verdicts import NOTHING, Found, by_task
from blade.model import PROMPT, Cause, Level, Suspicion

MOSTLY = 0.8  # distinct prompts per task from which two equal ones are an exception
LONG = 1500  # characters from which an output does not come twice by chance


def duplicate_prompts(rows: Rows) -> Found:
    """Tasks that ask the same in the same words and expect the same."""
    groups = _same_prompt(rows.tasks)
    doubled = [group for group in groups if len({task.identity for task in group}) == 1]
    if not doubled:
        return NOTHING
    n_told = sum(task.prompt != 0 for task in rows.tasks)
    surplus = sum(len(group) - 1 for group in doubled)
    text = (
        f"{count(surplus, 'task')} of {n_told:,} repeat the prompt of another task word for word "
        f"({named(task.task for group in doubled for task in group)}): the score counts them as "
        "separate tasks."
    )
    level = Level.WARNING if surplus > MANY * n_told else Level.INFO
    cited = rows.cited([(task, task.heard[0]) for task in doubled[0]], PROMPT)
    return rows.flag("duplicate_prompts", level, text, surplus, n_told, cited), {}


def conflicting_gold(rows: Rows) -> Found:
    """Tasks that ask the same in the same words and expect something else."""
    split = [group for group in _same_prompt(rows.tasks) if len({task.identity for task in group} - {0}) > 1]
    inside = [task for task in rows.tasks if task.prompt and task.gold and not task.same_gold]
    concerned = [task for group in split for task in group] + inside
    if not concerned:
        return NOTHING
    keys = dict.fromkeys(task.task for task in concerned)
    text = (
        f"{len(keys):,} of {count(len(rows.tasks), 'task')} share a prompt, word for word, with rows "
        "that expect "
        f"something else ({named(keys)}): at most one of the golds can be right."
    )
    places = by_task((task, task.heard[0]) for task in concerned if task.heard)
    fields = [task.gold_field or task.actions_field for task in concerned]
    field = next((name for name in fields if name), PROMPT)
    cited = [rows.quoted(task.heard[0].position, field) for task in concerned[:3] if task.heard]
    told = [one for one in cited if one is not None]
    level = Level.PROBLEM if len(keys) > MANY * len(rows.tasks) else Level.WARNING
    health = rows.flag("conflicting_gold", level, text, len(keys), len(rows.tasks), told)
    said = "the same prompt stands elsewhere with another gold"
    return health, collected(places, rows, health.flag, HARD, said, Cause.DATA_ARTIFACT, field)


def _same_prompt(tasks: Iterable[Sounding]) -> list[list[Sounding]]:
    """Tasks with one prompt, if prompts usually tell tasks apart."""
    groups: dict[int, list[Sounding]] = {}
    for task in tasks:
        if task.prompt and task.heard:
            groups.setdefault(task.prompt, []).append(task)
    if not groups or len(groups) < MOSTLY * sum(map(len, groups.values())):
        return []
    return [group for group in groups.values() if len(group) > 1]


def copied_rows(rows: Rows) -> Found:
    """Outputs that stand byte for byte under tasks that ask something else.

    Where responses carry ids of their own, a copy carries those of its original. Where they do not, only a
    long output is taken for a copy: two tasks may well be solved by the same command.
    """
    every = list(rows.every())
    ids = {one.made for _, one in every} - {0}
    has_ids = len(ids) >= MOSTLY * len(every)
    groups: dict[tuple[int, int], list[tuple[Sounding, Heard]]] = {}
    for task, one in every:
        if one.output and (has_ids or one.size >= LONG):
            groups.setdefault((one.output, one.made if has_ids else 0), []).append((task, one))
    copied = [group for group in groups.values() if len({task.task for task, _ in group}) > 1]
    copied = [group for group in copied if len({task.prompt for task, _ in group} - {0}) != 1]
    if not copied:
        return NOTHING
    places = [place for group in copied for place in group]
    text = (
        f"{share(len(places), rows.n_rows)} have an output that also stands, byte for byte, under "
        "another task, in "
        f"{named(task.task for task, _ in places)}; {named(task.task for task, _ in copied[0])} have "
        "the same. "
        "Rows were copied to other keys, the inputs are alike, or the model was not asked."
    )
    n_copies = sum(len(group) - 1 for group in copied)
    level = Level.PROBLEM if n_copies > MANY * rows.n_rows and len(copied) > 2 else Level.WARNING
    cited = rows.cited(places, "response.output")
    health = rows.flag("copied_rows", level, text, len(places), rows.n_rows, cited)
    said = "the output of {rollouts} stands byte for byte under another task too"
    points = HARD if has_ids else 2
    return health, collected(
        by_task(places), rows, health.flag, points, said, Cause.DATA_ARTIFACT, "response.output"
    )


def leaks(rows: Rows) -> Found:
    """Golds that the model can read before it answers."""
    golds = [task for task in rows.tasks if rows.has_gold(task)]
    shown = [task for task in golds if task.leak == "prompt"]
    in_tools = [task for task in golds if task.leak == "tools"]
    if not shown and not in_tools:
        return NOTHING
    text = (
        f"The gold answer stands word for word in the prompt of {len(shown):,} and in the tool "
        "descriptions of "
        f"{len(in_tools):,} of {count(len(golds), 'task')} ({named(task.task for task in in_tools + shown)})."
    )
    text += " An option or a passage to search may hold it rightly." if shown else ""
    level = Level.WARNING if in_tools else Level.INFO
    cited = [task.leaked for task in in_tools + shown if task.leaked is not None]
    health = rows.flag("gold_in_prompt", level, text, len(shown) + len(in_tools), len(golds), cited)
    told = "the gold answer stands in the tool descriptions"
    return health, {
        task.task: Suspicion(
            task.task,
            health.flag,
            2,
            Cause.DATA_ARTIFACT,
            told,
            (task.leaked,) if task.leaked is not None else (),
        )
        for task in in_tools
    }
