"""Write a score as the JSON object that tools read: the known names first, then what it rests on."""

from __future__ import annotations

from typing import Any

from blade.package.judge.matching import Hit
from blade.package.judge.score import Bench, Score

ROWS, WORDING = "rollouts", "wording"
NOTE = (
    "final_score = gates x precision x (0.2 + 0.8 x recall x evidence). recall: weighted share of the anchor "
    "facts that the report meets; precision: share of its checkable claims that hold, wrong ones counted "
    "twice; evidence: quotations and citations about single tasks beyond the anchors; golden_overlap: share "
    "of anchors met; table_score: share of cited table cells that hold."
)
NO_ROLLOUTS = " No rollouts were found: the score rests on wording, and no claim was checked against rows."


def as_json(score: Score, bench: Bench) -> dict[str, Any]:
    """The result under the names that other tools know, and under ours."""
    parts = (score.structure, score.precision, score.evidence, score.recall)
    by_wording = bench.worlds is None
    result = {
        "final_score": score.score,
        "checklist": {
            "score": sum(share * part for share, part in zip((0.2, 0.2, 0.2, 0.4), parts, strict=True)),
            "structure": score.structure,
            "quantitative": score.precision,
            "evidence": score.evidence,
            "anchor_coverage": score.recall,
        },
        "holistic": {
            "normalized_score": score.score,
            "golden_overlap": sum(hit.met for hit in score.hits) / max(1, len(score.hits)),
            "table_score": score.tables,
        },
        "anchor_hits": [_hit(hit) for hit in score.hits],
        "note": NOTE + (NO_ROLLOUTS if by_wording else ""),
        "rests_on": WORDING if by_wording else ROWS,
        "recall": score.recall,
        "precision": score.precision,
        "evidence": score.evidence,
        "gates": dict(score.gates),
        "counts": dict(score.counts),
        "by_wording": [anchor.id for anchor in bench.usable if anchor.by_wording],
        "unusable_anchors": [
            {"id": anchor.id, "fact": anchor.fact, "why": anchor.problem}
            for anchor in bench.anchors
            if anchor.problem
        ],
        "trivial_anchors": [anchor.id for anchor in bench.usable if not anchor.weighs],
        "problems": list(score.problems),
    }
    rounded: dict[str, Any] = _rounded(result)
    return rounded


def _hit(hit: Hit) -> dict[str, Any]:
    anchor, how = hit.anchor, {"how": hit.how, "claim": hit.text, "line": hit.line, "denied": hit.denied}
    met = {"id": anchor.id, "score": anchor.weighs * hit.met, "met": hit.met, "fact": anchor.fact}
    return {**met, "weight": anchor.weight, **how}


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 4)
    if isinstance(value, dict):
        return {key: _rounded(part) for key, part in value.items()}
    return [_rounded(part) for part in value] if isinstance(value, list) else value
