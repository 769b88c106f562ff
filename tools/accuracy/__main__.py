"""`python -m tools.accuracy`: measure how right the diagnosis is, print the card, and write it where every report finds it."""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from blade.model import Group
from tools.accuracy import answer_keys

ROOT = Path(__file__).resolve().parents[2]
CARD = ROOT / "src" / "blade" / "accuracy.json"
DATA = ROOT.parent / "shared" / "data"


def main() -> None:
    """Measure everything; without the folder of runs with a key, what is planted."""
    parser = argparse.ArgumentParser(prog="python -m tools.accuracy", description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA, help="folder of runs with an answer key")
    parser.add_argument("--seeds", type=int, nargs="+", default=[101], help="of the injected runs")
    parser.add_argument("--dry", action="store_true", help="print the card, write nothing")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as cache:
        os.environ["BLADE_CACHE_DIR"] = cache
        card = measured(options.data, options.seeds)
    print(text(card))
    if not options.dry and card["key"]:
        CARD.write_text(json.dumps(card, indent=1) + "\n", encoding="utf-8")
        print(f"Wrote {CARD.relative_to(ROOT)}")


def measured(data: Path, seeds: list[int]) -> dict[str, Any]:
    """The whole card."""
    has_key = (data / "score_key.py").is_file()
    planted = answer_keys.measured(seeds)
    groups = [*(answer_keys.judged(data) if has_key else []), *planted.groups]
    rows = [sum(counts[place] for counts in planted.rows.values()) for place in range(4)]
    wrong = [fault for fault, true, labels in planted.runs if not set(true) & set(labels[:1])]
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "key": answer_keys.cards(data) if has_key else {},
        "planted": {
            "rows": rows[0], "right": rows[1], "unexplained": rows[2], "wrong": rows[3],
            "runs": len(planted.runs), "runs_wrong": wrong, "twins_with_an_alarm": planted.alarms,
        },
        "confidence": _shares(groups, lambda group: group.confidence.value),
        "rungs": _shares(groups, lambda group: group.rung),
    }  # fmt: skip


def _shares(groups: Iterable[tuple[str, Group, bool]], name: Callable[[Group], str]) -> dict[str, dict[str, int]]:
    """How many labels were right, by what names the group; groups without a label say nothing."""
    results: dict[str, dict[str, int]] = {}
    for _, group, right in groups:
        if group.label.value != "undetermined":
            counts = results.setdefault(name(group), {"n": 0, "right": 0})
            counts["n"] += 1
            counts["right"] += right
    return dict(sorted(results.items()))


def text(card: dict[str, Any]) -> str:
    """The card for a reader."""
    lines = [f"Accuracy, {card['date']}", "", *card["key"].values(), ""]
    faults = card["planted"]
    lines.append(
        f"planted: {faults['rows']} failing rows, {faults['right']} with the right label, {faults['unexplained']} without, "
        f"{faults['wrong']} with a wrong one; faults of a whole run: {faults['runs'] - len(faults['runs_wrong'])} of "
        f"{faults['runs']} named ({', '.join(faults['runs_wrong']) or 'none missed'}); twins with an alarm: "
        f"{', '.join(faults['twins_with_an_alarm']) or 'none'}"
    )
    for part in ("confidence", "rungs"):
        lines += ["", f"labels that were right, by {part}"]
        lines += [f"  {name:<12} {counts['right']} of {counts['n']}" for name, counts in card[part].items()]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
