"""`blade demo`: from an empty folder to reports, with the planted faults told, and over nobody's files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import Blade


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
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


def test_everything_is_there(made: tuple[Path, str]) -> None:
    folder, _ = made
    for script in ("careful", "hasty"):
        for ending in (
            ".jsonl", "_materialized_inputs.jsonl", "_failures.jsonl", "_aggregate_metrics.json", "_manifest.json",
            "_reward_profiling.jsonl", "_agent_metrics.json", "_repeat_level_metrics.json",
        ):  # fmt: skip
            assert (folder / "runs" / f"{script}_rollouts{ending}").exists(), ending
        assert "<html" in (folder / f"report_{script}" / "report.html").read_text()
        rows = (folder / "runs" / f"{script}_rollouts.jsonl").read_text().splitlines()
        assert len(rows) == 74 * 4
        assert (folder / "runs" / f"{script}_rollouts_failures.jsonl").read_text() == ""
    assert (folder / "compare" / "compare.html").exists()


def test_it_says_what_was_found_and_what_was_planted(made: tuple[Path, str]) -> None:
    _, said = made
    assert "pass@1 81.8%" in said
    assert "pass@1 54.7%" in said
    assert "REGRESSED" in said
    assert "unresolved_name: never asks the directory" in said
    assert "report.html" in said.splitlines()[-2]


def test_the_reports_agree_with_the_rewards_and_name_what_was_done_too_much(made: tuple[Path, str]) -> None:
    folder, _ = made
    rows = [json.loads(line) for line in (folder / "runs" / "hasty_rollouts.jsonl").read_text().splitlines()]
    metrics = json.loads((folder / "report_hasty" / "metrics.json").read_text())
    assert metrics["pass_at_1"] == pytest.approx(sum(row["reward"] for row in rows) / len(rows))
    assert "extra_side_effect" in (folder / "report_hasty" / "report.md").read_text()


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
    assert "not of the demo" in said.err
    assert mine.read_text() == "mine\n"


@pytest.mark.slow
def test_again_it_is_the_same_and_json_names_the_files(
    blade: Blade, made: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, _ = made
    names = ("runs/hasty_rollouts.jsonl", "report_hasty/metrics.json", "compare/compare.json")
    before = [(folder / name).read_bytes() for name in names]
    monkeypatch.chdir(folder.parent)
    said = blade("demo", "--json")
    assert said.code == 0, said.err
    told = json.loads(said.out)
    assert told["verdict"] == "regressed"
    assert sum(one["rollouts"] for one in told["runs"][1]["planted"].values()) == 74 * 4
    assert all(Path(run["html"]).exists() for run in told["runs"])
    assert [(folder / name).read_bytes() for name in names] == before
