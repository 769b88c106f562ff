"""Hold the arguments of calls against the schemas that declare them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec

from blade import events
from blade.model import Call

_NAMED = frozenset(("properties", "$defs", "definitions", "dependentSchemas"))  # their keys are names
_AS_IS = frozenset(("enum", "const", "required", "type"))
# A pattern from a row can take for ever to match, a foreign $ref can reach into the network.
_DROPPED = frozenset(("pattern", "patternProperties", "format", "$id", "$schema", "default", "examples"))
_MAX_DEPTH = 30
_MAX_ARGUMENTS = 100_000  # characters of arguments that are still checked


def declared_schema(declared: Any) -> Mapping[str, Any] | None:
    """The JSON schema of a declared tool's arguments; None if it declares none."""
    for key in ("parameters", "input_schema", "inputSchema"):
        found = declared.get(key) if isinstance(declared, Mapping) else None
        if isinstance(found, Mapping) and found:
            return found
    return None


class Wrong(msgspec.Struct, frozen=True):
    """The first thing that is wrong with some arguments."""

    field: str  # dotted path inside the arguments; empty for the arguments as a whole
    what: str  # missing, extra, type, value
    message: str


def wrong(call: Call, declared: Any) -> Wrong | None:
    """What a call's arguments have against their schema; None if nothing, or if there is none."""
    schema = declared_schema(declared)
    arguments = {} if call.arguments is None and not call.raw.strip() else call.arguments
    if schema is None or not isinstance(arguments, Mapping) or len(call.raw) > _MAX_ARGUMENTS:
        return None
    if _plainly_valid(schema, arguments, 0):
        return None
    validator = _validator(events.canonical(schema))
    if validator is None:
        return None
    try:
        first = min(validator.iter_errors(arguments), key=_order, default=None)
    except Exception:  # a schema that refers to itself, or is none
        return None
    return None if first is None else _told(first)


def is_valid(call: Call, declared: Any) -> bool:
    """Whether the schema allows the call; without a schema, whether its arguments are an object."""
    if isinstance(call.arguments, Mapping):
        return wrong(call, declared) is None
    return not call.raw.strip() and wrong(call, declared) is None


_PYTHON: dict[str, type | tuple[type, ...]] = {
    "string": str, "integer": int, "number": (int, float), "boolean": bool, "array": list, "object": dict,
    "null": type(None),
}  # fmt: skip
_JUDGED = frozenset(("type", "properties", "required", "additionalProperties", "items", "enum"))
_SAYS_NOTHING = frozenset(("description", "title", *_DROPPED))


def _plainly_valid(schema: Any, value: Any, depth: int) -> bool:
    """Whether a value surely keeps to a schema of the usual kind: spares most calls the full validation.

    False says nothing: jsonschema judges those.
    """
    if not isinstance(schema, dict) or depth > _MAX_DEPTH or not schema.keys() <= _JUDGED | _SAYS_NOTHING:
        return False
    if "type" in schema and not _is_of(value, schema["type"]):
        return False
    if "enum" in schema and not (isinstance(value, str) and _has(schema["enum"], value)):
        return False
    if isinstance(value, list):
        items = schema.get("items")
        return items is None or all(_plainly_valid(items, one, depth + 1) for one in value)
    if not isinstance(value, dict):
        return True
    known, required = schema.get("properties", {}), schema.get("required", [])
    if not isinstance(known, dict) or not isinstance(required, list):
        return False
    if not all(isinstance(name, str) and name in value for name in required):
        return False
    if schema.get("additionalProperties", True) is not True and not value.keys() <= known.keys():
        return False
    return all(_plainly_valid(known[key], one, depth + 1) for key, one in value.items() if key in known)


def _has(values: Any, value: str) -> bool:
    return isinstance(values, list) and value in values


def _is_of(value: Any, name: Any) -> bool:
    found = _PYTHON.get(name) if isinstance(name, str) else None
    return (
        found is not None and isinstance(value, found) and (not isinstance(value, bool) or name == "boolean")
    )


@lru_cache(maxsize=2000)
def _validator(schema: str) -> Any:
    """The validator of a schema in its one spelling; None if it is no schema."""
    import jsonschema
    from referencing import Registry

    try:
        return jsonschema.Draft202012Validator(_cleaned(msgspec.json.decode(schema), 0), registry=Registry())
    except Exception:  # schemas are foreign text
        return None


def _cleaned(schema: Any, depth: int) -> Any:
    if depth > _MAX_DEPTH:
        return True
    if isinstance(schema, list):
        return [_cleaned(inner, depth + 1) for inner in schema]
    if not isinstance(schema, dict):
        return schema
    found: dict[str, Any] = {}
    for key, value in schema.items():
        if key in _DROPPED or (key == "$ref" and not str(value).startswith("#/")):
            continue
        if key in _NAMED and isinstance(value, dict):
            found[key] = {name: _cleaned(inner, depth + 1) for name, inner in value.items()}
        else:
            found[key] = value if key in _AS_IS else _cleaned(value, depth + 1)
    return found


_WHATS = {
    "required": "missing", "dependentRequired": "missing", "additionalProperties": "extra",
    "unevaluatedProperties": "extra", "type": "type", "enum": "value", "const": "value",
}  # fmt: skip


def _order(error: Any) -> tuple[int, str, str]:
    """Of several errors the plainest first: what is missing, then types, then values."""
    whats = ("missing", "type", "value", "extra")
    what = _WHATS.get(str(error.validator), "value")
    return whats.index(what), ".".join(map(str, error.absolute_path)), str(error.message)[:200]


def _told(error: Any) -> Wrong:
    path = [str(part) for part in error.absolute_path if not isinstance(part, int)]
    what = _WHATS.get(str(error.validator), "value")
    if what == "missing" and isinstance(error.instance, Mapping):
        path += [
            name for name in error.validator_value if isinstance(name, str) and name not in error.instance
        ][:1]
    elif what == "extra" and isinstance(error.instance, Mapping):
        known = error.schema.get("properties") or {}
        path += sorted(str(name) for name in error.instance if name not in known)[:1]
    return Wrong(".".join(path), what, str(error.message)[:160])
