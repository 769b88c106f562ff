"""Counts on real rollouts of other people, where they are at hand."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from blade.model import Cause, Comparison, Group, Report
from blade.pipeline import comparing
from blade.pipeline.run_tables import ground_of
from tests import quotations
from tests.conftest import read, report_on

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
THREE_RUNS = DATA / "tau_retail" / "gemini-2.0-flash_tool-calling_3runs.jsonl.gz"
TELECOM = DATA / "tau2_sft_telecom" / "gpt-4.1.jsonl.gz"
EMPTY = DATA / "vf_gsm8k" / "gpt-4.1-mini_run0036a836.jsonl.gz"
WIKI = DATA / "vf_wiki_search"
# Of the measuring half of the key: looked at through its score alone.
HELD_OUT = "tau2_sft_telecom/ft-gpt-4.1.jsonl.gz"
pytestmark = [
    pytest.mark.corpus,
    pytest.mark.usefixtures("module_cache"),
    pytest.mark.skipif(not DATA.is_dir(), reason="no corpus beside the project"),
]


def table() -> list[tuple[str, ...]]:
    """The rows of the corpus README's table of exact counts."""
    readme = DATA / "README.md"
    lines = [line for line in readme.read_text().splitlines() if ".jsonl.gz |" in line] if readme.exists() else []
    cells = [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines]
    return [row for row in cells if row[0] != HELD_OUT]


@cache
def raw(path: Path) -> list[dict[str, Any]]:
    """The rows of a file, read without BLADE."""
    with gzip.open(path, "rb") as file:
        return [json.loads(line) for line in file]


def called(row: dict[str, Any], tool: str) -> int:
    return sum(item.get("name") == tool for item in row["response"]["output"])


def keys(rows: Iterable[dict[str, Any]]) -> set[tuple[str, int]]:
    return {(str(row["_ng_task_index"]), row["_ng_rollout_index"]) for row in rows}


def rows_of(path: Path, group: Group) -> set[tuple[str, int]]:
    """The rollouts that the query of a group gives."""
    found = ground_of(loaded_of(path)).connection(False).execute(group.query).fetchall()
    return {(str(task), int(repeat)) for _, task, repeat, _ in found}


def labelled(path: Path, cause: Cause) -> list[Group]:
    return [group for group in report_of(path).groups if group.label is cause]


loaded_of, report_of = cache(read), cache(report_on)


@pytest.mark.parametrize("row", table(), ids=lambda row: row[0])
def test_a_file_of_other_people(row: tuple[str, ...]) -> None:
    """Counts as published, every point booked, every quotation in its row, every group given by its query, no false alarm."""
    path = DATA / row[0]
    report = report_of(path)
    assert_counts(report, row[1:-1])
    assert quotations.assert_sound(report, quotations.Rows(loaded_of(path))) > 0
    failing, in_groups = keys(row for row in raw(path) if row["reward"] < 1), set()
    for group in report.groups:
        members = rows_of(path, group)
        assert len(members) == group.rows
        assert members <= failing - in_groups
        in_groups |= members
    assert len(failing) - len(in_groups) == report.unexplained[0].rows
    alarms = [(trust.label, trust.rows) for trust in report.trust if trust.level == "alarm"]
    assert alarms == ([(Cause.INFRASTRUCTURE, 150)] if path == EMPTY else [])
    assert [trust.text for trust in report.trust if trust.label is Cause.DATA_ARTIFACT] == []


def assert_counts(report: Report, published: tuple[str, ...]) -> None:
    rows, tasks, repeats, micro, macro, solved, buckets = published
    run, found = report.runs[0], report.buckets[0]
    values = {measure.name: measure.value for measure in report.measures if measure.k is None}
    assert (run.n_rollouts, run.n_tasks, report.skipped_total) == (int(rows), int(tasks), 0)
    assert max(len([r for r in task.repeats if r.outcome != "missing"]) for task in report.tasks) == int(repeats)
    assert [f"{values[name]:.6f}" for name in ("pass_at_1_micro", "pass_at_1", "solved")] == [micro, macro, solved]
    assert f"{len(found.always)}/{len(found.sometimes)}/{len(found.never)}" == buckets


def test_published_pass_hat_k() -> None:
    report = report_of(DATA / "tau_airline" / "gpt-4o.jsonl.gz")
    found = {measure.k: measure.value for measure in report.measures if measure.name == "pass_hat_k"}
    assert [round(found[k], 3) for k in (1, 2, 3, 4)] == [0.420, 0.273, 0.220, 0.200]


# -- what the traces say --------------------------------------------------------------------------


def test_provider_errors_are_losses_to_infrastructure() -> None:
    broken = [row for row in raw(THREE_RUNS) if not row["response"]["output"]]
    assert len(broken) == 49
    assert all("Connection reset by peer" in json.dumps(row) for row in broken)
    report = report_of(THREE_RUNS)
    (group,) = labelled(THREE_RUNS, Cause.INFRASTRUCTURE)
    assert rows_of(THREE_RUNS, group) == keys(broken)
    assert group.passed_rows == 0
    assert group.points == pytest.approx(
        sum(loss.lost for loss in report.losses if loss.cause is Cause.INFRASTRUCTURE)
    )
    assert f"{report.runs[0].score:.6f}" == "0.310145"
    (warning,) = [one for one in report.trust if one.label is Cause.INFRASTRUCTURE]
    assert (warning.level, warning.rows) == ("warning", 49)


def test_calls_that_nothing_answers_at_the_end_are_a_limit_of_the_harness() -> None:
    """In one of three runs; the others end with a message. One of the three rollouts repeats its last call: that is a loop."""
    path = WIKI / "qwen3-4b-wiki-search-RL.jsonl.gz"
    cut = [row for row in raw(path) if row["response"]["output"][-1]["type"] == "function_call"]
    assert len(cut) == 3
    calls = [[item["arguments"] for item in row["response"]["output"] if item["type"] == "function_call"] for row in cut]
    loops = [row for row, made in zip(cut, calls, strict=True) if made[-6:].count(made[-1]) >= 3]
    assert len(loops) == 1
    (group,) = labelled(path, Cause.TASK_OR_VERIFIER)
    assert rows_of(path, group) == keys(cut) - keys(loops)
    assert keys(loops) in [rows_of(path, other) for other in labelled(path, Cause.BEHAVIOUR)]
    for other in ("gpt-4.1", "qwen3-4b-instruct"):
        assert labelled(WIKI / f"{other}.jsonl.gz", Cause.TASK_OR_VERIFIER) == []


def test_transfers_that_nobody_expects_are_the_largest_group() -> None:
    tool = "transfer_to_human_agents"
    unexpected = [
        row
        for row in raw(TELECOM)
        if called(row, tool) > sum(action["name"] == tool for action in row["expected_actions"])
    ]
    assert {row["reward"] for row in unexpected} == {0.0}
    group = report_of(TELECOM).groups[0]
    assert (group.label, tool in group.name) == (Cause.BEHAVIOUR, True)
    assert rows_of(TELECOM, group) == keys(unexpected)
    assert group.rows == 16


def test_answers_that_vary_are_unreliable_knowledge() -> None:
    """Every task of this run passes now and then, so nothing in it is a gap; a box with two values is not the expected one."""
    path = DATA / "prime_aime2024" / "gpt-5_64x.jsonl.gz"
    failing = [row for row in raw(path) if row["reward"] < 1]
    (unsure,) = report_of(path).groups
    assert (unsure.label, unsure.rows) == (Cause.UNRELIABLE_KNOWLEDGE, 138)
    assert rows_of(path, unsure) == keys(failing)
    assert {found.cause for found in report_of(path).attributions} == {Cause.UNRELIABLE_KNOWLEDGE}


def test_rollouts_that_were_never_graded_are_named() -> None:
    path = DATA / "tau_airline" / "gpt-4o.jsonl.gz"
    ungraded = [row for row in raw(path) if "reward" not in (row.get("verifier", {}).get("reward_info") or {})]
    assert len(ungraded) == 5
    (group,) = [group for group in labelled(path, Cause.TASK_OR_VERIFIER) if group.name == "never graded"]
    assert rows_of(path, group) == keys(ungraded) - {("9", 2)}  # which asks for one booking to the end and is refused each time
    assert "1 more rollout was not graded after a loop" in group.text


# -- why a score changed --------------------------------------------------------------------------

CHANGED = {"improved", "regressed"}


@cache
def compared(baseline: Path, candidate: Path) -> Comparison:
    (found,) = comparing.compare(read(baseline, candidate), "test").comparisons
    return found


def verdicts(found: Comparison) -> set[str | None]:
    return {found.verdict, found.verdict_new_tasks}


def assert_adds_up(found: Comparison) -> None:
    for terms in (found.bridge, *(view.terms for view in found.views)):
        assert sum(term.value for term in terms) == pytest.approx(found.delta, abs=1e-9)


def test_training_that_helped_is_an_improvement_and_says_where() -> None:
    """Rollouts without a search are gone, but 8 of 10 against 37 of 90 in one run of one try each is no proof of a cause."""
    before, after = (
        [row for row in raw(WIKI / f"{name}.jsonl.gz") if not called(row, "search_pages")]
        for name in ("qwen3-4b-instruct", "qwen3-4b-wiki-search-RL")
    )
    assert (len(before), sum(row["reward"] < 1 for row in before), len(after)) == (10, 8, 0)
    found = compared(WIKI / "qwen3-4b-instruct.jsonl.gz", WIKI / "qwen3-4b-wiki-search-RL.jsonl.gz")
    assert (found.score_baseline, found.score_candidate) == pytest.approx((0.55, 0.89))
    assert verdicts(found) == {"improved"}
    assert found.movers == ()
    largest = max(found.bridge, key=lambda term: term.value)
    assert (largest.side, largest.value) == ("undetermined", pytest.approx(0.34))
    assert_adds_up(found)


def test_two_models_that_fail_alike_have_no_mover() -> None:
    """What a run proves by itself differs between the two; what their rows show does not."""
    folder = DATA / "tau_retail"
    found = compared(folder / "gpt-4.1-mini_tool-calling.jsonl.gz", folder / "gpt-4.1_tool-calling.jsonl.gz")
    assert found.delta == pytest.approx(5 / 115)
    assert not verdicts(found) & CHANGED
    assert found.movers == ()
    assert all(term.low <= 0 <= term.high for term in found.bridge if term.low is not None and term.high is not None)
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
