"""Find in the text of tests what copies cannot show: a value that is changed here and asked about over there.

What a solution is handed and what it returns are copies. A list that is changed after that, by the tests or by an
object of the solution, is the same list in one process and two in two: whether anything shows it is decided here,
statement by statement, as if every branch were taken and every loop ran twice.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import yaml

from blade_eval.sandbox import names

WORDS: dict[str, set[str]] = {
    name: set(words.split()) for name, words in yaml.safe_load((Path(__file__).parent / "words.yaml").read_text("utf-8")).items()
}
# An order is no content, so a list may be sorted to be compared.
CHANGES = names.CHANGES - {"sort", "reverse"}
DISPLAYS = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")


class Copies:
    """What may be one and the same value, at a place in the tests.

    `role` says as what the tests know a name of the solution, and `is_object` whether a variable holds an object of
    the solution, which is asked for whatever is done to it.
    """

    def __init__(self, role: Callable[[ast.expr], str], is_object: Callable[[str], bool]) -> None:
        self.role, self.is_object = role, is_object
        self.same: dict[str, set[str]] = {}  # variables of one value or of parts of it, which really are the same
        self.copies: dict[str, set[str]] = {}  # what a value was copied from or to: variables, objects and functions
        self.given: set[str] = set()  # variables that hold what the solution gave
        self.changed: dict[str, str] = {}  # what would show a change, and the change
        self.stale: set[str] = set()  # what an object may have changed since

    def reasons(self, statements: Iterable[ast.AST]) -> Iterator[str]:
        for statement in statements:
            if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
                before = copy.deepcopy((self.same, self.copies, self.given, self.stale))
                yield from self.reasons(statement.body)
                self.same, self.copies, self.given, self.stale = before  # what is local to it is forgotten
                self.changed = {name: why for name, why in self.changed.items() if self._is_function(name)}
                continue
            blocks = [block for name in BLOCKS if isinstance(block := getattr(statement, name, None), list)]
            inner = {id(node) for block in blocks for node in block}
            nodes = [node for head in ast.iter_child_nodes(statement) if id(head) not in inner for node in ast.walk(head)]
            for _ in range(2 if isinstance(statement, ast.For | ast.AsyncFor | ast.While) else 1):
                yield from self._step([statement, *nodes])
                for block in blocks:
                    yield from self.reasons(block)

    def _step(self, nodes: list[ast.AST]) -> Iterator[str]:
        used = {_token(node) for node in nodes if isinstance(getattr(node, "ctx", None), ast.Load)} - {""}
        for name in sorted(used & self.changed.keys()):
            yield f"the tests {self.changed[name]}, and ask {name} after that"
        is_judged = isinstance(nodes[0], ast.Assert) or (isinstance(nodes[0], ast.Expr) and _called(nodes[0].value).startswith("assert"))
        if is_judged and (stale := self._stale(used, nodes)):
            yield f"the tests look at {stale}, which an object of the solution may have changed"
        holders = {name for name in used if self.is_object(name)} | _consumed(nodes)
        self.stale |= {name for holder in holders for name in self._shown(holder) if not self.is_object(name)}
        for node in nodes:
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                self._keep(node.func.value, _handed(node))
        for target, value in (*bindings(nodes), *loops(nodes)):
            self._bind(target, value)
        for node in nodes:
            for target in changed(node):
                self._change(target)

    def _is_function(self, name: str) -> bool:
        return self.role(ast.Name(name)) in ("function", "maker")

    def _stale(self, used: set[str], nodes: list[ast.AST]) -> str:
        """Is an assertion about nothing but a copy: of what was handed over, or of a list that was returned?"""
        if any(self.is_object(name) or self.role(ast.Name(name)) or name in self.given - self.stale for name in used):
            return ""
        is_list = any(isinstance(node, DISPLAYS) for node in nodes)
        return min((name for name in used & self.stale if is_list or name not in self.given), default="")

    def _keep(self, holder: ast.expr, handed: set[str]) -> None:
        """An object may keep what it is handed."""
        if self.is_object(_token(holder)):
            for name in handed:
                _tie(self.copies, name, _token(holder))

    def _bind(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Attribute | ast.Subscript) and not _token(target):
            self._keep(target.value, self._shared(value))
            return
        crosses = any(isinstance(part, ast.Call) and self.role(part.func) for part in ast.walk(value))
        for name in {_token(part) for part in ast.walk(target)} - {""}:
            for graph in (self.same, self.copies):
                for other in graph.pop(name, ()):
                    graph[other].discard(name)
            self.given.discard(name)
            self.changed.pop(name, None)
            self.stale.discard(name)
            for other in self._shared(value):
                is_copy = crosses or self.is_object(other)
                _tie(self.copies if is_copy else self.same, name, other)
                if is_copy or other in self.given:
                    self.given.add(name)

    def _shown(self, name: str) -> set[str]:
        """What shows a change of a value in one process and does not in two."""
        same, waiting = set[str](), [name]
        while waiting:
            if (other := waiting.pop()) not in same:
                same.add(other)
                waiting += self.same.get(other, ())
        shown, waiting = set[str](), [copied for other in same for copied in self.copies.get(other, ())]
        while waiting:
            if (other := waiting.pop()) not in shown | same:
                shown.add(other)
                others = self.same.get(other, set()) | self.copies.get(other, set())
                waiting += [further for further in others if not self._is_function(further)]
        return shown

    def _change(self, target: ast.expr) -> None:
        name = _token(target)
        for root in {name} if name else self._shared(target):
            is_asked = self.is_object(root) or self._is_function(root)
            if not name or not is_asked:  # an object is asked to change itself
                shown = self._shown(root) | ({root} if is_asked else set())
                self.changed |= dict.fromkeys(shown, f"change {ast.unparse(target)[:80]}")

    def _shared(self, node: ast.expr) -> set[str]:
        """The variables and functions that a value may share memory with."""
        if name := _token(node):
            return {name}
        if isinstance(node, ast.Call):
            role = self.role(node.func)
            if _called(node) in WORDS["copying"] and not role:
                return set()
            own = {_token(node.func)} - {""} if role in ("function", "maker") else set()
            receiver = self._shared(node.func.value) if isinstance(node.func, ast.Attribute) and not role else set()
            return own | receiver | (_handed(node) if role or receiver else set())
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
            return set()
        if isinstance(node, ast.Attribute | ast.Subscript | ast.Await | ast.Starred | ast.NamedExpr):
            return self._shared(node.value)
        if isinstance(node, ast.IfExp | ast.BoolOp | ast.Tuple):
            return set[str]().union(*(self._shared(part) for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr)))
        return set()


def _tie(graph: dict[str, set[str]], name: str, other: str) -> None:
    if name != other:
        graph.setdefault(name, set()).add(other)
        graph.setdefault(other, set()).add(name)


def _token(node: ast.AST) -> str:
    """A variable, or a field of the test case."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
        return f"self.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def _called(node: ast.AST) -> str:
    func = node.func if isinstance(node, ast.Call) else None
    return func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""


def _handed(call: ast.Call) -> set[str]:
    """The variables in the arguments, but for those of which copies are handed."""
    handed, waiting = set[str](), [*call.args, *(keyword.value for keyword in call.keywords)]
    while waiting:
        node = waiting.pop()
        if name := _token(node):
            handed.add(name)
        elif _called(node) not in WORDS["copying"] and not isinstance(node, ast.BinOp | ast.Compare):
            waiting += [part for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr)]
    return handed


def _consumed(nodes: list[ast.AST]) -> set[str]:
    """The variables that are gone through, which makes an iterator of the solution go on."""
    calls = (node for node in nodes if isinstance(node, ast.Call) and _called(node) in WORDS["consuming"])
    through = [arg for call in calls for arg in call.args] + [node.iter for node in nodes if isinstance(node, ast.For)]
    return {_token(node) for node in through} - {""}


def bindings(nodes: Iterable[ast.AST]) -> Iterator[tuple[ast.expr, ast.expr]]:
    """What is given a name, and the value that it has."""
    for node in nodes:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                    yield from zip(target.elts, node.value.elts, strict=False)
                else:
                    yield target, node.value
        elif isinstance(node, ast.NamedExpr | ast.AnnAssign) and node.value:
            yield node.target, node.value
        elif isinstance(node, ast.withitem) and node.optional_vars:
            yield node.optional_vars, node.context_expr


def loops(nodes: Iterable[ast.AST]) -> Iterator[tuple[ast.expr, ast.expr]]:
    """What is given the items of something."""
    return ((node.target, node.iter) for node in nodes if isinstance(node, ast.For | ast.AsyncFor | ast.comprehension))


def changed(node: ast.AST) -> Iterator[ast.expr]:
    """The values that are changed in their place."""
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr in CHANGES:
            receiver = node.func.value
            is_chain = isinstance(receiver, ast.Call) and _called(receiver) in CHANGES - {"pop", "popitem"}
            if not is_chain:  # what such a method of a list gives has no methods, so it is an object's
                yield receiver
        elif _called(node) in WORDS["changing"] and node.args:
            yield node.args[0]
    elif isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
        yield node.value
    elif isinstance(node, ast.AugAssign) and isinstance(node.value, DISPLAYS):
        yield node.target
