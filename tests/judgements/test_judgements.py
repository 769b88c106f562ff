"""A judgement is accepted only if its ids, place, quotation and chronology hold, and stands in for the proposal as long as its rows say so."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from blade import pipeline
from blade.agent import judgements
from blade.errors import UsageError
from blade.model import Cause, Confidence, Judgement, Report
from blade.pipeline import reviewing, trace_reading
from tests.builders import Row, make_call, make_message, make_response, make_result, make_row, make_run
from tests.case_tables import cases
from tests.conftest import Blade
from tests.inert import uncited

ERROR = "Error: order O-17 is locked by the packing line"


def trajectory(task: int, repeat: int, reward: float) -> Row:
    """Look, look again into the same error, tell; the words say which rollout it is."""
    if reward:
        found = make_result("a", f'{{"order": "O-{task}", "state": "open"}}')
        said = make_message(f"The order O-{task} was found and sent, try {repeat}.")
        call = make_call("a", "find_order", f'{{"order": "O-{task}", "try": {repeat}}}')
        return make_row(task, repeat, reward, response=make_response([call, found, said]), error=None)
    output = [
        make_message(f"I look at order O-{task} first."),
        make_call("a", "find_order", f'{{"order": "O-{task}", "try": {repeat}}}'),
        make_result("a", ERROR),
        make_call("b", "find_order", f'{{"order": "O-{task}", "again": true}}'),
        make_result("b", ERROR),
        make_message(f"Done:  the order O-{task} is on its way,\nas you wished in try {repeat}."),
    ]
    return make_row(task, repeat, reward, response=make_response(output, status="done"), error=None)


def rows() -> list[Row]:
    rewards = {0: (1, 1, 1), 1: (1, 0, 0), 2: (0, 0, 0), 3: (1, 1, 0), 4: (0, 0, 0)}
    return [
        trajectory(task, at, float(reward))
        for task, told in rewards.items()
        for at, reward in enumerate(told)
    ]


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BLADE_CACHE_DIR", str(tmp_path / "cache"))
    return make_run(tmp_path / "run", rows())


# ---- What it does -----------------------------------------------------------------------------------


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


def test_it_overrides_the_proposal_and_says_so_in_a_report_that_is_true(path: Path, blade: Blade) -> None:
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
    label(path, "4", "BI", "bob", mode="false success")
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


def test_losses_still_add_up_and_move_to_the_cause_and_a_judgement_falls_with_its_rows(path: Path) -> None:
    label(path, "2", "TI")
    report = report_on(path)
    assert math.fsum(one.lost for one in report.losses) == pytest.approx(1 - (report.runs[0].score or 0), abs=1e-9)
    of_task = sum(one.lost for one in report.losses if one.cause is Cause.TASK_OR_VERIFIER)
    assert of_task == pytest.approx(1 / 5, abs=1e-9)
    make_run(path.parent, rows()[::-1])
    assert report_on(path).losses == report.losses
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


def test_where_authors_differ_the_last_word_stands_the_other_is_told_and_agreement_is_counted(path: Path) -> None:
    label(path, "2", "TI", "ann")
    label(path, "2", "BI", "bob")
    found = attributed(path, "2")
    assert (found.cause, found.judged_by, found.disputed) == (Cause.BEHAVIOUR, "bob", True)
    assert found.confidence is Confidence.UNSURE
    assert any(text.startswith("ann says TI") for text in found.against)
    waiting = reviewing.queue(pipeline.session([str(path)])).waiting
    assert next(one.reason for one in waiting if one.task == "2") == "judged, and the judges disagree"
    for task, ann, bob in (("2", "TI", "TI"), ("4", "BI", "TI"), ("1", "UK", "UK")):
        label(path, task, ann, "ann")
        label(path, task, bob, "bob")
    pairs = {(one.first, one.second): one for one in report_on(path).agreements}
    assert set(pairs) == {("engine", "ann"), ("engine", "bob"), ("ann", "bob")}
    both = pairs["ann", "bob"]
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


# ---- Reports, compared with what stood when they were made -----------------------------------------

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


# ---- What is accepted -------------------------------------------------------------------------------


GOOD: dict[str, Any] = {
    "task": "2", "cause": "BI", "repeat": 1, "step": 5, "quote": "the order O-2 is on its way",
    "mechanism": "It reports success although the order was never found.",
}  # fmt: skip


def judged(path: Path, **changed: Any) -> Any:
    given = {key: value for key, value in {**GOOD, **changed}.items() if value is not None}
    found, refused = reviewing.checked(pipeline.session([str(path)]), [given], "ann")
    assert len(found) + len(refused) == 1
    return found[0] if found else refused[0]


def test_a_judgement_that_holds_is_accepted_as_its_row_stands_else_all_reasons_are_told(path: Path) -> None:
    told = judged(path)
    assert (told.task, told.cause, told.repeat, told.step, told.by) == ("2", Cause.BEHAVIOUR, 1, 5, "ann")
    assert told.proposed is not None
    assert told.at.endswith("Z")
    assert judged(path, quote="on its way, as you").quote == "on its way,\nas you"
    told = judged(path, cause="odd", mechanism=None, repeat=9)
    assert all(reason in told for reason in ("is no cause", "mechanism is missing", "has no repeat 9"))


WORDS = {"ERROR": ERROR, "LONG": "x" * 2001}


def changes(case: dict[str, Any]) -> dict[str, Any]:
    return {key: WORDS.get(value, value) if isinstance(value, str) else value for key, value in case.items()}


@pytest.mark.parametrize("name", cases(__file__, "refused"))
def test_what_does_not_hold_is_refused_with_a_reason(path: Path, name: str) -> None:
    case, reason = cases(__file__, "refused")[name]
    assert reason in judged(path, **changes(case))


@pytest.mark.parametrize("name", cases(__file__, "accepted"))
def test_near_misses_are_accepted(path: Path, name: str) -> None:
    assert not isinstance(judged(path, **changes(cases(__file__, "accepted")[name])), str)


def test_nothing_is_kept_when_one_of_many_is_refused(path: Path) -> None:
    session = pipeline.session([str(path)])
    many = [GOOD, {**GOOD, "task": "4", "quote": "the order O-4 is"}, {**GOOD, "quote": "never said so"}]
    with pytest.raises(UsageError, match="1 of 3 refused, nothing kept") as told:
        reviewing.label(session, many, "ann")
    assert told.value.slug == "judgement-refused"
    assert "3. task 2: step 5 of 2/1 does not hold the quotation" in told.value.message
    assert not list(path.parent.glob("*_judgements.jsonl"))


# ---- Labels by condition: quoted where it can be, else kept by itself --------------------------------

GIVEN = ("--cause", "BI", "--mechanism", "It reports success after an error.", "--by", "ann")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """As ever, with a check that fails with the reward, a note of the verifier, and words of a user."""
    made = rows()
    for row in made:
        row["verifier"] = {"parts": {"sent": bool(row["reward"]), "style": True}}
        row["note"] = "all is well" if row["reward"] else f"order of task {row['_ng_task_index']} was not sent"
        row["response"]["output"].insert(1, {**row["response"]["output"][-1], "role": "user", "id": "u"})
    return make_run(tmp_path / "run", made)


def by_condition(blade: Blade, run: Path, condition: str, *more: object) -> list[dict[str, Any]]:
    said = blade("label", run, "--where", condition, *GIVEN, "--json", *more)
    assert said.code == 0, said.err
    kept: list[dict[str, Any]] = json.loads(said.out)["kept"]
    return kept


@pytest.mark.parametrize("condition", cases(__file__, "conditions"))
def test_every_condition_judges_the_failed_tasks(blade: Blade, run: Path, condition: str) -> None:
    kept = by_condition(blade, run, condition)
    assert [one["task"] for one in kept] == ["1", "2", "3", "4"]
    assert [one["repeat"] for one in kept] == [1, 0, 2, 0]
    assert {one["condition"] for one in kept} == {condition}
    expected = cases(__file__, "conditions")[condition]
    for one in kept:
        if expected is None:
            assert (one["step"], one["field"], one["quote"]) == (None, None, "")
        else:
            place, words = expected
            assert words.replace("ERROR", ERROR) in one["quote"]
            assert one["field"] == (None if place == "step" else place)
    again = blade("label", run)
    assert again.code == 0
    assert again.out.count(", by ann") == 4
    assert "fallen" not in again.out


def test_a_condition_holds_for_the_rollout_it_was_given_for(blade: Blade, run: Path) -> None:
    by_condition(blade, run, "turns > 1")
    text = run.read_text(encoding="utf-8").replace("I look at order O-2 first", "I look elsewhere first")
    run.write_text(text, encoding="utf-8")
    said = blade("label", run).out
    assert "fallen" in said
    assert "task 2 by ann: the rollout is another one now" in said
    assert "\n2/0" not in f"\n{said}"


WITHOUT = {"quote": None, "step": None}  # what a judgement by condition lacks


def test_a_condition_that_holds_is_kept_without_a_quotation_and_with_the_hash_of_its_rollout(path: Path) -> None:
    kept = judged(path, **WITHOUT, condition="calls('refund') = 0")
    assert (kept.quote, kept.condition, kept.shown("run")) == ("", "calls('refund') = 0", ())
    kept = judged(path, **WITHOUT, condition="turns > 1")
    seen = trace_reading.Bench(pipeline.session([str(path)]).run(), None).seen("2")
    assert judgements.again(kept, seen) == []
    assert judgements.again(msgspec.structs.replace(kept, rollout=""), seen) == ["the rollout is another one now"]
    # what was kept before conditions were is read as it was
    members = {"id": "x", "agent": None, "task": "2", "cause": "BI", "repeat": 1, "step": 5, "field": None, "quote": "q"}
    line = msgspec.json.encode({**members, "mechanism": "m", "by": "ann", "at": "2026-01-01T00:00:00Z"})
    assert msgspec.json.decode(line, type=Judgement).condition == ""


@pytest.mark.parametrize(("words", "message"), cases(__file__, "beside"))
def test_what_goes_with_no_condition_is_refused_with_a_reason(blade: Blade, run: Path, words: list[object], message: str) -> None:
    said = blade("label", run, "--where", "turns > 1", *GIVEN, *words)
    assert (said.code, message in said.err) == (2, True)


def test_a_condition_that_no_query_takes_is_refused_else_it_stands_in_the_report_as_a_ground(blade: Blade, run: Path, tmp_path: Path) -> None:
    said = blade("label", run, "--where", "nosuch = 1", *GIVEN)
    assert (said.code, "nosuch" in said.err) == (2, True)
    assert "no failing rollout meets the condition" in blade("label", run, "--where", "calls('refund') > 3", *GIVEN).err
    by_condition(blade, run, "calls('refund') = 0")
    assert blade("diagnose", run, "-o", tmp_path / "out").code == 0
    wire = json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))
    assert {(one["condition"], len(one["evidence"])) for one in wire["judgements"]} == {("calls('refund') = 0", 0)}
    grounds = [one["grounds"] for one in wire["attributions"] if one["judged_by"] == "ann"]
    assert len(grounds) == 4
    assert all("the rollout meets the condition calls('refund') = 0" in told for told in grounds)
    page = tmp_path / "out" / "report.md"
    assert blade("check", page, "--run", run).code == 0
    assert "where calls('refund') = 0: BI" in blade("label", run).out
