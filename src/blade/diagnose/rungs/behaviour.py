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

import numpy as np

from blade.diagnose.evidence import RowEvidence
from blade.diagnose.fact_cover import Candidate, Contrast, cover
from blade.diagnose.population import Findings, Group, Mask, Population, at_end, count, joined, short
from blade.diagnose.reference import Reference
from blade.diagnose.rungs.cut import (
    common_error,
    ends_on_success,
    is_best_of_many,
    is_looping,
    repeated,
    shown_error,
)

MAX_TOOLS, MAX_TEMPLATES, MAX_SHAPES = 40, 60, 8
RARE_FORM = 0.1  # share of the passes that may use a form of an argument, for it to be another than theirs
PURE_FORM = 0.6  # purity from which the form of a reply is named
MAX_SPOKEN = 15  # opening words of messages up to which they are taken for tools


def ask(people: Population, left: Mask, known: Reference | None) -> Findings:
    groups = cover(people, list(_candidates(people)), left)
    for group in groups:
        left = left & ~group.rows
    # forms are a family of tests of their own; where answers are compared as values, that of an answer says nothing more
    has_form = known is None or not known.is_telling
    return Findings([*groups, *cover(people, list(_forms(people, has_form)), left)])


def tools_of(people: Population) -> list[str]:
    """The tools of a run; where tools are spoken, the opening words of messages if they are few."""
    is_spoken = sum(row.is_spoken and row.n_acts > 0 for row in people.rows) > 0.5 * people.n
    # where most rollouts make calls, what the others say is no call
    seen = Counter(
        tool for row in people.rows if row.is_spoken == is_spoken for tool in dict.fromkeys(act.tool for act in row.acts)
    )
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
    passes = people.of(people.passed)
    # a call that ends a rollout on success is missing where nothing succeeded
    goals = {row.acts[-1].tool for row in passes if row.acts} if ends_on_success(people) else set()
    for tool in tools_of(people):
        if tool not in goals:
            yield _candidate(people, f"never {tool}", partial(_never_calls, tool), partial(_never, tool), 1)
        yield _candidate(people, f"calls {tool}", partial(_calls_it, tool), partial(_calls, tool), 3)
    is_best = is_best_of_many(people)
    templates = Counter(
        t for row in people.rows for t in dict.fromkeys(act.template for act in row.acts if act.template)
    )
    for template, n in templates.most_common(MAX_TEMPLATES):
        if n >= 3 and not is_best:  # where episodes stop on success, an error costs a try and not the rollout
            # with one try nothing but getting past an error shows that it was not what a rollout failed for
            meets = _meets if people.has_repeats else _is_left_with
            yield _candidate(people, f"error {template}", partial(meets, template), partial(_error, people, template), 2, True)
    yield _candidate(people, "empty result", _accepts_nothing, partial(_empty, people), 2, True)
    yield _candidate(people, "unread list", _leaves_a_list, partial(_unread, people), 2, True)
    if not is_best:
        # where episodes stop on success only failing rollouts are long enough to repeat themselves
        yield _candidate(people, "loops", _repeats, partial(_loops, people), 4)


def _forms(people: Population, has_form: bool) -> Iterator[Candidate]:
    """How arguments and answers are written."""
    yield from _shaped(people)
    # the form of an answer tells something beside other answers to the same task, or to tasks of the same kind
    is_compared = has_form and (people.has_repeats or len(np.unique(people.kind)) > 1)
    for mark in sorted({mark for row in people.rows for mark in row.marks}) if has_form else ():
        candidate = _candidate(people, f"mark {mark}", partial(_is_marked, mark), partial(_marked, mark), 4, purity=PURE_FORM)
        # with one try only a mark that many rows show and no pass
        if people.has_repeats or (candidate.rows.sum() >= 10 and not people.passed[candidate.rows].any()):
            yield candidate
    for form in sorted({row.form for row in people.rows} - {""}) if is_compared else ():
        yield _candidate(people, f"form {form}", partial(_is_form, form), partial(_formed, people, form), 4)


Holds = Callable[[RowEvidence], bool]


def _candidate(
    people: Population, name: str, holds: Holds, make: Callable[[Mask, Contrast], Group], order: int, is_fault: bool = False,
    purity: float = 0.0,
) -> Candidate:  # fmt: skip
    def with_condition(rows: Mask, test: Contrast) -> Group:
        group = make(rows, test)
        group.holds = holds
        return group

    return Candidate(name, people.where(holds), with_condition, order, is_fault=is_fault, purity=purity)


def _never_calls(tool: str, row: RowEvidence) -> bool:
    return row.n_acts > 0 and all(act.tool != tool for act in row.acts)


def _calls_it(tool: str, row: RowEvidence) -> bool:
    """Whether a row calls a tool of its own accord: what follows an error may be its consequence."""
    before = takewhile(lambda act: not act.failed, row.acts)
    return any(act.tool == tool for act in before)


def _meets(template: str, row: RowEvidence) -> bool:
    return any(act.template == template for act in row.acts)


def _is_left_with(template: str, row: RowEvidence) -> bool:
    """Whether a row meets an error, and no later call of the same tool succeeds."""
    met = [i for i, act in enumerate(row.acts) if act.template == template]
    return bool(met) and all(act.failed or act.tool != row.acts[met[-1]].tool for act in row.acts[met[-1] + 1 :])


def _repeats(row: RowEvidence) -> bool:
    """Whether a row repeats one call or one error, and does not get past it before its end."""
    return row.n_acts >= 3 and is_looping(row, end=2)


def _is_marked(mark: str, row: RowEvidence) -> bool:
    return mark in row.marks


def _accepts_nothing(row: RowEvidence) -> bool:
    """Whether the last call of some tool that looks things up finds nothing, and the rollout goes on to its end."""
    return bool(_empty_tools(row))


def _empty_tools(row: RowEvidence) -> list[str]:
    last = {act.tool: act for act in row.acts}
    return [tool for tool, act in last.items() if act.is_empty]


def _sought(row: RowEvidence) -> str:
    """What the last lookup that found nothing was given, for a sentence."""
    last = next((act.sought for act in reversed(row.acts) if act.is_empty), "")
    return f" ({short(last, 110)})" if last else ""


def _leaves_a_list(row: RowEvidence) -> bool:
    """Whether the last call of some tool lists fewer entries than it counts, and the rollout goes on without the rest."""
    listed: Counter[str] = Counter()
    total: dict[str, int] = {}
    for act in row.acts:
        listed[act.tool] += act.listed
        total[act.tool] = max(total.get(act.tool, 0), act.total)
    return any(listed[tool] < n for tool, n in total.items())


def _is_form(form: str, row: RowEvidence) -> bool:
    return row.form == form


def _shaped(people: Population) -> Iterator[Candidate]:
    """Forms in which a text argument is given, where it is given in several: a name or a code, two ways to write a date."""
    places: dict[tuple[str, str], Counter[str]] = {}
    for row in people.rows:
        for (tool, name), shapes in _given(row).items():
            places.setdefault((tool, name), Counter()).update(shapes)
    for (tool, name), seen in sorted(places.items()):
        # an argument of many forms is free text, whose form says nothing
        common = [shape for shape, n in seen.items() if n >= max(3, 0.02 * people.n)] if 2 <= len(seen) <= MAX_SHAPES else []
        actual = people.where(lambda row: (tool, name) in _given(row))  # noqa: B023
        for shape in common:
            candidate = _candidate(
                people, f"{tool}.{name} as {shape}", partial(_gives, tool, name, shape), partial(_as_shape, people, tool, name, shape), 1
            )
            if (people.passed & candidate.rows).sum() <= RARE_FORM * (people.passed & actual).sum():
                yield candidate


def _given(row: RowEvidence) -> dict[tuple[str, str], set[str]]:
    result: dict[tuple[str, str], set[str]] = {}
    for act in row.acts:
        for name, shape in act.shapes:
            result.setdefault((act.tool, name), set()).add(shape)
    return result


def _gives(tool: str, name: str, shape: str, row: RowEvidence) -> bool:
    """Whether a row gives an argument in one form only."""
    return _given(row).get((tool, name)) == {shape}


def _contrasted(test: Contrast) -> str:
    """The pass rates with a fact and without it, and of what rows."""
    if test.is_within:
        return f" {test.pass_with:.0%} pass with it, {test.pass_without:.0%} without, on the same tasks."
    kinds = " among tasks of the same kind" if test.is_by_kind else ""
    return (
        f" {test.pass_with:.0%} pass with it, {test.pass_without:.0%} without{kinds} (a lead: with one try per task, different tasks are "
        "compared)."
    )


def _confidence(test: Contrast) -> str:
    return "likely" if test.is_within else "unsure"


def _group(
    name: str, rows: Mask, text: str, fix: str, test: Contrast, place: object, tools: tuple[str, ...],
    detail: Callable[[int], str] | None = None,
) -> Group:  # fmt: skip
    return Group(
        rung="behaviour", label="BI", name=name, rows=rows, text=text + _contrasted(test), fix=fix,
        why="rollouts that do this fail where others of the same task pass" if test.is_within
        else "rollouts that do this pass far less often",
        confidence=_confidence(test), place=place, deciding=tools, detail=detail,  # type: ignore[arg-type]
        against=[] if test.is_within else ["one try per task: hard tasks and bad behaviour cannot be told apart"],
    )  # fmt: skip


def _empty(people: Population, rows: Mask, test: Contrast) -> Group:
    tools = Counter(act.tool for row in people.of(rows) for act in row.acts if act.is_empty)
    named = joined(tool for tool, _ in tools.most_common())
    return _group(
        "accepts an empty result", rows, f"{count(int(rows.sum()), 'failure')}: the last lookup ({named}) finds nothing, and the model "
        "goes on without another search.",
        "Have the model check its search terms and try another one when a lookup finds nothing, before it answers or acts.", test,
        lambda row: next(((act.step, "") for act in row.acts if act.is_empty), None), tuple(tool for tool, _ in tools.most_common(3)),
        detail=lambda i: f"the last {joined(_empty_tools(people.rows[i]))} finds nothing{_sought(people.rows[i])}",
    )  # fmt: skip


def _unread(people: Population, rows: Mask, test: Contrast) -> Group:
    tools = Counter(act.tool for row in people.of(rows) for act in row.acts if act.is_partial)
    named = joined(tool for tool, _ in tools.most_common())
    return _group(
        "stops after the first part of a list", rows, f"{count(int(rows.sum()), 'failure')}: {named} counts more entries than it "
        "lists, and the rest is never fetched.",
        "Have the model fetch all pages before it acts or answers.", test,
        lambda row: next(((act.step, "") for act in row.acts if act.is_partial), None), tuple(tool for tool, _ in tools.most_common(3)),
    )  # fmt: skip


def _marked(mark: str, rows: Mask, test: Contrast) -> Group:
    group = _group(
        f"replies with {mark} are rejected", rows, f"{count(int(rows.sum()), 'failure')}: the reply contains {mark}.",
        f"Check whether the grader reads replies with {mark} in full (how they are put into its prompt or taken apart), and score some "
        "of these by hand.", test, at_end, (),
    )  # fmt: skip
    group.label, group.confidence = "TI", "unsure"
    group.why = "a mark of the form, which nothing forbids, goes with the grade within the same tasks"
    group.against.append("replies of this form may be worse in what they say")
    return group


_AS = {"a number with words": "words around the number", "a bare number": "a bare number", "words": "words alone", "nothing": "no content"}


def _formed(people: Population, form: str, rows: Mask, test: Contrast) -> Group:
    group = _group(
        f"the answer is given as {_AS[form]}", rows, f"{count(int(rows.sum()), 'failure')}: the final answer is {_AS[form]}; passes of "
        "the same kind of task answer in another form.",
        "State the form of the answer in the prompt with an example, or have the grader read the value out of it.", test,
        lambda row: (row.final_step, row.final[-60:]) if row.final_step is not None else None, (),
        detail=lambda i: f'it ends "{short(people.rows[i].final.strip()[-80:], 80)}"',
    )  # fmt: skip
    group.against.append("the value may be right, and then the grader rejects its form (TI)")
    return group


def _as_shape(people: Population, tool: str, name: str, shape: str, rows: Mask, test: Contrast) -> Group:
    usual = Counter(
        other for row in people.of(people.passed) for act in row.acts if act.tool == tool
        for present, other in act.shapes if present == name
    ).most_common(1)  # fmt: skip
    passes = f"; passes mostly give `{usual[0][0]}`" if usual else ""
    word = f'"{name.rpartition(".")[2]}"'
    group = _group(
        f"gives `{name}` of `{tool}` in another form than the passes", rows,
        f"{count(int(rows.sum()), 'failure')}: `{name}` of `{tool}` is given as `{shape}` (a: letters, 9: digits), a form that hardly "
        f"any pass uses{passes}.",
        f"Show the model which form of `{name}` `{tool}` accepts, and where to look it up; if both forms mean the same, have the "
        "grader accept both.", test,
        lambda row: next(((act.step, word) for act in row.acts if act.tool == tool and (name, shape) in act.shapes), None), (tool,),
        detail=lambda i: f"`{name}` is given as `{shape}` (a: letters, 9: digits){passes}",
    )  # fmt: skip
    group.against.append("the two forms may mean the same, and then the grader compares spellings (TI)")
    return group


def _never(tool: str, rows: Mask, test: Contrast) -> Group:
    return _group(
        f"never calls `{tool}`", rows, f"{count(int(rows.sum()), 'failure')}: `{tool}` is never called.",
        f"Have the model call `{tool}` before it acts on what only `{tool}` can tell.", test,
        lambda row: (row.acts[-1].step, "") if row.acts else None, (tool,),
    )  # fmt: skip


def _calls(tool: str, rows: Mask, test: Contrast) -> Group:
    return _group(
        f"calls `{tool}`", rows, f"{count(int(rows.sum()), 'failure')}: `{tool}` is called.",
        f"Check when `{tool}` is the right choice, and say so in its description or in the prompt.", test,
        lambda row: next(((act.step, "") for act in row.acts if act.tool == tool), None), (tool,),
    )  # fmt: skip


def _error(people: Population, template: str, rows: Mask, test: Contrast) -> Group:
    phrase = shown_error(people, rows, template, 120)
    return _group(
        f"meets an error: {re.sub('<[a-z]+>', '…', template)[:70].rstrip(' .…')}", rows,
        f"{count(int(rows.sum()), 'failure')}: a tool answers with this error: {phrase}.",
        "Show the model in the tool's description how to avoid this error, and have it change the call after it.", test,
        lambda row: next(((act.step, "") for act in row.acts if act.template == template), None), (),
        detail=lambda i: short(next((act.error for act in people.rows[i].acts if act.template == template), ""), 140).rstrip("."),
    )  # fmt: skip


def _loops(people: Population, rows: Mask, test: Contrast) -> Group:
    return _group(
        "repeats one call or one error", rows,
        f"{count(int(rows.sum()), 'failure')}: the same call or the same error three times or more{_most_often(people, rows)}.",
        "Stop or redirect the model when a call or an error repeats.", test, _first_error, (),
        detail=lambda i: repeated(people.rows[i]),
    )  # fmt: skip


def _first_error(row: RowEvidence) -> tuple[int, str] | None:
    return next(
        ((act.step, "") for act in row.acts if act.failed), (row.acts[0].step, "") if row.acts else None
    )


def _most_often(people: Population, rows: Mask) -> str:
    template, n = common_error(people, rows, 0.2)
    return f"; most often such as: {shown_error(people, rows, template)} ({count(n, 'rollout')})" if template else ""
