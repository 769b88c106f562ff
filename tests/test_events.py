"""What a step is: errors, what tools do, canonical arguments, masking, the final text, quotations."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blade import events
from blade.model import Evidence
from tests.builders import make_call, make_message, make_result
from tests.traces import did, make_episode, make_task, make_tool, rollout

ERRORS = {
    "read": [
        "Error: user not found", '{"error": "quota"}', "user not found", "Error: no such page\nsee the log", "\n\nError: no such page\nsee",
        "Pages on errors: Error theory, by J. L. Mackie",  # too short to tell it from an answer
        "rate_limit_error", "MyOwnException raised", "host unreachable", "request refused",
    ],
    "write": [
        "Traceback (most recent call last):\n  KeyError: 'x'", '{"success": false, "rows": []}', "connect ECONNREFUSED 10.0.0.1",
        "1. Type I error\n2. Error theory",  # a writing tool speaks for itself
        "a.log:\nError: no such page", "transaction aborted", "write aborted: No space left on device", "503 Service Unavailable",
        "Errors:\nthe street needs a number", "malformed address", "missing required field `street`",
    ],
    "check": [
        "command exited with code 2", '{"exit_code": 1, "stdout": ""}', '{"status": "failed"}', "worker OOMKilled", "process ended: exit 137",
        "2 failures, 1 warning", "some exceptions were raised", "redirect() missing 1 required argument: 'street'",
    ],
}  # fmt: skip
FINE = {
    "read": [
        "", '{"error": null, "rows": []}', '{"status": "delivered", "note": "the error was ours"}', "A reign of terror",
        "Wikipedia: " + "x" * 200 + " an error in judgement", "# notes\n# invalid entries are dropped",  # the content of a file
        "a.log:\nError: no such page",
    ],
    "write": ["a well formed address", "1 page is missing, 2 are required"],
    "check": ["exit code: 0", "0 errors, 3 warnings", "no errors found", "0 failures, 0 exceptions", "no failures"],
}  # fmt: skip


@pytest.mark.parametrize("does", ERRORS)
def test_a_result_is_an_error_where_the_tool_itself_says_so(does: str) -> None:
    assert [text for text in ERRORS[does] if not events.reads_as_error(text, does)] == []
    assert [text for text in FINE[does] if events.reads_as_error(text, does)] == []


TOOLS = {
    "read": "get_order get_update_history dataset_info transfer_to_human_agents escalate_case",  # to hand over changes nothing
    "write": "cancelOrder mcp__shop__update_item transfer_money refuel_data",
    "check": "run_tests validate",
}
COMMANDS: dict[str, list[object]] = {
    "read": ["ls -l", "ls 2>/dev/null", "ls 2>&1 | head", "python -c 'print(a >= b)'"],
    "write": ["echo hi > out.txt", "sed -i s/a/b/ f", ["git", "commit", "-m", "x"]],
    "check": ["cd x && pytest -q"],
}


@pytest.mark.parametrize("does", TOOLS)
def test_what_a_tool_does(does: str) -> None:
    assert {events.what_it_does(tool, {}, None, {}) for tool in TOOLS[does].split()} == {does}
    assert {events.what_it_does("bash", {"command": command}, None, {}) for command in COMMANDS[does]} == {does}


def test_a_person_and_then_the_schema_know_better_than_the_name() -> None:
    declared = {"name": "update_view", "annotations": {"readOnlyHint": True}}
    assert events.what_it_does("update_view", {}, declared, {}) == "read"
    assert events.what_it_does("update_view", {}, declared, {"update_view": "check"}) == "check"


def test_equal_actions_have_equal_keys() -> None:
    acts = did(("a", '{"x": 1, "y": 2}', "ok"), ("a", '{"y":2.0,"x":1,"timestamp":"9"}', "ok"), ("a", "x  y", ""))
    first, second, third = make_task(rollout(acts)).episodes[0].calls
    assert first.key == second.key
    assert third.arguments is None
    assert third.key == "a x y"


@pytest.mark.parametrize(
    ("items", "results"),
    [
        (  # to the first open call of its id
            [make_call("c", "one"), make_call("c", "two"), make_result("c", "1"), make_result("c", "2"), make_result("z", "?")],
            [("1", 2), ("2", 3)],
        ),
        (  # results that all carry the id of the last call come in the order of the calls
            [
                make_call("a", "one"), make_call("b", "two"), make_result("b", "1"), make_result("b", "2"), make_call("c", "three"),
                make_result("c", "3"),
            ],
            [("1", 2), ("2", 3), ("3", 5)],
        ),
        ([make_call("a", "one"), make_call("b", "two"), *(make_result(i, i) for i in "abb")], [("a", 2), ("b", 3)]),
        ([make_call("c", "one")], [("", None)]),
    ],
)  # fmt: skip
def test_a_result_goes_to_its_call(items: list[dict[str, object]], results: list[tuple[str, int | None]]) -> None:
    calls = make_episode(rollout(items)).calls
    assert [(call.output, call.result_step) for call in calls] == results
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


def test_a_list_of_calls_of_declared_tools_is_what_is_expected_whatever_it_is_called() -> None:
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


def test_expected_actions_of_the_user_are_not_the_models() -> None:
    actions = [
        {"name": "toggle", "arguments": {}, "requestor": "user"},
        {"name": "refund", "arguments": {"id": 1}, "requestor": "assistant"},
        {"name": "close", "kwargs": {"id": 2}},
    ]
    gold = events.gold({"expected_actions": actions, "expected_answer": " 42 "})
    assert gold.actions == (("refund", {"id": 1}), ("close", {"id": 2}))
    assert (gold.answer, gold.answer_field, gold.actions_field) == ("42", "expected_answer", "expected_actions")


def test_declared_tools_in_both_spellings() -> None:
    row = rollout([], tools=[make_tool("a", "x", x="string"), {"type": "function", "function": {"name": "b"}}])
    assert set(events.declared_tools(row)) == {"a", "b"}


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
