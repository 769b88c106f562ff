"""Count the findings of a check, sum them up in a line, and write them as JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence

import msgspec

from blade.hostile import json_text
from blade.model.conclusions import CONTRADICTED, OPINION, SUPPORTED, UNCITED, UNVERIFIABLE, Finding

SCHEMA = "blade.check/2"
VERDICTS = (SUPPORTED, CONTRADICTED, UNVERIFIABLE, UNCITED, OPINION)
_PARTS = (  # verdict, kind, and how one and several are counted
    (SUPPORTED, "citation", "cited number holds", "cited numbers hold"),
    (SUPPORTED, "quotation", "quotation found", "quotations found"),
    (SUPPORTED, "id", "id exists", "ids exist"),
    (UNVERIFIABLE, "", "statement could not be verified", "statements could not be verified"),
    (UNCITED, "", "number is uncited", "numbers are uncited"),
    (OPINION, "", "causal sentence is opinion", "causal sentences are opinion"),
)


def counts(findings: Sequence[Finding]) -> dict[str, int]:
    seen = Counter(finding.verdict for finding in findings)
    return {verdict: seen[verdict] for verdict in VERDICTS}


def summary(findings: Sequence[Finding], has_runs: bool) -> str:
    """One line that says how much of each kind was found, and what was not read."""
    seen = Counter((finding.verdict, finding.kind) for finding in findings)
    seen.update((finding.verdict, "") for finding in findings)
    wrong = [f"{n:,} {kind}" for (verdict, kind), n in seen.items() if verdict == CONTRADICTED and kind]
    parts = [f"{seen[CONTRADICTED, '']:,} wrong ({', '.join(wrong)})"] if wrong else []
    for verdict, kind, singular, many in _PARTS:
        n = seen[verdict, kind]
        parts += [f"{n:,} {singular if n == 1 else many}"] if n else []
    if not has_runs:
        parts = [*(parts or ["no contradiction in its arithmetic"]), "nothing was checked against rows"]
    return ", ".join(parts) or "nothing in it could be checked"


def problems(findings: Sequence[Finding]) -> list[Finding]:
    """All that is not supported, by verdict and then in the order of the report."""
    return sorted((f for f in findings if f.verdict != SUPPORTED), key=lambda f: VERDICTS.index(f.verdict))


def as_json(findings: Sequence[Finding]) -> str:
    """What `blade check --json` prints."""
    wire = {"schema": SCHEMA, "counts": counts(findings), "findings": msgspec.to_builtins(list(findings))}
    return json_text(json.dumps(wire, ensure_ascii=False, indent=2)) + "\n"
