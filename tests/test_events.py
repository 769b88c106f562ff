"""What a step is: errors, what tools do, canonical arguments, masking, the final text, quotations."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blade import events
from blade.model import Evidence
from tests.builders import make_call, make_message, make_result
from tests.traces import did, make_episode, make_task, make_tool, rollout


@pytest.mark.parametrize(
    ("text", "does", "failed"),
    [
        ("Error: user not found", "read", True),
        ("Traceback (most recent call last):\n  KeyError: 'x'", "write", True),
        ("command exited with code 2", "check", True),
        ("exit code: 0", "check", False),
        ("0 errors, 3 warnings", "check", False),
        ("no errors found", "check", False),
        ('{"error": null, "rows": []}', "read", False),
        ('{"error": "quota"}', "read", True),
        ('{"success": false, "rows": []}', "write", True),
        ('{"exit_code": 1, "stdout": ""}', "check", True),
        ('{"status": "failed"}', "write", True),
        ('{"status": "delivered", "note": "the error was ours"}', "read", False),
        ("1. Type I error\n2. Error theory", "write", True),  # a writing tool speaks for itself
        ("Wikipedia: " + "x" * 200 + " an error in judgement", "read", False),
        ("user not found", "read", True),
        ("# notes\n# invalid entries are dropped", "read", False),  # the content of a file
        ("Error: no such page\nsee the log", "read", True),
        ("\n\nError: no such page\nsee the log", "read", True),
        ("a.log:\nError: no such page", "read", False),
        ("a.log:\nError: no such page", "write", True),
        (
            "Pages on errors: Error theory, by J. L. Mackie",
            "read",
            True,
        ),  # too short to tell it from an answer
        ("A reign of terror", "read", False),
        ("rate_limit_error", "read", True),
        ("MyOwnException raised", "read", True),
        ("connect ECONNREFUSED 10.0.0.1", "write", True),
        ("host unreachable", "read", True),
        ("worker OOMKilled", "check", True),
        ("transaction aborted", "write", True),
        ("request refused", "read", True),
        ("write aborted: No space left on device", "write", True),
        ("503 Service Unavailable", "write", True),
        ("process ended: exit 137", "check", True),
        ("Errors:\nthe street needs a number", "write", True),
        ("2 failures, 1 warning", "check", True),
        ("some exceptions were raised", "check", True),
        ("0 failures, 0 exceptions", "check", False),
        ("no failures", "check", False),
        ("malformed address", "write", True),
        ("a well formed address", "write", False),
        ("redirect() missing 1 required argument: 'street'", "check", True),
        ("missing required field `street`", "write", True),
        ("1 page is missing, 2 are required", "write", False),
        ("", "read", False),
    ],
)
def test_a_result_is_an_error_where_the_tool_itself_says_so(text: str, does: str, failed: bool) -> None:
    assert events.reads_as_error(text, does) is failed


@pytest.mark.parametrize(
    ("tool", "arguments", "does"),
    [
        ("get_order", {}, "read"),
        ("cancelOrder", {}, "write"),
        ("mcp__shop__update_item", {}, "write"),
        ("get_update_history", {}, "read"),
        ("run_tests", {}, "check"),
        ("validate", {}, "check"),
        ("dataset_info", {}, "read"),
        ("transfer_to_human_agents", {}, "read"),  # to hand over changes nothing
        ("escalate_case", {}, "read"),
        ("transfer_money", {}, "write"),
        ("refuel_data", {}, "write"),
        ("bash", {"command": "ls -l"}, "read"),
        ("bash", {"command": "echo hi > out.txt"}, "write"),
        ("bash", {"command": "ls 2>/dev/null"}, "read"),
        ("bash", {"command": "ls 2>&1 | head"}, "read"),
        ("bash", {"command": "sed -i s/a/b/ f"}, "write"),
        ("bash", {"command": "cd x && pytest -q"}, "check"),
        ("shell", {"command": ["git", "commit", "-m", "x"]}, "write"),
        ("bash", {"command": "python -c 'print(a >= b)'"}, "read"),
    ],
)
def test_what_a_tool_does(tool: str, arguments: dict[str, object], does: str) -> None:
    assert events.what_it_does(tool, arguments, None, {}) == does


def test_a_person_and_then_the_schema_know_better_than_the_name() -> None:
    declared = {"name": "update_view", "annotations": {"readOnlyHint": True}}
    assert events.what_it_does("update_view", {}, declared, {}) == "read"
    assert events.what_it_does("update_view", {}, declared, {"update_view": "check"}) == "check"


def test_equal_actions_have_equal_keys() -> None:
    task = make_task(
        rollout(
            did(
                ("a", '{"x": 1, "y": 2}', "ok"),
                ("a", '{"y":2.0,"x":1,"timestamp":"9"}', "ok"),
                ("a", "x  y", ""),
            )
        )
    )
    first, second, third = task.episodes[0].calls
    assert first.key == second.key
    assert third.arguments is None
    assert third.key == "a x y"


def test_a_result_goes_to_the_first_open_call_of_its_id() -> None:
    items = [
        make_call("c", "one"),
        make_call("c", "two"),
        make_result("c", "1"),
        make_result("c", "2"),
        make_result("z", "?"),
    ]
    calls = make_episode(rollout(items)).calls
    assert [(call.tool, call.output, call.result_step) for call in calls] == [
        ("one", "1", 2),
        ("two", "2", 3),
    ]


def test_results_that_all_carry_the_id_of_the_last_call_come_in_the_order_of_the_calls() -> None:
    items = [make_call("a", "one"), make_call("b", "two"), make_result("b", "1"), make_result("b", "2")]
    calls = make_episode(rollout([*items, make_call("c", "three"), make_result("c", "3")])).calls
    assert [(call.output, call.result_step) for call in calls] == [("1", 2), ("2", 3), ("3", 5)]
    again = [make_call("a", "one"), make_call("b", "two"), *(make_result(i, i) for i in "abb")]
    assert [call.output for call in make_episode(rollout(again)).calls] == ["a", "b"]


def test_an_unanswered_call_has_no_result() -> None:
    call = make_episode(rollout([make_call("c", "one")])).calls[0]
    assert call.result_step is None
    assert call.output == ""
    assert not call.failed


def test_the_final_text_stands_after_the_last_call() -> None:
    episode = make_episode(rollout(did("first", ("look", "{}", "ok"), "last")))
    assert (episode.final, episode.final_step) == ("last", 3)
    assert make_episode(rollout(did("first", ("look", "{}", "ok")))).final == ""
    user = [*did("mine"), make_message("yours", "user")]
    assert make_episode(rollout(user)).final == "mine"
    assert make_episode(rollout(user)).has_user


def test_masking_takes_what_is_volatile_and_leaves_the_words() -> None:
    text = (
        "GET https://a.b/c?d=1 for 'bob' at 2024-05-01T10:00:00Z failed: 0xdeadbeef in /usr/lib/x.py line 30"
    )
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
    assert (gold.answer, gold.answer_field, gold.actions_field) == (
        "42",
        "expected_answer",
        "expected_actions",
    )


def test_declared_tools_in_both_spellings() -> None:
    row = rollout(
        [], tools=[make_tool("a", "x", x="string"), {"type": "function", "function": {"name": "b"}}]
    )
    assert set(events.declared_tools(row)) == {"a", "b"}


def test_tokens_at_three_granularities() -> None:
    episode = make_episode(
        rollout(
            did(
                "hm",
                ("get_x", '{"path": "/a/b.py"}', "ok"),
                ("edit_x", "{}", "Error: no"),
                ("run_tests", "{}", "ok"),
            )
        )
    )
    assert [token for token, _ in events.phases(episode)] == ["SAY", "READ", "WRITE", "ERR", "VERIFY"]
    assert events.tool_tokens(episode) == [("get_x", 1), ("edit_x!", 3), ("run_tests", 5)]
    assert events.salient_tokens(episode)[0] == ("get_x(b.py)", 1)
    assert events.without_runs([("a", 1), ("a", 2), ("b", 3)]) == [("a", 1), ("b", 3)]


def test_quotations_are_exact_substrings() -> None:
    long = "x" * 300 + "needle" + "y" * 300
    episode = make_episode(rollout(did(long), verifier={"why": {"é": 1}}))
    found = events.at_step(episode, 0, long.index("needle"))
    assert isinstance(found, Evidence)
    assert found.quote in long
    assert "needle" in found.quote
    field = events.in_field(episode, "verifier.why")
    assert field is not None
    assert field.quote == '{"é":1}'
    assert events.in_field(episode, "verifier.nothing") is None
    assert events.at_step(episode, 9) is None


@given(st.text(max_size=400), st.integers(0, 400))
def test_any_passage_is_a_substring(text: str, at: int) -> None:
    assert events.quoted(text, at, 50) in text


@given(st.text(max_size=300))
def test_masking_never_fails_and_is_one_line(text: str) -> None:
    assert "\n" not in events.masked(text)
