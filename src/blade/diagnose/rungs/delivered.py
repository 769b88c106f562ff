"""Ask whether the thing that is graded was handed over: the act or form that ends the passes, absent in failures.

Fires on agents that never submit, never write the file or answer outside the asked form; needs that hardly any pass lacks it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial

import numpy as np

from blade.diagnose.evidence import Act, RowEvidence
from blade.diagnose.population import Findings, Group, Mask, Population, count
from blade.diagnose.rungs.cut import act_name, common_error, is_looping, last_act, shown_error

ENDS = 0.9  # share of the passes that end so
PASSES = 5
LEAST = 2


def ask(people: Population, left: Mask) -> Findings:
    found = Findings()
    passes = [people.rows[at] for at in np.flatnonzero(people.passed)]
    if len(passes) < PASSES:
        return found
    for make in (_no_tools, _no_success, _no_end, _no_form):
        group = make(people, left, passes)
        if group is not None:
            left = left & ~group.rows
            found.groups.append(group)
    return found


def _has_no_acts(row: RowEvidence) -> bool:
    return row.n_acts == 0


def _has_no_success(row: RowEvidence) -> bool:
    return row.n_acts >= 2 and all(act.failed for act in row.acts)


def _no_success(people: Population, left: Mask, passes: list[RowEvidence]) -> Group | None:
    """Rows in which not one call succeeds, where every pass has one that does."""
    if not all(any(not act.failed for act in row.acts) for row in passes):
        return None
    rows = people.where(_has_no_success)
    n = int((rows & left).sum())
    if n < max(LEAST, 0.02 * left.sum()):
        return None
    template, n_template = common_error(people, rows & left, 0.2)
    error = f" Most often such as: {shown_error(people, rows & left, template)} ({n_template:,} rollouts)." if template else ""
    loops = sum(is_looping(people.rows[at]) for at in np.flatnonzero(rows & left))
    repeat = f" {loops:,} repeat the same call or the same error." if loops else ""
    return Group(
        rung="delivered", label="BI", name="no call ever succeeds", rows=rows & left,
        text=f"{count(n, 'failure')}: not one call succeeds, so there is no valid statement or request in the whole "
        f"rollout.{error}{repeat}",
        fix="Have the model look up the schema, names and formats that the tool accepts before it guesses, and change the "
        "call after an error.",
        why="every call answers with an error, so nothing that could be graded was produced", confidence="proved",
        matched=rows, holds=_has_no_success, place=lambda row: (row.acts[0].step, "") if row.acts else None,
    )  # fmt: skip


def _no_tools(people: Population, left: Mask, passes: list[RowEvidence]) -> Group | None:
    """Rows without any call where nearly all passes call tools."""
    if any(row.is_spoken for row in passes[:1]) or sum(row.n_acts > 0 for row in passes) < ENDS * len(passes):
        return None
    rows = people.where(_has_no_acts)
    n = int((rows & left).sum())
    if n < LEAST or people.passed[rows].any():
        return None
    return Group(
        rung="delivered", label="BI", name="no tool is called at all", rows=rows & left,
        text=f"{count(n, 'failure')}: no tool is called, only text is written; every pass works with tools.",
        fix="State in the prompt that the work must be done with the tools, and refuse an answer before any call.",
        why="nothing that could be graded was done", confidence="proved", matched=rows, holds=_has_no_acts,
        place=lambda row: (row.final_step, "") if row.final_step is not None else None,
    )  # fmt: skip


def _no_end(people: Population, left: Mask, passes: list[RowEvidence]) -> Group | None:
    """Rows that never make the call that ends the passes, or never with success."""
    for name in (lambda act: act.tool, act_name):
        ends = Counter(name(row.acts[-1]) for row in passes if row.acts)
        used = {name(act) for row in people.rows for act in row.acts}
        if not ends or len(used) < 2:
            continue
        last, n_ends = ends.most_common(1)[0]
        if n_ends < ENDS * len(passes):
            continue
        holds = partial(_lacks, name, last)
        rows = people.where(holds)
        n = int((rows & left).sum())
        if n < LEAST or people.rate(rows) > 0.1 * people.rate(~rows):
            continue
        tried = sum(
            any(name(act) == last for act in people.rows[at].acts) for at in np.flatnonzero(rows & left)
        )
        how = f" {tried:,} of them try it without success." if tried else ""
        called = f"never a successful `{last}`" if tried else f"never calls `{last}`"
        instead, n_instead = Counter(last_act(people.rows[at]) for at in np.flatnonzero(rows & left)).most_common(1)[0]
        if instead and n_instead >= 0.5 * n and n_instead >= LEAST and instead not in ends:
            how += f" {n_instead:,} of them end with `{instead}` instead, as no pass does."
            called = f"ends with `{instead}`, never `{last}`"
        return Group(
            rung="delivered", label="BI", name=called,
            rows=rows & left, matched=rows, passed=int(people.passed[rows].sum()), deciding=(last,),
            text=f"{count(n, 'failure')}: there is no successful `{last}`, the call that ends {n_ends:,} of {len(passes):,} passes, so "
            f"nothing was handed in.{how}",
            fix=f"Tell the model to finish with `{last}`, and remind it before the last turn.",
            why="the result that is graded was never handed over", confidence="proved",
            place=lambda row: (row.acts[-1].step, "") if row.acts else None, holds=holds,
        )  # fmt: skip
    return None


def _lacks(name: Callable[[Act], str], last: str, row: RowEvidence) -> bool:
    """Whether a row never makes a call of this name with success."""
    return all(name(act) != last or act.failed for act in row.acts)


def _no_form(people: Population, left: Mask, passes: list[RowEvidence]) -> Group | None:
    """Rows without the box or tag that nearly all passes answer in."""
    for form, words in (("box", "a box (\\boxed{})"), ("tag", "a tag")):
        if sum(form in row.answers for row in passes) < ENDS * len(passes):
            continue
        rows = people.where(lambda row: form not in row.answers)  # noqa: B023
        n = int((rows & left).sum())
        if n >= LEAST and people.rate(rows) <= 0.02:
            return Group(
                rung="delivered", label="BI", name="no answer in the asked form", rows=rows & left,
                text=f"{count(n, 'failure')}: no answer stands in {words}, as {ENDS:.0%} or more of the passes do.",
                fix=f"Repeat the asked form ({words}) at the end of the prompt, and ask again where it is missing.",
                why="the form that the grader reads is absent", confidence="likely", matched=rows,
                place=lambda row: (row.final_step, "") if row.final_step is not None else None,
            )  # fmt: skip
    return None
