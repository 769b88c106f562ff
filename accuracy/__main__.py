"""`python -m accuracy`: measure, print the card, and write it where every report finds it."""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from accuracy import card, natural, planted, shuffled
from blade import attribute, detect, measure, pipeline
from blade.pipeline import reading
from blade.store.index import Silent

ROOT = Path(__file__).resolve().parent.parent
CARD = ROOT / "src" / "blade" / "accuracy.json"
DATA = ROOT.parent / "shared" / "data"


def main() -> None:
    """Measure everything; without the folder of labelled rollouts, what is planted."""
    parser = argparse.ArgumentParser(prog="python -m accuracy", description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA, help="folder of rollouts with labels")
    parser.add_argument("--seeds", type=int, nargs="+", default=[101, 102], help="of the injected runs")
    parser.add_argument("--shuffles", type=int, default=400, help="runs with shuffled outcomes")
    parser.add_argument("--dry", action="store_true", help="print the card, write nothing")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as cache:
        os.environ["BLADE_CACHE_DIR"] = cache
        made = measured(given.data, given.seeds, given.shuffles)
    print(text(made))
    if not any(one["kind"] == "natural" for one in made["sets"]):
        print(f"No labelled rollouts in {given.data}: the card that ships keeps its natural set.")
    elif not given.dry:
        CARD.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
        print(f"Wrote {CARD.relative_to(ROOT)}")


def measured(data: Path, seeds: list[int], shuffles: int) -> dict[str, Any]:
    """The whole card."""
    told = planted.measured(seeds)
    sets = []
    if (data / "agentrx_tau_retail").is_dir():
        found = natural.labelled(data / "agentrx_tau_retail")
        sets.append(card.natural_set(f"labelled tool-use failures ({len(found)})", found))
    sets += [card.planted_set(told), card.nothing_set(shuffled.shuffled(shuffles))]
    by_detector = {
        name: entry
        for name, entry in card.detectors(told, _natural_rates(data)).items()
        if name in detect.DETECTORS
    }
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "about": "injected runs are simulated; labels of people are one set of 29 failures and settle little",
        "sets": sets,
        "detectors": by_detector,
    }


def _natural_rates(data: Path) -> dict[str, dict[str, Any]]:
    """How often each detector fires among failures and passes of all rollouts there are."""
    found: defaultdict[str, dict[str, Any]] = defaultdict(dict)
    paths = [path for path in sorted(data.glob("*/*.jsonl.gz")) if not path.name.startswith("labels")]
    total: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
    fails = passes = 0
    for path in paths:
        one = pipeline.load([str(path)], Silent())[0]
        scoring = measure.scoring.scoring(one.run.rollouts, None)
        read = reading.read_all([one], [scoring], Silent(), reading.Clock())[0]
        passes += int(read.judged.passed.sum())
        fails += int(read.judged.rows.size - read.judged.passed.sum())
        passing = set(read.judged.rows[read.judged.passed].tolist())
        for entry in read.found:
            if entry.finding.severity >= attribute.GRAVE:
                total[entry.finding.detector][entry.position in passing] += 1
    for name in detect.DETECTORS if paths else ():
        told = {"in_fail": total[name][0], "of_fail": fails, "in_pass": total[name][1], "of_pass": passes}
        found[name][f"rollouts of {len(paths)} public runs"] = told
    return found


def text(made: dict[str, Any]) -> str:
    """The card for a reader."""
    lines = [f"Accuracy card, {made['date']}: {made['about']}"]
    for one in made["sets"]:
        lines += ["", f"{one['name']} [{one['kind']}]"]
        for group, measures in one.items():
            if isinstance(measures, dict):
                lines.append(f"  {group}")
                lines += [f"    {name:<34} {_said(value)}" for name, value in measures.items()]
    lines += ["", "detectors: precision and recall on injected faults, rates on public runs"]
    for name, one in made["detectors"].items():
        public = next(iter(one["natural"].values()), None)
        rates = (
            f"{public['in_fail']}/{public['of_fail']} {public['in_pass']}/{public['of_pass']}"
            if public
            else "-"
        )
        lines.append(
            f"  {name:<32} {one['n_right']:>5}/{one['n_fired']:<5} "
            f"{one['n_recalled']:>5}/{one['n_planted']:<5} fail, pass {rates}"
        )
    return "\n".join(lines)


def _said(found: dict[str, Any]) -> str:
    if found["value"] is None:
        return f"- (n = {found['n']})"
    interval = f" [{found['low']:.3f}, {found['high']:.3f}]" if found["low"] is not None else ""
    return f"{found['value']:.3f}{interval} (n = {found['n']})"


if __name__ == "__main__":
    main()
