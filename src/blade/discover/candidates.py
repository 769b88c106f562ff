"""Turn columns, numbers and fields into candidate predicates, without those that restate the reward."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from blade.discover import gather, grammar, kinds
from blade.discover.gather import Rows
from blade.model import ID_FIELDS, PROMPT, Column

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from blade.model import Bools, Floats

ABSENT, NULL, BOOL, NUMBER, TEXT = range(5)
MAX_TEXTS = 30
MAX_CUTS = 3
HIGH, LOW = 0.98, 0.02  # pass rates on both sides from which a predicate is the reward in other words
APART = 0.9  # the same for counts, fields and what stands at the end: a rollout may stop when it succeeds
SAME = 0.95  # share of rows on which a predicate that names the kind of task agrees with it
MAX_CONDITIONED = 600


@dataclass(frozen=True)
class Candidates:
    """Predicates: a column each, and the condition within which it is compared."""

    features: tuple[str, ...]
    matrix: NDArray[np.uint8]  # rows x features
    conditions: tuple[str, ...]  # the first holds for every row
    held: Bools  # conditions x rows
    pairs: tuple[tuple[int, int], ...]  # feature, condition
    slices: tuple[str, ...]  # features that only name the kind of task


def candidates(
    rows: Rows, fields: Mapping[str, Column], task_fields: frozenset[str], restating: frozenset[str]
) -> Candidates:
    """All predicates worth a test; which they are does not depend on single outcomes."""
    about = kinds.conditions(rows, fields, task_fields)
    columns = _columns(rows, fields, task_fields, restating)
    slices = [name for name in columns if _names_the_kind(columns[name], name, about, rows)]
    for name in slices:
        del columns[name]
    features = tuple(sorted(columns))
    matrix = np.empty((rows.n, len(features)), np.uint8, order="F")
    for at, name in enumerate(features):
        matrix[:, at] = columns[name]
    conditions = {"": np.ones(rows.n, bool)}
    pairs = []
    for at, name in enumerate(features):
        for told, held in within(name, rows, about):
            if _has_support(matrix[:, at], held, gather.least_support(rows.n, _is_asked(name, told))):
                conditions.setdefault(told, held)
                pairs.append((at, told))
    places = {told: at for at, told in enumerate(conditions)}
    closer = [pair for pair in pairs if pair[1] and grammar.kind(features[pair[0]]) not in grammar.GOLD]
    left_out = set(closer[MAX_CONDITIONED:])
    return Candidates(
        features,
        matrix,
        tuple(conditions),
        np.asarray(list(conditions.values())),
        tuple((at, places[told]) for at, told in pairs if (at, told) not in left_out),
        tuple(slices),
    )


def _is_asked(name: str, condition: str) -> bool:
    """Whether a pair is an act, compared among tasks that say whether they expect it."""
    kind, tool = grammar.kind(name), grammar.tool_of(name)
    if kind == "calls":
        return condition in (f"gold_has({tool})", f"gold_lacks({tool})")
    return kind in grammar.ASKED and condition.startswith("gold_")


def _has_support(column: NDArray[np.uint8], held: Bools, least: int) -> bool:
    shown, inside = int(column[held].sum()), int(held.sum())
    return least <= shown <= inside - least


def within(name: str, rows: Rows, about: Mapping[str, Bools]) -> Iterator[tuple[str, Bools]]:
    """The conditions within which a feature is compared."""
    kind = grammar.split(name)[0]
    tool = grammar.tool_of(name)
    if kind in ("arg", "length"):
        calls = rows.columns.get(f"calls({tool})")
        yield (f"calls({tool})", calls.astype(bool)) if calls is not None else ("", np.ones(rows.n, bool))
        return
    if kind in grammar.FINAL:
        given = ~np.isnan(rows.numbers.get("#final_chars", np.zeros(rows.n)))
        yield "" if given.all() else "final_given", given
        return
    if kind in grammar.GOLD:
        yield _of_gold(kind, rows)
        return
    yield "", np.ones(rows.n, bool)
    if kind == "n_writes" and kinds.CHANGES in about:
        yield kinds.CHANGES, about[kinds.CHANGES]
    if kind != "calls":
        return
    own = about.get(f"gold_has({tool})")
    if own is not None:
        yield f"gold_lacks({tool})", ~own
    if f"task:gold_writes({tool})" in rows.columns:  # other tasks have no need of it
        yield from (
            (told, held) for told, held in about.items() if told == f"gold_has({tool})" or "=" in told
        )
        return
    reads = {f"gold_has({other})" for other in _read_tools(about, rows)} - {f"gold_has({tool})"}
    reads.add(kinds.CHANGES)
    yield from ((told, held) for told, held in about.items() if told not in reads)
    needed = kinds.needing(tool, rows, about)
    if needed is not None:
        yield needed


def _of_gold(kind: str, rows: Rows) -> tuple[str, Bools]:
    """The rows whose task says what is expected; an answer comes only to those that ask a tool."""
    if kind == "misses_gold_write":
        return kinds.CHANGES, gather.of_task(rows, "gold_writes(")
    if kind == "gold_ids_touched":
        return "gold_ids", gather.of_task(rows, "gold_ids")
    return "gold_answer", gather.of_task(rows, "gold_answer") & (rows.numbers["#n_calls"] >= 1)


def _read_tools(about: Mapping[str, Bools], rows: Rows) -> list[str]:
    """Expected tools that change nothing: how they are listed differs from task to task."""
    tools = [
        told[len("gold_has(") : -1] for told in about if told.startswith("gold_has(") and "*" not in told
    ]
    return [tool for tool in tools if f"task:gold_writes({tool})" not in rows.columns]


def _names_the_kind(column: NDArray[np.uint8], name: str, about: Mapping[str, Bools], rows: Rows) -> bool:
    """Whether a feature hardly varies but with the kind of task."""
    if grammar.split(name)[0] not in ("calls", "writes", "says", "field", "first_call", "opens_with"):
        return False
    shown = column.astype(bool)
    differ = (np.count_nonzero(shown != held) / rows.n for held in about.values())
    return any(max(share, 1 - share) >= SAME for share in differ)


# ---- Columns ----------------------------------------------------------------------------------


def _columns(
    rows: Rows, fields: Mapping[str, Column], task_fields: frozenset[str], restating: frozenset[str]
) -> dict[str, NDArray[np.uint8]]:
    """The distinct columns that part the rows, the most useful of equals kept."""
    every = [*_told(rows, task_fields, restating), *_numbers(rows, task_fields, restating)]
    every += [
        pair
        for name in sorted(fields)
        for pair in _of_field(name, fields[name], rows, task_fields, restating)
    ]
    every.sort(key=lambda pair: (-grammar.weight(pair[0]), len(pair[0]), pair[0]))
    found: dict[str, NDArray[np.uint8]] = {}
    seen: set[bytes] = set()
    for name, column in every:
        shown = int(column.sum())
        least = gather.least_support(rows.n, grammar.kind(name) in grammar.ASKED)
        if not least <= shown <= rows.n - least or restates(name, column == 1, column == 0, rows.passed):
            continue
        key = (column ^ column[0]).tobytes()  # a column and its opposite are one
        if key not in seen:
            seen.add(key)
            found.setdefault(name, column)
    return found


def restates(name: str, shown: Bools, others: Bools, passed: Bools) -> bool:
    """Whether a feature parts the passes from the failures all but perfectly."""
    low, high = sorted((float(passed[shown].mean()), float(passed[others].mean())))
    if low <= LOW and high >= HIGH:
        return True
    return high - low >= APART and grammar.kind(name) not in grammar.DONE


def _told(
    rows: Rows, task_fields: frozenset[str], restating: frozenset[str]
) -> Iterator[tuple[str, NDArray[np.uint8]]]:
    for name, column in rows.columns.items():
        if not name.startswith(gather.TASK) and not _is_verdict(name, task_fields, restating):
            yield name, column


def _is_verdict(name: str, task_fields: frozenset[str], restating: frozenset[str]) -> bool:
    """Whether a feature of a verifier's object is about the reward or about the task."""
    kind, inner, _, _ = grammar.split(name)
    if kind != "field":
        return False
    path = inner.partition("=")[0]
    top = path.partition(".")[0]
    return bool({path, top} & (task_fields | restating)) or grammar.REWARD.search(path) is not None


def _numbers(
    rows: Rows, task_fields: frozenset[str], restating: frozenset[str]
) -> Iterator[tuple[str, NDArray[np.uint8]]]:
    for key in sorted(rows.numbers):
        if not key.startswith(gather.TASK) and not _is_verdict(key, task_fields, restating):
            values = rows.numbers[key]
            yield from _cuts(key, values if key == "#final_chars" else np.nan_to_num(values))


def _cuts(key: str, values: Floats) -> Iterator[tuple[str, NDArray[np.uint8]]]:
    """A number as predicates at its quartiles; at each step if it has few."""
    told = values[~np.isnan(values)]
    distinct = np.unique(told)
    if distinct.size < 2:
        return
    cuts = distinct[1:] if distinct.size <= MAX_CUTS + 1 else _quartiles(told)
    for cut in cuts.tolist():
        if grammar.split(key)[0] == "calls" and cut == 1:
            continue  # that is `calls`
        yield f"{key}>={cut:.10g}", (values >= cut).astype(np.uint8)


def _quartiles(values: Floats) -> Floats:
    found: Floats = np.unique(np.quantile(values, (0.25, 0.5, 0.75), method="higher"))
    return found


def _of_field(
    name: str, column: Column, rows: Rows, task_fields: frozenset[str], restating: frozenset[str]
) -> Iterator[tuple[str, NDArray[np.uint8]]]:
    if name in task_fields or name in restating or name in ID_FIELDS or name == PROMPT:
        return
    if grammar.REWARD.search(name) or grammar.IDENTITY.search(name) or _follows_repeat(column, rows):
        return
    kind, number, code = (part[rows.position] for part in (column.kind, column.number, column.code))
    is_told = kind > NULL
    if not is_told.all():
        yield f"field({name} is given)", is_told.astype(np.uint8)
    if (kind == BOOL).any():
        yield f"field({name}=true)", ((kind == BOOL) & (number == 1)).astype(np.uint8)
    if (kind == NUMBER).mean() > 0.5:
        yield from _cuts(
            f"#field({name})", np.where(kind == NUMBER, number, np.nanmin(number[kind == NUMBER]))
        )
    codes = np.unique(code[(kind == TEXT) & (code >= 0)])
    if 2 <= codes.size <= MAX_TEXTS:
        for each in codes.tolist():
            yield f"field({name}={column.texts[each][:60]})", (code == each).astype(np.uint8)


def _follows_repeat(column: Column, rows: Rows) -> bool:
    """Whether a field only tells the repeats apart."""
    values = column.hash[rows.position]
    pairs = np.unique(np.stack([rows.repeat.astype(np.uint64), values]), axis=1)
    return bool(np.unique(rows.repeat).size > 1 and pairs.shape[1] == np.unique(rows.repeat).size)
