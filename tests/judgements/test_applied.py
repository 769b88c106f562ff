"""A judgement stands in for the engine's proposal, visibly, as long as its rows say so."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import pytest

from blade import pipeline
from blade.model import Cause, Confidence, Report
from blade.pipeline import reviewing
from tests.builders import make_run
from tests.conftest import Blade
from tests.inert import uncited
from tests.judgements.conftest import rows, trajectory

SAID = "It reports success although the order was never found."


def judgement(task: str, cause: str = "TI", **more: Any) -> dict[str, Any]:
    place = {"repeat": 0, "step": 5, "quote": f"the order O-{task} is on its way"}
    return {"task": task, "cause": cause, **place, "mechanism": SAID, **more}


def label(path: Path, task: str, cause: str, by: str = "ann", **more: Any) -> None:
    reviewing.label(pipeline.session([str(path)]), [judgement(task, cause, **{"repeat": 2, **more})], by)


def report_on(path: Path) -> Report:
    return pipeline.session([str(path)]).report


def attributed(path: Path, task: str) -> Any:
    return next(one for one in report_on(path).attributions if one.task == task)


def test_it_overrides_the_proposal_and_says_so(path: Path, blade: Blade) -> None:
    before = attributed(path, "2")
    label(path, "2", "TI")
    after = attributed(path, "2")
    assert (after.cause, after.judged_by, after.mechanism) == (Cause.TASK_OR_VERIFIER, "ann", SAID)
    assert (after.proposed, after.proposed_confidence) == (before.cause, before.confidence)
    assert (after.repeat, after.step) == (2, 5)
    assert after.evidence[0].quote == "the order O-2 is on its way"
    assert any(text.startswith(f"the engine proposes {before.cause}") for text in after.against)
    pages = path.parent / "report"
    assert blade("diagnose", path, "-o", pages).code == 0
    text = uncited((pages / "report.md").read_text())
    assert f"| `2/2` | TI task, verifier or harness | {before.cause} | `ann` |" in text
    never = text.partition("## Never-Pass Deep Dives")[2].partition("\n## ")[0]
    (row,) = [line for line in never.splitlines() if line.startswith("| `2` |")]
    assert "| TI |" in row
    assert SAID in row
    wire = json.loads((pages / "report.json").read_text())
    assert [one["judged_by"] for one in wire["attributions"] if one["task"] == "2"] == ["ann"]
    assert [(one["by"], one["cause"]) for one in wire["judgements"]] == [("ann", "TI")]


def test_losses_still_add_up_and_move_to_the_cause_whatever_the_order_of_rows(path: Path) -> None:
    label(path, "2", "TI")
    report = report_on(path)
    assert math.fsum(one.lost for one in report.losses) == pytest.approx(1 - (report.runs[0].score or 0), abs=1e-9)
    of_task = sum(one.lost for one in report.losses if one.cause is Cause.TASK_OR_VERIFIER)
    assert of_task == pytest.approx(1 / 5, abs=1e-9)
    make_run(path.parent, rows()[::-1])
    assert report_on(path).losses == report.losses


def test_a_report_with_judgements_is_true(path: Path, blade: Blade) -> None:
    label(path, "2", "TI")
    label(path, "4", "BI", "bob", mode="false success")
    pages = path.parent / "report"
    assert blade("diagnose", path, "-o", pages).code == 0
    for name in ("report.md", "report.json"):
        counts = json.loads(blade("check", pages / name, "--run", path, "--json").out)["counts"]
        assert (counts["contradicted"], counts["unverifiable"]) == (0, 0)
    text = (pages / "report.md").read_text()
    assert SAID in text
    false = text.replace(SAID, "It reports success because the order was found.")
    (pages / "report.md").write_text(false)  # beside report.json, which holds the queries of its sentences
    told = json.loads(blade("check", pages / "report.md", "--run", path, "--json").out)
    assert told["counts"]["contradicted"] > 0


def test_it_survives_a_new_diagnosis_and_falls_with_its_rows(path: Path) -> None:
    label(path, "2", "TI")
    label(path, "4", "BI")
    changed = [row for row in rows() if row["_ng_task_index"] != 2]
    make_run(path.parent, [*changed, *(trajectory(7, at, 0.0) | {"_ng_task_index": 2} for at in range(3))])
    report = report_on(path)
    assert [one.task for one in report.attributions if one.judged_by] == ["4"]
    gap = next(gap for gap in report.gaps if gap.what.startswith("judgements of"))
    assert "1 of 2 hold no longer: task 2 by ann" in gap.why


def test_it_does_not_move_to_another_task_or_agent(path: Path, blade: Blade) -> None:
    of_field = judgement("2", step=None, field="response.status", quote="done")
    reviewing.label(pipeline.session([str(path)]), [of_field], "ann")
    other = {2: 4, 4: 2}
    numbers = [row["_ng_task_index"] for row in rows()]
    renumbered = zip(rows(), numbers, strict=True)
    make_run(path.parent, [{**row, "_ng_task_index": other.get(number, number)} for row, number in renumbered])
    assert not any(one.judged_by for one in report_on(path).attributions)
    assert "the rollout is another one now" in blade("label", path).out
    make_run(path.parent, [{**row, "agent_ref": {"type": "x", "name": "another"}} for row in rows()])
    assert "it is of the rollouts of sim_agent" in blade("label", path).out
    assert blade("label", path, "2/0", "--withdraw", "--by", "ann").code == 0


def test_where_authors_differ_the_last_word_stands_and_the_other_is_told(path: Path) -> None:
    label(path, "2", "TI", "ann")
    label(path, "2", "BI", "bob")
    found = attributed(path, "2")
    assert (found.cause, found.judged_by, found.disputed) == (Cause.BEHAVIOUR, "bob", True)
    assert found.confidence is Confidence.UNSURE
    assert any(text.startswith("ann says TI") for text in found.against)
    waiting = reviewing.queue(pipeline.session([str(path)])).waiting
    assert next(one.reason for one in waiting if one.task == "2") == "judged, and the judges disagree"


def test_agreement_is_counted_with_the_engine_and_between_authors(path: Path) -> None:
    for task, ann, bob in (("2", "TI", "TI"), ("4", "BI", "TI"), ("1", "UK", "UK")):
        label(path, task, ann, "ann")
        label(path, task, bob, "bob")
    found = {(one.first, one.second): one for one in report_on(path).agreements}
    assert set(found) == {("engine", "ann"), ("engine", "bob"), ("ann", "bob")}
    both = found["ann", "bob"]
    assert (both.n, both.agreed) == (3, 2)
    assert both.kappa is not None
    assert math.isclose(both.kappa, 0.5)  # agreed 2/3; by chance 1/3: (2/3 - 1/3) / (1 - 1/3)
    confusion = {(a.value, b.value): n for a, b, n in both.confusion}
    assert confusion == {("BI", "TI"): 1, ("TI", "TI"): 1, ("UK", "UK"): 1}


def test_a_comparison_books_by_it(path: Path, tmp_path: Path, blade: Blade) -> None:
    other = make_run(tmp_path / "other", [trajectory(task, at, 1.0) for task in range(5) for at in range(3)])
    label(path, "2", "TI")
    told = json.loads(blade("compare", f"a={path}", f"b={other}", "--json").out)
    sides = {term["term"]: term["value"] for term in told["comparisons"][0]["bridge"]}
    assert any("judged TI" in name for name in sides), sides


def test_the_command_keeps_lists_and_takes_back(path: Path, blade: Blade) -> None:
    words = ["--cause", "TI", "--step", "5", "--quote", "the order O-2 is on its way", "--mechanism", SAID]
    kept = blade("label", path, "2/1", *words, "--by", "ann")
    assert kept.code == 0
    assert kept.out.splitlines()[-1].startswith("Wrote ")
    assert blade("label", path, "2/1", *words, "--by", "ann").code == 0  # the same again is one
    listed = blade("label", path)
    assert listed.out.count("2/1 step 5: TI") == 1
    assert "agreement  engine and ann: 0 of 1 tasks" in listed.out
    assert blade("label", path, "2", "--withdraw", "--by", "eve").code == 2
    assert blade("label", path, "2", "--withdraw", "--by", "ann").code == 0
    assert "was judged yet" in blade("label", path).out


def test_many_come_as_lines(path: Path, tmp_path: Path, blade: Blade) -> None:
    source = tmp_path / "many.jsonl"
    source.write_text("".join(json.dumps(judgement(task)) + "\n" for task in "24"))
    assert blade("label", path, "--from", source, "--check", "--by", "ann").code == 0
    assert not list(path.parent.glob("*_judgements.jsonl"))
    printed = json.loads(blade("label", path, "--from", source, "--by", "ann", "--json").out)
    assert [one["task"] for one in printed["kept"]] == ["2", "4"]
    source.write_text(json.dumps(judgement("2", quote="no such words")) + "\n")
    assert blade("label", path, "--from", source, "--check").code == 1
    refused = blade("label", path, "--from", source)
    assert (refused.code, "docs/errors.md#judgement-refused" in refused.err) == (2, True)


def test_runs_of_several_agents_have_judgements_of_their_own(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("BLADE_CACHE_DIR", str(tmp_path / "cache"))
    agents = [{**row, "agent_ref": {"type": "x", "name": name}} for name in ("one", "two") for row in rows()]
    path = make_run(tmp_path / "run", agents)
    session = pipeline.session([str(path)])
    first, second = (one.name for one in session.loaded)
    reviewing.label(session, [judgement("2")], "ann", second)
    judged = {one.run: one.judged_by for one in report_on(path).attributions if one.task == "2"}
    assert judged == {first: "", second: "ann"}


# ---- Reports, held against what stood when they were made ------------------------------------------

PAGES = ("draft.md", "report/report.md", "report/report.json")


@pytest.fixture
def here(path: Path, blade: Blade, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with reports of a run that lies in a folder below, made from within that one."""
    monkeypatch.chdir(path.parent)
    assert blade("draft", path.name, "-o", "../draft.md").code == 0
    assert blade("diagnose", path.name, "-o", "../report").code == 0
    monkeypatch.chdir(path.parent.parent)
    return path.parent.parent


def test_a_run_by_another_path_is_the_same_run_and_a_later_judgement_makes_no_report_false(here: Path, path: Path, blade: Blade) -> None:
    for page in PAGES:
        said = blade("check", page, "--run", os.path.relpath(path), "--json")
        counts = json.loads(said.out)["counts"]
        assert (counts["contradicted"], counts["unverifiable"]) == (0, 0)
    label(path, "2", "TI")
    for page in PAGES:
        said = blade("check", page, "--run", path, "--json")
        assert json.loads(said.out)["counts"]["contradicted"] == 0
        assert "1 judgement(s) were given since the report was made" in said.err


def test_one_that_a_report_tells_is_not_left_out(path: Path, blade: Blade) -> None:
    label(path, "2", "TI")
    assert blade("draft", path, "-o", path.parent / "draft.md").code == 0
    label(path, "4", "BI")
    text = (path.parent / "draft.md").read_text()
    assert "| `ann` |" in text
    said = blade("check", path.parent / "draft.md", "--run", path, "--json")
    assert json.loads(said.out)["counts"]["contradicted"] == 0
