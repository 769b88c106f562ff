"""Tests of the work: edits after the last one, finishing on a red one, a green one that fails all the same."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from blade.detect import checks, edit_after_last_test, finish_on_red, self_check_pass_verifier_fail
from blade.detect.rule import Hit
from blade.detect.run import detected
from blade.model import Cause
from tests.builders import make_message
from tests.traces import did, make_episode, make_facts, make_task, rollout

EDIT = ("edit_file", '{"path": "a.py"}', "ok")
GREEN = ("run_tests", "{}", "== 3 passed in 0.1s ==")
RED = ("run_tests", "{}", "== 1 failed, 2 passed in 0.1s ==")
END = "I changed a.py."


def hits(module: ModuleType, *calls: Any, reward: float = 0.0) -> list[Hit]:
    return [
        one for one in module.find(make_task(rollout(did(*calls), reward)), make_facts()) if one is not None
    ]


def test_an_edit_after_the_last_test() -> None:
    (one,) = hits(edit_after_last_test, EDIT, GREEN, ("edit_file", '{"path": "b.py"}', "ok"), END)
    assert (one.severity, one.detail) == (2, "run_tests")
    assert (one.evidence[0].step, one.evidence[0].quote) == (4, '{"path": "b.py"}')
    assert "1 write untested" in one.summary


@pytest.mark.parametrize(
    "last",
    [
        ("submit", "{}", "ok"),
        ("bash", '{"command": "git add -A && git commit -m x"}', "ok"),
        ("edit_file", "{}", "Error: no match"),
        ("look", "{}", "text"),
    ],
)
def test_handing_in_reading_and_failed_edits_need_no_test(last: tuple[str, str, str]) -> None:
    assert not hits(edit_after_last_test, EDIT, GREEN, last, END)


def test_a_check_before_any_write_is_no_test_of_the_work() -> None:
    assert not hits(edit_after_last_test, ("verify_identity", "{}", "ok"), ("pay_bill", "{}", "paid"), END)
    assert not hits(finish_on_red, ("check_stock", "{}", "Error: not found"), "It is sold out.")


def test_finishing_on_a_red_test() -> None:
    (one,) = hits(finish_on_red, EDIT, RED, "All done.")
    assert (one.severity, one.evidence[0].step) == (3, 3)
    assert one.evidence[0].quote == RED[2]
    assert one.evidence[1].quote == "All done."


def test_finishing_on_a_red_test_and_saying_so_is_milder() -> None:
    assert [one.severity for one in hits(finish_on_red, EDIT, RED, "One test still fails.")] == [2]


def test_a_red_test_that_turns_green_or_is_edited_after_is_not_finished_on() -> None:
    assert not hits(finish_on_red, EDIT, RED, EDIT, GREEN, END)
    assert not hits(finish_on_red, EDIT, RED, EDIT, END)
    assert not hits(finish_on_red, EDIT, RED)


def test_a_green_test_that_the_verifier_does_not_share() -> None:
    (one,) = hits(self_check_pass_verifier_fail, EDIT, GREEN, END)
    assert (one.severity, one.evidence[0].step, one.evidence[0].quote) == (2, 0, EDIT[1])  # what it missed
    assert (one.evidence[1].step, one.evidence[1].quote) == (3, GREEN[2])
    assert self_check_pass_verifier_fail.RULE.cause is Cause.KNOWLEDGE_GAP
    assert not self_check_pass_verifier_fail.RULE.procedural
    second = ("edit_file", '{"path": "b.py"}', "ok")
    (last,) = hits(self_check_pass_verifier_fail, EDIT, GREEN, second, GREEN, END)
    assert last.evidence[0].quote == second[1]
    (unedited,) = hits(self_check_pass_verifier_fail, GREEN, END)
    assert [each.step for each in unedited.evidence] == [1]


def test_a_passing_rollout_or_a_red_or_silent_test_is_no_such_case() -> None:
    assert not hits(self_check_pass_verifier_fail, EDIT, GREEN, END, reward=1.0)
    assert not hits(self_check_pass_verifier_fail, EDIT, RED, END)
    assert not hits(self_check_pass_verifier_fail, EDIT, ("run_tests", "{}", "done"), END)
    assert not hits(self_check_pass_verifier_fail, EDIT, GREEN, EDIT, END)


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("collected 4 items\n4 passed", True),
        ("test_error_handling PASSED", True),
        ("Success: no issues found in 3 source files", True),
        ("OK\n", True),
        ("FAILED tests/a.py::b - assert 1 == 2\n1 failed", False),
        ("a.py:3: error: bad\nFound 1 error in 1 file", False),
        ("Error: command not found", False),
        ("nothing to say", None),
    ],
)
def test_what_a_check_said(output: str, expected: bool | None) -> None:
    call = make_episode(rollout(did(("run_tests", "{}", output)))).calls[0]
    assert checks.verdict(call) is expected


def test_without_calls_the_rules_on_tests_lack_their_input() -> None:
    modules = (edit_after_last_test, finish_on_red, self_check_pass_verifier_fail)
    told = detected(
        make_task(rollout([make_message("hello")])), make_facts(), {one.RULE.name: one for one in modules}
    )
    assert dict(told.lacking) == {one.RULE.name: "calls" for one in modules}
