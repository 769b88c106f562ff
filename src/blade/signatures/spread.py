"""Turn lines into signatures: counts by rows and tasks, how far each spreads, and where."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace
from xxhash import xxh3_64_hexdigest

from blade import stats
from blade.model import Evidence, Judged, Signature
from blade.signatures import grouping
from blade.signatures.fields import CHECK, CODE, PROSE
from blade.signatures.lines import TOOL, Line

if TYPE_CHECKING:
    from blade.model import Bools, Ints

SYSTEMIC, FLAKY, IDIOSYNCRATIC = "systemic", "flaky", "idiosyncratic"
MIN_TASKS = 3  # of a systemic signature
NEARLY_ALL = 0.9  # of a tool's calls
MAX_SIGNATURES = 200
MAX_ROLLOUTS = 500  # listed of one signature; all are counted
MAX_EVIDENCE = 3
MAX_TESTED = 50  # signatures looked at for concentration
MIN_SLICE = 5  # tasks or rows on either side of a test
MAX_VALUES = 30
ALPHA = 0.05

Slices = Mapping[str, "tuple[Ints, Sequence[str]]"]  # code of each entry of `Judged.rows` (-1: none), names
_Key = tuple[str, str, str]  # source, class, template


def conclude(
    judged: Judged, lines: Iterable[list[Line]], slices: Slices, calls: Mapping[str, int] | None = None
) -> list[Signature]:
    """The signatures of a run, the most tasks first; `calls` says how often each tool was called."""
    counted = _counted(judged, lines)
    groups = _grouped(counted)
    kept = [key for key, members in groups.items() if _tells(judged, members)]
    made = [(key, _signature(judged, key, groups[key], calls or {})) for key in kept]
    made.sort(key=lambda pair: _order(judged, groups[pair[0]], pair[1]))
    made = made[:MAX_SIGNATURES]
    places = _concentrated(judged, [groups[key] for key, _ in made[:MAX_TESTED]], slices)
    return [
        replace(signature, slice=place[0], slice_ratio=place[1], slice_p_adjusted=place[2])
        if place is not None
        else signature
        for (_, signature), place in zip(made, [*places, *[None] * (len(made) - len(places))], strict=True)
    ]


def across(runs: Sequence[Sequence[Signature]]) -> list[list[Signature]]:
    """The signatures of several runs, systemic where more than one run shows them."""
    shown = Counter(key for run in runs for key in {(one.source, one.kind, one.template) for one in run})
    return [
        [
            replace(one, spread=SYSTEMIC)
            if one.spread == IDIOSYNCRATIC
            and one.n_tasks >= MIN_TASKS
            and shown[one.source, one.kind, one.template] > 1
            else one
            for one in run
        ]
        for run in runs
    ]


def _counted(judged: Judged, lines: Iterable[list[Line]]) -> list[tuple[int, Line]]:
    """The lines of rows that count, each with its place in the arrays of `Judged`, in one order."""
    found = [line for of_task in lines for line in of_task]
    if not found or not judged.rows.size:
        return []
    positions = np.array([line.position for line in found])
    at = np.minimum(np.searchsorted(judged.rows, positions), judged.rows.size - 1)
    counts = (judged.rows[at] == positions).tolist()
    kept = [(int(place), line) for place, line, is_in in zip(at, found, counts, strict=True) if is_in]
    kept.sort(key=lambda pair: (pair[0], pair[1].source, pair[1].masked))
    return kept


def _grouped(counted: list[tuple[int, Line]]) -> dict[_Key, list[tuple[int, Line]]]:
    texts: defaultdict[tuple[str, str, str], Counter[str]] = defaultdict(Counter)
    for _, line in counted:
        texts[_bucket(line)][line.masked] += 1
    stands = {bucket: _templates(bucket[0], of_bucket) for bucket, of_bucket in texts.items()}
    groups: defaultdict[_Key, list[tuple[int, Line]]] = defaultdict(list)
    for place, line in counted:
        groups[line.source, line.kind, stands[_bucket(line)][line.masked]].append((place, line))
    return groups


def _bucket(line: Line) -> tuple[str, str, str]:
    return line.sort, line.source, line.kind


def _templates(sort: str, texts: Mapping[str, int]) -> dict[str, str]:
    if sort in (CODE, CHECK):
        return {text: text for text in texts}
    return grouping.alike(texts) if sort == PROSE else grouping.templates(texts)


def _tells(judged: Judged, members: list[tuple[int, Line]]) -> bool:
    """Whether a code goes with failing: one that passing rows carry as well is a state, not an error."""
    if members[0][1].sort not in (CODE, CHECK) or not judged.judged or not judged.passed.any():
        return True
    rows = np.unique([place for place, _ in members])
    return bool(judged.passed[rows].mean() < 0.5 * judged.passed.mean())


def _signature(
    judged: Judged, key: _Key, members: list[tuple[int, Line]], calls: Mapping[str, int]
) -> Signature:
    source, kind, template = key
    rows = np.unique([place for place, _ in members])
    failed = ~judged.passed[rows] if judged.judged else np.zeros(rows.size, np.bool_)
    return Signature(
        id=f"sig-{xxh3_64_hexdigest(chr(10).join(key).encode('utf-8', 'replace'))[:8]}",
        run=judged.run,
        kind=kind,
        template=template,
        source=source,
        n_rollouts=int(rows.size),
        n_tasks=int(np.unique(judged.task[rows]).size),
        n_failed=int(failed.sum()),
        n_exact=len({line.masked for _, line in members}),
        spread=_spread(judged, members, calls),
        slice=None,
        slice_ratio=None,
        slice_p_adjusted=None,
        rollouts=tuple(_address(judged, int(row)) for row in rows[:MAX_ROLLOUTS]),
        evidence=_evidence(judged, members),
    )


def _spread(judged: Judged, members: list[tuple[int, Line]], calls: Mapping[str, int]) -> str:
    comparable = sum(line.comparable for _, line in members)
    mixed = sum(line.mixed and line.comparable for _, line in members)
    if mixed and 2 * mixed >= comparable:
        return FLAKY
    tasks = {int(judged.task[place]) for place, _ in members}
    line = members[0][1]
    made = calls.get(line.source.removeprefix("tool "), 0) if line.sort == TOOL else 0
    times = sum(line.times for _, line in members)
    return SYSTEMIC if len(tasks) >= MIN_TASKS and made and times >= NEARLY_ALL * made else IDIOSYNCRATIC


def _address(judged: Judged, place: int) -> tuple[str, int]:
    return judged.task_keys[int(judged.task[place])], int(judged.repeat[place])


def _evidence(judged: Judged, members: list[tuple[int, Line]]) -> tuple[Evidence, ...]:
    """Quotations from different tasks where there are several, failing rollouts first."""
    failing_first = sorted(members, key=lambda pair: (bool(judged.passed[pair[0]]), pair[0]))
    chosen: dict[int, tuple[int, Line]] = {}
    for place, line in failing_first:
        chosen.setdefault(int(judged.task[place]), (place, line))
        if len(chosen) == MAX_EVIDENCE:
            break
    return tuple(
        Evidence(judged.run, *_address(judged, place), step=line.step, field=line.field, quote=line.quote)
        for place, line in chosen.values()
    )


def _order(judged: Judged, members: list[tuple[int, Line]], one: Signature) -> tuple[object, ...]:
    failing = {int(judged.task[place]) for place, _ in members if judged.judged and not judged.passed[place]}
    return -len(failing), -one.n_failed, -one.n_tasks, -one.n_rollouts, one.source, one.template


# ---- Concentration -----------------------------------------------------------------------------


def _concentrated(
    judged: Judged, groups: list[list[tuple[int, Line]]], slices: Slices
) -> list[tuple[str, float, float] | None]:
    """The slice in which each signature is commonest, if it is so beyond chance: name, ratio, adjusted p."""
    found: list[tuple[int, str, float, float | None]] = []
    parts = [_units(judged, codes, names) for codes, names in _all(judged, slices)]
    for number, members in enumerate(groups):
        shows = np.zeros(judged.rows.size, np.bool_)
        shows[[place for place, _ in members]] = True
        for name, (unit, value, names, n_units) in zip(_names(judged, slices), parts, strict=True):
            hit = np.zeros(n_units, np.bool_)
            hit[unit[shows]] = True
            found += [
                (number, f"{name}={names[code]}", *test) for code, test in _tests(hit, value, len(names))
            ]
    adjusted = stats.benjamini_hochberg([p for *_, p in found])
    best: list[tuple[str, float, float] | None] = [None] * len(groups)
    for (number, name, ratio, _), p in zip(found, adjusted, strict=True):
        if p is None or p > ALPHA or ratio <= 1:
            continue
        before = best[number]
        if before is None or (p, -ratio, name) < (before[2], -before[1], before[0]):
            best[number] = (name, ratio, p)
    return best


def _names(judged: Judged, slices: Slices) -> list[str]:
    return [*(name for name in sorted(slices)), *(["repeat"] if _has_repeats(judged) else [])]


def _has_repeats(judged: Judged) -> bool:
    return 2 <= np.unique(judged.repeat).size <= MAX_VALUES


def _all(judged: Judged, slices: Slices) -> list[tuple[Ints, Sequence[str]]]:
    """The slices given, and the repeats: an outage strikes one of them."""
    found = [slices[name] for name in sorted(slices)]
    if _has_repeats(judged):
        values, codes = np.unique(judged.repeat, return_inverse=True)
        found.append((codes, [str(value) for value in values]))
    return found


def _units(judged: Judged, codes: Ints, names: Sequence[str]) -> tuple[Ints, Ints, Sequence[str], int]:
    """What is counted: tasks where the slice parts tasks, else rows. Unit of each row, slice of each unit."""
    tasks, unit = np.unique(judged.task, return_inverse=True)
    of_task = np.full(tasks.size, -1, np.int64)
    of_task[unit] = codes
    if np.array_equal(of_task[unit], codes):
        return unit, of_task, names, tasks.size
    return np.arange(judged.rows.size), np.asarray(codes), names, judged.rows.size


def _tests(hit: Bools, value: Ints, n_values: int) -> list[tuple[int, tuple[float, float | None]]]:
    """The rate inside against outside for each slice that is large enough, with Fisher's p."""
    known = value >= 0
    total, shown = int(known.sum()), int((hit & known).sum())
    sizes = np.bincount(value[known], minlength=n_values)
    inside = np.bincount(value[known & hit], minlength=n_values)
    found = []
    for code in range(n_values):
        n, c = int(sizes[code]), int(inside[code])
        others, rest = total - n, shown - c
        if shown < MIN_TASKS or min(n, others) < MIN_SLICE or c * others <= rest * n:
            continue
        ratio = (c / n) / (rest / others) if rest else (c / n) / (0.5 / others)
        p = stats.two_groups(_ones(c, n), _ones(rest, others))
        found.append((code, (ratio, p)))
    return found


def _ones(count: int, size: int) -> Bools:
    values = np.zeros(size, np.bool_)
    values[:count] = True
    return values
