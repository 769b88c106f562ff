"""Small sides of a comparison, built from outcomes by task, and their comparison with its verdicts."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace

from blade import stats
from blade.compare import brief
from blade.compare.alignment import align
from blade.compare.task_pairs import Paired, paired
from blade.model import OTHER, Alignment, Comparison, Judged, Side

Outcomes = Mapping[str, str | Sequence[float]]
Place = tuple[str, int]  # task, repeat
Mode = tuple[str, str]  # side of the loss, mode


def side(
    run: str, outcomes: Outcomes, *, settings: Mapping[str, str] | None = None,
    fingerprints: Mapping[str, Mapping[str, Any]] | None = None, slices: Mapping[str, Mapping[str, str]] | None = None,
    modes: Mapping[Place, Mode] | None = None, table: Sequence[Mode] | None = None, expected: Mapping[str, int] | None = None,
    flags: Mapping[str, Iterable[Place]] | None = None, effort: Mapping[str, Mapping[Place, float]] | None = None,
    behaviours: Mapping[str, Iterable[Place]] | None = None, signatures: Mapping[str, Iterable[Place]] | None = None,
    model: str | None = None, agent: str | None = None, threshold: float | None = None,
) -> Side:
    """A run of small tasks: "1101" are four repeats that pass or not, "1.1" lacks repeat 1, [.5, 1] are scores.

    `expected` adds rows (and tasks) that never came: task -> rows expected, those that came included.
    `fingerprints` and `slices` give a value a task; `modes` a (side, mode) for each row that loses points, without
    which it is ("undetermined", OTHER); `table` is the modes table that several sides share. Rows are never identical
    between runs of different names, and always between runs of one name.
    """
    rows = [(key, i, float(score)) for key, told in outcomes.items() for i, score in enumerate(told) if score != "."]
    keys = tuple(sorted({*outcomes, *(expected or {})}, key=key_order))
    code = {key: place for place, key in enumerate(keys)}
    rows.sort(key=lambda row: (code[row[0]], row[1]))
    place = {(key, repeat): number for number, (key, repeat, _) in enumerate(rows)}
    score = np.array([row[2] for row in rows], np.float64)
    is_binary = bool(np.isin(score, (0.0, 1.0)).all())
    threshold = 1.0 if threshold is None and is_binary else threshold
    task = np.array([code[row[0]] for row in rows], np.int64)
    passed = score >= (np.inf if threshold is None else threshold)
    lost_by = [None if row[2] >= 1 else (modes or {}).get(row[:2], ("undetermined", OTHER)) for row in rows]
    shared = tuple(sorted({mode for mode in lost_by if mode is not None})) if table is None else tuple(table)
    wanted = np.bincount(task, minlength=len(keys))
    for key, n in (expected or {}).items():
        wanted[code[key]] = max(n, wanted[code[key]])
    return Side(
        run=run,
        judged=Judged(
            run, keys, np.arange(len(rows)), task, np.array([row[1] for row in rows], np.int64), passed, score,
            threshold is not None, np.zeros(len(rows), bool),
        ),
        task_names=keys,
        score_name="pass_at_1" if is_binary else "mean_reward",
        threshold=threshold,
        is_bounded=bool(((score >= 0) & (score <= 1)).all()),
        is_binary=is_binary,
        model=model,
        agent=agent,
        expected=wanted,
        settings=dict(settings or {}),
        row_hash=np.array([hashed((run, *row)) for row in rows], np.uint64),
        fingerprints={
            field: np.array([hashed(values.get(key)) for key in keys], np.uint64)
            for field, values in (fingerprints or {}).items()
        },
        slices={field: _labels(keys, values) for field, values in (slices or {}).items()},
        mode=np.array([-1 if mode is None else shared.index(mode) for mode in lost_by], np.int64),
        modes=shared,
        flags={name: _flag(place, places) for name, places in (flags or {}).items()},
        effort={
            name: np.array([values.get(row[:2], np.nan) for row in rows], np.float64)
            for name, values in (effort or {}).items()
        },
        behaviours={name: np.flatnonzero(_flag(place, places)) for name, places in (behaviours or {}).items()},
        signatures={name: np.flatnonzero(_flag(place, places)) for name, places in (signatures or {}).items()},
    )


def told(run: str, row: Mapping[str, Any]) -> Side:
    """A run of a table of cases: what `side` takes, its places written TASK/REPEAT."""

    def place(written: str) -> Place:
        task, _, repeat = written.rpartition("/")
        return task, int(repeat)

    modes = {place(written): tuple(mode) for written, mode in row.get("modes", {}).items()}
    flags = {name: [*map(place, rows)] for name, rows in row.get("flags", {}).items()}
    more = {name: row[name] for name in row.keys() - {"rows", "modes", "flags"}}
    return side(run, row["rows"], modes=modes, flags=flags, **more)


def key_order(key: str) -> tuple[int, int, str]:
    return (0, int(key), "") if key.isdigit() else (1, 0, key)


def hashed(value: Any) -> int:
    """A number for a value; 0 for none."""
    return 0 if value is None else zlib.crc32(repr(value).encode()) + 2


def _labels(keys: tuple[str, ...], values: Mapping[str, str]) -> tuple[Any, tuple[str, ...]]:
    labels = tuple(sorted(set(values.values())))
    return np.array([labels.index(values[key]) if key in values else -1 for key in keys], np.int64), labels


def _flag(place: Mapping[Place, int], places: Iterable[Place]) -> Any:
    return np.isin(np.arange(len(place)), [place[each] for each in places])


F1_A = ["1111", "1110", "1111", "1010", "1000", "0000", "1100", "0000"]  # the worked runs: 8 tasks x 4 repeats
F1_B = ["1111", "1111", "1000", "1111", "1111", "1111", "1100", "0000"]


def named(rows: Sequence[str | Sequence[float]]) -> Outcomes:
    return {str(i): row for i, row in enumerate(rows)}


def drawn(run: str, rates: Iterable[float], repeats: int = 4, seed: str = "series", **more: Any) -> Side:
    """Tasks that pass at these rates, drawn by the name of the run."""
    rng = stats.seeded_rng(seed, run)
    return side(run, {str(i): "".join(str(int(x)) for x in rng.random(repeats) < rate) for i, rate in enumerate(rates)}, **more)


def pair_of(a: Side, b: Side, alignment: Alignment | None = None) -> Paired:
    return paired(a, b, alignment or align(a, b))


def listed(a: Sequence[Any], b: Sequence[Any], names: tuple[str, str] = ("old", "new")) -> Paired:
    """Two runs of tasks with these rows."""
    return pair_of(side(names[0], named(a)), side(names[1], named(b)))


def versus(a: Side, b: Side, margin: float = 0.03, **more: Any) -> Comparison:
    """`a` as the baseline against `b`, and what is changed of that."""
    return replace(brief(a, b, margin), **more)
