"""Two small sides as a comparison with its verdicts, as far as many, series and gate need it."""

from __future__ import annotations

from typing import Any

import numpy as np
from msgspec.structs import replace

from blade.compare.change_verdict import judgement
from blade.compare.task_pairs import means, paired
from blade.model import Alignment, Comparison, Side


def aligned(a: Side, b: Side, modified: tuple[str, ...] = ()) -> Alignment:
    """Tasks by key."""
    has_a, has_b = ({side.judged.task_keys[code] for code in np.unique(side.judged.task).tolist()} for side in (a, b))
    common = tuple(key for key in a.judged.task_keys if key in has_a & has_b and key not in modified)
    return Alignment("key", common, tuple(sorted(has_b - has_a)), tuple(sorted(has_a - has_b)), modified)


def versus(a: Side, b: Side, alignment: Alignment | None = None, margin: float = 0.03, **more: Any) -> Comparison:
    """`a` as the baseline against `b`."""
    alignment = alignment or aligned(a, b)
    score_a, score_b = (float(np.nanmean(means(side, side.judged.score))) for side in (a, b))
    empty = Comparison(
        a.run, b.run, a.score_name, score_a, score_b, score_b - score_a, None, None, None, alignment, None, None, margin, None
    )  # fmt: skip
    if not alignment.common:
        return replace(empty, refused="the runs have no task in common", **more)
    pair = paired(a, b, alignment)
    judged = judgement(pair, margin)
    told = {
        "delta_common": float(pair.d.mean()),
        "common_baseline": float(pair.mean_a.mean()),
        "common_candidate": float(pair.mean_b.mean()),
        "verdict": judged.verdict,
        "verdict_new_tasks": judged.verdict_new_tasks,
        "power": judged.power,
        "tests": judged.tests,
    }
    return replace(empty, **(told | more))
