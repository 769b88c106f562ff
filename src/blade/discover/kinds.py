"""Turn what is known of the tasks into conditions to compare within, and into strata of like tasks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from blade.discover import gather
from blade.discover.gather import Rows
from blade.model import Column

if TYPE_CHECKING:
    from blade.model import Bools, Floats, Ints

MIN_TASKS = 5
MAX_VALUES = 12
MIN_STRATUM = 6
LIFT = 1.2  # how much more usual a tool is with the tasks that seem to need it
_WORD = re.compile(r"[A-Za-z][a-z]{2,}")
TEXT = 4
CHANGES = "gold_writes"  # the task expects a call that changes something


def conditions(
    rows: Rows, fields: Mapping[str, Column], task_fields: frozenset[str], least: int | None = None
) -> dict[str, Bools]:
    """Conditions on tasks by name: the tools a task expects, words these share, categories.

    Those that `least` tasks meet; without it, those that can part the tasks.
    """
    told = dict(sorted(gather.of_tasks(rows)))
    found = {name: held for name, held in told.items() if name.startswith("gold_has(")}
    writing = [held for name, held in told.items() if _writes(name)]
    for word, tools in _shared_words(_writing(found, rows)).items():
        held = np.any([found[f"gold_has({tool})"] for tool in tools], axis=0)
        found[f"gold_has(*{word}*)"] = held
    for name, labels in categories(rows, fields, task_fields).items():
        for label in sorted(set(labels) - {""}):
            found[f"{name}={label}"] = np.asarray([each == label for each in labels])
    if writing:
        found[CHANGES] = np.any(writing, axis=0)
    first = rows.starts
    if least is not None:
        return {name: held for name, held in found.items() if held[first].sum() >= least}
    return {name: held for name, held in found.items() if held[first].sum() >= MIN_TASKS and not held.all()}


def _writing(found: Mapping[str, Bools], rows: Rows) -> list[str]:
    """The expected tools that change something."""
    tools = [name[len("gold_has(") : -1] for name in found]
    return [tool for tool in tools if f"task:gold_writes({tool})" in rows.columns]


def _shared_words(tools: list[str]) -> dict[str, list[str]]:
    by_word: dict[str, list[str]] = {}
    for tool in tools:
        for word in sorted(set(_WORD.findall(tool.replace("_", " ")))):
            by_word.setdefault(word.lower(), []).append(tool)
    shared = {word: tools for word, tools in sorted(by_word.items()) if len(tools) > 1}
    return dict(islice(shared.items(), 20))


def needing(tool: str, rows: Rows, found: Mapping[str, Bools]) -> tuple[str, Bools] | None:
    """The tasks that expect a tool with which this one is usual; outcomes have no say in it."""
    calls = rows.columns.get(f"calls({tool})")
    if calls is None:
        return None
    usual = float(calls.mean())
    names = [
        name
        for name, held in found.items()
        if name.startswith("gold_has(")
        and "*" not in name
        and name != f"gold_has({tool})"
        and rows.columns.get(f"task:gold_writes({name[len('gold_has(') : -1]})") is not None
        and float(calls[held].mean()) >= LIFT * usual
    ]
    if len(names) < 2:
        return None
    held = np.any([found[name] for name in names], axis=0)
    inside = "|".join(name[len("gold_has(") : -1] for name in names)
    return f"gold_has({inside})", held


def categories(
    rows: Rows, fields: Mapping[str, Column], task_fields: frozenset[str]
) -> dict[str, tuple[str, ...]]:
    """The fields of tasks that part them into a few kinds, with the label of each row."""
    found = {}
    for name in sorted(task_fields & fields.keys()):
        column = fields[name]
        if not (column.kind[rows.position] == TEXT).any():
            continue
        codes = column.code[rows.position]
        if 2 <= np.unique(codes[codes >= 0]).size <= MAX_VALUES:
            found[name] = tuple(column.texts[code][:80] if code >= 0 else "" for code in codes)
    return found


# ---- Strata -----------------------------------------------------------------------------------


def strata(rows: Rows, fields: Mapping[str, Column], task_fields: frozenset[str]) -> tuple[Ints, str]:
    """A code of like tasks for each task, and in words what makes them alike."""
    first = rows.starts
    expected = [(name, held[first]) for name, held in sorted(gather.of_tasks(rows)) if _writes(name)]
    known = categories(rows, fields, task_fields)
    if expected:
        labels = ["+".join(name for name, held in expected if held[at]) for at in range(first.size)]
        told = "the same expected writing calls"
    elif known:
        name = max(known, key=lambda name: (len(set(known[name])), name))
        labels = [known[name][at] for at in first]
        told = f"the same `{name}`"
    else:
        labels, told = [""] * first.size, ""
    size, what = _size(rows)
    codes = _collapsed(labels)
    if size is None:
        return codes, f"tasks with {told}" if told else "no property of the tasks is known to hold fixed"
    split = _halved(codes, size)
    words = f"{told} and a like {what}" if told else f"a like {what}"
    return split, f"tasks with {words}"


def _writes(name: str) -> bool:
    return name.startswith("gold_writes(")


def _size(rows: Rows) -> tuple[Floats | None, str]:
    """How large each task is: expected calls, else the length of its prompt."""
    for key, what in (
        ("task:#gold_actions", "number of expected calls"),
        ("task:#prompt_chars", "prompt length"),
    ):
        values = rows.numbers.get(key)
        if values is not None:
            first = np.nan_to_num(values[rows.starts])
            if np.unique(first).size > 1:
                return first, what
    return None, ""


def _collapsed(labels: list[str]) -> Ints:
    """Codes of labels, those of few tasks taken together."""
    names, codes, counts = np.unique(
        np.asarray(labels, object).astype(str), return_inverse=True, return_counts=True
    )
    rare = counts < MIN_STRATUM
    return np.where(rare[codes], names.size, codes).astype(np.int64)


def _halved(codes: Ints, size: Floats) -> Ints:
    """Each stratum that is large enough, parted by size: into quarters if it is very large."""
    found = codes * 4
    for code in np.unique(codes):
        mine = np.flatnonzero(codes == code)
        parts = 4 if mine.size >= 12 * MIN_STRATUM else 2 if mine.size >= 3 * MIN_STRATUM else 1
        cuts = np.quantile(size[mine], np.arange(1, parts) / parts) if parts > 1 else np.empty(0)
        found[mine] += np.searchsorted(np.unique(cuts), size[mine], side="right")
    return found
