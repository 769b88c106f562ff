"""Every claim of a comparison page: said as the engine says it, found again by its query, named by names."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from blade import pipeline
from blade.check import checked, world_for
from blade.model import Report
from blade.model.checked import CONTRADICTED, UNVERIFIABLE
from blade.pipeline import comparing
from blade.pipeline.tabling import ground_of
from blade.query import evaluate
from blade.report import markdown
from blade.report.change import pages as change
from blade.report.claims import claims_of
from blade.tables.index import Silent
from tests.conftest import Blade
from tools.planted.paired_runs import CAUSES
from tools.planted.planted_runs import write_pair

from .behaving import TOOL, write_behaving, write_mixed
from .test_numbers import check_page, is_same

BEHAVING = {"behaving": write_behaving, "mixed": write_mixed}
PLACE = re.compile(r"\b(movers|shifts|bridge|views|terms|flips|derived|placed|alone|checkpoints|checks)\[\d")
Case = tuple[str, int]
CASES: list[Case] = [*((name, seed) for name in BEHAVING for seed in range(2)), *((cause, 1) for cause in CAUSES)]


def written(folder: Path, case: Case) -> list[str]:
    name, seed = case
    if name in BEHAVING:
        return list(map(str, BEHAVING[name](folder, seed)))
    pair = write_pair(folder, name, seed=seed, n_tasks=30, repeats=3, effect=1.0)
    return [str(pair.baseline), str(pair.candidate)]


def compared(specs: list[str], **options: Any) -> Report:
    return comparing.compare(pipeline.load(specs, Silent()), "blade compare", **options)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_claim_is_said_as_its_query_gives_it(tmp_path: Path, cache: Path, case: Case) -> None:
    specs = written(tmp_path, case)
    report = compared(specs)
    sections = change.chapters(report)
    check_page(report, sections)
    listed = claims_of(sections).listed
    loaded = pipeline.load(specs, Silent())
    ground = ground_of(loaded)  # as `blade query` asks: no report is given
    for claim in listed:
        assert is_same(evaluate(claim.query, ground), claim), claim
        assert not PLACE.search(claim.query), claim
    page = markdown.page(change.title(report), sections, listed=True)
    findings = checked(page, world_for(page, specs, Silent()))
    assert [one for one in findings if one.verdict in (CONTRADICTED, UNVERIFIABLE)] == []


def test_the_pairs_have_claims_that_name_a_failure_group(tmp_path: Path, cache: Path) -> None:
    """What the test above is worth: the cause that was planted is claimed, and its tool is named in the bridge."""
    (comparison,) = compared(written(tmp_path, ("behaving", 0))).comparisons
    (mover,) = comparison.movers
    assert (mover.term, mover.side) == ("repeats one call or one error", "model")
    assert any(f"`{TOOL}`" in term.term for term in comparison.bridge)


@pytest.mark.parametrize("seed", range(4))
def test_failure_groups_are_named_in_words(tmp_path: Path, cache: Path, seed: int) -> None:
    (comparison,) = compared(written(tmp_path, ("behaving", seed))).comparisons
    names = [*(term.term for term in comparison.bridge), *(mover.text for mover in comparison.movers),
             *(shift.name for shift in comparison.shifts if shift.kind == "behaviour")]  # fmt: skip
    for name in names:
        assert not re.search(r"\w\(|[a-z]_[a-z]", re.sub(r"`[^`]*`", "", name)), name


@pytest.mark.parametrize("options", [{"margin": 0.05}, {"quick": True}, {"ordered": True}, {"threshold": 0.5}], ids=str)
def test_the_query_names_what_is_not_usual(tmp_path: Path, cache: Path, options: dict[str, Any]) -> None:
    specs = written(tmp_path, ("behaving", 1))
    report = compared(specs, **options)
    ground = ground_of(pipeline.load(specs, Silent()), options.get("threshold"))
    for claim in claims_of(change.chapters(report)).listed:
        if claim.query.startswith("engine.gaps"):
            continue  # that no trace was read is no gap of a whole comparison
        assert is_same(evaluate(claim.query, ground), claim), claim


def test_several_candidates_and_the_other_order(tmp_path: Path, cache: Path) -> None:
    specs = [*written(tmp_path / "x", ("behaving", 0)), f"third={write_behaving(tmp_path / 'y', 2)[1]}"]
    ground = ground_of(pipeline.load(specs, Silent()))
    for options in ({"ordered": True}, {"baseline": "after"}):
        report = compared(specs, **options)
        assert report.matrix is not None
        first = "sim-a → sim->0 (before → after) −" if "ordered" in options else "sim->0 → sim-a (after → before) +"
        assert first in dict(report.matrix.settings)["model"]
        listed = claims_of(change.chapters(report)).listed
        check_page(report, change.chapters(report))
        is_series = [claim.query.startswith("engine.series.checkpoints(run='third')") for claim in listed]
        assert any(is_series) == ("ordered" in options)
        for claim in listed:
            assert is_same(evaluate(claim.query, ground), claim), claim


def test_scores_and_counts_are_cited_by_base_queries(tmp_path: Path, cache: Path) -> None:
    report = compared(written(tmp_path, ("behaving", 0)))
    by_query = {claim.query: claim for claim in claims_of(change.chapters(report)).listed}
    (comparison,) = report.comparisons
    assert by_query["pass_at_1 where run = 'before'"].value == pytest.approx(comparison.score_baseline)
    assert by_query["pass_at_1 where run = 'after'"].value == pytest.approx(comparison.score_candidate)
    flip = comparison.flips[0]
    assert by_query[f"count where run = 'after' and task = '{flip.task}' and passed"].value == flip.candidate[0]
    assert by_query[f"count where run = 'after' and task = '{flip.task}' and not masked"].value == 3


def test_tasks_of_each_run_are_cited_by_a_base_query(tmp_path: Path, cache: Path) -> None:
    report = compared(written(tmp_path, ("tasks dropped", 1)))
    queries = {claim.query: claim.value for claim in claims_of(change.chapters(report)).listed}
    runs = {run.name: run for run in report.runs}
    for name in ("baseline", "candidate"):
        assert queries[f"tasks where run = '{name}' and not masked"] == runs[name].n_tasks


def test_a_run_that_its_tables_do_not_judge_is_cited_by_the_comparison(tmp_path: Path, cache: Path) -> None:
    report = compared(written(tmp_path, ("mixed", 0)))
    listed = [claim.query for claim in claims_of(change.chapters(report)).listed]
    assert "pass_at_1 where run = 'before'" in listed
    assert "pass_at_1 where run = 'after'" not in listed
    assert any(query.endswith(".score_candidate") for query in listed)


def test_parts_of_one_run_are_told_apart(tmp_path: Path, cache: Path) -> None:
    """Two parts with as many rows: the tables of one must not answer for the other."""
    from tests.builders import make_row, make_run

    rows = [make_row(task, repeat, float(repeat), kind="b" if repeat else "a") for task in range(8) for repeat in range(2)]
    parts = comparing.split_runs(pipeline.load([str(make_run(tmp_path, rows))], Silent()), "kind")
    ground = ground_of(parts)
    assert [evaluate(f"pass_at_1 where run = '{part.name}'", ground) for part in parts] == [0.0, 1.0]


# ---- On the command line -------------------------------------------------------------------------


@pytest.mark.parametrize("name", list(BEHAVING))
def test_a_page_holds_its_own_check_and_is_asked_again(tmp_path: Path, blade: Blade, name: str) -> None:
    specs = written(tmp_path / "runs", (name, 1))
    assert blade("compare", *specs, "-o", tmp_path / "out").code == 0
    said = blade("check", tmp_path / "out" / "compare.md", *(word for spec in specs for word in ("--run", spec)))
    assert said.code == 0, said.out
    claims = json.loads((tmp_path / "out" / "compare.json").read_text(encoding="utf-8"))["claims"]
    asked = [
        claim for claim in claims
        if re.search(r"transitions\(before='never', after='never'\)\.n$|\.bridge\.value$|\.movers\(.*\)\.value$|\.delta$|score_", claim["query"])
    ]  # fmt: skip
    assert len({claim["query"].rpartition(")")[2] for claim in asked}) >= 4
    for claim in asked:
        for order in (specs, specs[::-1]):
            told = json.loads(blade("query", *order, claim["query"], "--json").out)["value"]
            assert told == (pytest.approx(claim["value"]) if isinstance(claim["value"], float) else claim["value"])


def test_one_run_is_refused_at_once(tmp_path: Path, blade: Blade) -> None:
    specs = written(tmp_path, ("behaving", 0))
    said = blade("query", specs[0], "engine.comparisons(baseline='before', candidate='after').delta")
    assert said.code == 2
    assert "engine.comparisons takes two runs or more, and only before was given" in said.err
    said = blade("query", *specs, "engine.comparisons(baseline='before', candidate='nobody').delta")
    assert said.code == 2
    assert "nothing matches candidate='nobody'" in said.err
