"""Find in the text of tests what copies cannot show: a value that is changed here and asked about over there.

What a solution is handed and what it returns are copies. A list that is changed after that, by the tests or by an
object of the solution, is the same list in one process and two in two: whether anything shows it is decided here,
statement by statement, as if every branch were taken and every loop ran twice.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Protocol

from blade_eval.sandbox import names

# What makes something new of its arguments; a change of that changes nothing else.
COPYING = set("list dict set tuple sorted len sum str int float bool repr copy deepcopy Counter deque range".split())
CONSUMING = set("list tuple set sorted sum next dict".split())
CHANGING = set("shuffle heappush heappop heapify heapreplace heappushpop insort insort_left insort_right".split())
# An order is no content, so a list may be sorted to be compared.
CHANGES = names.CHANGES - {"sort", "reverse"}
DISPLAYS = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")


class Names(Protocol):
    """Who answers for what is called, and which variables hold objects of the solution."""

    def role(self, node: ast.expr) -> str: ...

    def is_object(self, variable: str) -> bool: ...


class Copies:
    """What may be one and the same value, at a place in the tests."""

    def __init__(self, reading: Names) -> None:
        self.reading = reading
        self.tied: dict[str, set[str]] = {}  # variables, and what may share memory with each
        self.results: dict[str, set[str]] = {}  # variables, and the functions that gave them
        self.changed: dict[str, str] = {}  # what would show a change, and the change
        self.stale: set[str] = set()  # what an object may have changed since

    def reasons(self, statements: Iterable[ast.AST]) -> Iterator[str]:
        for statement in statements:
            if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                yield from self._inside(statement)
                continue
            blocks = [block for name in BLOCKS if isinstance(block := getattr(statement, name, None), list)]
            heads = [statement] if not blocks else [node for node in ast.iter_child_nodes(statement) if not _is_inner(node, blocks)]
            for _ in range(2 if isinstance(statement, ast.For | ast.AsyncFor | ast.While) else 1):
                yield from self._step(statement, heads)
                for block in blocks:
                    yield from self.reasons(block)

    def _inside(self, definition: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> Iterator[str]:
        """What is local to a function is forgotten after it."""
        tied, results, stale = dict(self.tied), dict(self.results), set(self.stale)
        yield from self.reasons(definition.body)
        if not isinstance(definition, ast.ClassDef):
            self.tied, self.results, self.stale = tied, results, stale
            self.changed = {name: why for name, why in self.changed.items() if self.reading.role(ast.Name(name)) in ("function", "maker")}

    def _step(self, statement: ast.AST, heads: list[ast.AST]) -> Iterator[str]:
        nodes = [node for head in heads for node in ast.walk(head)]
        used = {_token(node) for node in nodes if isinstance(getattr(node, "ctx", None), ast.Load)} - {""}
        for name in sorted(used & self.changed.keys()):
            yield f"the tests {self.changed[name]}, and ask {name} after that"
        if isinstance(statement, ast.Assert) or (isinstance(statement, ast.Expr) and _called(statement.value).startswith("assert")):
            yield from self._judged(used, nodes)
        objects = {name for name in used if self.reading.is_object(name)} | set(_consumed(statement, nodes))
        self.stale |= {name for asked in objects for name in self._reached(asked) if not self.reading.is_object(name)}
        self.stale -= objects
        for node in nodes:
            if isinstance(node, ast.Call):
                self._handed(node)
        for target, value in _bindings(statement, nodes):
            self._bound(target, value)
        for node in nodes:
            for target in changed(node):
                self._change(target)

    def _judged(self, used: set[str], nodes: list[ast.AST]) -> Iterator[str]:
        """An assertion about nothing but a copy: of what was handed over, or of a list that was returned."""
        is_fresh = any(self.reading.is_object(name) or self.reading.role(ast.Name(name)) for name in used)
        is_fresh = is_fresh or any(name in self.results and name not in self.stale for name in used)
        is_list = any(isinstance(node, DISPLAYS) for node in nodes)
        stale = sorted(name for name in used & self.stale if is_list or name not in self.results)
        if stale and not is_fresh:
            yield f"the tests look at {stale[0]}, which an object of the solution may have changed"

    def _handed(self, call: ast.Call) -> None:
        """An object may keep what it is handed."""
        holder = _token(call.func.value) if isinstance(call.func, ast.Attribute) else ""
        if self.reading.is_object(holder):
            for name in _handed_names(call):
                self._tie(name, holder)

    def _bound(self, target: ast.expr, value: ast.expr) -> None:
        for name in {_token(part) for part in ast.walk(target)} - {""}:
            for other in self.tied.pop(name, ()):
                self.tied[other].discard(name)
            self.results.pop(name, None)
            self.changed.pop(name, None)
            self.stale.discard(name)
            for other in self._shared(value):
                if self.reading.role(ast.Name(other)) in ("function", "maker"):
                    self.results.setdefault(name, set()).add(other)
                else:
                    self._tie(name, other)
                    if self.reading.is_object(other) or other in self.results:
                        self.results.setdefault(name, set())

    def _tie(self, name: str, other: str) -> None:
        if name != other:
            self.tied.setdefault(name, set()).add(other)
            self.tied.setdefault(other, set()).add(name)

    def _reached(self, name: str) -> set[str]:
        reached, waiting = set[str](), [name]
        while waiting:
            if (found := waiting.pop()) not in reached:
                reached.add(found)
                waiting += self.tied.get(found, ())
        return reached - {name}

    def _change(self, target: ast.expr) -> None:
        name = _token(target)
        if self.reading.is_object(name):
            return  # which is asked for the change
        why = f"change {ast.unparse(target)[:80]}"
        for root in {name} if name else self._shared(target):
            functions = self.results.get(root, set())
            siblings = {other for other, makers in self.results.items() if makers & functions}
            shown = self._reached(root) | functions | siblings - {root}
            if self.reading.is_object(root) or self.reading.role(ast.Name(root)):
                shown.add(root)
            self.changed |= dict.fromkeys(shown, why)

    def _shared(self, node: ast.expr) -> set[str]:
        """The variables and functions that a value may share memory with."""
        if name := _token(node):
            return {name}
        if isinstance(node, ast.Call):
            if _called(node) in COPYING:
                return set()
            role = self.reading.role(node.func)
            own = {_token(node.func)} if role and isinstance(node.func, ast.Name) and role != "class" else set()
            receiver = self._shared(node.func.value) if isinstance(node.func, ast.Attribute) and not role else set()
            return own | receiver | (_handed_names(node) if role or receiver else set())
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
            return set()
        if isinstance(node, ast.Attribute | ast.Subscript | ast.Await | ast.Starred | ast.NamedExpr):
            return self._shared(node.value)
        if isinstance(node, ast.IfExp | ast.BoolOp | ast.Tuple):
            return set[str]().union(*(self._shared(part) for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr)))
        return set()


def _token(node: ast.AST) -> str:
    """A variable, or a field of the test case."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
        return f"self.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def _called(node: ast.AST) -> str:
    func = node.func if isinstance(node, ast.Call) else None
    return func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""


def _is_inner(node: ast.AST, blocks: list[list[ast.AST]]) -> bool:
    return any(node is inner for block in blocks for inner in block)


def _handed_names(call: ast.Call) -> set[str]:
    """The variables in the arguments, but for those of which copies are handed."""
    handed, waiting = set[str](), [*call.args, *(keyword.value for keyword in call.keywords)]
    while waiting:
        node = waiting.pop()
        if name := _token(node):
            handed.add(name)
        elif not (isinstance(node, ast.Call) and _called(node) in COPYING) and not isinstance(node, ast.BinOp | ast.Compare):
            waiting += [part for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr)]
    return handed


def _consumed(statement: ast.AST, nodes: list[ast.AST]) -> Iterator[str]:
    """The variables that are gone through, which makes an iterator of the solution go on."""
    calls = (node for node in nodes if isinstance(node, ast.Call) and _called(node) in CONSUMING)
    through = [arg for call in calls for arg in call.args] + ([statement.iter] if isinstance(statement, ast.For) else [])
    return (name for node in through if (name := _token(node)))


def _bindings(statement: ast.AST, nodes: list[ast.AST]) -> Iterator[tuple[ast.expr, ast.expr]]:
    for node in [statement, *nodes] if statement not in nodes else nodes:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                pairs = isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)
                yield from zip(target.elts, node.value.elts, strict=False) if pairs else [(target, node.value)]  # type: ignore[attr-defined]
        elif isinstance(node, ast.NamedExpr | ast.AnnAssign) and node.value:
            yield node.target, node.value
        elif isinstance(node, ast.For | ast.AsyncFor):
            yield node.target, node.iter
        elif isinstance(node, ast.withitem) and node.optional_vars:
            yield node.optional_vars, node.context_expr


def changed(node: ast.AST) -> Iterator[ast.expr]:
    """The values that are changed in their place."""
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr in CHANGES:
            receiver = node.func.value
            is_chain = isinstance(receiver, ast.Call) and _called(receiver) in CHANGES - {"pop", "popitem"}
            if not is_chain:  # what such a method of a list gives has no methods, so it is an object's
                yield receiver
        elif _called(node) in CHANGING and node.args:
            yield node.args[0]
    elif isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
        yield node.value
    elif isinstance(node, ast.AugAssign) and isinstance(node.value, DISPLAYS):
        yield node.target
