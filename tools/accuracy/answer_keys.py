"""Score the diagnosis against injected faults and against real runs with an answer key."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from blade import pipeline
from blade.model import Group, Report
from blade.tables.index import Silent
from tools.planted.injected import INJECTIONS, Injected, write_injected

PREVALENCE = 0.3  # share of the rollouts that an injection is put into
# Faults of the run or of whole tasks: the cause of the run is what must be right.
OF_RUN = frozenset(
    "empty_run broken_verifier provider_outage agent_never_started format_rejected turn_limit_run "
    "wrong_tasks".split()
)


@dataclass
class Told:
    """What was concluded beside what is true, over all injected runs."""

    groups: list[tuple[str, Group, bool]] = field(default_factory=list)  # fault, group, whether its label is right
    rows: dict[str, list[int]] = field(default_factory=dict)  # fault -> rows, with the right label, unexplained, wrong
    runs: list[tuple[str, tuple[str, ...], tuple[str, ...]]] = field(default_factory=list)  # fault, true, alarms
    alarms: list[str] = field(default_factory=list)  # twins that raised an alarm


def measured(seeds: Iterable[int], faults: Iterable[str] | None = None, prevalence: float = PREVALENCE) -> Told:
    """Every injection once for each seed."""
    tally = Told()
    for fault in faults or INJECTIONS:
        share = 1.0 if fault.removesuffix("_twin") in OF_RUN else prevalence
        for seed in seeds:
            with TemporaryDirectory() as folder:
                written = write_injected(Path(folder), fault=fault, prevalence=share, seed=seed)
                report = pipeline.diagnose(pipeline.load([str(written.path)], Silent()), "accuracy")
                _add(tally, written, report)
    return tally


def _add(tally: Told, written: Injected, report: Report) -> None:
    alarms = tuple(entry.label.value for entry in report.trust if entry.level == "alarm" and entry.label)
    if written.fault in OF_RUN:
        first = alarms or tuple(group.label.value for group in report.groups[:1])
        tally.runs.append((written.fault, written.truths[0].causes, first))
        return
    if written.twin:
        tally.alarms += [written.fault] * bool(alarms)
        return
    causes = {(entry.task, entry.repeat): entry.causes for entry in written.truths}
    counts = tally.rows.setdefault(written.fault, [0, 0, 0, 0])
    explained: dict[tuple[str, int], Group] = {}
    for group in report.groups:
        members = rows_of(group, report)
        explained |= dict.fromkeys(members, group)
        injected = [key for key in members if key in causes]
        if 2 * len(injected) >= len(members):  # a group of rows that fail for another reason says nothing here
            right = sum(group.label.value in causes[key] for key in injected)
            tally.groups.append((written.fault, group, 2 * right >= len(injected)))
    failing = {(task.task, repeat.repeat) for task in report.tasks for repeat in task.repeats if repeat.reward == 0}
    for key in causes.keys() & failing:
        label = explained[key].label.value if key in explained else "undetermined"
        counts[0] += 1
        counts[1 if label in causes[key] else 2 if label == "undetermined" else 3] += 1


def rows_of(group: Group, report: Report) -> list[tuple[str, int]]:
    """The failing rows of a group by task and repeat, from the numbers in its query."""
    import re

    order = [(task.task, repeat.repeat) for task in report.tasks for repeat in task.repeats]
    condition = group.query.partition(" and ")[2]
    numbers: set[int] = set()
    for low, high in re.findall(r"row between (\d+) and (\d+)", condition):
        numbers |= set(range(int(low), int(high) + 1))
    for listed in re.findall(r"row in \(([\d, ]+)\)", condition):
        numbers |= {int(number) for number in listed.split(",")}
    return [order[number] for number in sorted(numbers) if number < len(order)]


HALVES = ("build", "measure")


def cards(data: Path) -> dict[str, str]:
    """The last line of the key's own scorer for each half."""
    blade = Path(sys.executable).with_name("blade")
    results = {}
    for half in HALVES:
        command = [sys.executable, str(data / "score_key.py"), "--blade", str(blade), "--half", half]
        results[half] = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip().splitlines()[-1]
    return results


def judged(data: Path) -> list[tuple[str, Group, bool]]:
    """Every group of the building half: the file, the group, and whether the key accepts its label for most of its rows."""
    sys.path.insert(0, str(data))
    import keylib  # of the key, not of this project

    results = []
    for entry in json.loads((data / "answers_build.json").read_text(encoding="utf-8")):
        accepted = _accepted(data, entry, vars(keylib))
        report = pipeline.diagnose(pipeline.load([str(data / entry["file"])], Silent()), "accuracy")
        for group in report.groups:
            rows = [accepted[key] for key in rows_of(group, report) if key in accepted]
            if rows:
                right = sum(group.label.value in labels for labels in rows)
                results.append((entry["file"], group, 2 * right >= len(rows)))
    return results


def _accepted(data: Path, entry: dict[str, Any], names: dict[str, Any]) -> dict[tuple[str, int], set[str]]:
    """The labels that the key accepts for each failed row, by the predicates of its groups."""
    fails = eval(entry["failed_rule"], dict(names))
    rules = [(set(item["accept"]), eval(item["python"], dict(names))) for item in entry["groups"] if item.get("in_partition", True)]
    results: defaultdict[tuple[str, int], set[str]] = defaultdict(set)
    with gzip.open(data / entry["file"], "rt", encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            if fails(row):
                key = str(row["_ng_task_index"]), int(row["_ng_rollout_index"])
                for labels, holds in rules:
                    if holds(row):
                        results[key] |= labels
    return results
