"""Judge function calls: those that were to be made, each as often, with the same arguments.

Arguments are compared as values: `1` is `1.0` and the order of keys means nothing, but `"1"` is not `1`,
`true` is not `1`, and a list has its order. An argument that equals its tool's declared default may be left
out. Where a row gives `accepted_calls`, each argument lists its accepted values, with "" if it may be absent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import msgspec

from blade_eval import replies, task_row
from blade_eval.environment import Attempt, Environment, Row

OPEN, CLOSE = "<tool_call>", "</tool_call>"
# What BFCL leaves out of account when it compares texts.
IGNORED = re.compile(r"[ ,./\-_*^]")


def environment(settings: Mapping[str, Any]) -> Environment:
    """Function calls; `ordered` and `calls_in_text` hold for rows that do not say."""
    usual = {name: bool(settings.get(name)) for name in ("ordered", "calls_in_text")}
    return Environment("xlam_fc", partial(verify, usual), scores=scores)


async def verify(usual: Mapping[str, bool], attempt: Attempt) -> Row:
    """1 when every expected call was made and no other."""
    row = attempt.row
    expected, has_alternatives = expected_of(row)
    predicted = replies.calls(attempt.response)
    text = replies.answer(attempt.response)
    if not predicted and task_row.field(row, "calls_in_text", usual["calls_in_text"]):
        predicted = written(text)
    fits = partial(fitting, defaults_of(row), has_alternatives)
    if task_row.field(row, "ordered", usual["ordered"]):
        correct = sum(map(fits, expected, predicted))
    else:
        correct = matched(expected, predicted, fits)
    right = correct == len(expected) == len(predicted)
    if not expected:
        right = right and bool(text)  # that nothing was to be called is no reward for saying nothing
    return {
        "reward": float(right), "num_expected": len(expected), "num_predicted": len(predicted),
        "num_correct": correct,
        "predicted_calls": [{"name": call.name, "arguments": call.arguments} for call in predicted],
    }


def scores(row: Row) -> dict[str, float]:
    """Beside the reward: the share of the expected calls that were made."""
    expected = row.get("num_expected") or 0
    return {"call_recall": row.get("num_correct", 0) / expected} if expected else {}


def expected_of(row: Row) -> tuple[list[replies.Call], bool]:
    """The calls that were to be made, and whether their arguments are lists of accepted values."""
    for name in ("accepted_calls", "expected_answers", "expected_calls", "answers"):
        source = task_row.opened(task_row.field(row, name), "the expected calls are")
        if source is None:
            continue
        if not isinstance(source, list):
            raise task_row.faulty("the expected calls are not a list")
        has_alternatives = name == "accepted_calls"
        return [expected_call(entry, has_alternatives) for entry in source], has_alternatives
    raise task_row.faulty("the row has neither expected_answers nor accepted_calls")


def expected_call(entry: Any, has_alternatives: bool) -> replies.Call:
    """`{name, arguments}`, or BFCL's `{name: arguments}`."""
    if isinstance(entry, dict) and "name" not in entry and len(entry) == 1:
        ((name, arguments),) = entry.items()
        entry = {"name": name, "arguments": arguments}
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
        raise task_row.faulty("an expected call has no name")
    call = replies.call(entry)
    if call.arguments is None:
        raise task_row.faulty(f"the expected call of {call.name}: {call.problem}")
    if has_alternatives and not all(isinstance(values, list) for values in call.arguments.values()):
        raise task_row.faulty(f"the accepted values of {call.name} are not lists")
    return call


def defaults_of(row: Row) -> dict[str, dict[str, Any]]:
    """Tool to argument to the default that its schema declares."""
    params = row.get("responses_create_params")
    tools = params.get("tools") if isinstance(params, dict) else None
    results: dict[str, dict[str, Any]] = {}
    for tool in tools if isinstance(tools, list) else ():
        schema = tool.get("parameters") if isinstance(tool, dict) else None
        properties = schema.get("properties") if isinstance(schema, dict) else None
        if isinstance(properties, dict):
            declared = {k: v["default"] for k, v in properties.items() if isinstance(v, dict) and "default" in v}
            results[str(tool.get("name"))] = declared
    return results


def fitting(
    defaults: Mapping[str, Mapping[str, Any]], has_alternatives: bool, expected: replies.Call, call: replies.Call
) -> bool:
    """Whether a call is the expected one."""
    if call.name != expected.name or call.arguments is None or expected.arguments is None:
        return False
    usual = defaults.get(call.name, {})
    try:
        if has_alternatives:
            return accepted(expected.arguments, call.arguments, usual)
        return telling(expected.arguments, usual) == telling(call.arguments, usual)
    except RecursionError:
        return False


def telling(arguments: Mapping[str, Any], usual: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that say something: without those that equal their default."""
    values = {name: value_of(value) for name, value in arguments.items()}
    return {k: v for k, v in values.items() if k not in usual or v != value_of(usual[k])}


def accepted(allowed: Mapping[str, list[Any]], source: Mapping[str, Any], usual: Mapping[str, Any]) -> bool:
    """Whether each argument has one of its values, and those that are absent may be."""
    if any(name not in allowed for name in telling(source, usual)):
        return False
    for name, values in allowed.items():
        if name in source:
            if not any(alike(value, source[name]) for value in values):
                return False
        elif "" not in values and not (name in usual and any(alike(value, usual[name]) for value in values)):
            return False
    return True


def alike(wanted: Any, source: Any) -> bool:
    """Equality as BFCL has it: texts without case, spaces and some marks; objects of alternatives."""
    if isinstance(wanted, str) and isinstance(source, str):
        return wanted == source or plain(wanted) == plain(source) != ""
    if isinstance(wanted, list) and isinstance(source, list):
        return len(wanted) == len(source) and all(map(alike, wanted, source))
    if isinstance(wanted, dict) and isinstance(source, dict):
        if all(isinstance(values, list) for values in wanted.values()):
            return accepted(wanted, source, {})
        return set(wanted) == set(source) and all(alike(wanted[name], source[name]) for name in wanted)
    return bool(value_of(wanted) == value_of(source))


def plain(text: str) -> str:
    return IGNORED.sub("", text).casefold().replace("'", '"')


def value_of(value: Any) -> Any:
    """A value that is equal to another when JSON means the same by both; Python takes `true` for 1."""
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, dict):
        return {name: value_of(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [value_of(inner) for inner in value]
    return value


def matched(
    expected: list[replies.Call], calls: list[replies.Call], fits: Callable[[replies.Call, replies.Call], bool]
) -> int:
    """The most expected calls that can each be given a call of its own."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_bipartite_matching

    if not expected or not calls:
        return 0
    possible = csr_array([[fits(wanted, call) for call in calls] for wanted in expected])
    return int((maximum_bipartite_matching(possible, perm_type="column") >= 0).sum())


def written(text: str) -> list[replies.Call]:
    """Calls that stand in the text as JSON: in tags, in the last fence, or all of it."""
    tagged = [part.partition(CLOSE)[0] for part in text.split(OPEN)[1:] if CLOSE in part]
    results: list[replies.Call] = []
    for part in tagged or replies.closed(text)[-1:] or [text]:
        try:
            value = msgspec.json.decode(part.strip())
        except (msgspec.DecodeError, RecursionError):
            if tagged:
                results.append(replies.Call("", None, "the call is not JSON"))
            continue
        entries = value if isinstance(value, list) else [value]
        results += [replies.call(entry) for entry in entries if isinstance(entry, dict)]
    return results
