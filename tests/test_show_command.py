"""`blade show TASK/REPEAT`: what decides comes first, nothing decisive is cut, and options and JSON stay."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from blade.cli.rollout_page import laid_out, passed
from blade.rollout_text import sorted_fields, stops, turns
from tests.builders import Row, make_call, make_message, make_response, make_result, make_row, make_run
from tests.conftest import Blade

LOG = "\n".join([f"line {number} of the build" for number in range(400)] + ["mini: command not found"])
ANSWER = "I work it out. " * 400 + "So the answer is 42."


def graded(reward: float = 0.0, **changed: Any) -> Row:
    """A rollout with a verifier's records, a long log and a long answer."""
    output = [
        make_message("I look first."),
        make_call("c1", "look", '{"what":"lamp"}'),
        make_result("c1", "grey"),
        make_message(ANSWER),
    ]
    fields = {
        "verifier": {
            "db_match": False,
            "checks": [{"name": "lamp is green", "met": False, "why": "it is red"}, {"name": "one call", "met": True}],
            "parts": {"format": 1.0, "answer": 0.0},
        },
        "test_results": {"test_solution_exists": "failed", "test_style": "passed"},
        "log": LOG,
        "expected_answer": "41",
        "user_instruction": "Make the lamp green. " * 30,
    }
    return make_row(0, 0, reward, response=make_response(output), **{**fields, **changed})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return make_run(tmp_path, [graded()])


@pytest.fixture
def shown(blade: Blade, path: Path) -> str:
    return blade("show", path, "0/0").out


def part(text: str, name: str) -> list[str]:
    """The lines under a heading of the head."""
    return text.split(f"\n{name}\n", 1)[1].split("\n\n", 1)[0].splitlines()


def test_the_parts_come_in_the_order_of_what_decides(shown: str) -> None:
    assert shown.startswith("task 0 repeat 0 of rollouts: failed, reward 0.0\n4 steps from response.output\n")
    order = ["Not passed", "Recorded", "Expected", "Ended with", "Proposed cause", "Other fields", "[request] user", "[0] message"]
    places = [shown.find(f"\n{name}") for name in order]
    assert -1 not in places
    assert places == sorted(places)


def test_failed_checks_are_listed_with_their_own_words_and_once(shown: str) -> None:
    assert part(shown, "Not passed") == [
        "  verifier.db_match = false",
        '  verifier.checks[0] met = false: {"name":"lamp is green","met":false,"why":"it is red"}',
        "  test_results.test_solution_exists = failed",
    ]
    recorded = part(shown, "Recorded")
    assert "  verifier.checks: 2 entries, 1 not passed" in recorded
    assert "  verifier.parts.answer: 0.0" in recorded
    assert "  test_results.test_style: passed" in recorded
    assert not [line for line in recorded if "db_match" in line]


def test_a_log_is_shown_by_its_end_and_a_long_answer_too(shown: str) -> None:
    recorded = part(shown, "Recorded")
    assert f"  log ({len(LOG):,} characters), its end:" in recorded
    assert "    mini: command not found" in recorded
    assert "    line 0 of the build" not in recorded
    assert part(shown, "Ended with")[-1].endswith("So the answer is 42.")
    assert shown.rstrip().endswith("So the answer is 42.")  # the step itself is cut in the middle
    assert "characters left out; --chars 0 shows all" in shown


def test_what_is_expected_stands_apart_from_the_task(shown: str) -> None:
    assert part(shown, "Expected") == ["  expected_answer: 41"]
    assert any(line.startswith("  user_instruction: ") for line in part(shown, "Other fields"))


def test_all_characters_on_request(blade: Blade, path: Path) -> None:
    said = blade("show", path, "0/0", "--chars", 0).out
    assert "line 0 of the build" in said
    assert "left out" not in said
    assert said.count(ANSWER) == 1


def test_more_failed_checks_than_fit_are_counted_and_shown_on_request(blade: Blade, tmp_path: Path) -> None:
    checks = [{"name": f"check {number}", "met": False} for number in range(60)]
    path = make_run(tmp_path, [graded(verifier={"checks": checks})])
    lines = part(blade("show", path, "0/0").out, "Not passed")
    assert lines[-1] == "  … 21 more; --chars 0 shows all"
    assert sum('"check ' in line for line in lines) == 40
    assert sum('"check ' in line for line in part(blade("show", path, "0/0", "--chars", 0).out, "Not passed")) == 60


def test_a_pending_call_and_a_stop_reason_are_seen_at_the_head(blade: Blade, tmp_path: Path) -> None:
    response = make_response([make_call("c1", "look")], status="incomplete", incomplete_details={"reason": "max_output_tokens"})
    said = blade("show", make_run(tmp_path, [make_row(0, 0, 0.0, response=response)]), "0/0").out
    assert "  response.status: incomplete" in part(said, "Recorded")
    assert "  response.incomplete_details.reason: max_output_tokens" in part(said, "Recorded")
    assert part(said, "Ended with") == ["  [0] call look (never answered): {}"]


def test_a_row_without_output_says_that_nothing_is_recorded(blade: Blade, tmp_path: Path) -> None:
    path = make_run(tmp_path, [make_row(0, 0, 0.0, response=None, error="connection reset"), make_row(1, 0)])
    said = blade("show", path, "0/0").out
    assert part(said, "Ended with") == ["  no step is recorded"]
    assert {"  response: missing", "  error: connection reset"} <= set(part(said, "Recorded"))


@pytest.mark.parametrize(
    ("reward", "options", "verdict"),
    [
        (1.0, (), "passed, reward 1.0"), (0.0, (), "failed, reward 0.0"),
        (0.7, (), "failed, reward 0.7 (passes at 1)"),
        (0.7, ("--pass-threshold", "0.5"), "passed, reward 0.7 (passes at 0.5)"),
        (12.5, (), "reward 12.5, not judged: no pass threshold is known"),
        (12.5, ("--pass-threshold", "20"), "failed, reward 12.5 (passes at 20)"),
        (None, (), "reward None, no usable reward"),
    ],
)
def test_the_verdict_is_in_the_first_line(
    blade: Blade, tmp_path: Path, reward: float | None, options: tuple[str, ...], verdict: str
) -> None:
    path = make_run(tmp_path, [make_row(0, 0, reward), make_row(1, 0)])
    first = blade("show", path, "0/0", *options).out.splitlines()[0]
    assert first == f"task 0 repeat 0 of rollouts: {verdict}"


def test_a_threshold_of_the_benchmark_decides_in_plain_and_compressed_files(blade: Blade, tmp_path: Path) -> None:
    for compress in (None, "gz"):
        path = make_run(tmp_path, [make_row(0, 0, 0.7), make_row(1, 0)], compress=compress)
        (tmp_path / "blade.toml").write_text("pass_threshold = 0.6\n", encoding="utf-8")
        for _ in range(2):  # before and after it is indexed
            assert "passed, reward 0.7 (passes at 0.6)" in blade("show", path, "0/0").out


def test_the_repeats_of_a_task_say_whether_they_passed_and_how_they_ended(blade: Blade, tmp_path: Path) -> None:
    path = make_run(tmp_path, [graded(), make_row(0, 1, 1.0)])
    lines = [line.split() for line in blade("show", path, "0").out.splitlines() if line.startswith("  repeat")]
    assert [line[2] for line in lines] == ["failed", "passed"]
    assert " ".join(lines[0]).endswith("So the answer is 42.")


def test_json_keeps_its_keys_and_adds_what_decides(blade: Blade, path: Path) -> None:
    found = json.loads(blade("show", path, "0/0", "--steps", "1:2", "--json").out)
    before = "run task task_name repeat reward file line fields request steps_from n_steps steps".split()
    assert set(before) | {"passed", "pass_threshold", "failed_checks", "stopped", "last_steps", "diagnosed"} == set(found)
    assert (found["passed"], found["reward"], found["n_steps"]) == (False, 0.0, 4)
    assert [step["index"] for step in found["steps"]] == [1]
    assert [step["index"] for step in found["last_steps"]] == [1, 2, 3]
    assert found["failed_checks"][0] == "verifier.db_match = false"
    assert found["fields"]["log"] == LOG


def test_a_part_of_a_rollout_comes_without_the_head(blade: Blade, path: Path) -> None:
    said = blade("show", path, "0/0", "--steps", "1:3").out
    assert said.splitlines()[0].endswith("failed, reward 0.0")
    assert "Not passed" not in said
    assert "[1] call look" in said
    assert "[3] message" not in said
    request = blade("show", path, "0/0", "--request").out
    assert "Not passed" in request
    assert "[request] user" in request
    assert "\n[0] message" not in request


@pytest.mark.parametrize(
    ("response", "stopped"),
    [
        ({"status": "completed", "error": None}, {}),
        ({"status": "incomplete", "finish_reason": "length"}, {"response.status": "incomplete", "response.finish_reason": "length"}),
        (None, {"response": "missing"}),
    ],
)
def test_how_a_response_stopped(response: Any, stopped: dict[str, Any]) -> None:
    assert stops(response) == stopped


@pytest.mark.parametrize(
    ("asked", "read"),
    [
        ("Do it.", [("user", "Do it.")]),
        ([{"role": "system", "content": [{"type": "input_text", "text": "Be brief."}]}, "Do it."], [("system", "Be brief."), ("user", "Do it.")]),
        ([{"type": "function_call_output", "output": "grey"}], [("function_call_output", "grey")]),
        (None, [("user", "")]),
    ],
)
def test_the_turns_of_a_request(asked: Any, read: list[tuple[str, str]]) -> None:
    row = {"responses_create_params": {"input": asked}}
    assert [(turn["role"], turn["text"]) for turn in turns(row)] == read


def test_costs_and_keys_stand_behind_what_tells_of_the_outcome() -> None:
    fields = sorted_fields({"judge_cost_usd": 1, "agent_cost": 0.1, "run_id": "a", "note": "b", "is_error": True, "input": "Do it."}, {})
    assert [name for name, _ in fields.recorded] == ["judge_cost_usd", "is_error", "note"]
    assert [name for name, _ in fields.others] == ["agent_cost", "run_id", "input"]
    assert fields.task == {"input": "Do it."}


def test_a_log_inside_an_object_is_shown_by_its_end_as_well() -> None:
    verifier = {"output": {"stderr": LOG}, **{f"key_{number}": number for number in range(40)}}
    values, texts, _ = laid_out(sorted_fields({"verifier_metadata": verifier}, {}))
    assert texts == [("verifier_metadata.output.stderr", LOG)]
    assert [name for name, _ in values] == ["verifier_metadata"]


def test_no_field_is_lost_however_many_there_are() -> None:
    fields: dict[str, Any] = {f"field_{number}": number for number in range(80)}
    fields |= {f"text_{number}": "word " * 100 for number in range(9)}
    fields |= {"wide": {f"key_{number}": number for number in range(50)}, "nothing": None, "expected_answer": "x"}
    found = sorted_fields(fields, stops({"error": "gone"}))
    names = [name for part in (*laid_out(found), found.expected) for name, _ in part]
    assert sorted(names) == sorted([*fields, "response.error"])
    assert names[0] == "response.error"


@pytest.mark.parametrize(
    ("reward", "threshold", "verdict"),
    [(1 - 1e-12, None, True), (True, None, True), (-0.1, None, None), ("1", None, None), (10**400, None, None), (10**400, 1.0, True), (float("nan"), None, None), (-0.1, -1.0, True)],
)
def test_a_reward_is_judged_only_where_a_threshold_is_known(reward: Any, threshold: float | None, verdict: bool | None) -> None:
    assert passed(reward, threshold) is verdict
