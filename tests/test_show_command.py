"""`blade show TASK/REPEAT`: what decides comes first, nothing decisive is cut, and options and JSON stay."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from blade.cli.rollout_page import laid_out, passed
from blade.rollout_text import sorted_fields, stops, turns
from tests.builders import Row, make_call, make_message, make_response, make_result, make_row, make_run
from tests.case_tables import cases
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


ROWS: dict[str, Callable[..., list[Row]]] = {
    "graded": lambda: [graded()],
    "graded and passing": lambda: [graded(), make_row(0, 1, 1.0)],
    "sixty failed checks": lambda: [graded(verifier={"checks": [{"name": f"check {n}", "met": False} for n in range(60)]})],
    "cut short": lambda: [make_row(0, 0, 0.0, response=CUT)],
    "without output": lambda: [make_row(0, 0, 0.0, response=None, error="connection reset"), make_row(1, 0)],
    "rewarded": lambda reward: [make_row(0, 0, reward), make_row(1, 0)],
}
CUT = make_response([make_call("c1", "look")], status="incomplete", incomplete_details={"reason": "max_output_tokens"})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return make_run(tmp_path, [graded()])


def part(text: str, name: str) -> list[str]:
    """The lines under a heading of the head."""
    return text.split(f"\n{name}\n", 1)[1].split("\n\n", 1)[0].splitlines()


@pytest.mark.parametrize("name", cases(__file__, "shown"))
def test_what_is_shown(blade: Blade, tmp_path: Path, name: str) -> None:
    case: dict[str, Any] = cases(__file__, "shown")[name]
    text = blade("show", make_run(tmp_path, ROWS[case["rows"]]()), *case.get("options", "0/0").split()).out
    text = text.replace(ANSWER, "ANSWER").replace(f"{len(LOG):,}", "LENGTH")
    parts = {heading: part(text, heading) for heading in (*case.get("parts", ()), *case.get("holds", ()), *case.get("lacks_in", ()))}
    assert {heading: parts[heading] for heading in case.get("parts", ())} == case.get("parts", {})
    assert [line for heading, lines in case.get("holds", {}).items() for line in lines if line not in parts[heading]] == []
    inside = {heading: "\n".join(parts[heading]) for heading in parts}
    assert [word for heading, words in case.get("lacks_in", {}).items() for word in words if word in inside[heading]] == []
    assert [words for words in case.get("says", ()) if words not in text] == []
    assert [words for words in case.get("lacks", ()) if words in text] == []
    assert {words: text.count(words) for words in case.get("counts", ())} == case.get("counts", {})
    assert text.startswith(case.get("begins", ""))
    assert text.rstrip().endswith(case.get("ends", ""))
    places = [text.find(f"\n{heading}") for heading in case.get("order", ())]
    assert -1 not in places
    assert places == sorted(places)


@pytest.mark.parametrize(("reward", "options", "verdict"), cases(__file__, "verdicts"))
def test_the_verdict_is_in_the_first_line(blade: Blade, tmp_path: Path, reward: Any, options: str, verdict: str) -> None:
    path = make_run(tmp_path, ROWS["rewarded"](reward))
    first = blade("show", path, "0/0", *options.split()).out.splitlines()[0]
    assert first == f"task 0 repeat 0 of rollouts: {verdict}"


def test_a_threshold_of_the_benchmark_decides_in_plain_and_compressed_files(blade: Blade, tmp_path: Path) -> None:
    for compress in (None, "gz"):
        path = make_run(tmp_path, [make_row(0, 0, 0.7), make_row(1, 0)], compress=compress)
        (tmp_path / "blade.toml").write_text("pass_threshold = 0.6\n", encoding="utf-8")
        for _ in range(2):  # before and after it is indexed
            assert "passed, reward 0.7 (passes at 0.6)" in blade("show", path, "0/0").out


def test_json_keeps_its_keys_and_adds_what_decides(blade: Blade, path: Path) -> None:
    found = json.loads(blade("show", path, "0/0", "--steps", "1:2", "--json").out)
    before = "run task task_name repeat reward file line fields request steps_from n_steps steps".split()
    assert set(before) | {"passed", "pass_threshold", "failed_checks", "stopped", "last_steps", "diagnosed"} == set(found)
    assert (found["passed"], found["reward"], found["n_steps"]) == (False, 0.0, 4)
    assert [step["index"] for step in found["steps"]] == [1]
    assert [step["index"] for step in found["last_steps"]] == [1, 2, 3]
    assert found["failed_checks"][0] == "verifier.db_match = false"
    assert found["fields"]["log"] == LOG


@pytest.mark.parametrize(("response", "stopped"), cases(__file__, "stops"))
def test_how_a_response_stopped(response: Any, stopped: dict[str, Any]) -> None:
    assert stops(response) == stopped


@pytest.mark.parametrize(("asked", "read"), cases(__file__, "turns"))
def test_the_turns_of_a_request(asked: Any, read: list[list[str]]) -> None:
    row = {"responses_create_params": {"input": asked}}
    assert [[turn["role"], turn["text"]] for turn in turns(row)] == read


def test_no_field_is_lost_costs_and_keys_stand_last_and_logs_are_shown_by_their_end() -> None:
    fields = sorted_fields({"judge_cost_usd": 1, "agent_cost": 0.1, "run_id": "a", "note": "b", "is_error": True, "input": "Do it."}, {})
    assert [name for name, _ in fields.recorded] == ["judge_cost_usd", "is_error", "note"]
    assert [name for name, _ in fields.others] == ["agent_cost", "run_id", "input"]
    assert fields.task == {"input": "Do it."}
    verifier = {"output": {"stderr": LOG}, **{f"key_{number}": number for number in range(40)}}
    values, texts, _ = laid_out(sorted_fields({"verifier_metadata": verifier}, {}))
    assert texts == [("verifier_metadata.output.stderr", LOG)]
    assert [name for name, _ in values] == ["verifier_metadata"]
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
