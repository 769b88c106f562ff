"""A judgement is accepted only if its ids, its place, its quotation and its chronology hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from blade import pipeline
from blade.errors import UsageError
from blade.model import Cause
from blade.pipeline import reviewing
from tests.judgements.conftest import ERROR

GOOD: dict[str, Any] = {
    "task": "2",
    "cause": "BI",
    "repeat": 1,
    "step": 5,
    "quote": "the order O-2 is on its way",
    "mechanism": "It reports success although the order was never found.",
}


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


REFUSED = {
    "another task": ({"task": "7"}, "has no task 7"),
    "a cause of its own": ({"cause": "laziness"}, "is no cause; the causes are KG, UK, BI"),
    "no cause": ({"cause": None}, "is no cause"),
    "a repeat that is not there": ({"repeat": 3}, "has no repeat 3; it has 0, 1, 2"),
    "no repeat": ({"repeat": None}, "repeat is missing"),
    "true for a repeat": ({"repeat": True}, "repeat is no whole number"),
    "a repeat in words": ({"repeat": "1"}, "repeat is no whole number"),
    "a repeat that passes": (
        {"task": "3", "repeat": 0, "step": 2, "quote": "The order O-3 was found"},
        "does not fail; those that fail: 2",
    ),
    "a step beyond the last": ({"step": 6}, "has no step 6; its 6 steps count from 0"),
    "a step below the first": ({"step": -1}, "has no step -1"),
    "a step in words": ({"step": "5"}, "has no step 5"),
    "the wrong step": ({"step": 0}, "does not hold the quotation 'the order O-2 is on its way'; it stands in step 5"),
    "a false quote": ({"quote": "the order O-2 is not on its way"}, "does not hold the quotation"),
    "a quote of another repeat": ({"quote": "as you wished in try 2"}, "does not hold the quotation"),
    "no quote": ({"quote": None}, "quote is missing"),
    "an empty quote": ({"quote": "  "}, "quote is missing"),
    "a quote that says nothing": ({"quote": "the"}, "too short to show anything"),
    "a quote without end": ({"quote": "x" * 2001}, "quote has 2,001 characters"),
    "no mechanism": ({"mechanism": None}, "mechanism is missing"),
    "a mechanism with colours": ({"mechanism": "it \x1b[31mlies"}, "control or invisible"),
    "an author with a hidden name": ({"by": "an\u200bn"}, "control or invisible"),
    "a place twice": ({"field": "reward"}, "give a step or a field, one of them"),
    "no place": ({"step": None}, "give a step or a field, one of them"),
    "a field that is not there": ({"step": None, "field": "verdict.reason"}, "has no field 'verdict.reason'"),
    "a key that means nothing": ({"confidence": 1}, "there is no key 'confidence'"),
    "a step of nowhere": ({"mechanism": "After step 40 it gives up."}, "speaks of step 40; the longest rollout"),
    "blame for what came before": (
        {"mechanism": "The last message causes the error at step 2."},
        "step 5 is said to bring about step 2, which came before it",
    ),
    "a later step that causes an earlier one": ({"mechanism": "Step 4 is why step 1 fails."}, "step 4 is said to bring about step 1"),
    "the name of the engine": ({"by": "Engine"}, "is the name of the engine's own proposals"),
    "a field that every row has": ({"step": None, "field": "reward", "quote": "0.0"}, "and nothing of why"),
    "the number of the task": ({"step": None, "field": "_ng_task_index", "quote": "2"}, "and nothing of why"),
    "the output as a field": ({"step": None, "field": "response.output", "quote": "function_call"}, "is quoted by its step"),
    "nothing that can be seen": ({"quote": "\u200b" * 10}, "does not hold the quotation"),
    "an error that began earlier": (
        {"step": 4, "quote": ERROR, "mechanism": "The tool fails."},
        "the same error stands in step 2 already",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_does_not_hold_is_refused_with_a_reason(path: Path, name: str) -> None:
    changed, reason = REFUSED[name]
    assert reason in judged(path, **changed)


ACCEPTED = {
    "the name of a cause in small letters": {"cause": "bi"},
    "an abstention": {"cause": "undetermined"},
    "another space and a line break": {"quote": "Done: the order O-2 is on its way, as you wished"},
    "words of a call": {"step": 1, "quote": '"order": "O-2", "try": 1'},
    "all of a short field": {"step": None, "field": "response.status", "quote": "done"},
    "a cause that came before": {"mechanism": "The false report was caused by the misread error in step 2."},
    "a comparison with an earlier step": {
        "mechanism": "It says done; this led to a wrong report, unlike step 0."
    },
    "a number that is no step of it": {"mechanism": "It breaks the policy's step 2024 rule."},
    "a field within a field": {"step": None, "field": "response.model", "quote": "sim-model"},
    "a later step is cited": {"step": 2, "quote": ERROR, "mechanism": "The error at step 2 leads to step 5."},
    "an error where it began": {"step": 2, "quote": ERROR, "mechanism": "The tool fails."},
    "an error that is ignored": {"mechanism": "It ignores the error at step 2."},
}


@pytest.mark.parametrize("name", sorted(ACCEPTED))
def test_near_misses_are_accepted(path: Path, name: str) -> None:
    assert not isinstance(judged(path, **ACCEPTED[name]), str)


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
