"""What a failed check is: by its word, by the name of its field, and in a record by the truth that says it was met."""

from __future__ import annotations

from typing import Any

import pytest

from blade.formats.check_records import failed_checks, of_list, status_in

MESSAGES = [{"role": "tool", "content": "no such file", "is_error": True}, {"role": "assistant", "content": "sorry"}]
LAMP = {"name": "lamp is green", "why": "it is red"}


@pytest.mark.parametrize(
    ("fields", "failed"),
    [
        ({"timed_out": False, "uses_images": False, "is_error": False, "truncated": True, "db_match": True}, ["truncated"]),
        ({"follow_instruction_list": [True, False, False], "flags": [False]}, ["2 of 3 false, at 1, 2"]),
        ({"result": {"messages": MESSAGES, "solved": False}}, ["solved"]),
        ({"verifier": {"db_check": {"db_match": False}, "lamp": {"passed": False}}}, ["db_match", "lamp.passed"]),
        ({"tests": {"test_lamp": "failed", "test_bell": "passed", "test_door": "skipped"}}, ["test_lamp"]),
        ({"lamp": {"ok": False, "is_met": False, "fail_to_pass": True}}, ["ok", "is_met"]),
        ({"checks": [{**LAMP, "required": False, "met": True}]}, []),
        ({"checks": [{**LAMP, "required": True, "met": False}]}, ["lamp is green (met)"]),
        ({"checks": [{"check": LAMP, "met": False}, {"met": False}]}, ["lamp is green (met)", "1 (met)"]),
        ({"checks": [{**LAMP, "met": True, "status": "error"}]}, ["lamp is green (status)"]),
        ({"test_passed": "no", "is_error": "false", "has_crashed": "yes", "subtitle": "no"}, ["test_passed", "has_crashed"]),
        ({"verdict": "WA", "state": "wa", "language": "re"}, ["verdict"]),
        ({"parts": {"format": 0.0, "score": 0}, "error": None}, []),
    ],
)  # fmt: skip
def test_what_failed_and_what_did_not(fields: dict[str, Any], failed: list[str]) -> None:
    assert [check.name for key, value in fields.items() for check in failed_checks(key, value)] == failed


@pytest.mark.parametrize(
    ("record", "status"),
    [
        ({"name": "a", "lamp": False}, ("lamp", "failed")),
        ({"name": "a", "required": False, "met": True}, ("met", "passed")),
        ({"name": "a", "is_error": False}, ("is_error", "passed")),
        ({"name": "a", "timed_out": True}, ("timed_out", "failed")),
        ({"name": "a", "fail_to_pass": True}, ("fail_to_pass", "passed")),
        ({"name": "a", "status": "failed", "score": 1}, ("status", "failed")),
        ({"name": "a", "score": 1}, ("score", "passed")),
        ({"name": "a", "score": 0.5}, None),
    ],
)
def test_the_member_of_a_record_that_is_its_status(record: dict[str, Any], status: tuple[str, str] | None) -> None:
    assert status_in(record) == status


def test_lists_of_records_and_of_truths_and_values_of_any_depth() -> None:
    """The place of a case begins with 0 and 1; only its own word says what became of it."""
    records = [{"case": place, "st": word, "wall": 0.5} for place, word in enumerate(("AC", "TLE", "AC", "WA"))]
    assert [status for _, status, _ in of_list(records)] == ["passed", "failed", "passed", "failed"]
    scored = [{"case": place, "score": score} for place, score in enumerate((1.0, 0.0, 0.0))]
    assert [status for _, status, _ in of_list(scored)] == ["passed", "failed", "failed"]
    (check,) = failed_checks("follow_instruction_list", [True] * 5 + [False] * 30)
    assert check.text.startswith("follow_instruction_list: 30 of 35 false, at 5, 6, ")
    assert check.text.endswith(", 24 …")
    deep: Any = {"met": False}
    for _ in range(100):
        deep = {"inner": deep}
    assert failed_checks("verifier", deep) == []
    assert 0 < len(failed_checks("checks", [{"met": False}] * 20_000)) <= 5000
