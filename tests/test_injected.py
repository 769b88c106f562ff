"""Injected faults stand where the truth says, and what only looks like a fault leaves the rewards alone."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tools.planted.injected import INJECTIONS, Injected, Truth, write_injected

Row = dict[str, Any]
Rows = dict[tuple[str, int], Row]
Written = Callable[[str, float], tuple[Injected, Rows]]
FAULTS = [name for name, injection in INJECTIONS.items() if not injection.twin]
TWINS = [name for name, injection in INJECTIONS.items() if injection.twin]
CATALOGUE = {f"B{number:02d}" for number in range(1, 41)} - {"B39"}  # only long: no rule of its own
WHOLE = {
    "empty_run", "broken_verifier", "gold_rejected", "nondeterministic_verifier", "wrong_tasks",
    "provider_outage", "agent_never_started", "format_rejected", "turn_limit_run",
}  # fmt: skip


def write(folder: Path, fault: str, prevalence: float = 0.05, seed: int = 1, n_tasks: int = 12) -> tuple[Injected, Rows]:
    made = write_injected(folder, fault=fault, prevalence=prevalence, seed=seed, n_tasks=n_tasks)
    rows = [json.loads(line) for line in made.path.read_bytes().splitlines()]
    return made, {(str(row["_ng_task_index"]), row["_ng_rollout_index"]): row for row in rows}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    """A run by fault and prevalence, written once for all tests that only read it."""
    return cache(lambda fault, prevalence: write(tmp_path_factory.mktemp(fault), fault, prevalence))


def key(truth: Truth) -> tuple[str, int]:
    return truth.task, truth.repeat


def text(item: Row) -> str:
    if item["type"] == "function_call_output":
        return str(item["output"])
    parts = item.get("content") or item.get("summary") or [{"text": item.get("arguments", "")}]
    return "".join(part.get("text") or part.get("refusal") or "" for part in parts)


def calls(row: Row, upto: int | None = None) -> list[tuple[str, str, str | None]]:
    """Tool, arguments and result of each call before an item."""
    output = row["response"]["output"]
    results = {item["call_id"]: item["output"] for item in output if item["type"] == "function_call_output"}
    made = [item for item in output[:upto] if item["type"] == "function_call"]
    return [(item["name"], item["arguments"], results.get(item["call_id"])) for item in made]


def is_call(item: Row, tool: str) -> bool:
    return item["type"] == "function_call" and item["name"] == tool


def parses(arguments: str) -> bool:
    try:
        return isinstance(json.loads(arguments), dict)
    except ValueError:
        return False


def most(row: Row) -> int:
    """How often the most frequent pair of call and result is there; times are no difference."""
    pairs = [(tool, made, re.sub(r"[\d.]+s\b", "", told or "")) for tool, made, told in calls(row)]
    return max(Counter(pairs).values(), default=0)


def grounded(row: Row, at: int) -> bool:
    item = row["response"]["output"][at]
    order = json.loads(item["arguments"])["order_id"]
    before = json.dumps([row["responses_create_params"]["input"], row["response"]["output"][:at]])
    return order in before


# What the decisive step must show, by the words of the rule.
Check = Callable[[Row, Truth, Row], bool]  # row, truth, item of the step
SHOWS: dict[str, Check] = {
    "infra_error": lambda row, truth, item: bool(re.search(r"ECONN|exit 137|503|No space left", text(item))),
    "harness_defect": lambda row, truth, item: "return_v2" in text(item),
    "timeout": lambda row, truth, item: "timed out" in text(row["response"]["output"][truth.steps[1]]),
    "truncated": lambda row, truth, item: row["response"]["status"] == "incomplete",
    "context_overflow": lambda row, truth, item: "context length" in row["response"]["error"]["message"],
    "turn_limit": lambda row, truth, item: len(calls(row)) == row["max_turns"] and is_call(item, item.get("name", "")),
    "dangling_call": lambda row, truth, item: item["call_id"] not in {
        other["call_id"] for other in row["response"]["output"] if other["type"] == "function_call_output"
    },
    "unknown_tool": lambda row, truth, item: item["name"] not in {
        tool["name"] for tool in row["responses_create_params"]["tools"]
    },
    "malformed_args": lambda row, truth, item: not parses(item["arguments"]),
    "schema_invalid": lambda row, truth, item: "order_id" not in json.loads(item["arguments"]),
    "ungrounded_arg": lambda row, truth, item: not grounded(row, truth.step or 0),
    "repeat_identical": lambda row, truth, item: most(row) >= 3 and is_call(item, "search_orders"),
    "repeat_failing": lambda row, truth, item: most(row) >= 3 and is_call(item, "update_order"),
    "cycle": lambda row, truth, item: most(row) >= 3 and is_call(item, "find_customer"),
    "low_novelty": lambda row, truth, item: len({told for _, _, told in calls(row)[-10:]}) < 3,
    "reread": lambda row, truth, item: most(row) >= 3 and is_call(item, "read_file"),
    "ignored_error": lambda row, truth, item: text(item).startswith("Error:") and "Done" in text(row["response"]["output"][-1]),
    "tool_never_used": lambda row, truth, item: not calls(row),
    "missing_required_tool": lambda row, truth, item: "send_message" not in {tool for tool, _, _ in calls(row)},
    "wrong_arg_field": lambda row, truth, item: is_call(item, "update_order")
    and json.loads(item["arguments"])["value"] != row["expected_actions"][0]["arguments"]["value"],
    "extra_side_effect": lambda row, truth, item: item["name"] in ("update_order", "send_message"),
    "order_violation": lambda row, truth, item: is_call(item, "send_message")
    and "update_order" not in {tool for tool, _, _ in calls(row, truth.step)},
    "ignored_pagination": lambda row, truth, item: '"has_more":true' in text(item) and not any(
        tool == "search_orders" and '"page":2' in made for tool, made, _ in calls(row)[len(calls(row, truth.step or 0)) :]
    ),
    "no_verification": lambda row, truth, item: "run_tests" not in {tool for tool, _, _ in calls(row)},
    "edit_after_last_test": lambda row, truth, item: is_call(item, "edit_file") and calls(row)[-1][0] == "edit_file",
    "finish_on_red": lambda row, truth, item: "1 failed" in text(item) and truth.step == len(row["response"]["output"]) - 2,
    "self_check_pass_verifier_fail": lambda row, truth, item: "5 passed" in (calls(row)[-1][2] or ""),
    "premature_stop": lambda row, truth, item: len(calls(row)) == 1,
    "gave_up": lambda row, truth, item: bool(re.search(r"(unable to|could not|cannot) (find|complete)", text(item))),
    "asks_user": lambda row, truth, item: bool(re.search(r"\?$|[Pp]lease (provide|confirm)", text(item))),
    "refusal": lambda row, truth, item: bool(re.search(r"I can't (help|assist)", text(item))),
    "empty_output": lambda row, truth, item: not text(item).strip(),
    "format_mismatch": lambda row, truth, item: row["extracted_answer"] is None and bool(text(item).strip()),
    "right_then_wrong": lambda row, truth, item: row["expected_answer"] in text(row["response"]["output"][truth.steps[0]])
    and row["expected_answer"] not in text(item),
    "degenerate_text": lambda row, truth, item: len(set(text(item).split())) < 12 and len(text(item).split()) > 300,
    "language_switch": lambda row, truth, item: sum(sign > "ʰ" for sign in text(item)) > 0.5 * len(text(item)),
    "reward_hack": lambda row, truth, item: "tests/" in json.loads(item["arguments"])["path"],
    "unconfirmed_write": lambda row, truth, item: is_call(item, "update_order") and not any(
        "yes" in text(other).lower() for other in row["response"]["output"] if other.get("role") == "user"
    ),
    "contradiction_say_do": lambda row, truth, item: json.loads(item["arguments"])["order_id"]
    not in text(row["response"]["output"][truth.steps[0]]),
    "broken_verifier": lambda row, truth, item: row["extracted_answer"] == row["expected_answer"],
    "gold_rejected": lambda row, truth, item: float(row["extracted_answer"]) == float(row["expected_answer"]),
    "nondeterministic_verifier": lambda row, truth, item: row["extracted_answer"] == row["expected_answer"],
    "provider_outage": lambda row, truth, item: "Error code: 5" in text(item),
    "format_rejected": lambda row, truth, item: row["expected_answer"] in text(item) and row["extracted_answer"] is None,
    "turn_limit_run": lambda row, truth, item: len(calls(row)) == row["max_turns"],
}  # fmt: skip


@pytest.mark.parametrize("prevalence", [0.05, 1.0])
@pytest.mark.parametrize("fault", FAULTS)
def test_the_decisive_step_shows_the_fault(written: Written, fault: str, prevalence: float) -> None:
    made, rows = written(fault, prevalence)
    assert made.truths
    for truth in made.truths:
        row = rows[key(truth)]
        output = row["response"]["output"]
        assert truth.behaviour == INJECTIONS[fault].behaviour
        assert all(0 <= step < len(output) for step in truth.steps)
        assert row["reward"] == (1 if fault == "reward_hack" else 0)
        if truth.step is not None:
            assert truth.step in truth.steps
            assert SHOWS[truth.behaviour](row, truth, output[truth.step]), (truth, output[truth.step])


@pytest.mark.parametrize("fault", FAULTS)
def test_nothing_else_fails_but_the_background(written: Written, fault: str) -> None:
    made, rows = written(fault, 0.05)
    failing = {place for place, row in rows.items() if row["reward"] < 1}
    told = {key(truth) for truth in made.truths} if fault != "reward_hack" else set()
    assert failing == told | {key(truth) for truth in made.background}
    assert not told & {key(truth) for truth in made.background}


@pytest.mark.parametrize("prevalence", [0.05, 1.0])
@pytest.mark.parametrize("twin", TWINS)
def test_a_twin_has_no_truth_and_passes_as_before(written: Written, twin: str, prevalence: float) -> None:
    made, rows = written(twin, prevalence)
    assert made.twin
    assert made.truths == ()
    assert all(rows[place]["reward"] == 1 for place in made.touched)
    assert {place for place, row in rows.items() if row["reward"] < 1} == {key(truth) for truth in made.background}
    assert made.touched or twin == "broken_verifier_twin"  # there nothing is right to begin with


def test_every_behaviour_of_the_catalogue_is_there_with_its_twin() -> None:
    assert {injection.id for injection in INJECTIONS.values()} - {""} == CATALOGUE
    by_behaviour = defaultdict(set)
    for injection in INJECTIONS.values():
        by_behaviour[injection.behaviour].add(injection.twin)
    assert set(by_behaviour) >= WHOLE
    assert all(kinds == {True, False} for kinds in by_behaviour.values())


def touched(written: Written, twin: str) -> list[Row]:
    made, rows = written(twin, 0.05)
    return [rows[place] for place in made.touched]


def test_twins_stay_below_the_rule(written: Written) -> None:
    assert {most(row) for row in touched(written, "repeat_identical_twin")} == {2}
    assert all(most(row) <= 2 for name in ("repeat_failing_twin", "cycle_twin", "reread_twin", "polling_twin")
               for row in touched(written, name))  # fmt: skip
    assert all(parses(made) for row in touched(written, "malformed_args_twin") for _, made, _ in calls(row))
    for row in touched(written, "low_novelty_twin"):
        told = [result for _, _, result in calls(row)]
        assert len(told) >= 10
        assert len(set(told)) > 0.3 * len(told)
    for name in ("dangling_call_twin", "infra_error_twin"):
        assert all(told is not None for row in touched(written, name) for _, _, told in calls(row))
    for name in ("edit_after_last_test_twin", "finish_on_red_twin", "no_verification_twin"):
        assert all(calls(row)[-1][0] == "run_tests" for row in touched(written, name))


@pytest.mark.parametrize(("fault", "share"), [("asks_user", 0.01), ("cycle", 0.03), ("truncated", 0.05)])
def test_prevalence_is_the_share_of_rows_spread_over_tasks(tmp_path: Path, fault: str, share: float) -> None:
    made, rows = write(tmp_path, fault, share, n_tasks=40)
    assert len(made.truths) == round(share * len(rows))
    assert len({truth.task for truth in made.truths}) == len(made.truths)
