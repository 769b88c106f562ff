"""Load a solution in a box and answer calls to it, or run tests that call it in another box.

It lies in the box with `plain.py` and `names.py`, and speaks in lines of JSON over what were standard input and
output. Solution and tests are never in the same process, unless somebody asks for that. Where they are apart,
the tests hold a `Remote` for each name and object of the solution: calls, attributes and iteration are asked of
the solution, and plain data or the number of an object comes back. What the tests expect is never judged by the
solution's own code: an object equals nothing that is plain. Nothing that the solution does makes a test
unreachable; what it gives and cannot be used as the tests use it is its failure.
"""

from __future__ import annotations

import builtins
import contextlib
import io
import json
import operator
import os
import sys
import traceback
import types
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

from blade_eval.sandbox import names, plain

MODULE, TESTS = "solution", "tests"
RUN, COMPILE = exec, compile  # taken before a solution can put others in their place
TOLD = 2000  # characters of a message
Ask = Callable[[dict[str, Any]], dict[str, Any]]


class Channel:
    """Lines of JSON on descriptors that a print does not reach."""

    def __init__(self) -> None:
        self.incoming = os.fdopen(os.dup(0), "rb")
        self.outgoing = os.dup(1)
        nothing = os.open("/dev/null", os.O_RDONLY)
        os.dup2(nothing, 0)
        os.dup2(2, 1)
        os.close(nothing)

    def next(self) -> dict[str, Any]:
        line = self.incoming.readline()
        if not line:
            os._exit(0)
        message: dict[str, Any] = json.loads(line)
        return message

    def send(self, message: dict[str, Any]) -> None:
        data = json.dumps(message).encode() + b"\n"
        while data:
            data = data[os.write(self.outgoing, data) :]

    def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        """Ask the solution's box, by way of whoever runs both."""
        self.send(message)
        return self.next()


def _fault(fault: BaseException) -> dict[str, Any]:
    shown = "".join(traceback.format_exception(fault))[-TOLD:]
    try:
        message = str(fault)[:TOLD]
    except BaseException:
        message = ""
    shown, message = (text.encode("utf-8", "replace").decode() for text in (shown, message))
    line = [kind.__name__ for kind in type(fault).__mro__[:20]]
    return {"type": type(fault).__name__, "message": message, "trace": shown, "line": line}


def _load(module: types.ModuleType, before: str, code: str, entry: str | None) -> None:
    if before:
        try:
            RUN(COMPILE(before, "<prompt>", "exec"), module.__dict__)
        except Exception:
            pass  # what was asked is not always a program
        module.__dict__.pop(entry or "", None)
    compiled = COMPILE(code, "solution.py", "exec")
    names.provide(compiled, module.__dict__)
    RUN(compiled, module.__dict__)


# ---- The solution's side: answer what is asked ---------------------------------------------------


def _target(module: types.ModuleType, name: str) -> Any:
    holder = getattr(module, "Solution", None)
    if isinstance(holder, type) and hasattr(holder, name):
        return getattr(holder(), name)
    return getattr(module, name)


def _calling(method: str) -> Callable[..., Any]:
    return lambda it, *args: getattr(type(it), method)(it, *args)


BINARY = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift lt le gt ge".split()
UNARY = "neg pos abs invert".split()
FUNCTIONS = {  # what Python calls a method of two underscores for
    **{name: getattr(operator, f"__{name}__") for name in (*BINARY, *UNARY, "contains", "getitem", "delitem", "setitem")},
    "hash": hash, "int": int, "float": float, "index": operator.index, "round": round, "reversed": reversed,
    "enter": _calling("__enter__"), "exit": _calling("__exit__"),
}  # fmt: skip
HELD: list[Any] = []  # objects of the solution that the tests know by their numbers
ASKED: dict[str, Callable[..., Any]] = {
    "value": lambda it: it,
    "touch": lambda it: None,
    "call": lambda it, *args, **kwargs: it(*args, **kwargs),
    "get": getattr,
    "set": setattr,
    "eq": lambda it, other: bool(it == other),
    "len": len,
    "bool": bool,
    "iter": iter,
    "str": str,
    "repr": repr,
    "instance": lambda it, other: isinstance(other, it),
    "subclass": lambda it, other: issubclass(other, it),
    "operator": lambda it, name, *others: FUNCTIONS[name](it, *others),
    "reflected": lambda it, name, other: FUNCTIONS[name](other, it),
    "await": lambda it: __import__("asyncio").run(it),  # which takes long to load
}


def _numbered(value: Any) -> dict[str, int]:
    HELD.append(value)
    return {"coroutine" if isinstance(value, types.CoroutineType) else "thing": len(HELD) - 1}


def _answered(module: types.ModuleType, message: dict[str, Any]) -> dict[str, Any]:
    if "load" in message:
        try:
            _load(module, message.get("before", ""), message["load"], message.get("entry"))
        except BaseException as fault:  # also SystemExit: leaving is not an answer
            return {"raised": _fault(fault)}
        return {"loaded": True}
    handles: plain.Handles = {"thing": HELD.__getitem__, "name": lambda name: _target(module, name)}
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    answer: dict[str, Any] = {}
    heard = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="replace", write_through=True)
    with contextlib.redirect_stdout(heard) if message.get("hears") else contextlib.nullcontext():
        try:
            target = message["on"]
            it = handles["name" if isinstance(target, str) else "thing"](target)
            args, kwargs = plain.decoded(message["given"], handles)
            answer["value"] = plain.encoded(ASKED[message["ask"]](it, *args, **kwargs), _numbered)
        except plain.NotPlain as fault:
            answer["raised"] = {"type": "NotPlain", "message": f"returned {fault}, which is no plain data"}
        except BaseException as fault:
            answer["raised"] = _fault(fault)
    try:
        answer["args"] = plain.encoded([args, kwargs], _numbered)
    except BaseException as fault:
        answer.setdefault("raised", _fault(fault))
    if message.get("hears"):
        answer["printed"] = heard.buffer.getvalue().decode("utf-8", "replace")
    return answer


# ---- The tests' side: names and objects of a solution that is in another box -----------------------

OUT = sys.stdout
NOTHING = plain.encoded([[], {}])
# What tests ask of plain values. A function that gives an object of its own in place of a list or a text does
# not get to answer `x in result` or `result.issubset(x)` by itself.
PLAIN = {
    name for kind in (str, list, dict, set, tuple, int, float, bytes) for name in dir(kind)
} | {"all", "any", "equals", "item", "tolist"}  # fmt: skip
JUDGING = set("issubset issuperset isdisjoint startswith endswith count index find equals all any".split())
CLASSES: set[str] = set()  # names that the tests' own text uses as classes


class Unreachable(BaseException):
    """The tests hand over what cannot cross; no `except Exception` takes it."""


class Raised(Exception):
    """The solution raised what this side has no class for."""


class Remote:
    """A name of the solution, or an object it made: only the solution's box has it."""

    def __init__(self, target: str | int, root: str, ask: Ask) -> None:
        object.__setattr__(self, "_blade", (target, root, ask))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return asked(self, "call", args, kwargs)

    def __getattr__(self, attribute: str) -> Any:
        target, root, _ = self._blade
        is_of_class = isinstance(target, str) or root.rstrip("().") in CLASSES
        refused = JUDGING if root[:1].isupper() else PLAIN  # `Max(5)` may be a function or make an object
        if not is_of_class and (attribute.startswith("__") or attribute in refused):
            _touch(self)
            raise AttributeError(f"{root} gave no plain data, so {attribute} is not asked of it")
        return asked(self, "get", (attribute,))

    def __setattr__(self, attribute: str, value: Any) -> None:
        asked(self, "set", (attribute, value))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Remote):
            return asked(self, "eq", (other,)) is True
        _touch(self)
        return False

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return int(self.__blade_hash__())

    def __len__(self) -> int:
        return int(asked(self, "len"))

    def __bool__(self) -> bool:
        return asked(self, "bool") is True

    def __iter__(self) -> Iterator[Any]:
        return iter(asked(self, "iter"))

    def __str__(self) -> str:
        return str(asked(self, "str"))

    def __repr__(self) -> str:
        return str(asked(self, "repr"))

    def __instancecheck__(self, instance: Any) -> bool:
        return asked(self, "instance", (instance,)) is True

    def __subclasscheck__(self, other: Any) -> bool:
        return asked(self, "subclass", (other,)) is True

    def __exit__(self, kind: Any, *_: Any) -> None:
        self.__blade_exit__(None, None, None)  # what was raised here is not swallowed there


def _touch(remote: Remote) -> None:
    """Let whoever runs both know that the tests have used it: what follows is the solution's doing."""
    remote._blade[2]({"ask": "touch", "on": remote._blade[0], "given": NOTHING, "hears": False})


def _operator(name: str, how: str = "operator") -> Callable[..., Any]:
    """Ask for an operator, unless plain data that the tests expect would go to an object that was returned."""

    def method(self: Remote, *others: Any) -> Any:
        root = self._blade[1]
        are_objects = root[:1].isupper() and all(isinstance(other, Remote) for other in others)
        if root.removesuffix("()") not in CLASSES and (name == "hash" or not are_objects):
            _touch(self)
            raise TypeError(f"{root} gave no plain data, and {name} is not asked of anything else")
        return asked(self, how, (name, *others))

    return method


for _name in FUNCTIONS:
    setattr(Remote, f"__blade_{_name}__" if _name in ("hash", "exit") else f"__{_name}__", _operator(_name))
for _name in BINARY[:-4]:
    setattr(Remote, f"__r{_name}__", _operator(_name, "reflected"))


def asked(remote: Remote, what: str, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None) -> Any:
    """What the solution's box answers; what it did to lists, dicts and sets it was given is done here."""
    target, root, ask = remote._blade
    kwargs = kwargs or {}
    try:
        given = plain.encoded([list(args), kwargs], _named)
    except plain.TooMuch as fault:  # which the solution could have made, to be tested in another way
        raise Raised(f"{root} is called with {fault}") from fault
    except plain.NotPlain as fault:
        raise Unreachable(f"{root} is called with {fault}") from fault
    hears = sys.stdout is not OUT
    reply = ask({"ask": what, "on": target, "given": given, "hears": hears})

    def thing(number: int) -> Remote:
        # An object that the tests made themselves, by calling a class; what its methods give is a result.
        is_made = isinstance(target, str) and what == "call"
        return Remote(number, root.rstrip("().") + ("()" if is_made else "."), ask)

    handles = {"thing": thing, "coroutine": lambda number: _later(thing(number))}
    try:
        theirs, named = plain.decoded(reply.get("args") or NOTHING, handles)
        value = plain.decoded(reply["value"], handles) if "value" in reply else None
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
        return asked(remote, "await")

    coroutine = awaited()
    LATER[coroutine] = remote  # to be known again when the tests pass it on
    return coroutine


def _named(value: Any) -> dict[str, Any] | None:
    """What stands for a value of the tests that is not plain: the solution's own name or object."""
    if isinstance(value, BaseException):
        raise Raised("an exception is handed on to the solution, which may have raised it")
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
ENDS_LOOPS = {"StopIteration", "StopAsyncIteration"}  # crossing as they are, they would end a loop of the tests
CAUGHT: set[str] = set()  # names that the tests catch


def _same(raised: dict[str, Any]) -> Exception:
    """The exception here: of the class that the tests catch by its name, of a built-in one, or `Raised`."""
    message = str(raised.get("message"))
    line = [str(name) for name in raised.get("line") or [raised.get("type")]]
    own = next((LOCAL[name] for name in line if name in LOCAL), None)
    known = (getattr(builtins, name, None) for name in line if name not in ENDS_LOOPS - CAUGHT)
    natives = (kind for kind in known if isinstance(kind, type) and issubclass(kind, Exception))
    native = next(natives, Exception)
    try:
        if own is not None:
            both: type[Exception] = own if native is Exception else type(line[0], (own, native), {})
            return both(message)
        if native is not Exception or line[0] == "Exception":
            fault = native(message)
            fault.__cause__ = Raised(raised.get("type"))
            return fault
    except Exception:  # a class that wants more than a message, or two that do not go together
        if own is not None:
            return own(message)
    return Raised(f"{raised.get('type')}: {message}")


def _bind(sources: dict[str, str], space: dict[str, Any], ask: Ask) -> None:
    """Give tests the names that they use and do not define: the tests' own, or the solution's."""
    CAUGHT.update(name for name, source in sources.items() if source == "caught")
    for name, source in sources.items():
        if name in space:
            continue
        if source == "caught":
            if not hasattr(builtins, name):
                space[name] = LOCAL.setdefault(name, type(name, (Raised,), {}))
        elif source == "tests":
            space[name] = _of_tests(name)
        else:
            space[name] = _found(name, ask)


def _of_tests(name: str) -> Any:
    """What tests judge with comes from a library, never from the solution."""
    if name in names.ALIASES:
        return __import__(names.ALIASES[name])
    return names.member(name, names.JUDGED_BY if name in names.JUDGED_BY else names.HOME)


def _found(name: str, ask: Ask) -> Any:
    """The plain value that a name of the solution stands for, or what asks for it."""
    remote = Remote(name, name, ask)
    reply = ask({"ask": "value", "on": name, "given": NOTHING, "hears": False})
    if "value" not in reply:
        # The solution's own `lcm` comes before the customary one.
        return names.member(name, names.HOME) if name in names.HOME else remote
    numbers: list[int] = []
    handles = {"thing": numbers.append, "coroutine": numbers.append}
    try:
        value = plain.decoded(reply["value"], handles)
    except ValueError:
        return remote
    return remote if numbers else value


def _away(name: str, ask: Ask) -> Any:
    if name.startswith("__"):  # which the import itself looks for
        raise AttributeError(name)
    return _found(name, ask)


GUARDED: list[Callable[..., Any]] = []


def _guard_numpy(code: types.CodeType) -> None:
    """An empty array is close to every number by broadcasting; here it is close to empty ones alone."""
    used = names.used(code)
    if not used & {"numpy", "np", *names.JUDGED_BY}:
        return
    with contextlib.suppress(ImportError):
        import numpy
        import numpy.testing

        for home, name in ((numpy, "allclose"), (numpy, "isclose"), *((numpy.testing, name) for name in used)):
            whole = getattr(home, name, None)
            is_judge = name.startswith("assert_") or home is numpy
            if is_judge and whole is not None and whole not in GUARDED:
                GUARDED.append(_refusing_empty(numpy.size, whole))
                setattr(home, name, GUARDED[-1])


def _refusing_empty(size: Callable[[Any], int], whole: Callable[..., Any]) -> Callable[..., Any]:
    def guarded(*args: Any, **kwargs: Any) -> Any:
        if len(args) > 1 and (size(args[0]) == 0) != (size(args[1]) == 0):
            args = (0, 1, *args[2:])  # which are neither equal nor close
        return whole(*args, **kwargs)

    return guarded


def _set_up(module: types.ModuleType, message: dict[str, Any], channel: Channel) -> dict[str, Any]:
    """Load what the tests need where the solution is elsewhere; `from solution import …` finds it there."""
    away = types.ModuleType(MODULE)
    away.__dict__["__getattr__"] = lambda name: _away(name, channel.ask)
    away.__dict__["__all__"] = []  # whatever is used of it is bound by its name
    module.__name__ = TESTS
    sys.modules[TESTS] = module
    CLASSES.update(message["classes"])
    try:
        _load(module, message.get("before", ""), "", message.get("entry"))
        compiled = COMPILE(message["set_up"], "<setup>", "exec")
        sys.modules[MODULE] = away
        for name, stands_for in message["names"].items():
            module.__dict__[name] = Remote(stands_for, stands_for, channel.ask)
        names.provide_modules(compiled, module.__dict__)
        _guard_numpy(compiled)
        _bind(message["sources"], module.__dict__, channel.ask)
        RUN(compiled, module.__dict__)
    except Unreachable as fault:
        return {"unreachable": str(fault)}
    except BaseException as fault:
        return {"raised": _fault(fault)}
    return {"loaded": True}


def _tested(module: types.ModuleType, message: dict[str, Any], channel: Channel) -> dict[str, Any]:
    """Run one test; `nonce` comes with it, after the solution, where both are in one process."""
    space = module.__dict__
    try:
        compiled = COMPILE(message["test"], "<test>", "exec")
        names.provide_modules(compiled, space)  # no members: the function under test may be called `lcm`
        if message["remote"]:
            _guard_numpy(compiled)
            _bind(message["sources"], space, channel.ask)
        else:
            for name, stands_for in message["names"].items():
                space[name] = _target(module, stands_for)
        RUN(compiled, space)
    except Unreachable as fault:
        return {"unreachable": str(fault), "nonce": message["nonce"]}
    except BaseException as fault:
        is_theirs = isinstance(fault, Raised) or isinstance(fault.__cause__, Raised)
        wrong = isinstance(fault, AssertionError) and not is_theirs
        return {"failed": _fault(fault), "wrong": wrong, "nonce": message["nonce"]}
    return {"passed": True, "nonce": message["nonce"]}


def main() -> None:
    channel = Channel()
    builtins.exit = builtins.quit = sys.exit  # type: ignore[assignment]  # which `site` would have set
    module = types.ModuleType(MODULE)
    sys.modules[MODULE] = module
    sys.setrecursionlimit(max(sys.getrecursionlimit(), 10_000))
    while True:
        message = channel.next()
        if "test" in message:
            channel.send(_tested(module, message, channel))
        elif "set_up" in message:
            channel.send(_set_up(module, message, channel))
        elif "begin" in message:
            channel.send({"loaded": True})
        else:
            channel.send(_answered(module, message))


if __name__ == "__main__":
    main()
