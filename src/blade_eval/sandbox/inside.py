"""The driver in the box: load a solution and answer calls to it, or run tests that call it elsewhere.

It lies in the box with `plain.py`, `names.py` and `remote.py`, and speaks in lines of JSON over what were
standard input and output. Solution and tests are never in the same process, unless somebody asks for that.
"""

from __future__ import annotations

import builtins
import contextlib
import io
import json
import os
import sys
import traceback
import types
from collections.abc import Callable
from typing import Any

from blade_eval.sandbox import names, plain, remote

MODULE, TESTS = "solution", "tests"
RUN, COMPILE = exec, compile  # taken before a solution can put others in their place
TOLD = 2000  # characters of a message


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
    names.given(compiled, module.__dict__)
    RUN(compiled, module.__dict__)


def _target(module: types.ModuleType, name: str) -> Any:
    holder = getattr(module, "Solution", None)
    if isinstance(holder, type) and hasattr(holder, name):
        return getattr(holder(), name)
    return getattr(module, name)


HELD: list[Any] = []  # objects of the solution that the tests know by their numbers
ASKED: dict[str, Callable[..., Any]] = {
    "value": lambda it: it,
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

    def thing(_: str, target: Any) -> Any:
        return _target(module, target) if isinstance(target, str) else HELD[target]

    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    answer: dict[str, Any] = {}
    heard = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="replace", write_through=True)
    with contextlib.redirect_stdout(heard) if message.get("hears") else contextlib.nullcontext():
        try:
            args, kwargs = plain.decoded(message["given"], thing)
            value = ASKED[message["ask"]](thing("", message["on"]), *args, **kwargs)
            answer["value"] = plain.encoded(value, _numbered)
        except plain.NotPlain as fault:
            raised = {"type": "NotPlain", "message": f"returned {fault}, which is no plain data"}
            answer["raised"] = raised
        except BaseException as fault:
            answer["raised"] = _fault(fault)
    try:
        answer["args"] = plain.encoded([args, kwargs], _numbered)
    except BaseException as fault:
        answer.setdefault("raised", _fault(fault))
    if message.get("hears"):
        answer["printed"] = heard.buffer.getvalue().decode("utf-8", "replace")
    return answer


def _from_solution(fault: BaseException) -> bool:
    return isinstance(fault, remote.Raised) or isinstance(fault.__cause__, remote.Raised)


def _elsewhere(channel: Channel) -> remote.Ask:
    """Ask the solution's box, by way of whoever runs both."""

    def ask(message: dict[str, Any]) -> dict[str, Any]:
        channel.send(message)
        return channel.next()

    return ask


def _away(name: str, ask: remote.Ask) -> Any:
    if name.startswith("__"):  # which the import itself looks for
        raise AttributeError(name)
    return remote.found(name, ask)


def _set_up(module: types.ModuleType, message: dict[str, Any], channel: Channel) -> dict[str, Any]:
    """Load what the tests need where the solution is elsewhere; `from solution import …` finds it there."""
    ask = _elsewhere(channel)
    away = types.ModuleType(MODULE)
    away.__dict__["__getattr__"] = lambda name: _away(name, ask)
    away.__dict__["__all__"] = []  # whatever is used of it is bound by its name
    module.__name__ = TESTS
    sys.modules[TESTS] = module
    try:
        _load(module, message.get("before", ""), "", message.get("entry"))
        compiled = COMPILE(message["set_up"], "<setup>", "exec")
        sys.modules[MODULE] = away
        for name, stands_for in message["names"].items():
            module.__dict__[name] = remote.Remote(stands_for, stands_for, ask)
        names.modules(compiled, module.__dict__)
        remote.bound(message["set_up"], module.__dict__, ask)
        RUN(compiled, module.__dict__)
    except remote.Unreachable as fault:
        return {"unreachable": str(fault)}
    except BaseException as fault:
        return {"raised": _fault(fault)}
    return {"loaded": True}


def _tested(module: types.ModuleType, message: dict[str, Any], channel: Channel) -> dict[str, Any]:
    """Run one test; `nonce` comes with it, after the solution, where both are in one process."""
    space = module.__dict__
    try:
        compiled = COMPILE(message["test"], "<test>", "exec")
        names.modules(compiled, space)  # no members: the function under test may be called `lcm`
        if message["remote"]:
            remote.bound(message["test"], space, _elsewhere(channel))
        else:
            for name, stands_for in message["names"].items():
                space[name] = _target(module, stands_for)
        RUN(compiled, space)
    except remote.Unreachable as fault:
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
        elif "set_up" in message:
            channel.send(_set_up(module, message, channel))
        else:
            channel.send(_answered(module, message))


if __name__ == "__main__":
    main()
