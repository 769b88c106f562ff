"""What a step is: errors, what tools do, arguments, masking, quotations; and what answer a text gives."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blade import events
from blade.answers import answer_in, boxed, is_same, normalised
from blade.model import Evidence
from tests.builders import make_call, make_message, make_result
from tests.case_tables import tables
from tests.traces import did, make_episode, make_task, make_tool, rollout

CASES = tables(__file__)
ERRORS, FINE = CASES["results"]["errors"], CASES["results"]["fine"]


@pytest.mark.parametrize("does", ERRORS)
def test_a_result_is_an_error_where_the_tool_itself_says_so(does: str) -> None:
    assert [text for text in ERRORS[does] if not events.reads_as_error(text, does)] == []
    assert [text for text in FINE[does] if events.reads_as_error(text, does)] == []


@pytest.mark.parametrize("does", CASES["tools"])
def test_what_a_tool_does(does: str) -> None:
    assert {events.what_it_does(tool, {}, None, {}) for tool in CASES["tools"][does].split()} == {does}
    assert {events.what_it_does("bash", {"command": command}, None, {}) for command in CASES["commands"][does]} == {does}


def test_a_person_and_then_the_schema_know_better_than_the_name_in_both_spellings() -> None:
    declared = {"name": "update_view", "annotations": {"readOnlyHint": True}}
    assert events.what_it_does("update_view", {}, declared, {}) == "read"
    assert events.what_it_does("update_view", {}, declared, {"update_view": "check"}) == "check"
    row = rollout([], tools=[make_tool("a", "x", x="string"), {"type": "function", "function": {"name": "b"}}])
    assert set(events.declared_tools(row)) == {"a", "b"}


def test_equal_actions_have_equal_keys() -> None:
    acts = did(("a", '{"x": 1, "y": 2}', "ok"), ("a", '{"y":2.0,"x":1,"timestamp":"9"}', "ok"), ("a", "x  y", ""))
    first, second, third = make_task(rollout(acts)).episodes[0].calls
    assert first.key == second.key
    assert third.arguments is None
    assert third.key == "a x y"


@pytest.mark.parametrize(("items", "results"), CASES["call_results"])
def test_a_result_goes_to_its_call(items: str, results: list[list[Any]]) -> None:
    parts = [re.split("([>=])", item) for item in items.split()]
    calls = make_episode(rollout([make_call(i, text) if sign == ">" else make_result(i, text) for i, sign, text in parts])).calls
    assert [[call.output, call.result_step] for call in calls] == results
    assert not any(call.failed for call in calls)


def test_the_final_text_stands_after_the_last_call() -> None:
    episode = make_episode(rollout(did("first", ("look", "{}", "ok"), "last")))
    assert (episode.final, episode.final_step) == ("last", 3)
    assert make_episode(rollout(did("first", ("look", "{}", "ok")))).final == ""
    user = [*did("mine"), make_message("yours", "user")]
    assert make_episode(rollout(user)).final == "mine"
    assert make_episode(rollout(user)).has_user


def test_masking_takes_what_is_volatile_and_leaves_the_words() -> None:
    text = "GET https://a.b/c?d=1 for 'bob' at 2024-05-01T10:00:00Z failed: 0xdeadbeef in /usr/lib/x.py line 30"
    assert events.masked(text) == "GET <url> for <text> at <time> failed: <hex> in <path> line <n>"
    assert events.masked("order #W2378156  not   found") == "order <n> not found"
    assert events.masked("plain words stay") == "plain words stay"


def test_a_list_of_calls_of_declared_tools_is_what_is_expected_of_the_model_whatever_it_is_called() -> None:
    bare = {"name": "close", "arguments": '{"id": 2}'}
    tools = {"responses_create_params": {"tools": [{"type": "function", "name": "close"}]}}
    for entries in ([bare], [{"type": "function", "function": bare}]):
        gold = events.gold({"ground_truth": entries, **tools})
        assert (gold.actions, gold.actions_field) == ((("close", {"id": 2}),), "ground_truth")
        assert gold.answer is None
        assert not events.gold({"ground_truth": entries}).actions  # calls that a model writes out as text
    test = {"name": "case 1", "input": "2", "output": "4"}
    for other in ([], [{"name": "close"}], [bare, {"name": "Paris"}], [test], ["close"], "close"):
        assert not events.gold({"ground_truth": other, **tools}).actions
    both = events.gold({"ground_truth": [bare], "expected_actions": [{"name": "open", "kwargs": {}}], **tools})
    assert both.actions_field == "expected_actions"
    actions = [
        {"name": "toggle", "arguments": {}, "requestor": "user"},
        {"name": "refund", "arguments": {"id": 1}, "requestor": "assistant"},
        {"name": "close", "kwargs": {"id": 2}},
    ]
    gold = events.gold({"expected_actions": actions, "expected_answer": " 42 "})
    assert gold.actions == (("refund", {"id": 1}), ("close", {"id": 2}))
    assert (gold.answer, gold.answer_field, gold.actions_field) == ("42", "expected_answer", "expected_actions")


def test_quotations_are_exact_substrings() -> None:
    long = "x" * 300 + "needle" + "y" * 300
    episode = make_episode(rollout(did(long), verifier={"why": {"é": 1}}))
    passage, field = events.at_step(episode, 0, long.index("needle")), events.in_field(episode, "verifier.why")
    assert isinstance(passage, Evidence)
    assert passage.quote in long
    assert "needle" in passage.quote
    assert field is not None
    assert field.quote == '{"é":1}'
    assert (events.in_field(episode, "verifier.nothing"), events.at_step(episode, 9)) == (None, None)


@given(st.text(max_size=400), st.integers(0, 400))
def test_any_passage_is_a_substring_and_any_masked_text_one_line(text: str, at: int) -> None:
    assert events.quoted(text, at, 50) in text
    assert "\n" not in events.masked(text)


# -- answers ---------------------------------------------------------------------------------------

def test_the_answer_a_text_gives_and_its_equals_once_decoration_is_gone() -> None:
    equal = [("$4.00", "4"), ("1,000", "1000"), ("**Paris**.", "paris"), ("The Hague", "hague"), ("12 cm", "12"), ("\\text{B}", "b")]
    assert [pair for pair in equal if normalised(pair[0]) != normalised(pair[1])] == []
    assert [pair for pair in [("4.5", "45"), ("Paris", "London"), ("3 or 4", "3")] if normalised(pair[0]) == normalised(pair[1])] == []
    assert answer_in(r"so \boxed{\frac{1}{2}} it is, no: \boxed{3}") == "3"
    assert boxed(r"\boxed{\frac{1}{2}}") == r"\frac{1}{2}"
    assert boxed(r"\boxed{open") is None
    texts = ["After thought, the answer is: 42", "short", "long " * 40, "  "]
    assert list(map(answer_in, texts)) == ["42", "short", None, None]
    assert [pair for pair in CASES["same_answers"] if not is_same(*pair)] == []
    assert [pair for pair in CASES["other_answers"] if is_same(*pair)] == []
