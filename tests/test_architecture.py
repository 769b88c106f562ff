"""The house rules: who imports whom, what stands in which table, and what is loaded late."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.case_tables import tables
from tests.conftest import ROOT

SRC = ROOT / "src" / "blade"
WING = ROOT / "src" / "blade_eval"  # a room of its own, which only the command line enters

HOUSE = tables(__file__, "architecture.yaml")
GROUPS = {name: set(words.split()) for name, words in HOUSE["groups"].items()}
# Room -> the other rooms it may import.
RULES = {room: set().union(*(GROUPS.get(word, {word}) for word in words.split())) for room, words in HOUSE["rules"].items()}
# Families: every module of the folder is a member, and the literal table of this name lists it.
TABLES = {"measure": "MEASURES", "blade_eval/verifiers": "ENVIRONMENTS", "blade_eval/models": "MODELS"}

MODULES = sorted([*SRC.rglob("*.py"), *WING.rglob("*.py")])
OURS = [*MODULES, *sorted((ROOT / "scripts").rglob("*.py")), *sorted((ROOT / "tools").rglob("*.py"))]


def words(name: str) -> set[str]:
    return set(HOUSE[name].split())


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def room_of(path: Path) -> str:
    if path.is_relative_to(WING):
        return WING.name
    parts = path.relative_to(SRC).parts
    return parts[parts[0] == "agent" and parts[1] != "__init__.py"].removesuffix(".py")


@cache
def rooms() -> set[str]:
    halls = (SRC, SRC / "agent")
    folders = {path.name for hall in halls for path in hall.iterdir() if any(path.glob("*.py"))}
    return folders | {path.stem for hall in halls for path in hall.glob("*.py")} | {WING.name}


@cache
def nodes_of(path: Path) -> list[ast.AST]:
    return list(ast.walk(tree_of(path)))


def imported(nodes: Iterable[ast.AST], package: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The dotted names that nodes import; `package` is where their relative imports start."""
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield tuple(alias.name.split("."))
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) + 1 - node.level] if node.level else ()
            source = start + tuple(node.module.split(".") if node.module else ())
            for alias in node.names:
                yield (*source, alias.name)


def imported_rooms(nodes: Iterable[ast.AST], package: tuple[str, ...], known: set[str]) -> set[str]:
    """The rooms that nodes reach into; names of `blade` itself are no room."""
    names = list(imported(nodes, package))
    ours = (name[1 + (name[1] == "agent" and len(name) > 2)] for name in names if name[0] == "blade" and len(name) > 1)
    return {name for name in (*ours, *(name[0] for name in names if name[0] == WING.name)) if name in known}


@cache
def reached(path: Path) -> set[str]:
    """The rooms that a module reaches into."""
    return imported_rooms(nodes_of(path), path.relative_to(ROOT / "src").parent.parts, rooms())


def top_level_packages(tree: ast.Module) -> set[str]:
    """The packages that importing this module loads: TYPE_CHECKING blocks and functions do not count."""
    found: set[str] = set()
    waiting: list[ast.AST] = list(tree.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            waiting += node.orelse
            continue
        if isinstance(node, ast.Import | ast.ImportFrom):
            found |= {name[0] for name in imported([node], ("blade",))}
        waiting += ast.iter_child_nodes(node)
    return found


def table_members(tree: ast.Module, table: str) -> set[str] | None:
    """The words that a literal `TABLE = {...}` holds as values; None when there is no such literal."""
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        is_it = any(isinstance(target, ast.Name) and target.id == table for target in targets)
        if is_it and isinstance(value := getattr(node, "value", None), ast.Dict):
            return set(re.findall(r"\w+", " ".join(map(ast.unparse, value.values))))
    return None


def test_every_room_has_a_rule_and_imports_only_what_it_allows() -> None:
    assert rooms() == set(RULES)
    forbidden = {}
    for path in MODULES:
        forbidden[name_of(path)] = reached(path) - RULES.get(room_of(path), set()) - {room_of(path), "__init__"}
    assert not {name: sorted(found) for name, found in forbidden.items() if found}


@pytest.mark.parametrize(("room", "guest"), [("cli", "__main__"), ("blade_eval", "cli")])
def test_only_one_room_enters(room: str, guest: str) -> None:
    assert {room_of(path) for path in MODULES if room in reached(path)} - {room} == {guest}


@pytest.mark.parametrize("family", sorted(TABLES))
def test_every_family_member_stands_in_its_literal_table(family: str) -> None:
    folder = (WING.parent if "/" in family else SRC) / family
    named = table_members(tree_of(folder / "__init__.py"), TABLES[family])
    assert named is not None, f"{folder}/__init__.py has no literal dict {TABLES[family]}"
    modules = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    if "/" in family:  # a member may be a folder there
        modules |= {path.parent.name for path in folder.glob("*/__init__.py")}
    assert modules == named & modules, f"members of {family} and its {TABLES[family]} differ"


def test_every_module_says_what_it_is_and_is_named_by_a_noun_and_is_no_junk_drawer() -> None:
    first = {name_of(path): (ast.get_docstring(tree_of(path)) or "").partition("\n")[0] for path in MODULES}
    assert not {name: line for name, line in first.items() if not line.endswith(".")}  # a sentence, on one line
    files = [*OURS, *sorted((ROOT / "tests").rglob("*.py"))]
    drawers = [name_of(path) for path in files if words("banned_names") & {path.stem, path.parent.name}]
    assert not drawers
    names = [path.stem for path in OURS if not path.stem.startswith("__")]
    assert not words("participles") & set(names)
    assert len({name for name in names if names.count(name) > 1}) <= 15  # the same kind of thing in several rooms


def empty_locals(nodes: list[ast.AST]) -> Iterator[tuple[int, str]]:
    empty = words("empty_locals")
    fields = {part.target for node in nodes if isinstance(node, ast.ClassDef) for part in node.body if isinstance(part, ast.AnnAssign)}
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node not in fields:  # fields may be wire keys
            name, line = node.id, node.lineno
        elif isinstance(node, ast.arg):
            name, line = node.arg, node.lineno
        else:
            continue
        if name in empty:
            yield line, name


def test_locals_are_nouns_and_functions_are_short() -> None:
    empty = [f"{name_of(path)}:{line} {name}" for path in OURS for line, name in empty_locals(nodes_of(path))]
    assert not empty
    functions = [node for path in MODULES for node in nodes_of(path) if isinstance(node, ast.FunctionDef)]
    lengths = sorted((node.end_lineno or 0) - node.lineno + 1 for node in functions)
    assert lengths[int(0.95 * len(lengths))] <= 40


def test_quick_places_import_heavy_packages_late() -> None:
    quick = sorted({path for glob in HOUSE["light"].split() for path in SRC.glob(glob)})
    heavy = {name_of(path): top_level_packages(tree_of(path)) & words("heavy") for path in quick}
    assert quick
    assert not {name: found for name, found in heavy.items() if found}


def test_help_loads_nothing_heavy() -> None:
    program = (
        "import json, sys\n"
        "from blade.cli.main import cli\n"
        "try:\n    cli(['--help'], prog_name='blade')\n"
        "except SystemExit as stop:\n    assert not stop.code, stop.code\n"
        "print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Usage" in done.stdout
    loaded = set(json.loads(done.stderr.splitlines()[-1]))
    assert "blade" in loaded
    assert not loaded & words("help_never_loads")


# ---- The rules themselves, against planted violations ------------------------------------------


@pytest.mark.parametrize(("source", "reached"), HOUSE["planted_imports"])
def test_planted_imports_are_seen(source: str, reached: str) -> None:
    assert imported_rooms(ast.walk(ast.parse(source)), ("blade", "formats"), {"formats", "tables"}) == set(reached.split())


@pytest.mark.parametrize(("source", "heavy"), HOUSE["planted_heavy_imports"])
def test_planted_heavy_imports_are_seen(source: str, heavy: bool) -> None:
    assert bool(top_level_packages(ast.parse(source)) & words("heavy")) is heavy


@pytest.mark.parametrize(("source", "members"), HOUSE["planted_tables"])
def test_planted_tables_are_read(source: str, members: str | None) -> None:
    found = table_members(ast.parse(source), "T")
    assert found is None if members is None else found == set(members.split())
