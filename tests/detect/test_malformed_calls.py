"""Malformed and huge traces: the detectors of calls neither fail nor slow down on them."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import msgspec
import pytest

from blade.detect import (
    contradiction_say_do,
    cycle,
    edit_after_last_test,
    extra_side_effect,
    finish_on_red,
    gave_up,
    ignored_error,
    ignored_pagination,
    low_novelty,
    missing_required_tool,
    no_verification,
    order_violation,
    premature_stop,
    repeat_failing,
    repeat_identical,
    reread,
    reward_hack,
    self_check_pass_verifier_fail,
    tool_never_used,
    unconfirmed_write,
    wrong_arg_field,
)
from blade.detect.run import detected
from blade.events import step_text
from blade.model import Gold, TaskTraces
from tests.builders import Row, make_call, make_message, make_result
from tests.detect.hits import ran, seconds
from tests.traces import did, make_facts, make_task, make_tool, rollout

MODULES = (
    repeat_identical, repeat_failing, cycle, low_novelty, reread, ignored_error, tool_never_used,
    missing_required_tool, wrong_arg_field, extra_side_effect, order_violation, ignored_pagination, no_verification,
    edit_after_last_test, finish_on_red, self_check_pass_verifier_fail, premature_stop, gave_up, reward_hack,
    unconfirmed_write, contradiction_say_do,
)  # fmt: skip
POLICY = "Ask for explicit confirmation before you act."
ACTIONS: list[Any] = [
    {"name": "book", "kwargs": {"seat": [1, {"a": None}]}}, {"name": "look", "kwargs": "not json"}, {"name": 3}, None,
]  # fmt: skip
BROKEN: list[Any] = [
    make_result("nobody", "an output without a call"),
    make_call("twice", "book", '{"seat": [1, {"a": 2}]}'),
    make_call("twice", "book", "{not json"),
    make_result("twice", "Error: no"),
    make_result("twice", "ok"),
    make_result("twice", "a third answer"),
    make_call("c", "look", "[1, 2, 3]"),
    make_call("d", "bash", '{"command": ["rm", "-rf", "tests/"]}'),
    make_call("e", "", ""),
    make_call("f", "bash", '"> tests/test_a.py"'),
    make_call("g", "edit_file", '{"path": 3, "text": null}'),
    make_message(""),
    make_message("  ", "user"),
    {"type": "function_call", "name": None, "arguments": None, "call_id": None},
    {"type": "message", "role": "assistant", "content": None},
    "a bare string",
    7,
    None,
    make_message("All done successfully."),
]


def tasks() -> list[TaskTraces]:
    told = {"prompt": POLICY, "expected_actions": ACTIONS, "tools": [make_tool("book")]}
    return [
        make_task(
            rollout(BROKEN, **told),
            rollout(BROKEN, 1.0, **told),
            rollout([], 1.0, **told),
            rollout([], **told),
        ),
        make_task(rollout(BROKEN), rollout(BROKEN[::-1], 1.0), rollout(BROKEN[1:], 1.0)),
        make_task(
            rollout([make_call(f"c{n}", "book", "") for n in range(30)], 1.0), rollout([make_message("")])
        ),
    ]


def test_malformed_traces_break_no_detector_and_quotes_stay_exact() -> None:
    for task in tasks():
        told = detected(task, make_facts(), {module.RULE.name: module for module in MODULES})
        assert not told.broken
        for one in told.found:
            episode = next(e for e in task.episodes if e.position == one.position)
            for evidence in one.finding.evidence:
                if evidence.step is not None:
                    assert evidence.quote
                    assert evidence.quote in step_text(episode.trace.steps[evidence.step])


def _long(kind: str, n_calls: int) -> list[Row]:
    """A long rollout: half its steps calls, half results."""
    if kind == "loop":
        calls: list[Any] = [("look", '{"id": 7}', "Error: none")] * n_calls
    elif kind == "new":
        calls = [
            ("book", f'{{"seat_id": {n}, "path": "tests/test_{n}.py"}}', f"seat {n} ok")
            for n in range(n_calls)
        ]
    elif kind == "shell":
        text = "rm tests/a/b/c.py; " * 20
        calls = [
            ("bash", f'{{"command": "echo {n} > tests/test_{n}.py; {text}"}}', "a/" * 200)
            for n in range(n_calls)
        ]
    else:
        calls = [(f"tool_{n}_set", f'{{"x": {n}}}', "I will call `book` now " * 20) for n in range(n_calls)]
    return did(*calls, "I will call `look`. All done successfully. I was unable to find it.")


@pytest.mark.parametrize("kind", ["loop", "new", "shell", "many tools"])
def test_time_grows_no_faster_than_the_steps(kind: str) -> None:
    """Of two rollouts, one four times the other, with room for noise: quadratic work would take 16 times."""
    short, long = (_slowest(kind, n_calls) for n_calls in (625, 2500))
    least = 0.05  # seconds of CPU below which a ratio is noise
    worse = {name: (short[name], took) for name, took in long.items() if took > 10 * max(short[name], least)}
    assert worse == {}


def _slowest(kind: str, n_calls: int) -> dict[str, float]:
    """Seconds by detector."""
    items = _long(kind, n_calls)
    actions = [{"name": "book", "kwargs": {"seat_id": -n, "to": "x"}} for n in range(200)]
    told: dict[str, Any] = {"prompt": POLICY, "expected_actions": actions}
    shorter = [rollout(items[:20], 1.0, **told)] * 4
    task = make_task(
        rollout([make_message("yes", "user"), *items], **told), rollout(items, 1.0, **told), *shorter
    )
    slow: dict[str, float] = {}
    for module in MODULES:
        for one in (task, msgspec.structs.replace(task, gold=Gold())):
            slow[module.RULE.name] = max(slow.get(module.RULE.name, 0.0), _seconds(module, one))
    return slow


def _seconds(module: ModuleType, task: TaskTraces) -> float:
    return seconds(lambda: ran(module, task))


def test_the_order_of_the_rows_changes_nothing() -> None:
    calls = [("look", '{"id": 7}', "lamp"), ("pay_bill", '{"bill_id": "b1"}', "paid"), "Done."]
    rows = [
        rollout(did(*calls[1:]), 0.0, 1),
        rollout(did(*calls), 1.0, 2),
        rollout(did(*calls), 1.0, 3),
        rollout(did(*calls[:1]), 0.0, 4),
    ]
    names = {module.RULE.name: module for module in MODULES}

    def told(*ordered: Row) -> list[str]:
        found = detected(make_task(*ordered), make_facts(), names).found
        return sorted(f"{one.finding.id} {one.finding.summary}" for one in found)

    assert told(*rows)
    assert told(*rows) == told(*rows[::-1])


def test_every_rule_is_told_in_full() -> None:
    for module in MODULES:
        rule = module.RULE
        assert rule.name == module.__name__.rpartition(".")[2]
        assert rule.rule.endswith(".")
        assert rule.remedy.format(tool="TOOL", detail="DETAIL") != rule.remedy
