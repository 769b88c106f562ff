"""Write the dossier of one task: what is needed to judge it, in plain text of bounded length."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from blade import number_format
from blade.agent.dossier import case as commands
from blade.agent.dossier import outcomes, proposal, request, trajectory
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
    page = Page(budget * UNIT)
    head = _head(of, budget, budget)
    page.room -= price(head)
    _fill(page, of, budget)
    body = page.lines()
    used = budget
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
    lines = [
        f"# dossier of one task: {bucket}, {lost} of the score; {used:,} tokens of {budget:,}",
        behind("run", of.facts.run.name, 24),
        behind("task", of.task, 24),
    ]
    name = result.task_name if result is not None else ""
    if name and name != of.task:
        lines.append(behind("name", name, 24))
    return [*lines, RULE]


def _fill(page: Page, of: Case, budget: int) -> None:
    """Add every part in the order of print, then raise them in the order of what helps most to judge."""
    scale = max(1.0, budget / BUDGET)
    small, some, much = (int(size * scale) for size in (40, 110, 260))

    def titled(title: str, *levels: Callable[[], list[str]]) -> Part:
        def level(lines: Callable[[], list[str]]) -> Callable[[], list[str]]:
            return lambda: [f"## {title}", *shown] if (shown := lines()) else []

        return page.add(*map(level, levels))

    task = titled(
        "task",
        lambda: [*request.request(of, 80), *request.expected(of, 60)],
        lambda: [*request.request(of, much), *request.expected(of, much)],
        lambda: [*request.request(of, 3 * much), *request.expected(of, much)],
    )
    ends = titled(
        "outcomes",
        lambda: outcomes.counted(of),
        lambda: [*outcomes.counted(of), *outcomes.listed(of, 20)],
        lambda: [*outcomes.counted(of), *outcomes.listed(of, small)],
    )
    changes = page.add(lambda: outcomes.changes(of, 32), lambda: outcomes.changes(of, small))
    cause = titled(
        "proposal of the engine",
        lambda: proposal.proposed(of),
        lambda: [*proposal.proposed(of), *proposal.grounds(of, small)],
        lambda: [*proposal.proposed(of), *proposal.grounds(of, some)],
    )
    flags = page.add(lambda: proposal.flags(of, small), lambda: proposal.flags(of, some))
    sides = titled(
        "beside a passing rollout", lambda: outcomes.beside(of, small), lambda: outcomes.beside(of, some)
    )
    page.raise_to(page.add(lambda: trajectory.title(of)))
    path = trajectory.Trajectory(page, of, scale)
    verifier = titled(
        "verifier and row", lambda: request.verdict(of.focus, 30), lambda: request.verdict(of.focus, some)
    )
    near, more = page.add(lambda: commands.near(of)), page.add(lambda: commands.more(of))
    label = page.add(lambda: commands.label(of))
    for part in (cause, ends, label, near):
        page.raise_to(part)
    for index in of.candidates[:1]:
        path.step(index, 0)
    for part in (verifier, task, sides, more):
        page.raise_to(part)
    _raise(page, of, path, (cause, ends, flags, changes, sides, verifier, task))
    path.finish()


def _raise(page: Page, of: Case, path: trajectory.Trajectory, parts: tuple[Part, ...]) -> None:
    """Give the parts more room, the most useful first; a task that loses nothing needs none of it."""
    cause, ends, flags, changes, sides, verifier, task = parts
    for index in of.candidates[:2]:
        path.step(index, 1)
    page.raise_to(flags)
    for part in (task, cause, ends, verifier):
        page.raise_to(part, 1)
    page.raise_to(changes)
    path.raise_all(path.outline(), 0)
    if of.cause is None:
        return
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


__all__ = ["BUDGET", "LEAST", "MOST", "Dossier", "check_budget", "dossier"]
