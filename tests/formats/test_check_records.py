"""What a failed check is: by its word, by the name of its field, and in a record by the truth that says it was met."""

from __future__ import annotations

from typing import Any

import pytest

from blade.formats.check_records import failed_checks, of_list, status_in
from tests.case_tables import cases


@pytest.mark.parametrize(("fields", "failed"), cases(__file__, "failed checks"))
def test_what_failed_and_what_did_not(fields: dict[str, Any], failed: list[str]) -> None:
    assert [check.name for key, value in fields.items() for check in failed_checks(key, value)] == failed


@pytest.mark.parametrize(("record", "status"), cases(__file__, "statuses of records"))
def test_the_member_of_a_record_that_is_its_status(record: dict[str, Any], status: list[str] | None) -> None:
    assert status_in(record) == (status and tuple(status))


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
