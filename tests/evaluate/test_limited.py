"""Calls in a worker: results, faults, and what happens when one is killed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from blade.errors import UsageError
from blade_eval import limited
from blade_eval.environment import Unmeasured, required


def call(function: str, *arguments: Any, seconds: int = 1) -> Any:
    return asyncio.run(limited.call(function, *arguments, seconds=seconds))


def test_a_call_gives_what_the_function_gives_and_its_fault_is_not_the_answers() -> None:
    assert call("operator:add", [1], [2.5]) == [1, 2.5]
    assert call("builtins:print", '{"result": 1}') is None  # what a library prints is none of it
    assert call("operator:mul", "é", 3) == "ééé"
    for function, *arguments, fault in (("operator:truediv", 1, 0, "ZeroDivisionError"), ("no_such_module:f", "ModuleNotFoundError")):
        with pytest.raises(Unmeasured, match=f"verifier_error: {fault}"):
            call(str(function), *arguments)


@pytest.mark.parametrize(
    ("error", "text", "arguments"),
    [(limited.TooCostly, "1 s of computing", ("operator:pow", 7, 10**9)), (limited.TooCostly, "memory", ("operator:mul", "x", 3 << 30)),
     (Unmeasured, "ended with status 3", ("os:_exit", 3))],
)  # fmt: skip
def test_time_and_memory_are_limited_and_the_next_call_is_answered(error: type[Exception], text: str, arguments: Any) -> None:
    with pytest.raises(error, match=text):
        call(*arguments)
    assert call("operator:add", 1, 1) == 2


def test_no_file_is_written(tmp_path: Any) -> None:
    with pytest.raises(Unmeasured):
        call("shutil:copyfile", __file__, str(tmp_path / "copy"))
    assert not (tmp_path / "copy").exists() or (tmp_path / "copy").stat().st_size == 0


def test_a_missing_library_names_its_extra() -> None:
    with pytest.raises(UsageError, match="no_such_library") as raised:
        required("no_such_library", "no_such_library", "mcqa")
    assert (raised.value.slug, "blade-diagnostics[eval]" in raised.value.hint) == ("eval-not-installed", True)
