"""Calls that go wrong: broken tools, unanswered calls, names and arguments that do not fit."""

from __future__ import annotations

import json

import jsonschema
import pytest

from blade.detect import (
    dangling_call,
    harness_defect,
    malformed_args,
    schema_invalid,
    survey,
    ungrounded_arg,
    unknown_tool,
)
from blade.model import Cause, TaskTraces
from tests.builders import Row, make_call, make_message, make_result
from tests.detect.hits import findings, is_lacking, only
from tests.traces import did, make_task, make_tool, rollout

LOOK = make_tool("look", "id", id="string", limit="integer", mode={"enum": ["fast", "slow"]})
TALK = make_task(rollout(did("just talk")))


# ---- harness_defect -----------------------------------------------------------------------------


def page_down(
    number: int, output: str = "TypeError: forward() got an unexpected keyword argument 'n'"
) -> TaskTraces:
    calls = [("page_down", f'{{"n":{number}}}', output), ("look", "{}", "seen")]
    return make_task(rollout(did(*calls, *calls, "done"), task=number))


def test_the_same_error_from_nearly_all_valid_calls_is_a_defect_of_the_tool() -> None:
    tasks = [page_down(number) for number in range(4)]
    facts = survey.facts("run", [survey.partial(task) for task in tasks])
    found = only(harness_defect, tasks[0], defects=facts.defects)
    assert (found.severity, found.cause) == (3, Cause.TASK_OR_VERIFIER)
    assert (found.evidence[0].step, found.evidence[0].quote) == (
        1,
        "TypeError: forward() got an unexpected keyword argument 'n'",
    )
    assert "page_down" in found.summary


def test_another_error_of_the_tool_is_not_the_defect() -> None:
    tasks = [page_down(number) for number in range(4)]
    facts = survey.facts("run", [survey.partial(task) for task in tasks])
    other = page_down(9, "Error: there is no such page")
    assert not findings(harness_defect, other, defects=facts.defects)
    assert not findings(harness_defect, tasks[0])
    assert is_lacking(harness_defect, TALK) == "calls"


# ---- dangling_call ------------------------------------------------------------------------------


def test_a_call_that_nothing_answers_while_the_model_goes_on() -> None:
    items = [
        make_call("a", "look", '{"id":"x"}'),
        make_result("a", "seen"),
        make_call("b", "look", '{"id":"y"}'),
        make_message("no result?", "user"),
        make_call("c", "look", '{"id":"z"}'),
        make_result("c", "seen"),
        make_message("done"),
    ]
    found = only(dangling_call, make_task(rollout(items)))
    assert (found.severity, found.cause) == (2, Cause.INFRASTRUCTURE)
    assert (found.evidence[0].step, found.evidence[0].quote) == (2, '{"id":"y"}')


def test_a_tool_that_never_answers_in_the_task_is_the_tasks_fault() -> None:
    def row(tool: str) -> Row:
        items = [
            *did(("look", "{}", "seen")),
            make_call("b", tool, '{"id":"y"}'),
            make_message("no result?", "user"),
            make_message("done"),
        ]
        return rollout(items)

    mute = only(dangling_call, make_task(row("ring")))
    assert (mute.severity, mute.cause) == (2, Cause.TASK_OR_VERIFIER)
    answering = rollout(did(("ring", "{}", "rung"), "done"))
    lost = only(dangling_call, make_task(row("ring"), answering))
    assert (lost.severity, lost.cause) == (2, Cause.INFRASTRUCTURE)


def test_the_last_call_of_a_rollout_does_not_dangle() -> None:
    items = [*did(("look", "{}", "seen")), make_call("z", "look", "{}")]
    assert not findings(dangling_call, make_task(rollout(items)))


def test_results_under_the_id_of_another_call_of_the_turn_are_results() -> None:
    items = [
        make_call("a", "look", '{"id":"x"}'),
        make_call("b", "look", '{"id":"y"}'),
        make_result("b", "x seen"),
        make_result("b", "y seen"),
        make_message("done"),
    ]
    assert not findings(dangling_call, make_task(rollout(items)))


def test_a_recording_without_any_result_says_nothing() -> None:
    items = [make_call("a"), make_message("hm", "user"), make_call("b"), make_message("done")]
    assert not findings(dangling_call, make_task(rollout(items)))
    assert is_lacking(dangling_call, TALK) == "calls"


# ---- unknown_tool -------------------------------------------------------------------------------


def test_a_tool_that_nobody_declared() -> None:
    bad = rollout(did(("lookup", '{"id":"x"}', "Error: unknown tool")), tools=[LOOK])
    good = rollout(did(("look", '{"id":"x"}', "seen")), tools=[LOOK])
    found = only(unknown_tool, make_task(bad, good, good))
    assert (found.severity, found.cause, found.evidence[0].step) == (2, Cause.BEHAVIOUR, 0)
    assert "`lookup`" in found.summary
    assert {one.cause for one in findings(unknown_tool, make_task(bad, bad, good))} == {Cause.KNOWLEDGE_GAP}


def test_an_undeclared_tool_that_answers_weighs_little_and_a_declared_one_nothing() -> None:
    works = rollout(did(("lookup", "{}", "seen")), tools=[LOOK])
    assert only(unknown_tool, make_task(works)).severity == 1
    assert not findings(unknown_tool, make_task(rollout(did(("look", '{"id":"x"}', "seen")), tools=[LOOK])))
    assert is_lacking(unknown_tool, make_task(rollout(did(("lookup", "{}", "seen"))))) == "declared tools"


# ---- malformed_args -----------------------------------------------------------------------------


@pytest.mark.parametrize("raw", ['{"id": "x"', '["x"]', '"x"', "{'id': 'x'}", "null"])
def test_arguments_that_are_no_object(raw: str) -> None:
    found = only(malformed_args, make_task(rollout(did(("look", raw, "Error: bad arguments")), tools=[LOOK])))
    assert (found.severity, found.cause, found.evidence[0].step) == (2, Cause.BEHAVIOUR, 0)
    assert found.evidence[0].quote == raw


@pytest.mark.parametrize("raw", ['{"id": "x"}', "", "  ", '{"id": NaN}'])
def test_arguments_that_can_be_read(raw: str) -> None:
    assert not findings(malformed_args, make_task(rollout(did(("look", raw, "seen")), tools=[LOOK])))


def test_free_text_of_a_tool_that_takes_it_is_well_formed() -> None:
    assert not findings(malformed_args, make_task(rollout(did(("apply", "*** Begin patch", "applied")))))
    assert only(malformed_args, make_task(rollout(did(("look", '{"id', "seen")), tools=[LOOK]))).severity == 1
    assert is_lacking(malformed_args, TALK) == "calls"


# ---- schema_invalid -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "field"),
    [
        ('{"limit":3}', "id` is missing"),
        ('{"id":"x","limit":"three"}', "limit` has the wrong type"),
        ('{"id":"x","mode":"medium"}', "mode` is not allowed"),
    ],
)
def test_a_field_that_breaks_the_schema_is_named(raw: str, field: str) -> None:
    task = make_task(rollout(did(("look", raw, "Error: invalid arguments")), tools=[LOOK]))
    found = only(schema_invalid, task)
    assert (found.severity, found.cause) == (2, Cause.KNOWLEDGE_GAP)
    assert (found.evidence[0].step, found.evidence[0].quote) == (0, raw)
    assert field in found.summary


def test_the_field_is_the_detail_and_extra_fields_count_where_they_are_forbidden() -> None:
    strict = make_tool("look", "id", id="string")
    strict["parameters"]["additionalProperties"] = False
    row = rollout(did(("look", '{"id":"x","colour":"red"}', "Error: unexpected colour")), tools=[strict])
    assert "`colour` is not known" in only(schema_invalid, make_task(row)).summary
    assert not findings(
        schema_invalid, make_task(rollout(did(("look", '{"id":"x","a":1}', "seen")), tools=[LOOK]))
    )


def test_what_the_tool_accepts_weighs_little() -> None:
    row = rollout(did(("look", '{"id":"x","limit":"3"}', "seen")), tools=[LOOK])
    assert only(schema_invalid, make_task(row)).severity == 1
    assert is_lacking(schema_invalid, make_task(rollout(did(("look", "{}", "seen"))))) == "declared tools"


@pytest.mark.parametrize(
    "parameters",
    [
        {"$ref": "#"},
        {"$ref": "https://nowhere.test/schema.json"},
        {"type": "object", "properties": {"id": {"pattern": "(a+)+$"}}},
        {"type": 7},
        {"properties": {"id": {"$ref": "#/$defs/missing"}}},
        {"allOf": [{"$ref": "#/allOf/0"}]},
    ],
)
def test_a_hostile_schema_is_no_schema(parameters: Row) -> None:
    tool = {"type": "function", "name": "look", "parameters": parameters}
    row = rollout(did(("look", '{"id":"' + "a" * 40 + '!"}', "seen")), tools=[tool])
    assert not findings(schema_invalid, make_task(row))


SCHEMAS: list[Row] = [
    {
        "type": "object",
        "properties": {"a": {"type": kind, **more}},
        "required": names,
        "additionalProperties": extra,
    }
    for kind, more in [
        ("string", {}),
        ("string", {"enum": ["x", "y"]}),
        ("integer", {}),
        ("number", {"description": "how many"}),
        ("boolean", {}),
        ("array", {"items": {"type": "string"}}),
        ("object", {"required": ["b"]}),
        ("null", {"enum": [None]}),
        (["string", "null"], {}),
        ("integer", {"minimum": 5}),
    ]
    for names in ([], ["a"], ["a", "c"])
    for extra in (True, False)
]
VALUES = ["x", "z", 3, 3.0, 2.5, True, None, ["x"], ["x", 1], [], {}, {"b": 1}]


@pytest.mark.parametrize("declared", SCHEMAS)
def test_the_short_way_and_the_full_validation_agree(declared: Row) -> None:
    full = jsonschema.Draft202012Validator(declared)
    tool = {"type": "function", "name": "look", "parameters": declared}
    for value in VALUES:
        for arguments in ({"a": value}, {"a": value, "c": 1}, {"c": 1}):
            row = rollout(did(("look", json.dumps(arguments), "Error: invalid")), tools=[tool])
            assert bool(findings(schema_invalid, make_task(row))) == (not full.is_valid(arguments))


# ---- ungrounded_arg -----------------------------------------------------------------------------


def order(
    arguments: str, output: str = "Error: not found", before: str = "", tool: str = "get_order"
) -> TaskTraces:
    return make_task(
        rollout(did(*([before] if before else []), (tool, arguments, output), "done"), prompt="Where is it?")
    )


@pytest.mark.parametrize(
    ("arguments", "value"),
    [
        ('{"order_id":"W1234567"}', "W1234567"),
        ('{"order_ids":["#W7654321"]}', "W7654321"),
        ('{"email":"jane.doe@example.com"}', "jane.doe@example.com"),
        ('{"who":"6fa459ea-ee8a-3ca4-894e-db77e160355e"}', "6fa459ea-ee8a-3ca4-894e-db77e160355e"),
        ('{"account_id":90210555}', "90210555"),
        ('{"path":"/srv/data/orders.csv"}', "/srv/data/orders.csv"),
        ('{"section_id":"lisbon:climate"}', "lisbon:climate"),
    ],
)
def test_an_identifier_from_nowhere_is_found(arguments: str, value: str) -> None:
    found = only(ungrounded_arg, order(arguments))
    assert (found.severity, found.cause, found.evidence[0].step) == (2, Cause.UNRELIABLE_KNOWLEDGE, 0)
    assert value in found.summary
    assert value in found.evidence[0].quote


@pytest.mark.parametrize(
    ("arguments", "before"),
    [
        ('{"order_id":"#W1234567"}', "Your order w1234567 is on its way."),
        ('{"order_id":"W1234567"}', "The number is 1234567."),
        ('{"order_id":"W1234567"}', "It is W 123-4567."),
        ('{"user_id":"jane_doe_4821"}', "I am Jane Doe, 4821."),
        ('{"path":"/srv/data/orders.csv"}', "There is a folder /srv/data with orders.csv in it."),
        ('{"date":"2024-05-01"}', ""),
        ('{"year_id":"2024"}', ""),
        ('{"amount":123456}', ""),
        ('{"text":"W1234567"}', ""),
        ('{"note_id":"ab"}', ""),
        ('{"url":"https://example.com/12345"}', ""),
    ],
)
def test_what_was_told_or_is_no_identifier_stays_silent(arguments: str, before: str) -> None:
    assert not findings(ungrounded_arg, order(arguments, before=before))


def test_what_a_call_creates_may_have_a_new_name() -> None:
    assert not findings(ungrounded_arg, order('{"event_id":"E12345"}', "ok", tool="create_event"))
    assert findings(ungrounded_arg, order('{"user_id":"U12345"}', "ok", tool="create_event"))
    assert not findings(ungrounded_arg, order('{"path":"/tmp/new/file.txt"}', "ok", tool="write_file"))


def test_a_reading_call_that_finds_it_weighs_little_and_the_prompt_and_tools_count_as_told() -> None:
    assert only(ungrounded_arg, order('{"order_id":"W1234567"}', "shipped")).severity == 1
    told = rollout(did(("get_order", '{"order_id":"W1234567"}', "Error: gone")), prompt="Where is W1234567?")
    assert not findings(ungrounded_arg, make_task(told))
    tool = make_tool("get_order", order_id={"type": "string", "default": "W1234567"})
    declared = rollout(did(("get_order", '{"order_id":"W1234567"}', "Error: gone")), tools=[tool])
    assert not findings(ungrounded_arg, make_task(declared))


def test_the_same_field_in_half_of_the_repeats_is_a_gap() -> None:
    row = rollout(did(("get_order", '{"order_id":"W1234567"}', "Error: gone")))
    assert {one.cause for one in findings(ungrounded_arg, make_task(row, row))} == {Cause.KNOWLEDGE_GAP}
    assert is_lacking(ungrounded_arg, TALK) == "calls"
