"""`blade detectors`, and `blade diagnose --quick`: the rule book, and counts without reading a trace."""

from __future__ import annotations

import json
import pkgutil
import re
from pathlib import Path
from typing import Any

import pytest

from blade.diagnose import rungs
from blade.diagnose.ladder import RULES
from blade.formats import single_rows
from blade.model import Cause
from blade.pipeline import report_pages
from blade.tables.index import Silent
from tests.builders import make_row, make_rows, make_run
from tests.conftest import Blade
from tools.planted import write_run

NAMES = [rule.name for rule in RULES]
CODES = {cause.value for cause in Cause}


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """An accuracy card that measured one question."""
    rungs = {"cut": {"n": 16, "right": 14}}
    monkeypatch.setattr(report_pages, "card", lambda: {"rungs": rungs})
    return rungs


# -- the rule book --------------------------------------------------------------------------------


def test_every_rung_of_the_ladder_is_in_the_rule_book() -> None:
    modules = {module.name for module in pkgutil.iter_modules(rungs.__path__)}
    # three questions have no module of their own: one is asked by `ran`, one of several runs together, one of the owner
    assert set(NAMES) == modules | {"recorded", "gold", "declared"}
    assert len(NAMES) == len(set(NAMES))


def test_questions_stand_in_the_order_in_which_they_are_asked(cache: Path, tmp_path: Path) -> None:
    from blade import pipeline
    from blade.pipeline.trace_reading import Clock

    clock = Clock()
    path = make_run(tmp_path, make_rows({task: [1.0, 0.0] for task in range(8)}))  # nothing is explained before the last
    pipeline.diagnose(pipeline.load([str(path)], Silent()), "", clock=clock)
    asked = [name.removeprefix("ladder: ") for name in clock.seconds if name.startswith("ladder: ")]
    early = ("kinds", "verdicts")  # slices and the golds that verdicts hold are found before their question is asked
    asked = [name for name in asked if name in NAMES and name not in early]
    assert asked == [name for name in NAMES if name in asked]
    assert set(asked) == set(NAMES) - {"recorded", "gold", *early}


def test_all_questions_are_printed_in_order(blade: Blade) -> None:
    said = blade("detectors")
    assert said.code == 0
    assert [line for line in said.out.splitlines() if line and not line.startswith(" ")] == NAMES
    assert max(map(len, said.out.splitlines())) <= 100
    for name in NAMES:
        assert blade("detectors", name).out.strip() in said.out


@pytest.mark.parametrize("rule", RULES, ids=NAMES)
def test_one_question_by_name(blade: Blade, rule: Any) -> None:
    said = blade("detectors", rule.name.upper())
    assert said.code == 0
    heads = [line[2:12].strip() for line in said.out.splitlines()[1:] if line[2] != " "]
    assert heads == ["Question", "Proved by", "Refuted by", "Label", "Accuracy"]
    words = " ".join(said.out.split())
    assert all(text in words for text in (rule.question, rule.proof, rule.refuted, rule.label))
    assert rule.question.endswith("?")
    assert set(re.findall(r"\b[A-Z]{2}\b", rule.label)) <= CODES


def test_the_list_as_json_holds_every_question(blade: Blade) -> None:
    printed = json.loads(blade("detectors", "--json").out)["rungs"]
    assert [one["name"] for one in printed] == NAMES
    assert all(set(one) == {"name", "question", "proof", "refuted", "label", "accuracy"} for one in printed)
    assert json.loads(blade("detectors", "verifier", "--json").out) == printed[NAMES.index("verifier")]


def test_accuracy_is_printed_where_the_card_has_it(blade: Blade, measured: dict[str, Any]) -> None:
    assert "Accuracy    14 of 16 labels right (88%), on runs with a known answer" in blade("detectors", "cut").out
    assert json.loads(blade("detectors", "cut", "--json").out)["accuracy"] == measured["cut"]
    assert "Accuracy    not measured" in blade("detectors", "verifier").out
    assert json.loads(blade("detectors", "verifier", "--json").out)["accuracy"] is None


def test_an_unknown_name_is_refused_with_near_ones(blade: Blade) -> None:
    said = blade("detectors", "verifer")
    assert (said.code, said.out) == (2, "")
    assert "there is no question named verifer" in said.err
    assert "did you mean verifier" in said.err
    assert "docs/errors.md#no-such-detector" in said.err
    far = blade("detectors", "zzz")
    assert far.code == 2
    assert "`blade detectors` lists them" in far.err
    said = blade("detectors", "--json", "B99")
    assert (said.error["slug"], said.error["exit"]) == ("no-such-detector", 2)


# -- counts alone ---------------------------------------------------------------------------------


def test_quick_counts_without_opening_a_trace(
    blade: Blade, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_run(tmp_path / "run", n_tasks=10, repeats=4).path
    full = blade("diagnose", path)

    def refused(*_: object) -> None:
        raise AssertionError("a trace was opened")

    monkeypatch.setattr(single_rows, "traced", refused)
    quick = blade("diagnose", "--quick", path)
    assert (full.code, quick.code) == (0, 0)
    score = re.compile(r"\d+\.\d%")
    assert score.search(quick.out)
    assert score.findall(quick.out)[0] == score.findall(full.out)[0]
    assert "Wrote" not in quick.out
    assert "Where the points went" in full.out
    assert "Where the points went" not in quick.out  # no cause is named


@pytest.mark.parametrize("option", [("-o", "out"), ("--json",)])
def test_quick_prints_only(
    blade: Blade, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    path = make_run(tmp_path, make_rows({0: [1.0], 1: [0.0]}))
    said = blade("diagnose", "--quick", *option, path)
    assert (said.code, said.out) == (2, "")
    assert "--quick only prints the counts" in said.err
    assert not (tmp_path / "out").exists()


# -- health ---------------------------------------------------------------------------------------


def test_health_as_json_holds_trust_and_flags_of_the_report(blade: Blade, tmp_path: Path) -> None:
    path = write_run(tmp_path / "run", n_tasks=10, repeats=4, faults=["provider_errors"]).path
    (run,) = json.loads(blade("health", "--json", path).out)["runs"]
    report = json.loads(blade("diagnose", "--json", path).out)
    assert run["trust"] == report["trust"]
    assert run["flags"]
    assert sorted(flag["flag"] for flag in run["flags"]) == sorted(flag["flag"] for flag in report["health"])


def test_show_says_so_when_a_range_holds_no_step(blade: Blade, tmp_path: Path) -> None:
    path = make_run(tmp_path, [make_row(0, 0)])
    assert "no step in this range: they are numbered 0 to 0" in blade("show", path, "0/0", "--steps", "500:510").out
    assert "no step in this range" not in blade("show", path, "0/0", "--steps", "0:1").out
