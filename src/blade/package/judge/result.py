"""Turn a judgement into the JSON object of a score, under the names that others know and under ours."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from blade.model import CONTRADICTED, SUPPORTED
from blade.package.judge.anchors import TRIVIAL
from blade.package.judge.score import Bench, Judged
from blade.package.judge.units import Unit

NOTE = (
    "Claims are checked against the rollouts. final_score = recall x sqrt(precision x evidence) x gates; "
    "structure: share of the golden report's sections that hold a supported claim; quantitative: whether "
    "the required numbers are right; golden_overlap: share of the golden report's supported claims that are "
    "made; table_score: share of checked table rows that are not contradicted."
)


def as_json(judged: Judged, bench: Bench) -> dict[str, Any]:
    """The result under the names that others know, and under ours."""
    quantitative = 1.0 if judged.gates["required_numbers"] == 1 else 0.0
    structure, overlap, tables = _structure(judged, bench), _overlap(judged, bench), _tables(judged)
    parts = (structure, quantitative, judged.evidence, judged.recall)
    told = {
        "final_score": judged.score,
        "checklist": {
            "score": sum(share * part for share, part in zip((0.2, 0.2, 0.2, 0.4), parts, strict=True)),
            "structure": structure,
            "quantitative": quantitative,
            "evidence": judged.evidence,
            "anchor_coverage": judged.recall,
        },
        "holistic": {"normalized_score": judged.score, "golden_overlap": overlap, "table_score": tables},
        "anchor_hits": [
            {"id": one.id, "score": one.weighs * is_met, "met": is_met, "fact": one.fact,
             "weight": one.weight, "claim": by}
            for one, is_met, by in judged.hits
        ],
        "note": NOTE,
        "recall": judged.recall,
        "precision": judged.precision,
        "evidence": judged.evidence,
        "gates": dict(judged.gates),
        "counts": dict(judged.counts),
        "unusable_anchors": [
            {"id": one.id, "fact": one.fact, "why": one.problem} for one in bench.anchors if one.problem
        ],
        "trivial_anchors": [one.id for one in bench.usable if one.weight == TRIVIAL],
        "problems": list(judged.problems),
    }  # fmt: skip
    rounded: dict[str, Any] = _rounded(told)
    return rounded


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 4)
    if isinstance(value, dict):
        return {key: _rounded(part) for key, part in value.items()}
    return [_rounded(part) for part in value] if isinstance(value, list) else value


def _structure(judged: Judged, bench: Bench) -> float:
    wanted, have = (
        {unit.section[0].lower() for unit in read if unit.section and unit.verdict == SUPPORTED}
        for read in (bench.golden, judged.units)
    )
    return len(wanted & have) / len(wanted) if wanted else 0.0


def _overlap(judged: Judged, bench: Bench) -> float:
    wanted, have = (
        {part for unit in read if unit.verdict == SUPPORTED and not unit.foreign for part in _parts(unit)}
        for read in (bench.golden, judged.units)
    )
    return len(wanted & have) / len(wanted) if wanted else 0.0


def _parts(unit: Unit) -> Iterator[tuple[str, ...]]:
    for task in unit.tasks:
        yield from ((task, "cause", cause) for cause in unit.causes)
        yield from ((task, "step", str(step)) for step in unit.steps)
        yield from ((task, "quote", " ".join(quote.split())[:80]) for quote in unit.quotes)


def _tables(judged: Judged) -> float:
    rows = [unit for unit in judged.units if unit.kind == "row" and unit.verdict is not None]
    return sum(unit.verdict != CONTRADICTED for unit in rows) / len(rows) if rows else 0.0
