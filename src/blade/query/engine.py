"""Evaluate an engine query: what the engine concludes anew from the rows, by list, keys and field.

`engine.losses(run='a', cause='KG').lost`, `engine.comparisons(candidate='b').bridge[2].value`,
`engine.gaps.count`, `engine.accuracy['date']`; such terms may be added, subtracted, multiplied and divided.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache
from typing import Any, TypeAlias, get_args, get_origin, get_type_hints

import msgspec

from blade.errors import UsageError
from blade.model import Report

Value: TypeAlias = float | int | str | bool | None

HINT = "an engine query is engine.LIST(key=value, …).FIELD, as in engine.losses(run='a', cause='KG').lost"
LONGEST = 20_000  # characters of a query: names of tasks and tools may be long
NUMBERS = (int, float)  # of none of these the sum is 0; where a value may be missing, nothing is
OPERATIONS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv
}  # fmt: skip


class Selection(msgspec.Struct, frozen=True):
    """Entries of a list, and the annotation of one: without any it still says which fields there are."""

    entries: tuple[Any, ...]
    kind: Any


def evaluate(query: str, report: Report) -> Value:
    """What the query gives on this report: a number, a text, or None where the engine has no value."""
    if len(query) > LONGEST:
        raise _refused(f"the engine query is longer than {LONGEST:,} characters")
    try:
        tree = ast.parse(query.strip(), mode="eval")
        return _single(_evaluated(tree.body, report))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise _refused(f"{query[:200]!r} is no engine query") from error
    except ZeroDivisionError as error:
        raise _refused("the engine query divides by 0") from error


def _refused(message: str) -> UsageError:
    return UsageError(message, HINT, "bad-query")


def _evaluated(node: ast.expr, report: Report) -> Any:
    match node:
        case ast.Name(id="engine"):
            return report
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return number
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in OPERATIONS:
            return OPERATIONS[type(sign)](*(_number(_evaluated(side, report)) for side in (left, right)))
        case ast.Attribute(value=owner, attr=name):
            return _attribute(_evaluated(owner, report), name)
        case ast.Subscript(value=owner, slice=ast.Constant(value=int() | str() as place)):
            return _item(_evaluated(owner, report), place)
        case ast.Call(func=owner, args=[], keywords=keywords):
            return _selected(_evaluated(owner, report), keywords)
    raise _refused(f"{ast.unparse(node)[:200]!r} cannot stand in an engine query")


def _number(value: Any) -> float:
    number = _single(value)
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise _refused(f"{str(number)[:80]!r} is no number to calculate with")
    return number


def _attribute(owner: Any, name: str) -> Any:
    """The field of a noun, or of every entry of a selection; lists of several entries become one."""
    if name == "count" and isinstance(owner, Selection | Mapping):
        return len(owner.entries if isinstance(owner, Selection) else owner)
    if not isinstance(owner, Selection):
        kind: Any = type(owner)
        return _wrapped(_field(owner, name), _annotation(kind, name))
    fields, kind = [_field(entry, name) for entry in owner.entries], _annotation(owner.kind, name)
    if fields and all(isinstance(field, tuple) for field in fields):
        return _wrapped(tuple(entry for field in fields for entry in field), kind)
    return fields[0] if len(fields) == 1 else Selection(tuple(fields), kind)


def _field(entry: Any, name: str) -> Any:
    if name not in getattr(entry, "__struct_fields__", ()):
        raise _refused(f"there is no {name!r} in {type(entry).__name__}")
    return getattr(entry, name)


@cache
def _annotation(kind: Any, name: str) -> Any:
    if not (isinstance(kind, type) and issubclass(kind, msgspec.Struct)):
        return Any
    if name not in kind.__struct_fields__:
        raise _refused(f"there is no {name!r} in {kind.__name__}")
    return get_type_hints(kind)[name]


def _wrapped(value: Any, kind: Any) -> Any:
    """A list as a selection of all its entries; anything else as it is."""
    element = get_args(kind)[0] if get_origin(kind) is tuple else Any
    return Selection(tuple(value), element) if isinstance(value, tuple | list) else value


def _item(owner: Any, place: int | str) -> Any:
    if isinstance(owner, Selection) and isinstance(place, int) and 0 <= place < len(owner.entries):
        return _wrapped(owner.entries[place], owner.kind)
    if isinstance(owner, Mapping) and place in owner:
        return _wrapped(owner[place], Any)
    raise _refused(f"there is no entry {place!r}")


def _selected(owner: Any, keywords: list[ast.keyword]) -> Selection:
    if not isinstance(owner, Selection):
        raise _refused("keys select from a list, and this is none")
    entries = owner.entries
    for keyword in keywords:
        name, constant = keyword.arg, keyword.value
        if name is None or not isinstance(constant, ast.Constant):
            raise _refused("the keys of an engine query are names with plain values")
        _annotation(owner.kind, name)
        entries = tuple(entry for entry in entries if _plain(_field(entry, name)) == constant.value)
    return Selection(entries, owner.kind)


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, Enum) else value


def _single(value: Any) -> Value:
    """One value: a field, the sum of the numbers of several entries, 0 over no entry."""
    values = [_plain(entry) for entry in (value.entries if isinstance(value, Selection) else (value,))]
    if len(values) == 1 and (values[0] is None or isinstance(values[0], bool | int | float | str)):
        return values[0]
    numbers = [entry for entry in values if isinstance(entry, int | float) and not isinstance(entry, bool)]
    if len(numbers) + values.count(None) == len(values) and (numbers or value.kind in NUMBERS):
        return sum(numbers) if all(isinstance(entry, int) for entry in numbers) else math.fsum(numbers)
    raise _refused(
        f"the engine query gives {'several values' if values else 'nothing'}: name keys and a field"
    )
