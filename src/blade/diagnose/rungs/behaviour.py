"""Ask what failing rollouts do that passing ones of the same task do not: calls, omissions, errors, loops.

Within tasks where they repeat; between tasks it is called a lead. Acts that only failing rollouts can have, such as a
failed last call where episodes stop on success, are consequences and no candidates.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from itertools import takewhile

from blade.diagnose.cover import Candidate, Contrast, cover
from blade.diagnose.evidence import RowEvidence
from blade.diagnose.population import Findings, Group, Mask, Population, count
from blade.diagnose.rungs.cut import common_error, is_best_of_many, is_looping, shown_error

MAX_TOOLS, MAX_TEMPLATES = 40, 60
MAX_SPOKEN = 15  # opening words of messages up to which they are taken for tools


def ask(people: Population, left: Mask) -> Findings:
    return Findings(cover(people, list(_candidates(people)), left))


def tools_of(people: Population) -> list[str]:
    """The tools of a run; where tools are spoken, the opening words of messages if they are few."""
    seen = Counter(tool for row in people.rows for tool in dict.fromkeys(act.tool for act in row.acts))
    is_spoken = sum(row.is_spoken and row.n_acts > 0 for row in people.rows) > 0.5 * people.n
    common = [tool for tool, n in seen.most_common(MAX_TOOLS) if n >= 2]
    if is_spoken:
        total = sum(row.n_acts for row in people.rows)
        acts = Counter(act.tool for row in people.rows for act in row.acts)
        top = acts.most_common(MAX_SPOKEN)
        if sum(n for _, n in top) < 0.8 * max(total, 1) or all(row.n_acts <= 1 for row in people.rows):
            return []
        return [tool for tool, n in top if n >= 0.01 * total]
    return common


def _candidates(people: Population) -> Iterator[Candidate]:
    for tool in tools_of(people):
        yield _candidate(people, f"never {tool}", partial(_never_calls, tool), _never(tool), 1)
        yield _candidate(people, f"calls {tool}", partial(_calls_it, tool), _calls(tool), 3)
    templates = Counter(
        t for row in people.rows for t in dict.fromkeys(act.template for act in row.acts if act.template)
    )
    for template, n in templates.most_common(MAX_TEMPLATES):
        if n >= 3:
            yield _candidate(people, f"error {template}", partial(_meets, template), _error(people, template), 2)
    if not is_best_of_many(people):
        # where episodes stop on success only failing rollouts are long enough to repeat themselves
        yield _candidate(people, "loops", _repeats, _loops(people), 4)


Holds = Callable[[RowEvidence], bool]


def _candidate(
    people: Population, name: str, holds: Holds, make: Callable[[Mask, Contrast], Group], order: int
) -> Candidate:
    def with_condition(rows: Mask, test: Contrast) -> Group:
        group = make(rows, test)
        group.holds = holds
        return group

    return Candidate(name, people.where(holds), with_condition, order)


def _never_calls(tool: str, row: RowEvidence) -> bool:
    return row.n_acts > 0 and all(act.tool != tool for act in row.acts)


def _calls_it(tool: str, row: RowEvidence) -> bool:
    """Whether a row calls a tool of its own accord: what follows an error may be its consequence."""
    before = takewhile(lambda act: not act.failed, row.acts)
    return any(act.tool == tool for act in before)


def _meets(template: str, row: RowEvidence) -> bool:
    return any(act.template == template for act in row.acts)


def _repeats(row: RowEvidence) -> bool:
    return row.n_acts >= 3 and is_looping(row)


def _contrasted(test: Contrast) -> str:
    where = "on the same tasks" if test.is_within else "between tasks (a lead: one try per task)"
    return f" {test.pass_with:.0%} pass with it, {test.pass_without:.0%} without, {where}."


def _confidence(test: Contrast) -> str:
    return "likely" if test.is_within else "unsure"


def _group(
    name: str, rows: Mask, text: str, fix: str, test: Contrast, place: object, tools: tuple[str, ...]
) -> Group:
    return Group(
        rung="behaviour", label="BI", name=name, rows=rows, text=text + _contrasted(test), fix=fix,
        why="rollouts that do this fail where others of the same task pass" if test.is_within
        else "rollouts that do this pass far less often",
        confidence=_confidence(test), place=place, deciding=tools,  # type: ignore[arg-type]
        against=[] if test.is_within else ["one try per task: hard tasks and bad behaviour cannot be told apart"],
    )  # fmt: skip


def _never(tool: str):  # type: ignore[no-untyped-def]
    def make(rows: Mask, test: Contrast) -> Group:
        return _group(
            f"never calls `{tool}`", rows, f"{count(int(rows.sum()), 'failure')}: `{tool}` is never called.",
            f"Have the model call `{tool}` before it acts on what only `{tool}` can tell.", test,
            lambda row: (row.acts[-1].step, "") if row.acts else None, (tool,),
        )  # fmt: skip

    return make


def _calls(tool: str):  # type: ignore[no-untyped-def]
    def make(rows: Mask, test: Contrast) -> Group:
        return _group(
            f"calls `{tool}`", rows, f"{count(int(rows.sum()), 'failure')}: `{tool}` is called.",
            f"Check when `{tool}` is the right choice, and say so in its description or in the prompt.", test,
            lambda row: next(((act.step, "") for act in row.acts if act.tool == tool), None), (tool,),
        )  # fmt: skip

    return make


def _error(people: Population, template: str):  # type: ignore[no-untyped-def]
    def make(rows: Mask, test: Contrast) -> Group:
        said = shown_error(people, rows, template, 120)
        return _group(
            f"error: {re.sub('<[a-z]+>', '…', template)[:70]}", rows,
            f"{count(int(rows.sum()), 'failure')}: a tool answers with this error: {said}.",
            "Show the model in the tool's description how to avoid this error, and have it change the call after it.", test,
            lambda row: next(((act.step, "") for act in row.acts if act.template == template), None), (),
        )  # fmt: skip

    return make


def _loops(people: Population):  # type: ignore[no-untyped-def]
    def make(rows: Mask, test: Contrast) -> Group:
        return _group(
            "repeats one call or one error", rows,
            f"{count(int(rows.sum()), 'failure')}: the same call or the same error three times or more{_most_often(people, rows)}.",
            "Stop or redirect the model when a call or an error repeats.", test, _first_error, (),
        )  # fmt: skip

    return make


def _first_error(row: RowEvidence) -> tuple[int, str] | None:
    return next(
        ((act.step, "") for act in row.acts if act.failed), (row.acts[0].step, "") if row.acts else None
    )


def _most_often(people: Population, rows: Mask) -> str:
    template, n = common_error(people, rows, 0.2)
    return f"; most often such as: {shown_error(people, rows, template)} ({count(n, 'rollout')})" if template else ""
