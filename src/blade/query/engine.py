"""Evaluate an engine query: what the engine concludes anew from the rows, by list, keys and field.

`engine.losses(run='a', cause='KG').lost`, `engine.comparisons(candidate='b').bridge(side='model').value`,
`engine.gaps.count`, `engine.accuracy['date']`; such terms may be added, subtracted, multiplied and divided.
A key may be one of several, `cause=('KG', 'BI')`. What matches nothing is refused, unless the query says
what that counts for: `engine.losses(run='a', cause='IR').lost or 0`.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from functools import cache
from itertools import islice
from typing import Any, NamedTuple, TypeAlias, get_args, get_origin, get_type_hints

import msgspec

from blade.errors import UsageError
from blade.model import MARGIN, Matrix, Report, Series

Value: TypeAlias = float | int | str | bool | None

HINT = "an engine query is engine.LIST(key=value, …).FIELD, as in engine.losses(run='a', cause='KG').lost"
LONGEST = 20_000  # characters of a query: names of tasks and tools may be long
OPERATIONS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv
}  # fmt: skip
COMPARED = ("comparisons", "matrix", "series")  # what only several runs have
_OF_RUNS = ("run", "baseline", "candidate")  # keys that must name a run that was given, even before `or 0`


class Selection(NamedTuple):
    """Entries of a list, and the annotation of one: without any it still says which fields there are."""

    entries: tuple[Any, ...]
    kind: Any
    names: tuple[str, ...] = ()  # of the entries, where they have some: `engine.matrix.deltas['b']['a']`


class Wish(msgspec.Struct, frozen=True):
    """The comparison that a query asks about: with which baseline, within which margin, how deep."""

    baseline: str | None = None
    margin: float = MARGIN
    quick: bool = False


class _Nothing(UsageError):
    """A selection that matches nothing; `is_final` where no `or 0` may stand in for it."""

    def __init__(self, message: str, is_final: bool = False, hint: str = HINT) -> None:
        super().__init__(message, hint, "bad-query")
        self.is_final = is_final


def evaluate(query: str, report: Report) -> Value:
    """What the query gives on this report: a number, a text, or None where the engine has no value."""
    try:
        return _single(_evaluated(_parsed(query), report))
    except ZeroDivisionError as error:
        raise _refused("the engine query divides by 0") from error
    except (RecursionError, MemoryError) as error:
        raise _refused(f"{query[:200]!r} is no engine query") from error


def wish(query: str, runs: Sequence[str]) -> Wish | None:
    """The comparison of these runs that a query asks about; None where it asks about none."""
    tree = _parsed(query)
    lists = [root.attr for root in _roots(tree) if root.attr in COMPARED]
    if not lists:
        return None
    _refuse_single(runs, lists[0])
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    keys = {
        str(keyword.arg): keyword.value.value
        for call in calls
        if any(root.attr in COMPARED for root in _roots(call.func, 1))
        for keyword in call.keywords
        if keyword.arg in Wish.__struct_fields__ and isinstance(keyword.value, ast.Constant)
    }
    try:
        return msgspec.convert(keys, Wish)
    except msgspec.ValidationError as error:
        raise _refused(f"a comparison is named by its runs, a margin and quick: {error}") from error


def _roots(tree: ast.AST, most: int | None = None) -> Iterator[ast.Attribute]:
    """`engine.LIST`, wherever it stands in a query, or among its first nodes."""
    for node in islice(ast.walk(tree), most):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "engine":
            yield node


def _parsed(query: str) -> ast.expr:
    if len(query) > LONGEST:
        raise _refused(f"the engine query is longer than {LONGEST:,} characters")
    try:
        return ast.parse(query.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise _refused(f"{query[:200]!r} is no engine query") from error


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
        case ast.BoolOp(op=ast.Or(), values=[left, ast.Constant(value=int() | float() as number)]):
            try:
                return _single(_evaluated(left, report))
            except _Nothing as nothing:
                if nothing.is_final:
                    raise
                return number
        case ast.Attribute(value=owner, attr=name):
            return _attribute(_evaluated(owner, report), name, owner)
        case ast.Subscript(value=owner, slice=ast.Constant(value=int() | str() as place)):
            return _item(_evaluated(owner, report), place, owner)
        case ast.Call(func=owner, args=[], keywords=keywords):
            return _selected(_evaluated(owner, report), keywords, owner, report)
    raise _refused(f"{_text(node)!r} cannot stand in an engine query")


def _text(node: ast.expr) -> str:
    return ast.unparse(node)[:200]


def _number(value: Any) -> float:
    number = _single(value)
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise _refused(f"{str(number)[:80]!r} is no number to calculate with")
    return number


def _attribute(owner: Any, name: str, node: ast.expr) -> Any:
    """The field of a noun, or of every entry of a selection; lists of several entries become one."""
    if name == "count" and isinstance(owner, Selection | Mapping):
        return len(owner.entries if isinstance(owner, Selection) else owner)
    if isinstance(owner, Report) and name in COMPARED:
        _refuse_single([run.name for run in owner.runs], name)
    if owner is None:
        raise _Nothing(f"{_text(node)} has no value here, so there is no {name!r} in it", is_final=True)
    if not isinstance(owner, Selection):
        kind: Any = type(owner)
        value = _wrapped(_field(owner, name), _annotation(kind, name))
        names = _names(owner, name)
        return value._replace(names=names) if names else value
    kind = _annotation(owner.kind, name)
    if not owner.entries:
        raise _Nothing(f"nothing matches: {_text(node)} is empty")
    fields = [_field(entry, name) for entry in owner.entries]
    if all(isinstance(field, tuple) for field in fields):
        return _wrapped(tuple(entry for field in fields for entry in field), kind)
    return fields[0] if len(fields) == 1 else Selection(tuple(fields), kind)


def _refuse_single(runs: Sequence[str], name: str) -> None:
    """Refuse what takes several runs where there is one: an empty comparison would read as no change."""
    if len(runs) < 2:
        only = f"only {runs[0][:80]} was given" if runs else "none was given"
        hint = 'name them all, the baseline first: blade query BASELINE CANDIDATE "…"'
        raise _Nothing(f"engine.{name} takes two runs or more, and {only}", is_final=True, hint=hint)


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


def _names(owner: Any, name: str) -> tuple[str, ...]:
    """What the entries of a list of tuples are called: the runs of a grid, the first of each pair."""
    if isinstance(owner, Matrix) and name in ("deltas", "verdicts", "p_adjusted"):
        return owner.runs
    if (type(owner), name) in ((Matrix, "settings"), (Series, "learned"), (Series, "forgotten")):
        return tuple(first for first, _ in getattr(owner, name))
    return ()


def _item(owner: Any, place: int | str, node: ast.expr) -> Any:
    if isinstance(owner, Selection) and isinstance(place, str) and place in owner.names:
        entry = owner.entries[owner.names.index(place)]
        if not isinstance(entry, tuple):
            return entry
        return entry[1] if entry[:1] == (place,) else Selection(entry, Any, owner.names)
    if isinstance(owner, Selection) and isinstance(place, int) and 0 <= place < len(owner.entries):
        return _wrapped(owner.entries[place], owner.kind)
    if isinstance(owner, Mapping) and place in owner:
        return _wrapped(owner[place], Any)
    raise _refused(f"there is no entry {str(place)[:80]!r} in {_text(node)}")


def _selected(owner: Any, keywords: list[ast.keyword], node: ast.expr, report: Report) -> Any:
    if isinstance(owner, Matrix) and [keyword.arg for keyword in keywords] == ["baseline"]:
        wanted = _constants(keywords[0].value)
        if owner.runs[:1] == wanted:
            return owner
        raise _Nothing(f"nothing matches baseline={wanted[0]!r} in {_text(node)}", is_final=True)
    if not isinstance(owner, Selection):
        raise _refused(f"keys select from a list, and {_text(node)} is none")
    entries = owner.entries
    for keyword in keywords:
        if keyword.arg is None:
            raise _refused("the keys of an engine query are names with plain values")
        _annotation(owner.kind, keyword.arg)
        wanted = _constants(keyword.value)
        known = [_plain(_field(entry, keyword.arg)) for entry in entries]
        entries = tuple(entry for entry, value in zip(entries, known, strict=True) if value in wanted)
        if not entries:
            few = ", ".join(repr(value)[:40] for value in list(dict.fromkeys(map(str, known)))[:5])
            message = f"nothing matches {keyword.arg}={ast.unparse(keyword.value)[:80]} in {_text(node)}"
            message += f": there are {few}" if few else ", which is empty"
            raise _Nothing(message, keyword.arg in _OF_RUNS and not {run.name for run in report.runs} & {*wanted})
    return Selection(entries, owner.kind)


def _constants(node: ast.expr) -> tuple[Any, ...]:
    """The value that a key may have, or the several ones."""
    parts = node.elts if isinstance(node, ast.Tuple) else [node]
    if not parts or not all(isinstance(part, ast.Constant) for part in parts):
        raise _refused("the keys of an engine query are names with plain values")
    return tuple(part.value for part in parts if isinstance(part, ast.Constant))


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, Enum) else value


def _single(value: Any) -> Value:
    """One value: a field, or the sum of the numbers of several entries."""
    values = [_plain(entry) for entry in (value.entries if isinstance(value, Selection) else (value,))]
    if len(values) == 1 and (values[0] is None or isinstance(values[0], bool | int | float | str)):
        return values[0]
    numbers = [entry for entry in values if isinstance(entry, int | float) and not isinstance(entry, bool)]
    if numbers and len(numbers) + values.count(None) == len(values):
        return sum(numbers) if all(isinstance(entry, int) for entry in numbers) else math.fsum(numbers)
    what = "several values" if values else "nothing"
    raise _refused(f"the engine query gives {what}: name keys and a field")
