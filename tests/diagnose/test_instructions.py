"""Instruction following: the groups are the broken instructions, by name."""

from __future__ import annotations

import random

import pytest

from tests.diagnose.diagnosed import Diagnose, told_of
from tests.diagnose.rows import Key, Row, make_row

NAMES = (
    "letter:ends_with_greeting", "letter:at_most_five_lines", "format:no_commas", "words:mentions_shelf",
    "words:starts_with_dear", "format:two_sections", "count:three_numbers",
)  # fmt: skip
BREAKS = {"format:no_commas": 0.45, "count:three_numbers": 0.25}  # how often each is broken; others hardly ever


def letters(n_tasks: int, n_repeats: int, in_object: bool = False) -> tuple[list[Row], dict[Key, set[str]]]:
    """Letters under two or three instructions each, with the names and whether each was followed."""
    chance = random.Random(4)
    rows: list[Row] = []
    broken: dict[Key, set[str]] = {}
    for task in range(n_tasks):
        names = chance.sample(NAMES, 2 + task % 2)
        for repeat in range(n_repeats):
            followed = [chance.random() >= BREAKS.get(name, 0.02) for name in names]
            text = f"Dear owner of parcel {task}.\n" + "It is on its shelf.\n" * chance.randrange(1, 7) + "Goodbye."
            verdict = {"instruction_id_list": names, "follow_instruction_list": followed}
            fields = {"verdict": verdict} if in_object else verdict
            prompt = f"Write a letter about parcel {task}. " + " ".join(names)
            rows.append(make_row(task, repeat, float(all(followed)), [text], prompt=prompt, **fields))
            failed = {name for name, is_followed in zip(names, followed, strict=True) if not is_followed}
            if failed:
                broken[task, repeat] = failed
    return rows, broken


@pytest.mark.parametrize(("n_tasks", "n_repeats", "in_object"), [(120, 1, False), (40, 4, True)])
def test_groups_are_the_broken_instructions(diagnose: Diagnose, n_tasks: int, n_repeats: int, in_object: bool) -> None:
    rows, broken = letters(n_tasks, n_repeats, in_object)
    run = diagnose(rows)
    assert set(broken) == run.failing
    for name in BREAKS:
        groups = [group for group in run.groups if name in group.name]
        assert groups, [group.name for group in run.groups]
        assert all(name in broken[key] for key in run.keys(groups[0]))  # none that followed it
    assert run.keys(run.groups[0]) == {key for key, names in broken.items() if "format:no_commas" in names}
    named = [group for group in run.groups if group.label == "BI" and any(name in group.name for name in NAMES)]
    assert sum(group.rows for group in named) >= 0.9 * len(broken)
    assert not [group.name for group in run.groups if "[0]" in told_of(group) or group.quote is None]  # a place in a list is no name
    assert run.alarms == []


def test_list_of_truths_without_names_beside_it_names_nothing(diagnose: Diagnose) -> None:
    """Another list is as long, but holds numbers: there is nothing to call the broken ones by."""
    rows, _ = letters(120, 1)
    for row in rows:
        row["line_lengths"] = [7] * len(row["follow_instruction_list"])
        del row["instruction_id_list"]
    run = diagnose(rows)
    assert not any(name in run.said for name in NAMES)
