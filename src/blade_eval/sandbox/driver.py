"""Load a solution in a box and answer calls to it, or run tests that call it in another box.

It lies in the box with `plain.py` and `names.py`, and speaks in lines of JSON over what were standard input and
output. Solution and tests are never in the same process, unless somebody asks for that. Where they are apart,
the tests hold a `Remote` for each name and object of the solution: calls, attributes and iteration are asked of
the solution, and plain data or the number of an object comes back. What a name is to the tests (a function, a
class, a library's) is read from their text before anything runs (`assertions.Reading`). What a function gives is
plain data, or cannot be used as such; nothing that the solution sends makes a test unreachable.
"""

from __future__ import annotations

import _thread
import builtins
import contextlib
import importlib
import io
import json
import operator
import os
import sys
import traceback
import types
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Iterator, Mapping
from itertools import islice, zip_longest
from typing import Any, Literal, cast

from blade_eval.sandbox import names, plain

MODULE, TESTS = "solution", "tests"
RUN, COMPILE = exec, compile  # taken before a solution can put others in their place
TOLD = 2000  # characters of a message
Ask = Callable[[dict[str, Any]], dict[str, Any]]


class Channel:
    """Lines of JSON on descriptors that a print does not reach."""

    def __init__(self) -> None:
        self.incoming, self.turn = os.fdopen(os.dup(0), "rb"), _thread.allocate_lock()
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
        with self.turn:  # tests may call from several threads
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
    fields = {}
    for name, value in getattr(fault, "__dict__", {}).items():
        with contextlib.suppress(Exception):
            plain.encoded(value)
            fields[name] = value
    report = {"type": type(fault).__name__, "message": message, "trace": shown, "line": line}
    with contextlib.suppress(Exception):
        report["held"] = plain.encoded([list(fault.args), fields])
    return report


def _load(module: types.ModuleType, before: str, code: str, entry: str | None) -> None:
    if before:
        try:
            asking = COMPILE(before, "<prompt>", "exec", dont_inherit=True)
            names.provide(asking, module.__dict__)
            RUN(asking, module.__dict__)
        except Exception:
            pass  # what was asked is not always a program
        module.__dict__.pop(entry or "", None)
    compiled = COMPILE(code, "solution.py", "exec", dont_inherit=True)
    names.provide(compiled, module.__dict__)
    RUN(compiled, module.__dict__)


# ---- The solution's side: answer what is asked ---------------------------------------------------


def _target(module: types.ModuleType, name: str) -> Any:
    if name in names.REPLAYED:
        return names.member(name.rpartition(".")[2], {name.rpartition(".")[2]: name.rpartition(".")[0]})
    name = name.removeprefix("Solution().")  # each call has an object of its own
    holder = getattr(module, "Solution", None)
    if isinstance(holder, type) and hasattr(holder, name):
        return getattr(holder(), name)
    return getattr(module, name)


def _next(it: Any, most: int) -> list[Any]:
    """The next items, and whether they were the last; a fault after some of them is told when it is its turn."""
    items: list[Any] = []
    if id(it) in LATE:
        raise LATE.pop(id(it))
    try:
        while len(items) < most:
            items.append(next(it))
    except StopIteration:
        return [items, True]
    except BaseException as fault:
        if not items:
            raise
        LATE[id(it)] = fault
    return [items, False]


def _base(it: Any) -> list[Any]:
    """The plain data that an object is, by the class that it is derived from; nothing when it is none."""
    return [] if plain.kind_of(it) in (None, "iterator") else [it]


def _content(it: Any) -> list[Any]:
    """The plain data that an object is or holds; nothing when it is none and nothing can be taken from it."""
    if base := _base(it):
        return base
    try:
        return [{key: it[key] for key in it} if isinstance(it, Mapping) else list(islice(it, plain.LONGEST + 1))]
    except TypeError:
        return []


def _of_type(method: str) -> Callable[..., Any]:
    return lambda it, *args: getattr(type(it), method)(it, *args)


ARITHMETIC = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split()
INPLACE = [f"i{name}" for name in ARITHMETIC]
COMPARING = "eq lt le gt ge contains".split()
ITEMS = "getitem setitem delitem".split()
# What Python calls a method of two underscores for.
ASKED: dict[str, Callable[..., Any]] = {
    **{name: getattr(operator, f"__{name}__") for name in (*ARITHMETIC, *INPLACE, *COMPARING, *ITEMS)},
    **{f"r{name}": lambda it, other, name=name: getattr(operator, f"__{name}__")(other, it) for name in ARITHMETIC},
    **{name: getattr(operator, f"__{name}__") for name in ("neg", "pos", "abs", "invert", "index")},
    **{kind.__name__: kind for kind in (hash, len, bool, int, float, complex, bytes, iter, str, repr, format, reversed)},
    "round": round, "divmod": divmod, "next": _next, "enter": _of_type("__enter__"), "exit": _of_type("__exit__"),
    **{name: _of_type(f"__{name}__") for name in ("trunc", "floor", "ceil")},
    **{name: lambda it, *memo, name=name: getattr(__import__("copy"), name)(it) for name in ("copy", "deepcopy")},
    "value": lambda it: it, "call": lambda it, *args, **kwargs: it(*args, **kwargs), "get": getattr, "set": setattr,
    "del": delattr, "base": _base, "content": _content, "instance": lambda it, other: isinstance(other, it),
    "subclass": lambda it, other: issubclass(other, it), "send": lambda it, value: it.send(value),
    "close": lambda it: it.close(), "await": lambda it: __import__("asyncio").run(it),  # which takes long to load
}  # fmt: skip
HELD: list[Any] = []  # objects of the solution that the tests know by their numbers
NUMBERS: dict[int, int] = {}  # by their identity
LATE: dict[int, BaseException] = {}


def _numbered(value: Any) -> dict[str, int]:
    if id(value) not in NUMBERS:
        NUMBERS[id(value)] = len(HELD)
        HELD.append(value)
    kind = "coroutine" if isinstance(value, types.CoroutineType) else "stream" if isinstance(value, Iterator) else "thing"
    return {kind: NUMBERS[id(value)]}


def _made(value: Any) -> dict[str, int]:
    """What a class gives that the tests make objects of is one, also when it is a tuple or an iterator."""
    return {"thing": next(iter(_numbered(value).values()))}


def _given(value: Any, how: str) -> str:
    """An answer. Tests of functions have plain data; tests of classes have objects with all that is theirs."""
    if how == "made" and type(value) not in plain.EXACT | {bool, type(None), types.CoroutineType}:
        return json.dumps(_made(value))
    return plain.encoded(value, _numbered, exact=how != "data")


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
            answer["value"] = _given(ASKED[message["ask"]](it, *args, **kwargs), message.get("how") or "data")
        except plain.NotPlain as fault:
            answer["raised"] = {"type": "NotPlain", "message": f"returned {fault}, which is no plain data"}
        except BaseException as fault:
            answer["raised"] = _fault(fault)
    try:
        after = plain.encoded([args, kwargs], _numbered)
        if after != message["given"]:
            answer["args"] = after
    except BaseException as fault:
        answer.setdefault("raised", _fault(fault))
    if message.get("hears"):
        answer["printed"] = heard.buffer.getvalue().decode("utf-8", "replace")
    return answer


# ---- The tests' side: names and objects of a solution that is in another box -----------------------

OUT = sys.stdout
NOTHING = plain.encoded([[], {}])
ENOUGH = 1_000_000  # items of an iterator, which may be endless
Kind = Literal["function", "maker", "class", "made", "object", "result"]
TYPES: set[str] = set()  # built-in types that the tests compare with
TURN = [0]  # how often the solution was asked for anything that may change something


class Unreachable(BaseException):
    """The tests hand over what cannot cross; no `except Exception` takes it."""


class Raised(Exception):
    """The solution raised what this side has no class for, or gave what cannot be used as the tests use it."""


class Remote:
    """A name of the solution, or an object it made: only the solution's box has it.

    An object that the tests *made*, by calling what their text shows to be a class, is asked for everything. An
    *object* that something of the solution gave is asked too, but not told what is expected: where the tests use it
    as plain data, the plain data that it is by its base class is used here. The *result* of a function ought to be
    plain data: what it holds is taken over once, and it is that for the tests until they call the solution again.
    """

    def __init__(self, target: str | int | None, kind: Kind, label: str, ask: Ask, holder: Remote | None = None) -> None:
        object.__setattr__(self, "_blade", (target, kind, label, ask, holder))
        object.__setattr__(self, "_answers", {})

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        target, _, label, _, holder = self._blade
        method = label.rpartition(".")[2]
        if holder is not None and (args or kwargs or target is None or method in names.PREDICATES):
            return getattr(_plain(holder, label), method)(*args, **kwargs)  # `given.issubset(expected)`
        return asked(self, "call", args, kwargs)

    def __getattr__(self, attribute: str) -> Any:
        _, kind, label, ask, _ = self._blade
        if attribute.startswith("__") and attribute not in ("__name__", "__qualname__") and kind in ("object", "result"):
            raise AttributeError(f"{label} gave no plain data, so {attribute} is not asked of it")
        if kind == "result":
            with contextlib.suppress(Raised, AttributeError):
                if attribute in names.PLAIN:
                    return getattr(_plain(self, attribute), attribute)
            value = _once(self, "get", attribute)
            if attribute in names.JUDGING and callable(value):
                raise _refused(label, attribute)
            return value
        value = asked(self, "get", (attribute,))
        if kind in ("class", "made") or attribute not in names.JUDGING or not callable(value):
            return value
        target = value._blade[0] if isinstance(value, Remote) else None
        return Remote(target, "object", f"{label}.{attribute}", ask, self)

    def __setattr__(self, attribute: str, value: Any) -> None:
        asked(self, "set", (attribute, value))

    def __delattr__(self, attribute: str) -> None:
        asked(self, "del", (attribute,))

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __instancecheck__(self, instance: Any) -> bool:
        return asked(self, "instance", (instance,)) is True

    def __subclasscheck__(self, other: Any) -> bool:
        return asked(self, "subclass", (other,)) is True

    def __array__(self, *_: Any, **__: Any) -> Any:
        """Where numpy judges: the items, asked for once; not the size or the array that an object says it is."""
        import numpy

        return numpy.array([*self])

    def __exit__(self, kind: Any, *_: Any) -> None:
        asked(self, "exit", (None, None, None))  # what was raised here is not swallowed there

    def __next__(self) -> Any:
        for item in asked(self, "next", (1,))[0]:
            return item
        raise StopIteration


def _refused(label: str, name: str) -> Raised:
    return Raised(f"{label} gave no plain data, and {name} is not asked of anything else")


def _once(remote: Remote, what: str, *args: Any) -> Any:
    """What a result answers, asked for once until the tests call the solution again."""
    key = (TURN[0], what, *args)
    if key not in remote._answers:
        remote._answers[key] = asked(remote, what, args)
        TURN[0] = key[0]
    return remote._answers[key]


def _plain(remote: Remote, name: str) -> Any:
    """The plain data that an object is by its base class, or that a result holds."""
    contents = _once(remote, "content") if remote._blade[1] == "result" else asked(remote, "base", how="data")
    if isinstance(contents, list) and contents:
        return contents[0]
    raise _refused(remote._blade[2], name)


ORDER = "eq lt le gt ge".split()
TEXTS = "str repr format hash".split()  # each of an object's own, whatever it holds


def _operator(name: str) -> Callable[..., Any]:
    """Ask for an operator, unless plain data of the tests would go to an object that was given to them."""

    def method(self: Remote, *others: Any) -> Any:
        target, kind, label = self._blade[:3]
        others = () if name == "deepcopy" else others
        is_told = not all(isinstance(other, Remote) for other in others)
        is_between = bool(others) and not is_told and name in (*ORDER, *ARITHMETIC, *INPLACE)
        if kind == "result" and name != "enter" and not is_between:
            return _of_result(self, name, others)
        tells = is_told and kind not in ("class", "made") and name not in (*ITEMS, "round", "format")
        if tells or (is_told and name == "eq"):
            with contextlib.suppress(Raised):
                return ASKED[name](_plain(self, name), *others)
            if tells and name == "eq":
                return False
            if tells and name.removeprefix("r") not in ARITHMETIC:
                raise _refused(label, name)
        answer = asked(self, name, others)
        gives_objects = tells or name in ("copy", "deepcopy") or (kind == "result" and name not in (*ORDER, "enter"))
        if gives_objects and not isinstance(answer, Remote):
            raise _refused(label, name)
        stays = name in (*INPLACE, "enter") and isinstance(answer, Remote) and answer._blade[0] == target
        return self if stays else answer

    return method


def _of_result(result: Remote, name: str, others: tuple[Any, ...]) -> Any:
    if name in TEXTS:
        return _once(result, name, *others)
    try:
        content = _plain(result, name)
    except Raised:
        if name in ("eq", "bool"):
            return name == "bool"
        raise
    return ASKED[name](content, *others)


NAMED = "next exit value call get set del base content instance subclass send close await".split()
for _name in ASKED.keys() - set(NAMED):
    setattr(Remote, f"__{_name}__", _operator(_name))
Remote.__doc__ = property(lambda self: asked(self, "get", ("__doc__",)))  # type: ignore[assignment]


class Stream(Generator[Any, Any, None]):
    """An iterator of the solution, asked for a few items at a time: it may be endless."""

    def __init__(self, remote: Remote) -> None:
        self.remote, self.waiting, self.taken, self.is_over = remote, deque[Any](), 0, False

    def send(self, value: Any) -> Any:
        if value is not None:
            return asked(self.remote, "send", (value,))
        if not self.waiting and not self.is_over:
            items, self.is_over = asked(self.remote, "next", (1 + min(self.taken // 8, 200),))
            self.waiting += items
        if not self.waiting:
            raise StopIteration
        self.taken += 1
        if self.taken > ENOUGH:
            raise Raised(f"an iterator of more than {ENOUGH:,} items")
        return self.waiting.popleft()

    def throw(self, *fault: Any) -> Any:
        raise Raised("an exception is thrown into an iterator of the solution")

    def close(self) -> None:
        asked(self.remote, "close")


# As what the answers to a name or an object are read, and as what they are known.
FAMILIES: dict[str, tuple[str, Kind]] = {"function": ("data", "result"), "result": ("data", "result")}


def asked(remote: Remote, what: str, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None, how: str = "") -> Any:
    """What the solution's box answers; what it did to lists, dicts and sets it was given is done here."""
    target, role, label, ask, _ = remote._blade
    known = ("made", "made") if role == "class" and what == "call" else FAMILIES.get(role, ("objects", "object"))
    kind = cast(Kind, known[1])
    TURN[0] += 1
    kwargs = kwargs or {}
    try:
        encoded = plain.encoded([list(args), kwargs], _named)
    except plain.TooMuch as fault:  # which the solution could have made, to be tested in another way
        raise Raised(f"{label} is called with {fault}") from fault
    except plain.NotPlain as fault:
        raise Unreachable(f"{label} is called with {fault}") from fault
    hears = sys.stdout is not OUT
    reply = ask({"ask": what, "on": target, "given": encoded, "hears": hears, "how": how or known[0]})

    def thing(number: int) -> Remote:
        return Remote(number, kind, f"{label}.{args[0]}" if what == "get" else f"{label}()", ask)

    handles = {"thing": thing, "coroutine": lambda n: _later(thing(n)), "stream": lambda n: Stream(thing(n))}
    try:
        theirs, named = plain.decoded(reply.get("args") or NOTHING, handles)
        value = plain.decoded(reply["value"], handles) if "value" in reply else None
        pairs = [*zip(args, theirs, strict=False), *((kwargs[key], named.get(key)) for key in kwargs)]
        if '{"builtin"' in reply.get("value", ""):
            _check_types(value)
    except (ValueError, TypeError, AttributeError) as fault:
        raise Raised("something else was written where the answer belongs") from fault
    for mine, changed in pairs:
        _changed(mine, changed)
    if hears and isinstance(reply.get("printed"), str):
        sys.stdout.write(reply["printed"])
    if "raised" in reply:
        raise _same(reply["raised"], handles)
    return value


def _check_types(value: Any) -> None:
    """A type is no answer unless the tests compare with it: `set.union(expected)` is not for the solution to give."""
    if isinstance(value, type) and value.__name__ not in TYPES:
        raise ValueError("a type in the place of a value")
    for inner in value if isinstance(value, list | tuple) else value.values() if isinstance(value, dict) else ():
        _check_types(inner)


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
    elif isinstance(value, Stream):
        value = value.remote
    if not isinstance(value, Remote):
        return None
    target = value._blade[0]
    return {"name" if isinstance(target, str) else "thing": target}


def _changed(mine: Any, theirs: Any) -> None:
    """Do to a list, dict or set here what the solution did to it; objects in it stay as they are known."""
    if type(mine) is not type(theirs) or not isinstance(mine, list | dict | set | deque):
        if type(mine) is type(theirs) and hasattr(mine, "__setitem__"):  # an array of numbers or bytes
            with contextlib.suppress(TypeError, ValueError, IndexError):
                mine[slice(None) if getattr(mine, "ndim", 1) else ()] = theirs
        return
    if isinstance(mine, dict):
        content: Any = {key: _kept(mine.get(key), new) for key, new in theirs.items()}
    else:
        content = theirs if isinstance(mine, set) else [_kept(old, new) for old, new in zip_longest(list(mine)[: len(theirs)], theirs)]
    mine.clear()
    getattr(mine, "extend" if isinstance(mine, list | deque) else "update")(content)


def _kept(old: Any, new: Any) -> Any:
    if type(old) is Remote and type(new) is Remote:
        return old if old._blade[0] == new._blade[0] else new
    if type(old) is type(new) and isinstance(old, list | dict | set | deque):
        _changed(old, new)
        return old
    return new


LOCAL: dict[str, type[BaseException]] = {}  # classes that the tests catch, by the names that the solution gives them
ENDS_LOOPS = {"StopIteration", "StopAsyncIteration"}  # crossing as they are, they would end a loop of the tests
CAUGHT: set[str] = set()  # names that the tests catch


def _same(raised: dict[str, Any], handles: plain.Handles) -> BaseException:
    """The exception here: of the class that the tests catch by its name, of a built-in one, or `Raised`."""
    message = str(raised.get("message"))
    line = [str(name) for name in raised.get("line") or [raised.get("type")]]
    own = next((LOCAL[name] for name in line if name in LOCAL), Raised)
    known = [getattr(builtins, name, None) for name in line if name not in ENDS_LOOPS - CAUGHT]
    faults = [kind for kind in known if isinstance(kind, type) and issubclass(kind, BaseException)]
    native = next((kind for kind in faults if issubclass(kind, Exception) or kind.__name__ in CAUGHT), Exception)
    try:
        args, fields = plain.decoded(raised["held"] or "", handles)
    except (KeyError, ValueError, TypeError):
        args, fields = [message], {}
    try:
        if native.__name__ == line[0] and own is Raised:
            fault = native(*args)
        else:
            bases = (native,) if own is Raised else (own, native)
            kind = type(line[0], bases, {"__str__": lambda self: message})
            fault = kind.__new__(kind, *args)
            fault.args = tuple(args)
    except Exception:  # a class that wants more than it is told, or two that do not go together
        fault = (own if issubclass(own, Raised) else native)(message)
    for name, value in fields.items():
        if not name.startswith("__") and not callable(value):
            fault.__dict__[name] = value
    if not isinstance(fault, Raised):
        fault.__cause__ = Raised(raised.get("type"))
    return fault


ROLES: dict[str, str] = {}  # who answers for the names that the tests use and do not define, by their text


def _bind(space: dict[str, Any], ask: Ask | None) -> None:
    """Give tests the names that they use and do not define: the tests' own, or the solution's."""
    for name, role in ROLES.items():
        if role == "caught":
            CAUGHT.add(name)
            home, _, member = name.rpartition(".")
            with contextlib.suppress(Exception):  # a class that a library or the task defines
                kind: Any = names.member(member, {member: home}) if home else space[name]
                LOCAL[kind.__name__] = kind
        is_solutions = role in ("function", "maker", "class", "given") or (role == "caught" and ask is None)
        if "." not in name and (is_solutions or name not in space):
            with contextlib.suppress(AttributeError):
                space[name] = _found(name, ask)


def _found(name: str, ask: Ask | None) -> Any:
    """What a name of the tests stands for; without anybody to ask, the solution is in this process."""
    role = ROLES.get(name, "function")
    if role == "caught":
        native = getattr(builtins, name, None) or (_here_caught(name) if ask is None else None)
        return native or LOCAL.setdefault(name, type(name, (Raised,), {}))
    if role == "module":
        return importlib.import_module(names.ALIASES.get(name, name))
    if role.startswith("from "):  # what tests judge with comes from a library, never from the solution
        return names.member(name, {name: role.removeprefix("from ")})
    if ask is None:
        return _here(name)
    remote = Remote(name, "result" if role == "given" else cast(Kind, role), name, ask)
    if role == "given":
        with contextlib.suppress(Exception):
            return asked(remote, "value")
    return remote


def _replay(ask: Ask) -> None:
    for path in names.REPLAYED:
        home, _, name = path.rpartition(".")
        if (module := sys.modules.get(home)) is not None:
            setattr(module, name, _in_both(getattr(module, name), Remote(path, "function", path, ask)))


def _in_both(here: Callable[..., Any], there: Remote) -> Callable[..., Any]:
    def both(*args: Any, **kwargs: Any) -> Any:
        there(*args, **kwargs)
        return here(*args, **kwargs)

    return both


def _here_caught(name: str) -> Any:
    """The exception of that name that the solution, the task or a loaded library defines."""
    spaces = [vars(sys.modules[place]) for place in (MODULE, TESTS)]
    kinds = [BaseException]
    for kind in kinds:
        kinds += kind.__subclasses__()
    return next((space[name] for space in spaces if name in space), next((kind for kind in kinds if kind.__name__ == name), None))


def _here(name: str) -> Any:
    module = sys.modules[MODULE]
    target = _target(module, name)
    is_method = isinstance(target, types.MethodType) and type(target.__self__) is getattr(module, "Solution", None)
    return (lambda *args, **kwargs: _target(module, name)(*args, **kwargs)) if is_method else target


def _away(name: str, ask: Ask) -> Any:
    if name.startswith("__"):  # which the import itself looks for
        raise AttributeError(name)
    return _found(name, ask)


SIDES = ("a", "b", "a1", "a2", "x", "y", "actual", "desired")


def _guard_numpy(words: list[str]) -> None:
    """An empty array is close to every number by broadcasting; here it is close to empty ones alone."""
    with contextlib.suppress(ImportError):
        import numpy
        import numpy.testing

        judges = [(numpy.testing, name) for name in dir(numpy.testing) if name.startswith("assert_")]
        for home, name in ((numpy, "allclose"), (numpy, "isclose"), (numpy, "array_equiv"), *judges):
            setattr(home, name, _refusing_empty(numpy.asarray, getattr(home, name)))
        if "approx" in words:
            _guard_approx(importlib.import_module("pytest"), lambda value: int(numpy.asarray(value).size))


def _guard_approx(pytest: Any, size: Callable[[Any], int]) -> None:
    approx = pytest.approx
    pytest.approx = lambda expected, *args, **kwargs: approx(_frozen(expected), *args, **kwargs)
    samples: list[Any] = [0.0, [0.0], {}, __import__("numpy").zeros(1)]
    kinds: set[Any] = {type(approx(sample)) for sample in samples}
    for kind in kinds:
        kind.__eq__ = _guarded(kind.__eq__, size)


def _guarded(equal: Callable[[Any, Any], bool], size: Callable[[Any], int]) -> Callable[[Any, Any], bool]:
    def guarded(self: Any, actual: Any) -> bool:
        actual = _frozen(actual)
        return (size(actual) == 0) == (size(self.expected) == 0) and equal(self, actual)

    return guarded


def _refusing_empty(array: Callable[[Any], Any], whole: Callable[..., Any]) -> Callable[..., Any]:
    def guarded(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = tuple(map(_frozen, args)), {name: _frozen(value) for name, value in kwargs.items()}
        sides = [*args[:2], *(kwargs[name] for name in SIDES if name in kwargs)]
        if len({array(side).size == 0 for side in sides}) > 1:
            return whole(0, 1)  # which are neither equal nor close
        return whole(*args, **kwargs)

    return guarded


def _frozen(value: Any) -> Any:
    """A value whose objects of the solution were read once, at any depth: judges read what they are given again and again."""
    if isinstance(value, Remote):
        contents = _once(value, "content")
        if not contents:
            raise _refused(value._blade[2], "a number")
        value = contents[0]
    if type(value) in (list, tuple):
        return type(value)(map(_frozen, value))
    return {key: _frozen(inner) for key, inner in value.items()} if type(value) is dict else value


def _set_up(module: types.ModuleType, message: dict[str, Any], ask: Ask | None) -> dict[str, Any]:
    """Load what the tests need where the solution is elsewhere, or beside it; `from solution import …` finds it there."""
    module.__name__ = TESTS
    sys.modules[TESTS] = module
    ROLES.update(message["roles"])
    TYPES.update(message["types"])
    try:
        _load(module, message.get("before", ""), "", message.get("entry"))
        compiled = COMPILE(message["set_up"], "<setup>", "exec", dont_inherit=True)
        if ask is not None:
            sys.modules[MODULE] = types.ModuleType(MODULE)
            sys.modules[MODULE].__dict__["__getattr__"] = lambda name: _away(name, ask)
            for home in message["seeded"]:
                importlib.import_module(home)
            _replay(ask)
        sys.modules[MODULE].__dict__["__all__"] = []  # whatever is used of it is bound by its name
        for name, stands_for in message["names"].items():
            module.__dict__[name] = _found(stands_for, ask)
        if message["arrays"] and ask is not None:
            _guard_numpy(message["arrays"])
        _bind(module.__dict__, ask)
        RUN(compiled, module.__dict__)
    except Unreachable as fault:
        return {"unreachable": str(fault)}
    except BaseException as fault:
        return {"raised": _fault(fault)}
    return {"loaded": True}


def _tested(module: types.ModuleType, message: dict[str, Any]) -> dict[str, Any]:
    """Run one test; `nonce` comes with it, after the solution, where both are in one process."""
    space = module.__dict__
    try:
        compiled = COMPILE(message["test"], "<test>", "exec", dont_inherit=True)
        if message["how"] == "in_process":
            names.provide_modules(compiled, space)  # no members: the function under test may be called `lcm`
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
    spaces = {"apart": module, "in_process": module, "beside": types.ModuleType(TESTS)}
    sys.setrecursionlimit(max(sys.getrecursionlimit(), 10_000))
    while True:
        message = channel.next()
        if "test" in message:
            channel.send(_tested(spaces[message["how"]], message))
        elif "set_up" in message:
            channel.send(_set_up(spaces[message["how"]], message, channel.ask if message["how"] == "apart" else None))
        elif "begin" in message:
            channel.send({"loaded": True})
        else:
            channel.send(_answered(module, message))


if __name__ == "__main__":
    main()
