"""A judgement is accepted only if its ids, its place, its quotation and its chronology hold, or its condition does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from blade import pipeline
from blade.agent import judgements
from blade.errors import UsageError
from blade.model import Cause, Judgement
from blade.pipeline import reviewing, trace_reading
from tests.builders import make_run
from tests.case_tables import cases
from tests.conftest import Blade
from tests.judgements.conftest import ERROR, rows

GOOD: dict[str, Any] = {
    "task": "2", "cause": "BI", "repeat": 1, "step": 5, "quote": "the order O-2 is on its way",
    "mechanism": "It reports success although the order was never found.",
}  # fmt: skip


def judged(path: Path, **changed: Any) -> Any:
    given = {key: value for key, value in {**GOOD, **changed}.items() if value is not None}
    found, refused = reviewing.checked(pipeline.session([str(path)]), [given], "ann")
    assert len(found) + len(refused) == 1
    return found[0] if found else refused[0]


def test_a_judgement_that_holds_is_accepted(path: Path) -> None:
    told = judged(path)
    assert (told.task, told.cause, told.repeat, told.step, told.by) == ("2", Cause.BEHAVIOUR, 1, 5, "ann")
    assert told.proposed is not None
    assert told.at.endswith("Z")


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


def test_the_quotation_is_kept_as_it_stands_in_the_row(path: Path) -> None:
    assert judged(path, quote="on its way, as you").quote == "on its way,\nas you"


def test_several_reasons_are_told_at_once(path: Path) -> None:
    told = judged(path, cause="odd", mechanism=None, repeat=9)
    assert all(reason in told for reason in ("is no cause", "mechanism is missing", "has no repeat 9"))


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


def label(blade: Blade, run: Path, condition: str, *more: object) -> list[dict[str, Any]]:
    said = blade("label", run, "--where", condition, *GIVEN, "--json", *more)
    assert said.code == 0, said.err
    kept: list[dict[str, Any]] = json.loads(said.out)["kept"]
    return kept


@pytest.mark.parametrize("condition", cases(__file__, "conditions"))
def test_every_condition_judges_the_failed_tasks(blade: Blade, run: Path, condition: str) -> None:
    kept = label(blade, run, condition)
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


def test_a_condition_stands_in_the_report_as_a_ground(blade: Blade, run: Path, tmp_path: Path) -> None:
    label(blade, run, "calls('refund') = 0")
    assert blade("diagnose", run, "-o", tmp_path / "out").code == 0
    wire = json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))
    assert {(one["condition"], len(one["evidence"])) for one in wire["judgements"]} == {("calls('refund') = 0", 0)}
    grounds = [one["grounds"] for one in wire["attributions"] if one["judged_by"] == "ann"]
    assert len(grounds) == 4
    assert all("the rollout meets the condition calls('refund') = 0" in told for told in grounds)
    page = tmp_path / "out" / "report.md"
    assert blade("check", page, "--run", run).code == 0
    assert "where calls('refund') = 0: BI" in blade("label", run).out


def test_a_condition_holds_for_the_rollout_it_was_given_for(blade: Blade, run: Path) -> None:
    label(blade, run, "turns > 1")
    text = run.read_text(encoding="utf-8").replace("I look at order O-2 first", "I look elsewhere first")
    run.write_text(text, encoding="utf-8")
    said = blade("label", run).out
    assert "fallen" in said
    assert "task 2 by ann: the rollout is another one now" in said
    assert "\n2/0" not in f"\n{said}"


WITHOUT = {"quote": None, "step": None}  # what a judgement by condition lacks


@pytest.mark.parametrize(
    ("condition", "why"),
    [
        ("calls('refund') > 0", "no failing row of 2/1 meets the condition"),
        ("nosuch = 1", "the condition cannot be asked"),
        ("turns > 1\x07", "condition holds control or invisible characters"),
        (None, "quote is missing"),  # neither a place nor a condition
    ],
)
def test_a_condition_that_does_not_hold_is_refused(path: Path, condition: str | None, why: str) -> None:
    assert why in judged(path, **WITHOUT, condition=condition)


def test_a_condition_that_holds_is_kept_without_a_quotation(path: Path) -> None:
    kept = judged(path, **WITHOUT, condition="calls('refund') = 0")
    assert (kept.quote, kept.condition, kept.shown("run")) == ("", "calls('refund') = 0", ())


def test_without_a_hash_of_its_rollout_a_condition_holds_nothing(path: Path) -> None:
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


def test_a_condition_that_no_query_takes(blade: Blade, run: Path) -> None:
    said = blade("label", run, "--where", "nosuch = 1", *GIVEN)
    assert (said.code, "nosuch" in said.err) == (2, True)
    assert "no failing rollout meets the condition" in blade("label", run, "--where", "calls('refund') > 3", *GIVEN).err
