"""What a run tells: its progress on one line, its cost, and the manifest without secrets."""

from __future__ import annotations

import asyncio
import io
import json
from pathlib import Path

import pytest

from blade.errors import Unreadable
from blade_eval.environment import Row
from blade_eval.runner import benchmark_run, run_files
from blade_eval.runner.collect import Plan
from blade_eval.runner.progress import Prices, Progress, Totals


def test_the_line_says_done_pass_rate_cost_errors_and_retries() -> None:
    progress = Progress(expected=10, prices=Prices(1.0, 10.0), out=io.StringIO())
    for reward in (1.0, 0.0, 0.5, 1.0):
        progress.scored(reward, {"input_tokens": 1_000_000, "output_tokens": 100_000})
    for kind, is_final in (("model_timeout", False), ("judge_failed\x1b[31m", True), ("model_timeout", False)):
        progress.failed(kind, is_final)
    line = (
        "5 of 10 rollouts (50%) · pass rate 50.0% · mean reward 0.625 · $8.00 · 1 given up"
        " · 3 errors, most model_timeout (2) · 2 retries"
    )
    assert progress.text() == line
    progress.asked_again = lambda: 1234
    assert progress.text() == f"{line} · 1,234 requests made again"


def test_plain_lines_are_sparse_and_come_even_if_no_rollout_ends() -> None:
    progress = Progress(expected=1000, out=io.StringIO())
    progress.waited()
    assert progress.out.getvalue() == ""
    progress._drawn -= 3600
    progress.waited()
    assert progress.out.getvalue() == "0 of 1,000 rollouts (0%)\n"
    for _ in range(1000):
        progress.scored(1.0, None)
    assert progress.out.getvalue().count("\n") <= 2


@pytest.mark.parametrize("can_write", [True, False])
@pytest.mark.parametrize("is_well", [True, False])
def test_what_ended_a_run_is_told_rather_than_that_it_cannot_be_written_down(tmp_path: Path, can_write: bool, is_well: bool) -> None:
    places = run_files.beside(tmp_path / "r.jsonl")

    async def run(row: Row) -> Row:
        if not can_write:
            places.manifest.unlink()
            places.manifest.mkdir()  # nothing can take its place
        if not is_well:
            raise Unreadable("the disk is full", "make room", "the-reason")
        return {"reward": 1.0}

    row = {"_ng_task_index": 0, "_ng_rollout_index": 0}
    opened = run_files.open_run(places, [row], {}, resume=False, force=False, notice=print)
    plan = Plan(places, run, opened.kept, opened.standing, opened.expected)
    sitting = benchmark_run._sitting(plan, Progress(), {"sittings": [{"status": "running"}]})
    if is_well and can_write:
        assert asyncio.run(sitting).scored == 1
    else:
        with pytest.raises(Unreadable) as error:
            asyncio.run(sitting)
        assert error.value.slug == ("cannot-write" if is_well else "the-reason")
    assert not list(tmp_path.glob("*.tmp")) + list(tmp_path.glob(".*.part"))
    if can_write:
        status = json.loads(places.manifest.read_text())["sittings"][0]["status"]
        assert status == ("finished" if is_well else "stopped")
    run_files.Kept(places).close()  # the lock is free


def test_without_prices_or_counts_there_is_no_cost() -> None:
    counted, silent = Totals(), Totals()
    counted.add(1.0, {"prompt_tokens": 5, "completion_tokens": 7})
    silent.add(1.0, None)
    silent.add(None, {"input_tokens": 0, "output_tokens": 0})  # zeros mean that nobody counted
    assert (counted.tokens_in, counted.tokens_out) == (5, 7)
    assert [counted.cost(None), counted.cost(Prices(1e6, 0)), silent.cost(Prices(1, 1))] == [None, 5.0, None]
    assert (silent.scored, silent.passed) == (2, 1)


def test_differences_are_named_in_depth() -> None:
    before = {"flags": {"--limit": None, "p": {"temperature": 0.5}}, "dataset": [{"sha256": "a"}]}
    after = {"flags": {"--limit": 3, "p": {}}, "dataset": [{"sha256": "a"}, {"sha256": "b"}]}
    assert run_files.differences(before, before) == []
    assert run_files.differences(before, after) == [
        "flags.--limit: was not given, now 3",
        "flags.p.temperature: was 0.5, now not given",
        "dataset.2.sha256: was not given, now b",
    ]


def test_a_manifest_is_replaced_as_a_whole_and_one_that_is_broken_is_none(tmp_path: Path) -> None:
    path = tmp_path / "r_manifest.json"
    run_files.write_manifest(path, {"a": "é", "n": [1, 2]})
    assert json.loads(path.read_text(encoding="utf-8")) == {"a": "é", "n": [1, 2]}
    assert [entry.name for entry in tmp_path.iterdir()] == ["r_manifest.json"]
    path.write_text("{")
    assert [run_files.read_manifest(path), run_files.read_manifest(tmp_path / "none")] == [None, None]


@pytest.mark.parametrize(("output", "stem"), [("a.jsonl", "a"), ("roll.v1.jsonl", "roll.v1"), ("plain", "plain")])
def test_names_derive_from_the_output(output: str, stem: str) -> None:
    places = run_files.beside(Path("d") / output)
    assert [places.failures, places.manifest] == [Path("d") / f"{stem}{end}" for end in ("_failures.jsonl", "_manifest.json")]
