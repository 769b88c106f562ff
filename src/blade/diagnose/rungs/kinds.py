"""Ask on which tasks the points are lost: slices by every field about the task, by class of gold, by parts of the id.

A slice says where, not why; it becomes a group only where its rows fail far more often than all others, and takes its
label from what its answers show.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from blade import stats
from blade.answers import value_of
from blade.diagnose.groups import Findings, Group, group
from blade.diagnose.population import Mask, Population, as_float, id_of, most_common
from blade.diagnose.reference import Reference, answered

LEVEL = 0.05
MIN_TASKS = 3
MAX_VALUES = 30
GOLD_CLASS = "expected answer is"
READABLE = 40  # characters up to which a value names a slice before a longer one does, and a word says something
SHARE = 0.3  # of the failures left, from which a slice is a group
RATIO = 0.5  # pass rate inside over outside, up to which it is one
CLASS_RATIO = 0.75  # the same where the slice is a class of expected answers, which the answer itself misses
OTHER = 0.8  # share of its failures whose answer is of another class than the expected one


@dataclass
class Slice:
    """Tasks with one value of a field, beside all others."""

    field: str
    value: str
    rows: Mask
    n_tasks: int
    rate: float
    rate_without: float
    p: float  # adjusted over all fields and values


def slices(people: Population, reference: Reference | None) -> list[Slice]:
    """All slices with their tests, those first that cost most beyond what the other tasks lose."""
    distinct: dict[tuple[bytes, bool], tuple[str, str, Mask]] = {}  # the same tasks under another name are no other slice
    for (field, value), rows in sorted(_sets(people, reference).items(), key=lambda pair: len(pair[0][1]) > READABLE):
        distinct.setdefault((np.packbits(rows).tobytes(), field == GOLD_CLASS), (field, value, rows))
    result, n_all = [], people.n_tasks(~people.none)
    for field, value, rows in distinct.values():
        n_tasks = people.n_tasks(rows)
        if MIN_TASKS <= n_tasks <= n_all - MIN_TASKS and (p := _test(people, rows)) is not None:
            result.append(Slice(field, value, rows, n_tasks, people.rate(rows), people.rate(~rows), p))
    for entry in result:
        entry.p = min(1.0, entry.p * len(result))
    return sorted(result, key=lambda entry: (entry.p > LEVEL, (entry.rate - entry.rate_without) * entry.rows.sum()))


def _test(people: Population, rows: Mask) -> float | None:
    """Two-sided: exact where every task has one outcome, Welch over task means otherwise."""
    rates, inside = people.rates(~people.none), np.isin(np.unique(people.task), people.task[rows])
    yes, no = rates[inside], rates[~inside]
    if set(np.unique(rates)) <= {0.0, 1.0}:
        return stats.fisher(int(yes.sum()), len(yes), int(no.sum()), len(no))
    spreads = [float(part.var()) * (part.size / (part.size - 1)) / part.size for part in (yes, no)]
    if sum(spreads) <= 0:
        return None
    df = sum(spreads) ** 2 / sum(spread**2 / (part.size - 1) for spread, part in zip(spreads, (yes, no), strict=True))
    return float(2 * stats.special().stdtr(df, -abs(yes.mean() - no.mean()) / np.sqrt(sum(spreads))))


def _sets(people: Population, reference: Reference | None) -> dict[tuple[str, str], Mask]:
    result: dict[tuple[str, str], Mask] = {}
    for path, (codes, values) in people.task_level.items():
        if len(values) <= MAX_VALUES and not _is_effort(people, codes, values):
            for code, value in enumerate(values):
                if len(str(value)) <= READABLE or " " in str(value):  # a long word says nothing to a reader
                    result[path, str(value)[:60]] = codes == code
    for name, rows in _id_parts(people) if not people.is_regrouped else ():  # ids that name no task name no kind of task
        result["task id contains", name] = rows
    if reference is not None:
        classes = [gold_class(gold) for gold in reference.gold]
        for name in dict.fromkeys(classes):
            result[GOLD_CLASS, name] = np.array([entry == name for entry in classes], bool)
    return result


def _is_effort(people: Population, codes: np.ndarray, values: list[Any]) -> bool:
    """Whether a field is an amount: a fraction, or a number that grows with the length of the rollout."""
    if any(isinstance(value, float) and not value.is_integer() for value in values):
        return True
    if any(isinstance(value, str | bool) for value in values):
        return False
    amounts = np.array([np.nan if code < 0 else as_float(values[code]) for code in codes])
    present = np.isfinite(amounts)
    lengths = [np.array([getattr(row, name) for row in people.rows], float) for name in ("n_turns", "n_acts")]
    return any(
        present.sum() > 2 and np.ptp(length[present]) > 0 and np.ptp(amounts[present]) > 0
        and abs(float(np.corrcoef(amounts[present], length[present])[0, 1])) > 0.8 for length in lengths
    )  # fmt: skip


def _id_parts(people: Population) -> Iterator[tuple[str, Mask]]:
    """Words that stand in the ids of several tasks, and in not nearly all."""
    rows: defaultdict[str, list[int]] = defaultdict(list)
    for i, row in enumerate(people.rows):
        if (name := id_of(row)) is not None:
            words = [part for part in re.split(r"[^\w.]+", name) if len(part) > 2 and not part.isdigit()]
            prefix = re.findall(r"^([A-Za-z]+\d*)[_\-/:]", name)
            # the beginnings of compound words, from the second part on: `user_abroad` of `user_abroad_roaming_off`
            heads = ("_".join(word.split("_")[:n]) for word in words for n in range(2, word.count("_") + 1))
            for part in sorted({*words, *(head for head in prefix if len(head) > 2), *heads}):
                rows[part].append(i)
    for part, places in rows.items():
        if 3 <= len(places) <= 0.95 * people.n:
            yield part, people.mask(places)


def gold_class(gold: str | None) -> str:
    """What kind of thing is expected: none, a number, a letter, yes or no, text."""
    if gold is None or not gold.strip():
        return "empty"
    kind, value = value_of(gold)
    if kind == "literal" and value[:1] in "[{":
        return "a list or object"
    if kind == "literal":
        return {"None": "None", "True": gold.strip()[:20], "False": gold.strip()[:20]}.get(value, "a quoted text")
    if kind == "text" and value in ("none", "null", "n/a", "unknown", "yes", "no", "true", "false"):
        return str(gold).strip()
    return "several values" if kind == "list" else f"a {kind}"


def ask(people: Population, left: Mask, reference: Reference | None, result: list[Slice]) -> Findings:
    """The slice that holds most of what is left, where it fails far more often than the rest."""
    total = int(left.sum())
    for piece in result:
        rows = piece.rows & left
        n = int(rows.sum())
        ratio = CLASS_RATIO if piece.field == GOLD_CLASS else RATIO
        if piece.p > LEVEL or n < SHARE * total or n < 5 or piece.rate > ratio * piece.rate_without:
            continue
        if reference is None or not reference.is_telling or not (rows & reference.held).sum() >= 0.8 * n:
            continue
        golds = {gold_class(reference.gold[i]) for i in np.flatnonzero(rows)}
        other = _of_another_class(rows, reference)
        if len(golds) == 1 and other.sum() >= OTHER * n:
            return Findings([_group(people, piece, other, reference)])
    return Findings()


def _of_another_class(rows: Mask, reference: Reference) -> Mask:
    """Rows whose answer is another kind of thing than the one that is expected."""
    pairs = zip(rows, reference.answer, reference.gold, strict=True)
    return np.array([has and gold_class(answer) != gold_class(gold) for has, answer, gold in pairs], bool)


def _group(people: Population, piece: Slice, rows: Mask, reference: Reference) -> Group:
    is_class = piece.field == GOLD_CLASS
    twins = ((path, _names(people, path, rows)) for path in people.task_level if is_class)
    path, value = next(((path, value) for path, value in twins if value is not None), ("", None))
    return group(
        "kinds.slice", people, rows, matched=rows | (_of_another_class(piece.rows, reference) & ~reference.same),
        about=f"the expected answer is {piece.value}" if is_class else f"`{piece.field}` = `{piece.value}`",
        twin=f" (`{path}` = `{value}`)" if path else "", passes=int(people.passed[piece.rows].sum()), rollouts=int(piece.rows.sum()),
        inside=piece.rate, outside=piece.rate_without, detail=lambda i: answered(people, i, reference),
    )  # fmt: skip


def _names(people: Population, path: str, rows: Mask) -> Any:
    """The value of a field that about the same rows have and few others."""
    codes, values = people.task_level[path]
    best, n = most_common(codes[rows & (codes >= 0)].tolist())
    is_twin = n and len(values) <= MAX_VALUES and n >= 0.9 * rows.sum() and (codes == best).sum() <= 2 * rows.sum()
    return values[best] if is_twin else None
