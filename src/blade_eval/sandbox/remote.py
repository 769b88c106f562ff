"""Names and objects of a solution that is in another box, for tests that use them.

Calls, attributes and iteration are asked of the solution, and plain data or the number of an object comes
back. What the tests compare with is never judged by the solution's own code: an object equals nothing that
is plain. The file also lies in the box, so it imports almost nothing.
"""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

from blade_eval.sandbox import names, plain

Ask = Callable[[dict[str, Any]], dict[str, Any]]
OUT = sys.stdout
NOTHING = plain.encoded([[], {}])
# What tests ask of plain values. A function that gives an object of its own in place of a list or a text does
# not get to answer `x in result` or `result.issubset(x)` by itself.
PLAIN = {
    name for kind in (str, list, dict, set, tuple, int, float, bytes) for name in dir(kind)
} | {"all", "any", "equals", "item", "tolist"}  # fmt: skip


class Unreachable(BaseException):
    """The tests ask for something of the solution that cannot cross; no `except Exception` takes it."""


class Raised(Exception):
    """The solution raised what this side has no class for."""


class Remote:
    """A name of the solution, or an object it made: only the solution's box has it."""

    def __init__(self, target: str | int, root: str, ask: Ask) -> None:
        object.__setattr__(self, "_blade", (target, root, ask))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return asked(self, "call", args, kwargs)

    def __getattr__(self, attribute: str) -> Any:
        _, root, _ = self._blade
        if attribute.startswith("__") and _is_meant(self):
            raise Unreachable(f"the tests use {root}.{attribute}")
        if attribute.startswith("__") or (attribute in PLAIN and not _is_of_class(self)):
            raise AttributeError(f"{root} gave no plain data, so {attribute} is not asked of it")
        return asked(self, "get", (attribute,), {})

    def __setattr__(self, attribute: str, value: Any) -> None:
        asked(self, "set", (attribute, value), {})

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Remote):
            return asked(self, "eq", (other,), {}) is True
        if _is_meant(self):
            raise Unreachable(f"the tests compare {self._blade[1]} with plain data")
        return False

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __len__(self) -> int:
        return int(asked(self, "len", (), {}))

    def __bool__(self) -> bool:
        return asked(self, "bool", (), {}) is True

    def __iter__(self) -> Iterator[Any]:
        return iter(asked(self, "iter", (), {}))

    def __str__(self) -> str:
        return str(asked(self, "str", (), {}))

    def __repr__(self) -> str:
        return str(asked(self, "repr", (), {}))

    def __instancecheck__(self, instance: Any) -> bool:
        return asked(self, "instance", (instance,), {}) is True


def _is_meant(remote: Remote) -> bool:
    """Is it no result, but a name of the solution, or what the tests made themselves by calling a class?"""
    target, root, _ = remote._blade
    return isinstance(target, str) or root.endswith("()")


def _is_of_class(remote: Remote) -> bool:
    """Do the tests have it by the name of a class? Then its methods are asked for, whatever their names."""
    target, root, _ = remote._blade
    return isinstance(target, str) or root[:1].isupper()


def _refusing(operator: str) -> Callable[..., Any]:
    def refused(self: Remote, *_: Any) -> Any:
        root = self._blade[1]
        if _is_meant(self):
            raise Unreachable(f"the tests use {operator} of {root}")
        raise TypeError(f"{root} gave no plain data, and {operator} is not asked of anything else")

    return refused


for _name in (
    "add radd sub rsub mul rmul truediv rtruediv floordiv rfloordiv mod rmod pow rpow matmul rmatmul and rand"
    " or ror xor rxor neg pos abs invert lt le gt ge contains getitem setitem delitem hash int float index"
    " round enter exit aenter aexit await aiter anext mro_entries subclasscheck reversed"
).split():
    setattr(Remote, f"__{_name}__", _refusing(f"__{_name}__"))


def asked(remote: Remote, what: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What the solution's box answers; what it did to lists, dicts and sets it was given is done here."""
    target, root, ask = remote._blade
    try:
        given = plain.encoded([list(args), kwargs], _numbered)
    except plain.TooMuch as fault:  # which the solution could have made, to be tested in another way
        raise Raised(f"{root} is called with {fault}") from fault
    except plain.NotPlain as fault:
        raise Unreachable(f"{root} is called with {fault}") from fault
    hears = sys.stdout is not OUT
    reply = ask({"ask": what, "on": target, "given": given, "hears": hears})

    def thing(kind: str, number: int) -> Any:
        # An object that the tests made themselves, by calling a class; what its methods give is a result.
        is_made = isinstance(target, str) and root[:1].isupper() and what == "call"
        made = Remote(number, f"{root}()" if is_made else root.removesuffix("()"), ask)
        return _later(made) if kind == "coroutine" else made

    try:
        theirs, named = plain.decoded(reply.get("args") or NOTHING, thing)
        value = plain.decoded(reply["value"], thing) if "value" in reply else None
        pairs = [*zip(args, theirs, strict=False), *((kwargs[key], named.get(key)) for key in kwargs)]
    except (ValueError, TypeError, AttributeError) as fault:
        raise Raised("something else was written where the answer belongs") from fault
    for mine, changed in pairs:
        _changed(mine, changed)
    if hears and isinstance(reply.get("printed"), str):
        sys.stdout.write(reply["printed"])
    if "raised" in reply:
        raise _same(reply["raised"])
    return value


LATER: dict[Coroutine[Any, Any, Any], Remote] = {}


def _later(remote: Remote) -> Coroutine[Any, Any, Any]:
    async def awaited() -> Any:
        return asked(remote, "await", (), {})

    made = awaited()
    LATER[made] = remote  # to be known again when the tests pass it on
    return made


def _numbered(value: Any) -> dict[str, Any] | None:
    if isinstance(value, Coroutine):
        value = LATER.get(value)
    if not isinstance(value, Remote):
        return None
    target = value._blade[0]
    return {"name" if isinstance(target, str) else "thing": target}


def _changed(mine: Any, theirs: Any) -> None:
    if isinstance(mine, list) and isinstance(theirs, list):
        mine[:] = theirs
    elif isinstance(mine, dict | set) and isinstance(theirs, type(mine)):
        mine.clear()
        mine.update(theirs)


LOCAL: dict[str, type[Exception]] = {}  # for names of the solution that the tests catch


def _same(raised: dict[str, Any]) -> Exception:
    """The exception here: of the class that the tests catch by its name, of a built-in one, or `Raised`."""
    message = str(raised.get("message"))
    line = [str(name) for name in raised.get("line") or [raised.get("type")]]
    own = next((LOCAL[name] for name in line if name in LOCAL), None)
    known = (getattr(builtins, name, None) for name in line)
    native = next(
        (kind for kind in known if isinstance(kind, type) and issubclass(kind, Exception)), Exception
    )
    try:
        if own is not None:
            both: type[Exception] = own if native is Exception else type(line[0], (own, native), {})
            return both(message)
        if native is not Exception or line[0] == "Exception":
            fault = native(message)
            fault.__cause__ = Raised(raised.get("type"))
            return fault
    except TypeError:  # a class that wants more than a message, or two that do not go together
        if own is not None:
            return own(message)
    return Raised(f"{raised.get('type')}: {message}")


def bound(source: str, space: dict[str, Any], ask: Ask) -> None:
    """Give tests the solution's names that they use: plain values as such, all else to be asked for."""
    tree = ast.parse(source)
    _no_identity(tree)
    read, caught = set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            read.add(node.id)
        elif isinstance(node, ast.ExceptHandler) and node.type is not None:
            caught |= {part.id for part in ast.walk(node.type) if isinstance(part, ast.Name)}
        elif (
            isinstance(node, ast.Call)
            and node.args
            and _ends(node.func).startswith(("raises", "assertRaises"))
        ):
            caught |= {part.id for part in ast.walk(node.args[0]) if isinstance(part, ast.Name)}
    for name in sorted(read - space.keys() - set(dir(builtins))):
        if name in caught:
            space[name] = LOCAL.setdefault(name, type(name, (Raised,), {}))
        else:
            space[name] = found(name, ask)


def found(name: str, ask: Ask) -> Any:
    """The plain value that a name of the solution stands for, or what asks for it."""
    remote = Remote(name, name, ask)
    reply = ask({"ask": "value", "on": name, "given": NOTHING, "hears": False})
    if "value" not in reply:
        # The solution's own `lcm` comes before the customary one.
        return names.member(name) if name in names.HOME else remote
    numbers: list[int] = []
    try:
        value = plain.decoded(reply["value"], lambda _, number: numbers.append(number))
    except ValueError:
        return remote
    return remote if numbers else value


def _ends(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _no_identity(tree: ast.AST) -> None:
    """What crossed is another object: `is` between two values would always say no."""
    for node in ast.walk(tree):
        sides: list[ast.expr] = []
        if isinstance(node, ast.Call) and _ends(node.func) in ("assertIs", "assertIsNot"):
            sides = node.args[:2]
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Is | ast.IsNot):
            sides = [node.left, node.comparators[0]]
        named = [side.func if isinstance(side, ast.Call) else side for side in sides]
        if named and all(isinstance(side, ast.Name) and not hasattr(builtins, side.id) for side in named):
            raise Unreachable("the tests ask whether two values are the same object")
