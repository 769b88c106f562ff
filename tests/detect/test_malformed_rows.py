"""Malformed traces break no detector and take no more than linear time."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from blade.detect import survey
from blade.detect.run import detected
from blade.model import TaskTraces
from tests.builders import Row, make_call, make_message, make_response, make_result, make_row
from tests.detect.hits import seconds
from tests.traces import did, make_facts, make_task, make_tool, rollout

NAMES = (
    "infra_error harness_defect timeout truncated context_overflow turn_limit dangling_call unknown_tool malformed_args "
    "schema_invalid ungrounded_arg asks_user refusal empty_output format_mismatch right_then_wrong degenerate_text "
    "language_switch overlong_vs_passers"
).split()
MODULES = {name: importlib.import_module(f"blade.detect.{name}") for name in NAMES}

ODD: list[tuple[str, list[Any]]] = [
    ("orphan results", [make_result("nobody", "Error: who?"), make_result("", "")]),
    (
        "repeated ids",
        [make_call("a"), make_call("a"), make_result("a", "1"), make_result("a", "2"), make_result("a", "3")],
    ),
    (
        "arguments of all kinds",
        did(*[("look", raw, "Error") for raw in ("", "{", "[]", "7", '"x"', "null", '{"id":null}')]),
    ),
    ("deep arguments", did(("look", '{"a":' * 3000 + "1" + "}" * 3000, "x"), ("look", "[" * 9000, "y"))),
    (
        "empty texts",
        [make_message(""), make_call("", "", ""), make_result("", ""), make_message("\u0000\ud800")],
    ),
    (
        "no content",
        [{"type": "message", "role": "assistant", "content": None}, {"type": "reasoning", "summary": None}],
    ),
    ("other things", [None, 7, "text", [], {}, {"type": "mystery", "value": [1, {"a": None}]}]),
    (
        "refusals",
        [{"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": None}, 3]}],
    ),
]
FIELDS: dict[str, Any] = {
    "error": {"code": None, "message": ["x"]},
    "verifier": ["no object"],
    "metadata": {"time_limit": "ten", "verifier_error": {}},
    "termination_reason": 7,
    "duration_s": True,
    "max_turns": "many",
    "context_window": -1,
    "expected_answer": "\\boxed{",
    "extracted_answer": {},
}


def all_found(task: TaskTraces) -> None:
    facts = survey.facts("run", [survey.partial(task)])
    for given in (facts, make_facts(turn_cap=1, n_at_cap=9, defects=facts.defects, share_empty=1.0)):
        done = detected(task, given, MODULES)
        assert not done.broken
        for found in done.found:
            assert found.finding.evidence
            assert 0 <= found.finding.severity <= 3
            assert "{" not in found.finding.summary[:1]


@pytest.mark.parametrize("items", [items for _, items in ODD], ids=[name for name, _ in ODD])
@pytest.mark.parametrize("fields", [{}, FIELDS], ids=["plain", "odd fields"])
def test_odd_items_break_nothing(items: list[Any], fields: Row) -> None:
    tools = [
        make_tool("look", "id", id="string"),
        {"name": 7},
        None,
        {"function": {"name": "other", "parameters": []}},
    ]
    rows = [rollout(items, reward, tools=tools, **fields) for reward in (0.0, 1.0)]
    all_found(make_task(*rows))


@pytest.mark.parametrize(
    "response", [None, [], "text", {}, {"output": None}, {"output": "text", "usage": "much"}]
)
@pytest.mark.parametrize(
    "params", [None, [], {"input": None, "tools": {"a": 1}}, {"input": 7, "max_output_tokens": "x"}]
)
def test_odd_rows_break_nothing(response: Any, params: Any) -> None:
    row = make_row(0, 0, 0.0, response=response, responses_create_params=params, **FIELDS)
    all_found(make_task(row, make_row(0, 1, 1.0, response=make_response())))


def _took(row: Row) -> float:
    """Seconds of CPU for the survey and all detectors; never so little that a ratio is noise."""
    task = make_task(row)
    return max(seconds(lambda: all_found(task)), 0.05)


def _many_errors(n_calls: int) -> Row:
    calls = [
        (
            "look",
            f'{{"id":"W{10_000_000 + number}","path":"/a/b{number}"}}',
            f"Error: HTTP 503, timed out, {number} not found",
        )
        for number in range(n_calls)
    ]
    tools = [make_tool("look", "id", id="string")]
    return rollout(did(*calls, "word " * 2 * n_calls), tools=tools, expected_answer="7")


def test_time_grows_no_faster_than_the_steps() -> None:
    """Four times the steps; quadratic work would take 16 times as long."""
    assert _took(_many_errors(2500)) < 10 * _took(_many_errors(625))


def _unbroken(length: int) -> Row:
    blob = "a1" * (length // 2)
    return rollout(
        did(("look", f'{{"id":"{blob[:90]}"}}', "Error: " + blob), blob), error=blob, expected_answer=blob
    )


def test_time_grows_no_faster_than_a_text_without_a_space() -> None:
    assert _took(_unbroken(400_000)) < 10 * _took(_unbroken(100_000))
