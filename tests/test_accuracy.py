"""How right the diagnosis is where the truth is known: a small form of `make accuracy`, and the card that ships."""

from __future__ import annotations

import gzip
import json
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from blade.diagnose.ladder import RULES
from blade.model import Cause, Confidence
from blade.pipeline.report_pages import card as shipped
from blade.pipeline.run_tables import ground_of
from blade.query.query_ground import Table
from tests.builders import make_message, make_response, make_row
from tests.conftest import read, report_on
from tools.accuracy import __main__ as measuring
from tools.accuracy import answer_keys
from tools.planted.injected import INJECTIONS, write_injected

pytestmark = pytest.mark.usefixtures("cache")
FAULTS = [name for name, one in INJECTIONS.items() if not one.twin and name not in answer_keys.OF_RUN]
TWINS = [name for name, one in INJECTIONS.items() if one.twin]
SEED = 11


# -- measured anew, on planted faults -------------------------------------------------------------


@pytest.mark.slow
def test_most_rows_with_an_injected_fault_get_its_label_and_few_another() -> None:
    told = answer_keys.measured([SEED], FAULTS)
    assert set(told.rows) == set(FAULTS)
    n, right, unexplained, wrong = (sum(counts[at] for counts in told.rows.values()) for at in range(4))
    assert n == right + unexplained + wrong > 2000
    assert right / n >= 0.82
    assert wrong / n <= 0.03
    proved = [is_right for _, group, is_right in told.groups if group.confidence is Confidence.PROVED]
    assert len(proved) > 20
    assert sum(proved) / len(proved) >= 0.9


@pytest.mark.slow
def test_faults_of_the_whole_run_are_named_first() -> None:
    told = answer_keys.measured([SEED], sorted(answer_keys.OF_RUN))
    assert len(told.runs) == len(answer_keys.OF_RUN)
    assert {fault for fault, true, said in told.runs if not set(true) & set(said[:1])} == set()


@pytest.mark.slow
def test_what_only_looks_like_a_fault_raises_no_alarm() -> None:
    told = answer_keys.measured([SEED], TWINS[::3], 0.05)
    assert not told.alarms
    assert not told.rows  # nothing was injected that could be named


def test_the_rows_of_a_group_are_those_of_its_query(tmp_path: Path) -> None:
    written = write_injected(tmp_path, fault="cycle", prevalence=0.3, seed=SEED)
    report = report_on(written.path)
    ground = ground_of(read(written.path), report=report)
    assert report.groups
    for group in report.groups:
        found = ground.ask(group.query)
        assert isinstance(found, Table)
        assert answer_keys.rows_of(group, report) == [(row[1], row[2]) for row in found.rows]


# -- runs with an answer key ----------------------------------------------------------------------


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one run, half of which ends in an error of the provider, and its key."""
    folder = tmp_path / "data"
    folder.mkdir()
    rows = []
    for task in range(12):
        down = task % 2 == 0
        response = make_response([] if down else [make_message("ok")], error={"message": "overloaded"} if down else None)
        rows.append(make_row(task, 0, float(not down), response=response))
    with gzip.open(folder / "run.jsonl.gz", "wt", encoding="utf-8") as file:
        file.write("\n".join(map(json.dumps, rows)))
    (folder / "keylib.py").write_text("def failed(row):\n    return row['reward'] < 1\n")
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "keylib", raising=False)
    return folder


@pytest.mark.parametrize(("accept", "is_right"), [(["IR"], True), (["BI", "KG"], False)])
def test_a_group_is_right_where_the_key_accepts_its_label(data: Path, accept: list[str], is_right: bool) -> None:
    groups = [{"accept": accept, "python": "lambda row: row['response']['error'] is not None"}]
    entry = {"file": "run.jsonl.gz", "failed_rule": "failed", "groups": groups}
    (data / "answers_build.json").write_text(json.dumps([entry]))
    found = answer_keys.judged(data)
    assert [(file, group.rows, right) for file, group, right in found] == [("run.jsonl.gz", 6, is_right)]
    del sys.modules["keylib"]


# -- the card -------------------------------------------------------------------------------------


def assert_is_card(card: dict[str, Any]) -> None:
    """What every reader of a card relies on."""
    assert list(card) == ["date", "key", "planted", "confidence", "rungs"]
    assert set(card["confidence"]) <= set(Confidence)
    assert set(card["rungs"]) <= {rule.name for rule in RULES}
    for part in ("confidence", "rungs"):
        assert card[part]
        assert all(0 <= one["right"] <= one["n"] and one["n"] > 0 for one in card[part].values())
    sizes = [sum(one[name] for one in card[part].values()) for part in ("confidence", "rungs") for name in ("n", "right")]
    assert sizes[:2] == sizes[2:]
    faults = card["planted"]
    assert faults["rows"] == faults["right"] + faults["unexplained"] + faults["wrong"]
    assert len(faults["runs_wrong"]) <= faults["runs"]


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> answer_keys.Told:
    """A measurement of few faults."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BLADE_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        return answer_keys.measured([SEED], ["cycle", "gave_up", "gold_rejected", "cycle_twin", "empty_run", "wrong_tasks"])


def test_a_card_holds_what_its_readers_need_and_reads_as_text(
    few: answer_keys.Told, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answer_keys, "measured", lambda seeds: few)
    card = measuring.measured(tmp_path, [SEED])
    assert_is_card(card)
    assert card["key"] == {}
    assert card["planted"]["runs_wrong"] == []
    said = measuring.text(card)
    assert "faults of a whole run: 2 of 2 named (none missed); twins with an alarm: none" in said
    for name, counts in {**card["confidence"], **card["rungs"]}.items():
        assert f"  {name:<12} {counts['right']} of {counts['n']}" in said
    fault, group, _ = few.groups[0]
    silent = replace(group, label=Cause.UNDETERMINED)
    told = [(fault, group, True), (fault, group, False), (fault, silent, False)]
    assert measuring._shares(told, lambda one: one.rung) == {group.rung: {"n": 2, "right": 1}}


def test_the_card_that_ships_is_one_and_was_measured_with_a_key() -> None:
    card = json.loads((files("blade") / "accuracy.json").read_text(encoding="utf-8"))
    assert card == shipped()
    assert_is_card(card)
    assert set(card["key"]) == set(answer_keys.HALVES)
