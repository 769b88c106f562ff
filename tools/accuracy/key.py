"""Score the diagnosis against real runs with an answer key, and its labels by confidence and by question."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

from blade import pipeline
from blade.model import Group
from blade.tables.index import Silent
from tools.accuracy.planted import rows_of

HALVES = ("build", "measure")


def cards(data: Path) -> dict[str, str]:
    """The last line of the key's own scorer for each half."""
    blade = Path(sys.executable).with_name("blade")
    found = {}
    for half in HALVES:
        command = [sys.executable, str(data / "score_key.py"), "--blade", str(blade), "--half", half]
        found[half] = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip().splitlines()[-1]
    return found


def judged(data: Path) -> list[tuple[str, Group, bool]]:
    """Every group of the building half: the file, the group, and whether the key accepts its label for most of its rows."""
    sys.path.insert(0, str(data))
    import keylib  # of the key, not of this project

    found = []
    for entry in json.loads((data / "answers_build.json").read_text(encoding="utf-8")):
        accepted = _accepted(data, entry, vars(keylib))
        report = pipeline.diagnose(pipeline.load([str(data / entry["file"])], Silent()), "accuracy")
        for group in report.groups:
            rows = [accepted[key] for key in rows_of(group, report) if key in accepted]
            if rows:
                right = sum(group.label.value in labels for labels in rows)
                found.append((entry["file"], group, 2 * right >= len(rows)))
    return found


def _accepted(data: Path, entry: dict[str, Any], names: dict[str, Any]) -> dict[tuple[str, int], set[str]]:
    """The labels that the key accepts for each failed row, by the predicates of its groups."""
    fails = eval(entry["failed_rule"], dict(names))
    rules = [(set(one["accept"]), eval(one["python"], dict(names))) for one in entry["groups"] if one.get("in_partition", True)]
    found: defaultdict[tuple[str, int], set[str]] = defaultdict(set)
    with gzip.open(data / entry["file"], "rt", encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            if fails(row):
                key = str(row["_ng_task_index"]), int(row["_ng_rollout_index"])
                for labels, holds in rules:
                    if holds(row):
                        found[key] |= labels
    return found
