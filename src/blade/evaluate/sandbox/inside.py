"""The driver in the box: load a solution and answer calls to it, or run tests that call it elsewhere.

It lies in the box with `plain.py` and `names.py`, and speaks in lines of JSON over what were standard input
and output. Solution and tests are never in the same process, unless the tests cannot be run otherwise.
"""

from __future__ import annotations

import builtins
import json
import os
import sys
import traceback
import types
from typing import Any

from blade.evaluate.sandbox import names, plain

MODULE = "solution"
RUN, COMPILE = exec, compile  # taken before a solution can put others in their place
TOLD = 2000  # characters of a message


class Unreachable(BaseException):
    """The tests ask for something of the solution that cannot cross; no `except Exception` takes it."""


class Raised(Exception):
    """The solution raised what this side has no class for."""


class Remote:
    """A name of the solution that is only there to be called."""

    def __init__(self, name: str, channel: Channel) -> None:
        self._name = name
        self._channel = channel

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            given = plain.encoded([list(args), kwargs])
        except plain.TooMuch as fault:  # which the solution could have made, to be tested in another way
            raise Raised(f"{self._name} is called with {fault}") from fault
        except plain.NotPlain as fault:
            raise Unreachable(f"{self._name} is called with {fault}") from fault
        self._channel.send({"call": self._name, "given": given})
        reply = self._channel.next()
        for mine, theirs in zip(args, plain.decoded(reply.get("args", "[]")), strict=False):
            _changed(mine, theirs)
        if "raised" in reply:
            raise _same(reply["raised"])
        return plain.decoded(reply["value"])

    def __getattr__(self, attribute: str) -> Any:
        raise Unreachable(f"the tests use {self._name}.{attribute}")


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


def _changed(mine: Any, theirs: Any) -> None:
    """What the solution did to a list, dict or set that it was given is done here too."""
    if isinstance(mine, list) and isinstance(theirs, list):
        mine[:] = theirs
    elif isinstance(mine, dict | set) and isinstance(theirs, type(mine)):
        mine.clear()
        mine.update(theirs)


def _same(raised: dict[str, str]) -> Exception:
    kind = getattr(builtins, raised["type"], None)
    if isinstance(kind, type) and issubclass(kind, Exception):
        try:
            fault: Exception = kind(raised["message"])
            fault.__cause__ = Raised(raised["type"])
            return fault
        except TypeError:
            pass
    return Raised(f"{raised['type']}: {raised['message']}")


def _fault(fault: BaseException) -> dict[str, str]:
    shown = "".join(traceback.format_exception(fault))[-TOLD:]
    try:
        message = str(fault)[:TOLD]
    except BaseException:
        message = ""
    return {"type": type(fault).__name__, "message": message, "trace": shown}


def _load(module: types.ModuleType, before: str, code: str, entry: str | None) -> None:
    if before:
        try:
            RUN(COMPILE(before, "<prompt>", "exec"), module.__dict__)
        except Exception:
            pass  # what was asked is not always a program
        module.__dict__.pop(entry or "", None)
    compiled = COMPILE(code, "solution.py", "exec")
    names.given(compiled, module.__dict__)
    RUN(compiled, module.__dict__)


def _target(module: types.ModuleType, name: str) -> Any:
    holder = getattr(module, "Solution", None)
    if isinstance(holder, type) and hasattr(holder, name):
        return getattr(holder(), name)
    return getattr(module, name)


def _answered(module: types.ModuleType, message: dict[str, Any]) -> dict[str, Any]:
    try:
        if "load" in message:
            _load(module, message.get("before", ""), message["load"], message.get("entry"))
            return {"loaded": True}
        args, kwargs = plain.decoded(message["given"])
        value = _target(module, message["call"])(*args, **kwargs)
    except BaseException as fault:  # also SystemExit: leaving is not an answer
        return {"raised": _fault(fault)}
    try:
        return {"value": plain.encoded(value), "args": plain.encoded(args)}
    except plain.NotPlain as fault:
        return {"raised": {"type": "NotPlain", "message": f"returned {fault}, which is no plain data"}}
    except BaseException as fault:
        return {"raised": _fault(fault)}


def _from_solution(fault: BaseException) -> bool:
    return isinstance(fault, Raised) or isinstance(fault.__cause__, Raised)


def _tested(module: types.ModuleType, message: dict[str, Any], channel: Channel) -> dict[str, Any]:
    """Run one test; `nonce` comes with it, after the solution, where both are in one process."""
    space = module.__dict__
    try:
        compiled = COMPILE(message["test"], "<test>", "exec")
        names.modules(compiled, space)  # no members: the function under test may be called `lcm`
        if message["remote"]:
            for name in names.used(compiled) - space.keys() - set(dir(builtins)):
                space[name] = Remote(name, channel)
            for name, stands_for in message["names"].items():
                space[name] = Remote(stands_for, channel)
        else:
            for name, stands_for in message["names"].items():
                space[name] = _target(module, stands_for)
        RUN(compiled, space)
    except Unreachable as fault:
        return {"unreachable": str(fault), "nonce": message["nonce"]}
    except BaseException as fault:
        wrong = isinstance(fault, AssertionError) and not _from_solution(fault)
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
        else:
            channel.send(_answered(module, message))


if __name__ == "__main__":
    main()
