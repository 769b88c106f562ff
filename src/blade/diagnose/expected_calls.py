"""Compare the calls that a row made with those it was to make, as closely as passing rows show that they count."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from blade import events
from blade.diagnose.evidence import RowEvidence
from blade.diagnose.groups import short
from blade.diagnose.population import Mask, Population

DIFFER, DIFFER_SHARE = 3, 0.15  # tasks that pass with other calls of a tool than expected: then it is not graded
AGREE = 0.75  # share of the passes that do exactly what is expected, from which the difference is what is graded
KINDS = ("nothing due", "none done", "arguments", "part", "extra", "other")  # how what was done differs, as groups are called by it
# how closely calls of a tool must match the expected ones
EXACT, ORDER, PARTS, NAME = "exact", "whatever the order", "parts", "name"
LEVELS = (EXACT, ORDER, PARTS, NAME)
ADOPTED = "its passes"  # where the calls are that a row expects, once they are taken from passes
Call = tuple[str, str]  # tool, canonical arguments
PART_OF_GRADE = 0.9  # share of the tasks from which a check is a part of every grade, not what one task demands


def graded_tools(people: Population) -> dict[str, str]:
    """Tools whose calls the grade depends on, each with how closely passes match what is expected of it.

    Some golds state every argument, some only those that count, some none that a pass would share, as with free texts.
    A few tasks may pass with other calls than the expected ones: a gold that does not work, or that is not needed.
    """
    if people.graded is not None:
        return people.graded
    involved: dict[str, set[int]] = defaultdict(set)
    passes = [(people.rows[i], int(people.task[i])) for i in np.flatnonzero(people.passed) if people.rows[i].expected is not None]
    for row, task in passes:
        for tool, _ in (*(row.expected or ()), *row.made):
            involved[tool].add(task)
    open_ = {tool for row in people.rows for tool, _ in row.expected or ()}
    levels: dict[str, str] = {}
    for level in LEVELS:
        differ: dict[str, set[int]] = defaultdict(set)
        for row, task in passes if open_ else ():
            if not _is_equal(row, open_):
                calls, due = acts_of(row, dict.fromkeys(open_, level))
                for tool, _ in (calls - due) + (due - calls):
                    differ[tool].add(task)
        # passes make the expected calls of a tool in nearly all tasks that it plays a part in
        matched = {tool for tool in open_ if len(differ[tool]) < DIFFER or len(differ[tool]) <= DIFFER_SHARE * len(involved[tool])}
        levels |= dict.fromkeys(matched, level)
        open_ -= matched
    return {tool: level for tool, level in sorted(levels.items()) if not _is_idle(people, tool, level)}


def _is_idle(people: Population, tool: str, level: str) -> bool:
    """Whether rows that call a tool otherwise than expected pass about as often as all others, and it looks things up."""
    if events.what_it_does(tool, None, None, {}) != events.READ:
        return False
    rows = people.where(lambda row: row.expected is not None and not _is_equal(row, (tool,)) and difference(row, {tool: level}))
    passes = int(people.passed[rows].sum())
    return passes > 0 and passes / int(rows.sum()) > 0.5 * float(people.passed.mean())


def _is_equal(row: RowEvidence, tools: Collection[str]) -> bool:
    """Whether the calls of some tools are the expected ones letter for letter, which holds at every level."""
    return [call for call in row.made if call[0] in tools] == [call for call in row.expected or () if call[0] in tools]


def demanding(people: Population) -> Mask:
    """Rows whose task also demands what no call does: a result to be told, a check of its own that no pass fails."""
    tasks: dict[str, set[int]] = defaultdict(set)
    unmet: dict[str, set[bool]] = defaultdict(set)  # list of checks -> whether rows that do not meet it in full pass
    for row, passed, task in zip(people.rows, people.passed.tolist(), people.task.tolist(), strict=True):
        for name, met in row.checks.items():
            tasks[name].add(task)
            if not met:
                unmet[name.partition(": ")[0]].add(passed)
    least = PART_OF_GRADE * people.n_tasks(~people.none)
    # lists that some pass does not meet are not graded
    own = {name for name, present in tasks.items() if len(present) < least and True not in unmet.get(name.partition(": ")[0], ())}
    # of one list, words are members of an object and figures are checks
    members = tuple(f"{path}." for path in sorted({name.partition(": ")[0] for name in own} & unmet.keys()))
    return people.where(lambda row: row.gold_text or not own.isdisjoint(row.checks) or any(path.startswith(members) for path in row.fields))


def adopt_golds(people: Population) -> None:
    """Take what the passes of a task do for what it expects, where they all do the same and it is something else."""
    paths = Counter(row.expected_at for row in people.rows if row.expected_at and row.expected_at != ADOPTED)
    usual = max(paths, key=lambda path: paths[path], default="")
    for row in people.rows if usual else ():
        if row.expected is None and row.fields.get(usual) == "[]":
            row.expected = ()  # where other rows list calls, an empty list says that none is due
    graded = people.graded = graded_tools(people)
    passing: dict[int, list[Counter[Call]]] = defaultdict(list)
    idle: set[int] = set()  # tasks with a pass without any call: a doubt about the grade, not about the gold
    n_same = n_passes = 0
    for row, passed, task in zip(people.rows, people.passed, people.task.tolist(), strict=True):
        if passed and row.expected is not None:
            calls, due = acts_of(row, graded)
            passing[task].append(calls)
            if row.is_spoken or not row.acts:
                idle.add(task)
            n_same, n_passes = n_same + (calls == due), n_passes + 1
    if n_same < AGREE * n_passes:
        return  # what is expected is not what is graded
    agreed = {task: acts[0] for task, acts in passing.items() if task not in idle and all(other == acts[0] for other in acts)}
    for row, task in zip(people.rows, people.task.tolist(), strict=True):
        if row.expected is not None and task in agreed and agreed[task] != acts_of(row, graded)[1]:
            others = [call for call in row.expected if call[0] not in graded]
            row.expected = (*others, *agreed[task].elements())
            row.expected_at = ADOPTED


def acts_of(row: RowEvidence, graded: Mapping[str, str]) -> tuple[Counter[Call], Counter[Call]]:
    """The graded calls that a row made, and those that it was to make, so that matching ones are equal."""
    due = Counter((tool, told(text, graded[tool])) for tool, text in row.expected or () if tool in graded)
    return Counter(call for _, call, _ in _matched(row, graded, due.copy())), due


def _matched(row: RowEvidence, graded: Mapping[str, str], open_: Counter[Call]) -> Iterator[tuple[int, Call, bool]]:
    """The graded calls that a row made, with their places, as the due ones that they match; and whether they match any."""
    for place, (tool, text) in enumerate(row.made):
        if tool in graded:
            call = (tool, told(text, graded[tool]))
            if graded[tool] == PARTS and open_[call] <= 0:
                call = next((due for due in open_ if due[0] == tool and open_[due] > 0 and covers(text, due[1])), call)
            open_[call] -= 1
            yield place, call, open_[call] >= 0


def told(arguments: str, level: str) -> str:
    """The arguments of a call as far as they count."""
    return "" if level == NAME else _unordered(arguments) if level == ORDER and "[" in arguments else arguments


@lru_cache(maxsize=20_000)
def _unordered(arguments: str) -> str:
    """Arguments with their lists of plain values sorted."""
    content = _arguments(arguments)
    if content is None:
        return arguments
    for key, value in content.items():
        if isinstance(value, list) and all(isinstance(entry, str | int | float) for entry in value):
            content[key] = sorted(value, key=str)
    return json.dumps(content, sort_keys=True)


@lru_cache(maxsize=20_000)
def covers(calls: str, wanted: str) -> bool:
    """Whether a call states everything that an expected one does."""
    arguments, expected = _arguments(calls), _arguments(wanted)
    return arguments is not None and expected is not None and arguments == {**arguments, **expected}


def nothing_due(people: Population) -> Mask:
    """Rows that expect no graded call, nor one for another party: what nobody ever calls is not for the model to do."""
    graded = graded_tools(people)
    known = {tool for row in people.rows for tool, _ in row.made}
    rows = people.where(
        lambda row: row.expected is not None and not acts_of(row, graded)[1] and known.issuperset(tool for tool, _ in row.expected)
    )
    # that nothing is due is only known where such tasks pass
    return rows if people.passed[rows].sum() >= DIFFER else people.none


def only_reads(row: RowEvidence) -> bool:
    """Whether the calls that a row expects look things up, all of them."""
    return all(events.what_it_does(tool, None, None, {}) == events.READ for tool, _ in row.expected or ())


def difference(row: RowEvidence, graded: Mapping[str, str]) -> str:
    """How what a row did differs from what it was to do: one of `KINDS`, or nothing."""
    calls, due = acts_of(row, graded)
    if calls == due:
        return ""
    if not due or not calls:
        return "none done" if due else "nothing due"
    names_made, names_due = (Counter(tool for tool, _ in acts.elements()) for acts in (calls, due))
    more, less = names_made - names_due, names_due - names_made
    if not more and not less:
        return "arguments"
    if more and not less and not due - calls:
        return "extra"
    return "part" if less and not more and calls & due else "other"


def mismatch(row: RowEvidence, graded: Mapping[str, str], only: str = "") -> int | None:
    """The step of the first call, of one tool or of any, that matches no expected one."""
    _, due = acts_of(row, graded)
    worked = [act for act in row.acts if not act.failed]
    if len(worked) != len(row.made):
        return None  # only the first and last acts of a long rollout are kept
    odd = (place for place, call, is_due in _matched(row, graded, due) if not is_due and only in ("", call[0]))
    return next((worked[place].step for place in odd), None)


# ---- The difference in words -----------------------------------------------------------------------

MAX_VALUE = 48  # characters of an argument in a sentence
MAX_PARTS = 3  # differences in a sentence


def in_words(row: RowEvidence, graded: Mapping[str, str]) -> str:
    """How the calls of a row differ from the expected ones, call by call; empty where they do not."""
    parts = [
        _changed(calls, due, graded[due[0]]) if calls and due
        else f"`{_shown(due)}` is expected and {_fate(row, due[0])}" if due
        else f"`{_shown(calls)}` is called and not expected" if calls else ""
        for calls, due in _pairs(row, graded)
    ]  # fmt: skip
    more = f"; and {len(parts) - MAX_PARTS} more" if len(parts) > MAX_PARTS else ""
    return "; ".join(parts[:MAX_PARTS]) + more


def odd_arguments(row: RowEvidence, graded: Mapping[str, str]) -> list[str]:
    """The arguments in which the calls of a row differ from the expected ones."""
    return [name for calls, due in _pairs(row, graded) if calls and due for name in unlike(calls, due, graded[due[0]])]


def _pairs(row: RowEvidence, graded: Mapping[str, str]) -> list[tuple[Call | None, Call | None]]:
    """Calls that are not as expected: made and expected ones of a tool side by side, the most alike first."""
    calls, due = acts_of(row, graded)
    extra, missing = sorted((calls - due).elements()), sorted((due - calls).elements())
    result: list[tuple[Call | None, Call | None]] = []
    for call in missing:
        twins = (other for other in extra if other[0] == call[0])
        twin = min(twins, key=lambda other: len(unlike(other, call)), default=None)
        result.append((twin, call))
        if twin is not None:
            extra.remove(twin)
    return [*result, *((call, None) for call in extra)]


def _fate(row: RowEvidence, tool: str) -> str:
    """What became of an expected call: never made, or the tool refused each time."""
    calls = [act for act in row.acts if act.tool == tool]
    if not calls or not all(act.failed for act in calls):
        return "never made"
    # a tool that worked before, and that is expected only after it
    order = [name for name, _ in row.expected or ()]
    later = set(order[order.index(tool) + 1 :]) - set(order[: order.index(tool)]) if tool in order else set()
    before = next((act.tool for act in row.acts if act.tool in later and not act.failed and act.step < calls[0].step), "")
    return f"was refused ({short(calls[-1].error, 80)})" + (f" after `{before}`, which is expected later" if before else "")


def unlike(calls: Call, due: Call, level: str = EXACT) -> dict[str, tuple[Any, Any]]:
    """The arguments in which two calls differ: name -> value given, value expected."""
    actual, wanted = _arguments(calls[1]), _arguments(due[1])
    if actual is None or wanted is None:
        return {} if calls[1] == due[1] else {"arguments": (calls[1], due[1])}
    names = [*wanted, *(name for name in actual if name not in wanted)] if level != PARTS else list(wanted)  # all else is free
    return {name: (actual.get(name), wanted.get(name)) for name in names if actual.get(name) != wanted.get(name)}


def _changed(calls: Call, due: Call, level: str) -> str:
    odd = unlike(calls, due, level)
    text = ", ".join(_argument(name, *values) for name, values in list(odd.items())[:2])
    more = f" and {len(odd) - 2} more arguments" if len(odd) > 3 else " and another argument" if len(odd) == 3 else ""
    return f"`{due[0]}` is called with {text}{more}" if odd else f"`{due[0]}` is called otherwise than expected"


def _argument(name: str, actual: Any, wanted: Any) -> str:
    """An argument as it is and as it should be; of two lists only what is in one of them."""
    if isinstance(actual, list) and isinstance(wanted, list) and actual and wanted:
        more, less = ([entry for entry in some if entry not in others] for some, others in ((actual, wanted), (wanted, actual)))
        if not more or not less:
            listed = ", ".join(short(str(entry), 30) for entry in (more or less)[:2])
            return f"`{name}` {'with' if more else 'without'} {listed}" if listed else f"`{name}` in another order or number"
        actual, wanted = more, less
    if all(isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict) for value in (actual, wanted)):
        odd = {k: (actual[0].get(k), wanted[0].get(k)) for k in (*wanted[0], *actual[0]) if actual[0].get(k) != wanted[0].get(k)}
        key = next(iter(odd))
        if len(odd) < len(wanted[0]):
            name, (actual, wanted) = f"{name}.{key}", odd[key]
    phrase = [short(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), MAX_VALUE) for value in (actual, wanted)]
    if wanted is None:
        return f"`{name}` {phrase[0]}, not expected"
    return f"`{name}` {phrase[0]} instead of {phrase[1]}" if actual is not None else f"no `{name}` ({phrase[1]} expected)"


def _arguments(text: str) -> dict[str, Any] | None:
    try:
        content = json.loads(text) if text else {}
    except ValueError:
        return None
    return content if isinstance(content, dict) else None


def _shown(call: Call) -> str:
    """A call as code: its tool with its short arguments."""
    arguments = _arguments(call[1])
    if not arguments:
        return call[0]
    listed = ", ".join(f"{name}={short(value if isinstance(value, str) else json.dumps(value), 24)}" for name, value in arguments.items())
    return f"{call[0]}({short(listed, 90)})"
