"""Ask whether the thing that is graded was handed over: the act or form that ends the passes, absent in failures.

Fires on agents that never submit, never write the file or answer outside the asked form; needs that hardly any pass lacks it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from blade.diagnose.evidence import Act, RowEvidence
from blade.diagnose.population import Findings, Group, Mask, Population, Trust, at_end, count, joined, short
from blade.diagnose.rungs.cut import (
    BARRED_WHY,
    SHOW_TOOL,
    act_name,
    common_error,
    ends_on_success,
    fails_at_first,
    is_looping,
    last_act,
    repeated,
    shown_error,
)

ENDS = 0.9  # share of the passes that end so
PASSES = 5
LEAST = 2
EXCEPT = 0.02  # share of the passes that may have no call that succeeds
LEAST_MET = 3  # passes that met an error and got past it
CLOSED = 0.95  # share of the passes that make one of the calls that end passes
ENDING = 120  # characters of how a message ends
MAX_KINDS = 6  # values of a field that tells kinds of task apart


def ask(people: Population, left: Mask) -> Findings:
    findings = Findings()
    passes = people.of(people.passed)
    if len(passes) < PASSES:
        return findings
    findings.trust += _barred(people)
    for make in (_no_tools, _no_success, _stuck, _no_end, _no_close, _no_form):
        group = make(people, left, passes)
        if group is not None:
            left = left & ~group.rows
            findings.groups.append(group)
    return findings


def _barred(people: Population) -> list[Trust]:
    """A warning where nearly every first try ends in an error."""
    barred = fails_at_first(people)
    if barred is None:
        return []
    failed, n = barred
    rows = people.where(lambda row: row.acts and row.acts[0].failed)
    text = (
        f"The first try of {failed:,} of {n:,} rollouts ends in an error, whatever the task and whether the rollout passes later or not: "
        "the environment may need something that the prompt does not give (an import, a header, a set-up step)."
    )
    return [Trust("warning", None, text, rows)]


def _has_no_success(row: RowEvidence) -> bool:
    answered = [act for act in row.acts if act.is_answered]  # the last call may have been cut off
    return len(answered) >= 2 and all(act.failed for act in answered)


def _all_failed(row: RowEvidence) -> str:
    """How many calls of a row end in an error, and the commonest one."""
    errors = Counter(act.error for act in row.acts if act.failed and act.error).most_common(1)
    phrase = f", such as: {short(errors[0][0], 100)}" if errors else ""
    return f"{row.n_failed:,} of {count(row.n_acts, 'call')} end in an error{phrase}"


def _no_success(people: Population, left: Mask, passes: list[RowEvidence]) -> Group | None:
    """Rows in which not one call succeeds, where nearly every pass has one that does."""
    # a call may do the work and still count as failed: a pass in fifty at most, so none in a small run
    n_without = sum(all(act.failed for act in row.acts if act.is_answered) for row in passes)
    if n_without > EXCEPT * len(passes):
        return None
    barred = fails_at_first(people) is not None
    rows = people.where(_has_no_success)
    n = int((rows & left).sum())
    if n < max(LEAST, 0.02 * left.sum()):
        return None
    template, n_template = common_error(people, rows & left, 0.2)
    error = f" {n_template:,} of them meet errors like this one: {shown_error(people, rows & left, template)}." if template else ""
    loops = sum(is_looping(row) for row in people.of(rows & left))
    repeat = f" {loops:,} repeat the same call or the same error." if loops else ""
    return Group(
        rung="delivered", label="undetermined" if barred else "BI", name="no call ever succeeds", rows=rows & left,
        text=f"{count(n, 'failure')}: not one call succeeds, so the whole rollout holds no valid statement or request.{error}{repeat}",
        fix=SHOW_TOOL,
        why=BARRED_WHY if barred
        else "every call answers with an error, so nothing that could be graded was produced",
        confidence="unsure" if barred else "likely" if n_without else "proved", passed=int(people.passed[rows].sum()),
        matched=rows, holds=_has_no_success, detail=lambda i: _all_failed(people.rows[i]),
        place=lambda row: next(((act.step, "") for act in row.acts if not template or act.template == template), None),
    )  # fmt: skip


def _is_stuck(known: frozenset[str], by_call: bool, row: RowEvidence, end: int = 2) -> bool:
    """Whether of its last six acts three or more are one call, or meet one of some errors, and so does one of the last `end`."""
    if not row.is_spoken and max(row.most_made, row.most_met) < 3:
        return False
    acts = row.acts[-6:]
    errors = Counter(act.template for act in acts if act.template in known)
    calls = Counter(act.reply or act.key for act in acts) if by_call else Counter[int]()
    last = {act.template for act in acts[-end:]}, {act.reply or act.key for act in acts[-end:]}
    return any(n >= 3 and what in last[0] for what, n in errors.items()) or any(n >= 3 and what in last[1] for what, n in calls.items())


def _stuck(people: Population, left: Mask, passes: list[RowEvidence]) -> Group | None:
    """Rows that end on the same call or the same error again and again, where passes of that length get past it."""
    met = Counter(template for row in passes for template in {act.template for act in row.acts if act.template})
    # only an error that passes met too, and got past, can be overcome
    known = frozenset(template for template, times in met.items() if times >= LEAST_MET)
    long = sum(row.n_acts >= 6 for row in passes) >= PASSES
    for by_call in (True, False) if long else (False,):
        holds = partial(_is_stuck, known, by_call)
        rows = people.where(holds)
        # a pass that repeats itself and then gets past it shows that this is no end
        if sum(_is_stuck(known, by_call, row, 6) for row in passes) <= 0.02 * len(passes):
            break
    else:
        return None
    n = int((rows & left).sum())
    if n < max(LEAST, 0.1 * left.sum()):
        return None
    template, n_template = common_error(people, rows & left, 0.2)
    error = f" {n_template:,} of them meet errors like this one: {shown_error(people, rows & left, template)}." if template else ""
    n_met = sum(any(act.template in known for act in row.acts) for row in passes)
    return Group(
        rung="delivered", label="BI", name="repeats one call or one error to the end", rows=rows & left, matched=rows,
        text=f"{count(n, 'failure')}: the same call or the same kind of error comes again and again until the end.{error}"
        + (f" {count(n_met, 'pass', 'passes')} met such an error too and got past it." if n_met else ""),
        fix="Have the model read what it gets back and change the call, and stop or redirect it when one repeats; more turns would only "
        "prolong the loop.", passed=int(people.passed[rows].sum()),
        why="rollouts that get on pass, and these repeat themselves until they end", holds=holds,
        detail=lambda i: repeated(people.rows[i]),
        place=lambda row: (row.acts[-1].step, "") if row.acts else None,
    )  # fmt: skip


def _no_tools(people: Population, left: Mask, passes: list[RowEvidence]) -> Group | None:
    """Rows without any call where nearly all passes of their kind of task call tools."""
    silent = people.where(lambda row: row.is_spoken or row.n_acts == 0)
    rows = people.none
    kinds = list(_kinds(people))
    # kinds of task that pass without any call show that it is not due in all
    has_idle = any((people.passed & scope).sum() >= 3 and silent[people.passed & scope].all() for scope in kinds)
    for scope in kinds if has_idle else kinds[:1]:
        own = people.passed & scope
        if own.sum() >= PASSES and not silent[own].any():
            rows |= silent & scope
    n = int((rows & left).sum())
    if n < LEAST:
        return None
    return Group(
        rung="delivered", label="BI", name="no tool is called at all", rows=rows & left,
        text=f"{count(n, 'failure')}: no tool is called, only text is written; every pass of the same kind of task works with tools.",
        fix="State in the prompt that the work must be done with the tools, and refuse an answer before any call.",
        why="nothing that could be graded was done", confidence="proved", matched=rows,
        place=at_end,
    )  # fmt: skip


def _no_end(people: Population, left: Mask, passes: list[RowEvidence]) -> Group | None:
    """Rows that never make the call that ends the passes of their kind of task, or never with success."""
    if all(row.is_spoken and row.n_acts <= 1 for row in passes):
        return None  # single answers: no call ends them
    for scope in _kinds(people):
        mine = people.of(people.passed & scope)
        for name in (lambda act: act.tool, act_name):
            group = _ending(people, left, scope, mine, name) if len(mine) >= PASSES else None
            if group is not None:
                return group
    return None


def _no_close(people: Population, left: Mask, passes: list[RowEvidence]) -> Group | None:
    """Rows without any of the few calls that end nearly all passes, where what else there is to call ends hardly any."""
    if any(row.expected for row in passes):
        return None  # which calls are due is known, and tells more
    ends = Counter(row.acts[-1].tool for row in passes if row.acts and not row.is_spoken)
    closing = frozenset(tool for tool, n in ends.items() if n >= max(LEAST, 0.02 * len(passes)))
    used = {act.tool for row in passes for act in row.acts}
    n_closed = sum(any(act.tool in closing and not act.failed for act in row.acts) for row in passes)
    if not 2 <= len(closing) < len(used) or n_closed < CLOSED * len(passes):
        return None
    holds = partial(_leaves_open, closing)
    rows = people.where(holds)
    n = int((rows & left).sum())
    if n < max(LEAST, 0.1 * left.sum()) or people.rate(rows) > 0.1 * people.rate(~rows) or ends_on_success(people):
        return None
    finals = [row.final.strip()[-ENDING:] for row in people.of(rows & left)]
    asks = sum("?" in final for final in finals)
    named = joined(sorted(closing, key=lambda tool: -ends[tool]))
    how = f" {asks:,} of them end with a question." if asks >= 0.1 * n else ""
    name = "ends with a question instead of acting" if asks >= 0.5 * n else "stops before acting"
    return Group(
        rung="delivered", label="BI", name=name, rows=rows & left, matched=rows, passed=int(people.passed[rows].sum()),
        text=f"{count(n, 'failure')}: none of the calls that end the passes is made ({named}); the rollout looks things up and ends with a "
        f"message. {n_closed:,} of {count(len(passes), 'pass', 'passes')} make one.{how}",
        fix="Tell the model that nobody will answer, and have it carry out the task before it ends." if asks >= 0.5 * n
        else "Have the model carry out what is asked before it ends, and check before the end that something was done.",
        why="what is graded was never done", confidence="proved", deciding=tuple(closing), holds=holds,
        place=lambda row: (row.final_step, row.final.strip()[-ENDING:]) if row.final_step is not None else None,
        detail=lambda i: f'it ends "{short(people.rows[i].final.strip()[-ENDING:], ENDING)}"',
    )  # fmt: skip


def _leaves_open(closing: frozenset[str], row: RowEvidence) -> bool:
    """Whether a row makes calls, and none of those that close a task with success."""
    return row.n_acts > 0 and not row.is_spoken and all(act.tool not in closing or act.failed for act in row.acts)


def _kinds(people: Population) -> Iterator[Mask]:
    """All rows, then the rows of each kind of task that a field with few values tells apart."""
    yield ~people.none
    for codes, values in people.task_level.values():
        if len(values) <= MAX_KINDS:
            for code in range(len(values)):
                yield codes == code


def _ending(
    people: Population, left: Mask, scope: Mask, passes: list[RowEvidence], name: Callable[[Act], str]
) -> Group | None:
    """The rows of a kind of task that lack the call that ends its passes."""
    ends = Counter(name(row.acts[-1]) for row in passes if row.acts)
    used = {name(act) for row in people.of(scope) for act in row.acts}
    last, n_ends = ends.most_common(1)[0] if ends else ("", 0)
    if n_ends < ENDS * len(passes) or len(used) < 2:
        return None
    holds = partial(_lacks, name, last)
    # the last call of a pass was accepted, however its result reads
    rows = people.where(holds) & scope & ~(people.passed & people.where(lambda row: bool(row.acts) and name(row.acts[-1]) == last))
    claimed = rows & left
    if ends_on_success(people):  # what never succeeds goes on to the limit: only who stops before it, or tries in vain, lacks it
        most = max(row.n_turns for row in people.rows)
        claimed &= people.where(lambda row: row.n_turns < most or any(name(act) == last for act in row.acts))
    n = int(claimed.sum())
    others = ~rows & scope
    if n < LEAST or not others.any() or people.rate(rows) > 0.1 * people.rate(others):
        return None
    tried = sum(any(name(act) == last for act in row.acts) for row in people.of(claimed))
    how = f" {tried:,} of them try it without success." if tried else ""
    called = f"never a successful `{last}`" if tried else f"never calls `{last}`"
    called_last = ("" if people.rows[i].is_spoken else last_act(people.rows[i]) for i in np.flatnonzero(claimed))
    instead, n_instead = Counter(called_last).most_common(1)[0]
    if instead and n_instead >= max(LEAST, 0.8 * n) and instead not in ends:
        how += f" {n_instead:,} of them end with `{instead}` instead, as no pass does."
        called = f"ends with `{instead}`, never `{last}`"
    return Group(
        rung="delivered", label="BI", name=called, rows=claimed, matched=rows, passed=int(people.passed[rows].sum()), deciding=(last,),
        text=f"{count(n, 'failure')}: there is no successful `{last}`, the call that ends {n_ends:,} of {len(passes):,} passes"
        f"{'' if scope.all() else ' of this kind of task'}.{how}",
        fix=f"Show the model what `{last}` accepts, and have it correct the call after an error." if 2 * tried >= n
        else f"Find out why these rollouts end with `{instead}` (stuck, or something that does not work?), and have the model go on until "
        f"it can call `{last}`." if "instead" in how
        else f"Tell the model to finish with `{last}`, and remind it before the last turn.",
        why="the result that is graded was never handed over", confidence="proved",
        place=lambda row: (row.acts[-1].step, "") if row.acts else None, holds=holds if scope.all() else None,
        detail=lambda i: "" if people.rows[i].is_spoken else f"the last call is `{short(last_act(people.rows[i]), 60)}`",
    )  # fmt: skip


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
            is_asked = sum(form in row.forms for row in people.of(rows & left)) >= 0.5 * n
            return Group(
                rung="delivered", label="BI" if is_asked else "TI", name=f"no answer in {words}", rows=rows & left,
                text=f"{count(n, 'failure')}: no answer in {words}, which {ENDS:.0%} or more of the passes have"
                f"{'' if is_asked else '; the prompt never asks for it'}.",
                fix=f"Repeat at the end of the prompt that the answer belongs in {words}, and ask again where it is missing."
                if is_asked else f"Ask for {words} in the prompt, or have the grader read answers without it.",
                why="the form that the grader reads is absent" + ("" if is_asked else ", and nothing asks for it"),
                confidence="likely", matched=rows,
                place=at_end,
            )  # fmt: skip
    return None
