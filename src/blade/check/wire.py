"""Count the findings of a check and write them as JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence

import msgspec

from blade.model.checked import CONTRADICTED, OPINION, SUPPORTED, UNCITED, UNVERIFIABLE, Finding

SCHEMA = "blade.check/2"
VERDICTS = (SUPPORTED, CONTRADICTED, UNVERIFIABLE, UNCITED, OPINION)
_HOLDS = {"citation": "cited number holds", "quotation": "quotation found", "id": "id exists"}
_MANY = {
    "cited number holds": "cited numbers hold", "quotation found": "quotations found", "id exists": "ids exist",
    "number is uncited": "numbers are uncited", "causal sentence is opinion": "causal sentences are opinion",
    "statement could not be verified": "statements could not be verified",
}  # fmt: skip


def counts(findings: Sequence[Finding]) -> dict[str, int]:
    seen = Counter(finding.verdict for finding in findings)
    return {verdict: seen[verdict] for verdict in VERDICTS}


def summary(findings: Sequence[Finding], has_runs: bool) -> str:
    """One line that says how much of each kind was found, and what was not read."""
    seen = Counter((finding.verdict, finding.kind) for finding in findings)
    total = counts(findings)
    wrong = [f"{n:,} {kind}" for (verdict, kind), n in seen.items() if verdict == CONTRADICTED]
    parts = [f"{total[CONTRADICTED]:,} wrong ({', '.join(wrong)})"] if wrong else []
    parts += [_counted(seen[SUPPORTED, kind], words) for kind, words in _HOLDS.items() if seen[SUPPORTED, kind]]
    for verdict, words in (
        (UNVERIFIABLE, "statement could not be verified"),
        (UNCITED, "number is uncited"),
        (OPINION, "causal sentence is opinion"),
    ):
        parts += [_counted(total[verdict], words)] if total[verdict] else []
    if not has_runs:
        parts = [*(parts or ["no contradiction in its arithmetic"]), "citations, quotations and ids were not checked"]
    return ", ".join(parts) or "nothing in it could be checked"


def _counted(n: int, words: str) -> str:
    return f"{n:,} {words if n == 1 else _MANY[words]}"


def problems(findings: Sequence[Finding]) -> list[Finding]:
    """All that is not supported, by verdict and then in the order of the report."""
    return sorted(
        (finding for finding in findings if finding.verdict != SUPPORTED),
        key=lambda finding: VERDICTS.index(finding.verdict),
    )


def as_json(findings: Sequence[Finding]) -> str:
    """What `blade check --json` prints."""
    from blade.report.wire import escaped

    wire = {"schema": SCHEMA, "counts": counts(findings), "findings": msgspec.to_builtins(list(findings))}
    return escaped(json.dumps(wire, ensure_ascii=False, indent=2)) + "\n"
