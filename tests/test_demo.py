"""`blade demo`: from an empty folder to reports, with the planted faults beside what was found, and over nobody's files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Blade

Made = tuple[Path, str]
ROLLOUTS = 74 * 4
UNRESOLVED = 41  # rollouts of hasty that never look the address up


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """The demo made once, and what it printed."""
    from click.testing import CliRunner

    from blade.cli.main import cli

    folder = tmp_path_factory.mktemp("demo")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BLADE_CACHE_DIR", str(folder / "cache"))
        patch.chdir(folder)
        result = CliRunner().invoke(cli, ["demo"], prog_name="blade")
    assert result.exit_code == 0, result.output
    return folder / "blade-demo", result.stdout


def report_of(folder: Path, name: str) -> dict[str, Any]:
    return dict(json.loads((folder / name).read_text()))


def rows_of(folder: Path, script: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "runs" / f"{script}_rollouts.jsonl").read_text().splitlines()]


def planted_block(said: str) -> list[str]:
    """The lines of the closing block, without what frames it."""
    lines = said.splitlines()
    start = next(at for at, line in enumerate(lines) if line.startswith("Planted"))
    end = next(at for at, line in enumerate(lines) if line.startswith("Open "))
    return lines[start + 2 : end - 1]


def test_everything_is_there_scores_and_verdict_are_printed_and_the_planted_block_adds_up(made: Made) -> None:
    folder, said = made
    for script in ("careful", "hasty"):
        for ending in (
            ".jsonl", "_materialized_inputs.jsonl", "_failures.jsonl", "_aggregate_metrics.json", "_manifest.json",
            "_reward_profiling.jsonl", "_agent_metrics.json", "_repeat_level_metrics.json",
        ):  # fmt: skip
            assert (folder / "runs" / f"{script}_rollouts{ending}").exists(), ending
        assert "<html" in (folder / f"report_{script}" / "report.html").read_text()
        assert len(rows_of(folder, script)) == ROLLOUTS
        assert (folder / "runs" / f"{script}_rollouts_failures.jsonl").read_text() == ""
    assert (folder / "compare" / "compare.html").exists()
    assert "pass@1 81.8%" in said
    assert "pass@1 54.7%" in said
    assert "REGRESSED" in said
    assert "report.html" in said.splitlines()[-2]
    # Each fault with its rollouts, and under it the groups that hold exactly these rollouts.
    faults: dict[str, int] = {}
    held: dict[str, int] = {}
    for line in planted_block(said):
        number, _, *words = line.split()
        if line[10:13].strip():  # groups are indented further than the fault they belong to
            fault = words[0].rstrip(":")
            faults[fault] = int(number)
        else:
            held[fault] = held.get(fault, 0) + int(number)
    rows = rows_of(folder, "hasty")
    assert faults["unresolved_name"] == UNRESOLVED
    assert sum(faults.values()) == sum(row["reward"] == 0 for row in rows) == 134
    assert held == faults


def test_the_planted_fault_is_the_first_group_and_mover_and_a_change_of_27_points_has_a_cause(made: Made) -> None:
    folder, _ = made
    group = report_of(folder, "report_hasty/report.json")["groups"][0]
    assert group["rows"] == pytest.approx(UNRESOLVED, abs=4)
    assert group["passed_rows"] == 0
    (comparison,) = report_of(folder, "compare/compare.json")["comparisons"]
    assert comparison["delta"] == pytest.approx(-80 / ROLLOUTS)
    mover = comparison["movers"][0]
    assert all("company_directory_find_email_address" in name for name in (group["name"], mover["term"]))
    assert group["gain"]["low"] <= UNRESOLVED / ROLLOUTS <= group["gain"]["high"]
    assert mover["low"] <= -UNRESOLVED / ROLLOUTS <= mover["high"] < 0
    rest = [term["value"] for term in comparison["bridge"] if term["side"] == "undetermined"]
    assert abs(sum(rest)) < 0.02


@pytest.mark.parametrize("name", ["runs/hasty_rollouts.jsonl", "tasks.jsonl", "compare/compare.md", "runs/blade.toml"])
def test_files_of_others_are_not_written_over(
    blade: Blade, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    mine = tmp_path / "demo" / name
    mine.parent.mkdir(parents=True)
    mine.write_text("mine\n")
    said = blade("demo", "-o", "demo")
    assert said.code == 2
    assert "not of the demo" in said.err or "was not written by blade" in said.err
    assert mine.read_text() == "mine\n"


@pytest.mark.slow
def test_again_it_is_the_same_and_json_names_the_files(
    blade: Blade, made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, _ = made
    names = ("runs/hasty_rollouts.jsonl", "report_hasty/metrics.json", "compare/compare.json")
    before = [(folder / name).read_bytes() for name in names]
    monkeypatch.chdir(folder.parent)
    said = blade("demo", "--json")
    assert said.code == 0, said.err
    told = json.loads(said.out)
    assert told["verdict"] == "regressed"
    planted = told["runs"][1]["planted"]
    assert sum(fault["rollouts"] for fault in planted.values()) == ROLLOUTS
    assert planted["none"]["groups"] == {"none": 162}
    assert planted["unresolved_name"]["points"] == pytest.approx(UNRESOLVED / ROLLOUTS)
    for fault in planted.values():
        assert sum(fault["groups"].values()) == fault["rollouts"]
    assert all(Path(run["html"]).exists() for run in told["runs"])
    assert [(folder / name).read_bytes() for name in names] == before
