"""Trace a difference from the expected calls back to the act that precedes it.

What was done wrong is a difference from the gold; why is earlier: a value that was never looked up, another match than
the passes take, a search without one of its conditions, a list read to the end of its first page, an error that nobody
corrected. Each needs that passes (nearly) never do it. It fires wherever rows state the calls they expect and
arguments come from results: bookings, tickets, files, databases.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from blade.diagnose.evidence import Act, RowEvidence, Source
from blade.diagnose.fact_cover import IMPURE, LEVEL, contrast
from blade.diagnose.groups import Group, Place, at_act, count, explained, group, joined
from blade.diagnose.population import Mask, Population
from blade.diagnose.rungs.cut import common_error, shown_error

PASSES = 8  # passes that must show the right way before another one is blamed
NEVER = 0.02  # share of the passes that may go the blamed way
LEAST = 3  # failing rows that go it
SHARE = 0.05  # of all rows that are traced back
ALL = 0.9  # share of a group from which a fact of fewer rows names it all the same

Fact = tuple[str, str]  # a tool, and one of its arguments or nothing


class Trace(NamedTuple):
    """A way that failing rows go and passes do not."""

    kind: str
    rows: Mask
    place: Place
    facts: dict[str, Any]  # for its sentences
    is_defined_by_passes: bool = False


def trace_back(people: Population, groups: Sequence[Group], graded: frozenset[str], by_calls: bool) -> list[Group]:
    """The groups, with the rows that an earlier act explains under the name of that act.

    `by_calls`: they differ from expected calls, whose arguments can be traced; failed checks say no more than that a call may lack.
    """
    left = explained(people, groups)
    if not left.any() or sum(not row.is_spoken and row.n_acts > 0 for row in people.rows) < 0.5 * people.n:
        return list(groups)
    result: list[Group] = []
    rest = left.copy()
    least = max(LEAST, SHARE * left.sum())
    for ways in (_lookups, _matches, _conditions, _pages, _omissions, _errors) if by_calls else (_omissions,):
        for way in ways(people, rest, graded):
            rows = way.rows & rest
            touched = [entry.rows for entry in groups if (rows & entry.rows).any()]
            if rows.sum() >= least or any((rows & own).sum() >= ALL * max(1, (rest & own).sum()) for own in touched):
                result.append(_group(people, way, rows, groups))
                rest &= ~rows
    for entry in groups:
        if (rows := entry.rows & rest).any():  # what is upstream explains the others
            was, n = (count(int(mask.sum()), "failure") for mask in (entry.rows, rows))
            result.append(replace(entry, rows=rows, text=entry.text.replace(was, n, 1)))
    return result


def _is_rare(people: Population, rows: Mask, among: Mask) -> bool:
    """Whether hardly any pass goes a way that it could have gone."""
    passes = people.passed & among
    return bool(passes.sum() >= PASSES and people.passed[rows].sum() <= NEVER * passes.sum())


# ---- A value that passes look up ------------------------------------------------------------------


def _lookups(people: Population, left: Mask, graded: frozenset[str]) -> Iterator[Trace]:
    """Arguments whose values passes always take from the result of one tool."""
    tasks: defaultdict[Fact, defaultdict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    shapes: defaultdict[Fact, set[str]] = defaultdict(set)
    for i in np.flatnonzero(people.passed):
        for fact, source, _ in _arguments(people.rows[i]):
            shapes[fact].add(source.shape)
            tasks[fact][source.tool].add(int(people.task[i]))
    by_tool: defaultdict[str, dict[Fact, set[str]]] = defaultdict(dict)
    for fact, by_source in tasks.items():
        tool = next(iter(by_source))
        if len(by_source) == 1 and tool and tool != fact[0] and len(by_source[tool]) >= LEAST:
            by_tool[tool][fact] = shapes[fact]
    for tool, facts in sorted(by_tool.items(), key=lambda pair: -len(pair[1])):
        rows = people.where(partial(_unshown, facts))
        among = people.where(lambda row: any(act.tool == tool for act in row.acts))  # noqa: B023
        if not (rows & left).any() or not _is_rare(people, rows, among):
            continue
        used = Counter(name for row in people.of(rows & left) for name in {name for name, _ in _unshown(facts, row)})
        names = joined(name for name, _ in used.most_common())
        name, are, them = (names, "is", "it") if len(used) == 1 else ("values", "are", "them")
        place = lambda row, facts=facts: next(((step, "") for _, step in _unshown(facts, row)), None)  # noqa: E731
        yield Trace("lookup", rows, place, {"tool": tool, "name": name, "names": names, "are": are, "them": them})


def _arguments(row: RowEvidence) -> Iterator[tuple[Fact, Source, int]]:
    for act in row.acts:
        for source in act.sources:
            yield (act.tool, source.name), source, act.step


def _unshown(facts: Mapping[Fact, set[str]], row: RowEvidence) -> list[tuple[str, int]]:
    """The arguments among some whose value no result has shown before, with their steps.

    A value of the kind that passes use is fine where the request states it: an address, not the name of its owner.
    """
    return [
        (source.name, step) for fact, source, step in _arguments(row)
        if fact in facts and not source.tool and not (source.is_given and source.shape in facts[fact])
    ]


# ---- Another match than the passes take ------------------------------------------------------------


def _matches(people: Population, left: Mask, graded: frozenset[str]) -> Iterator[Trace]:
    """Rows that take another value from the same result than every pass of their task does."""
    passing: defaultdict[tuple[int, str, int], set[int]] = defaultdict(set)
    for i in np.flatnonzero(people.passed).tolist():
        for place, values in _taken(people, i).items():
            passing[place] |= values
    by_tool: defaultdict[str, Mask] = defaultdict(lambda: people.none)
    for i in np.flatnonzero(left).tolist():
        for place, values in _taken(people, i).items():
            if len(passing.get(place, ())) == 1 and not values & passing[place]:
                by_tool[place[1]][i] = True
    for tool, rows in sorted(by_tool.items()):
        yield Trace("match", rows, at_act(lambda act: act.sources and act.sources[0].tool), {"tool": tool}, is_defined_by_passes=True)


def _taken(people: Population, i: int) -> dict[tuple[int, str, int], set[int]]:
    """The values that a row takes from each result: task, tool and key of the call that gave it."""
    result: defaultdict[tuple[int, str, int], set[int]] = defaultdict(set)
    for _, source, _ in _arguments(people.rows[i]):
        if source.tool:
            result[int(people.task[i]), source.tool, source.key].add(source.value)
    return result


# ---- A call or a condition that passes never leave out ---------------------------------------------


def _conditions(people: Population, left: Mask, graded: frozenset[str]) -> Iterator[Trace]:
    """Calls, and arguments of them, that all passes of the task show; a pass is compared with its own siblings."""
    present = [_facts(row, graded) for row in people.rows]
    of_passes = [present[i] for i in np.flatnonzero(people.passed)]
    always: set[Fact] = set.intersection(*of_passes) if len(of_passes) >= PASSES else set()
    shown: defaultdict[int, Counter[Fact]] = defaultdict(Counter)  # task -> how many of its passes show each fact
    n_passes = Counter(people.task[people.passed].tolist())
    for i in np.flatnonzero(people.passed).tolist():
        shown[int(people.task[i])].update(present[i])
    by_count = {task: {n: {fact for fact in facts if facts[fact] == n} for n in set(facts.values())} for task, facts in shown.items()}
    lacking: defaultdict[Fact, Mask] = defaultdict(lambda: people.none)
    requests: Counter[Fact] = Counter()
    for i, task in enumerate(people.task.tolist()):
        own, n = (present[i] if people.passed[i] else set()), n_passes[task]
        shared = by_count.get(task, {})
        # what all passes show, but for this one where it is a pass itself
        usual = shared.get(n, set()) | (shared.get(n - 1, set()) - own if people.passed[i] else set()) if n > people.passed[i] else set()
        for fact in usual | always:
            requests[fact] += bool(people.passed[i])
            if lacks(fact, people.rows[i]):
                lacking[fact][i] = True
    rows_of = {
        fact: rows for fact, rows in lacking.items()
        if (rows & left).any() and requests[fact] >= PASSES and people.passed[rows].sum() <= NEVER * requests[fact]
    }  # fmt: skip
    for fact, rows in sorted(rows_of.items(), key=lambda pair: (pair[0] not in always, -int((pair[1] & left).sum()), pair[0])):
        tool, name = fact
        facts = {"tool": tool, "name": name, "of_task": "" if fact in always else "of the same task "}
        yield Trace("condition" if name else "call", rows, partial(_last_of, tool), facts, is_defined_by_passes=fact not in always)


def _facts(row: RowEvidence, graded: frozenset[str]) -> set[Fact]:
    """The calls of a row that the grade does not read itself, and the arguments that every one of them gives."""
    result: dict[str, set[str]] = {}
    for act in row.acts:
        if act.tool not in graded:
            result[act.tool] = result.get(act.tool, set(act.names)) & set(act.names)
    return {(tool, name) for tool, names in result.items() for name in ("", *names)}


def lacks(fact: Fact, row: RowEvidence) -> bool:
    """Whether a row never makes a call, or never gives it an argument."""
    tool, name = fact
    calls = [act for act in row.acts if act.tool == tool]
    return not calls if not name else bool(calls) and all(name not in act.names for act in calls)


def _last_of(tool: str, row: RowEvidence) -> tuple[int, str] | None:
    own = [act for act in row.acts if act.tool == tool] or row.acts
    return (own[-1].step, "") if own else None


def _omissions(people: Population, left: Mask, graded: frozenset[str]) -> Iterator[Trace]:
    """Calls without which rollouts pass far less often than with them in the same tasks, though some do."""
    tools = Counter(tool for row in people.of(people.passed) for tool in {act.tool for act in row.acts})
    common = sorted(tool for tool, n in tools.items() if tool not in graded and n >= 0.5 * people.passed.sum())
    tests = [(tool, contrast(people, people.where(partial(lacks, (tool, ""))), left)) for tool in common if people.has_repeats]
    for tool, test in sorted(tests, key=lambda pair: -int(pair[1].rows.sum()) if pair[1] is not None else 0):
        if test is None or test.p * len(tests) > LEVEL or test.purity < IMPURE:
            continue
        rows = people.where(partial(lacks, (tool, "")))
        rows &= ~np.isin(people.task, people.task[rows & people.passed])  # not in tasks that pass the same way
        yield Trace("omission", rows, partial(_last_of, tool), {"tool": tool, "without": test.pass_with, "with_it": test.pass_without})


# ---- A list that is not read to its end ------------------------------------------------------------


def _pages(people: Population, left: Mask, graded: frozenset[str]) -> Iterator[Trace]:
    """Rows that leave a list after a part of it, where passes go on with the next one."""
    goes: defaultdict[str, set[str]] = defaultdict(set)
    for act, after in (pair for row in people.of(people.passed) for pair in pairwise(row.acts)):
        # a call goes on where an incomplete result ended: the same tool again, with one more argument
        more = set(after.names) - set(act.names)
        if act.is_partial and act.tool == after.tool and len(more) == 1:
            goes[act.tool] |= more
    for tool, names in sorted(goes.items()):
        among = people.where(lambda row: any(act.tool == tool and act.is_partial for act in row.acts))  # noqa: B023
        rows = among & ~people.where(lambda row: any(act.tool == tool and names & set(act.names) for act in row.acts))  # noqa: B023
        if (rows & left).any() and people.passed[rows].sum() <= NEVER * max(1, int((people.passed & among).sum())):
            yield Trace("pages", rows, partial(_last_of, tool), {"tool": tool, "names": joined(sorted(names))})


# ---- An error that is not corrected ----------------------------------------------------------------


def _errors(people: Population, left: Mask, graded: frozenset[str]) -> Iterator[Trace]:
    """Rows whose last call of an expected tool is refused, and that end without it."""
    rows = people.where(partial(_refused, graded))
    among = people.where(lambda row: any(act.tool in graded for act in row.acts))
    if (rows & left).any() and _is_rare(people, rows, among):
        tools = Counter(act.tool for row in people.of(rows & left) if (act := _refused(graded, row)) is not None)
        template, _ = common_error(people, rows & left)
        shown = f"; most often such as: {shown_error(people, rows & left, template, 90)}" if template else ""
        facts = {"tools": joined(tool for tool, _ in tools.most_common()), "shown": shown}
        yield Trace("refused", rows, lambda row: (call.step, "") if (call := _refused(graded, row)) else None, facts)


def _refused(graded: frozenset[str], row: RowEvidence) -> Act | None:
    """The first call of a tool that is due, was refused and never works: what it was for is missing at the end."""
    names = Counter(tool for tool, _ in row.expected or ())
    lacking = {tool for tool in names if tool in graded and names[tool] > sum(name == tool for name, _ in row.made)}
    worked: set[str] = set()
    result = None
    for act in reversed(row.acts):
        if act.tool in lacking and not act.failed:
            worked.add(act.tool)
        elif act.tool in lacking and act.tool not in worked and act.is_answered:
            result = act
    return result


def _group(people: Population, way: Trace, rows: Mask, groups: Sequence[Group]) -> Group:
    """The group under the name of the act, with what follows from it."""
    n, own = int(rows.sum()), [entry for entry in groups if (entry.rows & rows).any()]
    after = Counter({entry.name: int((entry.rows & rows).sum()) for entry in own}).most_common()
    owners = {row.position: entry for entry in own for row in people.of(entry.rows & rows)}
    result = group(
        f"behaviour.{way.kind}", people, rows, matched=way.rows, place=way.place, **way.facts,
        # the act by which the difference itself came about is to blame, the wrong write, and not what led to it; a refused call is a fault
        blame=way.place if way.kind == "refused" else lambda row: owners[row.position].place(row) if row.position in owners else None,
        # what the group that a row was in before shows of it
        detail=lambda i: next((entry.detail(i) for entry in groups if entry.rows[i] and entry.detail is not None), ""),
        follows="; ".join([f"{name} ({m:,})" if m < n else name for name, m in after][:3]),
        against=dict.fromkeys(doubt for entry in own for doubt in entry.against),
    )  # fmt: skip
    result.consequences = [name for name, _ in after]
    result.is_defined_by_passes = way.is_defined_by_passes
    return result
