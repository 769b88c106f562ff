"""The documents against the code: commands parse, slugs have their heading, paths and names exist."""

from __future__ import annotations

import ast
import contextlib
import json
import re
import runpy
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click
import pytest

from blade import errors
from blade.errors import NothingToRead
from tests.case_tables import tables
from tests.conftest import ROOT
from tests.test_wheel import anchors

SRC = ROOT / "src" / "blade"
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "AGENTS.md", *sorted(DOCS.glob("*.md"))]
# Pages that coding agents are given; those of our own skill run as well, in tests/skills.
SKILLS = [*sorted((ROOT / ".agents" / "skills").rglob("*.md")), *sorted((ROOT / "benchmarks").glob("*/skill/*.md"))]

MEASURES = {kind: names.split() for kind, names in tables(__file__)["measures"].items()}
METHODS = [name for names in MEASURES.values() for name in names] + [f"{name}_median" for name in MEASURES["efforts"]]


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def code_lines(text: str) -> Iterator[str]:
    """The lines of fenced blocks, those that end in a backslash joined to the next."""
    inside = False
    held = ""
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            inside = not inside
        elif inside and line.endswith("\\"):
            held += line[:-1] + " "
        elif inside:
            yield (held + line).strip()
            held = ""


def blade_arguments(text: str) -> Iterator[list[str]]:
    """The arguments of every `blade ...` line in fenced blocks: up to a comment, pipe or redirection."""
    lines = (line.removeprefix("$ ") for line in code_lines(text))
    for line in (line for line in lines if line.startswith("blade ")):
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.commenters = "#"
        lexer.wordchars += ":,"  # --steps 6:10,14 is one word
        words: list[str] = []
        for word in lexer:
            if set(word) <= set("|&;<>()"):
                break
            words.append(word)
        yield words[1:]


def commands(pages: list[Path]) -> list[tuple[str, list[str]]]:
    return [(name_of(page), args) for page in pages for args in blade_arguments(page.read_text(encoding="utf-8"))]


def parse(arguments: list[str]) -> None:
    """Take the command line apart as the program does, short of running it."""
    from blade.cli.main import cli

    command: click.Command = cli
    context = click.Context(command, info_name="blade")
    rest = arguments
    while isinstance(command, click.Group):
        _, rest, _ = command.make_parser(context).parse_args(list(rest))
        if not rest:
            return
        name, found, rest = command.resolve_command(context, rest)
        assert found is not None
        if not isinstance(found, click.Group):
            # --help and its like answer while parsing; the files of an example need not be there
            with contextlib.suppress(click.exceptions.Exit, NothingToRead):
                found.make_context(name, list(rest), parent=context)
            return
        command, context = found, click.Context(found, info_name=name, parent=context)


def error_classes(source: str) -> set[str]:
    """`BladeError` and all that inherits from it."""
    classes = re.findall(r"^ *class (\w+)\(([^)]*)\)", source, re.MULTILINE)
    known = {"BladeError"}
    while heirs := {name for name, bases in classes if known & set(re.findall(r"\w+", bases))} - known:
        known |= heirs
    return known


def called(func: ast.expr) -> str:
    """The last name of what is called."""
    return func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""


def slugs(tree: ast.Module, errors: set[str]) -> Iterator[tuple[str, str]]:
    """Every error a module makes: its class and its slug, the third argument or `slug=...`."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or (name := called(node.func)) not in errors:
            continue
        for value in [*node.args[2:3], *(word.value for word in node.keywords if word.arg == "slug")]:
            for part in ast.walk(value):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield name, part.value


@cache
def used_slugs() -> set[tuple[str, str]]:
    sources = [path.read_text(encoding="utf-8") for path in sorted(SRC.parent.rglob("*.py"))]
    errors = error_classes("\n".join(sources))
    making = re.compile(rf"\b(?:{'|'.join(errors)})\(")
    return {found for source in sources if making.search(source) for found in slugs(ast.parse(source), errors)}


def named_paths(text: str) -> Iterator[str]:
    """The paths in backticks that must exist: none with a <part> to fill in, none that a step creates."""
    for sentence in re.split(r"\n\s*\n|\n(?=\d\. )|\n- |; |\.\s", text):
        if re.search(r"\bcreates\b", sentence, re.IGNORECASE):
            continue
        for word in re.findall(r"`([^`\n]+)`", sentence):
            if re.fullmatch(r"[\w.-]+(/[\w.-]+)*/?", word) and ("/" in word or word.endswith((".md", ".toml"))):
                yield word


@pytest.mark.parametrize(("page", "arguments"), commands([*PAGES, *SKILLS]), ids=lambda value: " ".join(value) if isinstance(value, list) else value)
def test_every_command_in_the_docs_parses(page: str, arguments: list[str]) -> None:
    parse(arguments)


def test_the_readme_shows_commands_that_exist_and_what_the_accuracy_card_says() -> None:
    from blade.cli.main import cli

    text = (ROOT / "README.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `blade ([a-z-]+)", text, re.MULTILINE)
    assert set(listed) == set(cli.list_commands(click.Context(cli)))
    # Of each confidence how many labels were right, as in `proved: 38 of 40` or a row of a table.
    card = json.loads((SRC / "accuracy.json").read_text(encoding="utf-8"))
    for word, counts in card["confidence"].items():
        assert re.search(rf"\b{word}\W+{counts['right']:,} of {counts['n']:,}\b", text), word
    assert "@@" not in text


def test_every_slug_has_its_heading_and_the_exit_codes_of_the_code() -> None:
    text = (DOCS / "errors.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert len(headings) == len(set(headings))
    assert {slug for _, slug in used_slugs()} == set(headings)
    table = {int(code) for code in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)}
    assert table == {value for name, value in vars(errors).items() if name.startswith("EXIT_")}
    told = {(slug, int(code)) for slug, code in re.findall(r"^## (.+)\n\nExit (\d+)\.", text, re.MULTILINE)}
    assert told == {(slug, getattr(errors, name).exit_code) for name, slug in used_slugs()}


def test_the_map_is_up_to_date() -> None:
    assert runpy.run_path(str(ROOT / "scripts" / "map.py"))["main"](["--check"]) == 0


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "AGENTS.md"])
def test_paths_in_the_recipes_exist(page: str) -> None:
    paths = list(named_paths((ROOT / page).read_text(encoding="utf-8")))
    assert paths
    gone = [path for path in paths if not (ROOT / path).exists() and not (SRC / path).exists()]
    assert not gone


def test_recipes_have_six_steps_and_the_agents_page_is_short_and_has_its_second_name() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for recipe in ("Add a format", "Add a question", "Add a renderer"):
        section = text.partition(f"## {recipe}\n")[2].partition("\n## ")[0]
        assert re.findall(r"^(\d)\. ", section, re.MULTILINE) == list("123456"), recipe
    page = ROOT / "AGENTS.md"
    assert len(page.read_text(encoding="utf-8").splitlines()) < 60
    assert (ROOT / "CLAUDE.md").resolve() == page.resolve()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_between_pages_lead_somewhere_and_make_targets_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = re.findall(r"`make ([a-z-]+)`", text)
    named += [line.split()[1] for line in code_lines(text) if line.startswith("make ") and len(line.split()) > 1]
    assert set(named) <= targets
    for target in re.findall(r"\]\(([^)]+)\)", text):
        path, _, anchor = target.partition("#")
        if "://" in target:
            continue
        file = (page.parent / path) if path else page
        assert file.exists(), target
        if anchor:
            assert anchor in anchors(file), target


@pytest.mark.parametrize("name", METHODS)
def test_every_measure_is_explained(name: str) -> None:
    assert f"`{name}`" in (DOCS / "methods.md").read_text(encoding="utf-8")


def test_a_planted_report_holds_no_other_measure() -> None:
    report = json.loads((ROOT / "tests" / "golden" / "report.json").read_text(encoding="utf-8"))  # which `test_golden` writes anew
    names = {measure["name"] for measure in report["measures"]}
    assert "pass_at_1" in names
    assert names <= set(METHODS), "explain the new measure in docs/methods.md and name it in METHODS"


# ---- The readers themselves, against planted text ------------------------------------------------


def test_planted_commands_slugs_and_paths_are_seen() -> None:
    text = "blade outside\n```bash\n$ blade init 'a b' > x.toml  # note\nblade show r \\\n  17 | less\nmake demo\n```\n"
    assert list(blade_arguments(text)) == [["init", "a b"], ["show", "r", "17"]]
    source = (
        "class Odd(UsageError): pass\n"
        "raise Odd('m', 'h', 'one')\n"
        "raise errors.BladeError('m', hint='h', slug='two' if x else 'three')\n"
        "print('m', 'h', 'four')\n"
    )
    known = error_classes(f"{source}class UsageError(BladeError): pass\n")
    assert set(slugs(ast.parse(source), known)) == {("Odd", "one"), ("BladeError", "two"), ("BladeError", "three")}
    text = "1. Read `src/a.py`, run `make map`.\n2. Creates `src/new.py`: text.\n3. Fill `src/<name>.py`; see `docs/b.md`."
    assert list(named_paths(text)) == ["src/a.py", "docs/b.md"]
    with pytest.raises(click.UsageError):
        parse(["no-such-command"])
    with pytest.raises(click.UsageError):
        parse(["diagnose", "results/", "--no-such-option"])
