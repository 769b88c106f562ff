"""Turn the tests of a task into what runs before them and small programs, one a test."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from blade_eval.task_row import faulty

DEFINED = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
FIXTURES = {"setup_method", "teardown_method", "setup_class", "teardown_class", "setup", "teardown"}
SUITE = "import unittest\nunittest.defaultTestLoader.loadTestsFromTestCase({}).debug()"


def parsed(text: str) -> list[ast.stmt]:
    """The statements of a text that the task gave; one that is no Python is the task's fault."""
    try:
        return ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise faulty(f"the tests are no Python: {error}") from error


def does(text: str) -> bool:
    """Does a text do anything when it runs? Imports, definitions and comments do not."""
    return any(not _is_still(node) for node in parsed(text))


def listed(tests: Sequence[str]) -> list[str]:
    """A list of tests, of which at least one does something."""
    if not any(does(test) for test in tests):
        raise faulty("the tests do nothing when they run")
    return list(tests)


def statements(text: str, has_entry: bool) -> tuple[str, list[str]]:
    """What comes first, and the tests: `check(candidate)`, each test function or case, or each assertion.

    In front of assertions, only imports and definitions come first: what else stands there is part of a test.
    """
    body = [node for node in parsed(text) if not _runs_all(node)]
    called = {name for node in body if not isinstance(node, DEFINED) for name in _called(node)}
    check = next((node for node in body if isinstance(node, ast.FunctionDef) and node.name == "check"), None)
    tests = [test for node in body for test in _tests_of(node, called)]
    if check is not None and "check" not in called:
        if check.args.args and not has_entry:
            raise faulty("the tests define check(candidate), and the row has no entry_point")
        tests.append("check(candidate)" if check.args.args else "check()")
    others = [node for node in body if not _is_still(node)]
    source = "\n".join(_source(text, node) for node in body)
    if tests:
        return source, tests
    if not others:
        raise faulty("the tests define functions that nothing calls")
    if not all(isinstance(node, ast.Assert) for node in others):
        return "", [source]
    first = min(node.lineno for node in others)
    still = [node for node in body if _is_still(node)]
    if any(node.lineno > first for node in still):
        return "", [source]
    return "\n".join(_source(text, node) for node in still), [_source(text, node) for node in others]


def _source(text: str, node: ast.stmt) -> str:
    """With its decorators, which stand before the place of a definition."""
    lines = text.splitlines()
    decorators = getattr(node, "decorator_list", [])
    begin = min([node.lineno, *(decorator.lineno for decorator in decorators)])
    if node.col_offset == 0 and decorators:
        return "\n".join(lines[begin - 1 : node.end_lineno])
    return ast.get_source_segment(text, node) or ""


def _is_still(node: ast.stmt) -> bool:
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return isinstance(node, (*DEFINED, ast.Pass)) or is_text


def _called(node: ast.AST) -> set[str]:
    calls = [part.func for part in ast.walk(node) if isinstance(part, ast.Call)]
    return {func.id for func in calls if isinstance(func, ast.Name)}


def _runs_all(node: ast.stmt) -> bool:
    """`unittest.main()` and the like, also behind a guard: it would look for tests in another module."""
    if isinstance(node, ast.If) and "__name__" in ast.dump(node.test):
        return True
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call):
        return False
    return ast.unparse(node.value.func) in ("unittest.main", "pytest.main")


def _tests_of(node: ast.stmt, called: set[str]) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
        if node.name in called:
            return []
        needs = len(node.args.args) - len(node.args.defaults)
        if isinstance(node, ast.AsyncFunctionDef) or needs or node.decorator_list:
            raise faulty(f"{node.name} needs pytest: fixtures, parameters and decorators are not provided")
        return [f"{node.name}()"]
    if not isinstance(node, ast.ClassDef) or node.name in called:
        return []
    if any(ast.unparse(name).endswith("TestCase") for name in node.bases):
        return [SUITE.format(node.name)]
    methods = [part.name for part in node.body if isinstance(part, ast.FunctionDef)]
    wanted = [name for name in methods if name.startswith("test")] if node.name.startswith("Test") else []
    if wanted and FIXTURES & set(methods):
        raise faulty(f"{node.name} needs pytest, which would set it up")
    return [f"{node.name}().{name}()" for name in wanted]
