"""Whole reports: our own pages and report.json, any other JSON, golden reports, and the claims of strangers."""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from blade import pipeline
from blade.check import Finding, World, checked, world_for, world_of
from blade.check.json_reports import with_claims
from blade.errors import UsageError
from blade.model.conclusions import CONTRADICTED, OPINION, SUPPORTED, UNCITED, UNVERIFIABLE
from blade.pipeline import comparing
from blade.report import write
from blade.tables.index import Silent
from tests.case_tables import cases

from .conftest import Desk

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT.parent / "shared" / "data"
pytestmark = pytest.mark.usefixtures("module_cache")
CLAIMS = tomllib.loads((ROOT / "tests" / "claims" / "claims.toml").read_text())["claim"]


@pytest.fixture(scope="module")
def ours(desk: Desk, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The pages and the JSON of a report of ours."""
    folder = tmp_path_factory.mktemp("report")
    loaded = pipeline.load([str(desk.folder)], Silent())
    write(pipeline.with_digests(pipeline.diagnose(loaded, f"blade diagnose {desk.folder}"), loaded), folder)
    return {name: with_its_claims(folder / name) for name in ("report.md", "report.json")}


def with_its_claims(path: Path) -> str:
    return with_claims(path.read_text(), path)


def of(text: str, *runs: Path) -> tuple[Finding, ...]:
    return checked(text, world_for(text, [str(run) for run in runs], Silent()))


@pytest.mark.parametrize(("name", "old", "new"), cases(__file__, "a_change_in_our_own_report_is_found"))
def test_a_change_in_our_own_report_is_found(desk: Desk, ours: dict[str, str], name: str, old: str, new: str) -> None:
    assert old in ours[name]
    text = ours[name].replace(old, new, 1)
    wrong = [item for item in of(text, desk.folder) if item.verdict == CONTRADICTED]
    assert wrong
    if name == "report.md":
        line = text.count("\n", 0, ours[name].index(old)) + 1
        assert {item.line for item in wrong} <= set(range(line - 1, line + 4))


def test_a_comparison_holds_as_it_was_made(tmp_path: Path) -> None:
    from tools.planted import write_run

    runs = [write_run(tmp_path / f"r{seed}", n_tasks=12, repeats=3, seed=seed).path for seed in (1, 2)]
    loaded = pipeline.load([str(run) for run in runs], Silent())
    command = f"blade compare {runs[0]} {runs[1]} --margin 0.07"
    write(comparing.compare(loaded, command, margin=0.07), tmp_path / "out", is_comparison=True)
    for name in ("compare.md", "compare.json"):
        findings = of(with_its_claims(tmp_path / "out" / name), *runs)
        assert {item.verdict for item in findings} <= {SUPPORTED, OPINION}, name
        assert len(findings) > 50


@pytest.mark.parametrize("schema", ["blade.report/1", "blade.report/3"])
def test_another_schema_is_refused_with_a_hint(schema: str) -> None:
    with pytest.raises(UsageError) as error:
        checked(json.dumps({"schema": schema, "claims": []}), None)
    assert error.value.slug == "old-schema"
    assert "blade diagnose" in error.value.hint


def test_the_sentences_of_other_json_are_read_at_their_path(desk: Desk) -> None:
    text = '{"a": 1,\n "sections": [{"summary": "The model scored 67.0%<!--blade: pass_at_1--> of them."},\n'
    text += ' {"note": ["We solved 12 of 40 tasks (35%), it seems."]}],\n "n": "80% is it"}'
    assert [(item.verdict, item.line) for item in desk.check(text, "citation")] == [(SUPPORTED, 2)]
    (wrong,) = (item for item in desk.check(text) if item.verdict == CONTRADICTED)
    assert (wrong.kind, wrong.line) == ("arithmetic", 3)
    assert wrong.text.startswith("sections[1].note[0]: We solved 12 of 40")
    assert [item.verdict for item in checked(text, None)] == [CONTRADICTED]


REPORTS = ROOT / "benchmarks" / "workplace_assistant" / "golden_reports"
ROLLOUTS = {name: REPORTS.parent / "rollouts" / f"scripted_{name}_rollouts.jsonl" for name in ("careful", "hasty")}
HONEST = ["golden_report", "1_excellent", "2_good", "3_shallow", "4_wrong_causes"]


@pytest.mark.parametrize("grade", HONEST)
@pytest.mark.parametrize("name", ROLLOUTS)
def test_an_honest_report_is_not_contradicted(name: str, grade: str) -> None:
    is_golden = grade == "golden_report"
    text = (REPORTS / ("." if is_golden else "graded") / f"scripted_{name}_{grade}.md").read_text()
    verdicts = Counter(item.verdict for item in of(text, ROLLOUTS[name]))
    assert verdicts[CONTRADICTED] == 0
    assert verdicts[SUPPORTED] > 200 or not is_golden
    both = of(text, *ROLLOUTS.values()) if is_golden and name == "careful" else ()
    assert not [item for item in both if item.verdict == CONTRADICTED or item.why.startswith("the sentence says")]


# -- claims about recorded runs, written before the code --------------------------------------------


@cache
def recorded(run: str) -> World:
    return world_of(pipeline.load([str(DATA / f"{run}.jsonl.gz")], Silent()))


needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="no corpus beside the project")


@needs_data
@pytest.mark.corpus
@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim["text"][:40])
def test_claims_of_a_stranger(claim: dict[str, Any]) -> None:
    world = recorded(claim["run"])
    findings = checked(claim["text"], world)
    wrong = [item for item in findings if item.verdict == CONTRADICTED]
    if claim["truth"]:
        assert {item.verdict for item in findings if item.kind == "citation"} == {SUPPORTED}
        assert not wrong
    elif claim["kind"] == "number":
        assert {item.kind for item in wrong} == {"citation"}
    else:  # a true number under a wrong citation: shown in words, never exit 1
        assert not wrong
        assert all(item.reading or item.verdict == UNVERIFIABLE for item in findings if item.kind == "citation")
    bare = checked(re.sub(r"<!--.*?-->", "", claim["text"]), world)
    assert not [item for item in bare if item.verdict == CONTRADICTED]
    assert [item for item in bare if item.verdict == UNCITED]


@needs_data
@pytest.mark.corpus
def test_most_wrong_citations_are_pointed_out() -> None:
    wrong = [claim for claim in CLAIMS if claim["kind"] == "citation"]
    notes = [item for claim in wrong for item in checked(claim["text"], recorded(claim["run"])) if item.why]
    assert len(notes) == 6
