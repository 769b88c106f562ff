"""Counts on real rollouts of other people, where they are at hand."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from blade import pipeline
from blade.model import OTHER, Cause, Comparison, Mechanism, Report
from blade.pipeline import comparing
from blade.store.index import Silent
from tests.quotations import (
    Rows,
    assert_evidence_resolves,
    assert_losses_add_up,
    assert_nothing_broke,
    assert_steps_exist,
)

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
THREE_RUNS = DATA / "tau_retail" / "gemini-2.0-flash_tool-calling_3runs.jsonl.gz"
TELECOM = DATA / "tau2_sft_telecom" / "gpt-4.1.jsonl.gz"
pytestmark = [
    pytest.mark.corpus,
    pytest.mark.skipif(not DATA.is_dir(), reason="no corpus beside the project"),
]


def table() -> list[tuple[str, ...]]:
    """The rows of the corpus README's table of exact counts."""
    readme = DATA / "README.md"
    lines = readme.read_text().splitlines() if readme.exists() else []
    return [
        tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines if ".jsonl.gz |" in line
    ]


@cache
def loaded_of(path: Path) -> list[pipeline.Loaded]:
    return pipeline.load([str(path)], Silent())


@cache
def report_of(path: Path) -> Report:
    return pipeline.diagnose(loaded_of(path), "test")


@pytest.fixture(scope="module", autouse=True)
def _cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Files are indexed once, in a folder of the module's own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BLADE_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.mark.parametrize("row", table(), ids=lambda row: row[0])
def test_counts_equal_the_published_table(row: tuple[str, ...]) -> None:
    file, rows, tasks, repeats, micro, macro, solved, buckets, _ = row
    report = report_of(DATA / file)
    run = report.runs[0]
    values = {measure.name: measure.value for measure in report.measures if measure.k is None}
    assert (run.n_rollouts, run.n_tasks) == (int(rows), int(tasks))
    assert max(len([r for r in task.repeats if r.outcome != "missing"]) for task in report.tasks) == int(
        repeats
    )
    assert f"{values['pass_at_1_micro']:.6f}" == micro
    assert f"{values['pass_at_1']:.6f}" == macro
    assert f"{values['solved']:.6f}" == solved
    found = report.buckets[0]
    assert f"{len(found.always)}/{len(found.sometimes)}/{len(found.never)}" == buckets
    assert report.skipped_total == 0


@pytest.mark.parametrize("row", table(), ids=lambda row: row[0])
def test_no_identity_finding_on_sound_files(
    row: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BLADE_CACHE_DIR", str(tmp_path))
    found = report_of(DATA / row[0]).findings
    assert [finding for finding in found if finding.detector == "task-identity"] == []


def test_published_pass_hat_k() -> None:
    report = report_of(DATA / "tau_airline" / "gpt-4o.jsonl.gz")
    found = {measure.k: measure.value for measure in report.measures if measure.name == "pass_hat_k"}
    assert [round(found[k], 3) for k in (1, 2, 3, 4)] == [0.420, 0.273, 0.220, 0.200]


def test_error_rows_are_told_apart() -> None:
    report = report_of(THREE_RUNS)
    run = report.runs[0]
    assert (run.coverage.expected, run.coverage.scored, run.coverage.lost) == (345, 336, 9)
    errored = [flag for flag in report.health if flag.flag.startswith("error")]
    assert [(round(flag.value * flag.n), flag.n) for flag in errored] == [(49, 336)]
    assert "37.4% over 115 tasks (287 rows)" in errored[0].text


# -- what the traces say --------------------------------------------------------------------------


@pytest.mark.parametrize("row", table(), ids=lambda row: row[0])
def test_every_point_is_booked_and_every_quotation_stands_in_its_row(row: tuple[str, ...]) -> None:
    path = DATA / row[0]
    report, rows = report_of(path), Rows(loaded_of(path))
    assert_nothing_broke(report)
    assert_losses_add_up(report)
    assert assert_evidence_resolves(report, rows) > 0
    assert_steps_exist(report, rows)


# What is wrong with these files is known; all others are sound.
PROBLEMS = {
    "gemini-2.0-flash_tool-calling_3runs": {"errored_scored_zero"},
    "gpt-4.1-mini_run0036a836": {"empty_outputs"},
}


@pytest.mark.parametrize("row", table(), ids=lambda row: row[0])
def test_sound_files_raise_no_problem(row: tuple[str, ...]) -> None:
    report = report_of(DATA / row[0])
    problems = {flag.flag for flag in report.health if flag.level == "problem"}
    assert problems == PROBLEMS.get(report.runs[0].name, set())


def test_empty_responses_throughout_are_the_cause_of_the_run() -> None:
    report = report_of(DATA / "vf_gsm8k" / "gpt-4.1-mini_run0036a836.jsonl.gz")
    first = report.run_causes[0]
    assert (first.cause, first.n_rollouts) == (Cause.INFRASTRUCTURE, 150)
    assert (first.score_without, first.n_without) == (None, 0)
    assert {loss.cause for loss in report.losses} == {Cause.INFRASTRUCTURE}
    (clean,) = [measure for measure in report.measures if measure.name == "clean_pass_at_1"]
    assert (clean.value, clean.n) == (None, 0)


def test_provider_errors_are_losses_to_infrastructure() -> None:
    report = report_of(THREE_RUNS)
    run = report.runs[0]
    assert run.coverage.lost == 9
    (cause,) = [one for one in report.run_causes if one.cause is Cause.INFRASTRUCTURE]
    assert cause.n_rollouts == 49
    assert cause.lost > 0
    assert cause.lost == pytest.approx(
        sum(loss.lost for loss in report.losses if loss.cause is Cause.INFRASTRUCTURE)
    )
    assert f"{run.score:.6f}" == "0.310145"
    assert (f"{cause.score_without:.6f}", cause.n_without) == ("0.373913", 115)
    (clean,) = [measure for measure in report.measures if measure.name == "clean_pass_at_1"]
    assert (f"{clean.value:.6f}", clean.n) == ("0.373913", 115)


def test_a_large_difference_stands_among_the_first_mechanisms() -> None:
    found = report_of(THREE_RUNS).mechanisms[:3]

    def is_large(one: Mechanism) -> bool:
        counts = one.n_with, one.n_without
        return one.pass_without - one.pass_with >= 0.30 and sum(counts) >= 159 and min(counts) >= 50

    assert [one for one in found if one.standing == "mechanism" and is_large(one)], found


def test_few_rows_give_leads_and_not_mechanisms() -> None:
    found = report_of(TELECOM).mechanisms
    assert len(found) >= 3
    for one in found:
        assert one.n_with + one.n_without <= 40
        assert one.p is not None
        assert one.p_adjusted is not None
        assert one.p <= one.p_adjusted
        assert (one.standing == "lead") == (one.p_adjusted > 0.05)


# -- why a score changed --------------------------------------------------------------------------

CHANGED = {"improved", "regressed"}


@cache
def compared(baseline: Path, candidate: Path) -> Comparison:
    loaded = pipeline.load([str(baseline), str(candidate)], Silent())
    (found,) = comparing.compare(loaded, "test").comparisons
    return found


def wiki() -> Comparison:
    folder = DATA / "vf_wiki_search"
    return compared(folder / "qwen3-4b-instruct.jsonl.gz", folder / "qwen3-4b-wiki-search-RL.jsonl.gz")


def verdicts(found: Comparison) -> set[str | None]:
    return {found.verdict, found.verdict_new_tasks}


def assert_adds_up(found: Comparison) -> None:
    for terms in (found.bridge, *(view.terms for view in found.views)):
        assert sum(term.value for term in terms) == pytest.approx(found.delta, abs=1e-9)


def test_training_that_helped_is_an_improvement_and_says_where() -> None:
    found = wiki()
    assert (found.score_baseline, found.score_candidate) == pytest.approx((0.55, 0.89))
    assert verdicts(found) == {"improved"}
    first = found.movers[0]
    assert (first.view, first.side) == ("bridge", "model")
    assert first.term != OTHER
    assert first.value > 0
    assert first.low is not None
    assert first.low > 0
    assert_adds_up(found)


def test_training_that_helped_on_half_of_the_tasks_is_an_improvement() -> None:
    folder = DATA / "tau2_sft_telecom"
    found = compared(folder / "gpt-4.1.jsonl.gz", folder / "ft-gpt-4.1.jsonl.gz")
    assert found.delta == pytest.approx(0.30)
    assert verdicts(found) == {"improved"}
    assert_adds_up(found)


def test_training_that_left_the_score_as_it_was_is_not_called_a_change() -> None:
    folder = DATA / "tau2_sft_retail"
    found = compared(folder / "gpt-4.1.jsonl.gz", folder / "ft-gpt-4.1.jsonl.gz")
    assert found.delta == pytest.approx(0.0)
    assert not verdicts(found) & CHANGED
    assert found.movers == ()
    assert_adds_up(found)


def test_repeats_of_one_model_are_not_called_a_change(tmp_path: Path) -> None:
    with gzip.open(DATA / "tau_airline" / "gpt-4o.jsonl.gz", "rb") as file:
        rows = file.read().splitlines(keepends=True)
    paths = []
    for name, trials in (("early", (0, 1)), ("late", (2, 3))):
        paths.append(tmp_path / f"{name}.jsonl")
        kept = [row for row in rows if json.loads(row)["_ng_rollout_index"] in trials]
        assert len(kept) == 100
        paths[-1].write_bytes(b"".join(kept))
    for found in (compared(*paths), compared(*paths[::-1])):
        assert not verdicts(found) & CHANGED
        assert found.movers == ()
        assert found.churn is not None
        swing = found.churn.gains - found.churn.losses
        assert found.churn.null_low - 1e-9 <= swing <= found.churn.null_high + 1e-9
        assert found.churn.p is not None
        assert found.churn.p > 0.05


def test_provider_errors_are_among_the_first_movers() -> None:
    found = compared(THREE_RUNS, DATA / "tau_retail" / "gpt-4.1_tool-calling.jsonl.gz")
    assert verdicts(found) == {"improved"}
    first = found.movers[:2]
    (outage,) = [mover for mover in first if mover.side == "infrastructure"]
    assert outage.mechanical
    assert outage.value > 0
    (term,) = [term for term in found.bridge if term.term == outage.term]
    # what the run would score without the 49 rows, less what it scores
    assert term.value == pytest.approx(0.373913 - 0.310145, abs=1e-6)
    errored = [shift for shift in found.shifts if (shift.kind, shift.name) == ("outcome", "errored")]
    assert [shift.status for shift in errored] == ["disappeared"]
    assert_adds_up(found)


def test_exchanging_real_runs_turns_the_signs() -> None:
    found = wiki()
    folder = DATA / "vf_wiki_search"
    other = compared(folder / "qwen3-4b-wiki-search-RL.jsonl.gz", folder / "qwen3-4b-instruct.jsonl.gz")
    assert verdicts(other) == {"regressed"}
    assert {term.term: -term.value for term in other.bridge} == pytest.approx(
        {term.term: term.value for term in found.bridge}
    )
    assert [mover.term for mover in other.movers] == [mover.term for mover in found.movers]
