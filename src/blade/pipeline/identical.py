"""Give rows a hash where runs look alike, so that runs of the same rows are known again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from blade.model import Side
from blade.pipeline.load import Loaded

if TYPE_CHECKING:
    from blade.model import Hashes

FIRST = 50  # rows that must agree before all are read


def with_hashes(sides: Sequence[Side], loaded: Sequence[Loaded]) -> list[Side]:
    """The sides; those that agree in rows, score, bytes and their first rows with the hashes of all.

    An index keeps no hash of rows that are numbered: it would cost a pass over every byte, and only runs
    that look the same need it.
    """
    alike: defaultdict[tuple[int, float, int], list[int]] = defaultdict(list)
    for at, (side, one) in enumerate(zip(sides, loaded, strict=True)):
        alike[_look(side, one)].append(at)
    found = list(sides)
    for group in alike.values():
        if len(group) > 1 and len({_hashes(loaded[at], sides[at], FIRST).tobytes() for at in group}) == 1:
            for at in group:
                found[at] = replace(sides[at], row_hash=_hashes(loaded[at], sides[at], None))
    return found


def _look(side: Side, one: Loaded) -> tuple[int, float, int]:
    """What identical runs have in common, from the columns alone: rows, score and bytes."""
    judged, rollouts = side.judged, one.run.rollouts
    lengths = one.run.rows.numbers("length")[rollouts.row_id[judged.rows]]
    return judged.rows.size, float(judged.score.sum()), int(lengths.sum())


def _hashes(one: Loaded, side: Side, most: int | None) -> Hashes:
    import numpy as np

    rows = one.run.rollouts.row_id[side.judged.rows[:most]].tolist()
    return np.fromiter((one.run.rows.row_hash(row) for row in rows), np.uint64, len(rows))
