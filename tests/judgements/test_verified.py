"""A judgement is accepted only if its ids, its place, its quotation and its chronology hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from blade import pipeline
from blade.errors import UsageError
from blade.model import Cause
from blade.pipeline import reviewing
from tests.judgements.conftest import ERROR

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


CASES = yaml.safe_load(Path(__file__).with_name("cases.yaml").read_text(encoding="utf-8"))
WORDS = {"ERROR": ERROR, "LONG": "x" * 2001}


def changes(case: dict[str, Any]) -> dict[str, Any]:
    return {key: WORDS.get(value, value) if isinstance(value, str) else value for key, value in case.items()}


@pytest.mark.parametrize("name", CASES["refused"])
def test_what_does_not_hold_is_refused_with_a_reason(path: Path, name: str) -> None:
    case, reason = CASES["refused"][name]
    assert reason in judged(path, **changes(case))


@pytest.mark.parametrize("name", CASES["accepted"])
def test_near_misses_are_accepted(path: Path, name: str) -> None:
    assert not isinstance(judged(path, **changes(CASES["accepted"][name])), str)


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
