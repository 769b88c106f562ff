"""Read from the text of tests what they are, who answers for their names, and what cannot be judged from outside.

Whether tests can be judged in another process than the solution is decided here, before anything runs: nothing
that a solution sends may change it. What a name is to the tests is read here too: a function gives plain data,
a class makes objects that are asked for everything, and what tests judge with comes from a library.
"""

from __future__ import annotations

import ast
import builtins
import re
import symtable
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import import_module
from itertools import chain

from blade_eval.sandbox import names, plain
from blade_eval.sandbox.copies import WORDS, Copies, bindings, changed, loops
from blade_eval.task_row import faulty

MODULE = "solution"  # the name under which tests import it
IMPORTABLE = names.MODULES | {"io", "asyncio", "enum", "dataclasses", "pathlib", "threading", "contextlib"}


@dataclass(frozen=True)
class Asserted:
    """Tests that are programs: they call the solution by its names and fail by an exception."""

    tests: Sequence[str]
    setup: str = ""  # runs before the tests, out of the solution's reach
    before: str = ""  # runs before the solution: what the task gave, such as imports and helpers
    entry: str | None = None
    names: Mapping[str, str] = field(default_factory=dict)  # other names under which the tests know the solution's
    question: str = ""  # what the model was asked, which may say that a name is a class


@cache
def _libraries() -> dict[str, str]:
    """The names of libraries that tests use, and the module that each comes from."""
    members: dict[str, str] = {}
    for home in sorted(WORDS["libraries"]):
        library = import_module(home)
        members |= dict.fromkeys(getattr(library, "__all__", dir(library)), home)
    others = {name for name in members if name.startswith("_") or name in sys.stdlib_module_names or hasattr(builtins, name)}
    public = {name: home for name, home in members.items() if name not in others}
    return {**public, **names.HOME, **names.JUDGED_BY, "copy": "copy"}


class Reading:
    """What the text of the tests says of the names in it."""

    def __init__(self, task: Asserted) -> None:
        self.task = task
        texts = (task.setup, *task.tests)
        trees = [_tree(text) for text in texts]
        prompt = _tree(task.before, lenient=True)
        self.statements = [statement for tree in trees for statement in tree.body]
        self.nodes = [node for tree in trees for node in ast.walk(tree)]
        self.parents = {child: node for node in self.nodes for child in ast.iter_child_nodes(node)}
        self.wording = f"{task.before}\n{task.question}"
        self.asked: dict[str, set[str]] = {}  # of each name, its attributes
        self.origins: dict[str, str] = {}  # of each name that is imported, where it comes from
        self.aliases = dict(task.names)
        for node in self.nodes:
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                self.asked.setdefault(node.value.id, set()).add(node.attr)
            if isinstance(node, ast.Import):
                self.origins |= {alias.asname or alias.name: alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module == MODULE:
                self.aliases |= {alias.asname or alias.name: alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                self.origins |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
        self.modules = {name for name, origin in self.origins.items() if origin == MODULE}
        self.origins = {name: origin for name, origin in self.origins.items() if origin != MODULE}
        stubs = {node.name for node in prompt.body if isinstance(node, DEFINED[2:]) and _is_stub(node)} | {task.entry}
        own = [node for tree in (prompt, *trees) for node in ast.walk(tree) if isinstance(node, DEFINED[2:])]
        self.own = {node.name: node for node in own if node.name not in stubs}
        bound = (set[str]().union(*map(_bound, texts)) | _bound(task.before) - stubs) - self.aliases.keys()
        members = {node.attr for node in self.nodes if isinstance(node, ast.Attribute) and self._is_module(node.value)}
        faults = {node.name for node in self.nodes if isinstance(node, ast.ExceptHandler) and node.name}
        self.catching = [kind for node in self.nodes for kind in _caught(node, faults)]
        self.caught = {self._name(kind) for kind in self.catching} - {"", *self.origins}
        free = set[str]().union(*map(_free, texts)) - bound
        self.called = {self._name(node.func) for node in self.nodes if isinstance(node, ast.Call)}
        self.theirs = {*task.names.values(), *self.aliases.values(), *members} - {"*"}
        known = {name for name in free if self._library(name) or hasattr(builtins, name)}
        self.theirs |= free - known - self.aliases.keys() | {name for name in known if self._is_wanted(name)}
        self.theirs -= self.caught
        self.theirs |= self._under_test(free)
        self.library = {name: role for name in free - self.theirs if (role := self._library(name))}
        doubtful = {name for name, role in self.library.items() if role.startswith("from")}
        self.doubtful = doubtful - names.HOME.keys() - names.JUDGED_BY.keys()
        self.is_timed = any(_last_name(node.func) in WORDS["clocks"] for node in self.nodes if isinstance(node, ast.Call))
        words = {part for origin in self.origins.values() for part in origin.split(".")} | {_last_name(node) for node in self.nodes}
        self.arrays = sorted(words & WORDS["arrays"])
        compared = (part for node in self.nodes if isinstance(node, ast.Compare) for part in ast.walk(node))
        self.types = sorted({part.id for part in compared if isinstance(part, ast.Name)} & plain.BUILTIN.keys())
        homes = {"random": "random", "numpy": "numpy.random", "np": "numpy.random"} if "seed" in words else {}
        self.seeded = sorted({home for name, home in homes.items() if name in words})
        self.makers = dict(self._makers())
        self.foreign: dict[str, bool] = {}  # of variables

    # ---- Names ----

    def roles(self) -> dict[str, str]:
        """Who answers for each name that the tests use and do not define."""
        caught = self.caught | {self._origin(kind) for kind in self.catching}
        if any(_ends_quietly(node) for node in self.nodes):  # such an exception would end more than what catches it
            caught -= {"StopIteration", "StopAsyncIteration"}
        roles = {**self.library, **dict.fromkeys(caught - {""}, "caught")}
        for name in self.theirs:
            values = (node for node in self.nodes if isinstance(node, ast.expr) and self._name(node) == name)
            is_value = name not in self.called and any(isinstance(self.parents.get(node), VALUED) for node in values)
            role = self.role(ast.Name(name))
            roles[name] = "given" if is_value and role == "function" else role
        return roles

    def _is_wanted(self, name: str) -> bool:
        """Does the task ask for something of this name, which libraries have too?"""
        return not self.task.entry and bool(re.search(ASKING.format(name), self.wording))

    def _origin(self, node: ast.AST) -> str:
        """Where something of a library comes from, such as `json.loads`; empty for everything else."""
        if isinstance(node, ast.Attribute):
            home = self._origin(node.value)
            return f"{home}.{node.attr}" if home else ""
        name = node.id if isinstance(node, ast.Name) else ""
        is_module = name in sys.stdlib_module_names and name not in self._assigned and name not in self.theirs
        return self.origins.get(name) or names.ALIASES.get(name) or (name if is_module else "")

    def _library(self, name: str) -> str:
        """Is it a module or a member of one, of those that tests use without importing them?"""
        attributes = self.asked.get(name, set())
        is_class = name in names.JUDGED_BY and (name in self.called or not attributes - {"now", "today", "strptime"})
        if attributes and not is_class and (name in names.ALIASES or name in sys.stdlib_module_names):
            return "module"
        return f"from {home}" if (home := _libraries().get(name)) else ""

    def _under_test(self, free: set[str]) -> set[str]:
        """The customary names that are the solution's: the entry, or what an assertion asks that has nothing else to ask."""
        if self.task.entry:
            return set()
        customary = {name for name in free if self._library(name).startswith("from") and name not in names.JUDGED_BY}
        builtin = {name for name in free if callable(native := getattr(builtins, name, None)) and not isinstance(native, type)}
        builtin -= {"print", "isinstance", "len", *self.theirs}
        tested: set[str] = set()
        for node in self.nodes:
            is_call = isinstance(node, ast.Call) and _last_name(node.func) in WORDS["compared"]
            is_bare = isinstance(node, ast.Assert) and not any(isinstance(part, ast.Compare) for part in ast.walk(node))
            if is_call or is_bare or isinstance(node, ast.Compare):
                used, parts = self._used(node)
                if all(name not in self._handed and (hasattr(builtins, name) or self._library(name)) for name in used):
                    tested |= set[str]().union(*(self._innermost(part, customary) for part in parts))
                    if not tested and not self.theirs:
                        tested = self._innermost(node, builtin)
        if not tested and not self.theirs:
            tested = self.called & customary or self.called & builtin
        return tested

    def _used(self, node: ast.AST) -> tuple[set[str], list[ast.AST]]:
        """The names behind an assertion, through the variables in it, and the expressions in which they stand."""
        used: set[str] = set()
        parts, waiting, seen = [node], list(_names_in(node)), {"self"}
        while waiting:
            name = waiting.pop()
            if name in seen:
                continue
            seen.add(name)
            values = self._assigned.get(name)
            if values and name not in self._handed:
                parts += values
                waiting += self._behind[name]
            else:
                used.add(name)
        return used, parts

    def _innermost(self, node: ast.AST, known: set[str]) -> set[str]:
        calls = [part for part in ast.walk(node) if isinstance(part, ast.Call) and self._name(part.func) in known]
        return {self._name(call.func) for call in calls if not any(part is not call and part in calls for part in ast.walk(call))}

    def _is_module(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and node.id in self.modules

    def _name(self, node: ast.expr) -> str:
        """The solution's own name for what is called or used, where it is a name at all."""
        if isinstance(node, ast.Attribute) and self._is_module(node.value):
            return node.attr
        return self.aliases.get(node.id, node.id) if isinstance(node, ast.Name) else ""

    def _root(self, node: ast.AST) -> str:
        """What an expression begins with: a name, or a field of the test case."""
        while isinstance(node, ast.Call | ast.Attribute | ast.Subscript | ast.Await):
            if isinstance(node, ast.Attribute):
                if self._is_module(node.value):
                    return node.attr
                if isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
                    return f"self.{node.attr}"
            node = node.func if isinstance(node, ast.Call) else node.value
        return self._name(node) if isinstance(node, ast.expr) else ""

    def _makers(self) -> Iterator[tuple[str, str]]:
        """The variables that hold what a name of the solution gave, and that name."""
        for target, value in bindings(self.nodes):
            maker = self._name(value.func) if isinstance(value, ast.Call) else ""
            if maker in self.theirs:
                yield self._root(target), maker

    def _maker(self, node: ast.AST) -> str:
        """The name of the solution that gave what an expression is."""
        if isinstance(node, ast.Call) and self._name(node.func) in self.theirs:
            return self._name(node.func)
        is_held = isinstance(node, ast.Name) or (isinstance(node, ast.Attribute) and self._root(node).startswith("self."))
        return self.makers.get(self._root(node), "") if is_held else ""

    # ---- Classes ----

    def _objects(self, name: str) -> bool:
        """Do the tests use what a name gives as an object that is no plain data?"""
        return bool(self._attributes.get(name, set()) - names.PLAIN) or (self._may_be_class(name) and "object" in self._uses.get(name, ()))

    @cached_property
    def _attributes(self) -> dict[str, set[str]]:
        """What the tests ask of the objects that each name gives."""
        attributes: dict[str, set[str]] = {}
        for node in self.nodes:
            if isinstance(node, ast.Attribute) and not node.attr.startswith("__") and (maker := self._maker(node.value)):
                call = self.parents.get(node)
                is_own = node.attr in ("sort", "reverse") and isinstance(call, ast.Call) and call.args  # a list's take none
                attributes.setdefault(maker, set()).add(f"own {node.attr}" if is_own else node.attr)
        return attributes

    @cached_property
    def classes(self) -> set[str]:
        """The solution's names that are classes, by what the task says or by how the tests use them."""
        classes = {
            self._name(part) for node in self.nodes
            if isinstance(node, ast.Call) and self._name(node.func) in ("isinstance", "issubclass") and len(node.args) > 1
            for part in ast.walk(node.args[1]) if isinstance(part, ast.expr)
        }  # fmt: skip
        for name in self.theirs:
            is_defined = re.search(rf"\bdef {name}\b", self.wording)
            word = rf"{name}\b" if _is_camel(name) and not is_defined else rf"{name}\s*[(:]"  # not "the class average"
            is_named = re.search(rf"\bclass\s+[`'\"]*{word}", self.wording)
            if is_named or (_is_camel(name) and not is_defined and self._looks_like_class(name)):
                classes.add(name)
        return classes & self.theirs

    def _looks_like_class(self, name: str) -> bool:
        if self._attributes.get(name, set()) - (names.PLAIN - names.CHANGES | {"sort", "reverse"}):
            return True
        is_held = any(isinstance(node, ast.Attribute) and self._name(node.value) == name for node in self.nodes)
        if is_held and not (name.isupper() and len(name) > 1):
            return True
        uses = self._uses.get(name, set())
        return "context" in uses or ("object" in uses and "plain" not in uses)

    @cached_property
    def _uses(self) -> dict[str, set[str]]:
        """As what the tests use what each name of the solution gives."""
        uses: dict[str, set[str]] = {}
        for node in self.nodes:
            if maker := self._maker(node):
                uses.setdefault(maker, set()).update(self._uses_of(node))
        return uses

    def _uses_of(self, node: ast.AST) -> Iterator[str]:
        """As what the tests use a value of the solution: a context, an object, or plain data."""
        while node in self.parents:
            inner, node = node, self.parents[node]
            if isinstance(node, ast.withitem):
                yield "context"
            sides: list[ast.expr] = []
            if isinstance(node, ast.Compare):
                sides = [node.left, *node.comparators]
                if inner is not node.left and isinstance(node.ops[0], ast.In | ast.NotIn):
                    yield "container"
                    return
            elif isinstance(node, ast.Call) and _last_name(node.func) in WORDS["compared"]:
                sides = node.args[:2]
            if sides:
                others = [part for side in sides if side is not inner for part in ast.walk(side)]
                yield "object" if any(_is_camel(self._maker(part)) for part in others) else "plain"
                return
            if isinstance(node, ast.BinOp | ast.AugAssign):
                other = next(part for part in ast.iter_child_nodes(node) if part is not inner and isinstance(part, ast.expr))
                if _is_camel(self._maker(other)):
                    yield "object"
            is_solutions = isinstance(node, ast.Call) and inner is not node.func and self._name(node.func) in self.theirs
            is_copied = isinstance(node, ast.Call) and _last_name(node.func) in ("deepcopy", "copy", "hash")
            if isinstance(node, ast.Set | ast.Dict) or is_solutions or is_copied:
                yield "object"
                return
            if isinstance(node, ast.stmt):
                return

    # ---- What cannot be judged from outside ----

    def unreachable(self) -> str | None:
        """What cannot be seen from another process, whatever the solution does."""
        objects = self.classes | {name for name in self.theirs if self._objects(name)}
        reasons = (reason for node in self.nodes for reason in self._reasons(node, objects))
        return next(chain(reasons, Copies(self.role, self.is_object).reasons(self.statements)), None)

    def role(self, node: ast.expr) -> str:
        """As what the tests know a name of the solution; empty when it is none."""
        name = self._name(node)
        return "" if name not in self.theirs else "class" if name in self.classes else "maker" if self._objects(name) else "function"

    def is_object(self, variable: str) -> bool:
        """Does a variable hold an object of the solution, which is asked for whatever is done to it?"""
        maker = self.makers.get(variable, "")
        is_asked = variable in self._assigned and bool(self.asked.get(variable, set()) - names.PLAIN)
        return is_asked or maker in self.classes or self._objects(maker)

    def _reasons(self, node: ast.AST, objects: set[str]) -> Iterator[str]:
        for target in changed(node):
            is_item = isinstance(node, ast.Subscript) or isinstance(target, ast.Subscript)
            while isinstance(target, ast.Subscript):
                target = target.value
            if is_item and self._may_be_class(maker := self._maker(target)):
                yield f"the tests do not show whether {maker} is a class, which is asked to change"
        if isinstance(node, ast.ClassDef) and (own := {self._name(base) for base in node.bases} & self.theirs):
            yield f"the tests derive a class from {min(own)}"
        elif isinstance(node, ast.Compare):
            if isinstance(node.ops[0], ast.Is | ast.IsNot):
                yield from self._identity([node.left, node.comparators[0]])
            maker = self._maker(node.comparators[0])
            if self._may_be_class(maker) and self._uses[maker] == {"container"}:
                yield f"the tests do not show whether {maker} is a class, which says itself what is in it"
        elif isinstance(node, ast.With | ast.AsyncWith):
            is_own = any(self._maker(item.context_expr) for item in node.items)
            if is_own and (isinstance(node, ast.AsyncWith) or any(_raises(part) for part in ast.walk(node))):
                yield "the tests raise an exception within a context of the solution"
        elif isinstance(node, ast.AsyncFor | ast.comprehension) and self._maker(node.iter):
            if isinstance(node, ast.AsyncFor) or node.is_async:
                yield "the tests iterate asynchronously"
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if any(self._root(decorator) in self.theirs for decorator in node.decorator_list):
                yield "the tests hand a function to the solution"
        elif isinstance(node, ast.Name | ast.Attribute) and _last_name(node) in WORDS["frames"]:
            yield f"the tests use a {_last_name(node)} of pandas"
        elif isinstance(node, ast.Name) and self._name(node) in self.caught - self.own.keys() - set(dir(builtins)):
            raised = self.parents.get(node)
            raised = self.parents.get(raised) if isinstance(raised, ast.Call) and raised.func is node else raised
            if node not in self.catching and not isinstance(raised, ast.Raise):
                yield f"the tests ask more of {node.id} than to catch it"
        elif isinstance(node, ast.Attribute) and node.attr in WORDS["inner"]:
            if node.attr in WORDS["chained"] or self._name(node.value) in self.theirs or self._maker(node.value) in objects:
                yield f"the tests look at {node.attr}"
        elif isinstance(node, ast.Attribute) and node in self.catching and self._root(node.value) in self.theirs:
            yield f"the tests catch {node.attr}, which a class of the solution holds"
        elif isinstance(node, ast.TryStar):
            yield "the tests catch groups of exceptions"
        elif isinstance(node, ast.Assign | ast.AugAssign | ast.Delete):
            for target in [node.target] if isinstance(node, ast.AugAssign) else node.targets:
                is_modules = isinstance(target, ast.Attribute) and self._is_module(target.value)
                if is_modules or any(ast.unparse(target).startswith(place) for place in WORDS["shared places"]):
                    yield f"the tests change {ast.unparse(target)}, which each process has for itself"
        elif isinstance(node, ast.Call):
            yield from self._reasons_of_call(node, objects)

    def _reasons_of_call(self, node: ast.Call, objects: set[str]) -> Iterator[str]:
        name = _last_name(node.func)
        roots = {self.makers.get(root, root) for root in (self._root(argument) for argument in node.args)}
        home = self._home(node.func)
        if name in WORDS["same"]:
            yield from self._identity(node.args[:2])
        inner = {self._name(part.func) for argument in node.args for part in ast.walk(argument) if isinstance(part, ast.Call)}
        if isinstance(node.func, ast.Name) and name in self.theirs - self.classes - {self.task.entry} and not self._is_wanted(name):
            is_bare = isinstance(self.parents.get(node), ast.Assert | ast.BoolOp)
            if name.startswith("assert") or self.task.entry in inner or (is_bare and inner & self.theirs - {name}):
                yield f"the tests judge with {name}, which nobody defines"
        if name in self.doubtful:
            objects_in = {self._maker(part) for argument in node.args for part in ast.walk(argument)} & self.classes
            customary = {part for part in inner & self.theirs if self._library(part)}
            if objects_in or customary or self._is_handed_on(node):
                yield f"the tests do not show who answers for {name}: {self.library[name]}, or the solution"
        if isinstance(node.func, ast.Attribute) and self._may_be_class(maker := self._maker(node.func.value)) and name in names.PLAIN:
            yield f"the tests do not show whether {maker} is a class, which has a method {name} of its own"
        if name in WORDS["at once"] and self.is_timed:
            yield "the tests let calls wait for one another"
        if name == "throw" and isinstance(node.func, ast.Attribute) and self._maker(node.func.value):
            yield "the tests throw an exception into an iterator of the solution"
        if (isinstance(node.func, ast.Name) and name in WORDS["looks"] and roots & (self.theirs if name == "callable" else objects)) or (
            home in WORDS["looking"] and roots & self.theirs
        ):
            yield f"the tests look into an object with {name}"
        is_file = name in WORDS["file methods"] and not self._maker(node.func.value) if isinstance(node.func, ast.Attribute) else False
        if is_file or (home in WORDS["file modules"] and name not in WORDS["only names"]):
            yield f"the tests use files with {name}, which are not there for another process"
        is_shared = f"{home}.{name}" in WORDS["shared settings"] or name in WORDS["shared calls"]
        if is_shared or "patch" in (part.id for part in ast.walk(node.func) if isinstance(part, ast.Name)):
            yield f"the tests use {name}, which does not reach another process"
        if name == "isinstance" and any(_last_name(part) in WORDS["inner types"] for part in ast.walk(node.args[-1])):
            yield "the tests ask for a type that only the own process has"
        if name == "hasattr" and ast.unparse(node.args[-1]).startswith("'__"):
            yield "the tests ask for a method that every object here has"
        if self._asks(node, objects):
            for argument in (*node.args, *(keyword.value for keyword in node.keywords)):
                if self._is_foreign(argument):
                    yield f"{ast.unparse(node.func)[:80]} is called with {ast.unparse(argument)[:80]}, which is no plain data"

    def _may_be_class(self, name: str) -> bool:
        """Do neither the task nor the tests show whether a name is a class or a function?"""
        return _is_camel(name) and name not in self.classes and not re.search(rf"\bdef {name}\b", self.wording)

    def _is_handed_on(self, node: ast.AST) -> bool:
        """Does a value go into a call of the solution?"""
        while isinstance(node := self.parents.get(node, node), ast.expr | ast.keyword) and node in self.parents:
            if isinstance(node, ast.Call) and self._name(node.func) in self.theirs:
                return True
        return False

    def _identity(self, sides: list[ast.expr]) -> Iterator[str]:
        """Whether two values are the same object; `is None` and `is int` ask for something else."""
        called = [side.func if isinstance(side, ast.Call) else side for side in sides]
        is_plain = any(isinstance(side, ast.Constant | ast.UnaryOp | ast.Compare | ast.BoolOp) for side in called)
        if not is_plain and not any(isinstance(side, ast.Name) and hasattr(builtins, side.id) for side in called):
            yield "the tests ask whether two values are the same object"

    def _home(self, node: ast.expr) -> str:
        """The module of a function that is called."""
        return self._origin(node).rpartition(".")[0]

    def _asks(self, node: ast.Call, objects: set[str]) -> bool:
        """Is this a call of the solution, or of a method of an object of its own?"""
        if self._name(node.func) in self.theirs:
            return True
        if not isinstance(node.func, ast.Attribute):
            return _last_name(node.func) in self.makers
        root = self._root(node.func)
        return root in self.classes or self.makers.get(root) in objects

    def _is_foreign(self, node: ast.AST, depth: int = 0) -> bool:
        """Is an argument something of the tests that cannot cross: a function, a class, an object of a library?"""
        if isinstance(node, ast.Lambda):
            return True
        if isinstance(node, ast.Name):
            if node.id in self.own:
                return True
            if node.id in self.theirs or node.id in self.aliases or node.id in plain.BUILTIN or depth > 3:
                return False
            if node.id in self._assigned:
                if node.id not in self.foreign:
                    self.foreign[node.id] = any(self._is_foreign(value, depth + 1) for value in self._assigned[node.id])
                return self.foreign[node.id]
        if isinstance(node, ast.Name | ast.Attribute) and (origin := self._origin(node)):
            home, _, name = origin.rpartition(".")
            return not home or (home in IMPORTABLE and callable(getattr(import_module(home), name, None)))
        if isinstance(node, ast.Name):
            return callable(getattr(builtins, node.id, None))
        if isinstance(node, ast.Attribute):
            base = node.value.id if isinstance(node.value, ast.Name) else ""
            return isinstance(getattr(builtins, base, None), type) and base not in self._assigned
        if isinstance(node, ast.Call):
            name = _last_name(node.func)
            return isinstance(self.own.get(name), ast.ClassDef) or (name in WORDS["foreign"] and name not in self.theirs)
        if isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp):
            return self._is_foreign(node.elt, depth)
        if isinstance(node, ast.List | ast.Tuple | ast.Set | ast.Dict | ast.Starred | ast.IfExp | ast.BoolOp):
            return any(self._is_foreign(part, depth) for part in ast.iter_child_nodes(node))
        return False

    @cached_property
    def _assigned(self) -> dict[str, list[ast.expr]]:
        values: dict[str, list[ast.expr]] = {}
        for target, value in (*bindings(self.nodes), *loops(self.nodes)):
            for part in ast.walk(target):
                if isinstance(part, ast.Name):
                    values.setdefault(part.id, []).append(value)
        for node in self.nodes:
            if isinstance(node, ast.arg) or (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)):
                values.setdefault(node.arg if isinstance(node, ast.arg) else node.id, [])
        return values

    @cached_property
    def _behind(self) -> dict[str, set[str]]:
        """The names of which each variable is made."""
        return {name: set[str]().union(*map(_names_in, values)) for name, values in self._assigned.items()}

    @cached_property
    def _handed(self) -> set[str]:
        """The variables that the solution may have changed: what is handed to anything but a known function."""
        calls = (node for node in self.nodes if isinstance(node, ast.Call) and not self._is_known(node))
        waiting = [name for call in calls for part in (*call.args, call.func) for name in _names_in(part)]
        handed: set[str] = set()
        while waiting:
            if (name := waiting.pop()) not in handed:
                handed.add(name)
                waiting += self._behind.get(name, ())
        return handed & self._assigned.keys()

    def _is_known(self, call: ast.Call) -> bool:
        """Does a call go to Python or a library, without anything that could call the solution from there?"""
        name = call.func.id if isinstance(call.func, ast.Name) else ""
        is_library = self._origin(call.func) or hasattr(builtins, name) or (name and self._library(name))
        inner = [part for part in ast.walk(call) if isinstance(part, ast.expr) and part is not call.func]
        calls_back = any(isinstance(part, ast.Lambda | ast.Attribute) or self._name(part) in self.theirs for part in inner)
        return bool(is_library) and not calls_back

    # ---- Known hacks ----

    def review(self) -> list[str]:
        """Known ways in which a wrong solution passes such tests, by name; read from their text alone."""
        hacks = set()
        for node in self.nodes:
            is_all = isinstance(node, ast.Attribute) and node.attr == "all"
            if is_all or (isinstance(node, ast.Call) and _last_name(node.func) in WORDS["close"]):
                hacks.add("an empty array is close to any number")
            loops = node.generators if isinstance(node, ast.GeneratorExp | ast.ListComp) else [node]
            if any(isinstance(loop, ast.For | ast.comprehension) and self._calls(loop.iter) for loop in loops):
                hacks.add("an empty answer ends a loop over it before anything is compared")
            if isinstance(node, ast.Compare):
                makers = {self._maker(part) for side in (node.left, *node.comparators) for part in ast.walk(side)}
                if makers & self.classes:
                    hacks.add("a class says itself what its objects equal and hold: one that always says yes passes")
            if isinstance(node, ast.Assert):
                if self._calls(node.test):
                    hacks.add("any answer that counts as true passes")
                elif isinstance(node.test, ast.Compare) and len(node.test.ops) == 1:
                    sides = [node.test.left, node.test.comparators[0]]
                    if all(map(self._calls, sides)):
                        hacks.add("answers are compared with one another: one answer to everything passes")
                    elif any(map(self._calls, sides)) and set.intersection(*map(_arguments, sides)):
                        hacks.add("what is expected is computed from an argument that the answer may have changed")
                    elif isinstance(node.test.ops[0], ast.NotEq | ast.IsNot):
                        hacks.add("any answer but one passes")
        return sorted(hacks)

    def _calls(self, node: ast.expr) -> bool:
        """Is this a call of the solution?"""
        return isinstance(node, ast.Call) and self._name(node.func) in self.theirs


ASKING = (
    r"\b(?:def\s+{0}\b|class\s+{0}\s*[(:]|(?i:called|named|(?:implement|define|write|create)(?:\s+(?:an?|the|two|python))*"
    r"(?:\s+(?:function|method|class)(?:s|es)?)?)\s+(?:[`*'\"]+{0}\b|{0}\())"
)
VALUED = (ast.Compare, ast.BinOp, ast.UnaryOp, ast.Subscript, ast.Assert, ast.For, ast.Attribute, ast.FormattedValue)


def _arguments(node: ast.AST) -> set[str]:
    return {arg.id for arg in node.args if isinstance(arg, ast.Name)} if isinstance(node, ast.Call) else set()


def _names_in(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def _is_camel(name: str) -> bool:
    """Is it written as classes are: `Square`, but neither `square` nor `Find_Square`?"""
    return name.lstrip("_")[:1].isupper() and "_" not in name.lstrip("_")


def _raises(node: ast.AST) -> bool:
    is_zero = isinstance(node, ast.BinOp) and isinstance(node.right, ast.Constant) and node.right.value == 0
    return is_zero or isinstance(node, ast.Raise)


def _tree(text: str, lenient: bool = False) -> ast.Module:
    """The text of a task, parsed; one that is no Python is the task's fault."""
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        if lenient:
            return ast.Module([], [])
        raise faulty(f"the tests are no Python: {error}") from error


def _bound(text: str) -> set[str]:
    """The names that a program defines at its top."""
    try:
        table = symtable.symtable(text, "<test>", "exec")
    except (SyntaxError, ValueError):  # what was asked is not always a program
        return set()
    return {symbol.get_name() for symbol in table.get_symbols() if symbol.is_assigned() or symbol.is_imported()}


def _free(text: str) -> set[str]:
    """The names that a program looks up and does not define."""
    tables = [symtable.symtable(text, "<test>", "exec")]
    free = set()
    while tables:
        table = tables.pop()
        tables += table.get_children()
        is_top = table.get_type() == "module"
        free |= {s.get_name() for s in table.get_symbols() if s.is_referenced() and (is_top or s.is_global())}
    return free


def _last_name(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _caught(node: ast.AST, faults: set[str]) -> Iterator[ast.Name | ast.Attribute]:
    """The classes of exceptions that the tests expect."""
    kinds: ast.expr | None = None
    if isinstance(node, ast.ExceptHandler):
        kinds = node.type
    elif isinstance(node, ast.Call) and node.args and _last_name(node.func).startswith(("raises", "assertRaises")):
        kinds = node.args[0]
    elif isinstance(node, ast.Call) and _last_name(node.func) in ("isinstance", "assertIsInstance") and len(node.args) > 1:
        fault, wanted = node.args[:2]
        is_fault = _last_name(fault) in ("value", "exception") if isinstance(fault, ast.Attribute) else _last_name(fault) in faults
        kinds = wanted if is_fault else None
    for kind in kinds.elts if isinstance(kinds, ast.Tuple) else [kinds]:
        if isinstance(kind, ast.Name | ast.Attribute):
            yield kind


def _ends_quietly(node: ast.AST) -> bool:
    """Is this an iterator that calls functions, which their StopIteration would end?"""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return node.name in ("__next__", "__anext__")
    return isinstance(node, ast.Call) and _last_name(node.func) in WORDS["iterating"]


def _is_stub(node: ast.AST) -> bool:
    """Is this to be written by the solution: a definition without a body?"""
    if isinstance(node, ast.ClassDef):
        return not node.bases and all(_is_stub(part) for part in node.body)
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return all(_is_stub(part) for part in node.body)
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return is_text or isinstance(node, ast.Pass) or (isinstance(node, ast.Raise) and "NotImplemented" in ast.dump(node))


# ---- The tests of a text ------------------------------------------------------------------------

DEFINED = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
SUITE = "import unittest\nunittest.defaultTestLoader.loadTestsFromTestCase({}).debug()"


def _does(text: str) -> bool:
    """Does a text do anything when it runs? Imports, definitions and comments do not."""
    return any(not _is_still(node) for node in _tree(text).body)


def listed(tests: Sequence[str]) -> list[str]:
    """A list of tests, of which at least one does something."""
    if not any(_does(test) for test in tests):
        raise faulty("the tests do nothing when they run")
    return list(tests)


def statements(text: str, has_entry: bool) -> tuple[str, list[str]]:
    """What comes first, and the tests: `check(candidate)`, each test function or case, or each assertion.

    In front of assertions, only imports and definitions come first: what else stands there is part of a test.
    """
    body = [node for node in _tree(text).body if not _runs_all(node)]
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
    if wanted and WORDS["fixtures"] & set(methods):
        raise faulty(f"{node.name} needs pytest, which would set it up")
    return [f"{node.name}().{name}()" for name in wanted]
