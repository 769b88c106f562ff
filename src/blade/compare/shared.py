"""Turn several runs into the tasks that all of them have, with what each scored on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from blade.compare.aligned import align
from blade.compare.pairing import counts, means
from blade.model import Comparison, Side

if TYPE_CHECKING:
    from blade.model import Floats, Ints


@dataclass(frozen=True)
class Shared:
    """Runs over the tasks they all share; the tables have one row for each run, one column for each task."""

    sides: tuple[Side, ...]
    keys: tuple[str, ...]
    names: tuple[str, ...]
    codes: Ints  # of the task in each run
    n: Ints  # counted rows
    passes: Ints  # of these
    mean: Floats  # of the score

    @property
    def is_judged(self) -> bool:
        """Every run has a threshold that says what passes."""
        return all(side.judged.judged for side in self.sides)


def shared(sides: Sequence[Side], comparisons: Mapping[tuple[str, str], Comparison] | None = None) -> Shared:
    """The tasks for which every run has a counted row, under the keys of the first run.

    Each run is aligned with the first; comparisons with it, by (baseline, candidate), have done so already.
    """
    first, *others = sides
    known = comparisons or {}
    places = [_place(first, other, known.get((first.run, other.run))) for other in others]
    own = {key: code for code, key in enumerate(first.judged.task_keys)}
    n_first = counts(first)
    keys = tuple(key for key, code in own.items() if n_first[code] and all(key in place for place in places))
    codes = np.array([[place[key] for key in keys] for place in (own, *places)], np.int64)
    codes = codes.reshape(len(sides), len(keys))
    rows = list(zip(sides, codes, strict=True))
    return Shared(
        tuple(sides),
        keys,
        tuple(first.task_names[code] for code in codes[0].tolist()),
        codes,
        np.stack([counts(side)[code] for side, code in rows]),
        np.stack([_passes(side)[code] for side, code in rows]),
        np.stack([means(side, side.judged.score)[code] for side, code in rows]),
    )


def _place(first: Side, other: Side, comparison: Comparison | None) -> dict[str, int]:
    """The code that another run gives each task it shares with the first, by the first's key."""
    alignment = align(first, other) if comparison is None else comparison.alignment
    code = {key: code for code, key in enumerate(other.judged.task_keys)}
    names = alignment.common_candidate or alignment.common
    return {key: code[name] for key, name in zip(alignment.common, names, strict=True)}


def _passes(side: Side) -> Ints:
    return np.bincount(side.judged.task[side.judged.passed], minlength=len(side.judged.task_keys))
