"""Write the dossier of one task: what is needed to judge it, in plain text of bounded length."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import msgspec

from blade import number_format
from blade.agent.dossier import case as commands
from blade.agent.dossier import chapters
from blade.agent.dossier.budget import RULE, UNIT, Page, Part, behind, price, tokens
from blade.agent.dossier.case import Case, case
from blade.errors import UsageError
from blade.model import Trace
from blade.report.run_facts import Facts

BUDGET = 3500  # tokens of a dossier: by any tokenizer under 4,000, whatever the text
LEAST, MOST = 600, 100_000
_FEW = 4  # steps of a rollout whose one answer is worth reading at length


class Dossier(msgspec.Struct, frozen=True):
    """What an analyst needs to judge one task."""

    run: str
    task: str
    text: str
    tokens: int  # as estimated; common tokenizers count fewer
    budget: int

    def __str__(self) -> str:
        return self.text


def check_budget(budget: int) -> None:
    """Refuse a budget that is too small for any dossier, or absurdly large."""
    if not LEAST <= budget <= MOST:
        hint = f"give {LEAST} to {MOST} tokens; the default is {BUDGET}"
        raise UsageError(f"a budget of {budget} tokens is out of range", hint, "usage")


def dossier(
    facts: Facts, task: str, traces: Sequence[Trace], budget: int = BUDGET, repeat: int | None = None
) -> Dossier:
    """Write the dossier of a task from its rows; `repeat` is the rollout to read closely, if not the blamed one."""
    check_budget(budget)
    of = case(facts, task, traces, repeat)
    page = Page(budget * UNIT - price(_head(of, budget, budget)))
    _fill(page, of, max(1.0, budget / BUDGET))
    body, used = page.lines(), budget
    for _ in range(4):  # the count is part of the text that it counts
        text = "\n".join([*_head(of, used, budget), *body]) + "\n"
        if tokens(text) == used:
            break
        used = tokens(text)
    return Dossier(facts.run.name, task, text, tokens(text), budget)


def _head(of: Case, used: int, budget: int) -> list[str]:
    result, cause = of.result, of.cause
    bucket = f"{result.bucket} passes" if result is not None and result.bucket else "no bucket"
    lost = f"loses {number_format.size(cause.lost)}" if cause is not None else "loses nothing"
    name = result.task_name if result is not None else ""
    return [
        f"# dossier of one task: {bucket}, {lost} of the score; {used:,} tokens of {budget:,}",
        behind("run", of.facts.run.name, 24),
        behind("task", of.task, 24),
        *([behind("name", name, 24)] if name and name != of.task else []),
        RULE,
    ]


def _fill(page: Page, of: Case, scale: float) -> None:
    """Add every part in the order of print, then raise them in the order of what helps most to judge."""
    small, some, much = (int(size * scale) for size in (40, 110, 260))

    def add(chapter: Callable[[Case, Any], list[str]], *rooms: Any, title: str = "") -> Part:
        def level(room: Any) -> list[str]:
            lines = chapter(of, room)
            return [f"## {title}", *lines] if title and lines else lines

        return page.add(*(partial(level, room) for room in rooms))

    task = add(chapters.task, (80, 60), (much, much), (3 * much, much), title="task")
    ends = add(chapters.ends, 0, 20, small, title="outcomes")
    changes = add(chapters.changes, 32, small)
    cause = add(chapters.proposal, 0, small, some, title="proposal of the engine")
    flags = add(chapters.flags, small, some)
    sides = add(chapters.beside, small, some, title="beside a passing rollout")
    page.raise_to(page.add(partial(chapters.focus_title, of)))
    path = chapters.Trajectory(page, of, scale)
    verifier = add(chapters.verdict, 30, some, title="verifier and row")
    near, more, label = (page.add(partial(lines, of)) for lines in (commands.near, commands.more, commands.label))
    for part in (cause, ends, label, near):
        page.raise_to(part)
    path.raise_all(of.candidates[:1], 0)
    for part in (verifier, task, sides, more):
        page.raise_to(part)
    path.raise_all(of.candidates[:2], 1)
    page.raise_to(flags)
    for part in (task, cause, ends, verifier):
        page.raise_to(part, 1)
    page.raise_to(changes)
    path.raise_all(path.outline(), 0)
    if of.cause is not None:  # a task that loses nothing needs no more room
        page.raise_to(task, 2)  # what was asked decides more often than anything else
        page.raise_to(sides, 1)
        path.raise_all(of.candidates[2:5], 1)
        path.raise_all(path.telling()[:1], 1)
        if len(path.steps) <= _FEW:
            path.raise_all(of.candidates[:1], 2)
        page.raise_to(cause, 2)
        page.raise_to(flags, 1)
        if of.is_open:
            page.raise_to(ends, 2)
            path.raise_all(path.telling(), 1)
        page.raise_to(changes, 1)
        page.raise_to(ends, 2)
        # a second look at the rollout costs more than what is left here
        path.raise_all(path.resting(), 1)
    path.finish()
