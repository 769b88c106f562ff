"""`blade detectors`, and `blade diagnose --quick`: the rule book, and counts without reading a trace."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from blade.detect import DETECTORS, NOT_BUILT
from blade.ingest import opened
from blade.model import Cause
from blade.planted import write_run
from tests.builders import make_row, make_rows, make_run
from tests.conftest import Blade

CODES = {cause.value for cause in Cause}


# -- the rule book --------------------------------------------------------------------------------


def test_every_detector_is_listed_in_the_order_of_the_catalogue(blade: Blade) -> None:
    said = blade("detectors")
    assert said.code == 0
    lines = [line.split() for line in said.out.splitlines() if "not built" not in line]
    assert [(line[0], line[1]) for line in lines] == [
        (module.RULE.number, name) for name, module in DETECTORS.items()
    ]
    assert {line[2] for line in lines} <= CODES
    assert all(len(line) > 6 for line in lines)  # and says what it looks for
    numbers = [int(line[0].removeprefix("B")) for line in lines]
    assert numbers == sorted(set(numbers))
    assert {f"B{number:02}" for number in range(1, 41)} == {line[0] for line in lines} | set(NOT_BUILT)


def test_the_list_as_json_holds_every_rule(blade: Blade) -> None:
    told = json.loads(blade("detectors", "--json").out)
    assert [one["name"] for one in told["detectors"]] == list(DETECTORS)
    assert told["not_built"] == NOT_BUILT
    for one in told["detectors"]:
        assert one["cause"] in CODES
        assert one["rule"]
        assert one["remedy"]
        assert one["kind"] in {"harness", "prompt", "training", "data", "verifier", "infrastructure"}


@pytest.mark.parametrize("name", DETECTORS)
def test_one_detector_by_name(blade: Blade, name: str) -> None:
    said = blade("detectors", name)
    rule = DETECTORS[name].RULE
    assert said.code == 0
    assert said.out.startswith(f"{name} ({rule.number})\n")
    heads = [line.split()[0] for line in said.out.splitlines()[2:] if not line.startswith(" ")]
    assert heads[:4] == ["Rule", "Label", "Needs", "Remedy"]
    assert heads[4:7] in (["Precision", "Recall", "Base"], ["Accuracy"])
    assert rule.rule in " ".join(said.out.split())
    assert max(map(len, said.out.splitlines())) <= 100
    assert blade("detectors", rule.number).out == said.out


def test_one_detector_as_json(blade: Blade) -> None:
    told = json.loads(blade("detectors", "B12", "--json").out)
    assert (told["name"], told["number"], told["cause"]) == ("repeat_identical", "B12", "BI")
    assert told == json.loads(blade("detectors", "repeat_identical", "--json").out)
    listed = json.loads(blade("detectors", "--json").out)["detectors"]
    assert told in listed


def test_precision_and_base_rate_are_counts_of_rollouts(blade: Blade) -> None:
    said = blade("detectors", "repeat_identical").out
    assert re.search(
        r"^Precision +\d+% \([\d,]+ of [\d,]+ rollouts it fires on\) on planted faults$", said, re.M
    )
    assert re.search(r"^Recall +[\d,]+ of [\d,]+ planted faults", said, re.M)
    assert re.search(r"^Base rate +fires on [\d,]+ of [\d,]+ passing rollouts", said, re.M)


def test_an_unknown_name_is_refused_with_near_ones(blade: Blade) -> None:
    said = blade("detectors", "repeat_identcal")
    assert (said.code, said.out) == (2, "")
    assert "there is no detector repeat_identcal" in said.err
    assert "did you mean repeat_identical" in said.err
    assert "docs/errors.md#no-such-detector" in said.err
    far = blade("detectors", "zzz")
    assert far.code == 2
    assert "`blade detectors` lists them" in far.err


def test_an_unknown_name_as_json(blade: Blade) -> None:
    said = blade("detectors", "--json", "B99")
    assert said.code == 2
    assert (said.error["slug"], said.error["exit"]) == ("no-such-detector", 2)


# -- counts alone ---------------------------------------------------------------------------------


def test_quick_counts_without_opening_a_trace(
    blade: Blade, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_run(tmp_path / "run", n_tasks=10, repeats=4).path
    full = blade("diagnose", path)

    def refused(*_: object) -> None:
        raise AssertionError("a trace was opened")

    monkeypatch.setattr(opened, "traced", refused)
    quick = blade("diagnose", "--quick", path)
    assert (full.code, quick.code) == (0, 0)
    score = re.compile(r"\d+\.\d%")
    assert score.search(quick.out)
    assert score.findall(quick.out)[0] == score.findall(full.out)[0]
    assert "Gaps" in quick.out
    assert "Wrote" not in quick.out
    assert "Lost" not in quick.out  # no cause is named


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


def test_health_as_json_tells_every_flag_of_the_report(blade: Blade, tmp_path: Path) -> None:
    path = write_run(tmp_path / "run", n_tasks=10, repeats=4, faults=["provider_errors"]).path
    (run,) = json.loads(blade("health", "--json", path).out)["runs"]
    report = json.loads(blade("diagnose", "--json", path).out)
    assert sorted(flag["flag"] for flag in run["flags"]) == sorted(
        flag["flag"] for flag in report["health"] if flag["task"] is None
    )
    assert sum(run["levels"].values()) == len(run["flags"])


def test_show_says_so_when_a_range_holds_no_step(blade: Blade, tmp_path: Path) -> None:
    path = make_run(tmp_path, [make_row(0, 0)])
    assert "no step in this range: they are numbered 0 to 0" in blade("show", path, "0/0", "--steps", "500:510").out
    assert "no step in this range" not in blade("show", path, "0/0", "--steps", "0:1").out
