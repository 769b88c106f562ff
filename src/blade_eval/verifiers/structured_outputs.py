"""Judge whether an answer is JSON, YAML or TOML that the task's JSON Schema admits.

The answer is the whole text, or the only fenced block in it, or the call of the tool that the row names; its
content is not judged. Text and schema meet in a limited worker, since a pattern or an alias may send the
validation into a search without end.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from blade_eval import fences, limited, replies, task_row
from blade_eval.environment import Attempt, Environment, Row

KINDS = ("json", "yaml", "toml")
COMPUTING = 4  # seconds of processor time
LONGEST = 500  # characters of a message


def environment(settings: Mapping[str, Any]) -> Environment:
    """Structured outputs; the row names the schema, its kind of text, and the tool if it is to be a call."""
    seconds = int(settings.get("verify_timeout_seconds") or COMPUTING)
    return Environment("structured_outputs", partial(verify, seconds))


async def verify(seconds: int, attempt: Attempt) -> Row:
    """1 when the schema admits the answer, else 0 with `error_type` and `error_message`."""
    row = attempt.row
    kind = str(task_row.field(row, "schema_type", "json")).lower()
    schema = schema_of(row)
    content = (
        called(row, attempt) if task_row.field(row, "response_mode") == "tool_call" else written(attempt, kind)
    )
    problem: list[str] | None
    if "problem" in content:
        problem = content["problem"]
    else:
        try:
            problem = await limited.call(
                "blade_eval.verifiers.structured_outputs:problem_of", schema, content["text"], content["kind"],
                seconds=seconds,
            )
        except limited.TooCostly as error:
            problem = ["too_costly", f"the answer cannot be validated: {error}"]
    if problem and problem[0] == "schema_invalid":
        raise task_row.faulty(f"the schema cannot be used: {problem[1]}")
    return {
        "reward": float(problem is None), "schema_type": kind, "error_type": problem[0] if problem else None,
        "error_message": problem[1] if problem else None,
    }


def schema_of(row: Row) -> Any:
    """The schema, which stands as an object or as its JSON."""
    document = (
        task_row.needed(row, "schema_str") if task_row.field(row, "schema") is None else task_row.field(row, "schema")
    )
    if isinstance(document, str):
        try:
            document = msgspec.json.decode(document)
        except (msgspec.DecodeError, RecursionError) as error:
            raise task_row.faulty(f"the schema is not JSON: {error}") from None
    if not isinstance(document, (dict, bool)):
        raise task_row.faulty("the schema is not an object")
    return document


def written(attempt: Attempt, kind: str) -> Row:
    """The text to be read: all of it, or what its only fence holds."""
    if kind not in KINDS:
        raise task_row.faulty(f"the schema type {kind!r} is none of {', '.join(KINDS)}")
    text = replies.answer(attempt.response)
    if not text:
        return {"problem": ["no_answer", "nothing was said"]}
    closed = fences.closed(text)
    if len(closed) > 1:
        return {
            "problem": ["parse_error", f"{len(closed)} fenced blocks, and nothing says which is the answer"]
        }
    return {"text": closed[0] if closed else text, "kind": kind}


def called(row: Row, attempt: Attempt) -> Row:
    """The arguments of the tool that was to be called, as JSON; one call, no more."""
    name, key = task_row.field(row, "tool_name"), task_row.field(row, "tool_payload_key")
    calls = replies.calls(attempt.response)
    fitting = [call for call in calls if name is None or call.name == name]
    if not fitting:
        wrong = f"{calls[0].name[:80]!r} was called" if calls else "no tool was called"
        return {"problem": ["no_tool_call", wrong]}
    if len(calls) > 1:
        return {"problem": ["several_calls", f"{len(calls)} calls, and nothing says which is the answer"]}
    arguments: Any = fitting[0].arguments
    if arguments is None:
        return {"problem": ["parse_error", fitting[0].problem[:LONGEST]]}
    if key:
        if set(arguments) != {key}:
            return {"problem": ["schema_error", f"the arguments are not wrapped in {key!r}"]}
        arguments = arguments[key]
    return {"text": msgspec.json.encode(arguments).decode(), "kind": "json"}


def problem_of(schema: Any, text: str, kind: str) -> list[str] | None:
    """What is wrong with a text, as type and message; nothing when the schema admits it."""
    from jsonschema import validators
    from jsonschema.exceptions import SchemaError
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    validator = validators.validator_for(schema, default=validators.Draft202012Validator)
    try:
        validator.check_schema(schema)
    except SchemaError as error:
        return ["schema_invalid", str(error.message)[:LONGEST]]
    try:
        value = READERS[kind](text)
    except RecursionError:
        raise
    except Exception as error:
        return ["parse_error", f"{type(error).__name__}: {error}"[:LONGEST]]
    try:
        # A registry of its own: a schema that points to an address is never fetched.
        first = next(validator(schema, registry=Registry()).iter_errors(value), None)
    except (Unresolvable, re.error) as error:
        return ["schema_invalid", str(error)[:LONGEST]]
    except (ArithmeticError, TypeError, ValueError) as error:  # a number beyond what Python divides
        return ["schema_error", f"{type(error).__name__}: {error}"[:LONGEST]]
    if first is None:
        return None
    return ["schema_error", f"{first.json_path}: {first.message}"[:LONGEST]]


def read_json(text: str) -> Any:
    """JSON as its standard has it: no NaN, no key twice."""
    return json.loads(text, object_pairs_hook=_unique, parse_constant=_refused)


def read_yaml(text: str) -> Any:
    """YAML with the scalars of 1.2's core schema: a date, `12:30` and `no` are texts, 010 is ten."""
    import yaml

    class Loader(yaml.SafeLoader):
        def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
            content: dict[Any, Any] = super().construct_mapping(node, deep)
            if len(content) < len(node.value):
                raise ValueError("a key stands twice in one mapping")
            return content

    Loader.yaml_implicit_resolvers = {}  # those of 1.1 stay with the parent
    for kind, (pattern, signs, read) in CORE.items():
        Loader.add_implicit_resolver(
            f"tag:yaml.org,2002:{kind}", re.compile(f"(?:{pattern})\\Z"), list(signs)
        )

        def construct(loader: Any, node: Any, pattern: str = pattern, read: Any = read) -> Any:
            text = loader.construct_scalar(node)
            if not re.fullmatch(pattern, text):
                raise ValueError(f"{text[:40]!r} is not what its tag says")
            return read(text)

        Loader.add_constructor(f"tag:yaml.org,2002:{kind}", construct)
    value = yaml.load(text, Loader)
    _text_keys(value)
    return value


def read_toml(text: str) -> Any:
    """TOML; its dates become texts, which is what a JSON Schema can speak of."""
    import tomllib

    return json.loads(json.dumps(tomllib.loads(text), default=lambda date: date.isoformat()))


def _whole(text: str) -> int:
    return int(text, {"0o": 8, "0x": 16}.get(text[:2], 10))


def _decimal(text: str) -> float:
    return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))


# The core schema of YAML 1.2: kind to its pattern, the signs it begins with, and what it means. Patterns are
# tried in this order: a whole number is also a decimal one.
CORE: dict[str, tuple[str, Sequence[str], Callable[[str], Any]]] = {
    "null": (r"null|Null|NULL|~|", ("n", "N", "~", ""), lambda text: None),
    "bool": (r"true|True|TRUE|false|False|FALSE", "tTfF", lambda text: text.lower() == "true"),
    "int": (r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789", _whole),
    "float": (
        r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        "-+.0123456789",
        _decimal,
    ),
}
READERS = {"json": read_json, "yaml": read_yaml, "toml": read_toml}


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        raise ValueError("a key stands twice in one object")
    return content


def _refused(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


def _text_keys(value: Any) -> None:
    waiting, seen = [value], set()
    while waiting:
        inner = waiting.pop()
        if id(inner) in seen or not isinstance(inner, (dict, list)):
            continue
        seen.add(id(inner))
        if isinstance(inner, dict):
            if not all(isinstance(key, str) for key in inner):
                raise ValueError("a key is not a text")
            waiting.extend(inner.values())
        else:
            waiting.extend(inner)
