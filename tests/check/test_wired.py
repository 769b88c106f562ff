"""report.json beside its rows: every entry holds, and every changed value is found on its line."""

from __future__ import annotations

import json
from typing import Any

import pytest

from blade.check import checked
from blade.model import CONTRADICTED, SUPPORTED
from blade.report import printed

from .conftest import Told


@pytest.fixture(scope="module")
def text(told: Told) -> str:
    return printed(told.report)


def wrong(told: Told, text: str) -> list[tuple[str, str, str | None]]:
    return [
        (one.text, one.found, one.expected)
        for one in checked(text, told.world)
        if one.verdict == CONTRADICTED
    ]


def test_every_entry_of_our_own_report_holds(told: Told, text: str) -> None:
    found = checked(text, told.world)
    assert {one.verdict for one in found} == {SUPPORTED}
    assert len(found) > 200
    assert len({one.line for one in found}) > 100


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("runs", 0, "score"), 0.9),
        (("runs", 0, "n_tasks"), 25),
        (("tasks", 3, "bucket"), "never"),
        (("tasks", 3, "repeats", 1, "outcome"), "errored"),
        (("losses", 0, "lost"), 0.2),
        (("attributions", 0, "cause"), "DA"),
        (("findings", 0, "evidence", 0, "quote"), "made up"),
        (("recommendations", 0, "gain", "point"), 0.5),
    ],
)
def test_a_changed_value_is_found_where_it_stands(
    told: Told, text: str, path: tuple[Any, ...], value: Any
) -> None:
    data = json.loads(text)
    within = data
    for key in path[:-1]:
        within = within[key]
    assert within[path[-1]] != value
    within[path[-1]] = value
    changed = json.dumps(data, indent=2)
    (one,) = [one for one in checked(changed, told.world) if one.verdict == CONTRADICTED]
    assert one.found == json.dumps(value)
    assert f'"{path[-1]}"' in changed.split("\n")[one.line - 1]


def test_entries_that_are_left_out_or_made_up_are_found(told: Told, text: str) -> None:
    data = json.loads(text)
    data["tasks"].pop()
    assert ("tasks", "23 entries", "24 entries") in wrong(told, json.dumps(data))


def test_where_files_lay_and_who_wrote_it_are_no_claims(told: Told, text: str) -> None:
    data = json.loads(text)
    data["made_by"] = {"blade": "9.9", "command": "blade diagnose elsewhere"}
    data["runs"][0]["sources"][0]["path"] = "/somewhere/else.jsonl"
    assert wrong(told, json.dumps(data)) == []


@pytest.mark.parametrize(
    "text", ["[]", "{}", '{"schema": "blade.report/1"}', '{"schema": "blade.report/1", "runs": 3}', "[1, 2"]
)
def test_other_json_is_answered(told: Told, text: str) -> None:
    assert isinstance(checked(text, told.world), tuple)
