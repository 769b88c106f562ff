"""Error texts as signatures: which line says most, what is masked, what spreads, where it is concentrated."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pytest

from blade import events, signatures
from blade.ingest.items import quotable, value_at
from blade.model import Evidence, Judged, Signature, TaskTraces
from blade.signatures import grouping, wording
from tests.builders import Row
from tests.traces import did, make_task, rollout

TRACE = """Traceback (most recent call last):
  File "/srv/app/agent/loop.py", line 88, in step
    reply = client.ask(prompt)
  File "/opt/venv/lib/python3.12/site-packages/client/main.py", line 12, in ask
    raise ConnectionResetError(54, "reset")
client.errors.ConnectionResetError: [Errno 54] reset by peer"""


def failing(output: str, tool: str = "look", arguments: str = "{}") -> list[Row]:
    return did((tool, arguments, output), "done")


def tasks_of(*rows: list[Row]) -> list[TaskTraces]:
    """Each list of rows is one task; positions run through."""
    found, start = [], 0
    for number, of_task in enumerate(rows):
        named = [{**row, "_ng_task_index": number} for row in of_task]
        found.append(make_task(*named, start=start))
        start += len(of_task)
    return found


def judged(tasks: list[TaskTraces]) -> Judged:
    episodes = [(number, episode) for number, task in enumerate(tasks) for episode in task.episodes]
    passed = np.array([bool(episode.passed) for _, episode in episodes], np.bool_)
    return Judged(
        "run", tuple(task.task for task in tasks), np.arange(len(episodes)), np.array([number for number, _ in episodes]),
        np.array([episode.trace.rollout.repeat for _, episode in episodes]), passed, passed.astype(float), True, np.zeros(len(episodes), np.bool_),
    )  # fmt: skip


def concluded(tasks: list[TaskTraces], slices: Any = None, shuffled: int | None = None) -> list[Signature]:
    lines = [signatures.observe(task) for task in tasks]
    if shuffled is not None:
        random.Random(shuffled).shuffle(lines)
    calls = Counter(call.tool for task in tasks for episode in task.episodes for call in episode.calls)
    return signatures.conclude(judged(tasks), lines, slices or {}, calls)


def resolves(tasks: list[TaskTraces], evidence: Evidence) -> bool:
    (trace,) = [
        episode.trace for task in tasks for episode in task.episodes
        if (task.task, episode.trace.rollout.repeat) == (evidence.task, evidence.repeat)
    ]  # fmt: skip
    if evidence.step is not None:
        return str(evidence.quote) in events.step_text(trace.steps[evidence.step])
    return str(evidence.quote) in quotable(value_at(trace.row, str(evidence.field)))


# ---- Lines --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (TRACE, "client.errors.ConnectionResetError: [Errno 54] reset by peer"),
        ("building\nfoo.c:3: error: expected ;\nfoo.c:9: error: expected )", "foo.c:3: error: expected ;"),
        ("E   assert 3 == 4\nshort test summary", "E   assert 3 == 4"),
        ("\n\n  nothing to see\nhere", "nothing to see"),
        ("ValueError: a\nduring which\nKeyError: 'b'", "KeyError: 'b'"),
        ("x" * 50_000 + "\nOSError: disk", "OSError: disk"),
        ("", ""),
    ],
)
def test_the_informative_line(text: str, line: str) -> None:
    assert wording.informative(text) == line


@pytest.mark.parametrize(
    ("line", "masked"),
    [
        ("Error: order #W123456 not found", "Error: order <n> not found"),
        ("cannot open '/tmp/a b' at 2024-05-13T10:00:00Z", "cannot open <text> at <time>"),
        ("GET https://x.y/z?k=1 took 35 ms", "GET <url> took <n>"),
        ("at 0x7f3a9c in deadbeefdeadbeef00", "at <hex> in <hex>"),
    ],
)
def test_masking(line: str, masked: str) -> None:
    assert wording.masked(line) == masked


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("client.errors.ConnectionResetError: x", "ConnectionResetError"),
        ("HTTP/1.1 503 Service Unavailable", "HTTP 503"),
        ("process exited with code 137", "exit 137"),
        ("process exited with code 0 and a permission denied", "permission denied"),
        ("Command timed out", "timeout"),
        ("bash: foo: command not found", "command not found"),
        ("Error: user not found", "not found"),
        ("something odd", "error"),
    ],
)
def test_the_class_of_a_line(line: str, kind: str) -> None:
    assert wording.kind(line) == kind


def test_a_json_result_is_read_and_quoted_as_it_stands() -> None:
    task = make_task(rollout(failing('{"error": {"message": "user U1 is \\"gone\\""}, "data": null}')))
    (line,) = signatures.observe(task)
    assert line.masked == "user <n> is <text>"
    assert line.quote in task.episodes[0].trace.steps[line.step or 0].text


def test_a_traceback_keeps_the_frame_of_the_project() -> None:
    (line,) = signatures.observe(make_task(rollout([], traceback=TRACE)))
    assert line.masked == "client.errors.ConnectionResetError: [Errno <n>] reset by peer at loop.py:step"


def test_an_error_and_its_traceback_are_one() -> None:
    task = make_task(rollout([], error="ConnectionResetError: [Errno 54] reset by peer", traceback=TRACE))
    assert [line.source for line in signatures.observe(task)] == ["error"]


def test_where_verifiers_speak() -> None:
    said = {
        "responses_create_params": {},
        "response": {
            "output": [
                {"type": "message", "content": [{"type": "output_text", "text": 'Not the "same" number.'}]}
            ]
        },
    }
    row = rollout(
        did("done"),
        failure_reason="no_sql_extracted",
        container_exit_code=137,
        metadata={"error_message": "index out of range", "stderr": ""},
        steps=[{"stderr": "passed over: what the agent did"}],
        container_services=[{"name": "sim", "stderr": "sim: fatal: port 3 is open"}],
        judge_evaluations=[said],
        checks=[{"name": "has title", "met": False}, {"name": "has date", "met": True}],
        expected_error="none of ours",
        verdict="incorrect",
        reasoning="the model thinks about errors",
    )  # fmt: skip
    task = make_task(row)
    found = {line.source: (line.sort, line.kind, line.masked) for line in signatures.observe(task)}
    assert found == {
        "metadata.error_message": ("error", "error", "index out of range"),
        "container_services[].stderr": ("error", "error", "sim: fatal: port <n> is open"),
        "failure_reason": ("code", "no_sql_extracted", "no_sql_extracted"),
        "container_exit_code": ("code", "exit 137", "137"),
        "checks[]": ("check", "check not met", "has title"),
        "judge_evaluations[].response": ("prose", "explanation", "Not the <text> number."),
    }
    for line in signatures.observe(task):
        assert resolves([task], Evidence("run", "0", 0, field=line.field, quote=line.quote))


def test_whoever_explains_a_pass_tells_of_no_error() -> None:
    explained = {"judge_output": "The answer misses the point entirely."}
    assert signatures.observe(make_task(rollout(did("x"), 1.0, **explained))) == []
    assert len(signatures.observe(make_task(rollout(did("x"), 0.0, **explained)))) == 1


def test_equal_texts_of_a_rollout_are_one_line_and_there_is_an_end() -> None:
    calls = [("look", "{}", "Error: gone")] * 50 + [
        ("look", "{}", f"Error: {chr(97 + n)} is odd") for n in range(26)
    ]
    lines = signatures.observe(make_task(rollout(did(*calls))))
    assert len(lines) == 20
    assert lines[0].times == 50


def test_malformed_rows_are_survived() -> None:
    odd = rollout(
        [],
        error=5,
        status=None,
        details=[[[[["Error"]]]]],
        judge_evaluations=[None, {"response": 3}],
        metadata={"error": {"a": {"b": {}}}},
    )
    assert signatures.observe(make_task(odd, {**odd, "response": None})) == []


# ---- Templates ----------------------------------------------------------------------------------


def test_a_word_that_varies_is_a_parameter_and_two_spellings_are_not() -> None:
    found = grouping.templates({f"bash: {word}: command not found": 1 for word in ("foo", "bar", "baz")})
    assert set(found.values()) == {"bash: <*> command not found"}
    two = {"Error: order not found": 3, "Error: user not found": 2}
    assert grouping.templates(two) == {line: line for line in two}


def test_a_template_keeps_at_least_two_words() -> None:
    lines = {f"{word} failed": 1 for word in ("alpha", "beta", "gamma", "delta")}
    assert grouping.templates(lines) == {line: line for line in lines}


def test_explanations_that_say_nearly_the_same_are_one() -> None:
    same = [
        f"The answer gives the wrong year; the reference says another year, {word}."
        for word in ("sadly", "clearly", "again")
    ]
    other = "No tool was called although the question needs a search."
    found = grouping.alike({**dict.fromkeys(same, 1), other: 1})
    assert len({found[text] for text in same}) == 1
    assert found[other] == other


# ---- Spread -------------------------------------------------------------------------------------


def test_levels_counts_and_order() -> None:
    rows = [[rollout(failing(f"bash: {word}: command not found"))] for word in ("foo", "bar", "baz", "qux")]
    rows += [[rollout(failing("Error: seat 12 is taken", "book"), 1.0)]]
    first, second = concluded(tasks_of(*rows))
    assert (first.template, first.kind, first.n_exact, first.n_rollouts, first.n_tasks, first.n_failed) == (
        "bash: <*> command not found", "command not found", 4, 4, 4, 4,
    )  # fmt: skip
    assert (second.source, second.n_failed, second.n_exact) == ("tool book", 0, 1)
    assert first.id == concluded(tasks_of(*rows))[0].id
    assert len(first.evidence) == 3


def test_a_tool_that_nearly_always_fails_is_systemic() -> None:
    broken = [[rollout(failing("TypeError: unexpected argument"))] for _ in range(3)]
    assert [one.spread for one in concluded(tasks_of(*broken))] == ["systemic"]


def test_two_tasks_or_a_tool_that_often_works_are_not_systemic() -> None:
    two = [[rollout(failing("TypeError: unexpected argument"))] for _ in range(2)]
    assert [one.spread for one in concluded(tasks_of(*two))] == ["idiosyncratic"]
    often = [
        [rollout(did(("look", "{}", "TypeError: x"), ("look", '{"a": 1}', "fine"), "done"))] for _ in range(3)
    ]
    assert [one.spread for one in concluded(tasks_of(*often))] == ["idiosyncratic"]


def test_what_several_runs_show_is_systemic() -> None:
    often = [
        [rollout(did(("look", "{}", "TypeError: x"), ("look", '{"a": 1}', "fine"), "done"))] for _ in range(3)
    ]
    here, there = concluded(tasks_of(*often)), concluded(tasks_of(*often))
    assert [[one.spread for one in run] for run in signatures.across([here, there])] == [
        ["systemic"],
        ["systemic"],
    ]
    assert signatures.across([here, []])[0] == here


def test_the_same_action_with_another_outcome_is_flaky() -> None:
    fails, works = rollout(failing("Error: service is busy")), rollout(failing("42"), 1.0, 1)
    assert [one.spread for one in concluded(tasks_of([fails, works]))] == ["flaky"]


def test_another_action_another_state_or_another_task_is_not_flaky() -> None:
    fails = rollout(failing("Error: service is busy"))
    other = rollout(failing("42", arguments='{"x": 1}'), 1.0, 1)
    changed = rollout(did(("create_order", "{}", "made"), ("look", "{}", "42"), "done"), 1.0, 1)
    same = rollout(failing("42"), 1.0)
    for rows in ([[fails, other]], [[fails, changed]], [[fails], [same]]):
        (one,) = concluded(tasks_of(*rows))
        assert one.spread == "idiosyncratic"


def test_a_write_that_fails_the_second_time_is_not_flaky() -> None:
    twice = did(
        ("cancel_order", "{}", "cancelled"),
        ("cancel_order", "{}", "Error: order is cancelled already"),
        "done",
    )
    assert [one.spread for one in concluded(tasks_of([rollout(twice)]))] == ["idiosyncratic"]


def test_a_request_that_fails_in_some_repeats_only_is_flaky() -> None:
    lost = rollout([], error="APIConnectionError: reset by peer")
    fine = rollout(did("done"), 1.0, 1)
    (one,) = concluded(tasks_of([lost, fine], [lost, fine], [lost, fine]))
    assert (one.kind, one.spread, one.n_rollouts, one.n_tasks, one.n_failed) == (
        "APIConnectionError",
        "flaky",
        3,
        3,
        3,
    )


def test_a_code_that_passing_rows_carry_as_well_is_no_error() -> None:
    both = [[rollout(did("x"), float(task % 2), termination_reason="user_hung_up")] for task in range(10)]
    assert concluded(tasks_of(*both)) == []
    ends = [
        [rollout(did("x"), float(task % 2), termination_reason="user_hung_up" if task % 2 else "max_steps")]
        for task in range(10)
    ]
    assert [(one.template, one.n_rollouts) for one in concluded(tasks_of(*ends))] == [("max_steps", 5)]


# ---- Concentration ------------------------------------------------------------------------------


def sliced(n_inside: int, n_outside: int) -> list[Signature]:
    """Forty tasks, twenty in a slice; so many of each side show the error."""
    rows = [
        [
            rollout(
                failing("Error: bad gear" if task % 20 < (n_inside if task < 20 else n_outside) else "fine")
            )
        ]
        for task in range(40)
    ]
    codes = np.array([0] * 20 + [1] * 20)
    return concluded(tasks_of(*rows), {"domain": (codes, ["gears", "belts"])})


def test_concentration_in_a_slice_is_found() -> None:
    (one,) = sliced(16, 2)
    assert one.slice == "domain=gears"
    assert one.slice_ratio == pytest.approx(8)
    assert one.slice_p_adjusted is not None
    assert one.slice_p_adjusted < 0.001


def test_an_even_spread_is_not_concentration() -> None:
    (one,) = sliced(9, 8)
    assert (one.slice, one.slice_ratio, one.slice_p_adjusted) == (None, None, None)


def test_an_outage_in_one_repeat_is_found() -> None:
    rows = [
        [rollout([], error="APIConnectionError: reset") if repeat == 0 else rollout(did("x"), 1.0, repeat) for repeat in range(3)]
        for _ in range(12)
    ]  # fmt: skip
    (one,) = concluded(tasks_of(*rows))
    assert one.slice == "repeat=0"


# ---- Rules of the house -------------------------------------------------------------------------


def test_every_quote_resolves_and_order_changes_nothing() -> None:
    rows = [
        [rollout(failing(f"  line one\n  Error: item {task} is “off”\n")), rollout([], error=TRACE, repeat=1)] for task in range(6)
    ]  # fmt: skip
    tasks = tasks_of(*rows)
    found = concluded(tasks)
    assert found == concluded(tasks, shuffled=5)
    assert all(resolves(tasks, one) for signature in found for one in signature.evidence)


def test_nothing_comes_of_nothing() -> None:
    tasks = tasks_of([rollout(did("fine"), 1.0)])
    assert concluded(tasks) == []
