"""Ask what failing rollouts do that passing ones of the same task do not: calls, omissions, errors, loops.

Within tasks where they repeat; between tasks it is called a lead. Acts that only failing rollouts can have, such as a
failed last call where episodes stop on success, are consequences and no candidates.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import takewhile
from typing import Any

import numpy as np

from blade.diagnose.evidence import RowEvidence
from blade.diagnose.fact_cover import Candidate, Contrast, candidate, cover
from blade.diagnose.groups import Findings, at_act, at_call, count, explained, joined, short
from blade.diagnose.population import Mask, Population, most_common
from blade.diagnose.reference import Reference
from blade.diagnose.rungs import cut

MAX_TOOLS, MAX_TEMPLATES, MAX_SHAPES = 40, 60, 8
RARE_FORM = 0.1  # share of the passes that may use a form of an argument, for it to be another than theirs
PURE_FORM = 0.6  # purity from which the form of a reply is named
MAX_SPOKEN = 15  # opening words of messages up to which they are taken for tools


def ask(people: Population, left: Mask, known: Reference | None) -> Findings:
    groups = cover(people, list(_candidates(people)), left)
    left = left & ~explained(people, groups)
    # forms are a family of tests of their own; where answers are compared as values, that of an answer says nothing more
    has_form = known is None or not known.is_telling
    return Findings([*groups, *cover(people, list(_forms(people, has_form)), left)])


def tools_of(people: Population) -> list[str]:
    """The tools of a run; where tools are spoken, the opening words of messages if they are few."""
    is_spoken = sum(row.is_spoken and row.n_acts > 0 for row in people.rows) > 0.5 * people.n
    if not is_spoken:
        # where most rollouts make calls, what the others say is no call
        seen = Counter(tool for row in people.rows if not row.is_spoken for tool in dict.fromkeys(act.tool for act in row.acts))
        return [tool for tool, n in seen.most_common(MAX_TOOLS) if n >= 2]
    total = sum(row.n_acts for row in people.rows)
    top = Counter(act.tool for row in people.rows for act in row.acts).most_common(MAX_SPOKEN)
    if sum(n for _, n in top) < 0.8 * max(total, 1) or all(row.n_acts <= 1 for row in people.rows):
        return []
    return [tool for tool, n in top if n >= 0.01 * total]


def _candidates(people: Population) -> Iterator[Candidate]:
    fact = partial(_candidate, people)
    # a call that ends a rollout on success is missing where nothing succeeded
    goals = {row.acts[-1].tool for row in people.of(people.passed) if row.acts} if cut.ends_on_success(people) else set()
    for tool in tools_of(people):
        if tool not in goals:
            yield fact("never", lambda row: row.n_acts > 0 and all(act.tool != tool for act in row.acts), 1, tool=tool)  # noqa: B023
        yield fact("calls", partial(_calls, tool), 3, tool=tool, place=at_call(tool))
    is_best = cut.is_best_of_many(people)
    errors = Counter(error for row in people.rows for error in dict.fromkeys(act.template for act in row.acts if act.template))
    for error, n in errors.most_common(MAX_TEMPLATES):
        if n >= 3 and not is_best:  # where episodes stop on success, an error costs a try and not the rollout
            yield fact("error", partial(_meets, error, people.has_repeats), 2, True, **_error(people, error))
    yield fact(
        "empty result", _empty_tools, 2, True, place=at_act(lambda act: act.is_empty),
        facts=lambda rows: {"tools": _named(act.tool for row in people.of(rows) for act in row.acts if act.is_empty)},
        detail=lambda i: _empty_end(people.rows[i]),
    )  # fmt: skip
    yield fact(
        "unread list", _leaves_a_list, 2, True, place=at_act(lambda act: act.is_partial),
        facts=lambda rows: {"tools": _named(act.tool for row in people.of(rows) for act in row.acts if act.is_partial)},
    )  # fmt: skip
    if not is_best:
        # where episodes stop on success only failing rollouts are long enough to repeat themselves
        yield fact(
            "loops", lambda row: row.n_acts >= 3 and cut.is_looping(row, end=2), 4, detail=lambda i: cut.repeated(people.rows[i]),
            facts=partial(_often, people),
        )  # fmt: skip


def _forms(people: Population, has_form: bool) -> Iterator[Candidate]:
    """How arguments and answers are written."""
    yield from _shaped(people)
    # the form of an answer tells something beside other answers to the same task, or to tasks of the same kind
    is_compared = has_form and (people.has_repeats or len(np.unique(people.kind)) > 1)
    for mark in sorted({mark for row in people.rows for mark in row.marks}) if has_form else ():
        entry = _candidate(
            people, "mark", lambda row: mark in row.marks, 4, purity=PURE_FORM, mark=mark, confidence="unsure",  # noqa: B023
            against=["replies of this form may be worse in what they say"],
        )  # fmt: skip
        # with one try only a mark that many rows show and no pass
        if people.has_repeats or (entry.rows.sum() >= 10 and not people.passed[entry.rows].any()):
            yield entry
    for form in sorted({row.form for row in people.rows} - {""}) if is_compared else ():
        yield _candidate(
            people, "form", lambda row: row.form == form, 4,  # noqa: B023
            detail=lambda i: f'it ends "{short(people.rows[i].final.strip()[-80:], 80)}"', written=_AS[form],
            against=["the value may be right, and then the grader rejects its form (TI)"],
        )  # fmt: skip


_AS = {"a number with words": "words around the number", "a bare number": "a bare number", "words": "words alone", "nothing": "no content"}
Holds = Callable[[RowEvidence], Any]


def _candidate(
    people: Population, kind: str, holds: Holds, order: int, is_fault: bool = False, *, purity: float = 0.0, confidence: str = "",
    facts: Callable[[Mask], dict[str, Any]] = lambda rows: {}, against: Sequence[str] = (), **how: Any,
) -> Candidate:  # fmt: skip
    """A fact under the name of its kind; `facts` are what its sentence counts among the rows that it explains."""

    def shown(rows: Mask, test: Contrast) -> dict[str, Any]:
        kinds = " among tasks of the same kind" if test.scope is not None else ""
        where = ", on the same tasks" if test.is_within else f"{kinds} (a lead: with one try per task, different tasks are compared)"
        contrast = f" {test.pass_with:.0%} pass with it, {test.pass_without:.0%} without{where}."
        lead = [] if test.is_within else ["one try per task: hard tasks and bad behaviour cannot be told apart"]
        sure = confidence or ("likely" if test.is_within else "unsure")
        return {"contrast": contrast, "within": test.is_within, "against": [*lead, *against], "confidence": sure, **facts(rows)}

    return candidate(people, f"behaviour.{kind}", people.where(holds), order, shown, is_fault=is_fault, purity=purity, **how)


def _named(tools: Iterable[str]) -> str:
    return joined(tool for tool, _ in Counter(tools).most_common())


# ---- Facts about a row ------------------------------------------------------------------------------


def _calls(tool: str, row: RowEvidence) -> bool:
    """Whether a row calls a tool of its own accord: what follows an error may be its consequence."""
    return any(act.tool == tool for act in takewhile(lambda act: not act.failed, row.acts))


def _meets(error: str, has_repeats: bool, row: RowEvidence) -> bool:
    """Whether a row meets an error; with one try nothing but getting past it shows that it was not what a rollout failed for."""
    met = [i for i, act in enumerate(row.acts) if act.template == error]
    after = row.acts[met[-1] + 1 :] if met else ()
    return bool(met) and (has_repeats or all(act.failed or act.tool != row.acts[met[-1]].tool for act in after))


def _error(people: Population, error: str) -> dict[str, Any]:
    return {
        "place": at_act(lambda act: act.template == error), "brief": re.sub("<[a-z]+>", "…", error)[:70].rstrip(" .…"),
        "facts": lambda rows: {"error": cut.shown_error(people, rows, error, 120)},
        "detail": lambda i: short(next((act.error for act in people.rows[i].acts if act.template == error), ""), 140).rstrip("."),
    }  # fmt: skip


def _often(people: Population, rows: Mask) -> dict[str, Any]:
    template, n = cut.common_error(people, rows, 0.2)
    shown = f"; most often such as: {cut.shown_error(people, rows, template)} ({count(n, 'rollout')})"
    return {"often": shown if template else ""}


def _empty_tools(row: RowEvidence) -> list[str]:
    """The tools whose last call finds nothing, and the rollout goes on to its end."""
    last = {act.tool: act for act in row.acts}
    return [tool for tool, act in last.items() if act.is_empty]


def _empty_end(row: RowEvidence) -> str:
    """Which tools find nothing, and what the last lookup that found nothing was given, for a sentence."""
    sought = next((act.sought for act in reversed(row.acts) if act.is_empty), "")
    return f"the last {joined(_empty_tools(row))} finds nothing" + (f" ({short(sought, 110)})" if sought else "")


def _leaves_a_list(row: RowEvidence) -> bool:
    """Whether the last call of some tool lists fewer entries than it counts, and the rollout goes on without the rest."""
    return any(sum(other.listed for other in row.acts if other.tool == act.tool) < act.total for act in row.acts if act.total)


# ---- Forms of arguments -----------------------------------------------------------------------------


def _shaped(people: Population) -> Iterator[Candidate]:
    """Forms in which a text argument is given, where it is given in several: a name or a code, two ways to write a date."""
    shapes_of = [_given(row) for row in people.rows]
    places: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for shapes in shapes_of:
        for place, values in shapes.items():
            places[place].update(values)
    for place, seen in sorted(places.items()):
        # an argument of many forms is free text, whose form says nothing
        common = [shape for shape, n in seen.items() if n >= max(3, 0.02 * people.n)] if 2 <= len(seen) <= MAX_SHAPES else []
        n_passes = sum(place in shapes for shapes, passed in zip(shapes_of, people.passed, strict=True) if passed)
        for shape in common:
            entry = _in_shape(people, *place, shape)
            if (people.passed & entry.rows).sum() <= RARE_FORM * n_passes:
                yield entry


def _given(row: RowEvidence) -> dict[tuple[str, str], set[str]]:
    """The forms of each text argument of a row."""
    result: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for act in row.acts:
        for name, shape in act.shapes:
            result[act.tool, name].add(shape)
    return result


def _in_shape(people: Population, tool: str, name: str, shape: str) -> Candidate:
    """That rows give an argument in one form only."""
    usual, n = most_common(
        other for row in people.of(people.passed) for act in row.acts if act.tool == tool
        for present, other in act.shapes if present == name
    )  # fmt: skip
    usual = f"; passes mostly give `{usual}`" if n else ""
    word = f'"{name.rpartition(".")[2]}"'
    return _candidate(
        people, "shape", lambda row: _given(row).get((tool, name)) == {shape}, 1, tool=tool, name=name, shape=shape, usual=usual,
        place=lambda row: next(((act.step, word) for act in row.acts if act.tool == tool and (name, shape) in act.shapes), None),
        against=["the two forms may mean the same, and then the grader compares spellings (TI)"],
    )  # fmt: skip
