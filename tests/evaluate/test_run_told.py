"""What a run tells: its progress on one line, its cost, and the manifest without secrets."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from blade.evaluate.run import manifest, places
from blade.evaluate.run.progress import Prices, Progress, Totals


def test_the_line_says_done_pass_rate_cost_errors_and_retries() -> None:
    progress = Progress(expected=10, prices=Prices(1.0, 10.0), out=io.StringIO())
    for reward in (1.0, 0.0, 0.5, 1.0):
        progress.scored(reward, {"input_tokens": 1_000_000, "output_tokens": 100_000})
    progress.failed("model_timeout", False)
    progress.failed("judge_failed\x1b[31m", True)
    progress.failed("model_timeout", False)
    assert progress.text() == (
        "5 of 10 rollouts (50%) · pass rate 50.0% · mean reward 0.625 · $8.00 · 1 given up"
        " · 3 errors, most model_timeout (2) · 2 retries"
    )


def test_without_prices_or_counts_there_is_no_cost() -> None:
    counted, silent = Totals(), Totals()
    counted.add(1.0, {"prompt_tokens": 5, "completion_tokens": 7})
    silent.add(1.0, None)
    silent.add(None, {"input_tokens": 0, "output_tokens": 0})  # zeros mean that nobody counted
    assert (counted.tokens_in, counted.tokens_out) == (5, 7)
    assert counted.cost(None) is None
    assert counted.cost(Prices(1e6, 0)) == 5.0
    assert silent.cost(Prices(1, 1)) is None
    assert (silent.scored, silent.passed) == (2, 1)


def test_plain_lines_are_sparse() -> None:
    out = io.StringIO()
    progress = Progress(expected=1000, out=out)
    for _ in range(1000):
        progress.scored(1.0, None)
    assert out.getvalue().count("\n") <= 1


def test_secrets_of_a_command_are_hidden_and_numbers_of_tokens_are_not() -> None:
    command = [
        "blade", "--model-api-key", "sk-1234567", "--max-output-tokens", "100", "++policy_api_key=sk-1234567",
        "++a.max_output_tokens=5", "--model-url", "http://me:sk-1234567@host/v1",
    ]  # fmt: skip
    shown = manifest.masked(command)
    assert "sk-1234567" not in " ".join(shown)
    assert shown[3:5] == ["--max-output-tokens", "100"]
    assert shown[6] == "++a.max_output_tokens=5"


def test_differences_are_named_in_depth() -> None:
    before = {"flags": {"--limit": None, "p": {"temperature": 0.5}}, "dataset": [{"sha256": "a"}]}
    after = {"flags": {"--limit": 3, "p": {}}, "dataset": [{"sha256": "a"}, {"sha256": "b"}]}
    assert manifest.differences(before, before) == []
    assert manifest.differences(before, after) == [
        "flags.--limit: was not given, now 3",
        "flags.p.temperature: was 0.5, now not given",
        "dataset.2.sha256: was not given, now b",
    ]


def test_a_manifest_is_replaced_as_a_whole_and_one_that_is_broken_is_none(tmp_path: Path) -> None:
    path = tmp_path / "r_manifest.json"
    manifest.written(path, {"a": "é", "n": [1, 2]})
    assert json.loads(path.read_text(encoding="utf-8")) == {"a": "é", "n": [1, 2]}
    assert [entry.name for entry in tmp_path.iterdir()] == ["r_manifest.json"]
    path.write_text("{")
    assert manifest.read(path) is None
    assert manifest.read(tmp_path / "none") is None


@pytest.mark.parametrize(
    ("output", "stem"), [("a.jsonl", "a"), ("roll.v1.jsonl", "roll.v1"), ("plain", "plain")]
)
def test_names_derive_from_the_output(output: str, stem: str) -> None:
    at = places.beside(Path("d") / output)
    assert at.failures == Path("d") / f"{stem}_failures.jsonl"
    assert at.manifest == Path("d") / f"{stem}_manifest.json"
