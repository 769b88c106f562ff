"""Judge whether an answer is JSON, YAML or TOML that the task's JSON Schema admits.

The answer is the whole text, or the only fenced block in it, or the call of the tool that the row names; its
content is not judged. Text and schema meet in a limited worker, since a pattern or an alias may send the
validation into a search without end.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec
import yaml

from blade_eval import limited, replies, task_row
from blade_eval.environment import Attempt, Environment, Row

COMPUTING = 4  # seconds of processor time
LONGEST = 500  # characters of a message


class Unusable(Exception):
    """The answer is not one that can be validated: the type of the error, and a message."""


def environment(settings: Mapping[str, Any]) -> Environment:
    """Structured outputs; the row names the schema, its kind of text, and the tool if it is to be a call."""
    seconds = int(settings.get("verify_timeout_seconds") or COMPUTING)
    return Environment("structured_outputs", partial(verify, seconds))


async def verify(seconds: int, attempt: Attempt) -> Row:
    """1 when the schema admits the answer, else 0 with `error_type` and `error_message`."""
    row = attempt.row
    kind = str(task_row.field(row, "schema_type", "json")).lower()
    source = task_row.field(row, "schema")  # which stands as an object or as its JSON
    schema = task_row.opened(task_row.needed(row, "schema_str") if source is None else source, "the schema is")
    if not isinstance(schema, (dict, bool)):
        raise task_row.faulty("the schema is not an object")
    problem: list[str] | None
    try:
        is_call = task_row.field(row, "response_mode") == "tool_call"
        text, syntax = (called(row, attempt), "json") if is_call else (written(attempt, kind), kind)
        function = "blade_eval.verifiers.structured_outputs:problem_of"
        problem = await limited.call(function, schema, text, syntax, seconds=seconds)
    except Unusable as error:
        problem = list(error.args)
    except limited.TooCostly as error:
        problem = ["too_costly", f"the answer cannot be validated: {error}"]
    if problem and problem[0] == "schema_invalid":
        raise task_row.faulty(f"the schema cannot be used: {problem[1]}")
    return {
        "reward": float(problem is None), "schema_type": kind, "error_type": problem[0] if problem else None,
        "error_message": problem[1] if problem else None,
    }


def written(attempt: Attempt, kind: str) -> str:
    """The text to be read: all of it, or what its only fence holds."""
    if kind not in READERS:
        raise task_row.faulty(f"the schema type {kind!r} is none of {', '.join(READERS)}")
    text = replies.answer(attempt.response)
    if not text:
        raise Unusable("no_answer", "nothing was said")
    closed = replies.closed(text)
    if len(closed) > 1:
        raise Unusable("parse_error", f"{len(closed)} fenced blocks, and nothing says which is the answer")
    return closed[0] if closed else text


def called(row: Row, attempt: Attempt) -> str:
    """The arguments of the tool that was to be called, as JSON; one call, no more."""
    name, key = task_row.field(row, "tool_name"), task_row.field(row, "tool_payload_key")
    calls = replies.calls(attempt.response)
    fitting = [call for call in calls if name is None or call.name == name]
    if not fitting:
        raise Unusable("no_tool_call", f"{calls[0].name[:80]!r} was called" if calls else "no tool was called")
    if len(calls) > 1:
        raise Unusable("several_calls", f"{len(calls)} calls, and nothing says which is the answer")
    arguments: Any = fitting[0].arguments
    if arguments is None:
        raise Unusable("parse_error", fitting[0].problem[:LONGEST])
    if key:
        if set(arguments) != {key}:
            raise Unusable("schema_error", f"the arguments are not wrapped in {key!r}")
        arguments = arguments[key]
    return msgspec.json.encode(arguments).decode()


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
    class Loader(yaml.SafeLoader):
        def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
            content: dict[Any, Any] = super().construct_mapping(node, deep)
            if len(content) < len(node.value):
                raise ValueError("a key stands twice in one mapping")
            if not all(isinstance(key, str) for key in content):
                raise ValueError("a key is not a text")
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
    return yaml.load(text, Loader)


# The core schema of YAML 1.2: kind to its pattern, the signs it begins with, and what it means. Patterns are
# tried in this order: a whole number is also a decimal one.
CORE: dict[str, tuple[str, Sequence[str], Callable[[str], Any]]] = {
    "null": (r"null|Null|NULL|~|", ("n", "N", "~", ""), lambda text: None),
    "bool": (r"true|True|TRUE|false|False|FALSE", "tTfF", lambda text: text.lower() == "true"),
    "int": (
        r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789",
        lambda text: int(text, {"0o": 8, "0x": 16}.get(text[:2], 10)),
    ),
    "float": (
        r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        "-+.0123456789", lambda text: float(text.lower().replace(".inf", "inf").replace(".nan", "nan")),
    ),
}  # fmt: skip
READERS: dict[str, Callable[[str], Any]] = {
    "json": read_json, "yaml": read_yaml,  # of TOML the dates become texts, which is what a JSON Schema can speak of
    "toml": lambda text: json.loads(json.dumps(tomllib.loads(text), default=lambda date: date.isoformat())),
}  # fmt: skip


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        raise ValueError("a key stands twice in one object")
    return content


def _refused(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")
