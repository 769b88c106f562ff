"""Judge a program by its tests, run in a box: printed output, returned values, or assertions.

The code is the last fenced block that names Python, else the last that names no language, else the last of
any; a text without a fence counts when all of it is a Python program. Three kinds of tests, by what the row
(or its `verifier_metadata`) holds:

- `unit_tests` with `inputs` and `outputs`: run with each input, the output compared outside of the box;
- the same with `fn_name`: the function is called from outside with values read from JSON;
- `test` (with `entry_point`, a `check(candidate)`; or test functions, or cases of unittest) or `test_list`:
  assertions. They run in a box of their own, and only plain data and the numbers of objects go between them
  and the solution, which never sees them.

`checked` says how: outputs, calls, apart, or in_process, where tests and solution share a process and the
solution can forge its verdict. That is done only for rows that ask for it with `checked: in_process`, or,
where the tests cannot run apart, with the setting `allow_in_process`; without, such rows are not measured.
"""

from __future__ import annotations

import ast
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from blade_eval import limited, replies
from blade_eval.environment import Attempt, Environment, Row
from blade_eval.sandbox import Limits, assertions, needed
from blade_eval.sandbox.assertions import Asserted
from blade_eval.sandbox.plain import SHOWN
from blade_eval.sandbox.verdicts import RUNTIME, Judged, asserted, calls, outputs
from blade_eval.task_row import faulty, field, opened, question

LANGUAGES = ("python", "python3", "py")
PARSING = 2  # seconds of computing to find out whether a text is a program
_VALUE = "a value of unit_tests is"  # not JSON
Run = Callable[[str], Awaitable[Judged]]


def environment(settings: Mapping[str, Any]) -> Environment:
    """The environment of the settings of a `code_gen` block."""
    wall = settings.get("unit_test_wall_secs")
    limits = Limits(
        cpu=float(settings.get("unit_test_timeout_secs") or 10), wall=float(wall) if wall else None,
        memory=int(settings.get("memory_mb") or 1024) << 20,
        processes=int(settings.get("max_subprocesses") or 64),
    )
    is_shared = bool(settings.get("allow_in_process", False))
    slots = limited.Slots(int(settings.get("num_processes") or 8))

    async def verify(attempt: Attempt) -> Row:
        tests, shown = _tests(attempt.row, limits, is_shared)
        text = replies.answer(attempt.response)
        code = await _program(text)
        if code is None:
            metadata = {"error_code": RUNTIME, "error_message": "No program in the answer"}
            return _fields(text, None, [RUNTIME], metadata, 0.0, None)
        await needed()
        async with slots.here():
            judged = await tests(code)
        return _judged_fields(text, code, judged, shown)

    return Environment("code_gen", verify, scores=lambda row: {"accuracy": float(row["reward"])})


async def _program(text: str) -> str | None:
    """The program in an answer. A text without a fence is parsed in a worker: it may take half a minute."""
    if not text.strip() or replies.last_block(text, LANGUAGES) is not None:
        return extracted(text)
    function = "blade_eval.verifiers.code_gen:extracted"
    try:
        program: str | None = await limited.call(function, _writable(text), seconds=PARSING)
    except limited.TooCostly:
        return None
    return program


def extracted(text: str) -> str | None:
    """The program in an answer; None when there is none."""
    code = replies.last_block(text, LANGUAGES)
    if code is None and text.strip():
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
        # A sentence of one word parses too; a program does something.
        is_program = any(
            not isinstance(node, ast.Expr) or isinstance(node.value, ast.Call) for node in tree.body
        )
        code = text if is_program else None
    return code if code and code.strip() else None


def _judged_fields(text: str, code: str, judged: Judged, shown: Callable[[int], Row]) -> Row:
    result: list[Any] = [True] * judged.passed
    metadata: Row = {}
    if judged.fault is not None:
        result.append(judged.fault.code)
        metadata = {
            "error_code": judged.fault.code, "error_message": _writable(judged.fault.message)[:SHOWN],
            "output": _writable(judged.fault.got), **shown(judged.passed),
        }
    if judged.review:
        metadata["review"] = list(judged.review)
    return _fields(text, code, result, metadata, judged.seconds, judged.how)


def _writable(text: str) -> str:
    """A program may speak in halves of characters, which no JSON file holds."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _fields(
    text: str, code: str | None, result: list[Any], metadata: Row, seconds: float, how: str | None
) -> Row:
    return {
        "reward": float(bool(result) and all(item is True for item in result)),
        "extracted_model_output": text, "extracted_model_code": code, "result": result,
        "metadata": metadata, "unit_tests_time_taken": round(seconds, 3), "checked": how,
    }


def _tests(row: Row, limits: Limits, is_shared: bool) -> tuple[Run, Callable[[int], Row]]:
    """How a program is judged, and what to show of the test at a place."""
    unit_tests = opened(field(row, "unit_tests"), "unit_tests is")
    if isinstance(unit_tests, Mapping) and unit_tests.get("inputs") is not None:
        return _pairs(unit_tests, limits)
    return _assertions(row, limits, is_shared)


def _pairs(unit_tests: Mapping[str, Any], limits: Limits) -> tuple[Run, Callable[[int], Row]]:
    inputs, expected = unit_tests.get("inputs"), unit_tests.get("outputs")
    if not isinstance(inputs, list) or not isinstance(expected, list) or len(inputs) != len(expected):
        raise faulty("unit_tests has not as many outputs as inputs")
    if not inputs:
        raise faulty("unit_tests has no inputs")

    def shown(position: int) -> Row:
        return {"inputs": str(inputs[position])[:SHOWN], "expected": str(expected[position])[:SHOWN]}

    name = unit_tests.get("fn_name")
    if name:
        arguments = [_arguments(entry) for entry in inputs]
        wanted = [opened(entry, _VALUE) for entry in expected]
        return lambda code: calls(code, str(name), arguments, wanted, limits), shown
    texts, outcomes = ([_text(entry) for entry in entries] for entries in (inputs, expected))
    return lambda code: outputs(code, texts, outcomes, limits), shown


def _text(entry: Any) -> str:
    """What a program reads or prints; some data sets list its lines."""
    return "\n".join(map(str, entry)) if isinstance(entry, list) else str(entry)


def _arguments(entry: Any) -> list[Any]:
    """The arguments of a call: a list, or a text with one JSON value a line."""
    if isinstance(entry, list):
        return entry
    return [opened(line, _VALUE) for line in str(entry).split("\n") if line.strip()]


def _assertions(row: Row, limits: Limits, is_shared: bool) -> tuple[Run, Callable[[int], Row]]:
    setup, tests = _statements(row)
    entry = field(row, "entry_point")
    names = {"candidate": str(entry)} if entry else {}
    before = str(field(row, "prompt", ""))
    together = field(row, "checked") == "in_process"
    task = Asserted(tests, setup, before, str(entry) if entry else None, names, question(row))

    def shown(position: int) -> Row:
        return {"inputs": tests[position][:SHOWN] if position < len(tests) else ""}

    return lambda code: asserted(code, task, limits, in_process=together, or_in_process=is_shared), shown


def _statements(row: Row) -> tuple[str, Sequence[str]]:
    """What runs before the tests, and the tests: each assertion of a list or at the top of a text is one."""
    listed, text = field(row, "test_list"), field(row, "test")
    setup = str(field(row, "test_setup_code", ""))
    if isinstance(listed, list) and listed:
        imports = field(row, "test_imports", [])
        lines = imports if isinstance(imports, list) else [str(imports)]
        return "\n".join([*map(str, lines), setup]), assertions.listed([str(test) for test in listed])
    if not isinstance(text, str) or not text.strip():
        raise faulty("the row has neither unit_tests nor test nor test_list")
    first, tests = assertions.statements(text, bool(field(row, "entry_point")))
    return f"{setup}\n{first}", tests
